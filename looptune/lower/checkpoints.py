"""Checkpoints of a plan's outermost host loop, at which two versions with the same host loop have done the same work.

    S0; for k (host) in 0..2048: S1, S2        checkpoints after 32, 128, 256, 512, 1024 and 2048 iterations

If there are several host loops, the one with the most launches is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from looptune.ir.nodes import Assign, Const
from looptune.ir.rewrite import walk
from looptune.lower.plan import HostIf, HostLoop, Plan, Step, count, data_decide, evaluate_size

PARTS = (64, 16, 8, 4, 2, 1)
"""A mark stands where one in so many of the iterations is made, rounded up."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of a plan.

    ``loop``: the host loop's variable, bounds and step, the statements in it and those before it; plans with the same
    ``loop`` have done the same work at each checkpoint. ``after``: the number of launches up to each of the PARTS.
    """

    loop: str
    after: tuple[int, ...]


def checkpoints(plan: Plan, sizes: Mapping[str, int]) -> Checkpoints | None:
    """Return the checkpoints of a plan, or None if no host loop has an iteration, or data decide on launches."""
    if data_decide(plan):
        return None
    steps = tuple(_taken(plan.steps, sizes))
    loops = {k: step for k, step in enumerate(steps) if isinstance(step, HostLoop) and not step.blocks_per_sm}
    made = {k: count((loop,), sizes) if len(loops) > 1 else 1 for k, loop in loops.items()}
    longest = max(made, key=lambda k: made[k], default=None)
    if longest is None:
        return None
    before, loop = steps[:longest], loops[longest]
    trips = range(evaluate_size(loop.lo, sizes), evaluate_size(loop.hi, sizes), loop.step)
    reached = [trips.start + loop.step * -(-len(trips) // part) for part in PARTS]
    parts = (replace(loop, lo=Const(lo), hi=Const(hi)) for lo, hi in pairwise((trips.start, *reached)))
    first, *after = accumulate((count(before, sizes), *(count((part,), sizes) for part in parts)))
    if after[-1] == first:
        return None
    done, inside = (_named(replace(plan, steps=part)) for part in (before, (loop,)))
    return Checkpoints(f"{loop.var} in {trips}: {inside}, after {done}", tuple(after))


def _taken(steps: Sequence[Step], sizes: Mapping[str, int]) -> Iterator[Step]:
    """Yield the steps at the top, with the branch that is taken for a condition."""
    for step in steps:
        match step:
            case HostIf(cond, then, other):
                yield from _taken(then if evaluate_size(cond, sizes) else other, sizes)
            case _:
                yield step


def _named(plan: Plan) -> str:
    """Return the original statements that a plan runs, in the order of their names."""
    assigns = (n for kernel in plan.kernels for n in walk(kernel.body) if isinstance(n, Assign))
    return " ".join(sorted({n.name for n in assigns if n.name})) or "nothing"
