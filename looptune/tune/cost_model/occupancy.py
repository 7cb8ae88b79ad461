"""The number of blocks of a kernel that a multiprocessor holds at once, and the resource that limits it."""

from __future__ import annotations

from dataclasses import dataclass

from looptune.tune.cost_model.devices import KIB, Chip
from looptune.tune.cost_model.warp_samples import LANES

REGISTERS_AT_ONCE = 256
"""Registers are given to a warp in this many."""
RESERVED_BYTES = KIB
"""Shared memory of each block that is the system's own, since capability 8.0."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The ``blocks`` and ``warps`` that a multiprocessor holds, of ``most`` warps; ``by`` names the limit."""

    blocks: int
    warps: int
    most: int
    by: str

    @property
    def share(self) -> float:
        return self.warps / self.most


def occupancy(chip: Chip, threads: int, shared_bytes: int, registers: int | None) -> Occupancy:
    """Return the occupancy.

    ``registers``: per thread, or None if they are unknown and do not limit. 0 blocks if none fits.
    """
    warps = -(-threads // LANES)
    each = RESERVED_BYTES if chip.arch >= "sm_80" else 0
    limits = {"threads": chip.threads // (warps * LANES), "blocks": chip.blocks}
    if shared_bytes:
        limits["shared memory"] = chip.shared_bytes // (shared_bytes + each)
    if registers:
        own = -(-registers * LANES // REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE
        limits["registers"] = chip.registers // own // warps
    by = min(limits, key=lambda k: limits[k])
    return Occupancy(limits[by], limits[by] * warps, chip.threads // LANES, by)
