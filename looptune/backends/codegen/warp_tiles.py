"""The text of a kernel whose products tensor cores compute: strips copied ahead, products of warps, sums of elements.

    strips of the first values of k are on their way
    for k in steps of 16: wait · barrier · begin a later strip · sums += left strip * right strip, for each warp
    barrier · the sums of all warps go to shared memory, in place of the strips · barrier
    for each element of the block, the threads side by side: the rest of an iteration of the grid, with its sum

What lies beyond the loops is zero in the strips, and its sums are not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from looptune.backends.codegen import memory_ops
from looptune.backends.codegen.writer import TensorCoreWriter
from looptune.ir.nodes import Assign, Const, Load, Loop, Var
from looptune.lower.fragments import LANES, QUADS
from looptune.lower.plan import Dimension, Kernel
from looptune.lower.tiles import AHEAD, BUFFER, FIRST, NEXT, WIDE
from looptune.lower.warp_tiles import COLUMN, ROW, TILES, StripOperand, WarpTiles

SLOT, SUMS, PLACE, ELEMENT, COPY = "slot", "sums__tile", "place__tile", "element__tile", "copy__tile"
TARGET = Var("target__tile", "uint32")


def emit_warp_body(kernel: Kernel, tiles: WarpTiles, writer: TensorCoreWriter, dynamic: bool) -> Iterator[str]:
    """Yield the body of a kernel whose products tensor cores compute.

    ``dynamic``: the launch says how much shared memory there is.
    """
    return _Emission(kernel, tiles, writer).lines(dynamic)


@dataclass(frozen=True, slots=True)
class _Emission:
    kernel: Kernel
    tiles: WarpTiles
    writer: TensorCoreWriter

    def lines(self, dynamic: bool) -> Iterator[str]:
        writer, tiles, indent = self.writer, self.tiles, "    "
        writer.tiles = frozenset({TILES})
        if dynamic:
            yield indent + writer.dynamic_shared(TILES, tiles.dtype)
        else:
            yield indent + writer.shared(TILES, tiles.elements, tiles.dtype, WIDE)
        yield indent + writer.declare("uint32", SLOT, writer.thread("x"), fits=True)
        for dim, axis in self.kernel.grid_axes:
            yield indent + self.first(dim, axis)
        for number in range(tiles.sums):
            yield indent + writer.local_array(f"{SUMS}{number}", tiles.shape.sums, tiles.dtype)
            yield indent + writer.clear_sums(f"{SUMS}{number}", tiles.shape.sums, tiles.dtype)
        for number, operand in enumerate(tiles.operands):
            yield indent + writer.declare("uint32", f"{PLACE}{number}", self.lane_place(operand))
        yield from self.strips(indent)
        yield from self.elements(indent)
        writer.tiles = frozenset()
        for axis in self.kernel.loops:
            for name in (axis.var, axis.var + FIRST):
                writer.unbind(name)

    def first(self, dim: Dimension, axis: Loop) -> str:
        """Return the declaration of the first iteration of a block along a dimension."""
        writer, unsigned = self.writer, self.writer.counts_unsigned(axis)
        kind = "uint32" if unsigned else "int64"
        name = axis.var if dim == "z" else axis.var + FIRST
        block, per = writer.block_number(dim, kind), axis.step * self.kernel.threads(dim)
        lo, scaled = writer.bound(axis.lo), block if per == 1 else f"{block} * {per}"
        made = writer.declare(kind, writer.name(name), scaled if lo == "0" else f"{lo} + {scaled}")
        writer.bind(name, unsigned)
        return made

    def lane_place(self, operand: StripOperand) -> str:
        """Return where in a buffer the lane reads its first element of a strip."""
        writer, shape = self.writer, self.tiles.shape
        warp = writer.quotient(SLOT, str(LANES))
        if operand.axis is self.kernel.axes[0]:
            first = f"{writer.quotient(warp, str(shape.wide))} * {shape.warp_rows}"
        else:
            first = f"{warp} % {shape.wide} * {shape.warp_columns}"
        group, quad = writer.quotient(f"{SLOT} % {LANES}", str(QUADS)), f"{SLOT} % {QUADS}"
        side = f"({first} + {group}) * {operand.side_stride}"
        return f"{operand.offset} + {side} + {quad} * {operand.step_stride}"

    def strips(self, indent: str) -> Iterator[str]:
        """Yield the loop over the strips."""
        writer, tiles, loop = self.writer, self.tiles, self.tiles.loop
        var, buffer, following = loop.var + AHEAD, loop.var + BUFFER, loop.var + NEXT
        kind, start, end = writer.range_of(loop)
        step = loop.step * tiles.shape.strip

        def begin(at: str) -> Iterator[str]:
            yield at + writer.if_(f"{var} < {end}")
            for operand in tiles.operands:
                yield from self.copies(operand, at + "    ")
            yield from (at + line for line in writer.commit_group())
            yield at + writer.set(var, f"{var} + {step}", kind)

        yield indent + writer.declare(kind, var, start)
        yield indent + writer.declare("uint32", following, "0")
        writer.bind(var, kind == "uint32")
        yield indent + writer.while_(f"{following} < {tiles.stages - 1}")
        yield from begin(indent + "    ")
        yield indent + "    " + writer.set(following, f"{following} + 1", "uint32")
        yield indent + writer.declare("uint32", buffer, "0")
        yield indent + writer.declare(kind, loop.var + FIRST, start)
        yield indent + writer.while_(f"{loop.var}{FIRST} < {end}")
        at = indent + "    "
        yield from (at + line for line in writer.wait_group(tiles.stages - 2))
        yield at + writer.barrier
        for product in tiles.products:
            left, right = (f"{buffer} * {tiles.buffer} + {PLACE}{tiles.operands.index(o)}"
                           for o in (product.left, product.right))  # fmt: skip
            yield at + writer.multiply_strips(tiles, product, f"{SUMS}{product.sum}", left, right)
        yield from begin(at)  # while the last products are being computed
        yield at + writer.set(following, buffer)
        yield at + writer.set(buffer, f"({buffer} + 1) % {tiles.stages}", "uint32")
        yield at + writer.set(f"{loop.var}{FIRST}", f"{loop.var}{FIRST} + {step}", kind)
        writer.unbind(var)

    def copies(self, operand: StripOperand, indent: str) -> Iterator[str]:
        """Yield the copies of a strip to the buffer that is filled next."""
        writer, tiles, loop, threads = self.writer, self.tiles, self.tiles.loop, self.tiles.threads
        minor = (tiles.shape.strip if operand.along else operand.side) // operand.vector
        count = operand.side * tiles.shape.strip // operand.vector
        opened, indent = writer.scope(indent)
        yield from opened
        yield indent + writer.declare("uint32", COPY, "0")
        yield indent + writer.while_(f"{COPY} < {count}")
        at = indent + "    "
        yield at + writer.declare("uint32", ELEMENT, f"{COPY} + {SLOT}")
        uneven = bool(count % threads)
        if uneven:
            yield at + writer.if_(f"{ELEMENT} < {count}")
        inside = at + "    " * uneven
        across, row = (
            f"{ELEMENT} % {minor}" + f" * {operand.vector}" * (operand.vector > 1),
            writer.quotient(ELEMENT, str(minor)),
        )
        yield inside + writer.declare("uint32", COLUMN.name, across)
        yield inside + writer.declare("uint32", ROW.name, row)
        for v in (ROW.name, COLUMN.name):
            writer.bind(v, True)
        side, step = (ROW, COLUMN) if operand.along else (COLUMN, ROW)
        yield inside + self.iteration(operand.axis, operand.axis.var + FIRST, side.name)
        yield inside + self.iteration(loop, loop.var + AHEAD, step.name)
        place = f"{loop.var}{NEXT} * {tiles.buffer} + {operand.offset} + {ROW.name} * {operand.pitch} + {COLUMN.name}"
        yield from (inside + line for line in self.copied(operand, place))
        for v in (ROW.name, COLUMN.name, loop.var, operand.axis.var):
            writer.unbind(v)
        yield at + writer.set(COPY, f"{COPY} + {threads}", "uint32")

    def iteration(self, loop: Loop, first: str, further: str) -> str:
        """Return the declaration of a loop's variable, so many iterations after the first one."""
        writer = self.writer
        unsigned = writer.counts_unsigned(loop)
        value = f"{writer.name(first)} + {further}" + (f" * {loop.step}" if loop.step > 1 else "")
        made = writer.declare("uint32" if unsigned else "int64", writer.name(loop.var), value)
        writer.bind(loop.var, unsigned, loop)
        return made

    def within(self, loop: Loop) -> str:
        unsigned = self.writer.counts_unsigned(loop)
        return f"{self.writer.name(loop.var)} < {self.writer.limit(loop, unsigned)}"

    def copied(self, operand: StripOperand, place: str) -> Iterator[str]:
        """Yield the copy of an element, or of a vector, or the store of a computed factor."""
        writer = self.writer
        inside = [(operand.axis, operand.side), (self.tiles.loop, self.tiles.shape.strip)]
        there = [self.within(loop) for loop, count in inside if not _whole(loop, count)]
        there += map(writer.condition, operand.within)
        width = operand.vector * np.dtype(self.tiles.dtype).itemsize
        if operand.load is not None and width in memory_ops.WIDTHS:
            source = writer.name(operand.load.array), writer.global_index(operand.load.index[0])
            yield writer.copy_async(width, (TILES, writer.unsigned(place)), source, there)
            return
        yield writer.declare("uint32", TARGET.name, place)
        writer.bind(TARGET.name, True)
        target = Load(TILES, (TARGET,), self.tiles.dtype)
        if there:
            yield writer.if_(writer.both(*there))
        yield from writer.statement(Assign(target, operand.value), "    " * bool(there))
        if there:
            yield writer.else_()
            yield from writer.statement(Assign(target, Const(0.0, self.tiles.dtype)), "    ")
        writer.unbind(TARGET.name)

    def elements(self, indent: str) -> Iterator[str]:
        """Yield what is done with the sums."""
        writer, tiles, shape = self.writer, self.tiles, self.tiles.shape
        yield from (indent + line for line in writer.wait_group(0))
        yield indent + writer.barrier
        yield indent + writer.declare("uint32", PLACE, self.sum_place())
        for number in range(tiles.sums):
            at = writer.unsigned(f"{PLACE} + {number * shape.rows * tiles.sum_pitch}")
            yield indent + writer.store_sums(tiles, f"{SUMS}{number}", at)
        yield indent + writer.barrier
        yield indent + writer.declare("uint32", ELEMENT, SLOT)
        yield indent + writer.while_(f"{ELEMENT} < {shape.rows * shape.columns}")
        at = indent + "    "
        row, column = self.kernel.axes
        yield at + writer.declare("uint32", ROW.name, writer.quotient(ELEMENT, str(shape.columns)))
        yield at + writer.declare("uint32", COLUMN.name, f"{ELEMENT} % {shape.columns}")
        for v in (ROW.name, COLUMN.name):
            writer.bind(v, True)
        yield at + self.iteration(row, row.var + FIRST, ROW.name)
        yield at + self.iteration(column, column.var + FIRST, COLUMN.name)
        yield at + writer.if_(writer.both(self.within(row), self.within(column)))
        yield from writer.block(tiles.body, at + "    ")
        for v in (ROW.name, COLUMN.name):
            writer.unbind(v)
        yield at + writer.set(ELEMENT, f"{ELEMENT} + {tiles.threads}", "uint32")

    def sum_place(self) -> str:
        """Return where in shared memory the first sum of the lane goes."""
        writer, shape = self.writer, self.tiles.shape
        warp = writer.quotient(SLOT, str(LANES))
        row = f"{writer.quotient(warp, str(shape.wide))} * {shape.warp_rows}"
        row = f"({row} + {writer.quotient(f'{SLOT} % {LANES}', str(QUADS))}) * {self.tiles.sum_pitch}"
        return f"{row} + {warp} % {shape.wide} * {shape.warp_columns} + {SLOT} % {QUADS} * 2"


def _whole(loop: Loop, count: int) -> bool:
    """Return whether the iterations of a loop are a multiple of a number."""
    match loop.lo, loop.hi:
        case Const(int(lo)), Const(int(hi)):
            return (hi - lo) % (count * loop.step) == 0
    return False
