"""The limits of a block of threads on an NVIDIA GPU: a version over a limit is refused before it reaches the device.

    registers of a block = registers a thread, rounded up to 8  x  threads, rounded up to whole warps of 32

Registers are allocated for a warp at a time, in units of 256: 170 registers for 384 threads are 65280 and yet too many.
Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from looptune.backends.codegen.kernel import MOST_DYNAMIC_BYTES
from looptune.schedule.directives.base import GPU_THREADS

if TYPE_CHECKING:
    from looptune.backends.base import Resources


@dataclass(frozen=True, slots=True)
class Limits:
    """Threads, registers and bytes of shared memory a block, bytes of local memory a thread.

    The same on all GPUs since compute capability 5.0, except for shared memory: a kernel that declares it has 48 KiB,
    and a launch that asks for it has what the device allows, both of which backends check; this is the most of all.
    """

    threads: int = GPU_THREADS
    registers: int = 65536
    shared_bytes: int = MOST_DYNAMIC_BYTES
    local_bytes: int = 512 * 1024


LIMITS = Limits()


def exceeded(resources: Iterable[Resources], limits: Limits = LIMITS) -> str | None:
    """Return the first limit that a kernel exceeds, with both numbers, or None if all may run."""
    for used in resources:
        registers = _up(used.registers, 8) * _up(used.threads, 32)
        for needs, limit, what in (
            (used.threads, limits.threads, "threads per block"),
            (registers, limits.registers, "registers per block"),
            (used.shared_bytes, limits.shared_bytes, "bytes of shared memory per block"),
            (used.local_bytes, limits.local_bytes, "bytes of local memory per thread"),
        ):
            if needs > limit:
                return f"{used.kernel} needs {needs} {what}, the limit is {limit}"
    return None


def _up(number: int, unit: int) -> int:
    """Return the number rounded up to a multiple of the unit.

    >>> _up(170, 8), _up(384, 32)
    (176, 384)
    """
    return -(-number // unit) * unit
