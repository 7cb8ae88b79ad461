"""The order of the instances that one loop runs, where its statements also stand in other loops.

    for i in 0..k: S(i)     loop 2.1        order of S: (0, i) if i < k; (1, i) if i >= k
    for i in k..n: S(i)     loop 2.2        within loop 2.2: (1, i) if i >= k

``splitat``, ``schedule`` and ``block`` make such loops. A loop is judged by its own instances: those of the others run
before it or after it, whatever is done to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.ir.nodes import Assign, Codelet, Loop, Stmt
from looptune.ir.rewrite import walk_stmts
from looptune.poly.isl_limits import QUESTION, IslLimitExceeded, isl_operation_limit
from looptune.poly.loop_generation import GenerationError, LoopNest, instances_run
from looptune.poly.scop import Order, SchedulePiece

if TYPE_CHECKING:
    from looptune.poly.isl_objects import Space

Pieces = Mapping[str, tuple[SchedulePiece, ...]]


def shared_statements(body: tuple[Stmt, ...], loop: Loop) -> frozenset[str]:
    """Return the statements of the loop that also stand elsewhere in ``body``."""
    inside = Counter(n.name for n in walk_stmts((loop,)) if isinstance(n, Assign))
    everywhere = Counter(n.name for n in walk_stmts(body) if isinstance(n, Assign))
    return frozenset(n for n, count in inside.items() if everywhere[n] > count)


def order_within(space: Space, codelet: Codelet, order: Order, loop: Loop) -> Pieces | None:
    """Return ``order`` with only those pieces of the statements of a loop of ``codelet`` that run in the loop.

    None where the pieces of the order are not those of the loops, or cannot be told apart.
    """
    shared = shared_statements(codelet.body, loop)
    if not shared:
        return dict(order)
    try:
        with isl_operation_limit(QUESTION):
            nest = LoopNest.of(codelet, loop)
            own = {n: _own(space, nest, n, order[n]) for n in shared}
    except (IslLimitExceeded, GenerationError):
        return None
    kept = {n: mine for n, mine in own.items() if mine is not None}
    return {**order, **kept} if len(kept) == len(shared) else None


def _own(
    space: Space, nest: LoopNest, statement: str, pieces: tuple[SchedulePiece, ...]
) -> tuple[SchedulePiece, ...] | None:
    """Return the pieces of which the nest runs all instances; None where it runs some instances of another."""
    runs = instances_run(space, nest, statement)
    own = []
    for piece in pieces:
        where = space.time(statement, (replace(piece, time=()),), 0).domain().intersect(space.domain(statement))
        if where.is_disjoint(runs):
            continue
        if not where.is_subset(runs):
            return None
        own.append(piece)
    return tuple(own) or None


def merged(old: Order, before: Order, new: Order) -> dict[str, tuple[SchedulePiece, ...]]:
    """Return ``old`` with the pieces ``before`` of a loop replaced by ``new`` ones."""
    return {
        **old,
        **{n: (*(p for p in old[n] if p not in before[n]), *pieces) for n, pieces in new.items()},
    }
