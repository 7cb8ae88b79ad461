"""GPUs by name: the capacity and throughput of a multiprocessor, and of the memory.

Clocks and rates are those that the manufacturers state (boost clock, memory bandwidth); for what they do not state,
bandwidth and latencies of the caches, one estimate is used for all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from looptune.core.errors import UsageError
from looptune.runtime.device import slug

if TYPE_CHECKING:
    from looptune.runtime.roofline import Peaks


@dataclass(frozen=True, slots=True)
class Chip:
    """The facts of a GPU.

    ``fp32`` and ``fp64``: fused operations that a multiprocessor issues per clock. ``l1_bytes`` includes its shared
    memory, of which all blocks together may have ``shared_bytes``.
    """

    name: str
    arch: str
    multiprocessors: int
    ghz: float
    memory_gbs: float
    l2_bytes: int
    l1_bytes: int
    shared_bytes: int
    threads: int
    blocks: int
    fp32: int
    fp64: int
    registers: int = 65536

    @property
    def cycles_per_us(self) -> float:
        return self.ghz * 1e3

    def measured(self, peaks: Peaks) -> Chip:
        """Return the device with the bandwidth and clock that were measured."""
        ghz = self.ghz if peaks.fma32 is None else peaks.fma32.best / (2 * self.fp32 * self.multiprocessors)
        return replace(self, ghz=ghz, memory_gbs=max(peaks.copy.best, peaks.read.best))


KIB, MIB = 2**10, 2**20
CHIPS = (
    Chip("NVIDIA H200", "sm_90", 132, 1.98, 4800, 50 * MIB, 256 * KIB, 228 * KIB, 2048, 32, 128, 64),
    Chip("NVIDIA H100 80GB HBM3", "sm_90", 132, 1.98, 3350, 50 * MIB, 256 * KIB, 228 * KIB, 2048, 32, 128, 64),
    Chip("NVIDIA H100 PCIe", "sm_90", 114, 1.755, 2040, 50 * MIB, 256 * KIB, 228 * KIB, 2048, 32, 128, 64),
    Chip("NVIDIA A100-SXM4-80GB", "sm_80", 108, 1.41, 2039, 40 * MIB, 192 * KIB, 164 * KIB, 2048, 32, 64, 32),
    Chip("NVIDIA A100-SXM4-40GB", "sm_80", 108, 1.41, 1555, 40 * MIB, 192 * KIB, 164 * KIB, 2048, 32, 64, 32),
    Chip("NVIDIA L40S", "sm_89", 142, 2.52, 864, 96 * MIB, 128 * KIB, 100 * KIB, 1536, 24, 128, 2),
    Chip("NVIDIA GeForce RTX 4090", "sm_89", 128, 2.52, 1008, 72 * MIB, 128 * KIB, 100 * KIB, 1536, 24, 128, 2),
    Chip("NVIDIA GeForce RTX 3090", "sm_86", 82, 1.695, 936, 6 * MIB, 128 * KIB, 100 * KIB, 1536, 16, 128, 2),
    Chip("Tesla V100-SXM2-32GB", "sm_70", 80, 1.53, 900, 6 * MIB, 128 * KIB, 96 * KIB, 2048, 32, 64, 32),
    Chip("Tesla T4", "sm_75", 40, 1.59, 320, 4 * MIB, 96 * KIB, 64 * KIB, 1024, 16, 64, 2),
)
DEFAULT = CHIPS[0]


def named(name: str) -> Chip:
    """Return the first device whose name begins so, without the vendor and in any case.

    Raises UsageError if there is none.
    """
    asked = slug(name)
    for chip in CHIPS:
        own = slug(chip.name)
        short = own.removeprefix("nvidia-").removeprefix("tesla-").removeprefix("geforce-")
        if asked and any(n.startswith(asked) for n in (own, short, short.removeprefix("rtx-"))):
            return chip
    there = ", ".join(c.name for c in CHIPS)
    raise UsageError(f"no GPU known by the name '{name}': choose one of {there}")
