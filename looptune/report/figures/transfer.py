"""The best of one device on another: what it costs to take a configuration from elsewhere.

    cost(A on B) = time on B of A's best directives / time on B of B's own best          1 where they do as well

Only what was measured counts: both in B's finals, else both in its screening. Figure 10 of Grauer-Gray et al., 2012.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from looptune.report.study import Study, names_of


@dataclass(frozen=True, slots=True)
class Transfer:
    """``cost`` by kernel, size and type."""

    source: str
    target: str
    cost: Mapping[str, float]


def transfers(studies: Sequence[Study]) -> list[Transfer]:
    """Every ordered pair of devices that has a kernel in common where this was measured."""
    names = list(dict.fromkeys(s.device for s in studies))
    found = []
    for source in names:
        for target in (name for name in names if name != source):
            there = {_kind(s): s for s in studies if s.device == target}
            pairs = [(s, there[_kind(s)]) for s in studies if s.device == source and _kind(s) in there]
            known = [(own, cost) for own, other in pairs if (cost := _cost(own, other)) is not None]
            costs = dict(zip(names_of([own for own, _ in known]), (cost for _, cost in known), strict=True))
            if costs:
                found.append(Transfer(source, target, costs))
    return found


def _kind(study: Study) -> tuple[str, ...]:
    """Equal ones are the same loops at the same sizes; seeds are not told apart."""
    context = study.context
    return (context.kernel, context.source_hash, context.target, context.sizes, study.kind)


def _cost(own: Study, other: Study) -> float | None:
    taken, best = own.result.directives, other.result.directives
    for times in (other.finals, other.screened()):
        if taken in times and best in times:
            return times[taken] / times[best]
    return None
