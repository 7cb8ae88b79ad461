"""Dependences: pairs of instances that access the same element, one of them writing it.

    s -> t   where s runs before t in the original nest

Dependences are memory based: they include every conflicting pair, not only the last writer, so that any order that
preserves them all is legal. A pair that only accumulates into one element by one op is recorded separately: it is a
reduction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import islpy as isl

from looptune.poly.coalesce import coalesce
from looptune.poly.isl_limits import Effort, IslLimitExceeded, isl_operation_limit
from looptune.poly.isl_objects import Space, union

if TYPE_CHECKING:
    from looptune.poly.access import Access


@dataclass(frozen=True, slots=True, eq=False)
class Dependence:
    """A dependence between two statements; ``map``: { first[iteration] -> then[iteration] }.

    ``op`` is that of a reduction, else None; ``exact``: any order of its terms gives the same value.
    """

    source: str
    sink: str
    array: str
    op: str | None
    map: isl.Map
    exact: bool = False

    def commutes(self, reassociate: bool) -> bool:
        """Return whether both ends accumulate and may do so in either order."""
        return self.op is not None and (reassociate or self.exact)


def dependences(
    space: Space, arrays: Collection[str] | None = None, *, effort: Effort | None = None
) -> tuple[Dependence, ...]:
    """Return all dependences, or those on some ``arrays``, in textual order of the statements.

    With ``effort`` each pair of statements has a limit; IslLimitExceeded then names the pair at which it was reached.
    """
    touching: dict[str, list[str]] = {}
    for name, accesses in space.accesses.items():
        for array in dict.fromkeys(a.array for a in accesses if arrays is None or a.array in arrays):
            touching.setdefault(array, []).append(name)
    found: list[Dependence] = []
    for array, names in touching.items():
        for first in names:
            for then in names:
                found += _asked(space, array, first, then, effort)
    return tuple(found)


def _asked(space: Space, array: str, first: str, then: str, effort: Effort | None) -> list[Dependence]:
    if effort is None:
        return list(_between(space, array, first, then))
    try:
        with isl_operation_limit(effort.left, effort):
            return list(_between(space, array, first, then))
    except IslLimitExceeded as reason:
        reason.between = (first, then)
        raise


def _between(space: Space, array: str, first: str, then: str) -> Iterator[Dependence]:
    for op, pairs in _accesses_that_meet(space, array, first, then):
        yield from _kept(space, array, first, then, op, pairs)


def _accesses_that_meet(
    space: Space, array: str, first: str, then: str
) -> Iterator[tuple[str | None, list[tuple[Access, Access]]]]:
    """Yield the pairs of accesses that a dependence consists of: first of a reduction by an operator, then the rest."""
    s = [a for a in space.accesses[first] if a.array == array]
    t = [a for a in space.accesses[then] if a.array == array]
    op = shared_op(s, t)
    if op is not None:
        yield op, [(s[0], t[0])]
        s_rest, t_rest = ([a for a in side if a.reduces is None] for side in (s, t))
        yield None, [(s[0], b) for b in t_rest] + [(a, t[0]) for a in s_rest]
    else:
        apart = first == then and all(a.distinct for a in s if a.write)
        yield None, [(a, b) for a in s for b in t if a.write != b.write or (a.write and not apart)]


def pieces(space: Space, d: Dependence) -> list[isl.Map]:
    """Return the relations of which a dependence is the union, one for each pair of accesses.

    Each has equations for the subscripts. One map of them all may have an inequality for each of its facets:

        A[i][j] = B[i - 1][j] + B[i + 1][j] + ...       |i' - i| + |j' - j| <= 1
    """
    pairs = next((p for op, p in _accesses_that_meet(space, d.array, d.source, d.sink) if op == d.op), [])
    distinct = {(a.index, b.index): (a, b) for a, b in pairs}
    ordered = (conflict(space, a, b).intersect(space.before(d.source, d.sink)) for a, b in distinct.values())
    return [m for m in ordered if not m.is_empty()]


def shared_op(s: list[Access], t: list[Access]) -> str | None:
    """Return the operator by which both statements accumulate into the array.

    None if either writes it in another way.
    """
    ops = {a.reduces for a in (*s, *t) if a.write}
    both = any(a.write for a in s) and any(a.write for a in t)
    return ops.pop() if both and len(ops) == 1 else None


def _kept(
    space: Space, array: str, first: str, then: str, op: str | None, pairs: list[tuple[Access, Access]]
) -> Iterator[Dependence]:
    distinct = {(a.index, b.index): (a, b) for a, b in pairs}
    if not distinct:
        return
    same = union(conflict(space, a, b) for a, b in distinct.values())
    if same.is_empty():  # as of most pairs of a loop's copies, before their order is worked out
        return
    ordered = coalesce(same.intersect(space.before(first, then)))
    if not ordered.is_empty():
        yield Dependence(first, then, array, op, ordered, op is not None and all(a.exact and b.exact for a, b in pairs))


def conflict(space: Space, a: Access, b: Access) -> isl.Map:
    """Return { S[iteration] -> T[iteration] : both accesses are of one element }."""
    return space.touched(a).apply_range(space.touched(b).reverse())
