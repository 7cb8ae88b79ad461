"""Ownership of array elements by threads: each element has one owner, and others read only what owners have stored.

{ [block, thread, number] -> [place] }      one place for each, and every place of the array
{ read element : conditions }  a part of  { stored element : conditions }      in every iteration of the loop
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Expr
from looptune.poly.affine import condition_to_isl, name, to_isl


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements with the subscripts ``index`` for all places that satisfy the conditions."""

    index: tuple[Expr, ...]
    conditions: tuple[Expr, ...]

    def as_set(self, places: Sequence[str], parameters: Sequence[str]) -> isl.Set | None:
        """Return { [element] }, where ``places`` are the names of the place; None if it is not affine."""
        conditions = [condition_to_isl(c) for c in self.conditions]
        subscripts = [to_isl(e) for e in self.index]
        if not all(exact for _, exact in conditions) or None in subscripts:
            return None
        given = f"[{', '.join(parameters)}] -> "
        where = " and ".join(f"({text})" for text, _ in conditions) or "true"
        inside = isl.Set(f"{given}{{ [{', '.join(places)}] : {where} }}")
        return inside.apply(isl.Map(f"{given}{{ [{', '.join(places)}] -> [{', '.join(map(str, subscripts))}] }}"))


def all_stored(reads: Iterable[Elements], stored: Iterable[Elements], places: Sequence[str]) -> bool | None:
    """Return whether each element that is read is stored; None if the elements are not affine.

    ``places``: the names of the place; all other names are parameters.
    """
    reads, stored = tuple(reads), tuple(stored)
    used = {n for e in (*reads, *stored) for n in names_in((e.index, e.conditions))}
    parameters = sorted(map(name, used - set(places)))
    wanted, there = ([e.as_set(places, parameters) for e in several] for several in (reads, stored))
    sets = [s for s in (*wanted, *there) if s is not None]
    if len(sets) < len(wanted) + len(there):
        return None
    if not wanted:
        return True
    have = reduce(isl.Set.union, sets[len(wanted) :], isl.Set.empty(sets[0].get_space()))
    return bool(reduce(isl.Set.union, sets[: len(wanted)]).is_subset(have))


def has_one_owner(extent: int, counts: tuple[int, int, int], strides: tuple[int, int, int]) -> bool:
    """Return whether each of ``extent`` places along a dimension belongs to one element of one thread.

    ``counts`` of blocks, threads of a block and elements of a thread; ``strides``: how far they are apart.
    """
    place = " + ".join(f"{name}*{n}" for name, n in zip("bte", strides, strict=True))
    bounds = " and ".join(f"0 <= {name} < {n}" for name, n in zip("bte", counts, strict=True))
    owned = isl.Map(f"{{ [b, t, e] -> [{place}] : {bounds} }}")
    return bool(owned.is_injective()) and bool(isl.Set(f"{{ [p] : 0 <= p < {extent} }}").is_subset(owned.range()))
