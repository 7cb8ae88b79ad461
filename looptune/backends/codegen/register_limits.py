"""The registers and blocks that the compiler of a CUDA kernel is told, by which it allocates registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from looptune.schedule.directives.launchbounds import OFF, MinBlocks
from looptune.schedule.directives.maxregs import MaxRegisters

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel


REGISTERS, MOST_REGISTERS = 65536, 255
"""Of a multiprocessor, and of a thread; since compute capability 5.0."""


def max_registers(kernel: Kernel) -> int:
    """Return how many registers a thread takes at most, 0 where the compiler decides."""
    limit = kernel.annotation(MaxRegisters)
    return 0 if limit is None else limit.max_registers


def launch_bounds(kernel: Kernel) -> tuple[int, ...]:
    """Return the threads of a block at most and, where that is given, the blocks of a multiprocessor at least.

    Empty where the compiler is told nothing: it does not take both these and a number of registers.
    """
    said = kernel.annotation(MinBlocks)
    blocks = kernel.blocks_per_sm or (0 if said is None else said.min_blocks_per_sm)
    if max_registers(kernel) or blocks == OFF:
        return ()
    threads = kernel.block[0] * kernel.block[1]
    return (threads, blocks) if blocks else (threads,)


def available_registers(kernel: Kernel) -> int:
    """Return how many registers a thread has, by what the compiler is told and the threads of a block."""
    beside = (*launch_bounds(kernel), 1, 1)[1]
    return max_registers(kernel) or min(MOST_REGISTERS, REGISTERS // (kernel.block[0] * kernel.block[1] * beside))
