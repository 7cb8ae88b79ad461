"""Loops that count from 0: how often they run at most, and several iterations written out in one.

for k in k0 .. min(k0 + 16, n): x[k]     for k in 0 .. min(16, n - k0): x[k0 + k]
for k in 0 .. min(16, n): x[k]           if n >= 16: for k in 0 .. 16: x[k]   else: for k in 0 .. n: x[k]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from looptune.ir.def_use import names_in, written
from looptune.ir.intervals import linear
from looptune.ir.nodes import Assign, Bin, Const, Expr, If, Load, Loop, Stmt, Var
from looptune.ir.rewrite import map_blocks, substitute, walk
from looptune.ir.simplify import add, sub


def counted(loop: Loop) -> Loop:
    """The loop, and those inside it, each from 0, but for one whose body changes what it begins with."""
    if loop.lo != Const(0, loop.dtype) and not names_in(loop.lo) & written(loop.body):
        env: Mapping[str, Expr] = {loop.var: add(loop.lo, Var(loop.var, loop.dtype))}
        body = tuple(substitute(s, env) for s in loop.body)
        loop = replace(loop, lo=Const(0, loop.dtype), hi=_apart(loop.hi, loop.lo), body=body)
    return replace(loop, body=_each_counted(loop.body))


def written_out(loop: Loop, vectors: Mapping[str, int]) -> Loop:
    """With as many iterations in one as it says, or as it reads elements of a tile at once: ``vectors``, by the tile's
    name."""
    along = [
        vectors[n.array] for n in walk(loop.body)
        if isinstance(n, Load) and n.array in vectors and linear(n.index[0])[0].get(Var(loop.var, loop.dtype)) == 1
    ]  # fmt: skip
    match loop:
        case Loop(_, Const(0), Const(int(hi)), body) if loop.step == 1 and _straight(body):
            most = loop.copies or max(along, default=1)
            copies = next(n for n in range(min(most, max(hi, 1)), 0, -1) if hi % n == 0)
            here = Var(loop.var, loop.dtype)
            moved = ({loop.var: add(here, Const(k, loop.dtype))} if k else {} for k in range(copies))
            return replace(loop, step=copies, body=tuple(substitute(s, env) for env in moved for s in body))
    return loop


def mostly_whole(loop: Loop, vectors: Mapping[str, int]) -> tuple[Stmt, ...]:
    """The loop, and where all strips but the last run a known number of times a loop that does, which is unrolled."""
    match loop:
        case Loop(_, Const(0), Bin("min", Const(int(count)), rest) | Bin("min", rest, Const(int(count))), body) if (
            _straight(body)
        ):
            whole = written_out(replace(loop, hi=Const(count, loop.hi.dtype)), vectors)
            return (If(Bin(">=", rest, Const(count, rest.dtype)), (whole,), (replace(loop, hi=rest),)),)
    return (loop,)


def _straight(body: tuple[Stmt, ...]) -> bool:
    return all(isinstance(s, Assign) for s in body)


def _each_counted(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return tuple(counted(s) if isinstance(s, Loop) else map_blocks(_each_counted, s) for s in body)


def _apart(hi: Expr, lo: Expr) -> Expr:
    """``hi - lo``, a number where it is one."""
    match hi:
        case Bin("min" | "max" as op, lhs, rhs):
            return Bin(op, _apart(lhs, lo), _apart(rhs, lo), span=hi.span)
    (p, c), (q, d) = linear(hi), linear(lo)
    return Const(c - d, hi.dtype) if p == q else sub(hi, lo)


def most_iterations(loop: Loop) -> int:
    """The most iterations it may have; 0 where that is not known."""
    ends = [loop.hi]
    found = []
    while ends:
        match ends.pop():
            case Bin("min", lhs, rhs):
                ends += [lhs, rhs]
            case hi:
                (p, c), (q, d) = linear(hi), linear(loop.lo)
                if p == q:
                    found.append(max(0, -(-(c - d) // loop.step)))
    return min(found, default=0)
