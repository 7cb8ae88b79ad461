"""Bytes that a kernel moves between its caches: the accesses of a loop count once if its cache holds them.

    fits(loop)     the data of its iterations are fetched once each time the loop is entered
    else           the data of a strip of iterations that fits are fetched once for each strip
    else           the data of one iteration are fetched once for each iteration; inner loops are treated likewise

The L1 is shared by the blocks of a multiprocessor, the L2 by all blocks that run. A store goes to the L2 each time,
with its own bytes and not with whole sectors as a load does, and from there to memory once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from looptune.tune.cost_model.coalescing import fill_counts
from looptune.tune.cost_model.kernel_walk import KernelWork
from looptune.tune.cost_model.linear_forms import block
from looptune.tune.cost_model.sector_counts import SECTOR, sectors
from looptune.tune.cost_model.warp_samples import LANE

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel
    from looptune.tune.cost_model.devices import Chip
    from looptune.tune.cost_model.warp_program import AccessCount, LoopWork

STRIPS = (32, 8)
"""Iterations that share sectors, where all of a loop are too many."""
USABLE = 0.8
"""Of a cache, by what is meant to stay in it."""
Counts = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that one launch moves.

    ``requested``: by all threads; ``sectors``: by all requests of warps, in whole sectors; ``l2`` and ``memory``:
    between these and the level above; ``unique``: each sector once; ``block``: each sector once that one block touches.
    """

    requested: float
    sectors: float
    l2: float
    memory: float
    unique: float
    block: float


def traffic(kernel: Kernel, counted: KernelWork, chip: Chip, grid: tuple[int, int, int], resident: int) -> Traffic:
    """Return the bytes that one launch moves.

    ``grid`` is in blocks; ``resident`` is the number of blocks that a multiprocessor holds at once.
    """
    count = grid[0] * grid[1] * grid[2]
    uses = [u for u in counted.nest.every_use if not u.shared]
    requested, asked = sum(u.requested_bytes for u in uses), sum(u.sectors for u in uses) * SECTOR
    if not count:
        return Traffic(0, 0, 0, 0, 0, 0)
    shared = sum(t.buffers * t.size * counted.memory.itemsize[t.name] for t in counted.tiles)
    here = _Level(counted, _own(kernel, counted), count)
    held = max(1, min(resident, -(-count // chip.multiprocessors)))
    l1 = USABLE * max(0, chip.l1_bytes - shared * held) / held
    reads = [u for u in uses if not u.write]
    writes = [u for u in uses if u.write]
    stored = sum(u.requested_bytes for u in writes)
    l2 = min(here.moved(counted.nest, l1) * count, sum(u.sectors for u in reads) * SECTOR) + stored
    everywhere = {block(d): float(n) for d, n in zip("xyz", grid, strict=True)}
    wave, waves = _wave(grid, chip.multiprocessors * max(1, resident))
    together = _Level(counted, {**here.own, **wave}, waves)
    whole = replace(together, own={**here.own, **everywhere}, entered=1)
    read, written = (whole.touched(some, counted.nest) for some in (reads, writes))
    capacity = USABLE * chip.l2_bytes
    again = together.moved(counted.nest, capacity) * waves
    memory = (read if read <= capacity else max(read, again)) + written
    unique = whole.touched(uses, counted.nest)
    return Traffic(requested, asked, l2, min(memory, l2), unique, here.touched(uses, counted.nest))


def _own(kernel: Kernel, counted: KernelWork) -> dict[str, float]:
    width, height = kernel.block
    return {LANE["x"]: float(width), LANE["y"]: float(height), **fill_counts(counted.tiles)}


def _wave(grid: tuple[int, int, int], most: int) -> tuple[dict[str, float], float]:
    """Return the blocks that run at once, and how many times as many there are."""
    along: dict[str, float] = {}
    left = most
    for d, n in zip("xyz", grid, strict=True):
        along[block(d)] = float(min(n, max(1, left)))
        left = left // n
    total = grid[0] * grid[1] * grid[2]
    return along, max(1.0, total / max(1, min(most, total)))


@dataclass(frozen=True, slots=True)
class _Level:
    """Those who share a cache: ``own`` are the counters of their threads; ``entered``: so many such groups."""

    counted: KernelWork
    own: Counts
    entered: float

    def moved(self, nest: LoopWork, capacity: float) -> float:
        """Return the bytes read into the cache while one group runs the nest, over all times it does so."""
        reads = [u for u in nest.every_use if not u.shared and not u.write]
        if not reads:
            return 0.0
        times = nest.runs / nest.trips if nest.trips else 0.0
        once = self.touched([u for u in nest.every_use if not u.shared], nest)
        read = self.touched(reads, nest) * times
        if once <= capacity:
            return read
        together = self._strip(nest, capacity)
        if together > 1:
            some = self.touched(reads, replace(nest, trips=float(together))) * nest.runs / together
            return max(read, some)
        alone = replace(nest, counter="", inner=())
        each = self.touched([u for u in nest.uses if not u.shared and not u.write], alone) * nest.runs
        return max(read, each + sum(self.moved(n, capacity) for n in nest.inner))

    def _strip(self, nest: LoopWork, capacity: float) -> int:
        """Return the most of STRIPS that, one iteration after the other, touch no more than is held.

        1: none of them.
        """
        uses = [u for u in nest.every_use if not u.shared]
        possible = (n for n in STRIPS if nest.counter and nest.trips > n)
        held = (n for n in possible if self.touched(uses, replace(nest, trips=float(n))) <= capacity)
        return next(held, 1)

    def touched(self, uses: Sequence[AccessCount], nest: LoopWork) -> float:
        """Return the bytes of the whole sectors that a group touches in the nest, each time it runs it."""
        counts = {**self.own, **nest.counts()}
        arrays = dict.fromkeys(u.load.array for u in uses)
        return sum(self._array(a, [u for u in uses if u.load.array == a], counts, nest) for a in arrays)

    def _array(self, array: str, uses: Sequence[AccessCount], counts: Counts, nest: LoopWork) -> float:
        memory = self.counted.memory
        places = [u.place for u in uses if u.place is not None]
        found = sectors(places, counts, memory.itemsize[array]) * SECTOR if places else 0.0
        times = max(1.0, nest.runs / nest.trips) if nest.trips else 1.0
        found += sum(u.sectors for u in uses if u.place is None) * SECTOR / self.entered / times
        whole = memory.whole_bytes.get(array)
        return found if whole is None else min(found, -(-whole // SECTOR) * SECTOR)
