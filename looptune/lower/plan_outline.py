"""A plan on a few lines: the loops of the host, those of the grid, and those in a thread.

    host t: 500 times
      grid j: 8 blocks of 256 threads
      grid i, j: 64 x 256 blocks of 32 x 8 threads
      grid i, reduction j: 1 x 256 blocks of 32 x 8 threads
      4 steps of t, tiles of 64 x 64 with cores of 56 x 56: 37 x 37 blocks of 64 x 8 threads
    4 kernels, 2,000 launches

    2 blocks a multiprocessor, t: 500 times            a persistent loop: one launch, whose blocks take those of the
      grid i, j: 64 x 256 blocks of 32 x 8 threads     grids one after the other

Blocks and threads are along x, then y. Numbers that depend on sizes are there where the sizes are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from looptune.ir.c_printer import expression_text
from looptune.ir.nodes import Loop, While
from looptune.ir.rewrite import walk
from looptune.lower.plan import (
    HostIf,
    HostLoop,
    HostWhile,
    Kernel,
    Launch,
    Plan,
    Step,
    count,
    data_decide,
    evaluate_size,
    launched_blocks,
)
from looptune.lower.temporal_tiles import TemporalTile, steps_per_launch


def summarize_plan(plan: Plan, sizes: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """Return the lines of a plan; ``sizes`` are the integer parameters by name, None if they are not known."""
    lines = tuple(_steps(plan.steps, sizes, ""))
    kernels = f"{len(plan.kernels)} kernel{'s' if len(plan.kernels) != 1 else ''}"
    if sizes is None:
        return (*lines, kernels)
    if data_decide(plan):
        return (*lines, f"{kernels}; data decide how many launches")
    launches = count(plan.steps, sizes)
    return (*lines, f"{kernels}, {launches:,} launch{'es' if launches != 1 else ''}")


def _steps(steps: tuple[Step, ...], env: Mapping[str, int] | None, indent: str) -> Iterator[str]:
    """``env`` holds sizes and, for each host loop around, its first value."""
    for step in steps:
        match step:
            case Launch(kernel):
                yield f"{indent}{_kernel(kernel, env)}"
            case HostLoop(var, lo, hi, stride, body, blocks):
                trips = None if env is None else range(evaluate_size(lo, env), evaluate_size(hi, env), stride)
                who = f"{blocks} block{'s' * (blocks > 1)} a multiprocessor, {var}" if blocks else f"host {var}"
                yield indent + who + ("" if trips is None else f": {len(trips):,} times")
                inner = None if env is None or not trips else {**env, var: trips[0]}
                yield from _steps(body, inner, indent + "  ")
            case HostWhile(_, cond, body):
                yield f"{indent}host while {expression_text(cond)}"
                yield from _steps(body, env, indent + "  ")
            case HostIf(cond, then, other, flag):
                yield f"{indent}host if {expression_text(cond)}" if flag else f"{indent}host if"
                yield from _steps(then, env, indent + "  ")
                if other:
                    yield f"{indent}host else"
                    yield from _steps(other, env, indent + "  ")


def _kernel(kernel: Kernel, env: Mapping[str, int] | None) -> str:
    shared = kernel.team.shared if kernel.team is not None else ()
    every = [n for n in walk(kernel.body) if isinstance(n, (Loop, While))]
    loops = every if kernel.team is None else kernel.team.inner_loops
    inside = f", in the thread {', '.join(n.var if isinstance(n, Loop) else 'while' for n in loops)}" if loops else ""
    if not kernel.loops and not shared:
        return f"one thread{inside}"
    x, y = kernel.block
    flat = y == 1 and len(kernel.axes) < 2
    threads = f"{x}" if flat else f"{x} x {y}"
    grids = [f"grid {', '.join(axis.var for axis in kernel.grid)}"] if kernel.grid else []
    if kernel.time_tile is not None:
        grids, inside = [_tiles(kernel.time_tile)], ""
    if kernel.resident is not None:
        grids, inside = [f"elements kept, tiles of {' x '.join(map(str, reversed(kernel.resident.shape)))}"], ""
    reduced, spread = ([f.var for f in shared if bool(f.reductions) == sums] for sums in (True, False))
    grids += [f"{what} {', '.join(names)}" for what, names in (("reduction", reduced), ("shared", spread)) if names]
    grids += [f"parts {kernel.z_axis.var}"] if kernel.z_axis is not None and kernel.makes_parts else []
    grid = ", ".join(grids)
    if env is None:
        return f"{grid}: blocks of {threads} threads{inside}"
    along = launched_blocks(kernel, env)
    count = f"{along[0]}" if flat else f"{along[0]} x {along[1]}"
    count += f" x {along[2]}" if kernel.z_axis is not None else ""
    return f"{grid}: {count} block{'s' if along != (1, 1, 1) else ''} of {threads} threads{inside}"


def _tiles(tiles: TemporalTile) -> str:
    tile, core = (" x ".join(str(n) for n in reversed(sides)) for sides in (tiles.shape, tiles.core))
    steps = steps_per_launch(tiles.loop)
    return f"{steps} step{'s' if steps > 1 else ''} of {tiles.loop.var}, tiles of {tile} with cores of {core}"
