"""The range of elements of an array that the loops may access, as C text: what has to be copied to another memory.

    double a[n][m]                                  the declared extents              0 to n * m
    double a[1]; for i in 0..n: a[i]                and what is accessed beyond       0 to max(1, n)
    for i in 1..n: if (i + 1 < n) a[i + 1]          the accesses, with conditions     2 to n
    for i in 0..n: for j in 0..m: a[i * m + j]      a bound of the subscripts         0 to n * m
    for i in 0..n: a[x[i]]                          not known

Every element that is accessed is in the range, and its ends are accessed where the sizes decide which accesses happen,
so that no memory beside the array is read. Sizes are assumed not to be negative, as in ``array_extent``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import islpy as isl

from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Array, Binary, Const, Expr, Unary, Var
from looptune.ir.rewrite import substitute
from looptune.poly import array_extent, bounds_check
from looptune.poly.affine import name, to_isl
from looptune.poly.coalesce import coalesce
from looptune.poly.data_conditions import conjuncts
from looptune.poly.guarded_loads import GuardedLoad, evaluated_loads, evaluates_partly, guarded_loads
from looptune.poly.isl_limits import QUESTION, IslLimitExceeded, isl_operation_limit

if TYPE_CHECKING:
    from looptune.poly.access import Access
    from looptune.poly.array_extent import Around, Poly
    from looptune.poly.scop import Scop

MIN, MAX, FLOOR = "looptune_min", "looptune_max", "looptune_floord"
"""The functions of two ``long long`` that the texts call."""


@dataclass(frozen=True, slots=True)
class ElementRange:
    """The elements from ``first`` to before ``end``, counted from where the array begins; C of type ``long long``.

    ``first`` is "0" where no access is before the array. Where ``end`` is not greater, nothing is accessed. ``rows`` is
    the end of the first subscript, for each value of which there are ``row`` elements.
    """

    first: str
    end: str
    rows: str = ""
    row: str = "1"


def element_ranges(model: Scop) -> dict[str, ElementRange | None]:
    """Return the range of each array parameter, None where the sizes do not determine one."""
    arrays = [p for p in model.codelet.params if isinstance(p, Array)]
    mine: dict[str, list[Access]] = {p.name: [] for p in arrays}
    for access in (a for named in model.space.accesses.values() for a in named if a.array in mine):
        mine[access.array].append(access)
    loads: dict[str, list[GuardedLoad]] = {p.name: [] for p in arrays}
    known = model.space.nest.known
    for found in guarded_loads(model.codelet):
        if found.load.array in loads:
            index = tuple(substitute(e, known) for e in found.load.index)
            loads[found.load.array].append(replace(found, load=replace(found.load, index=index)))
    evaluated = _evaluated(model)
    return {p.name: _range(model, p, mine[p.name], loads[p.name], evaluated) for p in arrays}


def _range(
    model: Scop, p: Array, accesses: Sequence[Access], loads: Sequence[GuardedLoad], evaluated: Evaluated
) -> ElementRange | None:
    inner = [e for e in p.shape[1:] if e is not None]
    rows = _affine_rows(model, len(p.shape), accesses, evaluated)
    if p.shape[0] is not None:
        declared = ElementRange("0", _product([p.shape[0]]))
        rows = declared if rows is None or _is_inside(model, p, accesses) else _both(declared, rows)
    rows = rows if rows is not None else _bounded_rows(model, loads)
    if rows is None or not inner:
        return None if rows is None else replace(rows, rows=rows.end)
    row = _product(inner)
    first = "0" if rows.first == "0" else f"({rows.first}) * {row}"
    return ElementRange(first, f"({rows.end}) * {row}", rows.end, row)


def _both(declared: ElementRange, accessed: ElementRange) -> ElementRange:
    """Return the range of the declared rows and of those that are accessed: C does not hold parameters to the former.

    ``double *a`` may be written ``double a[static 1]``.
    """
    return ElementRange(accessed.first, f"{MAX}({declared.end}, {accessed.end})")


def _is_inside(model: Scop, p: Array, accesses: Sequence[Access]) -> bool:
    """Tell whether all accesses are in the rows that the array declares, whatever the sizes are."""
    space = model.space
    rows = None if p.shape[0] is None else to_isl(space.nest.terms.replaced(p.shape[0]))
    if rows is None:
        return True
    dims = [f"e{k}" for k in range(len(p.shape))]
    try:
        with isl_operation_limit(QUESTION):
            whole = isl.Set(f"{space.prefix}{{ [{', '.join(dims)}] : 0 <= e0 < {rows} }}")
            touched = (space.touched(a).range().intersect_params(space.context()) for a in accesses)
            return all(bool(t.is_subset(whole)) for t in touched)
    except (IslLimitExceeded, isl.Error):
        return False


def _product(extents: Iterable[Expr]) -> str:
    return " * ".join(f"(long long)({expression_text(e)})" for e in extents)


Key = tuple[str, str, tuple[str | None, ...]]
"""A statement, an array, and the subscripts with which it accesses the array."""
Evaluated = Mapping[Key, isl.Set | None]
"""The instances of the statement in which this element is evaluated, None where that is not known."""


def _evaluated(model: Scop) -> Evaluated:
    """Return where elements are read; of ``?:``, ``&&`` and ``||`` C evaluates one side, or not all."""
    if not evaluates_partly(model.codelet.body):
        return {}
    found: dict[Key, isl.Set | None] = {}
    nest = model.space.nest
    for s in model.statements.values():
        for e, reached in bounds_check.expressions(model, s):
            for load, here in evaluated_loads(e, reached):
                key = (s.name, load.array, tuple(nest.affine(i, s.dims, products=False) for i in load.index))
                before = found.get(key, here.domain)
                found[key] = before.union(here.domain) if before is not None and here.dims == s.dims else None
    return found


def _touched(model: Scop, a: Access, evaluated: Evaluated) -> isl.Set:
    where = None if a.write else evaluated.get((a.statement, a.array, a.index))
    touched = model.space.touched(a)
    return (touched if where is None else touched.intersect_domain(where)).range()


def _affine_rows(model: Scop, rank: int, accesses: Sequence[Access], evaluated: Evaluated) -> ElementRange | None:
    """Return the range of the first subscript, of accesses that are affine, each in ``rank`` subscripts."""
    if any(len(a.index) != rank or a.index[0] is None for a in accesses):
        return None
    if not accesses:
        return ElementRange("0", "0")
    space = model.space
    try:
        with isl_operation_limit(QUESTION):
            touched = (_touched(model, a, evaluated).project_out(isl.dim_type.set, 1, rank - 1) for a in accesses)
            whole = coalesce(reduce(isl.Set.union, touched).intersect_params(space.context()))
            if whole.is_empty():
                return ElementRange("0", "0")
            first = "0" if whole.is_subset(_not_negative(whole)) else _text(model, whole.dim_min(0), "0")
            last = _text(model, whole.dim_max(0), "-1")
            return ElementRange(first, f"{last} + 1")
    except (IslLimitExceeded, isl.Error):
        return None


def _not_negative(touched: isl.Set) -> isl.Set:
    return isl.Set.universe(touched.get_space()).lower_bound_val(isl.dim_type.set, 0, isl.Val(0))


def _text(model: Scop, value: isl.PwAff, otherwise: str) -> str:
    """Return the value as C; ``otherwise`` where no access happens."""
    build = isl.AstBuild.from_context(isl.Set.universe(value.domain().get_space()))
    happens = build.expr_from_set(value.domain()).to_C_str()
    what = build.expr_from_pw_aff(value).to_C_str()
    text = what if happens == "1" else f"{happens} ? {what} : {otherwise}"
    terms = {name(p): text for p, text in model.sizes.items()} | {
        term: f"({expression_text(e)})" for term, e in model.space.nest.terms.found.items()
    }
    functions = {"min": MIN, "max": MAX, "floord": FLOOR}

    def spelled(m: re.Match[str]) -> str:
        return f"{functions[m[1]]}(" if m[2] else f"(long long){terms.get(m[1], m[1])}"

    return "(" + re.sub(r"\b([A-Za-z_]\w*)\b(\()?", spelled, text) + ")"


def _bounded_rows(model: Scop, loads: Sequence[GuardedLoad]) -> ElementRange | None:
    """Return bounds of the first subscript, from the loops and the conditions around the accesses."""
    sizes = array_extent.sizes_of(model.codelet)
    ends, below = [], []
    for found in loads:
        around = (found.around, _guarded(found))
        highest = [array_extent.bound(found.load.index[0], loops, sizes) for loops in around]
        lowest = [array_extent.bound(Unary("-", found.load.index[0]), loops, sizes) for loops in around]
        if highest[0] is None or lowest[0] is None:
            return None
        ends.append(_least(highest[0], highest[1]))
        known = [p for p in lowest if p is not None]
        if not any(array_extent.never_greater(p, {(): 1}) for p in known):
            below.append(_polynomial(known[-1]))
    first = f"{MIN}(0, -({_greatest(below)} - 1))" if below else "0"
    return ElementRange(first, _greatest(ends))


def _guarded(found: GuardedLoad) -> Around:
    """Return the loops with the bounds that the conditions give their variables."""
    bounds: dict[tuple[str, str], Expr] = {}
    for cond, wanted in found.conditions:
        bounds |= {at: e for part, holds in conjuncts(cond, wanted) for at, e in _bounds(part, holds)}
    loops = list(found.around)
    for k, loop in enumerate(loops):
        inside = {other.var for other in loops[k:]}
        mine = {side: e for (var, side), e in bounds.items() if var == loop.var and not inside & names_in(e)}
        loops[k] = replace(loop, lo=mine.get("lo", loop.lo), hi=mine.get("hi", loop.hi))
    return tuple(loops)


_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "=="}


def _bounds(cond: Expr, holds: bool) -> Iterator[tuple[tuple[str, str], Expr]]:
    """Yield what a comparison says of a variable: its inclusive lower bound "lo", or its exclusive upper bound "hi"."""
    match cond:
        case Binary(op, lhs, rhs) if op in _OPPOSITE:
            op = op if holds else _OPPOSITE[op]
            for var, said, e in ((lhs, op, rhs), (rhs, _TURNED.get(op, ""), lhs)):
                match var, said:
                    case Var(name), "<" | "<=" | "==":
                        yield (name, "hi"), e if said == "<" else Binary("+", e, Const(1))
                match var, said:
                    case Var(name), ">" | ">=" | "==":
                        yield (name, "lo"), Binary("+", e, Const(1)) if said == ">" else e


def _least(a: Poly, b: Poly | None) -> str:
    """Return the smaller of two bounds."""
    if b is None or array_extent.never_greater(a, b):
        return _polynomial(a)
    return _polynomial(b) if array_extent.never_greater(b, a) else f"{MIN}({_polynomial(a)}, {_polynomial(b)})"


def _greatest(texts: Sequence[str]) -> str:
    return reduce(lambda a, b: f"{MAX}({a}, {b})", dict.fromkeys(texts))


def _polynomial(p: Poly) -> str:
    terms = [" * ".join([f"{k}LL", *(f"(long long){factor}" for factor in at)]) for at, k in p.items()]
    return f"({' + '.join(terms)})" if terms else "0"


def completely_written(model: Scop) -> frozenset[str]:
    """Return the array parameters of which every element that is declared is written, whatever the sizes are."""
    arrays = [p for p in model.codelet.params if isinstance(p, Array) and None not in p.shape]
    return frozenset(p.name for p in arrays if _is_completely_written(model, p))


def _is_completely_written(model: Scop, p: Array) -> bool:
    space = model.space
    extents = [to_isl(space.nest.terms.replaced(e)) for e in p.shape if e is not None]
    writes = [
        a for s in model.statements.values() if s.exact for a in space.accesses[s.name]
        if a.array == p.name and a.write and a.must and len(a.index) == len(p.shape)
    ]  # fmt: skip
    if None in extents or not writes:
        return False
    dims = [f"e{k}" for k in range(len(extents))]
    inside = " and ".join(f"0 <= {d} < {e}" for d, e in zip(dims, extents, strict=True))
    try:
        with isl_operation_limit(QUESTION):
            whole = isl.Set(f"{space.prefix}{{ [{', '.join(dims)}] : {inside} }}").intersect_params(space.context())
            written = reduce(isl.Set.union, (space.touched(a).range() for a in writes))
            return bool(whole.is_subset(written))
    except (IslLimitExceeded, isl.Error):
        return False
