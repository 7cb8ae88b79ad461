"""Codelets with directives and sizes, and what kernels made of them leave, in CUDA C on a processor or simulated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check, cuda_c_on_cpu

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Case:
    """A codelet f, directives, and sizes to run it with."""

    text: str
    lines: tuple[str, ...]
    sizes: tuple[Sizes, ...]


def sized(*counts: tuple[int, ...]) -> tuple[Sizes, ...]:
    return tuple(dict(zip(("steps", "n", "m", "l"), c, strict=False)) for c in counts)


def planned(text: str, lines: Sequence[str], sizes: Sizes | None = None) -> Plan:
    """With sizes as constants, where they are given."""
    done = schedule(Analysis(load(text).codelet), parse_lines(lines)).codelet
    return lower(done if sizes is None else specialize(done, sizes), blocks=True)


def wrong_in_c(cases: Mapping[str, Case], folder: Path, constant: Iterable[bool], tolerance: float) -> list[str]:
    """Which of the cases leave something else than the loops, at which sizes, which are constants or arguments."""
    made, wants = [], {}
    for name, case in cases.items():
        for seed, sizes in enumerate(case.sizes):
            codelet = load(case.text).codelet
            given = cross_check.arguments(codelet, sizes, seed)
            for known in constant:
                key = f"{name} {sizes}{'' if known else ' as arguments'}"
                wants[key] = cross_check.interpreted(codelet, given)
                done = planned(case.text, case.lines, sizes if known else None)
                made.append(cuda_c_on_cpu.Case(key, done, codelet, given))
    found = cuda_c_on_cpu.run(made, folder)
    return [key for key, want in wants.items() if cross_check.off(want, found[key], tolerance) is not None]


def wrong_in_numba(cases: Mapping[str, Case], folder: Path, constant: bool, tolerance: float) -> dict[str, str]:
    """Of each case at its first sizes, in the simulator."""
    from looptune.backends.numba_cuda.backend import NumbaCuda

    programs, wants = [], {}
    for name, case in cases.items():
        codelet = load(case.text).codelet
        start = cross_check.arguments(codelet, case.sizes[0])
        wants[name] = cross_check.interpreted(codelet, start)
        done = planned(case.text, case.lines, case.sizes[0] if constant else None)
        programs.append(cross_check.Emitted(name, NumbaCuda().emit(done), "f", start))
    return cross_check.misses(programs, wants, folder, tolerance)
