"""Warps of a kernel, all or a sample, with the values of integer expressions in each of their lanes.

    blocks x warps of a block x 32 lanes        env: name -> values, broadcast to (warps, 32)
    for k in lo..hi                             (warps x trips, 32): the lanes execute it in lockstep

The warps of a sample are spread evenly over the blocks, its iterations over each loop, and ``weight`` is the number of
warps that a warp stands for. A kernel of few warps is walked whole, and then every count is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from looptune.ir import operation_count
from looptune.lower.plan import Kernel, blocks, evaluate_size
from looptune.lower.tiles import FIRST, THREAD

if TYPE_CHECKING:
    from looptune.ir.nodes import Expr, Loop

LANES = 32
"""Threads of a warp."""

Env = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Sample:
    """The size of a sample: about ``warps`` warps of a kernel, and at most ``trips`` iterations of each loop."""

    warps: int = 16
    trips: int = 3


@dataclass(frozen=True, slots=True)
class Warps:
    """A sample of warps: ``active`` lanes, (warps, 32), the ``weight`` of each warp, (warps,), and values of names."""

    env: Env
    active: np.ndarray
    weight: np.ndarray

    @property
    def requests(self) -> float:
        """Return how many warps reach this place, over the whole kernel."""
        return float(self.weight @ self.active.any(axis=1))

    @property
    def threads(self) -> float:
        return float(self.weight @ self.active.sum(axis=1))

    def where(self, holds: np.ndarray) -> Warps:
        """Return the sample restricted to the lanes where the condition holds."""
        return replace(self, active=self.active & holds)

    def with_value(self, name: str, values: np.ndarray | None) -> Warps:
        """Return the sample with the value of one more name; None stands for an unknown value."""
        rest = {n: v for n, v in self.env.items() if n != name}
        return replace(self, env=rest if values is None else {**rest, name: values})

    def integer(self, e: Expr) -> np.ndarray | None:
        """Return the value in each lane, broadcast, or None if it depends on data."""
        try:
            return operation_count.evaluate(e, self.env)
        except operation_count.DataDependent:
            return None

    def inside(self, loop: Loop, sample: Sample) -> Warps | None:
        """Return the same lanes in the iterations of a loop, or None if the trip count is unknown."""
        lo, hi = self.integer(loop.lo), self.integer(loop.hi)
        if lo is None or hi is None:
            return None
        trips = np.maximum(-((lo - hi) // loop.step), 0)
        each = np.where(self.active, trips, 0).max(axis=1, initial=0)
        longest = int(each.max(initial=0))
        looked = min(longest, sample.trips)
        if looked == 0:
            return self._none()
        at = np.arange(longest)[None, :] if looked == longest else _spread(each, looked)
        at = np.broadcast_to(at, (len(each), looked)).reshape(-1, 1)
        weight = np.repeat(self.weight, looked) * (1.0 if looked == longest else np.repeat(each / looked, looked))
        env = {name: _repeated(v, len(each), looked) for name, v in self.env.items()}
        lo, trips = (_repeated(v, len(each), looked) for v in (lo, trips))
        env[loop.var] = lo + loop.step * at
        return Warps(env, np.repeat(self.active, looked, axis=0) & (at < trips), weight)

    def _none(self) -> Warps:
        return replace(self, active=np.zeros_like(self.active))


def _spread(each: np.ndarray, looked: int) -> np.ndarray:
    """In the middles of as many equal parts of each warp's iterations."""
    middles: np.ndarray = (2 * np.arange(looked)[None, :] + 1) * each[:, None] // (2 * looked)
    return middles.astype(np.int64)


def _repeated(values: np.ndarray, warps: int, times: int) -> np.ndarray:
    """Return what differs between warps, for each of their iterations."""
    return np.repeat(values, times, axis=0) if values.ndim == 2 and values.shape[0] == warps else values


def sample_warps(kernel: Kernel, at: Mapping[str, int], sample: Sample) -> Warps:
    """Return the warps of a launch with these sizes and host loop variables.

    Names: those of the axes, with their first value in the block and the distance from it; ``thread`` in the block,
    along x, y and both.
    """
    counts = blocks(kernel, at)
    width, height = kernel.block
    own = -(-width * height // LANES)
    total = prod(counts) * own
    if not total:
        empty = np.zeros((0, LANES), bool)
        return Warps({n: np.asarray(v) for n, v in at.items()}, empty, np.zeros(0))
    if total <= sample.warps:
        block, warp = np.arange(total) // own, np.arange(total) % own
        place = {"x": block % counts[0], "y": block // counts[0] % counts[1], "z": block // (counts[0] * counts[1])}
    else:
        chosen = np.arange(max(own, sample.warps // own * own))
        warp = chosen % own
        place = {d: _places(chosen, n, step) for d, n, step in zip("xyz", counts, SPREAD, strict=True)}
    thread = warp[:, None] * LANES + np.arange(LANES)[None, :]
    within = {"x": thread % width, "y": thread // width, "z": np.zeros_like(thread)}
    env: dict[str, np.ndarray] = {name: np.asarray(v, np.int64) for name, v in at.items()}
    env |= {LANE["x"]: within["x"], LANE["y"]: within["y"], LANE["xy"]: thread}
    active = thread < width * height
    threads = prod(kernel.block) * prod(counts)
    for dim, axis in kernel.grid_axes:
        first = evaluate_size(axis.lo, at) + axis.step * kernel.threads(dim) * place[dim][:, None]
        env |= {axis.var: first + axis.step * within[dim], axis.var + FIRST: first, axis.var + THREAD: within[dim]}
        if kernel.time_tile is None:
            here = kernel.threads(dim) * counts["xyz".index(dim)]
            trips = -(-(evaluate_size(axis.hi, at) - evaluate_size(axis.lo, at)) // axis.step)
            active = active & (env[axis.var] < evaluate_size(axis.hi, at))
            threads = threads * min(trips, here) // here
    # A sample stands for as many threads as there are, however many of its own are past the bounds.
    return Warps(env, active, np.full(len(warp), threads / max(1, int(active.sum()))))


LANE = {"x": "thread x", "y": "thread y", "xy": "thread"}
"""A name for a thread's place in its block: no C name has a blank."""


SPREAD = (0.8191725134, 0.6710436067, 0.5497004779)
"""Multiples of these, modulo 1, fill a cube evenly: 1 / g, 1 / g^2 and 1 / g^3 where g^4 = g + 1."""


def _places(chosen: np.ndarray, count: int, step: float) -> np.ndarray:
    """Of the blocks along a dimension, as many as are chosen."""
    return np.asarray(((0.5 + chosen * step) % 1.0 * count).astype(np.int64))
