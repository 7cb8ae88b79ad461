"""Compact a grid with idle blocks: only blocks with work are launched, two rows side by side.

    for i: for j >= i        x x x x      row 0, then row 3:    x x x x x
                               x x x      row 1, then row 2:    x x x x x
                                 x x
                                   x

    block (p, q) of the launch ─▶ (first of row q) + p in row q, or the rest of p in the last row but q

A block has work if the condition of the kernel's body, which is linear in the variables of the grid, can hold for one
of its threads; this is linear in the block's own numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd
from typing import TYPE_CHECKING

from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import Binary, Const, Expr, If, Loop, Stmt, Var
from looptune.ir.rewrite import walk
from looptune.ir.simplify import add, mul
from looptune.lower.compact_grid import CompactGrid
from looptune.schedule.directives.pack import SkipIdleBlocks

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan

WORTH = 0.1
"""Of the blocks so many have to be idle."""


def is_launched(packing: CompactGrid, x: Expr, y: Expr) -> Expr:
    """Return the condition under which block (x, y) is launched."""
    terms = add(add(mul(Const(packing.a), x), mul(Const(packing.b), y)), Const(packing.c))
    return Binary(">=", terms, Const(0))


def compact_kernel(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with its grid as it is launched, where its threads are on their own or share tiles."""
    loops = (f for f in (*kernel.loops, *walk(kernel.body)) if isinstance(f, Loop))
    alone = kernel.team is None and not kernel.keeps_tiles
    if len(kernel.axes) < 2 or not alone or all(f.annotation(SkipIdleBlocks) is None for f in loops):
        return kernel
    y, x = kernel.axes
    return replace(kernel, packing=compact_grid(x, y, (kernel.threads("x"), kernel.threads("y")), kernel.body))


def compact_grid(x: Loop, y: Loop, per: tuple[int, int], body: tuple[Stmt, ...]) -> CompactGrid | None:
    """Return the compacted grid of the loops ``x`` and ``y``, each with ``per`` iterations in a block.

    None if its extents are not constants, or if too few blocks are idle.
    """
    match x.lo, x.hi, y.lo, y.hi:
        case Const(int(left)), Const(int(right)), Const(int(top)), Const(int(bottom)):
            wide, high = x.step * per[0], y.step * per[1]
            columns, rows = -(-(right - left) // wide), -(-(bottom - top) // high)
            needed = (_of_blocks(*terms, (left, wide, x.step), (top, high, y.step)) for terms in _needed(body, x, y))
            found = [CompactGrid(*terms, columns, rows) for terms in needed]
            best = min(found, key=_launched, default=None)
            return best if best is not None and _launched(best) <= (1 - WORTH) * columns * rows else None
    return None


def _launched(packing: CompactGrid) -> int:
    width, height = packing.blocks
    return width * height


Terms = tuple[int, int, int]
"""Factors of the two variables, and what is added."""


def _needed(body: tuple[Stmt, ...], x: Loop, y: Loop) -> list[Terms]:
    """Return what holds, as ``a x + b y + c >= 0``, wherever one of the statements does something."""
    every: list[dict[tuple[int, int], int]] = []
    for stmt in body:
        match stmt:
            case If(cond, then, ()):
                terms = [*_linear(cond, x, y), *_needed(then, x, y)]
            case Loop(body=inner):
                terms = _needed(inner, x, y)
            case _:
                return []
        strict: dict[tuple[int, int], int] = {}
        for a, b, c in terms:
            strict[a, b] = min(c, strict.get((a, b), c))
        every.append(strict)
    common = set.intersection(*(set(strict) for strict in every)) if every else set()
    return [(a, b, max(strict[a, b] for strict in every)) for a, b in sorted(common)]


def _linear(cond: Expr, x: Loop, y: Loop) -> Iterator[Terms]:
    """Yield the conjuncts that are ``a x + b y + c >= 0``."""
    match cond:
        case Binary("&&", lhs, rhs):
            yield from (*_linear(lhs, x, y), *_linear(rhs, x, y))
        case Binary("<" | "<=" | ">" | ">=" as op, lhs, rhs) if not any(_unsigned(n) for n in walk(cond)):
            more, less = (lhs, rhs) if op in (">", ">=") else (rhs, lhs)
            terms, constant = affine_terms(Binary("-", more, less))
            own = {x.var: 0, y.var: 0}
            if all(isinstance(t, Var) and t.name in own for t in terms):
                own |= {t.name: k for t, k in terms.items() if isinstance(t, Var)}
                if own[x.var]:
                    yield own[x.var], own[y.var], constant - (op in ("<", ">"))


def _unsigned(n: object) -> bool:
    """Tell whether what wraps at zero is not linear."""
    return str(getattr(n, "dtype", "")).startswith("uint")


def _of_blocks(a: int, b: int, c: int, x: Terms, y: Terms) -> Terms:
    """Return the condition on the numbers of blocks: true if it can hold for one of their iterations.

    These begin at ``start``, with a step, at distances of the block's width.
    """
    most = c
    for k, (start, width, step) in ((a, x), (b, y)):
        most += k * start + max(0, k * (width - step))
    a, b = a * x[1], b * y[1]
    shared = gcd(a, b)
    return a // shared, b // shared, most // shared
