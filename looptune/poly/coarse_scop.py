"""A nest of which nothing is known but its text: what is asked about it is answered at once, and never wrongly.

S0: { [i, j] : bounds } writes A[i % 5][j]    ==>    S0: { [i, j] } may write A[anything]
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from looptune.poly.access import Access
from looptune.poly.domain import Statement, Unanalysable
from looptune.poly.isl_limits import TooInvolved
from looptune.poly.isl_objects import Space


def coarse(space: Space, reason: TooInvolved, names: Collection[str]) -> tuple[Space, tuple[Unanalysable, ...]]:
    """Return the nest in which the statements ``names`` may run at any time on any element, and a message for each."""
    statements, accesses = dict(space.nest.statements), dict(space.accesses)
    unknown: list[Unanalysable] = []
    for name in names:
        s = statements[name]
        about = Unanalysable(f"this nest, on which {reason},", s.assign.span, frozenset({name}))
        unknown.append(about)
        statements[name] = _anywhere(s, about)
        accesses[name] = tuple(_anything(a, about) for a in accesses[name])
    return Space(replace(space.nest, statements=statements), accesses), tuple(unknown)


def _anywhere(s: Statement, about: Unanalysable) -> Statement:
    return replace(s, domain="", exact=False, unknown=about)


def _anything(a: Access, about: Unanalysable) -> Access:
    return replace(a, index=tuple(None for _ in a.index), must=False, unknown=about)
