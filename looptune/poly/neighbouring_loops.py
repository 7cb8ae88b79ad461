"""Two loops, one directly after the other: whether they may access one element that one of them writes.

    for k:  { for i: A[i][k] /= A[k][k];   for j: A[k][j] -= 1 }          no, as k < i and k < j

Every access counts, those of sums that may be reordered and those of locals too, since both loops may run at the same
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import islpy as isl

from looptune.ir.nodes import Assign, Codelet, Loop, Node, Stmt, While
from looptune.ir.rewrite import rewrite, walk, walk_stmts
from looptune.poly.access import Access
from looptune.poly.dependence import conflict
from looptune.poly.isl_limits import JUDGEMENT, IslLimitExceeded, isl_operation_limit
from looptune.poly.scop import build

if TYPE_CHECKING:
    from looptune.poly.isl_objects import Space


@dataclass(frozen=True, slots=True)
class Meeting:
    """Accesses of two loops that may be of one element, of which one writes; None where that is not known."""

    first: Access | None = None
    then: Access | None = None


def meeting(codelet: Codelet, around: Sequence[Loop], first: Loop, then: Loop) -> Meeting | None:
    """Return accesses of two loops to one element in one iteration of the loops ``around``, or None if there are none.

    ``codelet`` has the variables. A nest that cannot be analysed exactly has accesses that are not known.
    """
    if any(isinstance(n, While) for n in walk_stmts((first, then))):
        return Meeting()
    counted = _Numbers()
    loops = counted.of(first), counted.of(then)
    body: tuple[Stmt, ...] = (loops[0][0], loops[1][0])
    for loop in reversed(around):
        body = (replace(loop, body=body),)
    try:
        with isl_operation_limit(JUDGEMENT):
            return _meeting(replace(codelet, body=body), len(around), loops[0][1], loops[1][1])
    except IslLimitExceeded:
        return Meeting()


class _Numbers:
    """Gives each statement a name of its own."""

    def __init__(self) -> None:
        self.made = 0

    def of(self, loop: Loop) -> tuple[Loop, frozenset[str]]:
        def rule(n: Node) -> Node | None:
            if not isinstance(n, Assign):
                return None
            self.made += 1
            return replace(n, name=f"S{self.made - 1}")

        renamed = rewrite(rule, loop)
        assert isinstance(renamed, Loop), "statements alone have new names"
        return renamed, frozenset(n.name for n in walk(renamed) if isinstance(n, Assign))


def _meeting(codelet: Codelet, around: int, first: frozenset[str], then: frozenset[str]) -> Meeting | None:
    model = build(codelet)
    if model.unknown:
        return Meeting()
    for s, t in product(sorted(first), sorted(then)):
        for a, b in product(model.space.accesses[s], model.space.accesses[t]):
            if a.array == b.array and (a.write or b.write) and _meet(model.space, a, b, around):
                return Meeting(a, b)
    return None


def _meet(space: Space, a: Access, b: Access, around: int) -> bool:
    """Tell whether two accesses may be of one element in one iteration of the loops around."""
    both = conflict(space, a, b)
    for k in range(around):
        both = both.equate(isl.dim_type.in_, k, isl.dim_type.out, k)
    return not both.is_empty()
