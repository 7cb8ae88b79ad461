"""Find the loops that a directive requires to be host loops, with the loops around them, and check that they can be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import takewhile

from looptune.core.errors import InfeasibleDirective
from looptune.ir.def_use import continuing_condition, names_in
from looptune.ir.nodes import Call, Expr, If, Load, Loop, Stmt, While
from looptune.ir.rewrite import walk
from looptune.schedule.directives.persistent import PersistentBlocks

PERSISTENT = PersistentBlocks.word


def persistent_blocks(loop: Loop) -> int:
    """Return the blocks per multiprocessor of a persistent loop, or 0 if the host makes its launches."""
    said = loop.annotation(PersistentBlocks)
    return 0 if said is None else said.blocks_per_sm


def check_on_host(loop: Loop, around: tuple[Stmt, ...], changed: Collection[str]) -> None:
    """Raise InfeasibleDirective where the host does not run the loop, which stands in ``around``."""
    if any(isinstance(f, Loop) and f.mode != "sequential" for f in around):
        raise InfeasibleDirective(loop, "a loop around it is parallel")
    if loop.mode != "sequential":
        raise InfeasibleDirective(loop, "its iterations are independent, and it needs a sequential loop")
    if any(_of_data(s, changed) for s in (*around, loop)):
        raise InfeasibleDirective(
            loop, "its bounds or a condition around it depend on array elements, which the host does not read"
        )


def check_launched(loop: Loop, around: tuple[Stmt, ...], changed: Collection[str]) -> None:
    """Raise InfeasibleDirective where the host does not launch the nest of a loop that blocks share.

    ``around`` is what the loop stands in. One thread then runs all of it: a condition on data, or a loop that runs as
    often as data say, is in a kernel. The host reads the condition of a ``while``, and of an ``if`` in one, or in a
    loop that data end early.
    """
    outside = tuple(takewhile(lambda s: not (isinstance(s, Loop) and s.mode in ("parallel", "thread")), around))
    loops = (s for s in around if isinstance(s, Loop))
    if any(_of_data(s, changed) for s in (*_not_read(outside), *loops)):
        raise InfeasibleDirective(
            loop, "whether or how often it runs depends on data, so that one thread runs all of it"
        )


def _not_read(around: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yield the statements but those whose conditions the host reads from the device."""
    ends = False
    for stmt in around:
        match stmt:
            case While():
                ends = True
            case Loop():
                ends = ends or continuing_condition(stmt) is not None
                yield stmt
            case _ if not ends:
                yield stmt


Found = Iterator[tuple[Loop, tuple[Stmt, ...]]]
"""Loops, each with what it stands in."""


def outermost_loops_where(body: Iterable[Stmt], rule: Callable[[Loop], bool], around: tuple[Stmt, ...] = ()) -> Found:
    """Return the outermost loops for which the rule holds."""
    for stmt in body:
        match stmt:
            case Loop() if rule(stmt):
                yield stmt, around
            case Loop(body=inner) | While(body=inner):
                yield from outermost_loops_where(inner, rule, (*around, stmt))
            case If(_, then, other):
                yield from outermost_loops_where((*then, *other), rule, (*around, stmt))


def _of_data(stmt: Stmt, changed: Collection[str]) -> bool:
    """Whether, or how often, what is in the statement runs depends on elements of arrays, or on what is computed."""
    match stmt:
        case Loop(lo=lo, hi=hi):
            decides: tuple[Expr, ...] = (lo, hi)
        case If(cond):
            decides = (cond,)
        case _:
            return True
    return bool(names_in(decides) & set(changed)) or any(isinstance(n, (Load, Call)) for n in walk(decides))
