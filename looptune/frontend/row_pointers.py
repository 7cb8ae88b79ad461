"""Arrays of pointers to rows, ``float **a``: one array with the rows one after the other, as long as the loops need.

    void f(int n, int m, float **a)          float a[][m]
      a[i][j] for i < n, j < m        ==>

The text does not say how long the rows are: their extent is the least one that contains all accesses. Where that does
not follow from the parameters, it is a parameter ``a_row`` of its own. The rows are assumed not to overlap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from looptune.frontend.renaming import as_dtype
from looptune.ir.bounding_box import bounds
from looptune.ir.def_use import names_in, written_names
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import Array, Binary, Const, Expr, If, Load, Loop, Scalar, Select, Stmt, Var, While
from looptune.ir.rewrite import conjuncts, walk
from looptune.ir.simplify import add, is_integer, max_of, mul, sub

Param = Array | Scalar


def with_row_extents(params: Sequence[Param], body: Sequence[Stmt]) -> tuple[list[Param], frozenset[str]]:
    """Return the parameters with the extents of all rows, and the names of the new ones among them."""
    written = written_names(body)
    sizes = frozenset(p.name for p in params if isinstance(p, Scalar) and is_integer(p.dtype)) - written
    open_ = {p.name for p in params if isinstance(p, Array) and None in p.shape[1:]}
    if not open_:
        return list(params), frozenset()
    ends: dict[tuple[str, int], list[_End]] = {}
    for access in _accesses(body, (), (), written):
        if access.load.array in open_:
            for k in range(1, len(access.load.index)):
                ends.setdefault((access.load.array, k), []).append(_End(_end(access, k, sizes), access.around))
    taken = {p.name for p in params} | names_in(tuple(body))
    made: list[Param] = []
    more: list[Scalar] = []
    for p in params:
        if p.name not in open_ or not isinstance(p, Array):
            made.append(p)
            continue
        shape = list(p.shape)
        for k in (k for k in range(1, len(shape)) if shape[k] is None):
            found = _largest(ends.get((p.name, k), [_End(Const(1), ())]))
            if found is None:
                name = _fresh(f"{p.name}_row" if len(shape) == 2 else f"{p.name}_row{k}", taken)
                more.append(Scalar(name, "int32", span=p.span))
                taken.add(name)
                found = Var(name, "int32")
            shape[k] = found
        made.append(replace(p, shape=tuple(shape)))
    return [*made, *more], frozenset(p.name for p in more)


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


@dataclass(frozen=True, slots=True)
class _Access:
    """An access to an array, the loops around it, and the conditions under which it is made."""

    load: Load
    around: tuple[Loop, ...]
    conditions: tuple[Expr, ...]


def _accesses(
    body: Sequence[Stmt], around: tuple[Loop, ...], conditions: tuple[Expr, ...], written: Collection[str]
) -> Iterator[_Access]:
    """Yield the accesses; conditions on what the codelet writes are left out."""
    for stmt in body:
        match stmt:
            case Loop(_, lo, hi, inner):
                yield from _loads((lo, hi), around, conditions)
                yield from _accesses(inner, (*around, stmt), conditions, written)
            case While(cond, inner):
                yield from _loads(cond, around, conditions)
                yield from _accesses(inner, around, conditions, written)
            case If(cond, then, other):
                yield from _loads(cond, around, conditions)
                holds = tuple(c for c in conjuncts(cond) if names_in(c).isdisjoint(written))
                yield from _accesses(then, around, (*conditions, *holds), written)
                yield from _accesses(other, around, conditions, written)
            case _:
                yield from _loads((stmt.target, stmt.value), around, conditions)


def _loads(e: object, around: tuple[Loop, ...], conditions: tuple[Expr, ...]) -> Iterator[_Access]:
    return (_Access(n, around, conditions) for n in walk(e) if isinstance(n, Load))


def _end(access: _Access, dimension: int, sizes: frozenset[str]) -> Expr | None:
    """Return one more than the greatest value of an index, in terms of the sizes."""
    index = access.load.index[dimension]
    for cond in access.conditions:
        end = _below(index, cond)
        found = None if end is None else _greatest(end, access.around, sizes)
        if found is not None:
            return found
    return _greatest(add(index, Const(1, index.dtype)), access.around, sizes)


def _greatest(e: Expr, around: tuple[Loop, ...], sizes: frozenset[str]) -> Expr | None:
    """Return the greatest value of an expression over all iterations."""
    found = bounds(Loop("", Const(0, e.dtype), e, ()), around)
    if found is None:
        return None
    end = found[1]
    plain = not any(isinstance(n, Load | Select) for n in walk(end)) and is_integer(end.dtype)
    return _simplified(end) if plain and names_in(end) <= sizes else None


def _simplified(e: Expr) -> Expr:
    """Return a sum without what cancels."""
    terms, constant = affine_terms(e)
    if any(k < 0 for k in terms.values()) or not terms:
        return e
    dtype = "int32" if all(term.dtype == "int32" for term in terms) else e.dtype
    parts = [mul(Const(k, dtype), as_dtype(term, dtype)) for term, k in terms.items()]
    total = reduce(add, parts)
    return sub(total, Const(-constant, dtype)) if constant < 0 else add(total, Const(constant, dtype))


def _below(index: Expr, cond: Expr) -> Expr | None:
    """Return an end of the index that a comparison states: ``index < end``."""
    match cond:
        case Binary("<", lhs, rhs) | Binary(">", rhs, lhs):
            most = 0
        case Binary("<=", lhs, rhs) | Binary(">=", rhs, lhs):
            most = 1
        case _:
            return None
    terms, constant = affine_terms(Binary("-", index, lhs))
    return None if terms else add(rhs, Const(constant + most, rhs.dtype))


@dataclass(frozen=True, slots=True)
class _End:
    """An end of an index, None where it is not known, and the loops around the access."""

    value: Expr | None
    around: tuple[Loop, ...]


def _largest(ends: Sequence[_End]) -> Expr | None:
    """Return the largest of the ends, which is not negative; None where one is not known."""
    kept: dict[Expr, _End] = {}
    for end in ends:
        if end.value is None:
            return None
        if not _is_within(end, kept):
            kept = {e: of for e, of in kept.items() if not _is_within(of, {end.value: end})}
            kept[end.value] = end
    # what was within an end that is gone may not be within the one that it was within
    kept |= {end.value: end for end in ends if end.value is not None and not _is_within(end, kept)}
    dtype = "int32" if all(e.dtype == "int32" for e in kept) else "int64"
    found = reduce(max_of, (as_dtype(e, dtype) for e in kept))
    return found if _never_less(found, Const(0), ()) else max_of(found, Const(0, dtype))


def _is_within(end: _End, others: Mapping[Expr, _End]) -> bool:
    return end.value is not None and any(_never_less(other, end.value, end.around) for other in others)


def _never_less(a: Expr, b: Expr, around: Sequence[Loop]) -> bool:
    """Tell whether ``a >= b`` for all sizes that are not negative and with which the loops have an iteration."""
    least = Binary("-", a, b)
    more = (Binary("-", least, Binary("-", loop.hi, Binary("+", loop.lo, Const(1)))) for loop in around)
    return any(constant >= 0 and all(k >= 0 for k in terms.values()) and _are_sizes(terms, around)
               for terms, constant in map(affine_terms, (least, *more)))  # fmt: skip


def _are_sizes(terms: Mapping[Expr, int], around: Sequence[Loop]) -> bool:
    variables = {loop.var for loop in around}
    return not any(isinstance(n, Load) or (isinstance(n, Var) and n.name in variables) for n in walk(tuple(terms)))
