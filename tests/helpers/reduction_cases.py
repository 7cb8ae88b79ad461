"""Codelets whose loops reduce, with directives that share the work, and how each of them runs."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.frontend import load
from looptune.ir.nodes import Codelet
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.lower.plan_outline import summarize_plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check
from tests.helpers.split_reduction_cases import DEALT
from tests.helpers.team_reduction_cases import IMPERFECT, PERFECT

CASES = PERFECT | IMPERFECT | DEALT


@functools.cache
def analysis(text: str, reassociate: bool = True) -> Analysis:
    return Analysis(load(text).codelet, reassociate)


def scheduled(text: str, *lines: str, reassociate: bool = True) -> ScheduleResult:
    return schedule(analysis(text, reassociate), parse_lines(lines))


def planned(text: str, *lines: str) -> Plan:
    return lower(scheduled(text, *lines).codelet)


def given(codelet: Codelet, sizes: Mapping[str, int], seed: int) -> cross_check.Arguments:
    return cross_check.arguments(codelet, sizes, seed)


def drawn(done: Plan) -> tuple[str, ...]:
    """The outline as in ``Case.runs``."""
    lines = [
        line.replace(": blocks of", "").replace(" threads", "").replace(" x ", "x")
        for line in summarize_plan(done)[:-1]
    ]
    return tuple(lines)


def agrees_on_cpu(done: Plan, text: str, every: Sequence[Mapping[str, int]], folder: Path) -> None:
    """At all these sizes the arrays are those of the loops in their order."""
    backend = NumbaCpu(folder)
    program = backend.load(backend.build(done))
    codelet = analysis(text).codelet
    for seed, sizes in enumerate(every):
        start = given(codelet, sizes, seed)
        want, got = cross_check.interpreted(codelet, start), cross_check.copied(start)
        program.run(cross_check.arrays(got), cross_check.scalars(got))
        assert cross_check.off(want, cross_check.arrays(got), 1e-12) is None, sizes
