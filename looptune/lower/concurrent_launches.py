"""Launches that need not wait for the one before them: see ``schedule/directives/concurrent``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from looptune.schedule.directives.concurrent import ConcurrentLaunch, loop_id

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan


def is_concurrent(before: Kernel, kernel: Kernel) -> bool:
    """Return whether a kernel may run at the same time as that of the launch directly before its own.

    Each of them is all of its loop and nothing else: a block that does the work of several loops has a kernel without
    axes, or one of another loop.
    """
    said = kernel.annotation(ConcurrentLaunch)
    if said is None or not all(k.loops and k.team is None and not k.keeps_tiles for k in (before, kernel)):
        return False
    return loop_id(kernel.loops[0]) == said.own and loop_id(before.loops[0]) == said.before


def has_concurrent(plan: Plan) -> bool:
    """Return whether a kernel of the plan may run at the same time as the one before it."""
    return any(is_concurrent(a, b) for a, b in pairwise(plan.kernels))


def in_groups(
    launched: Iterable[tuple[Kernel, Mapping[str, int]]],
) -> Iterator[list[tuple[Kernel, Mapping[str, int]]]]:
    """Yield launches that may run at the same time together, two at most, and all others alone, in their order.

    Both of them are of the same iteration of the host loops.
    """
    waiting: list[tuple[Kernel, Mapping[str, int]]] = []
    for kernel, env in launched:
        if len(waiting) == 1 and waiting[0][1] == env and is_concurrent(waiting[0][0], kernel):
            yield [*waiting, (kernel, env)]
            waiting = []
            continue
        if waiting:
            yield waiting
        waiting = [(kernel, env)]
    if waiting:
        yield waiting
