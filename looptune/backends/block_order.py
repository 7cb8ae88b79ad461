"""Which place of the grid a block takes, where that is not the one it is launched for: lines that find out.

number = blockIdx.y * x__blocks + blockIdx.x            strips of 4 rows, each of them column after column
strip = number / (4 * x__blocks) * 4
number = number - strip * x__blocks
rows = min(4, y__blocks - strip)
block_y = strip + number % rows;  block_x = number / rows
"""

from __future__ import annotations

from collections.abc import Iterator

from looptune.backends.kernel_writer import KernelWriter
from looptune.ir import Const, Expr, Loop
from looptune.plans import Kernel, grid

COLUMNS, ALL = "columns__raster", "all__raster"
NUMBER, STRIP, ROWS = "number__raster", "strip__raster", "rows__raster"
X, Y = "x__raster", "y__raster"


def rastered(kernel: Kernel) -> bool:
    """Its grid has two dimensions, and blocks take strips of it."""
    return kernel.raster > 0 and {"x", "y"} <= {dim for dim, _ in kernel.sides}


def raster(kernel: Kernel, writer: KernelWriter, indent: str) -> Iterator[str]:
    """The variables X and Y."""
    along = {dim: whole(count, writer) for (dim, _), count in zip(kernel.sides, grid(kernel), strict=True)}
    most = writer.unsigned(str(kernel.raster))
    yield indent + writer.new("uint32", COLUMNS, along["x"])
    yield indent + writer.new("uint32", ALL, along["y"])
    at = f"{writer.block_number('y', 'uint32')} * {COLUMNS} + {writer.block_number('x', 'uint32')}"
    yield indent + writer.new("uint32", NUMBER, at)
    yield indent + writer.new("uint32", STRIP, f"{writer.quotient(NUMBER, f'({most} * {COLUMNS})')} * {most}")
    yield indent + writer.set(NUMBER, f"{NUMBER} - {STRIP} * {COLUMNS}", "uint32")
    left = f"{ALL} - {STRIP}"
    yield indent + writer.new("uint32", ROWS, writer.pick(f"{left} < {most}", left, most))
    yield indent + writer.new("uint32", Y, f"{STRIP} + {NUMBER} % {ROWS}")
    yield indent + writer.new("uint32", X, writer.quotient(NUMBER, ROWS))


def whole(e: Expr, writer: KernelWriter) -> str:
    """An integer of the host's, in 64 signed bits."""
    return writer.limit(Loop("", Const(0), e, ()), False)
