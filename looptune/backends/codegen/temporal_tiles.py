"""The text of a kernel that computes tiles through several steps: loaded once, computed in registers, stored once.

    a_0, a_1 = a[i][j], a[i + 1][j]           the elements of the thread
    a_tile[...] = a_0, ...                    those that its neighbours read
    for t in t0 .. t0 + 4:
        barrier · b_0 = a_0 + a_tile[to the left], ... · b_tile[...] = b_0, ...
    if in the core: b_spare[i][j] = b_0, ...

Most blocks lie inside all bounds, and evaluate none. In the others each point evaluates the bounds of its nest. Values
beyond the tile, or the array, are arbitrary; nothing that the core needs depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from looptune.backends.codegen.writer import KernelWriter
from looptune.lower.temporal_tiles import (
    ALONG,
    INSIDE,
    ROW,
    SharedCells,
    TemporalBody,
    TemporalTile,
    TileSteps,
    column_coordinate,
    first_point,
    outermost_coordinate,
    point,
    thread_number,
)

if TYPE_CHECKING:
    from looptune.ir.nodes import Stmt
    from looptune.lower.plan import Kernel

ALIGNED = 16
"""Bytes that each array in shared memory begins at a multiple of."""


def shared_bytes(kernel: Kernel) -> int:
    """Return the bytes of shared memory that a block needs."""
    assert kernel.time_body is not None, "the plan is finished"
    sizes = (s.count * np.dtype(s.dtype).itemsize for s in kernel.time_body.shared)
    return sum(-(-n // ALIGNED) * ALIGNED for n in sizes)


def resident_kernels(kernels: Iterable[Kernel]) -> dict[tuple[SharedCells, ...], Kernel]:
    """Return the kernels whose blocks keep their tiles, one of those that share the same arrays in shared memory."""
    found = ((k, k.time_body) for k in kernels if k.time_tile is not None and k.time_tile.resident)
    return {body.shared: k for k, body in found if body is not None}


def declared_tiles(body: TemporalBody, writer: KernelWriter, indent: str) -> Iterator[str]:
    """Yield the declarations of what the threads of a block share."""
    return (indent + writer.shared_array(s.name, s.count, s.dtype) for s in body.shared)


def emit_temporal_body(kernel: Kernel, writer: KernelWriter) -> Iterator[str]:
    """Yield the body of a kernel with temporal tiles."""
    assert kernel.time_tile is not None, "the kernel takes several steps"
    assert kernel.time_body is not None, "the plan is finished"
    return _Emission(kernel.time_tile, kernel.time_body, writer).lines()


@dataclass(frozen=True, slots=True)
class _Emission:
    whole: TemporalTile
    body: TemporalBody
    writer: KernelWriter

    def lines(self) -> Iterator[str]:
        writer, body, indent = self.writer, self.body, "    "
        writer.tiles = frozenset(s.name for s in body.shared)
        if not self.whole.resident:
            yield from declared_tiles(body, writer, indent)
        yield from self.positions(indent)
        if body.interior is not None and body.inside is not None:
            yield indent + writer.declare("bool", INSIDE, writer.condition(body.inside))
            yield indent + writer.if_(INSIDE)
            yield from self.steps(body.interior, indent + "    ")
            yield indent + writer.else_()
            yield from self.steps(body.anywhere, indent + "    ")
        else:
            yield from self.steps(body.anywhere, indent)
        writer.tiles = frozenset()
        for name in (thread_number("x"), thread_number("y"), ROW):
            writer.unbind(name)

    def steps(self, steps: TileSteps, indent: str) -> Iterator[str]:
        """Yield what a block does."""
        writer = self.writer
        yield from writer.block(steps.load, indent)
        yield from self.statements(steps.publish, indent)
        yield indent + writer.barrier
        yield from writer.loop(self.whole.loop, indent, within=lambda at: self.step(steps, at))
        yield from writer.block(steps.store, indent)

    def step(self, steps: TileSteps, indent: str) -> Iterator[str]:
        for group in steps.groups:
            for element in group.lanes:
                value = self.writer.lane_value(self.writer.name(element.source), element.by)
                yield indent + self.writer.set(self.writer.name(element.target), value)
            yield from self.writer.block(group.compute, indent)
            if group.waits:
                yield indent + self.writer.barrier
            yield from self.statements(group.publish, indent)
            yield indent + self.writer.barrier

    def positions(self, indent: str) -> Iterator[str]:
        """Where the thread is in its block, and its first point in space."""
        writer, whole = self.writer, self.whole
        along = ALONG[len(whole.shape) - 1]
        for own in (d for d in reversed(along) if d != "z"):
            yield indent + writer.declare("uint32", thread_number(own), writer.thread(own))
            writer.bind(thread_number(own), True)
        for d, (dim, core, halo) in enumerate(zip(along, whole.core, whole.halo, strict=True)):
            start = f"{writer.block_number(dim, 'int64')} * {core}"
            back = f" - {halo[0]}" if halo[0] else ""
            yield indent + writer.declare("int32", first_point(d).name, start + back)
            each = whole.columns if d == len(along) - 1 else 1
            scaled = f" * {each}" if each > 1 else ""
            mine = first_point(d).name + ("" if dim == "z" else f" + {thread_number(dim)}{scaled}")
            if each > 1:
                for k in range(each):
                    yield indent + writer.declare(
                        "int32", column_coordinate(d, k).name, mine + (f" + {k}" if k else "")
                    )
                continue
            if d:
                yield indent + writer.declare("int32", point(d).name, mine)
                continue
            if dim == "y":
                yield indent + writer.declare(
                    "uint32", ROW, thread_number(dim) + (f" * {whole.rows}" if whole.rows > 1 else "")
                )
                mine = f"{first_point(d).name} + {ROW}"
                writer.bind(ROW, True)
            for row in range(whole.rows):
                yield indent + writer.declare(
                    "int32", outermost_coordinate(row).name, mine + (f" + {row}" if row else "")
                )

    def statements(self, body: Iterable[Stmt], indent: str) -> Iterator[str]:
        for stmt in body:
            yield from self.writer.statement(stmt, indent)
