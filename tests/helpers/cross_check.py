"""One C text run every way there is: by gcc, by the interpreter, by the CPU target, by the CUDA target's source.

    inputs ─┬─ gcc -shared, ctypes ───────────────┐
            ├─ interp ────────────────────────────┤ arrays, compared
            ├─ looptune.compile(target=numba-cpu) ┤
            └─ emitted CUDA module, simulated ────┘

The simulator replaces ``numba.cuda`` when it is imported, so what runs in it runs in a process of its own, and all
programs of a test in one process.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from looptune.frontend import load
from looptune.ir import interpreter
from looptune.ir.nodes import Array, Codelet, Scalar
from looptune.runtime.problem_sizes import problem
from looptune.runtime.verification import extents
from tests.helpers.paths import ROOT

Arguments = dict[str, "np.ndarray | int | float"]

GCC = ("gcc", "-std=gnu11", "-O1", "-ffp-contract=off", "-fwrapv", "-w", "-shared", "-fPIC")
C_SCALARS = {
    "float32": ctypes.c_float, "float64": ctypes.c_double, "int8": ctypes.c_int8, "int16": ctypes.c_int16,
    "int32": ctypes.c_int32, "int64": ctypes.c_int64, "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64, "bool": ctypes.c_bool,
}  # fmt: skip

CUDA = importlib.util.find_spec("numba_cuda") is not None and importlib.util.find_spec("cuda") is not None


@dataclass(frozen=True)
class Emitted:
    """A CUDA module as text, the host function in it and what it is called with."""

    name: str
    source: str
    entry: str
    arguments: Arguments


def arguments(codelet: Codelet, sizes: Mapping[str, int | float], seed: int = 1) -> Arguments:
    """Every parameter by name, in C's order: ``sizes`` and random contents, negative ones included."""
    known = problem(codelet, sizes)
    given = {name: np.empty(shape) for name, shape in known.shapes.items()}
    made: Arguments = {}
    rng = np.random.default_rng(seed)
    for p in codelet.params:
        match p:
            case Scalar(name, dtype):
                made[name] = np.dtype(dtype).type(known.values[name]).item()
            case Array(name, dtype):
                shape = given[name].shape if name in given else extents(p, known.values)
                made[name] = _filled(np.dtype(dtype), shape, rng)
    return made


def _filled(dtype: np.dtype, shape: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    if dtype.kind == "f":
        return (rng.integers(-64, 64, shape) / 16 + 1 / 64).astype(dtype)
    return rng.integers(0 if dtype.kind == "u" else -9, 10, shape).astype(dtype)


def copied(given: Arguments) -> Arguments:
    return {name: a.copy() if isinstance(a, np.ndarray) else a for name, a in given.items()}


def arrays(given: Arguments) -> dict[str, np.ndarray]:
    return {name: a for name, a in given.items() if isinstance(a, np.ndarray)}


def scalars(given: Arguments) -> dict[str, int | float]:
    return {name: a for name, a in given.items() if not isinstance(a, np.ndarray)}


def interpreted(codelet: Codelet, given: Arguments) -> dict[str, np.ndarray]:
    out = copied(given)
    interpreter.run(codelet, arrays(out), scalars(out))
    return arrays(out)


def by_gcc(text: str, codelet: Codelet, given: Arguments, folder: Path) -> dict[str, np.ndarray]:
    """What the function leaves in its arrays when gcc compiles the text as it stands."""
    return called(compiled(text, folder), codelet, given)


def compiled(text: str, folder: Path) -> ctypes.CDLL:
    source, library = folder / "p.c", folder / "p.so"
    source.write_text(text)
    subprocess.run([*GCC, str(source), "-o", str(library), "-lm"], check=True, timeout=60)
    return ctypes.CDLL(str(library))


def called(library: ctypes.CDLL, codelet: Codelet, given: Arguments, returned: str = "") -> dict[str, np.ndarray]:
    """What the library's function with the codelet's name and parameters leaves in its arrays.

    What it returns is in the codelet's array ``returned``.
    """
    out = copied(given)
    call: list[object] = []
    function = getattr(library, codelet.name)
    for p in codelet.params:
        match p, out[p.name]:
            case Array(), np.ndarray() if p.name == returned:
                function.restype = C_SCALARS[p.dtype]
            case Array(), np.ndarray() as array:
                call.append(array.ctypes.data_as(ctypes.c_void_p))
            case Scalar(_, dtype), number:
                call.append(_half(number) if dtype == "float16" else C_SCALARS[dtype](number))
    value = function(*call)
    if returned:
        np.asarray(out[returned])[0] = value
    return arrays(out)


def _half(number: float) -> ctypes.c_float:
    """A ``_Float16`` argument: the lowest 16 bits of the register that a float is passed in."""
    return ctypes.c_float.from_buffer_copy(np.float16(number).tobytes() + b"\0\0")


def simulated(
    programs: Sequence[Emitted], folder: Path, timeout_s: float = 240
) -> dict[str, dict[str, np.ndarray] | str]:
    """What each program leaves in its arrays under Numba's CUDA simulator, or the last lines of its traceback."""
    given, result = folder / "programs.pickle", folder / "results.pickle"
    given.write_bytes(pickle.dumps(list(programs)))
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-m", "tests.helpers.cuda_simulator", str(given), str(result)],
        env=environment,
        timeout=timeout_s,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, np.ndarray] | str] = pickle.loads(result.read_bytes())
    return found


def misses(
    programs: Sequence[Emitted], wants: Mapping[str, Mapping[str, np.ndarray]], folder: Path, tolerance: float = 0.0
) -> dict[str, str]:
    """What the simulator makes otherwise than wanted, by the name of the program."""
    found = simulated(programs, folder)
    assert found.keys() == wants.keys()
    made = {k: got if isinstance(got, str) else off(wants[k], got, tolerance) for k, got in found.items()}
    return {name: why for name, why in made.items() if why is not None}


def off(want: Mapping[str, np.ndarray], got: Mapping[str, np.ndarray], tolerance: float = 0.0) -> str | None:
    """Where two results differ: by a bit, or a float by more than ``tolerance``, and a float32 by more than 1e-5."""
    for name, expected in want.items():
        have = got[name]
        allowed = tolerance if expected.dtype.kind == "f" else 0.0
        if allowed and expected.dtype == np.float32:
            allowed = max(allowed, 1e-5)
        close = (have == expected) | ((have != have) & (expected != expected))
        if allowed:
            close |= np.isclose(have, expected, rtol=allowed, atol=allowed)
        if not close.all():
            at = tuple(int(k) for k in np.argwhere(~close)[0])
            return f"{name}{list(at)}: got {have[at]!r}, expected {expected[at]!r} ({int((~close).sum())} wrong)"
    return None


def codelet_of(text: str) -> Codelet:
    return load(text).codelet
