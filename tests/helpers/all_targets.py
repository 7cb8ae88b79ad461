"""A C function under directives in every way that runs here, against the same text compiled by gcc.

gcc of the text ─┬─ the interpreter, of the rewritten loops
                 ├─ gcc, of the C that ``transform`` prints
                 ├─ numba-cpu, arrays between canaries
                 ├─ CUDA C as C++
                 └─ Numba's CUDA module in the simulator
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import looptune
from looptune.backends.codegen.python import ident
from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.nodes import Codelet
from looptune.lower.pipeline import lower
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check, cuda_c_on_cpu

ALL = ("interpreter", "transform", "cpu", "cuda-c", "simulator")
QUICK = ("interpreter", "transform", "cuda-c")
EDGE = 16
"""Elements before and after each array of a CPU's kernel."""


@dataclass(frozen=True)
class Case:
    """``arguments`` are what the function is called with, one after the other; ``tolerance`` is that of floats."""

    name: str
    text: str
    arguments: Sequence[cross_check.Arguments]
    lines: Sequence[str] = ()
    ways: Collection[str] = field(default=ALL)
    tolerance: float = 0.0


def wrong(cases: Sequence[Case], folder: Path) -> list[str]:
    """What differs from what gcc makes of the text, as lines of case, way, arguments and elements."""
    found: list[str] = []
    blocks: list[cuda_c_on_cpu.Case] = []
    emitted: list[cross_check.Emitted] = []
    wants: dict[str, dict[str, np.ndarray]] = {}
    allowed: dict[str, float] = {}
    for number, case in enumerate(cases):
        unit = load(case.text)
        codelet, returned = unit.codelet, unit.parts[0].result
        done = schedule(Analysis(codelet), parse_lines(list(case.lines))).codelet
        library = cross_check.compiled(case.text, _folder(folder, f"t{number}"))
        printed = (
            cross_check.compiled(c_printer.function(done), _folder(folder, f"p{number}"))
            if _has(case, "transform")
            else None
        )
        kernel = looptune.compile(case.text, target="numba-cpu", directives=case.lines) if _has(case, "cpu") else None
        planned = lower(done, blocks=True)
        for k, given in enumerate(case.arguments):
            key = f"{case.name} {k} {cross_check.scalars(given)}"
            allowed[key] = case.tolerance
            wants[key] = want = cross_check.called(library, codelet, given, returned)
            if _has(case, "interpreter"):
                found += _off(key, "interpreter", want, cross_check.interpreted(done, given), case.tolerance)
            if printed is not None:
                found += _off(key, "transform", want, cross_check.called(printed, codelet, given), case.tolerance)
            if kernel is not None:
                found += _on_cpu(key, kernel, codelet, want, given, case.tolerance)
            if _has(case, "cuda-c"):
                blocks.append(cuda_c_on_cpu.Case(key, planned, codelet, given))
            if _has(case, "simulator"):
                emitted.append(cross_check.Emitted(key, _module(planned), ident(codelet.name), given))
    for key, got in (cuda_c_on_cpu.run(blocks, folder) if blocks else {}).items():
        found += _off(key, "cuda-c", wants[key], got, allowed[key])
    for key, made in (cross_check.simulated(emitted, folder) if emitted else {}).items():
        found += (
            [f"{key}, simulator: {made}"]
            if isinstance(made, str)
            else _off(key, "simulator", wants[key], made, allowed[key])
        )
    return found


def _has(case: Case, way: str) -> bool:
    return way in case.ways and (way != "simulator" or cross_check.CUDA)


def _folder(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    return made


def _module(planned: object) -> str:
    from looptune.backends.numba_cuda.backend import NumbaCuda

    return NumbaCuda().emit(planned)  # type: ignore[arg-type]


def _off(
    key: str, way: str, want: dict[str, np.ndarray], got: dict[str, np.ndarray], tolerance: float
) -> Iterator[str]:
    why = cross_check.off(want, got, tolerance)
    if why is not None:
        yield f"{key}, {way}: {why}"


def _on_cpu(
    key: str,
    kernel: looptune.Kernel,
    codelet: Codelet,
    want: dict[str, np.ndarray],
    given: cross_check.Arguments,
    tolerance: float,
) -> Iterator[str]:
    whole: dict[str, np.ndarray] = {}
    passed: cross_check.Arguments = {}
    for name, value in given.items():
        if isinstance(value, np.ndarray):
            whole[name] = np.full(value.size + 2 * EDGE, 77, value.dtype)
            whole[name][EDGE : EDGE + value.size] = value.ravel()
            passed[name] = whole[name][EDGE : EDGE + value.size].reshape(value.shape)
        else:
            passed[name] = value
    kernel(*(passed[p.name] for p in codelet.params))
    yield from _off(key, "cpu", want, cross_check.arrays(passed), tolerance)
    for name, around in whole.items():
        edge = around.dtype.type(77)
        if (around[:EDGE] != edge).any() or (around[-EDGE:] != edge).any():
            yield f"{key}, cpu: {name} is written outside"
