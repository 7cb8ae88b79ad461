"""Jam: merge the loops in the copies of a loop's body, statement by statement.

    for j in l0..h0: S0(j)            for j in min(l)..min(max(l), max(h)):  each copy that runs there
    for j in l1..h1: S1(j)     ==>    for j in max(l)..min(h):               S0(j); S1(j)
                                      for j in max(min(h), max(l))..max(h):  each copy that runs there

If all loops start at the same value, there is no first part; if all end at the same value, there is no last one. In
both parts each copy has a condition for its own bounds, so that the order is the same everywhere: by j, then by copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from looptune.ir.def_use import names_in, share_conditions, written_names
from looptune.ir.intervals import cannot_overflow
from looptune.ir.nodes import Binary, Const, Expr, If, Load, Loop, Stmt, Unary, Var, While
from looptune.ir.rewrite import conjunction, conjuncts, has_load, has_loop, walk
from looptune.ir.simplify import max_of, min_of, mod, sub
from looptune.poly.delinearization import polynomial
from looptune.poly.loop_bounds import signed
from looptune.schedule.directives.base import DirectiveSite, round_up_to_step


@dataclass(frozen=True, slots=True)
class _Copy:
    """``body`` runs where all of ``conditions`` hold."""

    body: tuple[Stmt, ...]
    conditions: tuple[Expr, ...] = ()

    def with_conditions(self, *conditions: Expr) -> _Copy:
        return replace(self, conditions=(*self.conditions, *conditions))


def jam_loops(bodies: Sequence[tuple[Stmt, ...]], site: DirectiveSite) -> tuple[Stmt, ...]:
    """Merge the loops of the copies. Raises DirectiveError for loops that cannot be merged."""
    return _side_by_side([_Copy(b) for b in bodies], site)


def _side_by_side(copies: Sequence[_Copy], site: DirectiveSite) -> tuple[Stmt, ...]:
    """Return copies of one body: its statements in order, each for all copies."""
    out: list[Stmt] = []
    for stmts in zip(*(c.body for c in copies), strict=True):
        alone = [replace(c, body=(s,)) for c, s in zip(copies, stmts, strict=True)]
        match stmts[0]:
            case Loop():
                out += _one_loop(alone, [s for s in stmts if isinstance(s, Loop)], site)
            case If() if has_loop(stmts[:1]):
                out += _branches(alone, [s for s in stmts if isinstance(s, If)], site)
            case While():
                raise site.refuse(f"unroll of {site.loop.var} with jam: while loops of different copies "
                                  "cannot be merged")  # fmt: skip
            case _:
                out += (s for c in alone for s in _guarded(c))
    return share_conditions(out)


def _guarded(copy: _Copy) -> tuple[Stmt, ...]:
    match copy.body:
        case (If(cond, then, ()),) if copy.conditions and not has_load(cond):
            return _guarded(replace(copy, body=then).with_conditions(cond))
    given = [part for c in copy.conditions for part in conjuncts(c)]
    needed = [c for k, c in enumerate(given) if not any(implies(other, c) for other in given[k + 1 :])]
    return (If(conjunction(needed), copy.body),) if needed else copy.body


def _branches(copies: Sequence[_Copy], ifs: Sequence[If], site: DirectiveSite) -> tuple[Stmt, ...]:
    """Return a condition of all the copies once; conditions of their own go to the statements."""
    first = ifs[0]
    changed = names_in(tuple(s.cond for s in ifs)) & written_names(ifs)
    if changed:
        raise site.refuse(f"unroll of {site.loop.var} with jam: the inner loop is guarded by a condition on "
                          f"{min(changed)}, which that loop may change")  # fmt: skip
    asked = any(c.conditions for c in copies) and has_load(first.cond)
    if all(s.cond == first.cond for s in ifs) and not asked:
        then = _side_by_side([replace(c, body=s.then) for c, s in zip(copies, ifs, strict=True)], site)
        other = _side_by_side([replace(c, body=s.other) for c, s in zip(copies, ifs, strict=True)], site)
        return (replace(first, then=then, other=other),)
    asking = [conjuncts(s.cond) for s in ifs]
    common = _common(asking)
    if common and not any(s.other for s in ifs):
        own = [replace(c, body=s.then).with_conditions(*(p for p in parts if p not in common))
               for c, s, parts in zip(copies, ifs, asking, strict=True)]  # fmt: skip
        return (If(conjunction(common), _side_by_side(own, site)),)
    yes = [replace(c, body=s.then).with_conditions(s.cond) for c, s in zip(copies, ifs, strict=True)]
    no = [replace(c, body=s.other).with_conditions(Unary("!", s.cond)) for c, s in zip(copies, ifs, strict=True)]
    return (*_side_by_side(yes, site), *_side_by_side(no, site))


def _common(asking: Sequence[tuple[Expr, ...]]) -> list[Expr]:
    """Return what holds wherever one of the conditions does: of parts that differ by a constant, the weakest."""
    if len({len(parts) for parts in asking}) > 1:
        return []
    weakest = (next((a for a in ps if all(implies(b, a) for b in ps)), None) for ps in zip(*asking, strict=True))
    return [p for p in weakest if p is not None]


def implies(a: Expr, b: Expr) -> bool:
    """Return whether comparison ``a`` implies comparison ``b``, where the two differ by a constant only.

    False also where this is not known: the comparisons may overflow, or their difference is not a constant.

    >>> i, j = Var("i"), Var("j")
    >>> after = Binary(">=", i, j)
    >>> implies(Binary(">=", i, Binary("+", j, Const(1))), after), implies(after, Binary("<", j, i))
    (True, False)
    """
    sides = [_slack(e) for e in (a, b)]
    if sides[0] is None or sides[1] is None:
        return False
    apart = _apart(sides[1], sides[0])
    return apart is not None and not any(apart[:-1]) and apart[-1] >= 0


def _slack(e: Expr) -> Expr | None:
    """Return what is not negative where the comparison holds, and negative elsewhere.

    None where its sides may wrap.
    """
    match e:
        case Binary(">=" | "<=" | ">" | "<" as op, lhs, rhs) if cannot_overflow(lhs) and cannot_overflow(rhs):
            more = sub(lhs, rhs) if op.startswith(">") else sub(rhs, lhs)
            return more if op.endswith("=") else sub(more, Const(1, more.dtype))
    return None


def _one_loop(copies: Sequence[_Copy], loops: Sequence[Loop], site: DirectiveSite) -> tuple[Stmt, ...]:
    first = replace(loops[0], reductions=tuple(dict.fromkeys(r for f in loops for r in f.reductions)),
                    private_arrays=tuple(dict.fromkeys(a for f in loops for a in f.private_arrays)))  # fmt: skip
    bodies = [replace(c, body=f.body) for c, f in zip(copies, loops, strict=True)]
    data = next((n.array for f in loops for n in walk((f.lo, f.hi)) if isinstance(n, Load)), None)
    if data is not None and any(c.conditions for c in copies):
        # A copy that does not run there may have no such element.
        raise site.refuse(f"unroll of {site.loop.var} with jam: loop {first.var} is bounded by {data}, "
                          "under a condition that differs between the copies")  # fmt: skip
    if all((f.lo, f.hi) == (first.lo, first.hi) for f in loops):
        return (replace(first, body=_side_by_side(bodies, site)),)
    changed = names_in(tuple((f.lo, f.hi) for f in loops)) & written_names(loops)
    if changed:
        raise site.refuse(f"unroll of {site.loop.var} with jam: loop {first.var} may change {min(changed)}, "
                          "which bounds it")  # fmt: skip
    var = Var(first.var, first.dtype)
    lows, highs = [f.lo for f in loops], [f.hi for f in loops]
    least, greatest = _end(lows, greatest=False), _end(highs, greatest=True)
    partly = [c.with_conditions(*_within(f, var, least, greatest)) for c, f in zip(bodies, loops, strict=True)]
    if any(not _in_step(f, first) for f in loops):
        stepped = [c.with_conditions(_on_step(f, var)) for c, f in zip(partly, loops, strict=True)]
        return (replace(first, lo=least, hi=greatest, step=1, body=_side_by_side(stepped, site)),)
    start, end = _end(lows, greatest=True), _end(highs, greatest=False)
    common = replace(first, lo=start, hi=end, body=_side_by_side(bodies, site))
    some = _side_by_side(partly, site)
    before = replace(first, lo=least, hi=min_of(start, greatest), body=some)
    after = replace(first, lo=round_up_to_step(replace(first, lo=least), max_of(end, start)), hi=greatest, body=some)
    return (*((before,) if least != start else ()), common, *((after,) if end != greatest else ()))


def _within(loop: Loop, var: Var, least: Expr, greatest: Expr) -> tuple[Expr, ...]:
    """Return that the variable, which is between ``least`` and ``greatest``, is between the loop's own bounds."""
    low = (signed(Binary(">=", var, loop.lo)),) if loop.lo != least else ()
    return (*low, *((signed(Binary("<", var, loop.hi)),) if loop.hi != greatest else ()))


def _in_step(loop: Loop, first: Loop) -> bool:
    """Return whether both loops run through the same values where their ranges overlap."""
    apart = _apart(loop.lo, first.lo)
    return first.step == 1 or (apart is not None and all(c % first.step == 0 for c in apart))


def _on_step(loop: Loop, var: Var) -> Expr:
    step = Const(loop.step, loop.dtype)
    return Binary("==", mod(sub(var, loop.lo), step), Const(0, loop.dtype))


def _end(ends: Sequence[Expr], *, greatest: bool) -> Expr:
    """Return the least or greatest; where two differ by a constant, the one it is."""

    def better(a: Expr, b: Expr) -> Expr:
        apart = _apart(a, b)
        if apart is None or any(apart[:-1]):
            return (max_of if greatest else min_of)(a, b)
        return a if (apart[-1] >= 0) == greatest else b

    return reduce(better, ends)


def _apart(a: Expr, b: Expr) -> list[int] | None:
    """Return the coefficients of ``a - b``, that of 1 last, or None where it is no polynomial."""
    found = polynomial(sub(a, b))
    return None if found is None else [*(c for m, c in found.items() if m), found.get((), 0)]
