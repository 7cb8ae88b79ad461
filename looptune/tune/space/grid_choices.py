"""Sections for loops whose iterations are independent: which of them are the grid, and what a thread runs.

volumes           for b: for o: for y: for x: out[b][o][y][x] = ...   three of four loops, others in the thread
recurrences       for i: for j: p[i][j] = f(p[i][j - 1])              few threads, each of which waits for itself
transpositions    for i: for j: b[j][i] = a[i][j]                     rows that become columns, turned in a tile
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Load, Loop
from looptune.ir.rewrite import has_loop, walk, walk_stmts
from looptune.lower.passes.block_copies import copy_block_elements
from looptune.lower.pipeline import lower
from looptune.lower.plan import kernels_in
from looptune.schedule.apply import schedule
from looptune.schedule.binding import at_loops, identity, loop_label
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.space.patterns import Patterns, band_of, outermost, strides
from looptune.tune.space.space import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL_PROBLEMS = "codelet: grid blocksize {32x8, 32x4, 32x2, 16x16}"
FEW_THREADS = "codelet: grid blocksize {8x1, 32x1, 16x1, 4x1, 128x1}"


def volumes(found: Patterns) -> Iterator[str]:
    """Yield grids over the two innermost of more than two parallel loops and one of the others, which takes turns.

    Without such a grid, which has the two outermost loops, each thread runs the others. What a thread loads serves
    several iterations of the loops that it runs, or of which it has several iterations.
    """
    known = {id(band[0]) for band in found.stencils}
    for outer in outermost(found.body):
        band = _parallel_band(found, outer)
        if len(band) < 3 or id(outer) in known:
            continue
        *rest, rows, columns = band
        for plane in reversed(rest):
            inside = [f for f in rest if f is not plane]
            order = ", ".join(f.var for f in (plane, rows, columns, *inside))
            turn = [f"loop {loop_label(outer)}: permute {order}"] if inside else []
            grid = f"loop {loop_label(plane)}: gridify({plane.var}, {rows.var}, {columns.var})"
            own = [f"loop {loop_label(inside[-1])}: {{ | unroll 4, jam }}"] if inside else []
            lines = [*turn, grid, f"loop {loop_label(plane)}: {{ unroll {{8, 4}}, jam | }}", *own]
            if found.legal(lines):
                yield "\n".join(["for gpu", *lines, "codelet: grid blocksize {32x8, 64x4, 32x4, 16x16}"])


def _parallel_band(found: Patterns, outer: Loop) -> list[Loop]:
    """Return the parallel loops from this one on, of which each is all of the body of the one before."""
    band: list[Loop] = []
    for loop in band_of(outer):
        if not found.parallel(loop) or (band and len(band[-1].body) != 1):
            break
        band.append(loop)
    return band


def batches(found: Patterns) -> Iterator[str]:
    """Yield a block of threads for each iteration of a parallel loop around a sequential loop around parallel ones.

    With a copy of what the iteration updates in shared memory, where its extents are numbers.
    """
    for loop in found.outer_threads:
        match loop.body:
            case (Loop() as steps,) if not found.parallel(steps):
                shared = [f for f in steps.body if isinstance(f, Loop) and found.parallel(f)]
                inner = (g for f in shared for g in f.body if isinstance(g, Loop))
                rows = [g for g in inner if found.parallel(g) and not has_loop(g.body)]
                together = f"loop {loop_label(steps)}: noParallel, team"
                lines = [together, *([f"{at_loops([*shared, *rows])}: parallel, team"] if shared else [])]
                if shared and found.legal(lines):
                    yield "\n".join(["for gpu", *lines, *_copies(found, loop, steps, lines), SMALL_PROBLEMS])


def _copies(found: Patterns, loop: Loop, steps: Loop, lines: list[str]) -> list[str]:
    """Return the copies of the arrays of which each iteration of ``loop`` updates elements of its own, if it can."""
    targets = (s.target for s in walk_stmts(steps.body) if isinstance(s, Assign))
    own = dict.fromkeys(t.array for t in targets if isinstance(t, Load) and loop.var in names_in(t.index))
    stage = f"loop {loop_label(steps)}: stage {', '.join(own)}"
    return [stage.replace("stage", "{ stage") + " | }"] if own and _can_copy(found, [*lines, stage]) else []


def _can_copy(found: Patterns, lines: list[str]) -> bool:
    """Tell whether the kernels can have the copies, which only their lowering knows."""
    version = next(iter(parse("\n".join((*found.lines, *lines)), "<derived>")))
    try:
        plan = lower(schedule(found.analysis, parse_lines(version.text.splitlines())).codelet, blocks=True)
        for kernel in kernels_in(plan.steps):
            copy_block_elements(kernel, plan)
    except (DirectiveError, IllegalTransform):
        return False
    return True


def recurrences(found: Patterns) -> Iterator[str]:
    """Yield small blocks, and recurrences unrolled, where threads run sequential loops that are no sums, and no others.

    Such a thread waits for each value before the next one: more blocks than multiprocessors, of less than a warp each,
    cost nothing then, and an unrolled loop reads what several iterations need before it waits.
    """
    sums = {identity(s.loop) for s in found.sums}
    chains: list[Loop] = []
    for loop in found.outer_threads:
        inner = [f for f in walk(loop.body) if isinstance(f, Loop)]
        if not any(map(found.parallel, inner)):
            chains += [f for f in inner if identity(f) not in sums]
    innermost = [f for f in chains if not has_loop(f.body)]
    unrolled = [f"{at_loops(innermost)}: {{ unroll {{8, 4}}, contiguous, remainder | }}"] if innermost else []
    if chains:
        yield "\n".join(["for gpu", *unrolled, FEW_THREADS])


def transpositions(found: Patterns) -> Iterator[str]:
    """Yield tiles in shared memory of what is read along rows by one of two loops, and written along rows by the other.

    Neighbouring threads are neighbours in what is written; the block reads rows of what it reads.
    """
    for band in found.stencils:
        for other, along in (band[-2:], band[:-3:-1]):
            read = _read_along(band[-1], other, along)
            if not read:
                continue
            turn = [] if along is band[-1] else [f"loop {loop_label(along)}: permute {other.var}, {along.var}"]
            label, arrays = loop_label(other), ", ".join(read)
            stage = f"loop {label}: stage {arrays}, transposed({arrays})"
            if found.legal([*turn, f"loop {label}: unroll 8, jam", stage]):
                yield "\n".join(["for gpu", *turn, f"loop {label}: unroll {{8, 4, 16}}, jam", stage,
                                 "codelet: grid blocksize {32x4, 32x8}"])  # fmt: skip


def _read_along(inner: Loop, other: Loop, along: Loop) -> list[str]:
    """Return the arrays that are only read, along ``other``, where all that is written is written along ``along``."""
    assigns = [s for s in walk_stmts(inner.body) if isinstance(s, Assign)]
    targets = [s.target for s in assigns if isinstance(s.target, Load)]
    if not targets or not all(strides(t, along.var) for t in targets):
        return []
    loads = [n for s in assigns for n in walk(s.value) if isinstance(n, Load)]
    written = {t.array for t in targets}
    mine = (n.array for n in loads if strides(n, other.var) and along.var in names_in(n.index[:-1]))
    return [array for array in dict.fromkeys(mine) if array not in written]
