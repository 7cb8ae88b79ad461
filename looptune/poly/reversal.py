"""The pairs of a dependence that an order reverses, entry by entry of the times.

    S0[t, i, j] -> S0[t', i', j'] at (4*t + 2*i + j, t, i)      the first entry is greater at the sink of every pair:
                                                                  none is reversed, whatever the entries after it are

Pairs are split by the pieces of their statements only where these have different texts in an entry, and where pairs
are left at all. To compare whole times takes a piece for every two pieces of the statements and every entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Literal

import islpy as isl

from looptune.poly.coalesce import coalesce
from looptune.poly.isl_objects import SchedulePiece, Space
from looptune.poly.syntactic_check import is_constant_across

if TYPE_CHECKING:
    from looptune.poly.dependence import Dependence

Pieces = tuple[SchedulePiece, ...]


def reversed_pairs(space: Space, d: Dependence, first: Pieces, then: Pieces) -> isl.Map | None:
    """Return { s -> t : the dependence is there, and s at its time in ``first`` runs after t in ``then`` }, or None."""
    comparison = _Comparison(space, d.source, d.sink, is_constant_across(space, d))
    found = list(comparison.reversed(d.map, first, then, 0))
    return reduce(isl.Map.union, found) if found else None


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """The times of two statements; ``same`` tells whether a text has one value at both ends of every pair."""

    space: Space
    source: str
    sink: str
    same: Callable[[str], bool]

    def reversed(self, pairs: isl.Map, first: Pieces, then: Pieces, entry: int) -> Iterator[isl.Map]:
        """Yield the ``pairs`` that are reversed, whose times are equal before ``entry``."""
        length = max(len(p.time) for p in (*first, *then))
        for k in range(entry, length):
            ours, theirs = _by_text(first, k), _by_text(then, k)
            if len(ours) > 1 or len(theirs) > 1:
                yield from self._split(pairs, ours, theirs, k)
                return
            (a,), (b,) = ours, theirs
            match self._known(a, b):
                case "less":
                    return
                case "greater":
                    yield from self._within(pairs, first, then)
                    return
                case "unknown":
                    yield from self._within(pairs.intersect(self._greater(a, b)), first, then)
                    pairs = pairs.intersect(self._equal(a, b))
                    if pairs.is_empty():
                        return

    def _split(
        self, pairs: isl.Map, ours: dict[str, Pieces], theirs: dict[str, Pieces], entry: int
    ) -> Iterator[isl.Map]:
        for a, mine in ours.items():
            begun = pairs.intersect_domain(self._where(self.source, mine))
            if begun.is_empty():
                continue
            for b, others in theirs.items():
                if self._known(a, b) == "less":
                    continue
                part = begun.intersect_range(self._where(self.sink, others))
                if not part.is_empty():
                    yield from self.reversed(part, mine, others, entry)

    def _known(self, a: str, b: str) -> Literal["less", "equal", "greater", "unknown"]:
        """Compare two entries by their texts."""
        if a.isdecimal() and b.isdecimal():
            return "less" if int(a) < int(b) else "equal" if int(a) == int(b) else "greater"
        return "equal" if a == b and self.same(a) else "unknown"

    def _within(self, pairs: isl.Map, first: Pieces, then: Pieces) -> Iterator[isl.Map]:
        """Yield those of the pairs that run in one of the pieces."""
        if pairs.is_empty():
            return
        pairs = pairs.intersect_domain(self._where(self.source, first)).intersect_range(self._where(self.sink, then))
        if not pairs.is_empty():
            yield pairs

    def _where(self, statement: str, pieces: Pieces) -> isl.Set:
        """Return { S[iteration] : it runs in one of the pieces }."""
        whens = tuple(dict.fromkeys(SchedulePiece((), p.when) for p in pieces))

        def where() -> isl.Set:
            # Pieces of one entry are often all those under a condition, the others of which they divide.
            return coalesce(self.space.time(statement, whens, 0).domain())

        return self.space.memoized(("where", statement, whens), where)

    def _greater(self, a: str, b: str) -> isl.Map:
        """Return { s -> t : the entry ``a`` of s is greater than the entry ``b`` of t }."""
        one, other = self._entry(self.source, a), self._entry(self.sink, b)
        return self.space.memoized(("greater", self.source, self.sink, a, b), lambda: one.lex_gt_map(other))

    def _equal(self, a: str, b: str) -> isl.Map:
        """Return { s -> t : the entry ``a`` of s is the entry ``b`` of t }."""
        one, other = self._entry(self.source, a), self._entry(self.sink, b)
        return self.space.memoized(("equal", self.source, self.sink, a, b), lambda: one.apply_range(other.reverse()))

    def _entry(self, statement: str, text: str) -> isl.Map:
        """Return { S[iteration] -> [entry] } where the statement runs."""

        def entry() -> isl.Map:
            found = self.space.time(statement, (SchedulePiece((text,)),), 1)
            return found.intersect_domain(self.space.domain(statement))

        return self.space.memoized(("entry", statement, text), entry)


def _by_text(pieces: Pieces, entry: int) -> dict[str, Pieces]:
    """Return the pieces by the text of an entry of their times, 0 beyond the last."""
    found: dict[str, Pieces] = {}
    for p in pieces:
        text = p.time[entry] if entry < len(p.time) else "0"
        found[text] = (*found.get(text, ()), p)
    return found
