"""First values that one lane assigns to what its team reduces right afterwards: where the sums are joined instead.

    lane 0: y[i] = 0                            y_own = 0; for j (shared): y_own += ...
    y_own = 0; for j (shared): y_own += ... ==> y_other = 0 + the lanes' y_own, known to all of them
    lane 0: y[i] = y[i] + the lanes' y_own      lane 0: y[i] = y_other
    for j (shared): x[j] += y[i]                for j (shared): x[j] += y_other

Where no lane but the first needs the sum afterwards, it is not made known: lane 0: y[i] = 0 + the lanes' y_own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np

from looptune.ir import Assign, Cast, Const, Expr, Load, Loop, Node, Stmt, Var
from looptune.registers import distinct
from looptune.rewrite import rewrite, walk
from looptune.scope import names, names_in, written
from looptune.team import Accumulator, Alone, Branch, Phase, Repeat, Spread, Tree, called


def begun(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """The phases with such assignments in the trees that follow them."""
    match phases:
        case (Alone() as alone, Tree() as tree, *later):
            left, tree = _moved(alone, tree)
            done, after = _told(tree, tuple(later))
            return (*([left] if left.body else []), *done, *begun(after))
        case (first, *later):
            return (_inside(first), *begun(tuple(later)))
    return ()


def _inside(phase: Phase) -> Phase:
    match phase:
        case Repeat(_, body):
            return replace(phase, body=begun(body))
        case Branch(_, then, other):
            return replace(phase, then=begun(then), other=begun(other))
    return phase


def _moved(alone: Alone, tree: Tree) -> tuple[Alone, Tree]:
    if not apart(tree.into):
        return alone, tree
    left: list[Stmt] = []
    first: dict[Var | Load, Const] = {}
    targets = {a.target for a in tree.into}
    for stmt in reversed(alone.body):
        match stmt:
            case Assign(target, value) if target in targets - first.keys():
                begins = _constant(value, target.dtype)
                if begins is not None and called(target) not in names(left):
                    first[target] = begins
                    continue
        left.insert(0, stmt)
    kept = replace(alone, body=tuple(left), known=tuple(v for v in alone.known if v.name in written(left)))
    return kept, replace(tree, into=tuple(replace(a, first=first.get(a.target)) for a in tree.into))


def _constant(value: Expr, dtype: str) -> Const | None:
    """The value as a constant of the type; None where it is no number of that."""
    match value:
        case Cast(to, Const(number)) | Const(number, to) if to == dtype or isinstance(value, Const):
            same = np.array(number).astype(dtype).item()
            return Const(same, dtype) if same == number else None
    return None


def _told(tree: Tree, later: tuple[Phase, ...]) -> tuple[tuple[Phase, ...], tuple[Phase, ...]]:
    """The tree, and what comes after it, with the sums that other lanes read there in a local of each."""
    needed = {n for p in later if not isinstance(p, Alone) for n in _nodes((p,))}
    found = [a for a in tree.into if a.first is not None and a.target in needed]
    changing = written(n for n in _nodes(later) if isinstance(n, Assign))
    changing |= {n.var for n in _nodes(later) if isinstance(n, Loop)}
    sums: dict[Node, Var] = {
        a.target: a.other
        for a in found if isinstance(a.target, Load) and not names_in(a.target) & changing
    }  # fmt: skip
    if not sums:
        return (tree,), later
    into = tuple(replace(a, target=sums.get(a.target, a.target)) for a in tree.into)
    stores = tuple(Assign(n, v) for n, v in sums.items() if isinstance(n, Load))
    return (replace(tree, into=into), Alone(stores)), tuple(_with(p, sums) for p in later)


def _nodes(phases: Iterable[Phase]) -> Iterable[Node]:
    for phase in phases:
        match phase:
            case Alone(body):
                yield from walk(body)
            case Spread(loop):
                yield from walk(replace(loop, reduces=()))
            case Tree(loop, into):
                yield from walk((replace(loop, reduces=()), *(a.update for a in into)))
            case Repeat(loop, body):
                yield from (*walk(replace(loop, reduces=())), *_nodes(body))
            case Branch(cond, then, other):
                yield from (*walk(cond), *_nodes((*then, *other)))


def _with(phase: Phase, env: Mapping[Node, Var]) -> Phase:
    """With locals in place of elements."""
    match phase:
        case Alone(body):
            return replace(phase, body=rewrite(env.get, body))
        case Spread(loop) | Tree(loop):
            return replace(phase, loop=rewrite(env.get, loop))
        case Repeat(loop, body):
            return replace(phase, loop=rewrite(env.get, loop), body=tuple(_with(p, env) for p in body))
        case Branch(cond, then, other):
            yes, no = (tuple(_with(p, env) for p in branch) for branch in (then, other))
            return Branch(rewrite(env.get, cond), yes, no)


def apart(into: Iterable[Accumulator]) -> bool:
    """No two of the elements are one."""
    elements = [a.target for a in into if isinstance(a.target, Load)]
    return all(a.array != b.array or distinct(a.index, b.index, frozenset()) for a, b in combinations(elements, 2))
