"""Judge the loops that OpenMP or OpenACC pragmas run in parallel: a dependence between their iterations is a race."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from looptune.core.source import Span
from looptune.poly.carried_dependence import Reason

if TYPE_CHECKING:
    from looptune.frontend.worksharing import WorksharingLoop
    from looptune.report.check.loop_facts import LoopFacts


@dataclass(frozen=True, slots=True)
class Race:
    """A data race: ``title`` is the pragma at ``span``, ``what`` says which variable the threads share.

    ``loop`` is the place of the loop, ``reason`` the dependence between two of its iterations where that is the cause.
    """

    title: str
    span: Span
    loop: Span
    what: str
    reason: Reason | None = None


def races(pragmas: Sequence[WorksharingLoop], loops: Sequence[LoopFacts], names: Mapping[str, str]) -> tuple[Race, ...]:
    """Return the races that the analysis of the loops shows; what cannot be analysed is none.

    ``names`` are the text's names of the codelet's variables, where they differ.
    """
    facts = {f.span: f for f in loops}
    return tuple(race for p in pragmas for race in _races(p, facts, names))


def _races(p: WorksharingLoop, facts: Mapping[Span, LoopFacts], names: Mapping[str, str]) -> Iterator[Race]:
    place, first = p.pragma.span, p.loops[0]
    reported: set[str] = set()
    for name in p.shared:
        if first in facts:
            yield Race(p.title, place, first, f"all threads share the loop variable {name}: add private({name})")
    for span in p.loops:
        f = facts.get(span)
        if f is None:
            continue
        if (
            f.reason is not None
            and f.ordered_at is None
            and f.left_at is None
            and _named(f.reason.dependence.array, names) not in p.private | p.reductions
        ):
            array = _named(f.reason.dependence.array, names)
            reported.add(array)
            yield Race(p.title, place, span, f"two iterations access {array}, of which one writes", f.reason)
        for r in f.reductions if f.kind == "reduction" else ():
            variable = _named(re.sub(r"\W.*", "", r.variable), names)
            reported.add(variable)
            if variable not in p.reductions | p.private:
                yield Race(p.title, place, span, _of_reduction(r.op, variable))
        for own in (*f.private, *f.shared):
            variable = _named(own, names)
            reported.add(variable)
            if variable not in p.private | p.reductions:
                yield Race(p.title, place, span, f"all threads share {variable}: add private({variable})")
    for variable in p.written:
        if first in facts and variable not in reported:
            yield Race(p.title, place, first, f"all threads share {variable}: add private({variable})")


def _of_reduction(op: str, variable: str) -> str:
    if op in ("argmin", "argmax", "first", "last"):
        return f"two iterations may set {variable}: compare and set it in a critical section"
    return f"all iterations add to {variable}: add reduction({op}: {variable})"


def _named(name: str, names: Mapping[str, str]) -> str:
    return names.get(name, name)
