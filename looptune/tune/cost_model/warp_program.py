"""The work of a kernel's warps: loops, with the accesses and instructions of an iteration.

Everything is counted in warps, since the 32 lanes of a warp are served together. An access to device memory is counted
in requests, sectors of 32 bytes and rows of 128 bytes; one to shared memory in cycles in which its banks are busy.
Instructions are estimated from the loop IR: a multiplication and the addition of its product are one, an element is
loaded once between two loops, an address takes two unless it is a constant away from another, and an iteration of a
loop adds LOOP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from looptune.ir.nodes import Load
from looptune.tune.cost_model.sector_counts import SECTOR, AffineAddress

ROW = 128
"""Bytes that a multiprocessor's cache or shared memory serves at once."""
BANK = 4
"""Bytes of one of the 32 banks of shared memory."""


@dataclass(frozen=True, slots=True)
class AccessCount:
    """One access, counted over a whole launch.

    ``requests`` are warps, ``threads`` lanes; ``passes`` is how often the cache or shared memory is busy with it.
    ``place`` is None if data or a product of counters decide the address.
    """

    load: Load
    write: bool
    shared: bool
    itemsize: int
    width: int
    place: AffineAddress | None
    requests: float
    threads: float
    sectors: float
    passes: float

    @property
    def requested_bytes(self) -> float:
        return self.threads * self.itemsize * self.width


@dataclass(frozen=True, slots=True)
class Instructions:
    """Instructions of warps over a launch: in float, in double, and all others."""

    fp32: float = 0.0
    fp64: float = 0.0
    other: float = 0.0

    @property
    def total(self) -> float:
        return self.fp32 + self.fp64 + self.other

    def plus(self, more: Instructions) -> Instructions:
        return Instructions(self.fp32 + more.fp32, self.fp64 + more.fp64, self.other + more.other)

    def times(self, count: float) -> Instructions:
        return Instructions(self.fp32 * count, self.fp64 * count, self.other * count)


@dataclass(frozen=True, slots=True)
class LoopWork:
    """The work of a loop of the kernel, or of the whole kernel.

    ``trips``: iterations each time the loop is entered; ``runs``: iterations of an average warp in all; ``requests``:
    iterations of all warps. For one iteration: ``depth`` is the length of the chain of dependent loads, ``chain`` that
    of dependent operations, ``barriers`` counts barriers; ``stores``: memory is written; ``ahead``: its loads are
    prefetched.
    """

    counter: str
    trips: float
    runs: float
    requests: float
    uses: tuple[AccessCount, ...]
    inner: tuple[LoopWork, ...]
    instructions: Instructions
    depth: int
    chain: int
    barriers: int
    stores: bool
    ahead: bool = False

    @property
    def every_use(self) -> tuple[AccessCount, ...]:
        return (*self.uses, *(u for n in self.inner for u in n.every_use))

    @property
    def every_nest(self) -> tuple[LoopWork, ...]:
        return (self, *(m for n in self.inner for m in n.every_nest))

    @property
    def all_instructions(self) -> Instructions:
        total = self.instructions
        for n in self.inner:
            total = total.plus(n.all_instructions)
        return total

    def counts(self) -> Mapping[str, float]:
        """Return how often each counter runs here."""
        own = {self.counter: self.trips} if self.counter else {}
        return own | {name: c for n in self.inner for name, c in n.counts().items()}


def count_sectors(
    at: np.ndarray, active: np.ndarray, itemsize: int, width: int, *, shared: bool
) -> tuple[np.ndarray, ...]:
    """Return for each warp the sectors that an access touches, and how often memory is busy with it.

    ``at``: index of the first element in each lane, (warps, 32); ``width``: elements per lane. For shared memory there
    are no sectors, and the second number is the largest number of different words in one bank.
    """
    first = np.broadcast_to(at, active.shape) * itemsize
    if not shared:
        units = [_different(first // u, active) for u in (SECTOR, ROW)]
        rows = np.maximum(units[1], -(-active.sum(axis=1) * itemsize * width // ROW) * (units[0] * SECTOR > ROW))
        return units[0], rows
    words = max(1, itemsize * width // BANK)
    flat = (first[:, :, None] // BANK + np.arange(words)[None, None, :]).reshape(len(active), -1)
    here = np.repeat(active[:, :, None], words, axis=2).reshape(len(active), -1)
    order = np.sort(np.where(here, flat, -1), axis=1)
    new = np.concatenate([order[:, :1] >= 0, (order[:, 1:] != order[:, :-1]) & (order[:, 1:] >= 0)], axis=1)
    busy = np.zeros((len(active), ROW // BANK), np.int64)
    np.add.at(busy, (np.nonzero(new)[0], order[new] % (ROW // BANK)), 1)
    return np.zeros(len(active)), busy.max(axis=1, initial=0)


def _different(values: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Return how many different values each warp has."""
    if not len(values):
        return np.zeros(0, np.int64)
    least = values.min() - 1
    order = np.sort(np.where(active, values, least), axis=1)
    new = (order[:, 1:] != order[:, :-1]).sum(axis=1) + 1
    return np.asarray(new - (order[:, 0] == least))
