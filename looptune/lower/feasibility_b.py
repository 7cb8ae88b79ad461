"""Loops of which all launches are one: where that is possible.

The host runs the loop, nests for threads are in it, and their blocks are of one size if any of their threads wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from looptune.core.errors import Unfit
from looptune.ir.def_use import written
from looptune.ir.nodes import Codelet, Loop
from looptune.ir.rewrite import walk
from looptune.lower.host_loops import asked, check_on_host
from looptune.lower.mapping import FROM, plan
from looptune.lower.plan import HostLoop, Kernel, host_loops, kernels_in


def check(codelet: Codelet) -> None:
    """Unfit where a loop's launches cannot be one."""
    found = tuple(asked(codelet.body, lambda f: bool(f.persistent)))
    changed = written(codelet.body) if found else ()
    for loop, around in found:
        check_on_host(loop, around, changed)
    made = tuple(_made(codelet)) if found else ()
    for loop, _ in found:
        own = [step for step in made if (step.var.removesuffix(FROM), step.lo, step.hi) == (loop.var, loop.lo, loop.hi)]
        if not own:
            raise Unfit(loop, "no loop in it is run by threads")
        for step in own:
            _check_blocks(loop, step)


def _made(codelet: Codelet) -> Iterator[HostLoop]:
    """Those that the host runs."""
    return (step for step in host_loops(plan(codelet, blocks=True).steps) if step.persistent)


def _check_blocks(loop: Loop, made: HostLoop) -> None:
    """Threads that a nest leaves over do nothing, and so cannot wait with the others."""
    kernels = tuple(kernels_in((made,)))
    most = max(kernels, key=_threads)
    for kernel in kernels:
        if 1 < _threads(kernel) < _threads(most) and _waits(kernel):
            sizes = f"{_threads(kernel)} and {_threads(most)}"
            raise Unfit(loop, f"blocks of {sizes} threads are in it, and some wait: give all nests one block size")


def _threads(kernel: Kernel) -> int:
    return kernel.block[0] * kernel.block[1]


def _waits(kernel: Kernel) -> bool:
    """Its threads meet at barriers."""
    if kernel.team is not None or kernel.overlap is not None:
        return True
    return any(isinstance(f, Loop) and f.staged for f in (*kernel.loops, *walk(kernel.body)))
