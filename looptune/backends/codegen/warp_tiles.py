"""The text of a kernel whose products tensor cores compute: strips copied ahead, products of warps, sums of elements.

    strips of the first values of k are on their way
    for k in strips of 16: wait · barrier · for each step, each warp: load, sums += left * right · begin a later strip
    barrier · the sums of all warps go to shared memory, in place of the strips · barrier
    for each element of the block, the threads side by side: the rest of an iteration of the grid, with its sum;
        a thread reads what it changes of sixteen elements before it writes the first of them

Where registers suffice, a lane loads what it needs of the next step before the cores multiply that of this one, also
from the next strip, for which it waits before the last step. What lies beyond the loops is zero in the strips, and its
sums are not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from looptune.backends.codegen import memory_ops
from looptune.backends.codegen.matrix_ops import FragmentLoad, StepProduct
from looptune.backends.codegen.register_limits import available_registers
from looptune.backends.codegen.writer import TensorCoreWriter
from looptune.ir.nodes import Assign, Const, Load, Loop, Stmt, Var
from looptune.ir.rewrite import rewrite, walk_stmts
from looptune.lower.fragments import GROUPS, LANES, QUADS
from looptune.lower.plan import Dimension, Kernel
from looptune.lower.tiles import AHEAD, BUFFER, FIRST, NEXT, WIDE
from looptune.lower.warp_tiles import COLUMN, ROW, TILES, StripOperand, WarpTiles

SLOT, SUMS, PLACE, ELEMENT, COPY = "slot", "sums__tile", "place__tile", "element__tile", "copy__tile"
STRIP, LEFT, RIGHT = "strip_sums__tile", "left__tile", "right__tile"
FIRST_ELEMENT, KEPT = "first_element__tile", "kept__tile"
MOST_BESIDE = 16
"""So many elements a thread reads before it writes one of them, since it would wait for each otherwise."""
REGISTER_BYTES, OTHER_REGISTERS = 4, 48
"""Registers besides sums and factors, for addresses and counters: enough on an H200 where nothing spilled."""
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

    @property
    def loads_ahead(self) -> bool:
        return loads_ahead(self.kernel, self.tiles)

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
        if tiles.split:
            yield indent + writer.local_array(STRIP, tiles.shape.sums, tiles.dtype)
            yield indent + writer.clear_sums(STRIP, tiles.shape.sums, tiles.dtype)
        for number, operand in enumerate(tiles.operands):
            yield indent + writer.declare("uint32", f"{PLACE}{number}", self.lane_place(operand))
        fragment = tiles.shape.fragment
        for number in range(1 + self.loads_ahead):
            left = tiles.shape.high_fragments * fragment.left_registers
            yield indent + writer.local_array(f"{LEFT}{number}", left, tiles.dtype)
            right = tiles.shape.wide_fragments * fragment.right_registers
            yield indent + writer.local_array(f"{RIGHT}{number}", right, tiles.dtype)
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
        """Return where in a buffer the lane reads its first element of a strip, or names a row of matrices."""
        writer, shape = self.writer, self.tiles.shape
        warp, lane = writer.quotient(SLOT, str(LANES)), f"{SLOT} % {LANES}"
        right = operand.axis is not self.kernel.axes[0]
        if right:
            first = f"{warp} % {shape.wide} * {shape.warp_columns}"
        else:
            first = f"{writer.quotient(warp, str(shape.wide))} * {shape.warp_rows}"
        if self.tiles.by_matrices(operand, right):
            half = writer.quotient(lane, "16")
            row = f"{SLOT} % {GROUPS} + {half} * {GROUPS}" if right else f"{SLOT} % 16"
            step = f"{writer.quotient(f'{SLOT} % 16', str(GROUPS))} * {QUADS}" if right else f"{half} * {QUADS}"
            return f"{operand.offset} + ({first} + {row}) * {operand.side_stride} + {step}"
        group, quad = writer.quotient(lane, str(QUADS)), f"{SLOT} % {QUADS}"
        side = f"({first} + {group}) * {operand.side_stride}"
        return f"{operand.offset} + {side} + {quad} * {operand.step_stride}"

    def strips(self, indent: str) -> Iterator[str]:
        """Yield the loop over the strips."""
        writer, tiles, loop = self.writer, self.tiles, self.tiles.loop
        var, buffer, following = loop.var + AHEAD, loop.var + BUFFER, loop.var + NEXT
        kind, start, end = writer.range_of(loop)
        yield indent + writer.declare(kind, var, start)
        yield indent + writer.declare("uint32", following, "0")
        writer.bind(var, kind == "uint32")
        yield indent + writer.while_(f"{following} < {tiles.stages - 1}")
        yield from self.begin(indent + "    ")
        yield indent + "    " + writer.set(following, f"{following} + 1", "uint32")
        yield indent + writer.declare("uint32", buffer, "0")
        yield indent + writer.declare(kind, loop.var + FIRST, start)
        if self.loads_ahead:
            yield from self.arrived(indent)
            yield from self.loads(0, indent)
        yield indent + writer.while_(f"{loop.var}{FIRST} < {end}")
        at = indent + "    "
        yield from self.ahead(at) if self.loads_ahead else self.in_turn(at)
        yield at + writer.set(f"{loop.var}{FIRST}", f"{loop.var}{FIRST} + {loop.step * tiles.shape.strip}", kind)
        writer.unbind(var)

    def in_turn(self, indent: str) -> Iterator[str]:
        """Yield the steps of a strip, each of which is loaded and then multiplied."""
        yield from self.arrived(indent)
        for number in range(len(self.tiles.steps)):
            yield from self.loads(number, indent)
            yield from self.multiplied(number, indent)
        yield from self.begin(indent)  # while the last products are being computed
        yield from self.turn(indent)

    def ahead(self, indent: str) -> Iterator[str]:
        """Yield the steps of a strip; while one is multiplied, the next is loaded, at last that of the next strip.

        Nobody reads the buffer before this one any more once all have this strip, so that the first step fills it.
        """
        last = len(self.tiles.steps) - 1
        for number in range(last + 1):
            if number == last:
                yield from self.arrived(indent)
                yield from self.turn(indent)
            yield from self.loads((number + 1) % (last + 1), indent)
            if number == 0:
                yield from self.begin(indent)
            yield from self.multiplied(number, indent)

    def arrived(self, indent: str) -> Iterator[str]:
        """Yield the wait for the copies of a strip by all threads."""
        yield from (indent + line for line in self.writer.wait_group(self.tiles.stages - 2))
        yield indent + self.writer.barrier

    def turn(self, indent: str) -> Iterator[str]:
        """Yield the change to the next buffer; this one is the next to be filled."""
        writer, tiles, var = self.writer, self.tiles, self.tiles.loop.var
        yield indent + writer.set(var + NEXT, var + BUFFER)
        yield indent + writer.set(var + BUFFER, f"({var}{BUFFER} + 1) % {tiles.stages}", "uint32")

    def begin(self, indent: str) -> Iterator[str]:
        """Yield the copies of a strip, where there is one."""
        writer, tiles, loop = self.writer, self.tiles, self.tiles.loop
        var = loop.var + AHEAD
        kind, _, end = writer.range_of(loop)
        yield indent + writer.if_(f"{var} < {end}")
        for operand in tiles.operands:
            yield from self.copies(operand, indent + "    ")
        yield from (indent + line for line in writer.commit_group())
        yield indent + writer.set(var, f"{var} + {loop.step * tiles.shape.strip}", kind)

    def loads(self, number: int, indent: str) -> Iterator[str]:
        """Yield the loads of what a lane holds of a step."""
        writer, tiles = self.writer, self.tiles
        product, first = tiles.steps[number]
        for right, operand in enumerate((product.left, product.right)):
            place = f"{tiles.loop.var}{BUFFER} * {tiles.buffer} + {PLACE}{tiles.operands.index(operand)}"
            place += f" + {first * operand.step_stride}" * (first > 0)
            to = f"{(LEFT, RIGHT)[right]}{number % 2 if self.loads_ahead else 0}"
            yield indent + writer.load_fragments(FragmentLoad.of(tiles, operand, bool(right)), to, place)

    def multiplied(self, number: int, indent: str) -> Iterator[str]:
        """Yield the product of a step; after a strip, its sums are added to those of the loop, if they are apart."""
        writer, tiles = self.writer, self.tiles
        product, first = tiles.steps[number]
        own = number % 2 if self.loads_ahead else 0
        sums = f"{SUMS}{product.sum}"
        yield indent + writer.multiply_step(
            StepProduct.of(tiles), STRIP if tiles.split else sums, f"{LEFT}{own}", f"{RIGHT}{own}"
        )
        if tiles.split and first + tiles.shape.fragment.steps == tiles.shape.strip:
            yield indent + writer.gather_sums(sums, STRIP, tiles.shape.sums)

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
        count = shape.rows * shape.columns
        loops = any(isinstance(stmt, Loop) for stmt in walk_stmts(tiles.body))  # their text is long
        counts = (*(() if loops else (MOST_BESIDE, 8)), 4, 2) if tiles.updated else ()
        beside = next((n for n in counts if count % (n * tiles.threads) == 0), 1)
        kept = {f"{KEPT}{n}": load for n, load in enumerate(tiles.updated)}
        writer.tiles |= kept.keys()
        for name, load in kept.items():
            yield indent + writer.local_array(name, beside, load.dtype)
        yield indent + writer.declare("uint32", FIRST_ELEMENT, SLOT)
        yield indent + writer.while_(f"{FIRST_ELEMENT} < {count}")
        at = indent + "    "
        for number in range(beside if tiles.updated else 0):
            yield from self.element(number, self.read_ahead(number), at)
        for number in range(beside):
            yield from self.element(number, self.changed(number), at)
        yield at + writer.set(FIRST_ELEMENT, f"{FIRST_ELEMENT} + {beside * tiles.threads}", "uint32")
        writer.tiles -= kept.keys()

    def element(self, number: int, body: tuple[Stmt, ...], indent: str) -> Iterator[str]:
        """Yield what is done for an element of the block, if the loops have it; ``number``: of those done together."""
        writer, tiles = self.writer, self.tiles
        opened, at = writer.scope(indent)
        yield from opened
        further = f" + {number * tiles.threads}" * (number > 0)
        yield at + writer.declare("uint32", ELEMENT, FIRST_ELEMENT + further)
        row, column = self.kernel.axes
        yield at + writer.declare("uint32", ROW.name, writer.quotient(ELEMENT, str(tiles.shape.columns)))
        yield at + writer.declare("uint32", COLUMN.name, f"{ELEMENT} % {tiles.shape.columns}")
        for v in (ROW.name, COLUMN.name):
            writer.bind(v, True)
        yield at + self.iteration(row, row.var + FIRST, ROW.name)
        yield at + self.iteration(column, column.var + FIRST, COLUMN.name)
        there = [self.within(row), self.within(column), *map(writer.condition, tiles.within)]
        yield at + writer.if_(writer.both(*there))
        yield from writer.block(body, at + "    ")
        for v in (ROW.name, COLUMN.name):
            writer.unbind(v)

    def read_ahead(self, number: int) -> tuple[Stmt, ...]:
        """Return the loads of what an element changes."""
        return tuple(Assign(_kept(n, number, load), load) for n, load in enumerate(self.tiles.updated))

    def changed(self, number: int) -> tuple[Stmt, ...]:
        """Return what is done for an element; what was read before is stored at the end."""
        kept = {load: _kept(n, number, load) for n, load in enumerate(self.tiles.updated)}
        body = rewrite(lambda node: kept.get(node) if isinstance(node, Load) else None, self.tiles.body)
        return (*body, *(Assign(load, own) for load, own in kept.items()))

    def sum_place(self) -> str:
        """Return where in shared memory the first sum of the lane goes."""
        writer, shape = self.writer, self.tiles.shape
        warp = writer.quotient(SLOT, str(LANES))
        row = f"{writer.quotient(warp, str(shape.wide))} * {shape.warp_rows}"
        row = f"({row} + {writer.quotient(f'{SLOT} % {LANES}', str(QUADS))}) * {self.tiles.sum_pitch}"
        return f"{row} + {warp} % {shape.wide} * {shape.warp_columns} + {SLOT} % {QUADS} * 2"


def loads_ahead(kernel: Kernel, tiles: WarpTiles) -> bool:
    """Return whether the registers of a lane suffice for what it holds of two steps, beside its sums.

    Two steps take turns, so their number is even. Of floats, the sums of a strip are held apart.
    """
    shape, words = tiles.shape, np.dtype(tiles.dtype).itemsize // REGISTER_BYTES
    f = shape.fragment
    factors = shape.high_fragments * f.left_registers + shape.wide_fragments * f.right_registers
    sums = shape.sums * tiles.sums * (2 if tiles.split else 1)
    needed = (sums + 2 * factors) * words + OTHER_REGISTERS
    return len(tiles.steps) % 2 == 0 and needed <= available_registers(kernel)


def _kept(n: int, number: int, load: Load) -> Load:
    """Return where the value of a load of the element ``number`` is kept."""
    return Load(f"{KEPT}{n}", (Const(number),), load.dtype)


def _whole(loop: Loop, count: int) -> bool:
    """Return whether the iterations of a loop are a multiple of a number."""
    match loop.lo, loop.hi:
        case Const(int(lo)), Const(int(hi)):
            return (hi - lo) % (count * loop.step) == 0
    return False
