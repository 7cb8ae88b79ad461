"""The capabilities of a target, by which lowering chooses passes."""

from __future__ import annotations

from dataclasses import dataclass

from looptune.core.floating_point import Contract


@dataclass(frozen=True, slots=True)
class Machine:
    """The capabilities of a target.

    ``blocks``: threads come in blocks, as on a GPU. ``contract``: which products its compiler may contract with sums,
    where it does so by itself. ``reorder``: sums and products of innermost loops may be taken in any order.
    ``grid_barrier``: all blocks of a grid can wait for each other, so that several launches can be one.
    ``host_reads``: the host can wait for launches and read device memory, to decide on the next ones.
    ``flat_arrays``: kernels are written as text in which arrays have one subscript, counted in 32 bits.
    """

    blocks: bool
    contract: Contract = "fast"
    reorder: bool = False
    grid_barrier: bool = True
    host_reads: bool = False
    flat_arrays: bool = True


MODEL = Machine(blocks=True, flat_arrays=False, host_reads=True)
"""A GPU whose kernels are counted and not written: the cost model looks at subscripts as they are."""
