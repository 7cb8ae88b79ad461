"""Unswitch innermost loops so that a compiler vectorises them: no invariant condition, each element in one register.

    for j:                              if k == 0:
        if k == 0: C[i][j] *= b             for j: c = C[i][j]; c *= b; c += A_r * B[k][j]; c += A_r1 * …; C[i][j] = c
        C[i][j] += A_r * B[k][j]     ==>  else:
        C[i][j] += A_r1 * B[k + 1][j]       for j: c = C[i][j]; c += A_r * B[k][j]; c += A_r1 * …; C[i][j] = c

LLVM moves a condition out of short loops only, and for each store in between it has to prove that the store does not
change what is loaded next: four rows of four products reached 34 GFLOP/s per core without this pass and 108 with it. If
there are many conditions, as in blocks at the edge of a triangle, there is one loop without any, for the case that all
hold, and one that evaluates them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from looptune.ir.def_use import names_in, referenced_names, written_names
from looptune.ir.nodes import Assign, Binary, Expr, If, Load, Loop, Node, Stmt, Var
from looptune.ir.rewrite import conjunction, has_loop, map_blocks, rewrite, walk
from looptune.lower.passes.scalar_replacement import never_alias

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan

CONDITIONS, FEW = 2, 4
"""So many are moved out of a loop one by one, each of which doubles it; of more than FEW none is."""


def unswitch_kernel(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with the loops that a core runs unswitched.

    Of a loop whose iterations the cores share, only the loops in it are unswitched.
    """
    if not kernel.loops and kernel.team is not None:
        (loop,) = kernel.serial
        assert isinstance(loop, Loop), "the kernel is one loop"
        taken = referenced_names((kernel.team.trees[0].loop,))
        return replace(kernel, serial=(replace(loop, body=unswitch_innermost(loop.body, taken)),))
    taken = {*referenced_names(kernel.body), *referenced_names(kernel.loops)}
    return replace(kernel, serial=unswitch_innermost(kernel.serial, taken))


def unswitch_innermost(body: tuple[Stmt, ...], taken: Iterable[str]) -> tuple[Stmt, ...]:
    """Return the body with its innermost loops unswitched; ``taken``: the names in use, which is extended."""
    used = set(taken)
    free = (name for k in count() if (name := f"held{k}") not in used)
    return _block(body, lambda: next(free))


def _block(body: tuple[Stmt, ...], fresh: Callable[[], str]) -> tuple[Stmt, ...]:
    return tuple(made for stmt in body for made in _made(stmt, fresh))


def _made(stmt: Stmt, fresh: Callable[[], str]) -> Iterator[Stmt]:
    if isinstance(stmt, Loop) and not has_loop(stmt.body):
        yield from _unconditional(stmt, fresh)
    else:
        yield map_blocks(lambda block: _block(block, fresh), stmt)


def _unconditional(loop: Loop, fresh: Callable[[], str]) -> Iterator[Stmt]:
    """Without the conditions that it does not change, as far as they are few, or all hold."""
    asked = tuple(_asked(loop))
    some = tuple(_unswitched(loop, CONDITIONS, fresh)) if len(asked) <= FEW else (loop,)
    if len(asked) <= CONDITIONS:
        yield from some
        return
    body = loop.body
    for cond in asked:
        body = _without(body, cond, 0)
    every = conjunction(asked)
    yield If(every, tuple(_unswitched(replace(loop, body=body), CONDITIONS, fresh)), some)


def _unswitched(loop: Loop, left: int, fresh: Callable[[], str]) -> Iterator[Stmt]:
    """Under its first condition that it does not change, and otherwise, as two loops."""
    cond = next(_asked(loop), None)
    if cond is None or not left:
        yield replace(loop, body=_held(loop.body, fresh))
        return
    then, other = (
        tuple(_unswitched(replace(loop, body=_without(loop.body, cond, k)), left - 1, fresh)) for k in (0, 1)
    )
    yield If(cond, then, other)


def _asked(loop: Loop) -> Iterator[Expr]:
    """Yield the conditions of its statements that it does not change, each once."""
    changing = written_names(loop.body) | {loop.var}
    conds = (s.cond for s in loop.body if isinstance(s, If))
    yield from dict.fromkeys(cond for cond in conds if _stays(cond, changing))


def _without(body: tuple[Stmt, ...], cond: Expr, branch: int) -> tuple[Stmt, ...]:
    """Return what is left where the answer is known."""
    return tuple(
        s for stmt in body
        for s in ((stmt.then, stmt.other)[branch] if isinstance(stmt, If) and stmt.cond == cond else (stmt,))
    )  # fmt: skip


def _stays(cond: Expr, changing: set[str]) -> bool:
    """Tell whether the condition is invariant and may be evaluated even if there is no iteration.

    It then reads no element and divides nothing.
    """
    asks = all(not isinstance(n, Load) and not (isinstance(n, Binary) and n.op in "/%") for n in walk(cond))
    return asks and not names_in(cond) & changing


def _held(body: tuple[Stmt, ...], fresh: Callable[[], str]) -> tuple[Stmt, ...]:
    """Return the elements that several assignments of an iteration use and one changes, in variables meanwhile."""
    if not all(isinstance(s, Assign) for s in body):
        return body
    run = tuple(s for s in body if isinstance(s, Assign))
    changed = written_names(run)
    often = Counter(e for s in run for e in {n for n in walk(s) if isinstance(n, Load)})
    stored = list(dict.fromkeys(s.target for s in run if isinstance(s.target, Load)))
    used = {e.array: {o.index for o in often if o.array == e.array} for e in stored}
    env = {
        e: Var(fresh(), e.dtype) for e in stored
        if often[e] > 1 and not names_in(e.index) & changed
        and all(o == e.index or never_alias(e.index, o, frozenset()) for o in used[e.array])
    }  # fmt: skip
    if not env:
        return body
    same: dict[Node, Var] = dict(env.items())
    first = {e: next(s for s in run if e in set(walk(s))) for e in env}
    reads = [e for e in env if first[e].target != e or e in set(walk(first[e].value))]
    return (
        *(Assign(env[e], e) for e in reads),
        *rewrite(same.get, run),
        *(Assign(e, v) for e, v in env.items()),
    )
