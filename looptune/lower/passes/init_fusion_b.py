"""A loop that begins sums, done where the sums are added up.

    for j: y[j] = 0                              for p in 0..P (blocks): parts of y
    for i: for j: y[j] += ..., in parts   ==>    for j: y[j] = 0; add them up

It is a launch less.
"""

from __future__ import annotations

from dataclasses import replace

from looptune.ir.def_use import names, written
from looptune.ir.nodes import Assign, Load, Loop, Stmt, Var
from looptune.ir.rewrite import substitute, walk


def begun(begin: Stmt, made: tuple[Stmt, ...]) -> tuple[Stmt, ...] | None:
    """The nests that are ``made``, with what the loop before them does in that of the sums: a kernel less.

    None where it does more than to assign the elements that are added to, or what the parts need.
    """
    match begin, made:
        case Loop(mode="parallel", reduces=(), axis="") as first, (Loop() as shares, Loop() as sums):
            body = substitute(first.body, {first.var: Var(sums.var, sums.dtype)})
        case _:
            return None
    changed = written((sums,))
    elements = {n for n in walk(sums.body) if isinstance(n, Load) and n.array in changed}
    touched = {n for n in walk(body) if isinstance(n, Load) and n.array in changed}
    simple = all(isinstance(s, Assign) and isinstance(s.target, Load) and s.target in elements for s in body)
    same = (first.lo, first.hi, first.step) == (sums.lo, sums.hi, sums.step)
    early = written(body) & names((shares,)) or names(body) & written((shares,))
    if not (simple and same and touched <= elements) or early:
        return None
    return shares, replace(sums, body=(*body, *sums.body))
