"""What a codelet is run on: random data, the arrays of a file, or what the program itself calls it with.

    random        Problem(values, shapes)                sizes.problem
    --data FILE   names, types and shapes checked  ─┐
    --run-main    program.record                   ─┴▶ one .npz in the cache, named by its contents ─▶ Problem(…, data)

A ``Problem`` is all that checking and timing ask for, so that every run of every version has the same data.
"""

from __future__ import annotations

import hashlib
import math
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from looptune.errors import UsageError
from looptune.frontend import Unit
from looptune.ir import Array, Codelet, Scalar, Var
from looptune.runtime.program import Recorded
from looptune.runtime.sizes import Problem, problem, shapes
from looptune.simplify import is_integer, wrap

Number = int | float
Held = Mapping[str, np.ndarray]


def from_file(path: Path, unit: Unit, cache: Path) -> Problem:
    """The problem that a .npz file describes: arrays and scalars by parameter name.

    A size may come from the file, from the program or -D, or from the shape of an array; where two of them say it they
    must agree. Other scalars of the file replace the program's. An array that is only written need not be there and
    begins as zeros. UsageError for whatever does not fit.
    """
    held = _read(path)
    codelet = unit.codelet
    names = [p.name for p in codelet.params]
    unknown = sorted(held.keys() - set(names))
    if unknown:
        raise UsageError(f"{path} holds {', '.join(unknown)}: the parameters of {codelet.name} are {', '.join(names)}")
    values = _values(path, unit, held)
    arrays = [p for p in codelet.params if isinstance(p, Array)]
    missing = [p.name for p in codelet.params if isinstance(p, Scalar) and p.name not in values]
    missing += [p.name for p in arrays if p.name not in held and p.io != "out"]
    if missing:
        raise UsageError(f"{path} does not give {', '.join(missing)}, which {codelet.name} reads")
    sized = problem(codelet, values)
    reached = shapes(codelet, sized)
    given = {p.name: _array(path, p, held[p.name], reached[p.name]) for p in arrays if p.name in held}
    given |= {p.name: np.zeros(reached[p.name], p.dtype) for p in arrays if p.name not in held}
    return _problem(codelet, values, given, cache)


def from_program(recorded: Recorded, unit: Unit, cache: Path) -> Problem:
    """The problem that the program poses. ``unit`` may have other floating-point types than the program."""
    for name in sorted(unit.given.keys() & recorded.scalars.keys()):
        said, found = unit.values.get(name), recorded.scalars[name]
        if said is not None and said != found:
            raise UsageError(f"-D {name}={unit.defines[name]}, but the program calls {unit.codelet.name} with {found}")
    types = {p.name: p.dtype for p in unit.codelet.params}
    arrays = {name: array.astype(types[name], copy=False) for name, array in recorded.arrays.items()}
    return _problem(unit.codelet, recorded.scalars, arrays, cache)


def _problem(codelet: Codelet, values: Mapping[str, Number], arrays: Held, cache: Path) -> Problem:
    sized = problem(codelet, values)
    data = save(arrays, cache / f"inputs-{_digest(arrays)}.npz")
    return replace(sized, shapes={name: arrays[name].shape for name in sized.shapes}, data=data)


def _digest(arrays: Held) -> str:
    found = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        found.update(repr((name, array.dtype.str, array.shape)).encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:20]


def save(arrays: Held, path: Path) -> Path:
    """The arrays in a .npz file that is there whole or not at all; UsageError where it cannot be written."""
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
        part.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    return path


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        held = np.load(path, allow_pickle=False)
        if isinstance(held, np.ndarray):
            raise UsageError(f"{path} holds one array without a name: write it with numpy.savez, by parameter name")
        with held:
            return {name: held[name] for name in held.files}
    except FileNotFoundError:
        raise UsageError(f"no such file: {path}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"{path} is no .npz file of numbers: {error}") from error


def _values(path: Path, unit: Unit, held: Held) -> dict[str, Number]:
    """The scalars: the file's, the program's, and sizes that are an array's extent."""
    values = dict(unit.values)
    for p in unit.codelet.params:
        if isinstance(p, Scalar) and p.name in held:
            number = _number(path, p, held[p.name])
            known = values.get(p.name, number)
            if known != number and (is_integer(p.dtype) or p.name in unit.given):
                whose = f"-D {p.name}={known}" if p.name in unit.given else f"{known} in the program"
                raise UsageError(f"{p.name} is {number} in {path}, but {whose}")
            values[p.name] = number
    for p in unit.codelet.params:
        if isinstance(p, Array) and p.name in held and held[p.name].ndim == len(p.shape):
            for extent, n in zip(p.shape, held[p.name].shape, strict=True):
                if isinstance(extent, Var):
                    values.setdefault(extent.name, n)
    return values


def _number(path: Path, p: Scalar, given: np.ndarray) -> Number:
    if given.size != 1:
        raise UsageError(f"{p.name} is a number, but {path} holds an array of {list(given.shape)} for it")
    number = given.item()
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise UsageError(f"{p.name} is a number, but {path} holds {given.dtype} for it")
    if not is_integer(p.dtype):
        return float(number)
    if not math.isfinite(number) or wrap(int(number), p.dtype) != number:
        raise UsageError(f"{p.name} is an {p.dtype}, but {path} holds {number} for it")
    return int(number)


def _array(path: Path, p: Array, given: np.ndarray, reached: tuple[int, ...]) -> np.ndarray:
    """``given`` in the shape of the parameter; ``reached`` is that, or for an open extent the least it must have."""
    native = given.dtype.newbyteorder("=")
    if native != np.dtype(p.dtype):
        raise UsageError(f"{p.name} is {p.dtype}, but {given.dtype} in {path}")
    shaped = given.reshape(-1) if len(p.shape) == 1 else given
    open_ = p.shape[0] is None
    fits = shaped.ndim == len(reached) and shaped.shape[1:] == reached[1:]
    if not fits or (shaped.shape[0] < reached[0] if open_ else shaped.shape[0] != reached[0]):
        want = f"at least {list(reached)}" if open_ else f"{list(reached)}"
        raise UsageError(f"{p.name} must have the shape {want}, but has {list(given.shape)} in {path}")
    return np.ascontiguousarray(shaped, native)
