"""Check what some directives require of the nest after all directives are applied.

    split        iterations can be distributed to blocks      see ``lower/passes/split_reduction``
    resident     every element has an owner                   see ``lower/passes/resident_tiling``
    overlap      steps can be computed in one launch          see ``lower/passes/temporal_tiling``
    persistent   launches can be merged                       see ``check``
    tensor       tensor cores can compute the sums            see ``lower/passes/warp_tiles``

``schedule`` calls it once no directive is left. All launches of a loop can be merged if the host runs the loop, it
contains nests for threads, and their blocks have the same size if any of their threads wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from looptune.core.errors import InfeasibleDirective
from looptune.ir.def_use import written_names
from looptune.ir.nodes import Annotations, Codelet, Loop, Stmt
from looptune.ir.rewrite import rewrite_stmts, walk
from looptune.lower.host_loops import (
    PERSISTENT,
    check_launched,
    check_on_host,
    outermost_loops_where,
    persistent_blocks,
)
from looptune.lower.machine import Machine
from looptune.lower.mapping import FROM
from looptune.lower.passes import resident_tiling, split_reduction, temporal_tiling, warp_tiles
from looptune.lower.pipeline import lower, plan_after
from looptune.lower.plan import HostLoop, Kernel, host_loops, kernels_in
from looptune.lower.resident_tiles import RESIDENT
from looptune.lower.staged_tiles import staging_loops
from looptune.lower.temporal_tiles import OVERLAP


def first_infeasible(codelet: Codelet, *, tiles: bool) -> tuple[str, InfeasibleDirective] | None:
    """Return the first infeasible directive by name, with its loop and the reason.

    ``tiles``: also one whose tile leaves too little of a block's.
    """
    name = split_reduction.SPLIT
    try:
        split_reduction.check_split_reductions(codelet)
        _check_shares(codelet)
        name = OVERLAP
        temporal_tiling.check(codelet, tiles=tiles)
        name = RESIDENT
        resident_tiling.check(codelet)
        name = PERSISTENT
        check(codelet)
        name = warp_tiles.NAME
        warp_tiles.check(codelet, lambda: plan_after(codelet, Machine(blocks=True, host_reads=True), warp_tiles.BEFORE))
    except InfeasibleDirective as no:
        return name, no
    return None


def _check_shares(codelet: Codelet) -> None:
    """Raise InfeasibleDirective where parts of a reduction would not be blocks of a grid."""
    changed = written_names(codelet.body)
    for loop, around in outermost_loops_where(codelet.body, lambda f: f.in_parts):
        check_launched(loop, around, changed)


def drop_annotation(codelet: Codelet, loop: Loop, name: str) -> Codelet:
    """Return the codelet without this annotation on its loops."""

    def rule(n: Stmt) -> Stmt | None:
        if not (isinstance(n, Loop) and n == loop):
            return None
        left = Annotations(a for a in n.annotations if a.word != name)
        return replace(n, annotations=left)

    return replace(codelet, body=rewrite_stmts(rule, codelet.body))


def check(codelet: Codelet) -> None:
    """Raise InfeasibleDirective where a loop's launches cannot be one."""
    found = tuple(outermost_loops_where(codelet.body, lambda f: persistent_blocks(f) > 0))
    changed = written_names(codelet.body) if found else ()
    for loop, around in found:
        check_on_host(loop, around, changed)
    made = tuple(_made(codelet)) if found else ()
    for loop, _ in found:
        own = [step for step in made if (step.var.removesuffix(FROM), step.lo, step.hi) == (loop.var, loop.lo, loop.hi)]
        if not own:
            raise InfeasibleDirective(loop, "it contains no parallel loop")
        for step in own:
            _check_blocks(loop, step)


def _made(codelet: Codelet) -> Iterator[HostLoop]:
    """Those that the host runs."""
    return (step for step in host_loops(lower(codelet, blocks=True).steps) if step.blocks_per_sm)


def _check_blocks(loop: Loop, made: HostLoop) -> None:
    """Threads that a nest leaves over do nothing, and so cannot wait with the others."""
    kernels = tuple(kernels_in((made,)))
    most = max(kernels, key=_threads)
    for kernel in kernels:
        if 1 < _threads(kernel) < _threads(most) and _waits(kernel):
            sizes = f"{_threads(kernel)} and {_threads(most)}"
            raise InfeasibleDirective(
                loop, f"its nests have blocks of {sizes} threads: give all nests the same block size"
            )


def _threads(kernel: Kernel) -> int:
    return kernel.block[0] * kernel.block[1]


def _waits(kernel: Kernel) -> bool:
    """Its threads meet at barriers."""
    if kernel.team is not None or kernel.keeps_tiles:
        return True
    return bool(staging_loops((*kernel.loops, *walk(kernel.body))))
