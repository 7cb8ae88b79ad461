"""The predicted time of a plan: each kernel by itself, and host loops by some of their iterations.

host k: 2048 times                 a few k, each of which stands for as many iterations
  kernel(k)                        its instructions, its traffic, its occupancy, its time
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from looptune.ir import operation_count
from looptune.lower.concurrent_launches import is_concurrent
from looptune.lower.machine import MODEL
from looptune.lower.pipeline import finish
from looptune.lower.plan import (
    HostIf,
    HostLoop,
    HostWhile,
    Kernel,
    Launch,
    Plan,
    Step,
    blocks,
    data_decide,
    evaluate_size,
    has_host_loop,
    launched_blocks,
)
from looptune.lower.plan import count as count_launches
from looptune.lower.tiles import shared_bytes
from looptune.tune.cost_model.cache_traffic import Traffic, traffic
from looptune.tune.cost_model.devices import Chip
from looptune.tune.cost_model.kernel_walk import KernelWork, count
from looptune.tune.cost_model.occupancy import Occupancy, occupancy
from looptune.tune.cost_model.roofline_time import EFFICIENT, Times, times
from looptune.tune.cost_model.warp_samples import Sample

LAUNCH_US = 0.9
"""Between two launches of one CUDA graph."""
ROUNDS = 3
"""Iterations of a host loop that are looked at."""
ONE_PASS = "data decide how many launches there are: a while loop of the host is counted once"
FITS, MISSES = 0.7, 1.3
"""Arrays of this share of the L2 stay in it from launch to launch, and of that share do not."""


@dataclass(frozen=True, slots=True)
class LaunchEstimate:
    """The estimate of one launch, which stands for ``launches`` launches.

    ``at`` has the sizes and the variables of the host loops ``around``. ``grid`` is in blocks, without the idle ones
    that ``pack`` leaves out. ``memory_bytes`` is the part of ``moved.memory`` that earlier launches have not left in
    the L2. ``hidden_us``: of a launch, what passes while the one before it runs.
    """

    kernel: Kernel
    at: Mapping[str, int]
    around: tuple[str, ...]
    launches: float
    grid: tuple[int, int, int]
    counted: KernelWork
    moved: Traffic
    memory_bytes: float
    occupancy: Occupancy
    times: Times
    hidden_us: float = 0.0

    @property
    def flops(self) -> int | None:
        """Return the operations of one launch, or None if they depend on data or take too long to count."""
        body = self.kernel.body
        for axis in reversed(self.kernel.grid if not self.kernel.keeps_tiles else ()):
            body = (replace(axis, body=body),)
        return operation_count.count(body, self.at)

    @property
    def time_us(self) -> float:
        return self.launches * (self.times.time_us - self.hidden_us + LAUNCH_US)

    def overlapped(self, before: LaunchEstimate, chip: Chip) -> LaunchEstimate:
        """Return the estimate of a launch at the same time as the one before it, if there is room for both."""
        needed = sum(prod(one.grid) / max(1, one.occupancy.blocks) for one in (self, before))
        together = needed <= chip.multiprocessors
        return replace(self, hidden_us=min(self.times.time_us, before.times.time_us)) if together else self


@dataclass(frozen=True, slots=True)
class Total:
    """The sum over all launches: instructions of warps, floating-point and other, and bytes as in ``Traffic``."""

    float_warps: float
    other_warps: float
    requested: float
    l2: float
    memory: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a plan on one chip; ``launched`` is in the plan's order."""

    plan: Plan
    chip: Chip
    launched: tuple[LaunchEstimate, ...]

    @property
    def time_us(self) -> float:
        return sum(one.time_us for one in self.launched)

    @property
    def unstoppable_us(self) -> float:
        """Return the longest time for which a run cannot be stopped: it can between the launches of a host loop."""
        if not has_host_loop(self.plan):
            return self.time_us
        return max((one.times.time_us for one in self.launched), default=0.0)

    @property
    def launches(self) -> float:
        return sum(one.launches for one in self.launched)

    @property
    def total(self) -> Total:
        each = [(one, one.launches, one.counted.nest.all_instructions) for one in self.launched]
        return Total(
            sum(n * (i.fp32 + i.fp64) for _, n, i in each), sum(n * i.other for _, n, i in each),
            sum(n * one.moved.requested for one, n, _ in each), sum(n * one.moved.l2 for one, n, _ in each),
            sum(n * one.memory_bytes for one, n, _ in each),
        )  # fmt: skip

    @property
    def bound(self) -> str:
        """Return the name of the resource that takes longest, or "" if nothing runs."""
        longest = max(self.launched, key=lambda one: one.time_us, default=None)
        return "" if longest is None else longest.times.bound

    def of(self, kernel: Kernel) -> tuple[LaunchEstimate, ...]:
        return tuple(one for one in self.launched if one.kernel is kernel)


def estimate(
    plan: Plan, sizes: Mapping[str, int], chip: Chip, *, registers: Mapping[str, int] | None = None,
    sample: Sample | None = None,
) -> Estimate:  # fmt: skip
    """Return the estimate of a plan.

    ``registers``: registers per thread of each kernel by its name, as far as they are known.
    """
    known = registers if registers is not None else {}
    looked = sample if sample is not None else Sample()
    finished, found = finish(plan, MODEL), []
    counted = {k.name: k for k in finished.kernels}
    for kernel, at, launches in _some(plan.steps, sizes, 1.0):
        around, own = tuple(n for n in at if n not in sizes), counted[kernel.name]
        work = count(own, finished, at, looked)
        work = replace(work, notes=(ONE_PASS, *work.notes)) if data_decide(plan) else work
        found.append(_launched(work, kernel, at, around, launches, chip, known.get(kernel.name)))
        if len(found) > 1 and found[-2].at == at and is_concurrent(found[-2].kernel, kernel):
            found[-1] = found[-1].overlapped(found[-2], chip)
    return Estimate(plan, chip, tuple(found))


def _launched(
    counted: KernelWork, kernel: Kernel, at: Mapping[str, int], around: tuple[str, ...], launches: float, chip: Chip,
    registers: int | None,
) -> LaunchEstimate:  # fmt: skip
    grid = blocks(kernel, at)
    held = occupancy(chip, kernel.block[0] * kernel.block[1], shared_bytes(counted.tiles), registers)
    moved = traffic(kernel, counted, chip, grid, held.blocks)
    whole = sum(counted.memory.whole_bytes.values())
    cold = 1.0 if launches <= 1 else min(1.0, max(0.0, (whole / chip.l2_bytes - FITS) / (MISSES - FITS)))
    memory = moved.memory * (cold + (1 - cold) / launches)
    time = times(counted, moved, held, chip, grid, memory)
    if kernel.resident is not None and prod(grid) > chip.multiprocessors:  # elements stay in memory
        moving = 2 * sum(counted.memory.whole_bytes.values()) / (chip.memory_gbs * EFFICIENT) / 1e3
        time = Times({**time.bounds, "memory": moving}, time.time_us + moving)
    return LaunchEstimate(kernel, at, around, launches, launched_blocks(kernel, at), counted, moved, memory, held, time)


def _some(
    steps: Sequence[Step], at: Mapping[str, int], times: float
) -> Iterator[tuple[Kernel, Mapping[str, int], float]]:
    """Yield launches, each with how many it stands for."""
    for step in steps:
        match step:
            case Launch(kernel):
                yield kernel, at, times
            case HostWhile(_, _, body):
                yield from _some(body, at, times)
            case HostIf(cond, then, other, flag) if flag:
                yield from _some(max(then, other, key=lambda branch: count_launches(branch, at)), at, times)
            case HostIf(cond, then, other):
                yield from _some(then if evaluate_size(cond, at) else other, at, times)
            case HostLoop(var, lo, hi, stride, body):
                trips = range(evaluate_size(lo, at), evaluate_size(hi, at), stride)
                looked = min(len(trips), ROUNDS)
                for k in range(looked):
                    i = trips[(2 * k + 1) * len(trips) // (2 * looked)]
                    yield from _some(body, {**at, var: i}, times * len(trips) / looked)
