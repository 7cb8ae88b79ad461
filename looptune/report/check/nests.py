"""The analysis of each loop nest of a file that is not one codelet: what ``check`` prints if none can be chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from looptune.core.errors import LooptuneError, UnsupportedError
from looptune.core.source import Span
from looptune.core.time_limit import OutOfTime, time_limit
from looptune.frontend.survey import SurveyedNest, survey
from looptune.report.check import json, text
from looptune.report.check.loop_facts import LoopFacts, facts_of_order, loop_facts
from looptune.report.check.text_names import in_text_names
from looptune.schedule.analysis import Analysis

if TYPE_CHECKING:
    from pathlib import Path

LIMIT_S = 60.0
"""Seconds after which the analysis of a nest is stopped, as ``scan`` does."""


@dataclass(frozen=True, slots=True)
class NestReport:
    """A loop nest; ``loops`` is empty where it cannot be analysed. ``obstacle``: why it cannot be compiled, if so."""

    kernel: str
    span: Span
    loops: tuple[LoopFacts, ...]
    obstacle: LooptuneError | None


def report(path: Path, kernel: str | None, reassociate: bool, **options: Any) -> tuple[NestReport, ...]:
    """Return what is found about the nests of a file, or about those of ``kernel``, a function or FUNCTION:LINE."""
    found = survey(path, function=None if kernel is None else kernel.partition(":")[0], **options).nests
    return tuple(_reported(n, reassociate) for n in found if kernel is None or kernel in _names(n))


def _names(nest: SurveyedNest) -> tuple[str, ...]:
    return nest.function.name, nest.kernel, f"{nest.function.name}:{nest.span.line}"


def _reported(nest: SurveyedNest, reassociate: bool) -> NestReport:
    if nest.codelet is None:
        shown = () if nest.order is None else (facts_of_order(nest.order, nest.span),)
        return NestReport(nest.kernel, nest.span, shown, nest.refusal)
    try:
        with time_limit(LIMIT_S):
            facts = tuple(loop_facts(Analysis(nest.codelet, reassociate), nest.flags))
    except LooptuneError as error:
        return NestReport(nest.kernel, nest.span, (), error)
    except OutOfTime:
        late = UnsupportedError(f"the analysis of this nest took more than {LIMIT_S:g} s", nest.span)
        return NestReport(nest.kernel, nest.span, (), late)
    return NestReport(nest.kernel, nest.span, in_text_names(own_loops(facts, nest), nest.names), nest.refusal)


def own_loops(facts: Sequence[LoopFacts], nest: SurveyedNest) -> tuple[LoopFacts, ...]:
    """Return the loops of a nest that are not those of another nest inside of it."""
    around: list[Span] = []
    own: list[LoopFacts] = []
    for f in facts:
        around[f.depth :] = [f.span]
        if nest.inner.isdisjoint(around):
            own.append(f)
    return tuple(own)


def nests_text(found: Sequence[NestReport], *, colour: bool = False) -> str:
    """Return the nests as text, each with its loops and the reason why it cannot be compiled, if it cannot."""
    return "\n".join(line.rstrip() for n in found for line in _nest(n, colour))


def _nest(n: NestReport, colour: bool) -> Iterator[str]:
    yield f"{n.kernel}  {n.span.file}:{n.span.line}"
    yield ""
    if n.loops:
        yield from text.loop_lines(n.loops, colour)
    if n.obstacle is not None:
        can = "compiled" if n.loops else "analysed"
        yield from (f"  {line}" for line in f"cannot be {can}: {n.obstacle}".splitlines())
    yield ""


def nests_record(path: Path, found: Sequence[NestReport]) -> dict[str, Any]:
    """Return the nests as a JSON object; docs/check.md lists the fields."""
    return {
        "file": str(path),
        "nests": [
            {
                "kernel": n.kernel,
                "line": n.span.line,
                "loops": json.loop_records(n.loops),
                "obstacle": None if n.obstacle is None else n.obstacle.message,
            }
            for n in found
        ],
    }
