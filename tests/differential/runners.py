"""Each target's way from a plan to the arrays that it leaves, in this process; arrays lie between canaries."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import boolean, float64, int64, njit, types, void

from looptune.backends.codegen.python import ident
from looptune.backends.cuda.cuda_c_writer import file_text
from looptune.backends.numba_cpu import parallel_for
from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.ir import interpreter
from looptune.ir.nodes import Array, Codelet, promoted_type
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish
from looptune.lower.plan import Plan
from looptune.runtime import targets
from tests.differential.compiled import CANARY, PAD
from tests.differential.programs import Program
from tests.helpers import cross_check, cuda_c_on_cpu

Arrays = dict[str, np.ndarray]


class Between:
    """A program's arrays for one call, each between canaries."""

    def __init__(self, program: Program, number: int) -> None:
        self.given = program.arguments(number)
        self.wholes: dict[str, np.ndarray] = {}
        self.arrays: Arrays = {}
        for name, a in self.given.items():
            if isinstance(a, np.ndarray):
                whole = np.full(2 * PAD + a.nbytes, CANARY, np.uint8)
                self.wholes[name] = whole
                view = whole[PAD : PAD + a.nbytes].view(a.dtype).reshape(a.shape)
                view[...] = a
                self.arrays[name] = view

    @property
    def scalars(self) -> dict[str, int | float]:
        return {name: a for name, a in self.given.items() if not isinstance(a, np.ndarray)}

    def touched(self) -> str:
        """Which array's canaries are gone."""
        for name, whole in self.wholes.items():
            if (whole[:PAD] != CANARY).any() or (whole[len(whole) - PAD :] != CANARY).any():
                return f"elements beside {name} are written"
        return ""


def interpreted(codelet: Codelet, held: Between) -> None:
    interpreter.run(codelet, held.arrays, held.scalars)


@cache
def backwards(args: tuple[Any, ...]) -> Callable[..., None]:
    """What ``sharing.sharer`` gives, but chunks run one after the other, the last one first."""
    kernel, packed = types.FunctionType(void(int64, int64, *args)), types.BaseTuple.from_types(args)

    @njit(void(kernel, int64, int64, int64, int64, float64, boolean, packed))
    def share(kernel, lo, step, trips, cores, work, uneven, args):  # type: ignore[no-untyped-def]
        chunks = min(max(trips, 0), 4 * cores)
        for back in range(chunks):
            chunk = int64(chunks - 1 - back)
            kernel(lo + step * (chunk * trips // chunks), lo + step * ((chunk + 1) * trips // chunks), *args)

    made: Callable[..., None] = share
    return made


def numba_cpu(plan: Plan, cache_: Path, *, threads: bool) -> Callable[[Between], None]:
    """Compiled for this processor; ``threads``: by all cores, else one chunk after the other, which compiles sooner.

    All cores have a part of a launch however little it does.
    """
    usual = parallel_for.sharer
    parallel_for.sharer = partial(usual, least_work=0.0) if threads else backwards  # type: ignore[assignment]
    try:
        backend = NumbaCpu(cache_)
        program = backend.load(backend.build(plan))
    finally:
        parallel_for.sharer = usual
    return lambda held: program.run(held.arrays, held.scalars)


def built(text: str, path: Path, codelet: Codelet) -> Callable[[Between], None]:
    """A module that ``looptune build`` writes, called as its users call it."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, ident(codelet.name))

    def run(held: Between) -> None:
        given = {**held.arrays, **held.scalars}
        function(*(given[p.name] for p in codelet.params))

    return run


def on_device(target: str, plan: Plan, cache_: Path) -> Callable[[Between], None]:
    """On the device that the target is for; arrays are parts of larger ones."""
    chosen = targets.resolve(target, cache_)
    backend, machine = chosen.backend(), chosen.machine()
    program = backend.load(backend.build(plan))
    taken = {p.name for p in plan.codelet.params if isinstance(p, Array)}

    def run(held: Between) -> None:
        wholes = {name: machine.place(whole.view(_element(held, name))) for name, whole in held.wholes.items()}
        inside = {
            name: machine.inside(whole, PAD // held.arrays[name].itemsize, held.arrays[name].shape)
            for name, whole in wholes.items()
            if name in taken
        }
        program.run(inside, held.scalars, machine.stream)
        for name, whole in wholes.items():
            held.wholes[name][:] = machine.fetch(whole).view(np.uint8)

    return run


def _element(held: Between, name: str) -> np.dtype:
    return held.arrays[name].dtype


def simulated(plan: Plan, name: str) -> Callable[[Between], None]:
    """The CUDA target's module in Numba's simulator, which is for processes with NUMBA_ENABLE_CUDASIM=1."""
    from looptune.backends.numba_cuda.backend import NumbaCuda
    from tests.helpers import cuda_simulator

    source = NumbaCuda().emit(plan)
    order = [p.name for p in plan.codelet.params]

    def run(held: Between) -> None:
        given: cross_check.Arguments = {**held.arrays, **held.scalars}
        emitted = cross_check.Emitted(name, source, ident(plan.codelet.name), {n: given[n] for n in order})
        for array, left in cuda_simulator.run(emitted).items():
            held.arrays[array][...] = left

    return run


def cuda_c(texts: Mapping[int, str], folder: Path) -> tuple[dict[int, Any], dict[int, str]]:
    """CUDA C files as C++, in one library: each host function by number, or what the compiler said of the text."""
    folder.mkdir(parents=True, exist_ok=True)
    said = _library(texts, folder, "whole")
    if said:
        alone = {k: _library({k: text}, folder, f"alone{k}") for k, text in texts.items()}
        fine = {k: text for k, text in texts.items() if not alone[k]}
        assert not _library(fine, folder, "whole"), "files that compile alone compile together"
        library = ctypes.CDLL(str(folder / "whole.so"))
        return {k: getattr(library, f"run_{k}") for k in fine}, {k: what for k, what in alone.items() if what}
    library = ctypes.CDLL(str(folder / "whole.so"))
    return {k: getattr(library, f"run_{k}") for k in texts}, {}


def _library(texts: Mapping[int, str], folder: Path, name: str) -> str:
    parts = ['#include "cuda_c_on_cpu.h"']
    parts += [f"namespace n{k} {{\n{cuda_c_on_cpu.portable(text, k)}\n}}" for k, text in texts.items()]
    (folder / f"{name}.cpp").write_text("\n".join(parts))
    include = str(Path(cuda_c_on_cpu.__file__).parent)
    command = [
        "g++",
        "-O0",
        "-w",
        "-ffp-contract=off",
        "-shared",
        "-fPIC",
        "-I",
        include,
        f"{name}.cpp",
        "-o",
        f"{name}.so",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr[:1000] if done.returncode else ""


def cuda_c_text(plan: Plan) -> str:
    return file_text(finish(plan, Machine(blocks=True, host_reads=True)))


def called(function: Any, codelet: Codelet, held: Between) -> None:
    """The host function of a CUDA C file."""
    call: list[object] = []
    for p in codelet.params:
        match p:
            case Array(name):
                call.append(held.arrays[name].ctypes.data_as(ctypes.c_void_p))
            case _:
                call.append(cross_check.C_SCALARS[promoted_type(p.dtype)](held.scalars[p.name]))
    answer = function(*call, None)
    assert answer == 0, f"the host function returned {answer}"
