"""Fuse the initial values of reduction targets into the place where partial results are combined.

    y = 0                                       y_own = 0; for j (shared): y_own += ...
    y_own = 0; for j (shared): y_own += ... ==> y = 0 + the lanes' y_own
    y = y + the lanes' y_own

This is not done if something else uses the element before the sum is complete.

A loop that initialises sums is fused into the kernel that adds the partial sums, which saves a launch:

    for j: y[j] = 0                              for p in 0..P (blocks): parts of y
    for i: for j: y[j] += ..., in parts   ==>    for j: y[j] = 0; add the parts
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from looptune.ir.def_use import referenced_names, target_name, written_names
from looptune.ir.nodes import Assign, Cast, Const, Expr, Load, Loop, Stmt, Var
from looptune.ir.rewrite import substitute, walk
from looptune.lower.passes.scalar_replacement import never_alias
from looptune.lower.team import Phase, TeamBranch, TeamLoop, TeamReduce, TeamSingle

if TYPE_CHECKING:
    from looptune.ir.accumulators import Accumulator


def fuse_initializers(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """Return the phases with initialising assignments moved into the reduction trees that follow them."""
    match phases:
        case (TeamSingle() as alone, TeamReduce() as tree, *later):
            left, tree = _moved(alone, tree)
            return (*([left] if left.body else []), tree, *fuse_initializers(tuple(later)))
        case (first, *later):
            return (_inside(first), *fuse_initializers(tuple(later)))
    return ()


def _inside(phase: Phase) -> Phase:
    match phase:
        case TeamLoop(_, body):
            return replace(phase, body=fuse_initializers(body))
        case TeamBranch(_, then, other):
            return replace(phase, then=fuse_initializers(then), other=fuse_initializers(other))
    return phase


def _moved(alone: TeamSingle, tree: TeamReduce) -> tuple[TeamSingle, TeamReduce]:
    if not are_disjoint(tree.accumulators):
        return alone, tree
    left: list[Stmt] = []
    first: dict[Var | Load, Const] = {}
    targets = {a.target for a in tree.accumulators}
    for stmt in reversed(alone.body):
        match stmt:
            case Assign(target, value) if target in targets - first.keys():
                begins = _constant(value, target.dtype)
                if begins is not None and target_name(target) not in referenced_names(left):
                    first[target] = begins
                    continue
        left.insert(0, stmt)
    kept = replace(
        alone, body=tuple(left), broadcast=tuple(v for v in alone.broadcast if v.name in written_names(left))
    )
    return kept, replace(tree, accumulators=tuple(replace(a, first=first.get(a.target)) for a in tree.accumulators))


def _constant(value: Expr, dtype: str) -> Const | None:
    """Return the value as a constant of the type, or None where it is no number of that."""
    match value:
        case Cast(to, Const(number)) | Const(number, to) if to == dtype or isinstance(value, Const):
            same = np.array(number).astype(dtype).item()
            return Const(same, dtype) if same == number else None
    return None


def are_disjoint(into: Iterable[Accumulator]) -> bool:
    """Return whether no two of the targets can be the same element."""
    elements = [a.target for a in into if isinstance(a.target, Load)]
    return all(a.array != b.array or never_alias(a.index, b.index, frozenset()) for a, b in combinations(elements, 2))


def fuse_initialization(begin: Stmt, made: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
    """Fuse an initialisation loop into the combine nest of the split reduction after it, which saves a launch.

    Return the two nests, or None if the loop does more than to assign the elements that are added to, or if it assigns
    what the parts need.
    """
    match begin, made:
        case Loop(mode="parallel", reductions=(), thread_axis="") as first, (Loop() as shares, Loop() as sums):
            body = substitute(first.body, {first.var: Var(sums.var, sums.dtype)})
        case _:
            return None
    changed = written_names((sums,))
    elements = {n for n in walk(sums.body) if isinstance(n, Load) and n.array in changed}
    touched = {n for n in walk(body) if isinstance(n, Load) and n.array in changed}
    simple = all(isinstance(s, Assign) and isinstance(s.target, Load) and s.target in elements for s in body)
    same = (first.lo, first.hi, first.step) == (sums.lo, sums.hi, sums.step)
    early = written_names(body) & referenced_names((shares,)) or referenced_names(body) & written_names((shares,))
    if not (simple and same and touched <= elements) or early:
        return None
    return shares, replace(sums, body=(*body, *sums.body))
