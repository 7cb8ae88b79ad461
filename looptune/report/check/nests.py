"""The analysis of each loop nest of a file that is not one codelet: what ``check`` prints if none can be chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from looptune.core.errors import LooptuneError, UnsupportedError
from looptune.core.source import Span
from looptune.core.time_limit import OutOfTime, time_limit
from looptune.frontend import load
from looptune.frontend.survey import SurveyedNest, survey
from looptune.ir.nodes import Loop, While
from looptune.ir.rewrite import walk_stmts
from looptune.report.check import json, text
from looptune.report.check.explanation import CheckedDirective, checked_directives
from looptune.report.check.loop_facts import LoopFacts, facts_of_order, loop_facts, with_division
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
    directives: tuple[CheckedDirective, ...] = ()

    @property
    def refused(self) -> bool:
        return any(d.judgement == "refused" for d in self.directives)


def report(path: Path, kernel: str | None, reassociate: bool, **options: Any) -> tuple[NestReport, ...]:
    """Return what is found about the nests of a file, or about those of ``kernel``, a function or FUNCTION:LINE."""
    found = survey(path, function=None if kernel is None else kernel.partition(":")[0], **options).nests
    reported = ((n, _reported(n, reassociate)) for n in found if kernel is None or kernel in _names(n))
    functions: dict[str, Mapping[Span, CheckedDirective]] = {}
    return tuple(_with_directives(r, n, path, reassociate, functions, options) for n, r in reported)


def _with_directives(
    found: NestReport, nest: SurveyedNest, path: Path, reassociate: bool,
    functions: dict[str, Mapping[Span, CheckedDirective]], options: Mapping[str, Any],
) -> NestReport:  # fmt: skip
    """Return the nest with its directives: judged in its function where that is one codelet, else in the nest.

    A directive may concern what stands before its nest. ``functions``: the judgements of functions that are known.
    """
    written = {d.span: loop.number for loop in _loops(nest) for d in loop.directives}
    if not written or not found.loops:
        return found
    name = nest.function.name
    if name not in functions:
        functions[name] = _judged_in_function(path, name, reassociate, options)
    judged = functions[name]
    try:
        if not written.keys() <= judged.keys() and nest.codelet is not None:
            with time_limit(LIMIT_S):
                own = checked_directives(Analysis(nest.codelet, reassociate), {})
            judged = {d.span: d for d in in_text_names(own, nest.names)}
    except LooptuneError as error:
        return replace(found, obstacle=found.obstacle or error)
    except OutOfTime:
        return replace(found, obstacle=found.obstacle or _late("directives", nest))
    mine = (replace(judged[span], number=number) for span, number in written.items() if span in judged)
    return replace(found, directives=tuple(mine))


def _loops(nest: SurveyedNest) -> Iterator[Loop | While]:
    body = () if nest.codelet is None else nest.codelet.body
    yield from (s for s in walk_stmts(body) if isinstance(s, Loop | While))


def _judged_in_function(
    path: Path, name: str, reassociate: bool, options: Mapping[str, Any]
) -> Mapping[Span, CheckedDirective]:
    """Return the judgements of the directives of a function, by their places; none where it is not one codelet."""
    try:
        unit = load(path, kernel=name, **options)
        with time_limit(LIMIT_S):
            found = checked_directives(Analysis(unit.codelet, reassociate), unit.values)
    except (LooptuneError, OutOfTime):
        return {}
    return {d.span: d for d in in_text_names(found, unit.names)}


def _names(nest: SurveyedNest) -> tuple[str, ...]:
    return nest.function.name, nest.kernel, f"{nest.function.name}:{nest.span.line}"


def _reported(nest: SurveyedNest, reassociate: bool) -> NestReport:
    if nest.codelet is None:
        shown = () if nest.order is None else (facts_of_order(nest.order, nest.span),)
        return NestReport(nest.kernel, nest.span, shown, nest.refusal)
    try:
        with time_limit(LIMIT_S):
            analysis = Analysis(nest.codelet, reassociate)
            facts = tuple(loop_facts(analysis, nest.flags))
            if nest.refusal is None:
                facts = tuple(with_division(f, analysis, (), {}) for f in facts)
    except LooptuneError as error:
        return NestReport(nest.kernel, nest.span, (), error)
    except OutOfTime:
        return NestReport(nest.kernel, nest.span, (), _late("analysis", nest))
    return NestReport(nest.kernel, nest.span, in_text_names(own_loops(facts, nest), nest.names), nest.refusal)


def _late(what: str, nest: SurveyedNest) -> UnsupportedError:
    return UnsupportedError(f"the {what} of this nest took more than {LIMIT_S:g} s", nest.span)


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
    if n.directives:
        yield from ("", *text.directive_lines(n.directives, colour))
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
                "directives": [json.directive_record(d) for d in n.directives],
                "obstacle": None if n.obstacle is None else n.obstacle.message,
            }
            for n in found
        ],
    }
