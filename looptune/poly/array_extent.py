"""The extent of an array that the loops access, as a formula of the sizes.

    for i in 0..n: for j in 0..m: a[i * m + j]      a[n * m]:  (n - 1) * m + (m - 1) + 1
    for i in 0..n: a[x[i]]                          not known

Sizes are assumed not to be negative. A formula is an upper bound: conditions are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import integer_parameters, names_in, written_names
from looptune.ir.intervals import bound_terms
from looptune.ir.nodes import (
    Array,
    Assign,
    Binary,
    Call,
    Cast,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Loop,
    Select,
    Stmt,
    Unary,
    Var,
    While,
)
from looptune.ir.rewrite import substitute, walk
from looptune.ir.simplify import is_integer
from looptune.poly.domain import scan

Poly = Mapping[tuple[str, ...], int]
"""A sum of products of sizes: {("m", "n"): 1, (): -1} is ``m * n - 1``."""

Around = tuple[Loop, ...]
Subscripts = tuple[Expr, ...]


def array_accesses(codelet: Codelet, *, sure: bool = False) -> Iterator[tuple[Load, Subscripts, Around]]:
    """Yield each array access, its subscripts with locals replaced by their values, and the loops around it.

    ``sure``: leave out accesses that are under a condition.
    """
    known = scan(codelet).known
    for load, around in _accesses(codelet.body, (), sure):
        yield load, tuple(substitute(e, known) for e in load.index), around


def bound(e: Expr, around: Around, sizes: frozenset[str], *, exact: bool = False) -> Poly | None:
    """Return an exclusive upper bound of ``e`` over all iterations of the loops, or None if none is known.

    ``exact``: some iteration, if there is one, attains the bound minus 1.
    """
    made = polynomial(e, sizes | {f.var for f in around})
    for k, loop in reversed(tuple(enumerate(around))):
        if made is None or (exact and not _plain(loop)):
            return None
        made = _greatest(made, loop, around[:k], sizes)
    return None if made is None else _sum(made, {(): 1})


def required_extents(codelet: Codelet) -> dict[str, tuple[str, ...]]:
    """Return the extents of each array parameter.

    These are the declared ones; a first extent that is not declared is the largest one that is accessed, "?" where that
    is not known.
    """
    sizes = sizes_of(codelet)
    arrays = [p for p in codelet.params if isinstance(p, Array)]
    found: dict[str, list[Poly | None]] = {p.name: [] for p in arrays}
    for load, index, around in array_accesses(codelet):
        if load.array in found:
            found[load.array].append(bound(index[0], around, sizes))
    return {
        p.name: tuple(_largest(found[p.name]) if e is None else expression_text(e) for e in p.shape) for p in arrays
    }


def sizes_of(codelet: Codelet) -> frozenset[str]:
    """Return the integer parameters that no statement assigns."""
    return frozenset(integer_parameters(codelet)) - {*written_names(codelet.body)}


def never_greater(a: Poly, b: Poly) -> bool:
    """Return whether ``a <= b`` is shown to hold for all sizes that are not negative."""
    return all(k >= 0 for k in _sum(b, a, -1).values())


def polynomial(e: Expr, names: frozenset[str]) -> Poly | None:
    """Return ``e`` as a polynomial of ``names``, or None if it reads anything else.

    A quotient, minimum or maximum of sizes is a factor by itself.
    """
    match e:
        case Const(int(value)):
            return {(): value} if value else {}
        case Var(name) if name in names:
            return {(name,): 1}
        case Cast(dtype, arg) if is_integer(dtype) and dtype != "bool":
            return polynomial(arg, names)
        case Unary("-", arg):
            inner = polynomial(arg, names)
            return None if inner is None else _sum({}, inner, -1)
        case Binary("+" | "-" | "*" as op, lhs, rhs):
            a, b = polynomial(lhs, names), polynomial(rhs, names)
            if a is None or b is None:
                return None
            return _product(a, b) if op == "*" else _sum(a, b, 1 if op == "+" else -1)
        case Binary("/" | "min" | "max" | ">>") if names_in(e) <= names and not any(
            isinstance(n, Load) for n in walk(e)
        ):
            return {(f"({expression_text(e)})",): 1}
    return None


def evaluate(p: Poly, sizes: Mapping[str, int]) -> int:
    """Return the value of a polynomial of sizes.

    >>> evaluate({("m", "n"): 2, (): -1}, {"m": 3, "n": 5})
    29
    """
    return sum(k * prod(sizes[name] for name in at) for at, k in p.items())


def polynomial_text(p: Poly) -> str:
    """Return the polynomial as text.

    >>> polynomial_text({("m", "n"): 1, ("n",): -2, (): 3})
    'm * n + 3 - 2 * n'
    """
    text = ""
    for factors, k in sorted(p.items(), key=lambda item: (item[1] < 0, -len(item[0]), item[0])):
        size = " * ".join([*([str(abs(k))] if abs(k) != 1 or not factors else []), *factors])
        text += f" {'-' if k < 0 else '+'} {size}" if text else f"{'-' if k < 0 else ''}{size}"
    return text if text else "0"


def _accesses(body: Sequence[Stmt], around: Around, sure: bool) -> Iterator[tuple[Load, Around]]:
    look = _surely if sure else _loads
    for stmt in body:
        match stmt:
            case Assign(target, value):
                yield from ((n, around) for e in (value, target) for n in look(e))
            case Loop(_, lo, hi, inner):
                yield from ((n, around) for e in (lo, hi) for n in look(e))
                yield from _accesses(inner, (*around, stmt), sure)
            case If(cond, then, other):
                yield from ((n, around) for n in look(cond))
                yield from _accesses(() if sure else (*then, *other), around, sure)
            case While(cond, inner):
                yield from ((n, around) for n in look(cond))
                yield from _accesses(() if sure else inner, around, sure)


def _loads(e: Expr) -> Iterator[Load]:
    return (n for n in walk(e) if isinstance(n, Load))


def _surely(e: Expr) -> Iterator[Load]:
    """Without what stands on one side of ``?:``, or is looked at only where something else holds."""
    match e:
        case Load(_, index):
            yield e
            for subscript in index:
                yield from _surely(subscript)
        case Select(first) | Binary("&&" | "||", first, _) | Unary(_, first) | Cast(_, first):
            yield from _surely(first)
        case Binary(_, lhs, rhs):
            yield from _surely(lhs)
            yield from _surely(rhs)
        case Call(_, args):
            for arg in args:
                yield from _surely(arg)


def _plain(loop: Loop) -> bool:
    """Tell whether it takes each value between its bounds, which are sums."""
    return loop.step == 1 and not any(
        isinstance(n, Binary) and n.op in ("min", "max") for n in walk((loop.lo, loop.hi))
    )


def _greatest(p: Poly, loop: Loop, around: Around, sizes: frozenset[str]) -> Poly | None:
    """``p`` where the loop makes it the greatest; None where it may rise and fall."""
    factor = {tuple(x for x in at if x != loop.var): k for at, k in p.items() if loop.var in at}
    rest = {at: k for at, k in p.items() if loop.var not in at}
    if any(at.count(loop.var) > 1 for at in p) or any(loop.var in x for at in p for x in at if x.startswith("(")):
        return None
    if not factor:
        return p
    rises, names = all(k > 0 for k in factor.values()), sizes | {f.var for f in around}
    if not rises and any(k > 0 for k in factor.values()):
        return None
    if any(x not in sizes and not x.startswith("(") and not _counts_from_zero(x, around) for at in factor for x in at):
        return None
    ends = [polynomial(e, names) for e in bound_terms(loop.hi if rises else loop.lo, "min" if rises else "max")]
    end = next((end for end in ends if end is not None), None)
    if end is None:
        return None
    return _sum(rest, _product(factor, _sum(end, {(): -1}) if rises else end))


def _counts_from_zero(var: str, around: Around) -> bool:
    loop = next((f for f in around if f.var == var), None)
    low = None if loop is None else polynomial(loop.lo, frozenset(names_in(loop.lo)))
    return low is not None and all(k >= 0 for k in low.values())


def _largest(found: Sequence[Poly | None]) -> str:
    known = [p for p in found if p is not None]
    if len(known) < len(found) or not known:
        return "?"
    top: list[Poly] = []
    for p in known:
        if not any(never_greater(p, q) for q in top):
            top = [*(q for q in top if not never_greater(q, p)), p]
    texts = [polynomial_text(p) for p in top]
    return texts[0] if len(texts) == 1 else f"max({', '.join(texts)})"


def _sum(a: Poly, b: Poly, factor: int = 1) -> Poly:
    total = {at: a.get(at, 0) + factor * b.get(at, 0) for at in (*a, *b)}
    return {at: k for at, k in total.items() if k}


def _product(a: Poly, b: Poly) -> Poly:
    total: dict[tuple[str, ...], int] = {}
    for p, k in a.items():
        for q, n in b.items():
            at = tuple(sorted((*p, *q)))
            total[at] = total.get(at, 0) + k * n
    return {at: k for at, k in total.items() if k}
