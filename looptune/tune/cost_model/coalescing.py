"""Accesses of statements without branches and of tile copies: addresses by lane and as linear forms of counters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import TYPE_CHECKING, Self

import numpy as np

from looptune.backends.codegen.memory_ops import is_vectorized
from looptune.ir import operation_count
from looptune.ir.nodes import Array, Assign, Const, Expr, Load, Local, Loop, Var
from looptune.ir.rewrite import walk
from looptune.lower.tiles import BUFFER, Tile
from looptune.tune.cost_model.instruction_costs import ADDRESS
from looptune.tune.cost_model.linear_forms import ZERO, LinearForm, Scope, address, counter, form
from looptune.tune.cost_model.warp_program import AccessCount, Instructions, count_sectors
from looptune.tune.cost_model.warp_samples import LANE, Env, Sample, Warps

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan
    from looptune.tune.cost_model.sector_counts import AffineAddress

FILL = "fill "
"""What the counters of a tile's rows and columns begin with: they run wherever it is filled."""
VECTOR_BYTES = 16
"""What one access of a thread has at most."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The layout of the arrays and tiles of a kernel.

    ``pitch``: for each array the strides of its dimensions in elements; ``itemsize``: bytes of an element;
    ``whole_bytes``: bytes of the array, where that is known; ``vectors``: adjacent elements are accessed by one
    instruction. Arrays that each thread has in registers are not listed.
    """

    pitch: Mapping[str, tuple[int, ...]]
    itemsize: Mapping[str, int]
    whole_bytes: Mapping[str, int]
    tiles: Mapping[str, Tile]
    vectors: bool = False

    @classmethod
    def of(cls, kernel: Kernel, plan: Plan, tiles: Sequence[Tile], at: Mapping[str, int]) -> Self:
        sizes = {n: np.asarray(v, np.int64) for n, v in at.items()}
        arrays = {name: plan.array(name) for name in kernel.arrays}
        shapes = {name: _shape(a, sizes) for name, a in arrays.items()}
        itemsize = {name: np.dtype(a.dtype).itemsize for name, a in arrays.items()}
        pitch = {n: tuple(prod(s[k + 1 :]) for k in range(len(s))) for n, s in shapes.items()}
        whole = {n: prod(s) * itemsize[n] for n, s in shapes.items() if s and s[0]}
        pitch |= {t.name: (1,) for t in tiles}
        itemsize |= {t.name: np.dtype(t.dtype).itemsize for t in tiles}
        return cls(pitch, itemsize, whole, {t.name: t for t in tiles}, is_vectorized(kernel))

    @property
    def arrays(self) -> Collection[str]:
        """Return the names of the arrays in device memory."""
        return self.whole_bytes.keys() | (self.pitch.keys() - self.tiles.keys())

    @property
    def _buffers(self) -> tuple[str, ...]:
        return tuple(t.prefetch_loop + BUFFER for t in self.tiles.values() if t.prefetch_loop)

    def buffered(self, warps: Warps) -> Warps:
        """Return the warps with every tile in the first of its buffers; accesses to the other buffers are alike."""
        return replace(warps, env={**warps.env, **{b: np.asarray(0) for b in self._buffers}})

    def scoped(self, scope: Scope) -> Scope:
        return {**scope, **dict.fromkeys(self._buffers, ZERO)}


def _shape(array: Array | Local, sizes: Env) -> tuple[int, ...]:
    """Return the extents, 0 for one that is not declared. A scalar in device memory has one element."""
    if not array.shape:
        return (1,)
    return tuple(0 if e is None else int(operation_count.evaluate(e, sizes)) for e in array.shape)


@dataclass(frozen=True, slots=True)
class AccessContext:
    """The place that the walk has reached: the lanes that are active, and the names as linear forms of counters."""

    warps: Warps
    scope: Scope

    def where(self, holds: np.ndarray) -> AccessContext:
        return replace(self, warps=self.warps.where(holds))

    def with_value(self, name: str, value: Expr) -> AccessContext:
        return AccessContext(
            self.warps.with_value(name, self.warps.integer(value)), {**self.scope, name: form(value, self.scope)}
        )

    def without_names(self, names: Collection[str]) -> AccessContext:
        """Return the context without what a loop or a branch has changed."""
        env = {n: v for n, v in self.warps.env.items() if n not in names}
        return AccessContext(replace(self.warps, env=env), {n: f for n, f in self.scope.items() if n not in names})


def straight_line_accesses(
    line: Sequence[Assign], here: AccessContext, memory: Memory
) -> tuple[list[AccessCount], Instructions]:
    """Return the accesses of statements without branches, and the instructions that these take.

    Each element that is loaded counts once, and so does each element that is stored.
    """
    stored = list(dict.fromkeys(s.target for s in line if isinstance(s.target, Load)))
    loaded = dict.fromkeys(n for s in line for n in (*walk(s.value), *_subscripts(s)) if isinstance(n, Load))
    uses = [use for n in loaded if (use := _use(n, here, memory, write=False)) is not None]
    uses += [use for n in stored if (use := _use(n, here, memory, write=True)) is not None]
    uses = _wide(uses, here, memory)
    bases = {(u.load.array, u.place.terms if u.place is not None else u.load) for u in uses}
    runs = here.warps.requests
    return uses, Instructions(other=(len(uses) + ADDRESS * len(bases)) * runs)


def _subscripts(s: Assign) -> Sequence[object]:
    return tuple(walk(s.target.index)) if isinstance(s.target, Load) else ()


def _use(load: Load, here: AccessContext, memory: Memory, *, write: bool, width: int = 1) -> AccessCount | None:
    """None of what is in registers."""
    if load.array not in memory.pitch:
        return None
    pitch, itemsize = memory.pitch[load.array], memory.itemsize[load.array]
    index = load.index if load.index else (Const(0),)
    parts = [here.warps.integer(e) for e in index]
    place = address(index, pitch, here.scope)
    known = [p * s for p, s in zip(parts, pitch, strict=True) if p is not None]
    at = np.sum(np.broadcast_arrays(*known), axis=0) if len(known) == len(parts) else None
    made = None if place is None else place.place(width)
    return count_access(load, at, made, here.warps, itemsize, width, write=write, shared=load.array in memory.tiles)


def count_access(
    load: Load, at: np.ndarray | None, place: AffineAddress | None, warps: Warps, itemsize: int, width: int, *,
    write: bool, shared: bool,
) -> AccessCount:  # fmt: skip
    """Count the sectors of one access and how often memory is busy with it.

    ``at`` is the index of the first element in each lane, (warps, 32); if it is None, because it depends on data, each
    active lane counts as a sector of its own. ``width`` is the number of elements that a lane accesses.
    """
    if at is None:
        lanes = warps.active.sum(axis=1)
        sectors, passes = lanes, lanes
    else:
        sectors, passes = count_sectors(at, warps.active, itemsize, width, shared=shared)
    return AccessCount(load, write, shared, itemsize, width, place, warps.requests, warps.threads,
               float(warps.weight @ sectors), float(warps.weight @ passes))  # fmt: skip


def _wide(uses: Sequence[AccessCount], here: AccessContext, memory: Memory) -> list[AccessCount]:
    """Return accesses next to each other as one.

    Reads of a tile that is read so, and aligned ones of arrays, if there are vectors.
    """
    near: dict[tuple[object, ...], list[AccessCount]] = {}
    for u in uses:
        alone = u.place is None or _vector(u, memory) == 1
        near.setdefault((u,) if alone else (u.load.array, u.write, u.place and u.place.terms), []).append(u)
    return [wide for same in near.values() for wide in _vectors(same, _vector(same[0], memory), here, memory)]


def _vector(u: AccessCount, memory: Memory) -> int:
    """So many elements can one access have that begins at a multiple of them."""
    if u.shared:
        return 1 if u.write else memory.tiles[u.load.array].vector_width
    if not memory.vectors or u.place is None:
        return 1
    return gcd(VECTOR_BYTES // u.itemsize, *(c for _, c in u.place.terms))


def _vectors(uses: Sequence[AccessCount], vector: int, here: AccessContext, memory: Memory) -> list[AccessCount]:
    """Return the widest first; of a tile there is one width."""
    if vector == 1:
        return list(uses)
    found: dict[int, list[AccessCount]] = {}
    for u in {u.place: u for u in uses}.values():  # one element may have several spellings
        found.setdefault(u.place.base // vector if u.place is not None else 0, []).append(u)
    out: list[AccessCount] = []
    for same in found.values():
        first = min(same, key=lambda u: u.place.base if u.place is not None else 0)
        full = len(same) == vector
        wide = _use(first.load, here, memory, write=first.write, width=vector) if full else None
        out += [wide] if wide is not None else same if first.shared else _vectors(same, vector // 2, here, memory)
    return out


def count_copy(
    tile: Tile, threads: int, here: AccessContext, memory: Memory, sample: Sample
) -> tuple[list[AccessCount], Instructions]:  # fmt: skip
    """Return the accesses and instructions with which all threads of a block fill a tile.

    One access of a thread moves ``tile.vector`` elements.
    """
    columns = tile.shape[-1] // tile.vector
    each = Loop("fill", Var(LANE["xy"]), Const(tile.rows * columns), (), threads)
    inside = here.warps.inside(each, sample)
    assert inside is not None, "a tile's size is known"
    whole = replace(inside, active=inside.active & (inside.env["fill"] < tile.rows * columns))
    at, place = _source(tile, whole, here.scope, memory.pitch[tile.array], columns)
    itemsize = memory.itemsize[tile.array]
    row, column = whole.env["fill"] // columns, whole.env["fill"] % columns * tile.vector
    into = column * tile.pitch + row if tile.transposed else row * tile.pitch + column
    source = Load(tile.array, tile.origin, tile.dtype)
    uses = [
        count_access(source, at, place, whole, itemsize, tile.vector, write=False, shared=False),
        count_access(
            Load(tile.name, (), tile.dtype), into, None, whole, itemsize, tile.vector, write=True, shared=True
        ),
    ]
    return uses, Instructions(other=(2 + 2 * ADDRESS) * whole.requests)


def _source(
    tile: Tile, warps: Warps, scope: Scope, pitch: tuple[int, ...], columns: int
) -> tuple[np.ndarray | None, AffineAddress | None]:  # fmt: skip
    """Return the element that each lane copies from, and the tile as counters of rows and columns."""
    row, column = warps.env["fill"] // columns, warps.env["fill"] % columns * tile.vector
    total: np.ndarray | None = np.zeros((), np.int64)
    place: LinearForm | None = address(tile.origin, pitch, scope)
    for d in reversed(range(len(tile.shape))):
        inside, last = tile.shape[d], d == len(tile.shape) - 1
        step = column if last else row % inside
        row = row if last else row // inside
        origin = warps.integer(tile.origin[d])
        total = None if total is None or origin is None else total + (origin + step) * pitch[d]
        place = None if place is None else place.plus(counter(f"{FILL}{tile.name} {d}", pitch[d]))
    return total, None if place is None else place.place()


def fill_counts(tiles: Sequence[Tile]) -> dict[str, float]:
    """Return how often the counters of tiles run."""
    return {f"{FILL}{t.name} {d}": float(n) for t in tiles for d, n in enumerate(t.shape)}
