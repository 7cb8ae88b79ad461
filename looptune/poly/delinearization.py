"""Delinearization of arrays that are indexed by hand: ``A[i * n + j]`` is row i, column j where 0 <= j < n.

A product of two variables cannot be expressed in isl. If every subscript of an array is e1 * n + e0 with one size n,
and 0 <= e0 < n holds wherever the subscript is used, two of them are equal exactly when e1 and e0 are: the array is
treated as one of two dimensions (or more: ``(i * n + j) * m + k``). Otherwise the subscript may be anything.

The size may be a sum, as in ``A[(i + 1) * (n + 2) + j + 1]``. Where e0 < n does not follow from the loops, but from a
relation of two sizes, that relation is assumed: ``A[i * lda + j]`` for ``k <= j < m`` assumes ``m <= lda`` and
``0 <= k``, and so is the least value of a stride: ``A[i * inc]`` assumes ``1 <= inc``. Nothing is assumed for arrays
that are only read. Of an array with several subscripts the first one is split.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

import islpy as isl

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Binary, Cast, Const, Expr, Loop, Unary, Var
from looptune.ir.simplify import is_lossless_index_cast
from looptune.poly import array_extent
from looptune.poly.access import Access
from looptune.poly.affine import name, to_isl
from looptune.poly.isl_limits import CODELET, Effort, IslLimitExceeded, isl_operation_limit
from looptune.poly.isl_objects import Space

_MOST_BASES = 3
"""Parts that are subtracted from all subscripts of an array, one after the other, to find one that helps."""

Polynomial = Mapping[tuple[str, ...], int]
"""Coefficients by product of variables, sorted: 2*i*n + 1 is {("i", "n"): 2, (): 1}."""


def polynomial(e: Expr) -> Polynomial | None:
    """Return the expression as a sum of products, or None if it is none.

    >>> polynomial(Binary("+", Binary("*", Var("i"), Var("n")), Const(1)))
    {('i', 'n'): 1, (): 1}
    """
    match e:
        case Const(int(value)):
            return {(): value}
        case Var(var):
            return {(name(var),): 1}
        case Cast(dtype, arg) if is_lossless_index_cast(dtype, arg.dtype):
            return polynomial(arg)
        case Unary("-", arg):
            return _product(polynomial(arg), {(): -1})
        case Binary("+" | "-" as op, lhs, rhs):
            return _sum(polynomial(lhs), _product(polynomial(rhs), {(): 1 if op == "+" else -1}))
        case Binary("*", lhs, rhs):
            return _product(polynomial(lhs), polynomial(rhs))
        case Binary("max" | "min" | "/" | "%"):
            text = to_isl(e)
            return None if text is None else {(text,): 1}
    return None


def _sum(a: Polynomial | None, b: Polynomial | None) -> Polynomial | None:
    if a is None or b is None:
        return None
    return {m: a.get(m, 0) + b.get(m, 0) for m in (*a, *b) if a.get(m, 0) + b.get(m, 0)}


def _less(a: Polynomial, b: Polynomial) -> Polynomial:
    total = {m: a.get(m, 0) - b.get(m, 0) for m in (*a, *b)}
    return {m: c for m, c in total.items() if c}


def _product(a: Polynomial | None, b: Polynomial | None) -> Polynomial | None:
    if a is None or b is None:
        return None
    total: dict[tuple[str, ...], int] = {}
    for (m, c), (n, d) in ((x, y) for x in a.items() for y in b.items()):
        both = tuple(sorted(m + n))
        total[both] = total.get(both, 0) + c * d
    return {m: c for m, c in total.items() if c}


@dataclass(frozen=True, slots=True)
class SizeRelation:
    """An assumption ``lower <= upper`` about the sizes with which a codelet is called."""

    lower: Polynomial
    upper: Polynomial

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"{array_extent.polynomial_text(self.lower)} <= {array_extent.polynomial_text(self.upper)}"

    @property
    def names(self) -> frozenset[str]:
        """Return the sizes in it."""
        return frozenset(name for p in (self.lower, self.upper) for product in p for name in product)

    def holds(self, sizes: Mapping[str, int]) -> bool:
        return array_extent.evaluate(self.lower, sizes) <= array_extent.evaluate(self.upper, sizes)


@dataclass(frozen=True, slots=True)
class _Subscript:
    """What is left to split of one subscript, and the columns split off so far, innermost last."""

    access: Access
    rest: Polynomial
    columns: tuple[str, ...] = ()


Assumed = tuple[SizeRelation, ...]


def delinearize(
    space: Space, accesses: Mapping[str, tuple[Access, ...]], *, reads: bool = False
) -> tuple[dict[str, tuple[Access, ...]], Assumed]:
    """Return the accesses, in which subscripts of flat arrays become row and column, and what that assumes of sizes.

    Nothing is assumed where the loops show that it is exact, and of arrays that are only read if ``reads`` is not set.
    """
    flat: dict[str, list[Access]] = {}
    for access in (a for mine in accesses.values() for a in mine if a.subscripts):
        flat.setdefault(access.array, []).append(access)
    found: dict[int, Access] = {}
    assumed: dict[SizeRelation, None] = {}
    effort = Effort()
    for mine in flat.values():
        rows: list[tuple[Access, Access]] = []
        if any(a.index[0] is None for a in mine):
            may_assume = reads or any(a.write for a in mine)
            rows, needs = _within_limits(space, mine, effort, may_assume=may_assume)
            assumed |= dict.fromkeys(needs)
        found |= {id(a): b for a, b in rows or [(a, _with_products(space, a)) for a in mine if None in a.index]}
    return {s: tuple(found.get(id(a), a) for a in mine) for s, mine in accesses.items()}, tuple(assumed)


def _within_limits(
    space: Space, mine: list[Access], effort: Effort, *, may_assume: bool
) -> tuple[list[tuple[Access, Access]], Assumed]:
    """Return ``_rows_of`` the accesses, nothing where isl needs too long for this array, or for all up to it."""
    if effort.spent >= CODELET:
        return [], ()
    try:
        with isl_operation_limit(CODELET // 2, effort):
            return _rows_of(space, mine, may_assume=may_assume)
    except IslLimitExceeded:
        return [], ()


def _with_products(space: Space, a: Access) -> Access:
    """Return the access with products of sizes as sizes, if it can be analysed so: ``A[n * m + i]``."""
    statement = space.nest.statements[a.statement]
    index = tuple(space.nest.affine(e, statement.dims) for e in a.subscripts)
    if None in index:
        return a
    return replace(a, index=index, must=statement.exact, unknown=statement.unknown)


def _rows_of(space: Space, mine: list[Access], *, may_assume: bool) -> tuple[list[tuple[Access, Access]], Assumed]:
    todo = []
    for a in mine:
        rest = polynomial(a.subscripts[0])
        if rest is None or None in a.index[1:] or not _in_scope(space, a):
            return [], ()
        todo.append(_Subscript(a, rest))
    for assume in (False, True) if may_assume else (False,):
        splitter = _Splitter(space, assume)
        done = splitter.split(todo)
        if done is not None:
            return [(s.access, _as_rows(space, s)) for s in done], tuple(splitter.assumed)
    return [], ()


def _in_scope(space: Space, a: Access) -> bool:
    scope = {*space.nest.parameters, *space.nest.statements[a.statement].dims}
    return all(name(v) in scope for v in names_in(a.subscripts[0]))


def _as_rows(space: Space, s: _Subscript) -> Access:
    statement = space.nest.statements[s.access.statement]
    index = (_text(s.rest), *s.columns, *s.access.index[1:])
    return replace(s.access, index=index, must=statement.exact, unknown=statement.unknown)


@dataclass(slots=True)
class _Splitter:
    """``assumed`` has the relations of sizes on which the columns rest."""

    space: Space
    may_assume: bool
    assumed: list[SizeRelation] = field(default_factory=list)

    def split(self, todo: list[_Subscript]) -> list[_Subscript] | None:
        """Split columns off until what is left of every subscript is affine."""
        if not any(len(m) > 1 for s in todo for m in s.rest):
            return todo
        for size in self.sizes(todo):
            for first in self.bases(todo, size):
                known = len(self.assumed)
                moved = [replace(s, rest=_less(s.rest, first)) for s in todo] if first else todo
                done = [s for s in (self.column(s, size) for s in moved) if s is not None]
                whole = self.split(done) if len(done) == len(todo) else None
                if whole is not None:
                    return whole
                del self.assumed[known:]
        return None

    def bases(self, todo: list[_Subscript], size: Polynomial) -> Iterator[Polynomial]:
        """Yield what may be subtracted from all subscripts: nothing, or the part of a column without loop variables."""
        yield {}
        found: list[Polynomial] = []
        for s in todo:
            parts = _divided(s.rest, size)
            dims = {*self.space.nest.statements[s.access.statement].dims}
            alone = (
                {} if parts is None else {m: c for m, c in parts[1].items() if not any(_mentions(f, dims) for f in m)}
            )
            if alone and alone not in found and len(found) < _MOST_BASES:
                found.append(alone)
        yield from found

    def sizes(self, todo: list[_Subscript]) -> Iterator[Polynomial]:
        """Yield what a row may be long: what loop variables are multiplied by, and sizes in all products."""
        found: list[Polynomial] = []
        for s in todo:
            dims = {*self.space.nest.statements[s.access.statement].dims}
            for dim in dims:
                times = {_without(m, dim): c for m, c in s.rest.items() if dim in m}
                if max(map(len, times), default=0) == 1 and times not in found and not dims & {*sum(times, ())}:
                    found.append(times)
        products = [m for s in todo for m in s.rest if len(m) > 1]
        alone: list[Polynomial] = [{(p,): 1} for p in self.space.nest.parameters if all(p in m for m in products)]
        yield from sorted(found, key=len)
        yield from (p for p in alone if p not in found)

    def column(self, s: _Subscript, size: Polynomial) -> _Subscript | None:
        """``rest`` as row * size + column with 0 <= column < size; a bare ``size`` counts to either side."""
        parts = _divided(s.rest, size)
        if parts is None:
            return None
        row, column = parts
        for kept in (0, 1, -1):
            low = _sum(column, {m: kept * c for m, c in size.items()}) if kept else column
            high = _sum(row, {(): -kept}) if kept else row
            assert low is not None
            assert high is not None
            if (kept == 0 or row.get((), 0)) and self.within(s, low, size):
                return _Subscript(s.access, high, (_text(low), *s.columns))
        return None

    def within(self, s: _Subscript, column: Polynomial, size: Polynomial) -> bool:
        if any(len(m) > 1 for m in column):
            return False
        outside = self.outside(s.access, column, size)
        if outside.is_empty():
            return True
        if not self.may_assume or not any(len(m) > 1 for m in s.rest):
            return False
        suffices: list[SizeRelation] = []
        for needed in self.needed(s.access, column, size), self.least(s.access, column):
            if needed is None:
                continue
            suffices.append(needed)
            outside = outside.intersect_params(self.where(needed))
            if outside.is_empty():
                self.assumed += suffices
                return True
        return False

    def outside(self, access: Access, column: Polynomial, size: Polynomial) -> isl.Set:
        at = self.space.instance(self.space.nest.statements[access.statement])
        inside = isl.Set(f"{self.space.prefix}{{ {at} : 0 <= {_text(column)} < {_text(size)} }}")
        domain = self.space.domain(access.statement).subtract(inside)
        for known in self.assumed:
            domain = domain.intersect_params(self.where(known))
        return domain

    def where(self, relation: SizeRelation) -> isl.Set:
        return isl.Set(f"{self.space.prefix}{{ : {_text(relation.lower)} <= {_text(relation.upper)} }}")

    def needed(self, access: Access, column: Polynomial, size: Polynomial) -> SizeRelation | None:
        """Return the relation of sizes by which the column is below the size.

        None where that is neither a relation of two sizes nor a least value of one.
        """
        loops = tuple(f for f in self.space.nest.statements[access.statement].loops if isinstance(f, Loop))
        sizes = frozenset(p for p in self.space.nest.parameters if not p.endswith("_"))
        names = sizes | {f.var for f in loops if name(f.var) == f.var}
        if not all(f in sizes for m in size for f in m) or not all(f in names for m in column for f in m):
            return None
        top = array_extent.bound(_expression(column), loops, sizes)
        if top is None or any(len(m) > 1 or m[0].startswith("(") for m in top if m):
            return None
        return SizeRelation(top, size) if not any(top) or len({m for m in (*top, *size) if m}) > 1 else None

    def least(self, access: Access, column: Polynomial) -> SizeRelation | None:
        """Return the relation of sizes by which the column is not negative.

        None where that follows from the loops, or the column is no loop's: a loop runs over a part of each row.
        """
        loops = tuple(f for f in self.space.nest.statements[access.statement].loops if isinstance(f, Loop))
        sizes = frozenset(p for p in self.space.nest.parameters if not p.endswith("_"))
        counted, used = {f.var for f in loops if name(f.var) == f.var}, {f for m in column for f in m}
        if not used <= sizes | counted or not used & counted:
            return None
        top = array_extent.bound(_expression({m: -c for m, c in column.items()}), loops, sizes)
        least = None if top is None else _less({(): 1}, top)
        if least is None or not any(least) or any(len(m) > 1 or m[0].startswith("(") for m in least if m):
            return None
        if any(c < 0 for m, c in least.items() if m):
            return None  # sizes are not negative: it would say that one is 0
        return SizeRelation({}, least)


def _divided(p: Polynomial, size: Polynomial) -> tuple[Polynomial, Polynomial] | None:
    """Return the quotient and the rest of a division by a sum ``c * n + …``, in which n occurs once.

    Each n in ``p`` is (size - …) / c.
    """
    lead = next((m for m in size if len(m) == 1), None)
    if lead is None:
        return None
    (var,), c = lead, size[lead]
    others = {m: -k for m, k in size.items() if m != lead}
    quotient: Polynomial = {}
    rest = p
    while any(var in m for m in rest):
        most = max(m.count(var) for m in rest)
        high = {_without(m, var): k for m, k in rest.items() if m.count(var) == most}
        if any(k % c for k in high.values()):
            return None
        part = {m: k // c for m, k in high.items()}
        added, moved = _sum(quotient, part), _product(part, others)
        rest = {m: k for m, k in rest.items() if m.count(var) != most}
        left = _sum(rest, moved)
        assert added is not None
        assert left is not None
        quotient, rest = added, left
    return quotient, rest


def _expression(p: Polynomial) -> Expr:
    total: Expr = Const(0)
    for factors, c in p.items():
        term: Expr = Const(c)
        for f in factors:
            term = Binary("*", term, Var(f))
        total = Binary("+", total, term)
    return total


def _without(product: tuple[str, ...], size: str) -> tuple[str, ...]:
    k = product.index(size)
    return product[:k] + product[k + 1 :]


def _mentions(factor: str, dims: Collection[str]) -> bool:
    """Tell whether a factor is a loop variable, or a minimum or a quotient that has one in it."""
    return any(word in dims for word in re.findall(r"[A-Za-z_]\w*", factor))


def _text(p: Polynomial) -> str:
    return f"({' + '.join('*'.join((str(c), *m)) for m, c in p.items()) or '0'})"
