"""The data on which a codelet runs: random data, the arrays of files, or those of the program's own call.

    random              Problem(values, shapes)        problem_sizes.problem
    --data …            names, types, shapes checked  ─┐
    --inputs-from-main  host_program.record           ─┴▶ one .npz in the cache, by its contents ─▶ Problem(…, data)

A ``Problem`` is all that verification and timing need, so that every run of every version has the same data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from looptune.core.errors import UsageError
from looptune.ir.nodes import Array, Codelet, Scalar
from looptune.runtime import numpy_files
from looptune.runtime.input_files import InputFile, Number, read
from looptune.runtime.problem_sizes import Problem, problem, shapes

if TYPE_CHECKING:
    from looptune.frontend import Unit
    from looptune.runtime.host_program import RecordedCall

Held = Mapping[str, np.ndarray]


def from_files(sources: Sequence[str], unit: Unit, cache: Path) -> Problem:
    """Return the problem that the values of --data describe: arrays and scalars by parameter name.

    A size may come from a file, from -D, from the shape of an array, or from the program; the first three must agree
    where they say it, and the program's gives way. An array that is only written need not be there and begins as zeros.
    UsageError for whatever does not fit.
    """
    held = read(sources, unit.codelet)
    codelet = unit.codelet
    values = _values(unit, held)
    arrays = [p for p in codelet.params if isinstance(p, Array)]
    missing = [p.name for p in codelet.params if isinstance(p, Scalar) and p.name not in values]
    missing += [p.name for p in arrays if p.name not in held and p.io != "out"]
    if missing:
        files = " and ".join(dict.fromkeys(str(given.path) for given in held.values()))
        raise UsageError(f"{files or sources[0]} does not contain {', '.join(missing)}, which {codelet.name} reads")
    sized = problem(codelet, values)
    reached = shapes(codelet, sized)
    given = {p.name: held[p.name].fill(p, reached[p.name]) for p in arrays if p.name in held}
    given |= {p.name: np.zeros(reached[p.name], p.dtype) for p in arrays if p.name not in held}
    return _problem(codelet, values, given, cache)


def from_program(recorded: RecordedCall, unit: Unit, cache: Path) -> Problem:
    """Return the problem that the program poses. ``unit`` may have other floating-point types than the program."""
    for name in sorted(unit.known_values.keys() & recorded.scalars.keys()):
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
    """Write the arrays to a .npz file, completely or not at all. Raises UsageError if it cannot be written."""
    try:
        numpy_files.write(path, arrays)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    return path


def _values(unit: Unit, held: Mapping[str, InputFile]) -> dict[str, Number]:
    """Return the scalars: the files', then sizes that are an array's extent, then the program's."""
    said: dict[str, tuple[Number, Path]] = {}
    for p in unit.codelet.params:
        if isinstance(p, Scalar) and p.name in held:
            said[p.name] = held[p.name].number(p), held[p.name].path
    for p in unit.codelet.params:
        if isinstance(p, Array) and p.name in held:
            given = held[p.name]
            for name, size in given.sizes(p):
                known, path = said.setdefault(name, (size, given.path))
                if known != size:
                    shape = f"the shape of {p.name}, {list(given.content.shape)}, in {given.path}"
                    raise UsageError(f"{name} is {known} in {path}, but {shape} makes it {size}")
    for name, (number, path) in said.items():
        known = unit.values.get(name, number)
        meant = [
            m for m, text in unit.defines.items() if m.lower() == name.lower() and (m == name or text == f"{known}")
        ]
        if meant and known != number:
            raise UsageError(f"{name} is {number} in {path}, but -D {meant[0]}={known}")
    return {**unit.values, **{name: number for name, (number, _) in said.items()}}
