"""Recognise dependences that an order preserves for a reason its text shows, so that isl need not be asked.

    S0[i, j] -> S1[i, j, k]      where i and j are the same on both sides
    S0: (i, 0, j, 0, 0)          equal entries up to one where two constants differ, and there 0 < 1
    S1: (i, 0, j, 1, k)

Most dependences are of this kind, and asking isl costs a hundred times as much.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import TYPE_CHECKING

import islpy as isl

if TYPE_CHECKING:
    from looptune.poly.dependence import Dependence
    from looptune.poly.isl_objects import SchedulePiece, Space


def preserved_syntactically(
    space: Space, d: Dependence, first: tuple[SchedulePiece, ...], then: tuple[SchedulePiece, ...]
) -> bool:
    """Return whether the text of the times ``first`` and ``then`` shows that no pair of the dependence is reversed.

    False where that is not clear: isl then decides.
    """
    same = is_constant_across(space, d)

    def apart(p: SchedulePiece, q: SchedulePiece) -> bool:
        """They hold in no pair: the pieces of a statement are disjoint, and the one asks for another of the other's."""
        return _other(p, q, whens_then, same) or _other(q, p, whens_first, same)

    whens_first, whens_then = ({p.when for p in pieces} for pieces in (first, then))
    return all(_earlier(p, q, same) or apart(p, q) for p in first for q in then)


def is_constant_across(space: Space, d: Dependence) -> Callable[[str], bool]:
    """Return a function that tells whether a text has one value at both ends of every pair of the dependence."""
    changing = unequal_dims(space, d)
    return lambda text: not _words(text) & changing


def simultaneous(
    space: Space, d: Dependence, first: tuple[SchedulePiece, ...], then: tuple[SchedulePiece, ...]
) -> bool:
    """Tell whether the ends of every pair run at the same time.

    Their times have the same text, in names that are equal at both.
    """
    changing = unequal_dims(space, d)
    same = all(not (_words(" ".join(p.time)) | _words(p.when)) & changing for p in first)
    return same and {*first} == {*then}


def _other(p: SchedulePiece, q: SchedulePiece, whens: Collection[str], same: Callable[[str], bool]) -> bool:
    """``p`` implies one of the conditions ``whens`` that is not the one of ``q``."""
    return same(q.when) and any(c in whens and c != q.when and same(c) for c in _conjuncts(p.when))


def unequal_dims(space: Space, d: Dependence) -> frozenset[str]:
    """Return the loop variables that may differ between the two ends of the dependence."""
    return space.memoized(("differing", d), lambda: _differing(space, d))


def _differing(space: Space, d: Dependence) -> frozenset[str]:
    s, t = (space.nest.statements[n] for n in (d.source, d.sink))
    found = {*s.dims, *t.dims}
    for var in {*s.dims} & {*t.dims}:
        k, m = s.dims.index(var), t.dims.index(var)
        equal = isl.Map.universe(d.map.get_space()).equate(isl.dim_type.in_, k, isl.dim_type.out, m)
        if d.map.is_subset(equal):
            found.discard(var)
    return frozenset(found)


def _earlier(p: SchedulePiece, q: SchedulePiece, same: Callable[[str], bool]) -> bool:
    """Tell whether the first entry in which the texts differ is a smaller constant.

    All entries before it must be equal in value.
    """
    for a, b in zip(p.time, q.time, strict=False):
        if a != b:
            return a.isdecimal() and b.isdecimal() and int(a) < int(b)
        if not same(a):
            return False
    return len(p.time) == len(q.time)


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_]\w*", text))


@lru_cache(maxsize=4096)
def _conjuncts(when: str) -> tuple[str, ...]:
    """Return the condition, and what it is made of where it is ``(a) and (b)``."""
    depth = 0
    for k, ch in enumerate(when):
        depth += (ch == "(") - (ch == ")")
        if depth == 0:
            left, right = when[: k + 1], when[k + 1 :]
            if left.startswith("(") and right.startswith(" and (") and right.endswith(")"):
                return (when, *_conjuncts(left[1:-1]), *_conjuncts(right[6:-1]))
            break
    return (when,) if when else ()
