"""Temporal tiling: several steps of a sequential loop in one launch, computed by the blocks in overlapping tiles.

    for t: for i: for j: S(t, i, j)      ==>      for t in t0 .. t0 + 4: in each block, its tile in shared memory
                                                    for i, j of the tile: S(t, i, j)             barrier

The tile is larger than the part that the block writes, its core: elements at the tile's edges lack their neighbours, so
that each step makes more of them wrong, and the ``halo`` is as wide as the core needs it to remain correct. A block
reads one set of arrays and writes its core to another, because its neighbours read what it changes. Every element that
is written is a point of space, and the thread that holds it executes everything at that point:

    for i in 1..n: A[i] = B[i - 1] + B[i]          at each point p with 1 <= p < n: A = B at -1 + B at 0
    for j in 0..m: A[j][0] = c                     at each point (p, 0) with 0 <= p < m: A = c

This is possible if what is read of these arrays is at a constant distance, and each iteration writes at one point.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import accumulate
from typing import TYPE_CHECKING

from looptune.core.errors import InfeasibleDirective
from looptune.ir.def_use import is_defined_before_use, names_in, written_names
from looptune.ir.intervals import affine_terms, difference_range
from looptune.ir.nodes import Array, Assign, Codelet, Const, Expr, If, Load, Local, Loop, Node, Stmt, Var, While
from looptune.ir.rewrite import has_load, rewrite, substitute, walk, walk_stmts
from looptune.ir.simplify import add, max_of, sub
from looptune.lower.host_loops import Found, check_on_host, outermost_loops_where
from looptune.lower.staged_tiles import staging_loops
from looptune.lower.temporal_tiles import (
    Bounds,
    PointwiseNest,
    TemporalTile,
    point,
    steps_per_launch,
    stored_elements,
    time_tile,
)
from looptune.schedule.directives.grid import BlockSize

if TYPE_CHECKING:
    from looptune.lower.machine import Machine
    from looptune.lower.plan import Plan

MOST_DIMENSIONS = 3


DEFAULT_BLOCK = (32, 8)
"""Threads of a block along x and y where no directive says otherwise: the paper's default."""


def block_size(loop: Loop) -> tuple[int, int]:
    """Return the requested threads along x and y; in a permuted nest, the loop with the directive may be further in."""
    said = (f.annotation(BlockSize) for f in walk(loop) if isinstance(f, Loop))
    x, y = (*next((size.block for size in said if size is not None), DEFAULT_BLOCK), 1)[:2]
    return x, y


def check(codelet: Codelet, *, tiles: bool) -> None:
    """Raise InfeasibleDirective for a loop of which one launch cannot run several steps.

    If ``tiles``, also raise it for tiles of which the halo leaves too few elements.
    """
    changed = written_names(codelet.body)
    for loop, around in _asked(codelet):
        check_on_host(loop, around, changed)
        tile_in_time(loop, codelet, tiles=tiles)


def _asked(codelet: Codelet) -> Found:
    return outermost_loops_where(codelet.body, lambda loop: steps_per_launch(loop) > 0)


def add_ping_pong_arrays(plan: Plan, machine: Machine) -> Plan:
    """Return the plan of a codelet with a second array for each array that blocks keep in tiles."""
    return replace(plan, codelet=_with_ping_pong_arrays(plan.codelet))


def _with_ping_pong_arrays(codelet: Codelet) -> Codelet:
    kept = {a for loop, _ in _asked(codelet) for a in written_names(loop.body)}
    arrays = (v for v in (*codelet.params, *codelet.locals) if isinstance(v, (Array, Local)) and v.name in kept)
    made = [Local(ping_pong_name(v.name), v.dtype, shape) for v in arrays if (shape := declared_extents(v))]
    return replace(codelet, locals=(*codelet.locals, *made)) if made else codelet


def ping_pong_name(array: str) -> str:
    """Return the name of the spare array of a time-tiled array."""
    return f"{array}__spare"


def declared_extents(array: Array | Local) -> tuple[Expr, ...]:
    """Return the extents of an array, or () if not all are declared."""
    extents = tuple(e for e in array.shape if e is not None)
    return extents if len(extents) == len(array.shape) else ()


def tile_in_time(loop: Loop, codelet: Codelet, *, tiles: bool) -> TemporalTile:
    """Return one launch of several steps of ``loop``; if not ``tiles``, tiles of any size are accepted.

    Raises InfeasibleDirective where there is none.
    """
    said = time_tile(loop)
    assert said is not None, "a directive asks for it"
    steps, rows, columns = said.steps, said.rows, said.columns
    made = _Making(loop, codelet)
    nests = made.nests()
    dimensions = len(made.extents)
    if dimensions == 1 and rows > 1:
        raise InfeasibleDirective(loop, "arrays of one dimension have no rows: leave out `rows`")
    grown = tuple(accumulate(range(steps), lambda halo, _: _step(nests, halo), initial=_nothing(made.kept, dimensions)))
    halo = tuple(
        (max(e[d][0] for e in grown[-1].values()), max(e[d][1] for e in grown[-1].values())) for d in range(dimensions)
    )
    x, y = block_size(loop)
    shape = ((x * y * columns,), (y * rows, x * columns), (rows, y, x * columns))[dimensions - 1]
    for d, (n, (before, behind)) in enumerate(zip(shape, halo, strict=True)):
        if tiles and n <= before + behind:
            along = ("x", "y", "z")[dimensions - 1 - d]
            raise InfeasibleDirective(loop, f"{steps} steps invalidate {before + behind} elements at the edges of a "
                              f"tile, which has only {n} along {along}")  # fmt: skip
    return TemporalTile(
        loop, tuple((a, ping_pong_name(a)) for a in made.kept), tuple(_groups(nests)), made.extents, halo, shape, rows,
        columns,
    )  # fmt: skip


_Edges = Mapping[str, tuple[tuple[int, int], ...]]
"""Of each array, how many elements at the edges of a tile are wrong, along each dimension."""


def _nothing(kept: Iterable[str], dimensions: int) -> _Edges:
    return dict.fromkeys(kept, ((0, 0),) * dimensions)


def _step(nests: Iterable[PointwiseNest], edges: _Edges) -> _Edges:
    """After one more step: what is computed from something wrong, or from what lies beyond the tile, is wrong."""
    now = dict(edges)
    for nest in nests:
        wrong = [
            tuple((a + max(0, -o), b + max(0, o)) for (a, b), o in zip(now[array], at, strict=True))
            for array, at in nest.uses(now.keys())
        ]
        reached = tuple((max(e[0] for e in along), max(e[1] for e in along)) for along in zip(*wrong, strict=True))
        for array in nest.writes:
            now[array] = tuple((max(a, c), max(b, d)) for (a, b), (c, d) in zip(now[array], reached, strict=True))
    return now


def _groups(nests: Iterable[PointwiseNest]) -> Iterator[tuple[PointwiseNest, ...]]:
    """Nests in turn, as long as none needs of another thread what one before it writes, or overwrites such."""
    group: list[PointwiseNest] = []
    for nest in nests:
        if any(_apart(a, b) for other in group for a, b in ((nest, other), (other, nest))):
            yield tuple(group)
            group = []
        group.append(nest)
    if group:
        yield tuple(group)


def _apart(reader: PointwiseNest, writer: PointwiseNest) -> bool:
    return any(any(at) for _, at in reader.uses(writer.writes))


def _of(body: tuple[Stmt, ...], arrays: Iterable[str]) -> frozenset[str]:
    """Return the arrays, and the locals whose values depend on elements of them."""
    found = frozenset(arrays)
    decided = [(names_in(s.cond if isinstance(s, If) else s.value), written_names((s,)))
               for s in walk_stmts(body) if isinstance(s, (If, Assign))]  # fmt: skip
    while more := {name for by, what in decided if by & found for name in what} - found:
        found |= more
    return found


class _Making:
    """The nests of a loop's body; ``kept`` are the arrays that it writes."""

    def __init__(self, loop: Loop, codelet: Codelet) -> None:
        self.loop, self.codelet = loop, codelet
        arrays = {v.name: v for v in (*codelet.params, *codelet.locals) if isinstance(v, (Array, Local)) and v.shape}
        self.kept = tuple(dict.fromkeys(t.array for t in stored_elements(loop.body)))
        if not self.kept:
            raise InfeasibleDirective(loop, "it writes no array")
        owned = {a for f in walk_stmts(loop) if isinstance(f, Loop) for a in f.private_arrays}
        if owned & set(self.kept):
            raise InfeasibleDirective(loop, f"{min(owned & set(self.kept))} is private to each iteration")
        ranks = {len(arrays[a].shape) for a in self.kept}
        if len(ranks) > 1:
            raise InfeasibleDirective(loop, f"{' and '.join(self.kept)} have different numbers of dimensions")
        if max(ranks) > MOST_DIMENSIONS:
            raise InfeasibleDirective(loop, f"{self.kept[0]} has more than {MOST_DIMENSIONS} dimensions")
        extents = [self.declared(arrays[a]) for a in self.kept]
        self.extents = tuple(largest_extent(along) for along in zip(*extents, strict=True))

    def declared(self, array: Array | Local) -> tuple[Expr, ...]:
        extents = declared_extents(array)
        if not extents:
            raise InfeasibleDirective(self.loop, f"the extent of {array.name} must be declared")
        return extents

    def nests(self) -> tuple[PointwiseNest, ...]:
        return tuple(self.nest(stmt) for stmt in self.loop.body)

    def nest(self, stmt: Stmt) -> PointwiseNest:
        loops: list[Loop] = []
        body: tuple[Stmt, ...] = (stmt,)
        while True:
            match body:
                case (Loop(mode="parallel") as inner,):
                    loops.append(inner)
                    body = inner.body
                case _:
                    break
        if not loops:
            raise InfeasibleDirective(
                self.loop, "it must contain only nests of parallel loops: distribute it, or leave out the directive"
            )
        for f in loops:
            self.plain(f)
        for name in written_names(body) - set(self.kept):
            if not is_defined_before_use(body, name):
                raise InfeasibleDirective(self.loop, f"{name} is carried from one iteration to another")
        for n in walk_stmts(body):
            match n:
                case While():
                    raise InfeasibleDirective(self.loop, "the trip count of a while loop in it depends on data")
                case Loop() as f if staging_loops((f,)) or steps_per_launch(f):
                    raise InfeasibleDirective(self.loop, f"loop {n.var} inside it has tiles of its own")
        self.check_edges(body)
        return self.placed(loops, body)

    def check_edges(self, body: tuple[Stmt, ...]) -> None:
        """Check that elements which are wrong at the edges of a tile decide neither a subscript nor a trip count."""
        wrong = _of(body, self.kept)
        for n in walk(body):
            match n:
                case Load(array, index) if array not in self.kept and names_in(index) & wrong:
                    raise InfeasibleDirective(
                        self.loop, f"the index of a read of {array} depends on values it computes"
                    )
                case Loop(var, lo, hi) if names_in((lo, hi)) & wrong:
                    raise InfeasibleDirective(
                        self.loop, f"the trip count of loop {var} inside it depends on values it computes"
                    )

    def plain(self, f: Loop) -> None:
        for what, so in (
            ("reduces", f.reductions), ("is split into parts", f.in_parts),
            ("has tiles of its own", staging_loops((f,))), ("is unrolled or tiled", f.step != 1),
        ):  # fmt: skip
            if so:
                raise InfeasibleDirective(self.loop, f"loop {f.var} inside it {what}")
        if has_load((f.lo, f.hi)):
            raise InfeasibleDirective(self.loop, f"the trip count of loop {f.var} inside it depends on data")

    def placed(self, loops: list[Loop], body: tuple[Stmt, ...]) -> PointwiseNest:
        """Return the nest at the point that its iterations write."""
        targets = tuple(stored_elements(body))
        if not targets:
            raise InfeasibleDirective(self.loop, f"loop {loops[0].var} inside it writes no array")
        inner = {f.var for f in walk_stmts(body) if isinstance(f, Loop)} | (written_names(body) - set(self.kept))
        first = targets[0].index
        by_var = {f.var: f for f in loops}
        env: dict[str, Expr] = {}
        fixed: dict[int, Expr] = {}
        for d, e in enumerate(first):
            terms, constant = affine_terms(e)
            match [(t, k) for t, k in terms.items() if names_in(t) & (by_var.keys() | inner)]:
                case []:
                    if has_load(e):
                        raise InfeasibleDirective(
                            self.loop, f"the index of a write of {targets[0].array} depends on data"
                        )
                    fixed[d] = e
                case [(Var(name), 1)] if len(terms) == 1 and name in by_var and name not in env:
                    env[name] = add(point(d), Const(-constant))
                case _:
                    raise InfeasibleDirective(
                        self.loop, f"it writes {targets[0].array} at an index that is not that of the iteration"
                    )
        for f in (f for f in loops if f.var not in env):
            if difference_range(f.hi, f.lo, {}) != (1, 1):
                raise InfeasibleDirective(self.loop, f"all iterations of loop {f.var} inside it write the same element")
            env[f.var] = f.lo
        where: dict[int, Bounds] = {d: (e, add(e, Const(1, e.dtype))) for d, e in fixed.items()}
        for d, e in enumerate(first):
            for name in names_in(e) & env.keys() if d not in fixed else ():
                back = affine_terms(e)[1]
                where[d] = (add(by_var[name].lo, Const(back)), add(by_var[name].hi, Const(back)))
        moved = self.at_point(body, first, inner)
        bounds = tuple((substitute(lo, env), substitute(hi, env)) for lo, hi in (where[d] for d in sorted(where)))
        return PointwiseNest(bounds, substitute(moved, env), not fixed)

    def at_point(self, body: tuple[Stmt, ...], first: tuple[Expr, ...], inner: Collection[str]) -> tuple[Stmt, ...]:
        """Return the body with constant offsets as the subscripts of the arrays in tiles."""

        def rule(n: Node) -> Node | None:
            match n:
                case Assign(Load(array, index)) if array in self.kept and any(e != Const(0) for e in index):
                    raise InfeasibleDirective(
                        self.loop, f"one iteration writes {array} at several offsets: distribute it"
                    )
                case Load(array, index) if array in self.kept:
                    at = [affine_terms(sub(e, f)) for e, f in zip(index, first, strict=True)]
                    if any(terms for terms, _ in at) or names_in(index) & set(self.kept):
                        raise InfeasibleDirective(
                            self.loop, f"its reads of {array} are not at a constant distance from its writes"
                        )
                    return replace(n, index=tuple(Const(constant) for _, constant in at))
            return None

        return rewrite(rule, body)


def largest_extent(extents: Iterable[Expr]) -> Expr:
    """Return the greatest, as far as it is known which one that is."""
    left: list[Expr] = []
    for e in dict.fromkeys(extents):
        apart = [(f, difference_range(e, f, {})) for f in left]
        if not any(d is not None and d[1] <= 0 for _, d in apart):
            left = [*(f for f, d in apart if d is None or d[0] < 0), e]
    return reduce(max_of, left)
