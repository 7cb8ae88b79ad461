"""The elements that statements access in one iteration, and whether two statements may access the same element."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import islpy as isl

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Expr, Load, Loop, Var
from looptune.poly.affine import condition_to_isl, name, to_isl
from looptune.poly.isl_limits import QUESTION, IslLimitExceeded, isl_operation_limit


@dataclass(frozen=True, slots=True)
class ElementAccess:
    """A local or an element that a statement names, where the conditions ``conditions`` hold."""

    at: Load | Var
    writes: bool
    conditions: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ElementSets:
    """The elements that one iteration touches, and those of them that it changes."""

    touched: isl.UnionSet
    changed: isl.UnionSet

    def may_alias(self, other: ElementSets) -> bool:
        """Tell whether the two may denote one element. True also if isl exceeds its limit."""
        try:
            with isl_operation_limit(QUESTION):
                pairs = (self.changed, other.touched), (self.touched, other.changed)
                return not all(a.is_disjoint(b) for a, b in pairs)
        except IslLimitExceeded:
            return True


class Elements:
    """The elements that statements in one iteration of a chain of loops access.

    ``moving``: names whose value may change within an iteration.
    """

    def __init__(self, chain: Sequence[Loop], given: Expr | None, moving: Collection[str]) -> None:
        self._moving = moving
        bounds = [(name(f.var), to_isl(f.lo), to_isl(f.hi)) for f in chain]
        self._holds = [f"{lo} <= {var}" for var, lo, _ in bounds if lo is not None]
        self._holds += [f"{var} < {hi}" for var, _, hi in bounds if hi is not None]
        self._holds += self._asked(() if given is None else (given,))
        self._named = {f.var for f in chain} | names_in((tuple((f.lo, f.hi) for f in chain), given))

    def of(self, touches: Sequence[ElementAccess]) -> ElementSets | None:
        """Return the elements of some accesses, or None if isl exceeds its limit: they may be any elements."""
        found: dict[tuple[Load, tuple[Expr, ...]], bool] = {}
        for t in touches:
            if isinstance(t.at, Load):
                found[t.at, t.conditions] = found.get((t.at, t.conditions), False) or t.writes
        try:
            with isl_operation_limit(QUESTION):
                return ElementSets(self._set(found), self._set([key for key, writes in found.items() if writes]))
        except IslLimitExceeded:
            return None

    def _set(self, elements: Collection[tuple[Load, tuple[Expr, ...]]]) -> isl.UnionSet:
        arrays = {name(at.array) for at, _ in elements}
        named = self._named | names_in(tuple((at.index, given) for at, given in elements))
        names = sorted({name(n) for n in named} - arrays)
        some = "; ".join(
            self._element(at, given, "e" * (1 + max(map(len, names), default=0))) for at, given in elements
        )
        return isl.UnionSet(f"[{', '.join(names)}] -> {{ {some} }}")

    def _element(self, at: Load, given: Sequence[Expr], free: str) -> str:
        """``free``: what no name begins with."""
        places = [f"{free}{d}" for d in range(len(at.index))]
        index = [None if names_in(e) & set(self._moving) else to_isl(e) for e in at.index]
        where = [f"{p} = {e}" for p, e in zip(places, index, strict=True) if e is not None]
        asked = " and ".join([*where, *self._holds, *self._asked(given)]) or "true"
        return f"{name(at.array)}[{', '.join(places)}] : {asked}"

    def _asked(self, given: Sequence[Expr]) -> list[str]:
        """Conditions that hold in the whole iteration if they do at any time in it."""
        return [f"({condition_to_isl(e)[0]})" for e in given if not names_in(e) & set(self._moving)]
