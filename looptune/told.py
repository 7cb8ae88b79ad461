"""Sums that a loop makes: which loop in it tells them apart, and under what condition it makes them; see ``dealt``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from looptune.errors import Unfit
from looptune.ir import Assign, Bin, Expr, If, Load, Loop, Reduced, Stmt, Un, Var, While
from looptune.pretty import show
from looptune.rewrite import walk, walk_stmts
from looptune.scope import assigned, names_in, written


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


def wanted(loops: Sequence[Loop], target: Var | Load, each: Sequence[Loop] = ()) -> Expr | None:
    """What holds, as far as the loops do not change it, wherever they accumulate into ``target``, which may be no
    element elsewhere; None where nothing has to. ``each``: loops inside that tell the target apart."""
    moving = {f.var for f in walk_stmts(tuple(loops)) if isinstance(f, Loop)} | written(loops)
    moving -= {f.var for f in each}
    found = [[c for c in conditions if not names_in(c) & moving] for conditions in _conditions(loops, target, ())]
    common = [c for c in found[0] if all(c in other for other in found[1:])] if found else []
    return reduce(lambda a, b: Bin("&&", a, b), dict.fromkeys(common)) if common else None


def _conditions(body: Sequence[Stmt], target: Var | Load, around: tuple[Expr, ...]) -> Iterator[tuple[Expr, ...]]:
    for stmt in body:
        match stmt:
            case Assign(to) if to == target:
                yield around
            case If(cond, then, other):
                asked = () if any(isinstance(n, Load) for n in walk(cond)) else (cond,)
                yield from _conditions(then, target, (*around, *asked))
                yield from _conditions(other, target, (*around, *(Un("!", c) for c in asked)))
            case Loop(body=inner) | While(body=inner):
                yield from _conditions(inner, target, around)


def unfit(loop: Loop, inner: Loop) -> Unfit:
    return Unfit(loop, f"loop {inner.var} inside of it tells its sums apart: permute it inwards")
