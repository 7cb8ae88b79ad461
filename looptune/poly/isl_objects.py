"""The isl objects of a nest: domains, accesses, times. It takes isl text and returns isl sets and maps.

Every object has all of the nest's parameters, and statement iterations are tuples named by their statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import Any, TypeVar

import islpy as isl

from looptune.poly.access import Access
from looptune.poly.coalesce import coalesce
from looptune.poly.domain import IterationDomains, Statement

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class SchedulePiece:
    """Some instances of a statement, and when they run.

    Both are isl text over the statement's loop variables and the codelet's integer parameters. A ``when`` of "" stands
    for all instances.
    """

    time: tuple[str, ...]
    when: str = ""


Order = Mapping[str, tuple[SchedulePiece, ...]]
"""Statement name -> its pieces. Times compare lexicographically; equal times are in no order of their own."""


@lru_cache(maxsize=4096)
def parsed(text: str) -> isl.Set:
    """Return the set of a text; the schedules of a codelet have most of their conditions in common.

    isl takes milliseconds to read the bounds of blocks and remainders.
    """
    return isl.Set(text)


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """The isl objects of a nest; ``_made`` caches each by the question that made it, and nothing else changes."""

    nest: IterationDomains
    accesses: Mapping[str, tuple[Access, ...]]
    _made: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def prefix(self) -> str:
        return f"[{', '.join(self.nest.parameters)}] -> "

    def instance(self, statement: Statement) -> str:
        return f"{statement.name}[{', '.join(statement.dims)}]"

    def domain(self, name: str) -> isl.Set:
        """Return { S[iteration] }: where S runs, or may run."""
        return self.memoized(("domain", name), lambda: self._domain(self.nest.statements[name]))

    def _domain(self, s: Statement) -> isl.Set:
        where = self._where(s.dims, conjuncts(s.domain)).set_tuple_name(s.name)
        return where.intersect_params(self.context())

    def _where(self, dims: tuple[str, ...], conditions: tuple[str, ...]) -> isl.Set:
        """Return { [dims] : all conditions hold }, of that where all but the last do, which many statements share."""

        def holds(condition: str) -> isl.Set:
            return parsed(f"{self.prefix}{{ [{', '.join(dims)}] : {condition} }}")

        def where() -> isl.Set:
            last = self.memoized(("holds", dims, conditions[-1]), lambda: holds(conditions[-1]))
            return self._where(dims, conditions[:-1]).intersect(last) if conditions[1:] else last

        return self.memoized(("conditions", dims, conditions), where) if conditions else holds("true")

    def context(self) -> isl.Set:
        """Return { : sizes that the codelet can be called with }."""
        condition = " and ".join(self.nest.context) or "true"
        return self.memoized(("context",), lambda: parsed(f"{self.prefix}{{ : {condition} }}"))

    def touched(self, access: Access) -> isl.Map:
        """Return { S[iteration] -> [element] }."""
        return self.memoized(("touched", access.statement, access.index), lambda: self._touched(access))

    def _touched(self, access: Access) -> isl.Map:
        s = self.nest.statements[access.statement]
        index = ", ".join(f"any{k}'" if e is None else e for k, e in enumerate(access.index))  # no C name has a '
        everywhere = isl.Map(f"{self.prefix}{{ {self.instance(s)} -> [{index}] }}")
        return coalesce(everywhere.intersect_domain(self.domain(s.name)))

    def time(self, name: str, pieces: tuple[SchedulePiece, ...], length: int) -> isl.Map:
        """Return { S[iteration] -> [time] }, times padded with 0 to ``length``."""
        return self.memoized(("time", name, pieces, length), lambda: self._time(name, pieces, length))

    def _time(self, name: str, pieces: tuple[SchedulePiece, ...], length: int) -> isl.Map:
        at = self.instance(self.nest.statements[name])
        parts = (
            f"{at} -> [{', '.join(p.time + ('0',) * (length - len(p.time)))}] : {p.when or 'true'}" for p in pieces
        )
        return isl.Map(f"{self.prefix}{{ {'; '.join(parts)} }}")

    def before(self, first: str, then: str) -> isl.Map:
        """Return { S[iteration] -> T[iteration] : S's runs before T's in the original nest }."""
        return self.memoized(("before", first, then), lambda: self._before(first, then))

    def _before(self, first: str, then: str) -> isl.Map:
        s, t = self.nest.statements[first], self.nest.statements[then]
        return self.time(first, (SchedulePiece(s.time),), len(s.time)).lex_lt_map(
            self.time(then, (SchedulePiece(t.time),), len(t.time))
        )

    def later(
        self, first: str, then: str, at_first: tuple[SchedulePiece, ...], at_then: tuple[SchedulePiece, ...]
    ) -> isl.Map:
        """Return { S[iteration] -> T[iteration] : S's time is greater than T's }."""
        length = max(len(p.time) for p in (*at_first, *at_then))

        def compare() -> isl.Map:
            return self.time(first, at_first, length).lex_gt_map(self.time(then, at_then, length))

        return self.memoized(("later", first, then, at_first, at_then), compare)

    def never(self, first: str, then: str) -> isl.Map:
        """Return { S[iteration] -> T[iteration] : false }."""
        return self.memoized(("never", first, then), lambda: isl.Map.empty(self.before(first, then).get_space()))

    def memoized(self, question: Any, answer: Callable[[], _Answer]) -> _Answer:
        if question not in self._made:
            self._made[question] = answer()
        found: _Answer = self._made[question]
        return found


def conjuncts(text: str) -> tuple[str, ...]:
    """Return the conditions of which a text is made, where it is ``(a) and (b) and ...``.

    >>> conjuncts("(0 <= i and i < n) and (j < i)"), conjuncts("(i < n) or (j < n)"), conjuncts("")
    (('0 <= i and i < n', 'j < i'), ('(i < n) or (j < n)',), ())
    """
    found, rest = [], text
    while rest.startswith("("):
        end = _closing(rest)
        found.append(rest[1:end])
        if end + 1 == len(rest):
            return tuple(found)
        if not rest.startswith(" and (", end + 1):
            break
        rest = rest[end + len(" and (") :]
    return (text,) if text else ()


def _closing(text: str) -> int:
    """Return the place of the bracket that closes the one with which a text begins."""
    depth = 0
    for k, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return k
    raise AssertionError(f"{text} has a bracket that is not closed")


def union(maps: Iterable[isl.Map]) -> isl.Map:
    """Return the union of at least one map; all are of the same space."""
    return coalesce(reduce(isl.Map.union, maps))
