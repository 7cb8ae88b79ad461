"""Delinearization of arrays that are indexed by hand: ``A[i * n + j]`` is row i, column j where 0 <= j < n.

A product of two variables cannot be expressed in isl. If every subscript of an array is e1 * n + e0 with one size n,
and 0 <= e0 < n holds wherever the subscript is used, two of them are equal exactly when e1 and e0 are: the array is
treated as one of two dimensions (or more: ``(i * n + j) * m + k``). Otherwise the subscript may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import islpy as isl

from looptune.ir.nodes import Binary, Cast, Const, Expr, Unary, Var
from looptune.ir.simplify import is_lossless_index_cast
from looptune.poly.access import Access
from looptune.poly.affine import name

if TYPE_CHECKING:
    from looptune.poly.isl_objects import Space

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
    return None


def _sum(a: Polynomial | None, b: Polynomial | None) -> Polynomial | None:
    if a is None or b is None:
        return None
    return {m: a.get(m, 0) + b.get(m, 0) for m in (*a, *b) if a.get(m, 0) + b.get(m, 0)}


def _product(a: Polynomial | None, b: Polynomial | None) -> Polynomial | None:
    if a is None or b is None:
        return None
    total: dict[tuple[str, ...], int] = {}
    for (m, c), (n, d) in ((x, y) for x in a.items() for y in b.items()):
        both = tuple(sorted(m + n))
        total[both] = total.get(both, 0) + c * d
    return {m: c for m, c in total.items() if c}


@dataclass(frozen=True, slots=True)
class _Subscript:
    """What is left to split of one subscript, and the columns split off so far, innermost last."""

    access: Access
    rest: Polynomial
    columns: tuple[str, ...] = ()


def delinearize(space: Space, accesses: Mapping[str, tuple[Access, ...]]) -> dict[str, tuple[Access, ...]]:
    """Return the accesses, in which subscripts of flat arrays become row and column where that is exact."""
    flat: dict[str, list[Access]] = {}
    for access in (a for mine in accesses.values() for a in mine if len(a.subscripts) == 1):
        flat.setdefault(access.array, []).append(access)
    found: dict[int, Access] = {}
    for mine in flat.values():
        if any(a.index == (None,) for a in mine):
            found |= {id(a): b for a, b in _rows_of(space, mine)}
    return {s: tuple(found.get(id(a), a) for a in mine) for s, mine in accesses.items()}


def _rows_of(space: Space, mine: list[Access]) -> list[tuple[Access, Access]]:
    todo = []
    for a in mine:
        rest = polynomial(a.subscripts[0])
        scope = {*space.nest.parameters, *space.nest.statements[a.statement].dims}
        if rest is None or any(v not in scope for m in rest for v in m):
            return []
        todo.append(_Subscript(a, rest))
    done = _split(space, todo)
    return [] if done is None else [(s.access, _as_rows(space, s)) for s in done]


def _as_rows(space: Space, s: _Subscript) -> Access:
    statement = space.nest.statements[s.access.statement]
    return replace(
        s.access, index=(_text(s.rest), *s.columns), must=statement.exact, unknown=statement.unknown
    )  # fmt: skip


def _split(space: Space, todo: list[_Subscript]) -> list[_Subscript] | None:
    """Split columns off until what is left of every subscript is affine."""
    products = [m for s in todo for m in s.rest if len(m) > 1]
    if not products:
        return todo
    for size in space.nest.parameters:
        if all(size in m for m in products):
            split = [_column(space, s, size) for s in todo]
            done = [s for s in split if s is not None]
            whole = _split(space, done) if len(done) == len(todo) else None
            if whole is not None:
                return whole
    return None


def _column(space: Space, s: _Subscript, size: str) -> _Subscript | None:
    """``rest`` as row * size + column with 0 <= column < size; a bare ``size`` counts to either side."""
    column = {m: c for m, c in s.rest.items() if size not in m}
    row = {_without(m, size): c for m, c in s.rest.items() if size in m}
    alone = row.get((), 0)
    for kept in (0, 1, -1):
        low = _sum(column, {(size,): kept}) if kept else column
        high = _sum(row, {(): -kept}) if kept else row
        assert low is not None
        assert high is not None
        if (kept == 0 or alone) and _within(space, s.access, low, size):
            return _Subscript(s.access, high, (_text(low), *s.columns))
    return None


def _within(space: Space, access: Access, column: Polynomial, size: str) -> bool:
    if any(len(m) > 1 for m in column):
        return False
    at = space.instance(space.nest.statements[access.statement])
    inside = isl.Set(f"{space.prefix}{{ {at} : 0 <= {_text(column)} < {size} }}")
    return space.domain(access.statement).is_subset(inside)


def _without(product: tuple[str, ...], size: str) -> tuple[str, ...]:
    k = product.index(size)
    return product[:k] + product[k + 1 :]


def _text(p: Polynomial) -> str:
    return f"({' + '.join('*'.join((str(c), *m)) for m, c in p.items()) or '0'})"
