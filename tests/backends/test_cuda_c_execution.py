"""What emitted CUDA C computes is what the loops do, on a processor; ``test_opencl`` runs some of it as OpenCL C."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from looptune.frontend import load
from looptune.frontend.directive_lines import parse_lines
from looptune.ir.nodes import Codelet, Scalar
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower_to_plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests import programs
from tests.helpers import cross_check, cuda_c_on_cpu, reduction_cases
from tests.helpers.cuda_c_on_cpu import Case
from tests.lower import test_if_conversion, test_teams
from tests.schedule import test_stage
from tests.suite import test_spaces

TOLERANCE = 1e-6
SPREAD = 1
"""Of each kernel's space, besides its default."""


def spread() -> Iterator[Case]:
    """Every kernel's default, and versions from all over its space, at sizes that nothing divides."""
    for kernel in test_spaces.KERNELS:
        codelet = load(test_spaces.PROGRAMS[kernel], dtype="float64").codelet
        analysis, sizes = Analysis(codelet), small(codelet)
        start = cross_check.arguments(codelet, sizes)
        yield Case(f"{kernel}, default", lower_to_plan(schedule(analysis).codelet, blocks=True), codelet, start)
        space = test_spaces.configurations(kernel)
        for number in range(SPREAD):
            lines = space[(2 * number + 1) * len(space) // (2 * SPREAD)].lines
            done = schedule(analysis, parse_lines(lines)).codelet
            made = lower_to_plan(specialize(done, sizes) if number % 2 else done, blocks=True)
            yield Case(f"{kernel}, {'; '.join(lines)}", made, codelet, start)


def small(codelet: Codelet) -> dict[str, int | float]:
    known: dict[str, int | float] = {"tmax": 2, "tsteps": 2, "eps": 0.1}
    scalars = [p for p in codelet.params if isinstance(p, Scalar)]
    return {p.name: known.get(p.name, 5 + k) for k, p in enumerate(scalars)}


def features() -> Iterator[Case]:
    """Tiles with one buffer and several, teams, parts, accumulations under conditions, every construct of C."""
    for name, case in test_stage.CASES.items():
        codelet = load(case.text).codelet
        sizes = case.sizes[-1]
        for known in (sizes, None):
            made, start = test_stage.planned(case, known), cross_check.arguments(codelet, sizes)
            yield Case(f"tiles: {name}, {'constant' if known else 'any'} sizes", made, codelet, start)
    for number, (name, reduces) in enumerate(reduction_cases.CASES.items()):
        codelet = reduction_cases.analysis(reduces.text).codelet
        done = reduction_cases.scheduled(reduces.text, *reduces.lines).codelet
        sizes = reduces.sizes[number % len(reduces.sizes)]
        made, start = lower_to_plan(done, blocks=number % 2 == 1), reduction_cases.given(codelet, sizes, number)
        yield Case(f"shared: {name}", made, codelet, start)
    for name, shared in test_teams.CASES.items():
        codelet, sizes = reduction_cases.analysis(shared.text).codelet, shared.sizes[-1]
        yield Case(f"for a team: {name}", test_teams.made(shared), codelet, reduction_cases.given(codelet, sizes, 1))
    for name, (text, lines) in test_if_conversion.DONE.items():
        codelet = load(test_if_conversion.HEAD + "{" + text + "}\n").codelet
        sizes = test_if_conversion.SIZES[0]
        made = test_if_conversion.planned(text, lines, sizes)
        yield Case(f"under a condition: {name}", made, codelet, cross_check.arguments(codelet, sizes))
    for program in programs.ALL:
        codelet = load(program.text).codelet
        made = lower_to_plan(schedule(Analysis(codelet)).codelet)
        yield Case(program.name, made, codelet, cross_check.arguments(codelet, program.sizes))


@cache
def cases() -> tuple[Case, ...]:
    return (*spread(), *features())


def check(some: Sequence[cuda_c_on_cpu.Case], found: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    tolerances = {p.name: max(p.tolerance, TOLERANCE) for p in programs.ALL}
    wrong = {}
    for case in some:
        want = cross_check.interpreted(case.codelet, case.arguments)
        off = cross_check.off(want, found[case.name], tolerances.get(case.name, TOLERANCE))
        if off is not None:
            wrong[case.name] = off
    assert not wrong, "\n".join(f"{name}: {off}" for name, off in wrong.items())


@pytest.mark.wide
@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long)])
def test_cuda_c_means_what_the_loops_do(part: int, tmp_path: Path) -> None:
    """Threads of a block in a shuffled order from barrier to barrier, copies as late as they may come."""
    assert len({case.name for case in cases()}) == len(cases())
    some = cases()[part::3]
    check(some, cuda_c_on_cpu.run(some, tmp_path))
