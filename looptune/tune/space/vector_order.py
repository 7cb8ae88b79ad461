"""Sections of a derived space for a CPU in which innermost loops go along rows, so that their iterations are vectors.

    for p: { s[p] = 0; for k: s[p] += A[k] * C[k][p] }        loop p: distribute; loop p.2: permute k, p

A loop of which neighbouring iterations use neighbouring elements, or the same, in all accesses of the innermost loop
becomes the innermost one; what else stands in it has a loop of its own. Each nest for which that is legal is in such an
order at once: alone, and together with copies for each iteration of an outermost loop, whose iterations cores share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Load, Loop, While
from looptune.ir.rewrite import walk
from looptune.schedule.binding import loop_label
from looptune.tune.space import forms
from looptune.tune.space.patterns import Patterns, is_smooth, nested

if TYPE_CHECKING:
    from looptune.ir.nodes import Stmt

JAM = "{ | unroll {2, 4, 8}, jam }"


@dataclass(frozen=True, slots=True)
class _Nest:
    """Loops of a nest, outermost first: the first one is to be the innermost, the last one is so."""

    loops: tuple[Loop, ...]

    @property
    def order(self) -> str:
        first, *others = self.loops
        return ", ".join(f.var for f in (*others, first))

    @property
    def is_perfect(self) -> bool:
        return all(f.body == (inner,) for f, inner in pairwise(self.loops))


def sections(found: Patterns) -> Iterator[str]:
    """Yield the orders of the codelet as it is, and of the codelet with copies of what iterations reuse."""
    copies = forms.outermost_expansions(found.analysis)
    for lines in (copies, ()) if copies and found.legal(copies) else ((),):
        form = replace(found, lines=(*found.lines, *lines))
        split = _distributions(form)
        after = replace(form, lines=(*form.lines, *split)) if split else form
        turned, loops = _orders(after)
        if turned:
            jam = [f"loop {', '.join(loops)}: {JAM}"]
            yield "\n".join(["for cpu", *after.lines, *turned, *jam])


def _distributions(found: Patterns) -> list[str]:
    """Return the lines that make nests perfect in which a loop is to move inside."""
    lines: list[str] = []
    for nest in _nests(found):
        line = f"loop {loop_label(nest.loops[0])}: distribute"
        if not nest.is_perfect and line not in lines and found.legal([*lines, line]):
            lines.append(line)
    return lines


def _orders(found: Patterns) -> tuple[list[str], list[str]]:
    """Return the lines that make a loop the innermost one of its nest, and the labels of the loops then around it."""
    lines: list[str] = []
    around: list[str] = []
    for nest in _nests(found):
        line = f"loop {loop_label(nest.loops[0])}: permute {nest.order}"
        if nest.is_perfect and found.legal([*lines, line]):
            lines.append(line)
            around.append(loop_label(nest.loops[-1]))
    return lines, around


def _nests(found: Patterns) -> Iterator[_Nest]:
    """Yield the nests whose innermost loop leaves rows while one around it, in which others are, goes along them.

    A loop that is the only one for the cores stays where it is.
    """
    for around, leaf in nested(found.body):
        if any(isinstance(n, Loop | While) for n in walk(leaf.body)) or is_smooth(leaf, leaf.var):
            continue
        for k in range(len(around) - 1, -1, -1):
            loops = (*around[k:], leaf)
            if is_smooth(leaf, around[k].var) and _is_used(leaf.body, around[k].var):
                if not found.parallel(around[k]) or any(map(found.parallel, (*around[:k], *loops[1:]))):
                    yield _Nest(loops)
                break


def _is_used(body: tuple[Stmt, ...], var: str) -> bool:
    """Tell whether a subscript names the variable."""
    return any(var in names_in(n.index) for n in walk(body) if isinstance(n, Load))
