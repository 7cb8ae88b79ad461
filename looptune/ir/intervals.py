"""Simplify bounds and conditions with the ranges of the enclosing loops, where sizes are constants.

    for o in 0..64: for k in 16*o .. min(16*o + 16, 1024)     ==>     for k in 16*o .. 16*o + 16
    for i in 0..8: if (i < 8) S                               ==>     for i in 0..8: S

An expression lies between the least and the greatest value of its terms, each loop variable between its bounds. For
sizes that are not constants, the analysis tells whether a loop runs:

    for o in 0..(n + 15) / 16: for k in 16*o .. min(16*o + 16, n)      o <= (n + 15) / 16 - 1, so that n - 16*o >= 1
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from math import inf
from typing import Any, Literal

from looptune.ir.def_use import names_in, written_names
from looptune.ir.nodes import COMPARISONS, Assign, Binary, Cast, Const, Expr, If, Load, Loop, Stmt, Unary, Var, While
from looptune.ir.rewrite import has_load, rewrite, walk, walk_stmts
from looptune.ir.simplify import fits, fold, is_integer, is_lossless_index_cast, truth, widens

Range = tuple[int, int]
"""The least and the greatest value."""


Terms = tuple[dict[Expr, int], int]


def affine_terms(e: Expr) -> Terms:
    """Return ``e`` as a sum of integer multiples of atoms, and a constant.

    >>> affine_terms(Binary("+", Binary("*", Const(2), Var("i")), Const(1)))
    ({Var(name='i', dtype='int32'): 2}, 1)
    """
    terms: dict[Expr, int] = {}
    constant = _add_terms(e, 1, terms)
    return {t: k for t, k in terms.items() if k}, constant


def _add_terms(e: Expr, factor: int, terms: dict[Expr, int]) -> int:
    """Add ``factor`` times ``e`` to a sum, and return the constant that it adds."""
    match e:
        case Const() if isinstance(e.value, int):
            return factor * e.value
        case Binary():
            lhs, rhs = e.lhs, e.rhs
            if e.op == "+" or e.op == "-":
                return _add_terms(lhs, factor, terms) + _add_terms(rhs, factor if e.op == "+" else -factor, terms)
            if e.op == "*" and isinstance(lhs, Const) and isinstance(lhs.value, int):
                return _add_terms(rhs, factor * lhs.value, terms)
            if e.op == "*" and isinstance(rhs, Const) and isinstance(rhs.value, int):
                return _add_terms(lhs, factor * rhs.value, terms)
        case Cast() if is_lossless_index_cast(e.dtype, e.arg.dtype):
            return _add_terms(e.arg, factor, terms)
    terms[e] = terms.get(e, 0) + factor
    return 0


def never_equal(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    """Tell whether two index tuples of one array never denote the same element: one subscript differs by a constant."""
    differences = (affine_terms(Binary("-", x, y)) for x, y in zip(a, b, strict=True))
    return any(constant and not terms for terms, constant in differences)


def may_be_one_place(a: Var | Load, b: Var | Load) -> bool:
    """Tell whether two accesses, of scalars or elements, may be to one place."""
    if isinstance(a, Load) and isinstance(b, Load):
        return a.array == b.array and not never_equal(a.index, b.index)
    return a == b


def simplify_with_ranges(body: tuple[Stmt, ...], known: Mapping[str, Range] | None = None) -> tuple[Stmt, ...]:
    """Return the body simplified; ``known`` has the ranges of variables around it."""
    env = {} if known is None else known
    return tuple(_statement(s, env) for s in body)


def _statement(stmt: Stmt, env: Mapping[str, Range]) -> Stmt:
    match stmt:
        case Loop(_, lo, hi, body):
            loop = replace(stmt, lo=_decided(lo, env), hi=_decided(hi, env))
            inner = body_ranges(loop, env)
            return _in_step(loop, simplify_with_ranges(body, inner))
        case If(cond, then, other):
            return replace(
                stmt,
                cond=_decided(cond, env),
                then=simplify_with_ranges(then, env),
                other=simplify_with_ranges(other, env),
            )
        case While(_, body):
            inner = {k: v for k, v in env.items() if k not in written_names(body)}
            return replace(stmt, body=simplify_with_ranges(body, inner))
        case Assign(target, value):
            return replace(stmt, target=_decided(target, env), value=_decided(value, env))


def _in_step(loop: Loop, body: tuple[Stmt, ...]) -> Loop:
    """Return the loop with ``body``, whose statements correspond to its own, and with the reductions that remain."""
    now: dict[Var | Load, list[Var | Load]] = {}
    if loop.reductions:
        for before, after in zip(walk_stmts(loop.body), walk_stmts(body), strict=True):
            if isinstance(before, Assign) and isinstance(after, Assign):
                now.setdefault(before.target, []).append(after.target)
    reduces = (replace(r, target=target) for r in loop.reductions for target in now[r.target])
    return replace(loop, body=body, reductions=tuple(dict.fromkeys(reduces)))


def body_ranges(loop: Loop, env: Mapping[str, Range]) -> dict[str, Range]:
    """Return the ranges in the loop's body."""
    inner = {k: v for k, v in env.items() if k != loop.var and k not in written_names(loop.body)}
    first, last = range_of(loop.lo, env), range_of(loop.hi, env)
    if first is not None and last is not None and first[0] < last[1]:
        inner[loop.var] = (first[0], last[1] - 1)
    return inner


def always_iterates(loop: Loop, env: Mapping[str, Range], around: Sequence[Loop] = ()) -> bool:
    """Tell whether the loop has an iteration whenever it is reached.

    ``around``: the loops with invariant bounds that enclose it, outermost first.
    """
    return all(_leaves(end, loop.lo, env, around) for end in bound_terms(loop.hi, "min"))


def has_iteration(loop: Loop, around: Sequence[Loop]) -> Expr | None:
    """Return the condition that the loop has an iteration.

    None if it always has one in the loops ``around``, outermost first.
    """
    known = [f for f in around if has_invariant_bounds(f)]
    if always_iterates(loop, reduce(lambda env, f: body_ranges(f, env), known, {}), known):
        return None
    match loop.lo, loop.hi:
        case Const(lo), Const(hi):
            return Const(int(lo < hi))
    return Binary("<", loop.lo, loop.hi)


def is_total(e: Expr) -> bool:
    """Tell whether the expression has a defined value for all values of its variables."""
    divisors = (n.rhs for n in walk(e) if isinstance(n, Binary) and n.op in ("/", "%"))
    return all(isinstance(d, Const) and d.value not in (0, -1) for d in divisors)


def _leaves(hi: Expr, lo: Expr, env: Mapping[str, Range], around: Sequence[Loop]) -> bool:
    if not (cannot_overflow(hi) and cannot_overflow(lo)):
        return False
    apart = difference_range(hi, lo, env)
    return (apart is not None and apart[0] >= 1) or _lowest(_differing(hi, lo), around) >= 1


def has_invariant_bounds(loop: Loop) -> bool:
    """Return whether the loop's body changes neither its variable nor its bounds, which read no array."""
    named = {loop.var} | names_in((loop.lo, loop.hi))
    loads = has_load((loop.lo, loop.hi))
    return not loads and not named & written_names(loop.body)


def _lowest(sum_of: Terms, around: Sequence[Loop]) -> float:
    """Return a lower bound of the sum over all iterations of these loops, for all sizes; -inf if none is known.

    From the innermost loop to the outermost its variable gives way to one of its bounds.
    """
    terms, constant = sum_of
    if not terms:
        return constant
    if not around:
        return -inf
    *outer, loop = around
    of = next((t for t in terms if isinstance(t, Var) and t.name == loop.var), None)
    if of is None:
        return _lowest(sum_of, outer)
    rest = {t: k for t, k in terms.items() if t != of}, constant
    limits = _from_below(loop) if terms[of] > 0 else _from_above(loop, outer, -terms[of])
    return max((_lowest(_plus(rest, limit, terms[of]), outer) for limit in limits), default=-inf)


def _from_below(loop: Loop) -> Iterator[tuple[Terms, int]]:
    """Yield lower bounds of the loop variable, each with a divisor."""
    yield from ((affine_terms(lo), 1) for lo in bound_terms(loop.lo, "max") if cannot_overflow(lo))


def _from_above(loop: Loop, outer: Sequence[Loop], factor: int) -> Iterator[tuple[Terms, int]]:
    """Yield upper bounds of the loop variable, each with a divisor.

    It divides ``factor``, so that nothing is rounded.
    """
    for hi in bound_terms(loop.hi, "min"):
        match _bare(hi):
            case Binary("/", x, Const(int(d))) if d > 0 and factor % d == 0 and cannot_overflow(x):
                # Of a loop from 0 or more that runs, x / d is 1 at least, and rounded down.
                if _lowest(affine_terms(loop.lo), outer) >= 0:
                    terms, constant = affine_terms(x)
                    yield (terms, constant - d), d
            case end if cannot_overflow(end):
                terms, constant = affine_terms(end)
                yield (terms, constant - 1), 1


def _bare(e: Expr) -> Expr:
    match e:
        case Cast(dtype, arg) if is_lossless_index_cast(dtype, arg.dtype) and cannot_overflow(e):
            return _bare(arg)
    return e


def _plus(a: Terms, limit: tuple[Terms, int], factor: int) -> Terms:
    """Return ``a`` and ``factor`` times a limit."""
    (p, c), ((q, d), divisor) = a, limit
    total = {t: p.get(t, 0) + factor // divisor * q.get(t, 0) for t in (*p, *q)}
    return {t: k for t, k in total.items() if k}, c + factor // divisor * d


def _decided(e: Any, env: Mapping[str, Range]) -> Any:
    """``e`` without choices that the ranges make."""

    def rule(n: Any) -> Any:
        match n:
            case Binary("min" | "max" as op, lhs, rhs) if cannot_overflow(lhs) and cannot_overflow(rhs):
                apart = difference_range(lhs, rhs, env)
                if apart is not None and (apart[1] <= 0 or apart[0] >= 0):
                    return lhs if (apart[1] <= 0) == (op == "min") else rhs
            case Binary("<" | "<=" | ">" | ">=" as op, lhs, rhs) if cannot_overflow(lhs) and cannot_overflow(rhs):
                return _compared(op, difference_range(lhs, rhs, env), n)
            case Binary("&&" | "||" as op, Const(value), rest) | Binary("&&" | "||" as op, rest, Const(value)):
                return truth(rest) if bool(value) == (op == "&&") else Const(int(bool(value)), "int32")
            case Var(name, dtype) if name in env and env[name][0] == env[name][1]:
                return Const(env[name][0], dtype)
            case Binary() | Unary() | Cast():
                return fold(n)
        return None

    return rewrite(rule, e) if env else e


def cannot_overflow(e: Expr) -> bool:
    """Return whether ``e`` has only signed arithmetic, whose overflow is undefined, and no narrowing conversion."""
    return all(
        n.dtype in ("int32", "int64") and not (isinstance(n, Cast) and (n.dtype, n.arg.dtype) == ("int32", "int64"))
        for n in walk(e)
        if isinstance(n, (Var, Const, Binary, Cast, Load, Unary))
    )


def _compared(op: str, apart: Range | None, n: Binary) -> Expr | None:
    """1 or 0 where the difference of the two sides says so."""
    if apart is None:
        return None
    least, most = apart
    always = {"<": most < 0, "<=": most <= 0, ">": least > 0, ">=": least >= 0}[op]
    never = {"<": least >= 0, "<=": least > 0, ">": most <= 0, ">=": most < 0}[op]
    return Const(int(always), n.dtype) if always or never else None


def difference_range(a: Expr, b: Expr, env: Mapping[str, Range]) -> Range | None:
    """Return the range of ``a - b``, or None where it is not known."""
    return _sum(*_differing(a, b), env)


def bound_terms(e: Expr, op: Literal["min", "max"]) -> tuple[Expr, ...]:
    """Return what a minimum or maximum is of, however it is nested; another expression by itself.

    >>> bound_terms(Binary("min", Var("a"), Binary("min", Var("b"), Var("c"))), "min")[1].name
    'b'
    """
    match e:
        case Binary(has, lhs, rhs) if has == op:
            return (*bound_terms(lhs, op), *bound_terms(rhs, op))
    return (e,)


def most_iterations(loop: Loop) -> int | None:
    """Return a number of iterations that the loop never exceeds, or None if none follows from its bounds.

    >>> low, high = Binary("max", Var("a"), Const(1)), Binary("min", Var("n"), Binary("+", Var("a"), Const(8)))
    >>> most_iterations(Loop("i", low, high, ()))
    8
    """
    pairs = product(bound_terms(loop.hi, "min"), bound_terms(loop.lo, "max"))
    found = [r[1] for r in (difference_range(high, low, {}) for high, low in pairs) if r is not None]
    return max(0, -(-min(found) // loop.step)) if found else None


def _differing(a: Expr, b: Expr) -> Terms:
    """Return ``a - b``."""
    return _plus(affine_terms(a), (affine_terms(b), 1), -1)


def range_of(e: Expr, env: Mapping[str, Range]) -> Range | None:
    """Return the range of ``e``, or None where it is not known."""
    match e:
        case Const(int(value)):
            return value, value
        case Var(name):
            return env.get(name)
        case Cast(_, arg) if cannot_overflow(e):
            return range_of(arg, env)
        case Binary("min" | "max" as op, lhs, rhs):
            return _either(min if op == "min" else max, range_of(lhs, env), range_of(rhs, env))
        case Binary("/", x, Const(int(k))) if k > 0:
            inside = range_of(x, env)
            return None if inside is None or inside[0] < 0 else (inside[0] // k, inside[1] // k)
        case Binary("+" | "-" | "*"):
            terms, constant = affine_terms(e)
            found = None if terms == {e: 1} else _sum(terms, constant, env)
            wrapped = found is not None and not cannot_overflow(e) and not all(fits(end, e.dtype) for end in found)
            return None if wrapped else found
    return None


def _either(of: Any, a: Range | None, b: Range | None) -> Range | None:
    return None if a is None or b is None else (of(a[0], b[0]), of(a[1], b[1]))


def _sum(terms: Mapping[Expr, int], constant: int, env: Mapping[str, Range]) -> Range | None:
    least = most = constant
    for term, factor in terms.items():
        inside = range_of(term, env)
        if inside is None:
            return None
        ends = sorted(factor * end for end in inside)
        least, most = least + ends[0], most + ends[1]
    return least, most


def never_negative(e: Expr, known: Collection[str]) -> bool:
    """Return whether ``e`` cannot be negative if the variables ``known`` are not."""
    if e.dtype.startswith("uint") or e.dtype == "bool":
        return True
    match e:
        case Const(value):
            return value >= 0
        case Var(name):
            return name in known
        case Cast(dtype, arg):
            return widens(dtype, arg.dtype) and never_negative(arg, known)
        case Binary("+" | "*" | "/" | "min", lhs, rhs) if is_integer(lhs.dtype):
            return never_negative(lhs, known) and never_negative(rhs, known)
        case Binary("%", lhs, _) if is_integer(lhs.dtype):
            return never_negative(lhs, known)
        case Binary("max", lhs, rhs):
            return never_negative(lhs, known) or never_negative(rhs, known)
        case Binary(op):
            return op in COMPARISONS
        case Unary("!"):
            return True
    return False


def may_wrap(e: Expr, known: Collection[str]) -> bool:
    """Tell whether the expression contains a sum, difference or product of an unsigned type, which may wrap.

    Those made only of sizes and counters (``known`` variables) are exempt, since these are small.
    """
    sums = (n for n in walk(e) if isinstance(n, Binary) and n.op in ("+", "-", "*") and n.dtype.startswith("uint"))
    return not all(_small_sum(n, known) for n in sums)


def _small_sum(e: Expr, known: Collection[str]) -> bool:
    match e:
        case Const(value):
            return 0 <= value < 2**31
        case Var(name):
            return name in known
        case Cast(_, arg):
            return _small_sum(arg, known)
        case Binary("+" | "-" | "*", lhs, rhs):
            return _small_sum(lhs, known) and _small_sum(rhs, known)
    return False
