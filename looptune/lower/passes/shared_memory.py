"""Tiles in shared memory: what a block reads of an array in a loop is copied before the block runs the loop.

    A[3*i + r][k - 1], r in 0..3, of i in i0 .. i0 + 8, k in k0 .. k0 + 16
        tile     origin (3*i0, k0 - 1), 24 x 16 elements
        access   A_tile[3*(i - i0) + r][k - k0]

A subscript is a sum of multiples of the grid's variables, whose values in a block follow its threads; of the variables
of the loop and of inner loops, whose ranges have to be known; and of what is the same for all threads of the block.
Accesses that differ by constants share a tile if their tiles would overlap or touch. Loops in a staged one count from
0, so that an access is a multiple of the counters. A tile whose rows begin and end at multiples of 16 bytes, in the
array as in the tile, is copied 16 bytes at a time; a loop along its rows is unrolled accordingly. If a thread reads
rows side by side and its neighbour the next ones, or if the directive asks for it, the tile is transposed: its columns
are contiguous.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import gcd, prod

import numpy as np

from looptune.core.errors import DirectiveError
from looptune.ir.def_use import names_in, written_names
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import Annotations, Const, Expr, If, Load, Loop, Node, Stmt, Var, While
from looptune.ir.rewrite import conjunction, has_load, rewrite, walk, walk_outside_loops
from looptune.ir.simplify import add, mul, sub
from looptune.lower.passes.loop_normalization import max_trip_count, normalize_loop, unroll_loop
from looptune.lower.plan import Kernel, Plan
from looptune.lower.staged_tiles import staged_arrays, staged_tiles, staging_loops
from looptune.lower.tiles import BUFFER, FIRST, THREAD, WIDE, SharedTiles, Tile, TileFill
from looptune.poly.disjoint import Surroundings, never_written


def stage_tiles(kernel: Kernel, plan: Plan) -> SharedTiles | None:
    """Return the tiles of a kernel, or None if nothing is staged.

    Raises DirectiveError if a directive asks for a tile that cannot be made.
    """
    asked = staging_loops((*kernel.loops, *walk(kernel.body)))
    if asked and kernel.team is not None:
        raise _refused(
            asked[0], staged_arrays(asked[:1]), "a team of threads shares a loop that reduces in this kernel"
        )
    return _Stager(kernel, plan).run() if asked else None


def stage_kernel(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with its tiles; one that takes several steps in tiles of its own as it is."""
    return (
        kernel
        if kernel.keeps_tiles or kernel.warp_tiles is not None
        else replace(kernel, tiles=stage_tiles(kernel, plan))
    )


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
    made: int = 0
    whole: tuple[str, ...] = ()
    around: tuple[Loop, ...] = ()
    buffers: int = 1
    ahead: str = ""
    across: tuple[str, ...] = ()

    def run(self) -> SharedTiles:
        self.whole = staged_arrays(self.kernel.loops)
        when, body = _asked(self.kernel.body)
        body = self.block(body, True)
        tiles: tuple[Tile, ...] = ()
        several = next((f for f in self.kernel.loops if staged_tiles(f).buffers > 1), None)
        if several is not None:
            raise _refused(several, staged_arrays((several,)), _alone(several))
        if self.whole:
            self.across = tuple(a for f in self.kernel.loops for a in staged_tiles(f).transposed_tiles)
            nest = Loop("", Const(0), Const(1), body, span=self.kernel.loops[0].span)
            done, tiles = self.tiled(nest, self.whole)
            body = done.body
        return SharedTiles(body, tiles, conjunction(when) if when else None)

    def block(self, body: tuple[Stmt, ...], together: bool) -> tuple[Stmt, ...]:
        """``together``: all threads of the block come here."""
        return tuple(self.statement(s, together) for s in body)

    def statement(self, stmt: Stmt, together: bool) -> Stmt:
        match stmt:
            case Loop() if self.staged_here(stmt):
                arrays = self.staged_here(stmt)
                if not together or not self.same((stmt.lo, stmt.hi)):
                    raise _refused(stmt, arrays, "not all threads of a block reach it")
                asked = staged_tiles(stmt)
                self.buffers, self.across = asked.buffers, asked.transposed_tiles
                self.ahead = self.refill_variable(stmt, arrays) if asked.buffers > 1 else ""
                done, tiles = self.tiled(stmt, arrays)
                self.buffers, self.ahead, self.across = 1, "", ()
                return replace(done, annotations=Annotations((*done.annotations, TileFill(tiles))))
            case Loop(body=body):
                self.around, around = (*self.around, stmt), self.around
                done = replace(stmt, body=self.block(body, together and self.same((stmt.lo, stmt.hi))))
                self.around = around
                return done
            case If(cond, then, other):
                here = together and self.same((cond,))
                return replace(stmt, then=self.block(then, here), other=self.block(other, here))
        return stmt

    def refill_variable(self, loop: Loop, arrays: Sequence[str]) -> str:
        """Return the variable of the loop directly around, in each of whose iterations the tiles are others."""
        if not self.around or all(s is not loop for s in walk_outside_loops(self.around[-1].body)):
            raise _refused(loop, arrays, _alone(loop))
        return self.around[-1].var

    def staged_here(self, loop: Loop) -> tuple[str, ...]:
        """Return the arrays staged at the loop itself: neither for the whole kernel nor at a loop inside."""
        inside = staged_arrays(walk(loop.body))
        return tuple(a for a in staged_arrays((loop,)) if a not in self.whole and a not in inside)

    def same(self, exprs: tuple[Expr, ...]) -> bool:
        """They have one value in all threads of the block."""
        own = {a.var for a in self.kernel.loops if a is not self.kernel.z_axis} | {v.name for v in self.kernel.locals}
        return not names_in(exprs) & own and not has_load(exprs)

    def tiled(self, loop: Loop, arrays: Sequence[str]) -> tuple[Loop, tuple[Tile, ...]]:
        """Return the loop reading tiles of the arrays."""
        loop = normalize_loop(loop)
        ranges = self.ranges(loop)
        tiles: list[Tile] = []
        env: dict[Load, Load] = {}
        for array in arrays:
            if None in self.plan.array(array).shape:
                raise _refused(loop, (array,), "its extent must be declared")
            accesses = self.accesses(loop, array)
            places = [tuple(self.place(e, ranges, loop, array) for e in a.index) for a in accesses]
            for group in self.groups(places, ranges):
                tile = self.tile(array, [places[k] for k in group], ranges)
                tiles.append(tile)
                env |= {accesses[k]: self.access(tile, places[k], [places[g] for g in group], ranges) for k in group}

        vectors = {t.name: t.vector for t in tiles}

        def rule(n: Node) -> Node | None:
            match n:
                case Load():
                    return env.get(n)
                case Loop():
                    return unroll_loop(n, vectors)
            return None

        done = rewrite(rule, loop)
        return done, tuple(tiles)

    def accesses(self, loop: Loop, array: str) -> list[Load]:
        """Return the accesses of the loop to an array that the tile serves: to elements that no thread writes."""
        found = list(dict.fromkeys(n for n in walk(loop.body) if isinstance(n, Load) and n.array == array))
        if array not in written_names(self.kernel.body):
            return found
        when, body = _asked(self.kernel.body)
        axes = Surroundings(tuple(replace(f, body=()) for f in self.kernel.loops), when)
        around = reduce(Surroundings.inside, self.around, axes)
        apart = never_written((loop,) if loop.var else loop.body, around, body, axes, array)
        found = [n for n in found if n.index in apart]
        if not found:
            raise _refused(loop, (array,), "the kernel writes it")
        return found

    def ranges(self, loop: Loop) -> dict[str, tuple[Expr, int, int]]:
        """Start, step and most iterations of the loop and of those inside."""
        found = {}
        for f in (n for n in walk((loop,)) if isinstance(n, (Loop, While))):
            if isinstance(f, While):
                continue
            if f.var:
                found[f.var] = f.lo, f.step, max_trip_count(f)
        return found

    def place(self, e: Expr, ranges: Mapping[str, tuple[Expr, int, int]], loop: Loop, array: str) -> _Place:
        terms, constant = affine_terms(e)
        axes: dict[str, int] = {}
        inner: dict[str, int] = {}
        rest: dict[Expr, int] = {}
        threads = {a.var for a in self.kernel.loops if a is not self.kernel.z_axis}
        while terms:
            term, factor = terms.popitem()
            match term:
                case Var(name) if name in threads:
                    axes[name] = axes.get(name, 0) + factor
                case Var(name) if name in ranges:
                    lo, _, most = ranges[name]
                    if most < 1:
                        raise _refused(loop, (array,), f"the trip count of loop {name} is not known: tile it")
                    inner[name] = inner.get(name, 0) + factor
                    more, start = affine_terms(lo)
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
            dim, axis = next((d, a) for d, a in self.kernel.grid_axes if a.var == name)
            yield factor * axis.step, self.kernel.threads(dim)
        for name, factor in p.inner:
            _, step, most = ranges[name]
            yield factor * step, most

    def groups(
        self, places: Sequence[tuple[_Place, ...]], ranges: Mapping[str, tuple[Expr, int, int]]
    ) -> list[list[int]]:
        """Return the accesses that share a tile."""
        groups: list[list[int]] = []
        for k, place in enumerate(places):
            near = [g for g in groups if any(self.same_tile(place, places[m], ranges) for m in g)]
            groups = [g for g in groups if g not in near] + [[*(m for g in near for m in g), k]]
        return [sorted(g) for g in groups]

    def same_tile(
        self, a: tuple[_Place, ...], b: tuple[_Place, ...], ranges: Mapping[str, tuple[Expr, int, int]]
    ) -> bool:
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
        x = next((axis.var for dim, axis in self.kernel.grid_axes if dim == "x"), "")
        strided = any(name == x for p in first[:-1] for name, _ in p.axes)
        dtype = self.plan.array(array).dtype
        turned = len(shape) > 1 and (array in self.across or self.is_transposed(first, spread, x))
        vector = 1 if turned else self.vector(array, dtype, origin[-1], shape[-1])
        line, unit = (prod(shape[:-1]), WIDE // np.dtype(dtype).itemsize) if turned else (shape[-1], vector)
        pitch = -(-line // unit) * unit
        pitch += unit if (strided or turned) and pitch // unit % 2 == 0 else 0
        name = f"{array}_{self.made}__tile"
        self.made += 1
        return Tile(name, array, dtype, origin, shape, pitch, vector, self.buffers, self.ahead, turned)

    def is_transposed(self, place: Sequence[_Place], spread: Sequence[int], x: str) -> bool:
        """Threads along x read several rows each, side by side, and all of them one column."""
        rows = [(dict(p.axes).get(x, 0), reach) for p, reach in zip(place[:-1], spread, strict=False)]
        return not place[-1].axes and any(1 < factor <= reach + 1 for factor, reach in rows)

    def vector(self, array: str, dtype: str, start: Expr, count: int) -> int:
        """So many elements are 16 bytes, if rows of the array and of the tile begin and end at multiples of that."""
        width = WIDE // np.dtype(dtype).itemsize
        match self.plan.array(array).shape:
            case (*_, Const(int(extent))) if gcd(extent, count, self.divisor(start)) % width == 0:
                return width
        return 1

    def divisor(self, e: Expr) -> int:
        """Return a number that divides every value of ``e``; 0 where that is 0 alone."""
        terms, constant = affine_terms(e)
        return gcd(constant, *(factor * self.stride(term) for term, factor in terms.items()))

    def stride(self, term: Expr) -> int:
        """Return a divisor of what the threads of a block share: the first value of an axis, or a loop's variable."""
        for dim, axis in self.kernel.grid_axes:
            if term == Var(axis.var + FIRST, axis.dtype):
                return gcd(self.divisor(axis.lo), axis.step * self.kernel.threads(dim))
            if axis is self.kernel.z_axis and term == Var(axis.var, axis.dtype):
                return gcd(self.divisor(axis.lo), axis.step)
        around = [f for f in self.around if isinstance(term, Var) and f.var == term.name]
        return gcd(self.divisor(around[-1].lo), around[-1].step) if around else 1

    def origin(self, p: _Place, constant: int, ranges: Mapping[str, tuple[Expr, int, int]]) -> Expr:
        """Return the least subscript in the block."""
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
        """Return the element of the tile, by its place in shared memory."""
        inside: list[Expr] = []
        for d, p in enumerate(mine):
            forth = sum(max(0, -step) * (count - 1) for step, count in self.steps(p, ranges))
            e: Expr = Const(p.constant - min(g[d].constant for g in group) + forth)
            for name, factor in sorted(p.axes, key=lambda a: -a[1]):
                axis = next(a for a in self.kernel.loops if a.var == name)
                e = _plus(e, factor * axis.step, Var(name + THREAD, axis.dtype))
            for name, factor in sorted(p.inner, key=lambda a: -a[1]):
                e = _plus(e, factor, Var(name))
            inside.append(e)
        flat = tile.place(inside)
        if tile.prefetch_loop:
            flat = add(mul(Const(tile.size), Var(tile.prefetch_loop + BUFFER)), flat)
        return Load(tile.name, (flat,), tile.dtype)


def _asked(body: tuple[Stmt, ...]) -> tuple[tuple[Expr, ...], tuple[Stmt, ...]]:
    """Return the conditions under which the body does anything, and what it does then."""
    match body:
        case (If(cond, then, ()),) if not has_load(cond):
            more, inside = _asked(then)
            return (cond, *more), inside
    return (), body


def _plus(e: Expr, factor: int, term: Expr) -> Expr:
    """``e + factor * term`` without a negative constant, for unsigned arithmetic."""
    if factor < 0:
        return sub(e, mul(Const(-factor), term))
    return add(e, mul(Const(factor), term)) if factor else e


def _known(terms: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, factor) for name, factor in terms.items() if factor))


def _alone(loop: Loop) -> str:
    buffers = staged_tiles(loop).buffers
    return f"with {buffers} buffers it must be directly in a loop that is not mapped to the grid: tile it"


def _refused(loop: Loop, arrays: Sequence[str], why: str) -> DirectiveError:
    return DirectiveError(f"stage {', '.join(arrays)} at loop {loop.var}: {why}", loop.span)
