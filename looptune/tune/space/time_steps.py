"""Sections of a derived space for several time steps at once: tiles that overlap on a GPU, bands of rows on a CPU."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from looptune.ir.def_use import written_names
from looptune.ir.nodes import Array, Local, Loop
from looptune.ir.rewrite import walk_stmts
from looptune.lower.passes.temporal_tiling import tile_in_time
from looptune.lower.temporal_tiles import steps_per_launch
from looptune.schedule.apply import schedule
from looptune.schedule.binding import loop_label
from looptune.schedule.directive_lines import parse_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from looptune.tune.space.patterns import Patterns

STEPS: Mapping[int, tuple[tuple[tuple[int, ...], tuple[int, ...], str], ...]] = MappingProxyType({
    1: (((2, 4, 8, 16), (), "256x1, 512x1, 1024x1"),),
    2: (((2, 4, 6, 8), (8,), "64x4, 64x8, 128x4"), ((1, 2, 3), (4,), "32x16, 64x8, 64x16")),
    3: (((1, 2), (14, 22, 10, 6), "32x16, 32x8"),),
})  # fmt: skip
"""Steps of a launch, rows of a thread and blocks, by the number of dimensions that the arrays written have."""
KEPT = {1: "128x1, 512x1", 2: "32x16"}
"""The same where blocks keep their tiles from launch to launch, for which there have to be as many blocks as tiles."""
KEPT_STEPS = {1: (32, 16), 2: (6, 4, 8)}
"""Of such blocks, which have a barrier of all blocks for each launch."""
CUBES = ((28, 20), "32x28", 32 * 28)
"""Of such blocks where arrays have three dimensions: rows, the block and its threads; the halo is much of a tile."""
SHARED_BYTES = 227 << 10
"""Of a block, of devices of compute capability 9.0."""
KEPT_BYTES, VECTOR_BYTES = 320, 16
"""Of elements that a thread of such a block has in registers, and of those that it loads and stores at once."""
AT_ONCE = "overlap {4, 2, 8, 16, 32}"
"""Steps at once on a CPU, of arrays of any number of dimensions."""


def sections(found: Patterns) -> Iterator[str]:
    """Yield sections for loops of which several iterations can be one launch, first those whose blocks keep tiles."""
    for loop in found.steps:
        label, rank = loop_label(loop), found.rank(loop)
        if not found.legal([f"loop {label}: overlap 1"]):
            continue
        kept = [f"loop {label}: {_kept(found, loop)}", f"loop {label}: persistent", "codelet: vectorize"]
        sections = [[*kept, f"codelet: grid blocksize {{{KEPT[rank]}}}"]] if rank in KEPT else []
        sections += [made for tried in STEPS.get(rank, ()) for made in _tried(found, loop, *tried)]
        for section in sections:
            if found.legal(section):
                yield "\n".join(["for gpu", *section])
        cubes = [f"loop {label}: {_cubes(found, loop)}", kept[1], f"codelet: grid blocksize {CUBES[1]}"]
        if rank == 3 and found.legal(cubes):
            yield "\n".join(["for gpu", *cubes])
        if found.legal([f"loop {label}: overlap 2"]):
            yield f"for cpu\nloop {label}: {AT_ONCE}"


def _tried(
    found: Patterns, loop: Loop, steps: tuple[int, ...], rows: tuple[int, ...], blocks: str
) -> Iterator[list[str]]:
    """Yield sections whose tiles are larger than what their steps invalidate at the edges: those that fit, at once."""
    edges = [before + behind for before, behind in _halo(found, loop)]
    rank, label = len(edges), loop_label(loop)
    fit = {n: tuple(r for r in rows if rank < 3 or r > n * edges[0]) for n in steps}
    shapes = [tuple(map(int, block.split("x"))) for block in blocks.split(", ")]
    for some in dict.fromkeys(fit.values()):
        if rows and not some:
            continue
        alike = [n for n in steps if fit[n] == some]
        sides = [("blocksize(0)", min(x for x, _ in shapes), edges[-1])]
        if rank > 1:
            each = some[0] if rank == 2 else 1
            name = f"{each} * blocksize(1)" if each > 1 else "blocksize(1)"
            sides.append((name, each * min(y for _, y in shapes), edges[-2]))
        line = f"loop {label}: overlap {_one_of(alike)}" + (f", rows {_one_of(some)}" if some else "")
        bounds = [f"where overlap({label}) * {edge} < {side}" for side, n, edge in sides if max(alike) * edge >= n]
        yield [line, f"codelet: grid blocksize {{{blocks}}}", *bounds]


def _one_of(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else "{" + ", ".join(map(str, numbers)) + "}"


def _changed_bytes(found: Patterns, loop: Loop) -> list[int]:
    """Return the bytes of an element of each array that the loop writes."""
    codelet, changed = found.analysis.codelet, written_names(loop.body)
    arrays = [v for v in (*codelet.params, *codelet.locals) if isinstance(v, (Array, Local)) and v.shape]
    return [np.dtype(v.dtype).itemsize for v in arrays if v.name in changed]


def _cubes(found: Patterns, loop: Loop) -> str:
    """Return the directive for tiles of three dimensions that blocks keep, of which shared memory has all elements."""
    rows, _, threads = CUBES
    most = SHARED_BYTES // (threads * max(1, sum(_changed_bytes(found, loop))))
    fit = dict.fromkeys(max(1, min(n, most)) for n in rows)
    return f"overlap 1, rows {{{', '.join(map(str, fit))}}}"


def _kept(found: Patterns, loop: Loop) -> str:
    """Return the directive for tiles that blocks keep, of which a thread holds in its registers what it can.

    Columns are as many as one access loads, and steps such that halos are multiples of them.
    """
    sizes, rank = _changed_bytes(found, loop), found.rank(loop)
    columns = min(4, VECTOR_BYTES // max(sizes)) if rank > 1 else 2
    reach = _reach(found, loop)
    whole = [n for n in KEPT_STEPS.get(rank, ()) if not any(n * each % columns for each in reach)]
    steps = f"overlap {{{', '.join(map(str, whole[:2] or KEPT_STEPS.get(rank, (1,))[:2]))}}}"
    if rank < 2:
        return f"{steps}, columns {columns}"
    most = max(1, KEPT_BYTES // (columns * sum(sizes)))
    rows = dict.fromkeys(max(1, n) for n in (most, most - 1, most * 2 // 3, most // 2))
    return f"{steps}, rows {{{', '.join(map(str, rows))}}}, columns {columns}"


def _reach(found: Patterns, loop: Loop) -> tuple[int, int]:
    """Return the halo of one step along the innermost dimension."""
    return _halo(found, loop)[-1]


def _halo(found: Patterns, loop: Loop) -> Sequence[tuple[int, int]]:
    """Return the halo of one step before and behind a tile, along each dimension."""
    lines = (*found.lines, f"loop {loop_label(loop)}: overlap 1")
    done = schedule(found.analysis, parse_lines(lines)).codelet
    tiled = next(f for f in walk_stmts(done.body) if isinstance(f, Loop) and steps_per_launch(f))
    return tile_in_time(tiled, done, tiles=False).halo
