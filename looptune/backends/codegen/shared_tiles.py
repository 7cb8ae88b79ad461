"""The text of a kernel with tiles: all threads of a block fill them, wait for each other, and read them.

    barrier · tile[slot], tile[slot + 256], ... = array[...] · barrier · the loop, reading the tile

A thread without an iteration of its own fills and waits like the others. Rows that begin and end at multiples of 16
bytes are copied 16 bytes at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from looptune.backends.codegen import memory_ops
from looptune.backends.codegen.writer import KernelWriter
from looptune.ir.intervals import Range, body_ranges, difference_range, never_negative, range_of
from looptune.ir.nodes import Assign, Const, Expr, If, Load, Loop, Stmt, Var
from looptune.ir.rewrite import substitute, walk_outside_loops, walk_stmts
from looptune.ir.simplify import add, mul
from looptune.lower.passes.loop_normalization import split_full_strips
from looptune.lower.plan import Kernel
from looptune.lower.tiles import AHEAD, BUFFER, FIRST, WIDE, SharedTiles, Tile, filled_tiles

NEXT = "__next"
"""What the name of a variable ends with: the buffer that is filled next."""
_ONE = Const(0)
"""Where there is but one buffer."""
STRAIGHT = 16
"""So many copies a thread makes one after the other; more in a loop."""


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
    emission = _Emission(kernel, stage, writer, "live" if live else "", threads)
    yield from emission.fill(stage.all, "    ", emission.blocks())
    yield from emission.block(stage.body, "    ", emission.blocks())


def _opening(body: tuple[Stmt, ...]) -> set[str]:
    """Return the variables that its first statements assign, whatever happens."""
    first = takewhile(lambda s: isinstance(s, Assign), body)
    return {s.target.name for s in first if isinstance(s, Assign) and isinstance(s.target, Var)}


@dataclass(frozen=True, slots=True)
class _Emission:
    """``env`` below are the ranges of variables that all threads of a block share."""

    kernel: Kernel
    stage: SharedTiles
    writer: KernelWriter
    live: str
    threads: int

    def blocks(self) -> dict[str, Range]:
        """Where the first threads of blocks may be."""
        found: dict[str, Range] = {}
        for dim, axis in self.kernel.grid_axes:
            match axis.lo, axis.hi:
                case Const(int(lo)), Const(int(hi)) if hi > lo:
                    per = axis.step * self.kernel.threads(dim)
                    found[axis.var + FIRST] = lo, lo + (hi - lo - 1) // per * per
                    if axis is self.kernel.z_axis:
                        found[axis.var] = lo, hi - 1
        return found

    def block(self, body: tuple[Stmt, ...], indent: str, env: Mapping[str, Range]) -> Iterator[str]:
        alone: list[Stmt] = []
        for stmt in body:
            if not self.collective(stmt):
                alone.append(stmt)
                continue
            yield from self.own(tuple(alone), indent)
            alone.clear()
            yield from self.statement(stmt, indent, env)
        yield from self.own(tuple(alone), indent)

    def collective(self, stmt: Stmt) -> bool:
        return any(map(filled_tiles, walk_stmts(stmt)))

    def own(self, body: tuple[Stmt, ...], indent: str) -> Iterator[str]:
        """Yield what every thread does for itself."""
        if body:
            if self.live:
                yield indent + self.writer.if_(self.live)
            yield from self.writer.block(body, indent + "    " if self.live else indent)

    def statement(self, stmt: Stmt, indent: str, env: Mapping[str, Range]) -> Iterator[str]:
        match stmt:
            case Loop() if tiles := filled_tiles(stmt):
                if not any(t.prefetch_loop for t in tiles):
                    yield from self.fill(tiles, indent, env)
                vectors = {t.name: t.vector for t in tiles}
                yield from self.own(split_full_strips(stmt, vectors), indent)
            case Loop(body=body) if self.later(stmt):
                yield from self.prefetch(stmt, indent, env)
            case Loop(body=body):
                inner = body_ranges(stmt, env)
                yield from self.writer.loop(stmt, indent, within=lambda at: self.block(body, at, inner))
            case If(cond, then, other):
                yield indent + self.writer.if_(self.writer.condition(cond))
                yield from self.block(then, indent + "    ", env)
                if other:
                    yield indent + self.writer.else_()
                    yield from self.block(other, indent + "    ", env)

    def later(self, loop: Loop) -> tuple[Tile, ...]:
        """Return the tiles that are filled for later iterations of the loop."""
        return tuple(t for s in walk_outside_loops(loop.body) for t in filled_tiles(s) if t.prefetch_loop)

    def prefetch(self, loop: Loop, indent: str, env: Mapping[str, Range]) -> Iterator[str]:
        """Yield the loop, beginning the copies of a later iteration's tiles in each; see ``cuda_ahead``."""
        writer, tiles, var, inner = self.writer, self.later(loop), loop.var, body_ranges(loop, env)
        kind, start, end = writer.range_of(loop)
        count, buffer = max(t.buffers for t in tiles), var + BUFFER
        env = {**env, **({var + AHEAD: inner[var]} if var in inner else {})}
        moved = [replace(t, origin=substitute(t.origin, {var: Var(var + AHEAD, loop.dtype)})) for t in tiles]

        def begin(into: Expr, at: str) -> Iterator[str]:
            yield at + writer.if_(f"{var}{AHEAD} < {end}")
            for tile in moved:
                yield from self.copy(tile, at + "    ", env, into)
            yield from (at + line for line in writer.commit_group())
            yield at + writer.set(f"{var}{AHEAD}", f"{var}{AHEAD} + {loop.step}", kind)

        def body(at: str) -> Iterator[str]:
            yield from (at + line for line in writer.wait_group(count - 2))
            yield f"{at}{writer.barrier}"
            yield from begin(Var(var + NEXT), at)
            yield from self.block(loop.body, at, inner)
            yield at + writer.set(f"{var}{NEXT}", buffer)
            yield at + writer.set(buffer, f"({buffer} + 1) % {count}", "uint32")

        opened, at = writer.scope(indent)
        yield from opened
        yield f"{at}{writer.barrier}"
        yield at + writer.declare(kind, f"{var}{AHEAD}", start, fits=True)
        for name in (var + AHEAD, buffer, var + NEXT):
            writer.bind(name, name != var + AHEAD or kind == "uint32")
        writer.count(replace(loop, var=var + AHEAD), 1)
        for k in range(count - 1):
            yield from begin(Const(k), at)
        yield at + writer.declare("uint32", buffer, "0")
        yield at + writer.declare("uint32", f"{var}{NEXT}", str(count - 1))
        yield from writer.loop(loop, at, within=body)
        for name in (var + AHEAD, buffer, var + NEXT):
            writer.unbind(name)

    def fill(self, tiles: Sequence[Tile], indent: str, env: Mapping[str, Range]) -> Iterator[str]:
        """Yield the threads of the block copy the tiles, each every so many elements."""
        if tiles:
            yield f"{indent}{self.writer.barrier}"
        for tile in tiles:
            yield from self.copy(tile, indent, env)
        if tiles:
            yield f"{indent}{self.writer.barrier}"

    def copy(self, tile: Tile, indent: str, env: Mapping[str, Range], buffer: Expr = _ONE) -> Iterator[str]:
        count, per = tile.rows * tile.shape[-1] // tile.vector, self.threads
        rounds = -(-count // per)
        opened, indent = self.writer.scope(indent)
        yield from opened
        if rounds > STRAIGHT:
            yield indent + self.writer.declare("uint32", "copy__tile", "slot", fits=True)
            yield indent + self.writer.while_(f"copy__tile < {count}")
            yield from self.element(tile, "copy__tile", indent + "    ", env, buffer)
            yield f"{indent}    " + self.writer.set("copy__tile", f"copy__tile + {per}", "uint32")
            return
        for k in range(rounds):  # side by side, so that their loads overlap
            ragged = k == rounds - 1 and count % per
            if ragged:
                yield indent + self.writer.if_(f"slot < {count - k * per}")
                yield from self.element(tile, "slot", indent + "    ", env, buffer, k * per)
                continue
            opened, at = self.writer.scope(indent)
            yield from opened
            yield from self.element(tile, "slot", at, env, buffer, k * per)

    def element(
        self, tile: Tile, number: str, indent: str, env: Mapping[str, Range], buffer: Expr, later: int = 0
    ) -> Iterator[str]:
        """One element, or one vector of them: ``number + later`` in the order of the tile's rows.

        Whole rows of ``later`` are a constant of the place: the same division for all the elements that a thread
        copies.
        """
        places = [Var(f"place{d}__tile") for d in range(len(tile.shape))]
        counts = (*tile.shape[:-1], tile.shape[-1] // tile.vector)
        left = number
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
        where = {**env, **{v.name: (0, n - 1) for v, n in zip(places, counts, strict=True)}}
        where[places[0].name] = (0, counts[0] - 1 - later)
        first, *inner = (*places[:-1], mul(Const(tile.vector), places[-1]))
        inside = (add(first, Const(later * (tile.vector if len(counts) == 1 else 1))), *inner)
        at = tuple(add(o, v) for o, v in zip(tile.origin, inside, strict=True))
        target = self.writer.global_index(add(mul(buffer, Const(tile.size)), tile.place(inside)))
        there = tuple(self.bounds_checks(tile, at, where))
        source = Load(tile.array, at, tile.dtype)
        yield from (indent + line for line in self.stored(tile, target, source, there))
        for v in places:
            self.writer.unbind(v.name)

    def stored(self, tile: Tile, target: str, source: Load, there: Sequence[str]) -> Iterator[str]:
        """``there``: the conditions under which the array has the element; where it has not, zero is."""
        writer, width = self.writer, tile.vector * np.dtype(tile.dtype).itemsize
        later = bool(tile.prefetch_loop) and width in memory_ops.WIDTHS
        if tile.vector == 1 and not later:
            value, every = writer.element(source), writer.both(*there)
            yield writer.store(
                tile.name, target, writer.select(every, value, writer.zero(tile.dtype)) if every else value
            )
            return
        to, place = (tile.name, target), (writer.name(tile.array), writer.global_index(writer.place(source)))
        if later:
            yield writer.copy_async(width, to, place, there)
            return
        every = writer.both(*there)
        if every:
            yield writer.if_(every)
        yield "    " * bool(every) + writer.copied(width, to, place)
        if every:
            yield writer.else_()
            for k in range(tile.vector):
                at = writer.unsigned(f"{target} + {k}")
                yield "    " + writer.store(tile.name, at, writer.zero(tile.dtype))

    def bounds_checks(self, tile: Tile, at: tuple[Expr, ...], env: Mapping[str, Range]) -> Iterator[str]:
        """Yield that the element is there, as far as it is not known."""
        for e, n in zip(at, self.writer.plan.array(tile.array).shape, strict=True):
            assert n is not None, "a staged array has all its extents"
            above, below = difference_range(e, n, env), range_of(e, env)
            signed = not never_negative(e, self.writer.nonnegative)
            if signed and (below is None or below[0] < 0):
                yield f"{self.writer.bound(e)} >= 0"
            if above is None or above[1] >= 0:
                yield f"{self.writer.bound(e)} < {self.writer.bound(n)}"
