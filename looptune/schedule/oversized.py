"""Refuse directives that ask for more iterations or threads than there are, before compilation.

    loop i: unroll 8       where loop i runs 5 times
    loop i: tile i:64      the same
    grid blocksize 64x32   2,048 threads, where a block of a GPU has 1,024

In a sweep such a version is an ordinary one: a strip that is longer than its loop is the whole loop, and a block that
is too large exceeds a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Const, Loop
from looptune.ir.rewrite import substitute, walk_stmts
from looptune.schedule import directives
from looptune.schedule.apply import apply_distribution
from looptune.schedule.binding import BoundDirective, bind, identity
from looptune.schedule.directive_lines import DirectiveLine
from looptune.schedule.directives.base import FIRST_STAGES, GPU_THREADS, trip_count
from looptune.schedule.messages import directive_text

if TYPE_CHECKING:
    from looptune.schedule.analysis import Analysis
    from looptune.schedule.directive_lines import DirectiveLine


def oversized_directives(
    analysis: Analysis, placed: Sequence[DirectiveLine], values: Mapping[str, int | float], *, gpu: bool
) -> Iterator[tuple[BoundDirective, DirectiveError]]:
    """Yield the directives that exceed the iterations of their loop or the threads of a block.

    ``values`` are the sizes; the limit of threads is NVIDIA's, on a ``gpu``.
    """
    codelet = apply_distribution(analysis, placed)
    known = {name: Const(int(v)) for name, v in values.items() if float(v).is_integer()}
    loops = {identity(f): f for f in walk_stmts(codelet.body) if isinstance(f, Loop)}
    for b in bind(codelet, placed, lambda d: directives.find(d).stage not in FIRST_STAGES):
        if gpu and b.transform.threads > GPU_THREADS:
            yield (
                b,
                DirectiveError(
                    f"a block has {b.transform.threads:,} threads: the limit of a GPU is {GPU_THREADS:,}",
                    b.directive.span,
                ),
            )
        inside = [f for f in walk_stmts(loops[b.loop]) if isinstance(f, Loop)] if b.loop in loops else []
        for name, size in b.transform.grouped_iterations:
            loop = next((f for f in inside if name in ("", f.var)), None)
            count = None if loop is None else substitute(trip_count(loop), known)
            if loop is not None and isinstance(count, Const) and 0 < count.value < size:
                yield (
                    b,
                    DirectiveError(
                        f"{directive_text(b.directive)} needs {size:,} iterations of loop {loop.var}, "
                        f"which runs {count.value:,} time{'s' if count.value != 1 else ''}",
                        b.directive.span,
                    ),
                )
