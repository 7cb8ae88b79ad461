"""The limits of a block of threads on an NVIDIA GPU: a version over a limit is refused before it reaches the device.

    registers of a block = registers a thread, rounded up to 8  x  threads, rounded up to whole warps of 32

Registers are allocated for a warp at a time, in units of 256: 170 registers for 384 threads are 65280 and yet too many.
Source: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from looptune.backends.codegen.kernel import MOST_DYNAMIC_BYTES
from looptune.schedule.directives.base import GPU_THREADS

if TYPE_CHECKING:
    from looptune.backends.base import Resources


def exceeded(resources: Iterable[Resources]) -> str | None:
    """Return the first limit that a kernel exceeds, with both numbers, or None if all may run.

    The limits are the same on all GPUs since compute capability 5.0, except that of shared memory: a kernel that
    declares it has 48 KiB, and a launch that asks for it has what the device allows. Backends check both; here the most
    of all devices is the limit.
    """
    for used in resources:
        registers = _up(used.registers, 8) * _up(used.threads, 32)
        for needs, limit, what in (
            (used.threads, GPU_THREADS, "threads per block"),
            (registers, 65536, "registers per block"),
            (used.shared_bytes, MOST_DYNAMIC_BYTES, "bytes of shared memory per block"),
            (used.local_bytes, 512 * 1024, "bytes of local memory per thread"),
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
