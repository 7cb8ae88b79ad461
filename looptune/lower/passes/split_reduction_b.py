"""Sums that a loop makes: which loop in it tells them apart, and under what condition it makes them; see ``lower/passes/split_reduction``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from looptune.core.errors import Unfit
from looptune.ir.c_printer import show
from looptune.ir.def_use import assigned, names_in, written
from looptune.ir.intervals import harmless, has_iteration
from looptune.ir.nodes import Assign, Bin, Const, Expr, If, Load, Loop, Reduced, Stmt, Un, Var, While
from looptune.ir.rewrite import conjuncts, walk, walk_stmts


@dataclass(frozen=True, slots=True)
class Told:
    """``targets`` that the loop in ``each`` tells apart; of no loop, by those around what is dealt out alone."""

    each: tuple[Loop, ...]
    targets: tuple[Reduced, ...]


def by_loops(loops: Sequence[Loop], targets: Sequence[Reduced]) -> list[Told]:
    """By the loops inside of those that are dealt out, of which a remainder has its own; [] where none does.

    What an iteration of such a loop adds to is its own, for the loop is parallel.
    """
    inner = [f for loop in loops for f in walk_stmts(loop.body) if isinstance(f, Loop)]
    changing = {f.var for f in (*loops, *inner)}
    if not any(names_in(r.target.index) & changing for r in targets if isinstance(r.target, Load)):
        return []
    found: dict[Loop, dict[Reduced, None]] = {}
    for f in inner:
        made = assigned(f.body)
        mine = [r for r in targets if r.target in made and f.var in names_in(r.target)]
        alone = f.mode == "parallel" and all(names_in(r.target) & changing == {f.var} for r in mine)
        if mine and (not alone or names_in((f.lo, f.hi)) & (changing | written(loops))):
            raise unfit(loops[0], f)
        if mine:
            each = Loop(f.var, f.lo, f.hi, (), f.step, "parallel", dtype=f.dtype, block=f.block, vectors=f.vectors)
            found.setdefault(each, {}).update(dict.fromkeys(mine))
    told = [r for mine in found.values() for r in mine]
    twice = next((r for r in told if told.count(r) > 1), None)
    if twice is not None:
        raise Unfit(loops[0], f"loops inside of it that run differently add to {show(twice.target)}")
    rest = tuple(r for r in targets if r not in told)
    among = next((f for f in inner if any(f.var in names_in(r.target) for r in rest)), None)
    if among is not None:
        raise unfit(loops[0], among)
    return [*(Told((each,), tuple(mine)) for each, mine in found.items()), *([Told((), rest)] if rest else [])]


@dataclass(frozen=True, slots=True)
class Wanted:
    """``given``: what holds wherever loops accumulate into a target, as far as they do not change it; None for always.
    ``sure``: they do wherever that holds, so that the target is an element there and no other iteration's."""

    given: Expr | None
    sure: bool


def wanted(loops: Sequence[Loop], target: Var | Load, each: Sequence[Loop] = ()) -> Wanted:
    """Where the ``loops`` accumulate into ``target``; ``each``: loops inside that tell the target apart."""
    moving = {f.var for f in walk_stmts(tuple(loops)) if isinstance(f, Loop)} | written(loops)
    moving -= {f.var for f in each}
    apart = {f.var for f in each}
    around = [dict.fromkeys(_conditions(f.body, target, (), apart, (f,))) for f in loops]
    if any(asked != around[0] for asked in around):
        around = [dict.fromkeys((*_first(f), *c) for c in asked) for f, asked in zip(loops, around, strict=True)]
    found = dict.fromkeys(lifted(c, moving) for asked in around for c in asked)
    sure = all(all_lifted for _, all_lifted in found) or ((), True) in found
    if any(not kept for kept, _ in found):
        return Wanted(None, sure)
    either = dict.fromkeys(reduce(lambda a, b: Bin("&&", a, b), kept) for kept, _ in found)
    return Wanted(reduce(lambda a, b: Bin("||", a, b), either), sure)


def lifted(around: Sequence[Expr], moving: Collection[str]) -> tuple[tuple[Expr, ...], bool]:
    """Of the conditions around a statement, outermost first, those that can be asked where ``moving`` is not known,
    and whether these are all of them.

    What looks at an element or divides may only be asked where the conditions before it hold.
    """
    kept: dict[Expr, None] = {}
    complete = True
    for condition in (part for c in around for part in conjuncts(c)):
        if names_in(condition).intersection(moving) or _loads(condition) or not (complete or harmless(condition)):
            complete = False
        elif condition != Const(1):
            kept[condition] = None
    return tuple(kept), complete


def _loads(e: Expr) -> bool:
    return any(isinstance(n, Load) for n in walk(e))


def _conditions(
    body: Sequence[Stmt],
    target: Var | Load,
    around: tuple[Expr, ...],
    apart: Collection[str],
    loops: tuple[Loop, ...],
) -> Iterator[tuple[Expr, ...]]:
    """The conditions ``around`` each accumulation into ``target``, in ``loops``, of which those over ``apart`` count as
    run; an inner loop that may have no iteration is one."""
    for stmt in body:
        match stmt:
            case Assign(to) if to == target:
                yield around
            case If(cond, then, other):
                yield from _conditions(then, target, (*around, cond), apart, loops)
                yield from _conditions(other, target, (*around, Un("!", cond)), apart, loops)
            case Loop(body=inner):
                ran = has_iteration(stmt, loops)
                asked = () if ran is None or stmt.var in apart else (ran,)
                yield from _conditions(inner, target, (*around, *asked), apart, (*loops, stmt))
            case While(cond, inner):
                yield from _conditions(inner, target, (*around, cond), apart, loops)


def _first(loop: Loop) -> tuple[Expr, ...]:
    ran = has_iteration(loop, ())
    return () if ran is None else (ran,)


def unfit(loop: Loop, inner: Loop) -> Unfit:
    return Unfit(loop, f"loop {inner.var} inside of it tells its sums apart: permute it inwards")
