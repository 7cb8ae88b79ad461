"""Blocked elimination: sections for a sequential loop whose step k uses row and column k of the array that it updates.

    for k: { for i: A[i][k] /= A[k][k];  for i: for j: A[i][j] -= A[i][k] * A[k][j] }        LU, Cholesky

    diagonal    the threads of one block run all steps together
    panels      a thread for each row or column, in small blocks, so that all multiprocessors have some; two at a time
    trailing    a product: several rows and columns a thread, what they read in shared memory; on a CPU in vector order

A solution of a triangular system has no trailing update: its panel is a product with a vector. All loops of a codelet
that eliminate are in blocks at once where that is legal.

The loop is looked for in the text, and in the orders that isl finds for nests whose outermost loop is sequential.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from looptune.core.errors import DirectiveError
from looptune.ir.def_use import names_in, written_names
from looptune.ir.nodes import Assign, Load, Loop
from looptune.ir.rewrite import walk, walk_stmts
from looptune.lower.passes.own_copies import copy_own_elements
from looptune.lower.pipeline import lower
from looptune.lower.plan import kernels_in
from looptune.schedule.apply import schedule
from looptune.schedule.binding import at_loops, identity, loop_label
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.space import forms
from looptune.tune.space.patterns import Patterns, ReductionPattern, outermost
from looptune.tune.space.space import parse

SCHEDULE = "schedule parallel:outer, fuse:min"
STEPS = "block {16, 32, 8, 64}"
"""Of a GPU, where each block of steps costs launches, and its diagonal the time of its steps."""
LONG_STEPS = "block {64, 32, 128}"
SOLVING = "codelet: grid blocksize {64x1, 128x1, 32x4}"
"""Of a triangular system: its steps cost a barrier of one block each, and little besides."""
CORE_STEPS = "block {64, 32, 128}"
TILES = (("unroll 4, jam", "unroll 4, jam", "16x16, 16x8"), ("unroll 8, jam", "unroll 4, jam", "16x16, 16x8"))
"""Rows and columns of the trailing update for each thread, and blocks."""
PANELS = "grid blocksize {32x1, 64x1}"


def sections(found: Patterns) -> Iterator[str]:
    """Yield what to try for each loop that eliminates."""
    for start in _starts(found):
        loops = [f for f in outermost(start.body) if _eliminates(start, f)]
        together = len(loops) > 1 and start.legal(_in_blocks(loops))
        for some in [loops] if together else [[f] for f in loops]:
            if together or start.legal(_in_blocks(some)):
                yield from _blocked(start, replace(start, lines=(*start.lines, *_in_blocks(some))), some)


def _in_blocks(loops: Sequence[Loop]) -> list[str]:
    return [f"loop {number}: block 32" for number in dict.fromkeys(f.number for f in loops)]


def _starts(found: Patterns) -> Iterator[Patterns]:
    """Yield the codelet, and if none of its loops eliminates, the orders that isl finds for its nests."""
    if any(_eliminates(found, f) for f in outermost(found.body)):
        yield found
        return
    serial = [f for f in outermost(found.body) if isinstance(f, Loop) and not found.parallel(f)]
    if not any(_updates_itself(f) for f in serial):
        return
    for values in ((), forms.nested_expansions(found.analysis)):
        known = replace(found, lines=(*found.lines, *values)) if values else found
        lines = [x for f in serial if known.legal([x := f"loop {loop_label(f)}: {SCHEDULE}"])]
        after = replace(known, lines=(*known.lines, *lines))
        if lines and any(_eliminates(after, f) for f in outermost(after.body)):
            yield after
            return


def _updates_itself(loop: Loop) -> bool:
    """Tell whether a statement in three loops reads an array that the nest writes, and not where it writes it."""
    changed = written_names(loop.body)
    return any(
        isinstance(n, Load) and n.array in changed and n != s.target
        for f in walk_stmts(loop.body) if isinstance(f, Loop)
        for s in walk_stmts(f.body) if isinstance(s, Assign)
        for n in walk(s.value)
    )  # fmt: skip


def _eliminates(found: Patterns, loop: Loop) -> bool:
    """Tell whether a sequential loop around parallel ones says which row or column of an array its steps use.

    The loop writes the array, and updates elements that are not of this row or column from such as are.
    """
    if found.parallel(loop) or not any(found.parallel(f) for f in walk(loop.body) if isinstance(f, Loop)):
        return False
    changed = written_names(loop.body)
    return any(
        isinstance(s.target, Load) and loop.var not in names_in(s.target.index)
        and any(n.array in changed and loop.var in names_in(n.index) for n in walk(s.value) if isinstance(n, Load))
        for s in walk_stmts(loop.body) if isinstance(s, Assign)
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The pieces for each block of steps: those run step by step, the panels, and the trailing updates."""

    diagonal: tuple[Loop, ...]
    panels: tuple[Loop, ...]
    trailing: tuple[ReductionPattern, ...]


def _pieces(start: Patterns, made: Patterns, loops: Sequence[Loop]) -> _Pieces:
    before = {f.var for f in walk(start.body) if isinstance(f, Loop)}
    new = [f for f in walk(made.body) if isinstance(f, Loop) and f.var not in before]
    around = [f for f in new if any(f.var.startswith(f"outer_{loop.var}") for loop in loops)]
    pieces = [f for block in around for f in outermost(block.body)]
    products = tuple(s for s in made.sums if s.product and any(s.outer is f for f in pieces))
    rest = [f for f in pieces if all(s.outer is not f for s in products)]
    alone = tuple(f for f in rest if not made.parallel(f))
    return _Pieces(alone, tuple(f for f in rest if made.parallel(f)), products)


def _blocked(start: Patterns, made: Patterns, loops: Sequence[Loop]) -> Iterator[str]:
    """Yield the sections of a codelet with the loops of ``start`` in blocks, which is ``made``."""
    pieces = _pieces(start, made, loops)
    place = f"loop {', '.join(dict.fromkeys(str(f.number) for f in loops))}: "
    if not pieces.trailing and not (pieces.diagonal and pieces.panels):
        return
    beside = [f"loop {loop_label(s.loop)}: parallel" for s in made.sums if not s.around]
    beside = [line for line in beside if start.legal([line])]
    lines = _together(made, pieces.diagonal)
    lines += _copied(made, lines, pieces.diagonal)
    copied = _copied(made, lines, pieces.panels)
    lines += beside if made.legal([*lines, *beside]) else []
    if not pieces.trailing:
        rows = [s for s in made.sums if s.contiguous and any(s.around[:1] == (f,) for f in pieces.panels)]
        shared = [f"loop {loop_label(s.loop)}: parallel" for s in rows]
        for own in (copied, shared) if shared and made.legal([*lines, *shared]) else (copied,):
            yield "\n".join(["for gpu", *start.lines, place + LONG_STEPS, *lines, *own, SOLVING])
        return
    lines += copied
    lines += _at_once(made, [*lines, *_tiles(pieces.trailing, *TILES[0][:2])], pieces)
    panels = [f"{at_loops(pieces.panels)}: {PANELS}"] if pieces.panels else []
    for outer, inner, blocks in TILES:
        tiles = _tiles(pieces.trailing, outer, inner)
        if made.legal([*lines, *tiles]):
            last = f"codelet: grid blocksize {{{blocks}}}"
            yield "\n".join(["for gpu", *start.lines, place + STEPS, *lines, *tiles, last, *panels])
    turned = [f"loop {loop_label(p.outer)}: permute {', '.join(order)}"
              for p in pieces.trailing if (order := made.vector_order(p))]  # fmt: skip
    if made.legal(turned):
        yield "\n".join(["for cpu", *start.lines, place + CORE_STEPS, *turned])


def _together(made: Patterns, loops: Sequence[Loop]) -> list[str]:
    """Return lines that have the threads of one block run the loops, and share the parallel ones in them."""
    lines: list[str] = []
    for loop in loops:
        inner = [f for f in walk(loop.body) if isinstance(f, Loop) and made.parallel(f)]
        team = [f"loop {loop_label(f)}: parallel, team" for f in sorted(inner, key=identity)]
        more = [f"loop {loop_label(loop)}: noParallel, team", *team]
        lines += more if team and made.legal([*lines, *more]) else []
    return lines


def _copied(made: Patterns, lines: Sequence[str], loops: Sequence[Loop]) -> list[str]:
    """Return lines that give a block, or each thread, a copy of the elements that it alone uses, if it can have one."""
    found: list[str] = []
    for loop in loops:
        for array in sorted(written_names(loop.body) & {n.array for n in walk(loop.body) if isinstance(n, Load)}):
            line = f"loop {loop_label(loop)}: stage {array}"
            if made.legal([*lines, line]) and _can_copy(made, [*lines, line]):
                found.append(line)
    return found


def _at_once(made: Patterns, lines: Sequence[str], pieces: _Pieces) -> list[str]:
    """Return lines that launch pieces at the same time as those before them, two at a time, where that is legal."""
    own = [id(f) for f in (*pieces.panels, *(s.outer for s in pieces.trailing))]
    found: list[str] = []
    alone = True
    for loop in (f for f in walk(made.body) if isinstance(f, Loop) and id(f) in own):
        line = f"loop {loop_label(loop)}: concurrent"
        alone = not (alone and made.legal([*lines, *found, line]))
        found += [] if alone else [line]
    return found


def _can_copy(made: Patterns, lines: Sequence[str]) -> bool:
    """Tell whether the kernels can have the copies, which only their lowering knows."""
    version = next(iter(parse("\n".join((*made.lines, *lines)), "<derived>")))
    plan = lower(schedule(made.analysis, parse_lines(version.text.splitlines())).codelet, blocks=True)
    try:
        for kernel in kernels_in(plan.steps):
            copy_own_elements(kernel, plan)
    except DirectiveError:
        return False
    return True


def _tiles(products: Sequence[ReductionPattern], outer: str, inner: str) -> list[str]:
    """Return register tiles for the products, and what they read in shared memory."""
    return [
        f"{at_loops([f for p in products for f in (p.outer, p.inner)])}: box 8",
        f"{at_loops([p.outer for p in products])}: {outer}",
        f"{at_loops([p.inner for p in products])}: {inner}",
        *(f"loop {loop_label(p.loop)}: stage {', '.join(p.reused)}, unroll 16" for p in products),
    ]
