"""Tiles in shared memory: what a block reads of an array in a loop, copied there before it runs the loop.

    A[3*i + r][k - 1], r in 0..3, of i in i0 .. i0 + 8, k in k0 .. k0 + 16
        tile     origin (3*i0, k0 - 1), 24 x 16 elements
        access   A_tile[3*(i - i0) + r][k - k0]

A subscript is a sum of multiples of the grid's variables, whose values in a block follow its threads; of the variables
of the loop and of those inside, whose ranges have to be known; and of what is the same for all threads of the block.
Accesses that differ by constants share a tile where their tiles would overlap or touch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from looptune.backends.cuda_team import BARRIER, Strided
from looptune.backends.text import never_negative
from looptune.errors import DirectiveError
from looptune.ir import Assign, Bin, Const, Expr, If, Load, Loop, Node, Stmt, Var, While
from looptune.mapping import Kernel, Plan
from looptune.ranges import Range, between, difference, inside, linear
from looptune.rewrite import rewrite, walk, walk_stmts
from looptune.scope import names_in, written
from looptune.simplify import add, mul, sub

FIRST, THREAD = "__first", "__thread"
"""What names end with: the value of a grid's variable in the first thread of the block, and the thread's distance."""
STRAIGHT = 16
"""So many elements a thread copies one after the other; more in a loop."""


@dataclass(frozen=True, slots=True)
class Tile:
    """``origin``: the subscripts of its first element, the same for all threads; ``shape`` in elements, rows ``pitch``
    apart."""

    name: str
    array: str
    dtype: str
    origin: tuple[Expr, ...]
    shape: tuple[int, ...]
    pitch: int

    @property
    def rows(self) -> int:
        """How many rows of the last dimension it has."""
        count = 1
        for n in self.shape[:-1]:
            count *= n
        return count

    @property
    def size(self) -> int:
        """Elements of shared memory."""
        return self.rows * self.pitch


@dataclass(frozen=True, slots=True)
class Staged:
    """``body`` reads tiles; ``at`` are the tiles to fill before a loop, by its identity; ``all`` those of the kernel's
    own loops, to be filled first. ``when``: the condition under which a thread has anything to do, as in a triangle."""

    body: tuple[Stmt, ...]
    at: Mapping[int, tuple[Tile, ...]]
    all: tuple[Tile, ...]
    when: Expr | None = None

    @property
    def tiles(self) -> tuple[Tile, ...]:
        return (*self.all, *(t for tiles in self.at.values() for t in tiles))


def staged(kernel: Kernel, plan: Plan) -> Staged | None:
    """None where nothing is staged; DirectiveError where it cannot be."""
    asked = [f for f in (*kernel.loops, *walk(kernel.body)) if isinstance(f, Loop) and f.staged]
    if asked and kernel.team is not None:
        raise _refused(asked[0], asked[0].staged, "a team of threads shares a loop that reduces in this kernel")
    return _Stager(kernel, plan).run() if asked else None


@dataclass(frozen=True, slots=True)
class _Place:
    """A subscript: ``axes`` and ``inner`` are multiples of variables, ``rest`` of what the block's threads share."""

    axes: tuple[tuple[str, int], ...]
    inner: tuple[tuple[str, int], ...]
    rest: frozenset[tuple[Expr, int]]
    constant: int


@dataclass(slots=True)
class _Stager:
    kernel: Kernel
    plan: Plan
    at: dict[int, tuple[Tile, ...]] = field(default_factory=dict)
    made: int = 0
    whole: tuple[str, ...] = ()

    def run(self) -> Staged:
        self.whole = tuple(dict.fromkeys(a for f in self.kernel.loops for a in f.staged))
        body, when = self.kernel.body, None
        match body:
            case (If(cond, then, ()),) if not any(isinstance(n, Load) for n in walk(cond)):
                body, when = then, cond
        body = self.block(body, True)
        tiles: tuple[Tile, ...] = ()
        if self.whole:
            nest = Loop("", Const(0), Const(1), body, span=self.kernel.loops[0].span)
            done, tiles = self.tiled(nest, self.whole)
            body = done.body
        return Staged(body, self.at, tiles, when)

    def block(self, body: tuple[Stmt, ...], together: bool) -> tuple[Stmt, ...]:
        """``together``: all threads of the block come here."""
        return tuple(self.statement(s, together) for s in body)

    def statement(self, stmt: Stmt, together: bool) -> Stmt:
        match stmt:
            case Loop() if self.mine(stmt):
                arrays = self.mine(stmt)
                if not together or not self.same((stmt.lo, stmt.hi)):
                    raise _refused(stmt, arrays, "threads of a block do not come to it together")
                done, tiles = self.tiled(stmt, arrays)
                self.at[id(done)] = tiles
                return done
            case Loop(body=body):
                return replace(stmt, body=self.block(body, together and self.same((stmt.lo, stmt.hi))))
            case If(cond, then, other):
                here = together and self.same((cond,))
                return replace(stmt, then=self.block(then, here), other=self.block(other, here))
        return stmt

    def mine(self, loop: Loop) -> tuple[str, ...]:
        """The arrays staged at the loop itself: neither for the whole kernel nor at a loop inside."""
        inside = {a for n in walk(loop.body) if isinstance(n, Loop) for a in n.staged}
        return tuple(a for a in loop.staged if a not in self.whole and a not in inside)

    def same(self, exprs: tuple[Expr, ...]) -> bool:
        """They have one value in all threads of the block."""
        own = {a.var for a in self.kernel.loops if a is not self.kernel.deep} | {v.name for v in self.kernel.locals}
        return not names_in(exprs) & own and not any(isinstance(n, Load) for n in walk(exprs))

    def tiled(self, loop: Loop, arrays: Sequence[str]) -> tuple[Loop, tuple[Tile, ...]]:
        """The loop reading tiles of the arrays."""
        ranges = self.ranges(loop)
        tiles: list[Tile] = []
        env: dict[Load, Load] = {}
        for array in arrays:
            if array in written(self.kernel.body):
                raise _refused(loop, (array,), "the kernel writes it")
            if None in self.plan.array(array).shape:
                raise _refused(loop, (array,), "how long it is has to be declared")
            accesses = list(dict.fromkeys(n for n in walk(loop.body) if isinstance(n, Load) and n.array == array))
            places = [tuple(self.place(e, ranges, loop, array) for e in a.index) for a in accesses]
            for group in self.groups(places, ranges):
                tile = self.tile(array, [places[k] for k in group], ranges)
                tiles.append(tile)
                env |= {accesses[k]: self.access(tile, places[k], [places[g] for g in group], ranges) for k in group}

        def rule(n: Node) -> Node | None:
            return env.get(n) if isinstance(n, Load) else None

        return replace(loop, body=rewrite(rule, loop.body)), tuple(tiles)

    def ranges(self, loop: Loop) -> dict[str, tuple[Expr, int, int]]:
        """Start, step and most iterations of the loop and of those inside."""
        found = {}
        for f in (n for n in walk((loop,)) if isinstance(n, (Loop, While))):
            if isinstance(f, While):
                continue
            if f.var:
                found[f.var] = f.lo, f.step, _most(f)
        return found

    def place(self, e: Expr, ranges: Mapping[str, tuple[Expr, int, int]], loop: Loop, array: str) -> _Place:
        terms, constant = linear(e)
        axes: dict[str, int] = {}
        inner: dict[str, int] = {}
        rest: dict[Expr, int] = {}
        threads = {a.var for a in self.kernel.loops if a is not self.kernel.deep}
        while terms:
            term, factor = terms.popitem()
            match term:
                case Var(name) if name in threads:
                    axes[name] = axes.get(name, 0) + factor
                case Var(name) if name in ranges:
                    lo, _, most = ranges[name]
                    if most < 1:
                        raise _refused(loop, (array,), f"how often loop {name} runs is not known: tile it")
                    inner[name] = inner.get(name, 0) + factor
                    more, start = linear(lo)
                    constant += factor * start
                    for t, k in more.items():
                        terms[t] = terms.get(t, 0) + factor * k
                case _ if names_in(term) & (threads | ranges.keys()) or not self.same((term,)):
                    raise _refused(loop, (array,), "a subscript of it is not affine")
                case _:
                    rest[term] = rest.get(term, 0) + factor
        return _Place(_known(axes), _known(inner), frozenset((t, k) for t, k in rest.items() if k), constant)

    def extent(self, p: _Place, ranges: Mapping[str, tuple[Expr, int, int]]) -> int:
        """So many elements one access touches along a dimension, from the least to the greatest."""
        return 1 + sum(abs(step) * (count - 1) for step, count in self.steps(p, ranges))

    def steps(self, p: _Place, ranges: Mapping[str, tuple[Expr, int, int]]) -> Iterator[tuple[int, int]]:
        for name, factor in p.axes:
            dim, axis = next((d, a) for d, a in self.kernel.sides if a.var == name)
            yield factor * axis.step, self.kernel.threads(dim)
        for name, factor in p.inner:
            _, step, most = ranges[name]
            yield factor * step, most

    def groups(
        self, places: Sequence[tuple[_Place, ...]], ranges: Mapping[str, tuple[Expr, int, int]]
    ) -> list[list[int]]:
        """The accesses that share a tile."""
        groups: list[list[int]] = []
        for k, place in enumerate(places):
            near = [g for g in groups if any(self.near(place, places[m], ranges) for m in g)]
            groups = [g for g in groups if g not in near] + [[*(m for g in near for m in g), k]]
        return [sorted(g) for g in groups]

    def near(self, a: tuple[_Place, ...], b: tuple[_Place, ...], ranges: Mapping[str, tuple[Expr, int, int]]) -> bool:
        return all(
            (p.axes, p.inner, p.rest) == (q.axes, q.inner, q.rest)
            and abs(p.constant - q.constant) <= self.extent(p, ranges)
            for p, q in zip(a, b, strict=True)
        )

    def tile(
        self, array: str, group: Sequence[tuple[_Place, ...]], ranges: Mapping[str, tuple[Expr, int, int]]
    ) -> Tile:
        first = group[0]
        spread = [max(p[d].constant for p in group) - min(p[d].constant for p in group) for d in range(len(first))]
        shape = tuple(self.extent(p, ranges) + s for p, s in zip(first, spread, strict=True))
        origin = tuple(self.origin(p, min(g[d].constant for g in group), ranges) for d, p in enumerate(first))
        x = next((axis.var for dim, axis in self.kernel.sides if dim == "x"), "")
        across = any(name == x for p in first[:-1] for name, _ in p.axes)
        pitch = shape[-1] + (1 if across and shape[-1] % 2 == 0 else 0)
        name = f"{array}_{self.made}__tile"
        self.made += 1
        return Tile(name, array, self.plan.array(array).dtype, origin, shape, pitch)

    def origin(self, p: _Place, constant: int, ranges: Mapping[str, tuple[Expr, int, int]]) -> Expr:
        """The least subscript in the block."""
        back = sum(min(0, step) * (count - 1) for step, count in self.steps(p, ranges))
        e: Expr = Const(0)
        for name, factor in sorted(p.axes, key=lambda a: -a[1]):
            axis = next(a for a in self.kernel.loops if a.var == name)
            e = _plus(e, factor, Var(name + FIRST, axis.dtype))
        for term, factor in sorted(p.rest, key=lambda t: (-t[1], str(t[0]))):
            e = _plus(e, factor, term)
        return _plus(e, constant + back, Const(1))

    def access(
        self, tile: Tile, mine: tuple[_Place, ...], group: Sequence[tuple[_Place, ...]],
        ranges: Mapping[str, tuple[Expr, int, int]],
    ) -> Load:  # fmt: skip
        """The element of the tile, by its place in shared memory."""
        flat: Expr = Const(0)
        for d, p in enumerate(mine):
            forth = sum(max(0, -step) * (count - 1) for step, count in self.steps(p, ranges))
            e: Expr = Const(p.constant - min(g[d].constant for g in group) + forth)
            for name, factor in sorted(p.axes, key=lambda a: -a[1]):
                axis = next(a for a in self.kernel.loops if a.var == name)
                e = _plus(e, factor * axis.step, Var(name + THREAD, axis.dtype))
            for name, factor in sorted(p.inner, key=lambda a: -a[1]):
                e = _plus(e, factor, _from_start(Var(name), ranges[name][0]))
            width = tile.pitch if d == len(mine) - 1 else tile.shape[d]
            flat = add(mul(flat, Const(width)), e)
        return Load(tile.name, (flat,), tile.dtype)


def _plus(e: Expr, factor: int, term: Expr) -> Expr:
    """``e + factor * term`` without a negative constant, for unsigned arithmetic."""
    if factor < 0:
        return sub(e, mul(Const(-factor), term))
    return add(e, mul(Const(factor), term)) if factor else e


def _from_start(var: Var, lo: Expr) -> Expr:
    return var if lo == Const(0, lo.dtype) else Bin("-", var, lo)


def _known(terms: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, factor) for name, factor in terms.items() if factor))


def _most(loop: Loop) -> int:
    """The most iterations it may have; 0 where that is not known."""
    ends = [loop.hi]
    found = []
    while ends:
        match ends.pop():
            case Bin("min", lhs, rhs):
                ends += [lhs, rhs]
            case hi:
                (p, c), (q, d) = linear(hi), linear(loop.lo)
                if p == q:
                    found.append(max(0, -(-(c - d) // loop.step)))
    return min(found, default=0)


def _refused(loop: Loop, arrays: Sequence[str], why: str) -> DirectiveError:
    return DirectiveError(f"stage {', '.join(arrays)} at loop {loop.var}: {why}", loop.span)


def shared_bytes(tiles: Sequence[Tile]) -> int:
    return sum(t.size * np.dtype(t.dtype).itemsize for t in tiles)


def together(kernel: Kernel, stage: Staged, writer: Strided, live: str) -> Iterator[str]:
    """The body of the kernel, its axes being assigned; ``live``: the thread has an iteration, "" for always."""
    threads = kernel.block[0] * kernel.block[1]
    yield f"    slot = uint32(cuda.threadIdx.y * {kernel.block[0]} + cuda.threadIdx.x)"
    for tile in stage.tiles:
        yield f"    {tile.name} = cuda.shared.array({tile.size}, {tile.dtype})"
    for local in kernel.locals:
        yield from writer.statement(Assign(Var(local.name, local.dtype), Const(0, local.dtype)), "    ")
    asked = [live, *([writer.condition(stage.when)] if stage.when is not None else [])]
    live = " and ".join(c for c in asked if c)
    if live:
        yield f"    live = {live}"
    emission = _Emission(kernel, stage, writer, "live" if live else "", threads)
    yield from emission.fill(stage.all, "    ", emission.blocks())
    yield from emission.block(stage.body, "    ", emission.blocks())


@dataclass(frozen=True, slots=True)
class _Emission:
    """``env`` below are the ranges of variables that all threads of a block share."""

    kernel: Kernel
    stage: Staged
    writer: Strided
    live: str
    threads: int

    def blocks(self) -> dict[str, Range]:
        """Where the first threads of blocks may be."""
        found: dict[str, Range] = {}
        for dim, axis in self.kernel.sides:
            match axis.lo, axis.hi:
                case Const(int(lo)), Const(int(hi)) if hi > lo:
                    per = axis.step * self.kernel.threads(dim)
                    found[axis.var + FIRST] = lo, lo + (hi - lo - 1) // per * per
                    if axis is self.kernel.deep:
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
        return any(id(n) in self.stage.at for n in walk_stmts(stmt))

    def own(self, body: tuple[Stmt, ...], indent: str) -> Iterator[str]:
        """What every thread does for itself."""
        if body:
            if self.live:
                yield f"{indent}if {self.live}:"
            yield from self.writer.block(body, indent + "    " if self.live else indent)

    def statement(self, stmt: Stmt, indent: str, env: Mapping[str, Range]) -> Iterator[str]:
        match stmt:
            case Loop() if id(stmt) in self.stage.at:
                yield from self.fill(self.stage.at[id(stmt)], indent, env)
                yield from self.own((stmt,), indent)
            case Loop(body=body):
                inner = inside(stmt, env)
                yield from self.writer.loop(stmt, indent, within=lambda at: self.block(body, at, inner))
            case If(cond, then, other):
                yield f"{indent}if {self.writer.condition(cond)}:"
                yield from self.block(then, indent + "    ", env)
                if other:
                    yield f"{indent}else:"
                    yield from self.block(other, indent + "    ", env)

    def fill(self, tiles: Sequence[Tile], indent: str, env: Mapping[str, Range]) -> Iterator[str]:
        """The threads of the block copy the tiles, each every so many elements."""
        if tiles:
            yield f"{indent}{BARRIER}"
        for tile in tiles:
            yield from self.copy(tile, indent, env)
        if tiles:
            yield f"{indent}{BARRIER}"

    def copy(self, tile: Tile, indent: str, env: Mapping[str, Range]) -> Iterator[str]:
        count, per = tile.rows * tile.shape[-1], self.threads
        rounds = -(-count // per)
        if rounds > STRAIGHT:
            yield f"{indent}copy__tile = slot"
            yield f"{indent}while copy__tile < {count}:"
            yield from self.element(tile, "copy__tile", indent + "    ", env)
            yield f"{indent}    copy__tile = uint32(copy__tile + {per})"
            return
        for k in range(rounds):  # side by side, so that their loads overlap
            ragged = k == rounds - 1 and count % per
            if ragged:
                yield f"{indent}if slot < {count - k * per}:"
            yield from self.element(tile, f"(slot + {k * per})" if k else "slot", indent + "    " * bool(ragged), env)

    def element(self, tile: Tile, number: str, indent: str, env: Mapping[str, Range]) -> Iterator[str]:
        """One element, ``number`` in the order of the tile's rows."""
        places = [Var(f"place{d}__tile") for d in range(len(tile.shape))]
        left = number
        for d in reversed(range(1, len(tile.shape))):
            yield f"{indent}{places[d].name} = uint32({left} % {tile.shape[d]})"
            yield f"{indent}{places[0].name} = uint32({left} // {tile.shape[d]})"
            left = places[0].name
        if len(tile.shape) == 1:
            yield f"{indent}{places[0].name} = uint32({number})"
        for v in places:
            self.writer.bind(v.name, True)
        where = {**env, **{v.name: (0, n - 1) for v, n in zip(places, tile.shape, strict=True)}}
        at = tuple(add(o, v) for o, v in zip(tile.origin, places, strict=True))
        row: Expr = Const(0)
        for v, n in zip(places[:-1], tile.shape[:-1], strict=True):
            row = add(mul(row, Const(n)), v)
        target = self.writer.unsigned_index(add(mul(row, Const(tile.pitch)), places[-1]))
        there = list(self.within(tile, at, where))
        value = self.writer.element(Load(tile.array, at, tile.dtype))
        if there:
            value = f"{value} if {' and '.join(there)} else {tile.dtype}(0)"
        yield f"{indent}{tile.name}[{target}] = {value}"
        for v in places:
            self.writer.unbind(v.name)

    def within(self, tile: Tile, at: tuple[Expr, ...], env: Mapping[str, Range]) -> Iterator[str]:
        """That the element is there, as far as it is not known."""
        for e, n in zip(at, self.writer.plan.array(tile.array).shape, strict=True):
            assert n is not None, "a staged array has all its extents"
            above, below = difference(e, n, env), between(e, env)
            signed = not never_negative(e, self.writer.nonnegative)
            if signed and (below is None or below[0] < 0):
                yield f"{self.writer.bound(e)} >= 0"
            if above is None or above[1] >= 0:
                yield f"{self.writer.bound(e)} < {self.writer.bound(n)}"
