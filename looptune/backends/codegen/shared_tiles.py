"""The text of a kernel with tiles: all threads of a block fill them, wait for each other, and read them.

    barrier · tile[slot], tile[slot + 256], ... = array[...] · barrier · the loop, reading the tile

A thread without an iteration of its own fills and waits like the others. Rows that begin and end at multiples of 16
bytes are copied 16 bytes at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import prod

import numpy as np

from looptune.backends.codegen import memory_ops
from looptune.backends.codegen.writer import KernelWriter
from looptune.ir.nodes import Assign, Const, Expr, If, Loop, Stmt, Var
from looptune.ir.rewrite import walk_outside_loops, walk_stmts
from looptune.lower.plan import Kernel
from looptune.lower.tiles import AHEAD, BUFFER, NEXT, ONCE, WIDE, SharedTiles, Tile, TileCopy, copy_place, filled_tiles


def emit_tiled_body(kernel: Kernel, stage: SharedTiles, writer: KernelWriter, live: str) -> Iterator[str]:
    """Yield the body of a kernel with tiles, after its axes are assigned.

    ``live``: the condition that the thread has an iteration, "" for always.
    """
    threads = kernel.block[0] * kernel.block[1]
    yield "    " + writer.declare("uint32", "slot", f"{writer.thread('y')} * {kernel.block[0]} + {writer.thread('x')}")
    for tile in stage.tiles:
        yield "    " + writer.shared(
            tile.name, tile.buffers * tile.size, tile.dtype, WIDE if tile.vector_width > 1 else 0
        )
    live = writer.both(live, writer.condition(stage.when) if stage.when is not None else "")
    at_once = set() if live else _opening(stage.body)
    for local in (v for v in kernel.locals if not v.shape and v.name not in at_once):
        yield from writer.statement(Assign(Var(local.name, local.dtype), Const(0, local.dtype)), "    ")
    if live:
        yield "    " + writer.declare("bool", "live", live, fits=True)
    if stage.when is not None:  # of a triangle about half the blocks have nothing to do
        yield "    " + writer.if_(writer.negated(writer.block_any("live")))
        yield f"        {writer.leave}"
    emission = _Emission(kernel, writer, "live" if live else "", threads)
    yield from emission.fill(stage.all, "    ")
    yield from emission.block(stage.body, "    ")


def _opening(body: tuple[Stmt, ...]) -> set[str]:
    """Return the variables that its first statements assign, whatever happens."""
    first = takewhile(lambda s: isinstance(s, Assign), body)
    return {s.target.name for s in first if isinstance(s, Assign) and isinstance(s.target, Var)}


@dataclass(frozen=True, slots=True)
class _Emission:
    kernel: Kernel
    writer: KernelWriter
    live: str
    threads: int

    def block(self, body: tuple[Stmt, ...], indent: str) -> Iterator[str]:
        alone: list[Stmt] = []
        for stmt in body:
            if not self.collective(stmt):
                alone.append(stmt)
                continue
            yield from self.own(tuple(alone), indent)
            alone.clear()
            yield from self.statement(stmt, indent)
        yield from self.own(tuple(alone), indent)

    def collective(self, stmt: Stmt) -> bool:
        return any(map(filled_tiles, walk_stmts(stmt)))

    def own(self, body: tuple[Stmt, ...], indent: str) -> Iterator[str]:
        """Yield what every thread does for itself."""
        if body:
            if self.live:
                yield indent + self.writer.if_(self.live)
            yield from self.writer.block(body, indent + "    " if self.live else indent)

    def statement(self, stmt: Stmt, indent: str) -> Iterator[str]:
        match stmt:
            case Loop() if tiles := filled_tiles(stmt):
                if not any(t.prefetch_loop for t in tiles):
                    yield from self.fill(tiles, indent)
                yield from self.own((stmt,) if stmt.var != ONCE else stmt.body, indent)
            case Loop() if self.later(stmt):
                yield from self.prefetch(stmt, indent)
            case Loop(body=body):
                yield from self.writer.loop(stmt, indent, within=lambda at: self.block(body, at))
            case If(cond, then, other):
                yield indent + self.writer.if_(self.writer.condition(cond))
                yield from self.block(then, indent + "    ")
                if other:
                    yield indent + self.writer.else_()
                    yield from self.block(other, indent + "    ")

    def later(self, loop: Loop) -> tuple[Tile, ...]:
        """Return the tiles that are filled for later iterations of the loop."""
        return tuple(t for s in walk_outside_loops(loop.body) for t in filled_tiles(s) if t.prefetch_loop)

    def prefetch(self, loop: Loop, indent: str) -> Iterator[str]:
        """Yield the loop, beginning the copies of a later iteration's tiles in each; see ``memory_ops``."""
        writer, tiles, var = self.writer, self.later(loop), loop.var
        kind, start, end = writer.range_of(loop)
        count, buffer = max(t.buffers for t in tiles), var + BUFFER

        def begin(number: int, at: str) -> Iterator[str]:
            """Yield the copies to a buffer; the last number is that of the buffer that a variable says."""
            yield at + writer.if_(f"{var}{AHEAD} < {end}")
            for tile in tiles:
                yield from self.copy(tile, at + "    ", tile.copies[number])
            yield from (at + line for line in writer.commit_group())
            yield at + writer.set(f"{var}{AHEAD}", f"{var}{AHEAD} + {loop.step}", kind)

        def body(at: str) -> Iterator[str]:
            yield from (at + line for line in writer.wait_group(count - 2))
            yield f"{at}{writer.barrier}"
            yield from begin(count - 1, at)
            yield from self.block(loop.body, at)
            yield at + writer.set(f"{var}{NEXT}", buffer)
            yield at + writer.set(buffer, f"({buffer} + 1) % {count}", "uint32")

        opened, at = writer.scope(indent)
        yield from opened
        yield f"{at}{writer.barrier}"
        yield at + writer.declare(kind, f"{var}{AHEAD}", start, fits=True)
        for name in (var + AHEAD, buffer, var + NEXT):
            writer.bind(name, name != var + AHEAD or kind == "uint32")
        for k in range(count - 1):
            yield from begin(k, at)
        yield at + writer.declare("uint32", buffer, "0")
        yield at + writer.declare("uint32", f"{var}{NEXT}", str(count - 1))
        yield from writer.loop(loop, at, within=body)
        for name in (var + AHEAD, buffer, var + NEXT):
            writer.unbind(name)

    def fill(self, tiles: Sequence[Tile], indent: str) -> Iterator[str]:
        """Yield the copies of tiles that the threads of the block make together, between barriers."""
        if tiles:
            yield f"{indent}{self.writer.barrier}"
        for tile in tiles:
            (copies,) = tile.copies
            yield from self.copy(tile, indent, copies)
        if tiles:
            yield f"{indent}{self.writer.barrier}"

    def copy(self, tile: Tile, indent: str, copies: Sequence[TileCopy]) -> Iterator[str]:
        count, per = prod(tile.row_copies), self.threads
        opened, indent = self.writer.scope(indent)
        yield from opened
        if count > per * len(copies):
            yield indent + self.writer.declare("uint32", "copy__tile", "slot", fits=True)
            yield indent + self.writer.while_(f"copy__tile < {count}")
            yield from self.element(tile, "copy__tile", indent + "    ", copies[0])
            yield f"{indent}    " + self.writer.set("copy__tile", f"copy__tile + {per}", "uint32")
            return
        for copy in copies:  # side by side, so that their loads overlap
            if count - copy.skipped < per:
                yield indent + self.writer.if_(f"slot < {count - copy.skipped}")
                yield from self.element(tile, "slot", indent + "    ", copy)
                continue
            opened, at = self.writer.scope(indent)
            yield from opened
            yield from self.element(tile, "slot", at, copy)

    def element(self, tile: Tile, number: str, indent: str, copy: TileCopy) -> Iterator[str]:
        """Yield one copy: ``number + copy.skipped`` in the order of the tile's rows."""
        counts = tile.row_copies
        places = [copy_place(d) for d in range(len(counts))]
        left, later = number, copy.skipped
        for d in reversed(range(1, len(counts))):
            if later % counts[d]:
                left, later = f"({left} + {later})", 0
            yield indent + self.writer.declare("uint32", places[d].name, f"{left} % {counts[d]}")
            rest, later = self.writer.quotient(left, str(counts[d])), later // counts[d]
            if d == len(counts) - 1:
                yield indent + self.writer.declare("uint32", places[0].name, rest)
            else:
                yield indent + self.writer.set(places[0].name, rest, "uint32")
            left = places[0].name
        if len(counts) == 1:
            yield indent + self.writer.declare("uint32", places[0].name, number)
        for v in places:
            self.writer.bind(v.name, True)
        yield from (indent + line for line in self.stored(tile, copy))
        for v in places:
            self.writer.unbind(v.name)

    def stored(self, tile: Tile, copy: TileCopy) -> Iterator[str]:
        writer, width = self.writer, tile.vector * np.dtype(tile.dtype).itemsize
        target, there = writer.global_index(copy.target), tuple(map(self.within, copy.within))
        later = bool(tile.prefetch_loop) and width in memory_ops.WIDTHS
        if tile.vector == 1 and not later:
            value, every = writer.element(copy.source), writer.both(*there)
            yield writer.store(
                tile.name, target, writer.select(every, value, writer.zero(tile.dtype)) if every else value
            )
            return
        (place,) = copy.source.index
        to, source = (tile.name, target), (writer.name(tile.array), writer.global_index(place))
        if later:
            yield writer.copy_async(width, to, source, there)
            return
        every = writer.both(*there)
        if every:
            yield writer.if_(every)
        yield "    " * bool(every) + writer.copied(width, to, source)
        if every:
            yield writer.else_()
            for k in range(tile.vector):
                at = writer.unsigned(f"{target} + {k}")
                yield "    " + writer.store(tile.name, at, writer.zero(tile.dtype))

    def within(self, asked: tuple[Expr, Expr | None]) -> str:
        """Return the condition that a subscript is not negative, or below an extent."""
        e, extent = asked
        return (
            f"{self.writer.bound(e)} >= 0"
            if extent is None
            else f"{self.writer.bound(e)} < {self.writer.bound(extent)}"
        )
