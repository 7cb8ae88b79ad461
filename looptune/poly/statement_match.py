"""Check that a copy of a statement computes, or evaluates, what its original does in the iteration it stands for.

    S1: B[i] = t + A[n - 1 - i]       at i = 2*k + 1       S1_4: B[2*k + 1] = u + A[n - 2 - 2*k]

Operations and array elements are the same, integers are equal, and locals may have other names: here u stands for t.
Whether u has the value of t follows from the flows of both. An array of the copy may have further leading dimensions,
which hold copies of the local: u[k][j] stands for t[j].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import islpy as isl

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Binary, Call, Cast, Expr, Load, Local, Loop, Select, Unary, Var
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
                called, rank = self._same_storage(array, array2), len(index2) - len(index)
                if called is None or not self._are_affine(index2[: max(rank, 0)]):
                    return None
                inside = self._each(index, index2[max(rank, 0) :])
                return None if inside is None else called | inside
            case Var(name, dtype), Load(array2, index2, dtype2):
                stored = _local(self.before, name) and _local(self.after, array2) and self._are_affine(index2)
                return frozenset({(name, array2)}) if stored and dtype == dtype2 else None
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
        """Local arrays may have other names, but not another size, except in further leading dimensions."""
        locals_ = [{v.name: v for v in m.codelet.locals if v.shape} for m in (self.before, self.after)]
        one, other = locals_[0].get(array), locals_[1].get(array2)
        if one is not None and other is not None and _has_extents(other, one):
            return frozenset({(array, array2)})
        return frozenset() if array == array2 else None

    def _are_affine(self, index: Sequence[Expr]) -> bool:
        return all(self.after.space.nest.affine(e, self.copy.dims) is not None for e in index)

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


def _has_extents(copies: Local, local: Local) -> bool:
    """Tell whether an array is one of copies of the local, or has the same shape."""
    own = copies.shape[len(copies.shape) - len(local.shape) :]
    return copies.dtype == local.dtype and own == local.shape


def copies_element(model: Scop, move: Statement) -> bool:
    """Tell whether a statement gives a local the value of the same element of another one, whatever the data are.

    Either may have further leading dimensions, which hold copies of the other.
    """
    known = {v.name: v for v in model.codelet.locals}
    ends = [_element(e) for e in (move.assign.target, move.assign.value)]
    if move.data_conditions or any(name not in known for name, _ in ends):
        return False
    (into, index), (source, index2) = sorted(ends, key=lambda end: len(end[1]))
    rank = len(index2) - len(index)
    texts = [[model.space.nest.affine(e, move.dims) for e in mine] for mine in (index, index2)]
    if None in (*texts[0], *texts[1]) or not _has_extents(known[source], known[into]):
        return False
    differ = " or ".join(f"{a} != {b}" for a, b in zip(texts[0], texts[1][rank:], strict=True)) or "false"
    apart = isl.Set(f"{model.space.prefix}{{ {model.space.instance(move)} : {differ} }}")
    return bool(apart.intersect(model.space.domain(move.name)).is_empty())


def _element(e: Expr) -> tuple[str, tuple[Expr, ...]]:
    """Return the name and the subscripts of a variable; of anything else no name."""
    match e:
        case Load(array, index):
            return array, index
        case Var(name):
            return name, ()
    return "", ()


def _local(model: Scop, name: str) -> bool:
    return any(v.name == name for v in model.codelet.locals)
