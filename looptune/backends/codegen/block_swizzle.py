"""The position of the grid that a block computes, if it is not the one for which it is launched.

    number = blockIdx.y * columns + blockIdx.x              swizzle 4: strips of 4 rows, each column after column
    strip = number / (4 * columns) * 4
    number = number - strip * columns
    rows = min(4, all - strip)
    y = strip + number % rows;  x = number / rows

    mine = blocks of row blockIdx.y                         pack: row q, and behind it the last row but q
    y = blockIdx.x < mine ? blockIdx.y : 31 - blockIdx.y
    x = first of row y + blockIdx.x - (blockIdx.x < mine ? 0 : mine)

If both are asked for, strips are of the launched grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from looptune.ir.nodes import Const, Expr, Loop, Var
from looptune.ir.simplify import add, div, max_of, min_of, mul, sub
from looptune.lower.plan import Kernel, launched_grid
from looptune.schedule.directives.swizzle import BlockSwizzle

if TYPE_CHECKING:
    from looptune.backends.codegen.writer import KernelWriter
    from looptune.lower.compact_grid import CompactGrid

COLUMNS, ALL = "columns__swizzle", "all__swizzle"
NUMBER, STRIP, ROWS = "number__swizzle", "strip__swizzle", "rows__swizzle"
ALONG, DOWN, MINE = "along__pack", "down__pack", "mine__pack"


def emit_block_index(kernel: Kernel, writer: KernelWriter, indent: str) -> Iterator[str]:
    """Yield the computation of the block's position; the writer's ``own`` names refer to it from then on."""
    swizzle = kernel.annotation(BlockSwizzle)
    if swizzle is not None and is_swizzled(kernel):
        yield from _swizzle(kernel, swizzle, writer, indent)
        writer.coordinates = {**writer.coordinates, "block x": "x__swizzle", "block y": "y__swizzle"}
    if kernel.packing is not None:
        yield from _pack(kernel.packing, writer, indent)
        writer.coordinates = {**writer.coordinates, "block x": "x__pack", "block y": "y__pack"}


def is_swizzled(kernel: Kernel) -> bool:
    """Return whether the kernel's grid has two dimensions, and its blocks are ordered in strips."""
    return kernel.annotation(BlockSwizzle) is not None and {"x", "y"} <= {dim for dim, _ in kernel.grid_axes}


def _swizzle(kernel: Kernel, swizzle: BlockSwizzle, writer: KernelWriter, indent: str) -> Iterator[str]:
    along = {
        dim: host_integer(count, writer)
        for (dim, _), count in zip(kernel.grid_axes, launched_grid(kernel), strict=True)
    }
    most = writer.unsigned(str(swizzle.swizzle_rows))
    yield indent + writer.declare("uint32", COLUMNS, along["x"])
    yield indent + writer.declare("uint32", ALL, along["y"])
    at = f"{writer.block_number('y', 'uint32')} * {COLUMNS} + {writer.block_number('x', 'uint32')}"
    yield indent + writer.declare("uint32", NUMBER, at)
    yield indent + writer.declare("uint32", STRIP, f"{writer.quotient(NUMBER, f'({most} * {COLUMNS})')} * {most}")
    yield indent + writer.set(NUMBER, f"{NUMBER} - {STRIP} * {COLUMNS}", "uint32")
    left = f"{ALL} - {STRIP}"
    yield indent + writer.declare("uint32", ROWS, writer.select(f"{left} < {most}", left, most))
    yield indent + writer.declare("uint32", "y__swizzle", f"{STRIP} + {NUMBER} % {ROWS}")
    yield indent + writer.declare("uint32", "x__swizzle", writer.quotient(NUMBER, ROWS))


def _pack(packing: CompactGrid, writer: KernelWriter, indent: str) -> Iterator[str]:
    x, y = "x__pack", "y__pack"
    yield indent + writer.declare("uint32", ALONG, writer.block_number("x", "uint32"))
    yield indent + writer.declare("uint32", DOWN, writer.block_number("y", "uint32"))
    for name in (DOWN, y):
        writer.bind(name, True)
    yield indent + writer.declare("uint32", MINE, host_integer(_length(packing, DOWN), writer))
    here = f"{ALONG} < {MINE}"
    below = f"{writer.unsigned(str(packing.rows - 1))} - {DOWN}"
    yield indent + writer.declare("uint32", y, writer.select(here, DOWN, below))
    before = writer.select(here, writer.unsigned("0"), MINE)
    if not packing.exact:
        beyond = writer.either(f"{y} == {DOWN}", f"{ALONG} - {MINE} >= {host_integer(_length(packing, y), writer)}")
        yield indent + writer.if_(writer.both(f"{ALONG} >= {MINE}", f"({beyond})"))
        yield f"{indent}    {writer.leave}"
    yield indent + writer.declare("uint32", x, f"{host_integer(_first(packing, y), writer)} + {ALONG} - ({before})")
    for name in (DOWN, y):
        writer.unbind(name)


def _first(packing: CompactGrid, row: str) -> Expr:
    """Return the first block of a row that has something to do; as many as there are columns where none has."""
    if packing.a < 0:
        return Const(0)
    least = div(sub(Const(packing.a - 1 - packing.c), mul(Const(packing.b), Var(row))), Const(packing.a))
    return min_of(max_of(Const(0), least), Const(packing.columns))


def _length(packing: CompactGrid, row: str) -> Expr:
    """How many blocks of a row have."""
    if packing.a > 0:
        return sub(Const(packing.columns), _first(packing, row))
    end = div(add(mul(Const(packing.b), Var(row)), Const(packing.c - packing.a)), Const(-packing.a))
    return min_of(max_of(Const(0), end), Const(packing.columns))


def host_integer(e: Expr, writer: KernelWriter) -> str:
    """Return an integer expression of the host, in 64 signed bits."""
    return writer.limit(Loop("", Const(0), e, ()), False)
