"""Sections of a derived space for a CPU in which innermost loops go along rows, so that their iterations are vectors.

    for p: { s[p] = 0; for k: s[p] += A[k] * C[k][p] }        loop p: distribute; loop p.2: permute k, p
    for i: for k: for j: X[i][j] += A[i][k] * B[k][j]         loop i, k: unroll 4, jam
    for p, for the cores: for k: s[p] += C[k][p]              loop p: unroll 8, jam        or: permute k, p
    for p, for the cores: for k: s[p][k] = f(s[p][k - 1])     loop p: unroll 8, jam

A loop of which neighbouring iterations use neighbouring elements, or the same, in all accesses of the innermost loop
becomes the innermost one; what else stands in it has a loop of its own. If it is the only loop for the cores, several
of its iterations run side by side instead, as do those around a recurrence, each of whose steps waits for the last. The
sums of a product are computed in tiles of registers: a few rows of the cores' loop, and a few steps.
All nests of a codelet are changed at once, with copies for each iteration of an outermost loop where it reuses them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Load, Loop
from looptune.ir.rewrite import has_loop, walk
from looptune.schedule.binding import identity, loop_label
from looptune.tune.space import forms
from looptune.tune.space.patterns import Patterns, is_smooth, nested

if TYPE_CHECKING:
    from looptune.ir.nodes import Stmt

JAM = "{ | unroll {2, 4, 8}, jam }"
"""Of the loop around an innermost one along rows, whose iterations then load its elements once for several steps."""
ROWS, STEPS = "{ unroll {4, 2}, jam | }", "{ unroll {4, 8}, jam | }"
"""Of a product: of the loop for the cores, and of the loop around the innermost one."""
SIDE_BY_SIDE = "unroll {8, 4, 16}, jam"
"""Of a loop for the cores, whose iterations are then the elements of a vector, or hide each other's latency."""


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
    """Yield the orders of the codelet with copies of what iterations reuse, or else of the codelet as it is."""
    copies = forms.outermost_expansions(found.analysis)
    for lines in (copies, ()) if copies and found.legal(copies) else ((),):
        form = replace(found, lines=(*found.lines, *lines))
        split = _distributions(form)
        after = replace(form, lines=(*form.lines, *split)) if split else form
        turned = _turned(after)
        if not turned:
            after = form
        orders = [_permute(nest) for nest in turned]
        tiles = _tiles(after, turned, orders)
        beside = _side_by_side(after, turned, orders, {rows for rows, _ in tiles})
        around = [loop_label(nest.loops[-1]) for nest in turned]
        more = [
            f"loop {', '.join(dict.fromkeys(loops))}: {choice}"
            for loops, choice in (
                ([rows for rows, _ in tiles], ROWS),
                ([steps for _, steps in tiles], STEPS),
                ([label for label in around if all(label != steps for _, steps in tiles)], JAM),
            )
            if loops
        ]
        if turned or beside or tiles:
            yield "\n".join(["for cpu", *after.lines, *orders, *beside, *more])
            return


def _tiles(found: Patterns, turned: Sequence[_Nest], orders: list[str]) -> list[tuple[str, str]]:
    """Return the labels of the loops of products that can be tiles of registers: of their rows, and of their steps."""
    tiles: list[tuple[str, str]] = []
    for s in (s for s in found.sums if len(s.around) > 1 and s.reused):
        nest = next((n for n in turned if any(f is s.loop for f in n.loops)), None)
        steps, leaf = (s.loop, s.around[-1]) if s.outside_target_loop else (s.around[-1], s.loop)
        steps = steps if nest is None else nest.loops[-1]
        rows = next((f for f in found.outer_threads if any(f is g for g in s.around)), None)
        if rows is None or rows is steps or (nest is None and not is_smooth(leaf, leaf.var)):
            continue
        pair = loop_label(rows), loop_label(steps)
        lines = [f"loop {label}: unroll 4, jam" for label in dict.fromkeys(x for both in (*tiles, pair) for x in both)]
        if pair not in tiles and found.legal([*orders, *lines]):
            tiles.append(pair)
    return tiles


def _distributions(found: Patterns) -> list[str]:
    """Return the lines that make nests perfect in which a loop is to move inside."""
    lines: list[str] = []
    for nest in _nests(found):
        line = f"loop {loop_label(nest.loops[0])}: distribute"
        if not nest.is_perfect and line not in lines and found.legal([*lines, line]):
            lines.append(line)
    return lines


def _turned(found: Patterns) -> list[_Nest]:
    """Return the nests of which a loop can become the innermost one."""
    nests: list[_Nest] = []
    for nest in _nests(found):
        if nest.is_perfect and found.legal([_permute(n) for n in (*nests, nest)]):
            nests.append(nest)
    return nests


def _permute(nest: _Nest) -> str:
    return f"loop {loop_label(nest.loops[0])}: permute {nest.order}"


def _nests(found: Patterns) -> Iterator[_Nest]:
    """Yield the nests whose innermost loop leaves rows while one around it, in which others are, goes along them.

    A loop that is the only one for the cores stays where it is.
    """
    for around, leaf in _leaves(found):
        nest = _across(around, leaf)
        if nest is not None and not _is_for_cores(found, around, nest):
            yield nest


def _leaves(found: Patterns) -> Iterator[tuple[tuple[Loop, ...], Loop]]:
    """Yield the loops without inner loops, with those around them."""
    for around, leaf in nested(found.body):
        if not has_loop(leaf.body):
            yield around, leaf


def _across(around: tuple[Loop, ...], leaf: Loop) -> _Nest | None:
    """Return the nest from the innermost loop along rows to one that leaves them, or None."""
    if is_smooth(leaf, leaf.var):
        return None
    fits = (k for k, f in enumerate(around) if is_smooth(leaf, f.var) and _is_used(leaf.body, f.var))
    last = max(fits, default=None)
    return None if last is None else _Nest((*around[last:], leaf))


def _is_for_cores(found: Patterns, around: tuple[Loop, ...], nest: _Nest) -> bool:
    """Tell whether the nest's first loop is the only parallel one of it and of the loops around it."""
    others = (*(f for f in around if f not in nest.loops), *nest.loops[1:])
    return found.parallel(nest.loops[0]) and not any(map(found.parallel, others))


def _side_by_side(found: Patterns, turned: Iterable[_Nest], orders: list[str], tiled: Collection[str]) -> list[str]:
    """Return lines for the loops of the cores that run several iterations at once, each with what else it may do.

    ``tiled``: the labels of loops of which tiles have several iterations already.
    """
    done = {identity(nest.loops[-1]) for nest in turned}
    lines: list[str] = []
    for loop in found.outer_threads:
        inside = [(around, leaf) for around, leaf in _leaves(found) if any(f is loop for f in around)]
        slow = [(around, leaf) for around, leaf in inside if identity(leaf) not in done and _waits(found, leaf)]
        place = f"loop {loop_label(loop)}"
        if not slow or loop_label(loop) in tiled or not found.legal([*orders, *lines, f"{place}: {SIDE_BY_SIDE}"]):
            continue
        nests = [_across(around, leaf) for around, leaf in slow]
        own = [n for n in nests if n is not None and n.loops[0] is loop and n.is_perfect]
        turns = [f"permute {n.order}" for n in own if found.legal([*orders, _permute(n)])]
        lines.append(f"{place}: {{ {' | '.join([SIDE_BY_SIDE, *turns])} | }}")
    return lines


def _waits(found: Patterns, leaf: Loop) -> bool:
    """Tell whether the iterations of an innermost loop are no vectors: it leaves rows, or is a recurrence."""
    recurs = not found.parallel(leaf) and all(identity(s.loop) != identity(leaf) for s in found.sums)
    return recurs or not is_smooth(leaf, leaf.var)


def _is_used(body: tuple[Stmt, ...], var: str) -> bool:
    """Tell whether a subscript names the variable."""
    return any(var in names_in(n.index) for n in walk(body) if isinstance(n, Load))
