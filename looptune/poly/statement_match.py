"""Check that a copy of a statement computes, or evaluates, what its original does in the iteration it stands for.

    S1: B[i] = t + A[n - 1 - i]       at i = 2*k + 1       S1_4: B[2*k + 1] = u + A[n - 2 - 2*k]

Operations and array elements are the same, integers are equal, and locals may have other names: here u stands for t.
Whether u has the value of t follows from the flows of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import islpy as isl

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Binary, Call, Cast, Expr, Load, Loop, Select, Unary, Var
from looptune.ir.rewrite import substitute, walk
from looptune.ir.simplify import is_integer
from looptune.poly.data_conditions import conjuncts
from looptune.poly.domain import Statement
from looptune.poly.scop import Scop

Names = frozenset[tuple[str, str]]
"""What the original calls it, what the copy does: all that a codelet stores and that is read by name."""


@dataclass(frozen=True, eq=False)
class StatementMatcher:
    """Comparison of statement ``original`` of the model ``before`` with statement ``copy`` of the model ``after``."""

    before: Scop
    after: Scop
    original: Statement
    copy: Statement

    @cached_property
    def env(self) -> Mapping[str, Expr]:
        """Return the original's loop variables in terms of the copy's."""
        at = zip(self.original.loops, self.copy.assign.instance, strict=True)
        return {f.var: e for f, e in at if isinstance(f, Loop)}

    @cached_property
    def known(self) -> Mapping[str, Expr]:
        """Return the values of the original's affine locals in terms of the copy's loop variables."""
        return {v: substitute(e, self.env) for v, e in self.before.space.nest.known.items()}

    def names(self, theirs: Expr, ours: Expr) -> Names | None:
        """Return the mapping of names in an expression of the original to those in one of the copy.

        None if the expressions differ.
        """
        return self.same(substitute(theirs, self.env), ours)

    def matched_conditions(self) -> Iterator[tuple[int, Expr, bool]]:
        """Yield the original's conditions on data in terms of the copy's loops, with number and required value.

        Conditions that all iterations of the copy satisfy for any data are left out.
        """
        space, c = self.after.space, self.copy
        for k, a in enumerate(self.original.data_conditions):
            for part, wanted in conjuncts(substitute(a.cond, self.env), a.value):
                held, exact = space.nest.condition(part, wanted, c.dims)
                so = isl.Set(f"{space.prefix}{{ {space.instance(c)} : {held} }}")
                if not exact or not space.domain(c.name).is_subset(so):
                    yield k, part, wanted

    def same(self, a: Expr, b: Expr) -> Names | None:
        """Return the mapping of names if ``a`` and ``b``, both in terms of the copy's loops, are equal, else None."""
        if a == b:
            return self._called(names_in(b))
        if self._equal_integers(a, b):
            return frozenset()
        match a, b:
            case Load(array, index, _), Load(array2, index2, _):
                called = self._same_storage(array, array2)
                inside = None if called is None else self._each(index, index2)
                return None if called is None or inside is None else called | inside
            case Var(name, dtype), Var(name2, dtype2):
                stored = _local(self.before, name) and _local(self.after, name2)
                return frozenset({(name, name2)}) if stored and dtype == dtype2 else None
            case Binary(op), Binary(op2) if op == op2:
                return self._each((a.lhs, a.rhs), (b.lhs, b.rhs))
            case (Unary(op, x), Unary(op2, y)) | (Cast(op, x), Cast(op2, y)):
                return self.same(x, y) if op == op2 else None
            case Call(fn, args, dtype), Call(fn2, args2, dtype2):
                return self._each(args, args2) if (fn, dtype) == (fn2, dtype2) else None
            case Select(), Select():
                return self._each((a.cond, a.then, a.other), (b.cond, b.then, b.other))
        return None

    def _each(self, a: Sequence[Expr], b: Sequence[Expr]) -> Names | None:
        found: Names = frozenset()
        for x, y in zip(a, b, strict=False):
            mine = self.same(x, y)
            if mine is None:
                return None
            found |= mine
        return found if len(a) == len(b) else None

    def _same_storage(self, array: str, array2: str) -> Names | None:
        """Local arrays may have other names, but not another size."""
        shapes = [{v.name: (v.dtype, v.shape) for v in m.codelet.locals if v.shape} for m in (self.before, self.after)]
        if array in shapes[0] and shapes[0][array] == shapes[1].get(array2):
            return frozenset({(array, array2)})
        return frozenset() if array == array2 else None

    def _called(self, names: set[str]) -> Names | None:
        """Names that both have: what the one stores, the other does."""
        if any(_local(self.before, v) != _local(self.after, v) for v in names):
            return None
        return frozenset((v, v) for v in names if v in self.before.internal_names)

    def _equal_integers(self, a: Expr, b: Expr) -> bool:
        if not (is_integer(a.dtype) and is_integer(b.dtype)):
            return False
        space, dims = self.after.space, self.copy.dims
        a = substitute(a, self.known)
        if any(_local(self.before, n.name) for n in walk(a) if isinstance(n, Var)):
            return False
        texts = [space.nest.affine(e, dims) for e in (a, b)]
        if None in texts:
            return False
        differ = isl.Set(f"{space.prefix}{{ {space.instance(self.copy)} : {texts[0]} != {texts[1]} }}")
        return bool(differ.intersect(space.domain(self.copy.name)).is_empty())


def _local(model: Scop, name: str) -> bool:
    return any(v.name == name for v in model.codelet.locals)
