"""Lower bounds on the time of a launch, one for each resource; the longest is its bound.

    memory           bytes from and to it / bandwidth
    L2               bytes / L2_BYTES per clock and multiprocessor
    shared memory    passes of the L1 or shared memory, one per clock
    FMA, double      operations / those issued per clock
    issue            instructions of warps / 4 per clock
    latency          cycles that one warp waits, times the number of waves of blocks

All but the first two are those of the multiprocessor with the most blocks. The predicted time is longer than the
longest bound, since they do not overlap wholly: see ``SHARPNESS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from looptune.tune.cost_model.cache_traffic import Traffic
    from looptune.tune.cost_model.devices import Chip
    from looptune.tune.cost_model.kernel_walk import KernelWork
    from looptune.tune.cost_model.occupancy import Occupancy
    from looptune.tune.cost_model.warp_program import LoopWork

L2_BYTES = 24.0
"""Of a clock and multiprocessor."""
ISSUED = 4.0
"""Warps whose instructions a multiprocessor begins in a clock."""
L1_CYCLES, SHARED_CYCLES, L2_CYCLES, MEMORY_CYCLES = 35.0, 25.0, 270.0, 600.0
"""From asking to having."""
OPERATION_CYCLES, BARRIER_CYCLES, INSTRUCTION_CYCLES = 4.0, 30.0, 2.0
"""From an operation to the next that needs it; of a barrier; from an instruction of a warp to its next."""
UNROLLED, SHORT = 4, 40.0
"""So many iterations of a short loop are begun together by the compiler, where nothing is stored in it."""
STARTING_US = 2.0
"""Of a launch, from the first thread's start to the last one's end."""
SHARPNESS = 3.0
"""The time is the sum of the bounds in this norm."""
EFFICIENT = 0.9
"""What is reached of a memory's bandwidth."""


@dataclass(frozen=True, slots=True)
class Times:
    """The predicted time of one launch and its lower bounds by resource, in microseconds."""

    bounds: Mapping[str, float]
    time_us: float

    @property
    def bound(self) -> str:
        return max(self.bounds, key=lambda b: self.bounds[b])


def times(
    counted: KernelWork, moved: Traffic, held: Occupancy, chip: Chip, grid: tuple[int, int, int], memory_bytes: float
) -> Times:  # fmt: skip
    """Return the predicted time of one launch.

    ``memory_bytes`` is the part of ``moved.memory`` that is not in the L2 already.
    """
    blocks = prod(grid)
    if not blocks or not counted.warps:
        return Times({"latency": 0.0}, 0.0)
    share = ceil(blocks / chip.multiprocessors) / blocks
    resident = max(1, held.blocks)
    turns = max(1.0, ceil(blocks / chip.multiprocessors) / resident)
    whole = counted.nest.all_instructions
    busy = sum(u.passes for u in counted.nest.every_use)
    cycles = {
        "L2": moved.l2 * max(share / 2, 1 / chip.multiprocessors) / L2_BYTES,
        "shared memory": busy * share,
        "FMA": whole.fp32 * 32 / chip.fp32 * share,
        "double": whole.fp64 * 32 / chip.fp64 * share,
        "issue": whole.total / ISSUED * share,
        "latency": turns * _waits(counted.nest, _cycles(counted, moved, memory_bytes)),
    }  # fmt: skip
    bounds = {name: c / chip.cycles_per_us for name, c in cycles.items()}
    bounds["memory"] = memory_bytes / (chip.memory_gbs * EFFICIENT) / 1e3
    total = sum(t**SHARPNESS for t in bounds.values()) ** (1 / SHARPNESS)
    return Times(bounds, STARTING_US + total)


def _cycles(counted: KernelWork, moved: Traffic, memory_bytes: float) -> float:
    """Return what a load takes, by how many of them miss the caches."""
    loads = sum(u.sectors for u in counted.nest.every_use if not u.shared) * 32
    missing = min(1.0, moved.l2 / loads) if loads else 0.0
    beyond = min(1.0, memory_bytes / loads) if loads else 0.0
    return L1_CYCLES + missing * (L2_CYCLES - L1_CYCLES) + beyond * (MEMORY_CYCLES - L2_CYCLES)


def _waits(nest: LoopWork, load_cycles: float) -> float:
    """Return the cycles from a warp's start to its end if it ran alone."""
    runs = nest.runs
    each = nest.instructions.total / nest.requests if nest.requests else 0.0
    together = UNROLLED if _unrolls(nest, each) else 1
    load = 0.0 if nest.ahead else load_cycles * nest.depth / min(together, max(1.0, nest.trips))
    shared = SHARED_CYCLES / together if any(u.shared and not u.write for u in nest.uses) else 0.0
    own = load + shared + OPERATION_CYCLES * nest.chain + BARRIER_CYCLES * nest.barriers + INSTRUCTION_CYCLES * each
    return runs * own + sum(_waits(n, load_cycles) for n in nest.inner)


def _unrolls(nest: LoopWork, each: float) -> bool:
    return bool(nest.counter) and not nest.inner and not nest.stores and not nest.barriers and each <= SHORT
