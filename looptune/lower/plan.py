"""Plans: host steps and kernels, and what the host computes about them from the sizes.

``launches`` are the kernels in the order they run, and ``count`` is their number; ``extent`` is a kernel's grid in
iterations, ``blocks`` in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

from looptune.ir.def_use import affected_names, names_in, referenced_names, written_names
from looptune.ir.nodes import (
    A,
    Annotation,
    Array,
    Binary,
    Cast,
    Codelet,
    Const,
    Expr,
    Local,
    Loop,
    Reduction,
    Scalar,
    Select,
    Stmt,
    Unary,
    Var,
    find_annotation,
)
from looptune.ir.rewrite import has_loop
from looptune.ir.simplify import add, div, evaluate, sub
from looptune.lower.addresses import MOST_ELEMENTS
from looptune.lower.compact_grid import CompactGrid
from looptune.lower.machine import Machine
from looptune.lower.resident_tiles import ResidentBody, ResidentTile
from looptune.lower.team import Team
from looptune.lower.temporal_tiles import TemporalBody, TemporalTile
from looptune.lower.tiles import SharedTiles
from looptune.lower.warp_tiles import RATES, WarpTiles
from looptune.schedule.directives.reduction_simplification import SharedSum

ARRIVED = "arrived__"
"""Of persistent kernels: how many times a block has arrived where all of them wait."""
Dimension = Literal["x", "y", "z"]
_DIMENSIONS: tuple[Dimension, ...] = ("x", "y")


OF_PARTS = ("parts", "copies")
"""What ``thread_axis`` is of a loop over the parts of sums."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel. ``axes`` are the grid's loops, outermost first: none (one thread), x, or y and x.

    ``block`` is (x, y) threads; ``arrays`` and ``scalars`` are its parameters, in the codelet's order; ``locals`` are
    those of each thread. With a ``team``, ``body`` is what each of its threads would do alone, and the one axis, if
    there is one, has the other dimension of the block; each iteration of the axes has a block if it is the team.
    ``z_axis`` is a loop along z, each of whose iterations has blocks of its own: an axis like the others, or one over
    partial sums. With a ``time_tile``, ``body`` is the loop whose steps the blocks execute, and the axes go from the
    core of one tile to that of the next. ``sums``: what its locals that hold sums stand for. ``annotations``: those
    that it inherits from its loops. ``blocks_per_sm``: blocks per multiprocessor of a persistent kernel, else 0.
    ``steps``: the launches that the blocks of a persistent kernel execute, with a barrier of all blocks after each; it
    has no body. ``packing``: the launched grid, if idle blocks are left out. ``no_contraction``: its compiler must not
    contract products of floats with sums, see ``lower.fp_contraction``. ``tiles``: what its threads do in place of
    ``body`` if blocks copy tiles to shared memory; ``time_body``: the same with a ``time_tile``; ``warp_tiles``: the
    same if tensor cores compute its sums, and then a block has more iterations than threads; ``resident``: what its
    threads keep through all iterations of a loop, of which ``body`` is one, and ``resident_body`` what they do;
    ``serial``: what a core of a CPU does, including the loops of its axes. ``exchanged``: the numbers of its blocks
    along x and y are exchanged, so that those along y are launched along x. ``positions`` and ``values``: variables
    that passes made and that are set once: indices of arrays, in 32 unsigned bits, and others.
    """

    name: str
    axes: tuple[Loop, ...]
    block: tuple[int, int]
    body: tuple[Stmt, ...]
    arrays: tuple[str, ...]
    scalars: tuple[str, ...]
    locals: tuple[Local, ...]
    team: Team | None = None
    z_axis: Loop | None = None
    time_tile: TemporalTile | None = None
    sums: tuple[SharedSum, ...] = ()
    blocks_per_sm: int = 0
    steps: tuple[Step, ...] = ()
    packing: CompactGrid | None = None
    no_contraction: bool = False
    tiles: SharedTiles | None = None
    time_body: TemporalBody | None = None
    warp_tiles: WarpTiles | None = None
    resident: ResidentTile | None = None
    resident_body: ResidentBody | None = None
    serial: tuple[Stmt, ...] = ()
    exchanged: bool = False
    positions: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    annotations: tuple[Annotation, ...] = ()

    def annotation(self, kind: type[A]) -> A | None:
        """Return the annotation of this class that its loops inherit, or None."""
        return find_annotation(self.annotations, kind)

    @property
    def grid_axes(self) -> tuple[tuple[Dimension, Loop], ...]:
        """Return each axis with its dimension of the grid, x first."""
        along: tuple[tuple[Dimension, Loop], ...] = (("z", self.z_axis),) if self.z_axis is not None else ()
        if self.team is None or self.team.block_axis == "xy":
            return (*zip(_DIMENSIONS, reversed(self.axes), strict=False), *along)
        return (*(("y" if self.team.block_axis == "x" else "x", axis) for axis in self.axes), *along)

    def is_of_blocks(self, axis: Loop) -> bool:
        """Return whether each iteration of a loop of the grid has blocks of its own: along z, or all of a block."""
        return axis is self.z_axis or (self.team is not None and self.team.block_axis == "xy")

    @property
    def makes_parts(self) -> bool:
        """Return whether each iteration along z computes partial sums."""
        return self.z_axis is not None and self.z_axis.thread_axis == "parts"

    @property
    def over_parts(self) -> Loop | None:
        """Return the loop over the parts of sums, if the kernel makes them: along z, or one part for each thread."""
        return next((f for f in self.loops if f.thread_axis in OF_PARTS), None)

    @property
    def grid(self) -> tuple[Loop, ...]:
        """Return the loops over which the blocks are laid, outermost first, without the one over partial sums."""
        return self.axes if self.makes_parts else self.loops

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Return the loops each iteration of which is a thread or a team, outermost first."""
        return self.axes if self.z_axis is None else (self.z_axis, *self.axes)

    def threads(self, dimension: Dimension) -> int:
        """Return how many iterations of its own a block has along a dimension: one for each thread, or each sum."""
        if self.team is not None and self.team.block_axis == "xy":
            return 1
        if self.warp_tiles is not None:
            return (self.warp_tiles.shape.columns, self.warp_tiles.shape.rows, 1)["xyz".index(dimension)]
        return 1 if self.keeps_tiles else (*self.block, 1)["xyz".index(dimension)]

    @property
    def keeps_tiles(self) -> bool:
        """Return whether its threads keep elements from one step of a loop to the next: its code is made apart."""
        return self.time_tile is not None or self.resident is not None

    @property
    def writes(self) -> frozenset[str]:
        """Return the arrays in device memory that the kernel changes, and the locals."""
        spare = () if self.time_tile is None else self.time_tile.target.values()
        turn = () if self.resident is None else (a for _, a in self.resident.spares)
        within = (n for kernel in kernels_in(self.steps) for n in kernel.writes)
        return frozenset((*written_names(self.body), *spare, *turn, *within, *((ARRIVED,) if self.steps else ())))

    @property
    def lanes(self) -> int:
        """Return how many threads share the iterations of a loop that reduces."""
        x, y = self.block
        return 1 if self.team is None else {"x": x, "y": y, "xy": x * y}[self.team.block_axis]


@dataclass(frozen=True, slots=True)
class Launch:
    """The launch of a kernel."""

    kernel: Kernel


@dataclass(frozen=True, slots=True)
class HostLoop:
    """A sequential loop of the host.

    ``blocks_per_sm``: its launches are one persistent kernel with this number of blocks per multiprocessor; 0: the host
    makes them.
    """

    var: str
    lo: Expr
    hi: Expr
    step: int
    body: tuple[Step, ...]
    blocks_per_sm: int = 0


@dataclass(frozen=True, slots=True)
class HostWhile:
    """A ``while`` of the host, whose condition depends on data.

    Kernels before the loop, and at the end of its body, store whether ``cond`` holds in the scalar ``flag`` in device
    memory, which the host reads before each pass.
    """

    flag: str
    cond: Expr
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class HostIf:
    """A condition that the host evaluates.

    ``flag``: the scalar in device memory in which a kernel before it stores whether ``cond`` holds, if that depends on
    data; the host reads it. ``ends``: if it does not hold, the host loop around ends, whose other iterations would do
    nothing.
    """

    cond: Expr
    then: tuple[Step, ...]
    other: tuple[Step, ...]
    flag: str = ""
    ends: bool = False


Step = Launch | HostLoop | HostWhile | HostIf


@dataclass(frozen=True, slots=True)
class Plan:
    """The host steps and kernels of a codelet.

    ``device_locals`` are the codelet's locals in device memory; a scalar there is an array of one element.
    ``partial_sums``: the sums to which each array of partial sums belongs, and ``block_sums`` the locals with which
    blocks compute them, see ``lower/passes/split_reduction``. ``passes``: the names of the passes that made it, see
    ``lower/pipeline``. ``wide_indices``: kernels compute subscripts in 64 bits, see ``needs_wide_indices``.
    """

    codelet: Codelet
    steps: tuple[Step, ...]
    device_locals: tuple[Local, ...]
    schedule_text: str = ""
    partial_sums: tuple[tuple[str, Reduction], ...] = ()
    asserted: tuple[str, ...] = ()
    block_sums: tuple[SharedSum, ...] = ()
    passes: tuple[str, ...] = ()
    wide_indices: bool = False

    @property
    def used_names(self) -> set[str]:
        """Return the names of the codelet, which no new variable may have."""
        variables = {v.name for v in (*self.codelet.params, *self.codelet.locals)}
        return variables | referenced_names(self.codelet.body)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(kernels_in(self.steps))

    @property
    def compiled_kernels(self) -> tuple[Kernel, ...]:
        """Return the kernels to compile; a persistent loop is one kernel, in place of those in it."""
        return tuple(kernels_in(self.steps, fused=True))

    @property
    def matrix_rate(self) -> int:
        """Return how many times as many operations as multiply-adds it may do in the same time."""
        return max((RATES[k.warp_tiles.rounded] for k in self.kernels if k.warp_tiles is not None), default=1)

    @property
    def emulates_floats(self) -> bool:
        """Return whether sums of floats are computed by products of parts of them, see ``lower.warp_tiles``."""
        return any(k.warp_tiles is not None and k.warp_tiles.split for k in self.kernels)

    @property
    def rounded_factors(self) -> tuple[str, float]:
        """Return to what factors of products are rounded, "" if they are not, and what error that may make."""
        tiles = [k.warp_tiles for k in self.kernels if k.warp_tiles is not None and k.warp_tiles.rounded]
        return ", ".join(sorted({t.rounded for t in tiles})), max((t.tolerance for t in tiles), default=0.0)

    @property
    def inexact(self) -> Mapping[str, float]:
        """Return the arrays whose values depend on products of rounded factors, each with the error that this may make.

        The error is relative to an element and the median of its array.
        """
        _, error = self.rounded_factors
        if not error:
            return {}
        tiles = [k.warp_tiles for k in self.kernels if k.warp_tiles is not None and k.warp_tiles.rounded]
        names = affected_names(self.codelet.body, {name for t in tiles for name in written_names(t.body)})
        return {p.name: error for p in self.codelet.params if isinstance(p, Array) and p.name in names}

    def array(self, name: str) -> Array | Local:
        """Return the array of this name: one in device memory, or one of which each thread has a copy."""
        return next(
            a for a in (*device_arrays(self.codelet, self.device_locals), *self.codelet.locals) if a.name == name
        )

    def dtype(self, scalar: str) -> str:
        """Return the type of a scalar parameter or host loop variable."""
        given = {p.name: p.dtype for p in self.codelet.params if isinstance(p, Scalar)}
        return given.get(scalar, "int32")


@dataclass(frozen=True, slots=True)
class FinishedPlan(Plan):
    """A plan after all passes for ``machine``: what a backend writes, and what a cost model counts."""

    machine: Machine = field(kw_only=True)


def needs_wide_indices(plan: Plan) -> bool:
    """Return whether an array is known to have more elements than subscripts of 32 bits can address."""
    return any(
        prod(int(n.value) for n in a.shape if isinstance(n, Const)) > MOST_ELEMENTS
        for a in device_arrays(plan.codelet, plan.device_locals)
        if all(isinstance(n, Const) for n in a.shape)
    )


def uncounted_arrays(plan: Plan) -> tuple[Array | Local, ...]:
    """Return the arrays whose declared extents may be more elements than the plan's subscripts can address."""
    if plan.wide_indices:
        return ()
    of_any_size = (
        a for a in device_arrays(plan.codelet, plan.device_locals) if any(not isinstance(n, Const) for n in a.shape)
    )
    return tuple(a for a in of_any_size if len(a.shape) > 1 or any(n is None or n.dtype != "int32" for n in a.shape))


def kernels_in(steps: Iterable[Step], *, fused: bool = False) -> Iterator[Kernel]:
    """Yield every kernel in order; with ``fused`` a persistent loop is the one kernel that is compiled for it."""
    for step in steps:
        match step:
            case Launch(kernel):
                yield kernel
            case HostLoop() if fused and step.blocks_per_sm:
                yield fuse_persistent_launches(step)
            case HostLoop(body=body) | HostWhile(body=body):
                yield from kernels_in(body, fused=fused)
            case HostIf(_, then, other):
                yield from kernels_in((*then, *other), fused=fused)


def fuse_persistent_launches(loop: HostLoop) -> Kernel:
    """Return a persistent loop as one kernel."""
    kernels = tuple(kernels_in((loop,)))
    steps = tuple(_all_steps((loop,)))
    loops, conditions = (f for f in steps if isinstance(f, HostLoop)), (f for f in steps if isinstance(f, HostIf))
    deciding = [n for f in loops for n in names_in((f.lo, f.hi))] + [n for f in conditions for n in names_in(f.cond)]
    own = {f.var for f in steps if isinstance(f, HostLoop)}
    scalars = dict.fromkeys([*(n for k in kernels for n in k.scalars), *sorted(deciding)])
    return Kernel(
        f"{kernels[0].name}_to_{kernels[-1].name.rpartition('_')[2]}", (),
        (max(x * y for x, y in (k.block for k in kernels)), 1), (),
        (*dict.fromkeys(a for k in kernels for a in k.arrays), ARRIVED), tuple(n for n in scalars if n not in own), (),
        blocks_per_sm=loop.blocks_per_sm, steps=(loop,),
        annotations=merge_annotations(kernels),
    )  # fmt: skip


def merge_annotations(kernels: Iterable[Kernel]) -> tuple[Annotation, ...]:
    """Return the annotations of a kernel that does the work of several."""
    merged: dict[type[Annotation], Annotation] = {}
    for said in (a for k in kernels for a in k.annotations):
        known = merged.get(type(said))
        merged[type(said)] = said if known is None else known.merge(said)
    return tuple(merged.values())


def with_kernels(steps: tuple[Step, ...], rule: Callable[[Kernel], Kernel]) -> tuple[Step, ...]:
    """Return the steps with ``rule`` applied to each kernel."""

    def made(step: Step) -> Step:
        match step:
            case Launch(kernel):
                return Launch(rule(kernel))
            case HostLoop(body=body) | HostWhile(body=body):
                return replace(step, body=with_kernels(body, rule))
            case HostIf(_, then, other):
                return replace(step, then=with_kernels(then, rule), other=with_kernels(other, rule))

    return tuple(map(made, steps))


def device_arrays(codelet: Codelet, resident: tuple[Local, ...]) -> tuple[Array | Local, ...]:
    """Return the arrays in device memory: the codelet's, and those that stay on the device."""
    return (*(p for p in codelet.params if isinstance(p, Array)), *resident)


def evaluate_size(e: Expr, env: Mapping[str, int]) -> int:
    """Return the value of an integer expression of sizes and host loop variables, as the host computes it."""
    match e:
        case Const(v):
            return int(v)
        case Var(name):
            return env[name]
        case Cast(_, arg):
            return evaluate_size(arg, env)
        case Unary("-", arg):
            return -evaluate_size(arg, env)
        case Unary("!", arg):
            return int(not evaluate_size(arg, env))
        case Unary(_, arg):
            return ~evaluate_size(arg, env)
        case Select(cond, then, other):
            return evaluate_size(then if evaluate_size(cond, env) else other, env)
        case Binary(op, lhs, rhs):
            result = evaluate(op, evaluate_size(lhs, env), evaluate_size(rhs, env))
            assert result is not None, f"{op} is undefined for these sizes"
            return result
    raise AssertionError(f"{type(e).__name__} is not the host's to compute")


def not_read(flag: str) -> bool:
    """Take the place of reading a flag where data decide on no launch."""
    raise AssertionError(f"{flag} is in device memory, which is not read here")


def launches(
    steps: tuple[Step, ...], env: Mapping[str, int], holds: Callable[[str], bool] = not_read
) -> Generator[tuple[Kernel, dict[str, int]], None, bool]:
    """Yield every kernel in the order of the launches, with the values of sizes and host loop variables.

    ``holds`` reads a flag in device memory, when the launches before that are yielded have been made. The value of the
    generator is whether the loop around the steps ends.
    """
    for step in steps:
        match step:
            case Launch(kernel):
                yield kernel, dict(env)
            case HostLoop() if step.blocks_per_sm:
                yield fuse_persistent_launches(step), dict(env)
            case HostLoop(var, lo, hi, stride, body):
                for i in range(evaluate_size(lo, env), evaluate_size(hi, env), stride):
                    if (yield from launches(body, {**env, var: i}, holds)):
                        break
            case HostWhile(flag, _, body):
                while holds(flag):
                    yield from launches(body, env, holds)
            case HostIf(cond, then, other, flag):
                taken = holds(flag) if flag else bool(evaluate_size(cond, env))
                if step.ends and not taken:
                    return True
                yield from launches(then if taken else other, env, holds)
    return False


def has_host_loop(plan: Plan) -> bool:
    """Tell whether the plan has a host loop, between whose launches it can be stopped."""
    return any(isinstance(step, HostLoop | HostWhile) for step in _all_steps(plan.steps, within=False))


def decisions(steps: Sequence[Step]) -> Iterator[tuple[str, Expr]]:
    """Yield the flags that the host reads, each with the condition of which it says whether that holds."""
    found = (step for step in _all_steps(steps) if isinstance(step, HostWhile | HostIf))
    return ((step.flag, step.cond) for step in found if step.flag)


def data_decide(plan: Plan) -> bool:
    """Tell whether the host reads device memory to know which launches to make."""
    return any(True for _ in decisions(plan.steps))


def in_one_thread(kernel: Kernel) -> bool:
    """Tell whether one thread executes all loops of the kernel, of which it has some."""
    alone = not kernel.axes and kernel.team is None and not kernel.keeps_tiles and kernel.z_axis is None
    return alone and has_loop(kernel.body)


def host_loops(steps: Sequence[Step]) -> Iterator[HostLoop]:
    """Yield the host loops, outer ones before inner ones."""
    return (step for step in _all_steps(steps) if isinstance(step, HostLoop))


def _all_steps(steps: Sequence[Step], within: bool = True) -> Iterator[Step]:
    """``within``: persistent loops and what is in them are some of these."""
    for step in steps:
        if not within and isinstance(step, HostLoop) and step.blocks_per_sm:
            continue
        yield step
        match step:
            case HostLoop(body=body) | HostWhile(body=body):
                yield from _all_steps(body, within)
            case HostIf(_, then, other):
                yield from _all_steps((*then, *other), within)


def count(steps: Sequence[Step], env: Mapping[str, int]) -> int:
    """Return the number of launches; iterations of a host loop that all launch the same are not enumerated.

    Where data decide, it is the number of one pass of a ``while``, and of the branch with more launches.
    """
    return sum(_count(step, env) for step in steps)


def _count(step: Step, env: Mapping[str, int]) -> int:
    match step:
        case Launch():
            return 1
        case HostWhile(_, _, body):
            return count(body, env)
        case HostIf(_, then, other, flag) if flag:
            return max(count(then, env), count(other, env))
        case HostIf(cond, then, other):
            return count(then if evaluate_size(cond, env) else other, env)
        case HostLoop() if step.blocks_per_sm:
            return 1
        case HostLoop(var, lo, hi, stride, body):
            trips = range(evaluate_size(lo, env), evaluate_size(hi, env), stride)
            if trips and var not in {n for s in body for n in _deciding(s)}:
                return len(trips) * count(body, {**env, var: trips[0]})
            return sum(count(body, {**env, var: i}) for i in trips)


def _deciding(step: Step) -> Iterator[str]:
    """Yield the names that decide how many kernels a step launches."""
    match step:
        case HostLoop() if step.blocks_per_sm:
            return
        case HostLoop(_, lo, hi, _, body):
            yield from names_in((lo, hi))
            yield from (n for s in body for n in _deciding(s))
        case HostWhile(_, _, body):
            yield from (n for s in body for n in _deciding(s))
        case HostIf(cond, then, other, flag):
            yield from () if flag else names_in(cond)
            yield from (n for s in (*then, *other) for n in _deciding(s))


def extent(kernel: Kernel, env: Mapping[str, int]) -> tuple[int, ...]:
    """Return the trip count of each loop of the grid, outermost first; 0 for one that does not run."""
    return tuple(max(0, -(-(evaluate_size(a.hi, env) - evaluate_size(a.lo, env)) // a.step)) for a in kernel.grid)


def grid(kernel: Kernel) -> tuple[Expr, ...]:
    """Return the number of blocks along each dimension of the grid; 0 or less if the kernel does not run."""
    per = (Const(axis.step * kernel.threads(dim), axis.dtype) for dim, axis in kernel.grid_axes)
    axes = (axis for _, axis in kernel.grid_axes)
    return tuple(div(add(sub(a.hi, a.lo), sub(p, Const(1, a.dtype))), p) for a, p in zip(axes, per, strict=True))


def launched_grid(kernel: Kernel) -> tuple[Expr, ...]:
    """Return the number of blocks along each dimension that are launched; see ``grid``."""
    if kernel.packing is None:
        return grid(kernel)
    along = dict(zip("xy", kernel.packing.blocks, strict=True))
    counts = zip(kernel.grid_axes, grid(kernel), strict=True)
    return tuple(Const(along[dim]) if dim in along else count for (dim, _), count in counts)


Blocks = tuple[int, int, int]
"""A grid in blocks, along x, y and z."""
MOST_BLOCKS_Y = 65535
"""Blocks that a GPU takes along y, and along z."""


def blocks(kernel: Kernel, env: Mapping[str, int]) -> Blocks:
    """Return the grid in blocks, including idle ones: one block along the dimension of a team."""
    return _blocks(kernel, grid(kernel), env)


def launched_blocks(kernel: Kernel, env: Mapping[str, int]) -> Blocks:
    """Return the launched blocks of the kernel at these sizes."""
    return _as_launched(kernel, _blocks(kernel, launched_grid(kernel), env))


def _blocks(kernel: Kernel, counts: Sequence[Expr], env: Mapping[str, int]) -> Blocks:
    along = {dim: max(0, evaluate_size(count, env)) for (dim, _), count in zip(kernel.grid_axes, counts, strict=True)}
    return along.get("x", 1), along.get("y", 1), along.get("z", 1)


def _as_launched(kernel: Kernel, found: Blocks) -> Blocks:
    x, y, z = found
    return (y, x, z) if kernel.exchanged else found


def grid_function(kernel: Kernel) -> Callable[[Mapping[str, int]], Blocks | None]:
    """Return a function from sizes and host loop variables to ``launched_blocks``, or to None if no thread runs.

    It is called for every launch, of which there may be thousands, so its results are cached.
    """
    used = sorted(names_in(tuple(e for axis in kernel.loops for e in (axis.lo, axis.hi))))
    counts = launched_grid(kernel)
    known: dict[tuple[int, ...], Blocks | None] = {}

    def at(env: Mapping[str, int]) -> Blocks | None:
        key = tuple(env[name] for name in used)
        if key not in known:
            known[key] = None if 0 in extent(kernel, env) else _as_launched(kernel, _blocks(kernel, counts, env))
        return known[key]

    return at


def vector_copied_arrays(plan: Plan) -> tuple[str, ...]:
    """Return the arrays from which tiles are copied 16 bytes at a time."""
    tiles = (t for kernel in plan.kernels if kernel.tiles is not None for t in kernel.tiles.tiles)
    strips = (a for kernel in plan.kernels if kernel.warp_tiles is not None for a in kernel.warp_tiles.vector_arrays)
    return tuple(sorted({*(t.array for t in tiles if t.vector > 1), *strips}))
