"""Plans that between them use everything that CUDA C is emitted for, with arguments."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from looptune.frontend import load
from looptune.ir.nodes import Codelet, Scalar
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests import programs
from tests.helpers import (
    cross_check,
    if_conversion_cases,
    reduction_cases,
    stage_cases,
    suite_spaces,
    team_cases,
)
from tests.helpers.cuda_c_on_cpu import Case

TOLERANCE = 1e-6
SPREAD = 1
"""Of each kernel's space, besides its default."""


def spread() -> Iterator[Case]:
    """Every kernel's default, and versions from all over its space, at sizes that nothing divides."""
    for kernel in suite_spaces.KERNELS:
        codelet = load(suite_spaces.PROGRAMS[kernel], dtype="float64").codelet
        analysis, sizes = Analysis(codelet), small(codelet)
        start = cross_check.arguments(codelet, sizes)
        yield Case(f"{kernel}, default", lower(schedule(analysis).codelet, blocks=True), codelet, start)
        space = suite_spaces.configurations(kernel)
        for number in range(SPREAD):
            lines = space[(2 * number + 1) * len(space) // (2 * SPREAD)].lines
            done = schedule(analysis, parse_lines(lines)).codelet
            made = lower(specialize(done, sizes) if number % 2 else done, blocks=True)
            yield Case(f"{kernel}, {'; '.join(lines)}", made, codelet, start)


def small(codelet: Codelet) -> dict[str, int | float]:
    known: dict[str, int | float] = {"tmax": 2, "tsteps": 2, "eps": 0.1}
    scalars = [p for p in codelet.params if isinstance(p, Scalar)]
    return {p.name: known.get(p.name, 5 + k) for k, p in enumerate(scalars)}


def features() -> Iterator[Case]:
    """Tiles with one buffer and several, teams, parts, accumulations under conditions, every construct of C."""
    for name, case in stage_cases.CASES.items():
        codelet = load(case.text).codelet
        sizes = case.sizes[-1]
        for known in (sizes, None):
            made, start = stage_cases.planned(case, known), cross_check.arguments(codelet, sizes)
            yield Case(f"tiles: {name}, {'constant' if known else 'any'} sizes", made, codelet, start)
    for number, (name, reduces) in enumerate(reduction_cases.CASES.items()):
        codelet = reduction_cases.analysis(reduces.text).codelet
        done = reduction_cases.scheduled(reduces.text, *reduces.lines).codelet
        sizes = reduces.sizes[number % len(reduces.sizes)]
        made, start = lower(done, blocks=number % 2 == 1), reduction_cases.given(codelet, sizes, number)
        yield Case(f"shared: {name}", made, codelet, start)
    for name, shared in team_cases.CASES.items():
        codelet, sizes = reduction_cases.analysis(shared.text).codelet, shared.sizes[-1]
        yield Case(f"for a team: {name}", team_cases.made(shared), codelet, reduction_cases.given(codelet, sizes, 1))
    for name, (text, lines) in if_conversion_cases.DONE.items():
        codelet = load(if_conversion_cases.HEAD + "{" + text + "}\n").codelet
        sizes = if_conversion_cases.SIZES[0]
        made = if_conversion_cases.planned(text, lines, sizes)
        yield Case(f"under a condition: {name}", made, codelet, cross_check.arguments(codelet, sizes))
    for program in programs.ALL:
        codelet = load(program.text).codelet
        made = lower(schedule(Analysis(codelet)).codelet)
        yield Case(program.name, made, codelet, cross_check.arguments(codelet, program.sizes))


@cache
def cases() -> tuple[Case, ...]:
    return (*spread(), *features())
