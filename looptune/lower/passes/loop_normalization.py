"""Normalise loops to count from 0, with a known maximal trip count, and unroll them.

for k in k0 .. min(k0 + 16, n): x[k]     for k in 0 .. min(16, n - k0): x[k0 + k]
for k in 0 .. min(16, n): x[k]           if n >= 16: for k in 0 .. 16: x[k]   else: for k in 0 .. n: x[k]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from looptune.ir.def_use import names_in, written_names
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import COMPARISONS, Assign, Binary, Const, Expr, If, Load, Loop, Stmt, Var
from looptune.ir.rewrite import map_blocks, substitute, walk
from looptune.ir.simplify import add, evaluate, overflows_never, sub
from looptune.lower.staged_tiles import staged_tiles


def normalize_loop(loop: Loop) -> Loop:
    """Return the loop and its inner loops normalised to begin at 0, except for one whose body changes its start."""
    if loop.lo != Const(0, loop.dtype) and not names_in(loop.lo) & written_names(loop.body):
        env: Mapping[str, Expr] = {loop.var: add(loop.lo, Var(loop.var, loop.dtype))}
        body = tuple(substitute(s, env) for s in loop.body)
        loop = replace(loop, lo=Const(0, loop.dtype), hi=_apart(loop.hi, loop.lo), body=body)
    return replace(loop, body=_each_counted(loop.body))


def unroll_loop(loop: Loop, vectors: Mapping[str, int]) -> Loop:
    """Return the loop with several iterations in one: as many as it states, or as one read of a tile has elements.

    ``vectors``: the number of elements of one read, by the tile's name.
    """
    along = [
        vectors[n.array]
        for n in walk(loop.body)
        if isinstance(n, Load)
        and n.array in vectors
        and affine_terms(n.index[0])[0].get(Var(loop.var, loop.dtype)) == 1
    ]
    match loop:
        case Loop(_, Const(0), Const(int(hi)), body) if loop.step == 1 and _straight(body):
            most = staged_tiles(loop).tile_unroll or max(along, default=1)
            copies = next(n for n in range(min(most, max(hi, 1)), 0, -1) if hi % n == 0)
            here = Var(loop.var, loop.dtype)
            moved = ({loop.var: add(here, Const(k, loop.dtype))} if k else {} for k in range(copies))
            return replace(loop, step=copies, body=tuple(substitute(s, env) for env in moved for s in body))
    return loop


def unroll_whole(body: tuple[Stmt, ...], most: int) -> tuple[Stmt, ...] | None:
    """Return the statements of all iterations one after the other, without conditions that are decided.

    None if a loop has a trip count that is not a number, or if there are more than ``most`` assignments.
    """
    left = most

    def straight(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        nonlocal left
        out: list[Stmt] = []
        for stmt in stmts:
            match stmt:
                case Loop(var, lo, hi, inner):
                    (p, c), (q, d) = affine_terms(lo), affine_terms(hi)
                    if p != q:
                        raise _TooLong
                    for k in range(0, d - c, stmt.step):
                        out += straight(tuple(substitute(s, {var: add(lo, Const(k, stmt.dtype))}) for s in inner))
                case If(cond, then, other):
                    known = _decided(cond)
                    if known is None:
                        out.append(replace(stmt, then=straight(then), other=straight(other)))
                    else:
                        out += straight(then if known else other)
                case Assign():
                    left -= 1
                    if left < 0:
                        raise _TooLong
                    out.append(stmt)
                case _:
                    raise _TooLong
        return tuple(out)

    try:
        return straight(body)
    except _TooLong:
        return None


class _TooLong(Exception):
    """Statements are not written one after the other."""


def _decided(cond: Expr) -> bool | None:
    """Return whether a comparison holds whose sides differ by a number, or None."""
    match cond:
        case Binary(op, lhs, rhs) if op in COMPARISONS and overflows_never(lhs.dtype) and overflows_never(rhs.dtype):
            (p, c), (q, d) = affine_terms(lhs), affine_terms(rhs)
            return bool(evaluate(op, c, d)) if p == q else None
    return None


def split_full_strips(loop: Loop, vectors: Mapping[str, int]) -> tuple[Stmt, ...]:
    """Version a strip loop ``0 .. min(T, rest)`` on ``rest >= T``.

    A full strip has a constant trip count and is unrolled; otherwise the loop runs. Anything else is returned as it is.
    """
    match loop:
        case Loop(
            _, Const(0), Binary("min", Const(int(count)), rest) | Binary("min", rest, Const(int(count))), body
        ) if _straight(body):
            whole = unroll_loop(replace(loop, hi=Const(count, loop.hi.dtype)), vectors)
            return (If(Binary(">=", rest, Const(count, rest.dtype)), (whole,), (replace(loop, hi=rest),)),)
    return (loop,)


def _straight(body: tuple[Stmt, ...]) -> bool:
    return all(isinstance(s, Assign) for s in body)


def _each_counted(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return tuple(normalize_loop(s) if isinstance(s, Loop) else map_blocks(_each_counted, s) for s in body)


def _apart(hi: Expr, lo: Expr) -> Expr:
    """``hi - lo``, a number where it is one."""
    match hi:
        case Binary("min" | "max" as op, lhs, rhs):
            return Binary(op, _apart(lhs, lo), _apart(rhs, lo), span=hi.span)
    (p, c), (q, d) = affine_terms(hi), affine_terms(lo)
    return Const(c - d, hi.dtype) if p == q else sub(hi, lo)


def max_trip_count(loop: Loop) -> int:
    """Return an upper bound of the number of its iterations, or 0 if none is known."""
    ends = [loop.hi]
    found = []
    while ends:
        match ends.pop():
            case Binary("min", lhs, rhs):
                ends += [lhs, rhs]
            case hi:
                (p, c), (q, d) = affine_terms(hi), affine_terms(loop.lo)
                if p == q:
                    found.append(max(0, -(-(c - d) // loop.step)))
    return min(found, default=0)
