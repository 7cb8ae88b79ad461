"""The body of a kernel, in any language: the thread's indices, then a block with tiles, a team, or a single thread.

    i = blockIdx.y * 8 + threadIdx.y;  j = blockIdx.x * 32 + threadIdx.x
    if (i >= n || j >= n) return;
    the statements of an iteration

``check_limits`` finds what exceeds the limits of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING

from looptune.backends.codegen import (
    block_swizzle,
    grid_barrier,
    memory_ops,
    resident_tiles,
    shared_tiles,
    team,
    temporal_tiles,
    warp_tiles,
)
from looptune.backends.codegen.writer import MAX_THREADS, TensorCoreWriter
from looptune.core.errors import ResourceError
from looptune.ir.def_use import integer_parameters
from looptune.ir.nodes import Const, Loop
from looptune.ir.rewrite import walk
from looptune.lower import tiles
from looptune.lower.addresses import MOST_ELEMENTS
from looptune.lower.plan import Dimension, FinishedPlan, Kernel, Plan, evaluate_size, kernels_in, needs_wide_indices
from looptune.lower.signature import counters, extent_names, extents
from looptune.lower.staged_tiles import staged_tiles, staging_loops
from looptune.lower.tiles import FIRST, THREAD

if TYPE_CHECKING:
    from looptune.backends.codegen.writer import KernelWriter
    from looptune.lower.warp_tiles import WarpTiles

MAX_THREADS_AT_ONCE = 2048
"""A multiprocessor runs no more, whatever the GPU."""
MAX_SHARED_BYTES = 48 * 1024
"""Per block, where a kernel does not ask for more."""
DYNAMIC_BYTES = MappingProxyType(
    {80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 110: 227, 120: 99, 121: 99}
)
"""KiB per block that a launch can ask for, by compute capability (CUDA C++ Programming Guide)."""
MOST_DYNAMIC_BYTES = max(DYNAMIC_BYTES.values()) * 1024
FLOAT_CAPABILITY = 80
"""Ten times the compute capability of the first devices whose tensor cores multiply TF32 and bfloat16."""


def kernel_lines(plan: FinishedPlan, kernel: Kernel, writer: KernelWriter) -> Iterator[str]:
    """Yield the lines between the kernel's parameters and its end."""
    writer.counters = (extent_names(plan) | counters(plan)) & {*kernel.arrays, *kernel.scalars}
    writer.nonnegative, writer.most = writer.counters | extents(plan), {}
    writer.no_contraction = kernel.no_contraction
    writer.positions, writer.values = kernel.positions, kernel.values
    if memory_ops.is_vectorized(kernel):
        arrays = [writer.renamed.get(a, a) for a in kernel.arrays]
        yield from (f"    {line}" for line in writer.aligned(arrays))
    for v in (v for v in kernel.locals if v.shape):
        yield f"    {writer.local_array(writer.name(v.name), prod(evaluate_size(e, {}) for e in v.shape), v.dtype)}"
    launched = writer.coordinates
    if kernel.exchanged:
        x, y = (writer.block_number(dim, "uint32") for dim in ("x", "y"))
        writer.coordinates = {**launched, "block x": y, "block y": x}
    yield from block_swizzle.emit_block_index(kernel, writer, "    ")
    kept = kernel.time_tile is not None and kernel.time_tile.resident
    if kernel.warp_tiles is None and kernel.resident is None and not kept and dynamic_shared_bytes(kernel):
        yield from (f"    {line}" for line in writer.open_dynamic_shared())
    if kernel.resident is not None:
        yield from resident_tiles.emit_resident_body(kernel, writer)
    elif kernel.time_tile is not None:
        yield from temporal_tiles.emit_temporal_body(kernel, writer)
    elif kernel.warp_tiles is not None:
        assert isinstance(writer, TensorCoreWriter), "the plan is refused for other targets"
        yield from warp_tiles.emit_warp_body(kernel, kernel.warp_tiles, writer, dynamic_shared_bytes(kernel) > 0)
    else:
        yield from _threads(kernel, writer)
    writer.coordinates = launched
    writer.shared_bytes = None


def _threads(kernel: Kernel, writer: KernelWriter) -> Iterator[str]:
    """Yield what each thread does, by where it is."""
    stage = kernel.tiles
    bounds, live = [], []
    for dim, axis in kernel.grid_axes:
        var, unsigned = writer.name(axis.var), writer.counts_unsigned(axis)
        yield from (f"    {line}" for line in _axis(kernel, dim, axis, writer, stage is not None))
        if not kernel.is_of_blocks(axis) and not (stage is not None and _even(kernel, dim, axis)):
            bounds.append(f"{var} >= {writer.limit(axis, unsigned)}")
            live.append(f"{var} < {writer.limit(axis, unsigned)}")
    for axis in kernel.loops:
        writer.bind(axis.var, writer.counts_unsigned(axis), axis)
    if stage is not None:
        writer.tiles = frozenset(t.name for t in stage.tiles)
        yield from shared_tiles.emit_tiled_body(kernel, stage, writer, writer.both(*live))
        writer.tiles = frozenset()
    elif kernel.team is not None:
        yield from team.emit_team_body(kernel, writer, writer.both(*live))
    else:
        if bounds:
            yield "    " + writer.if_(writer.either(*bounds))
            yield f"        {writer.leave}"
        yield from writer.block(kernel.body, "    ")
    for axis in kernel.loops:
        for name in (axis.var, axis.var + THREAD, axis.var + FIRST):
            writer.unbind(name)


def _axis(kernel: Kernel, dim: Dimension, axis: Loop, writer: KernelWriter, staged: bool) -> Iterator[str]:
    """Yield the iteration of one loop of the grid that a thread has."""
    var, unsigned = writer.name(axis.var), writer.counts_unsigned(axis)
    kind = "uint32" if unsigned else "int64"
    counter = writer.block_number(dim, kind)
    if not kernel.is_of_blocks(axis):
        counter = f"{counter} * {kernel.threads(dim)} + {writer.thread(dim)}"
    scaled = counter if axis.step == 1 else f"({counter}) * {axis.step}"
    lo = writer.bound(axis.lo)
    yield writer.declare(kind, var, scaled if lo == "0" else f"{lo} + {scaled}")
    if staged and axis is not kernel.z_axis:
        own = axis.var + THREAD
        yield writer.declare("uint32", own, writer.thread(dim))
        back = f"{own} * {axis.step}" if axis.step > 1 else own
        yield writer.declare(kind, axis.var + FIRST, f"{var} - {back}")
        writer.bind(own, True)
        writer.bind(axis.var + FIRST, unsigned)


def _even(kernel: Kernel, dim: Dimension, axis: Loop) -> bool:
    """Every thread of every block has an iteration."""
    match axis.lo, axis.hi:
        case Const(int(lo)), Const(int(hi)):
            return (hi - lo) % (axis.step * kernel.threads(dim)) == 0
    return False


def shared_bytes(kernel: Kernel) -> int:
    """Return the bytes of shared memory that a block needs."""
    if kernel.steps:
        made = tuple(kernels_in(kernel.steps))
        kept = temporal_tiles.resident_kernels(made).values()
        others = (k for k in made if k.time_tile is None or not k.time_tile.resident)
        return sum(map(shared_bytes, (*kept, *others)))
    if kernel.resident is not None:
        return resident_tiles.shared_bytes(kernel)
    if kernel.time_tile is not None:
        return temporal_tiles.shared_bytes(kernel)
    if kernel.warp_tiles is not None:
        return kernel.warp_tiles.shared_bytes
    return team.shared_bytes(kernel) + (0 if kernel.tiles is None else tiles.shared_bytes(kernel.tiles.tiles))


def dynamic_shared_bytes(kernel: Kernel) -> int:
    """Return the bytes of shared memory that a launch has to ask for, or 0 where the kernel declares what it needs."""
    if kernel.steps:
        owning = (k for k in kernels_in(kernel.steps) if k.resident is not None)
        return max(resident_tile_bytes(kernel), max(map(dynamic_shared_bytes, owning), default=0))
    needed = shared_bytes(kernel) if _may_ask(kernel) else 0
    return needed if needed > MAX_SHARED_BYTES else 0


def resident_tile_bytes(kernel: Kernel) -> int:
    """Return the bytes that a launch of a persistent kernel asks for, for tiles of steps that its blocks keep, or 0."""
    kept = temporal_tiles.resident_kernels(kernels_in(kernel.steps)).values()
    needed = sum(map(temporal_tiles.shared_bytes, kept))
    return needed if needed > MAX_SHARED_BYTES else 0


def _may_ask(kernel: Kernel) -> bool:
    """Return whether a launch of the kernel may ask for shared memory: for tiles of products, steps or waves.

    It may also for elements that threads keep, as it may if a persistent kernel has such, or tiles that blocks keep.
    """
    if kernel.warp_tiles is not None or kernel.keeps_tiles:
        return True
    inner = tuple(kernels_in(kernel.steps))
    owning, kept = any(k.resident is not None for k in inner), bool(temporal_tiles.resident_kernels(inner))
    if owning != kept:  # with both, their memory would be the same
        return True
    return kernel.team is not None and bool(kernel.team.tiles)


def launched_block(kernel: Kernel) -> tuple[int, ...]:
    """Return the threads along each dimension, and along z and the bytes of shared memory if a launch asks for some."""
    dynamic = dynamic_shared_bytes(kernel)
    return (*kernel.block, 1, dynamic) if dynamic else kernel.block


def check_limits(plan: FinishedPlan) -> None:
    """Raise ResourceError if a block has too many threads or needs too much shared memory."""
    for k in plan.compiled_kernels:
        _check(k.name, k.block[0] * k.block[1], "threads", MAX_THREADS)
        if k.warp_tiles is not None and k.no_contraction:
            raise ResourceError(f"{k.name}: tensor cores round a product and its sum once, and here products are not "
                                "contracted: leave the directive out, or --fp-contract off")  # fmt: skip
        if k.steps and k.blocks_per_sm * k.block[0] > MAX_THREADS_AT_ONCE:
            most = MAX_THREADS_AT_ONCE // k.block[0]
            raise ResourceError(f"{k.name} has {k.block[0]} threads per block: persistent {most} at most, for a "
                                f"multiprocessor runs {MAX_THREADS_AT_ONCE}")  # fmt: skip
        most = MOST_DYNAMIC_BYTES if _may_ask(k) else MAX_SHARED_BYTES
        _check(k.name, shared_bytes(k), "bytes of shared memory", most)


def uncountable_array(
    plan: Plan, counts: Mapping[str, int], scalars: Mapping[str, int | float]
) -> tuple[str, int] | None:
    """Return an array that has more elements in a call than the subscripts of the kernels can address, and how many.

    ``counts``: the elements of each array of the call; those of the plan's own arrays follow from ``scalars``. A plan
    knows what its arrays have where sizes are constants of its kernels.
    """
    own: dict[str, int] = {}
    if plan.device_locals:
        whole = {*integer_parameters(plan.codelet)}
        sizes = {name: int(value) for name, value in scalars.items() if name in whole}
        own = {a.name: prod(evaluate_size(n, sizes) for n in a.shape) for a in plan.device_locals}
    found = next(((name, count) for name, count in (*counts.items(), *own.items()) if count > MOST_ELEMENTS), None)
    return None if found is None or plan.wide_indices or needs_wide_indices(plan) else found


def check_elements(plan: Plan, counts: Mapping[str, int], scalars: Mapping[str, int | float]) -> None:
    """Raise ResourceError if an array has more elements in a call than the subscripts of the kernels can address."""
    found = uncountable_array(plan, counts, scalars)
    if found is not None:
        raise ResourceError(f"{found[0]} has {found[1]} elements, the limit is {MOST_ELEMENTS} for kernels whose sizes "
                            "are not constants")  # fmt: skip


def check_capability(plan: Plan, arch: str) -> None:
    """Check what the plan needs of the device.

    Raises ResourceError if a kernel copies to shared memory while it computes, or its blocks wait for each other, and
    the device cannot do that.
    """
    capability = int(arch.removeprefix("sm_"))
    if capability < grid_barrier.LEAST_CAPABILITY and any(k.steps for k in plan.compiled_kernels):
        raise ResourceError(f"persistent needs sm_{grid_barrier.LEAST_CAPABILITY}, this is {arch}: leave it out")
    for k in plan.compiled_kernels:
        if k.steps and dynamic_shared_bytes(k):
            _check_dynamic(k, capability)
    for k in plan.kernels:
        if k.warp_tiles is not None:
            check_tensor_cores(k, k.warp_tiles, capability)
        elif dynamic_shared_bytes(k):
            _check_dynamic(k, capability)
        ahead = any(staged_tiles(f).buffers > 1 for f in staging_loops(walk(k.body)))
        if ahead and capability < memory_ops.LEAST_CAPABILITY:
            raise ResourceError(f"{k.name} prefetches tiles, which needs sm_{memory_ops.LEAST_CAPABILITY}, "
                                f"this is {arch}: stage with one buffer")  # fmt: skip


def check_portable(plan: Plan, target: str) -> None:
    """Raise ResourceError if a kernel needs what ``target`` has no access to.

    These are tensor cores, and shared memory that a launch asks for.
    """
    found = next((k for k in plan.kernels if k.warp_tiles is not None), None)
    if found is not None:
        raise ResourceError(f"{found.name} needs tensor cores, which {target} cannot use: leave the directive out for "
                            "this target, or use numba-cuda or cuda-c")  # fmt: skip
    for k in plan.kernels:
        _check(k.name, dynamic_shared_bytes(k), f"bytes of shared memory for {target}", MAX_SHARED_BYTES)


def check_tensor_cores(kernel: Kernel, tiles: WarpTiles, capability: int) -> None:
    """Raise ResourceError if the device has no such instruction, or less shared memory than a launch asks for."""
    fragment = tiles.shape.fragment
    needed = fragment.capability if tiles.dtype == "float64" else FLOAT_CAPABILITY
    if capability < needed:
        raise ResourceError(f"{kernel.name} multiplies {fragment.name} elements at once, which needs "
                            f"sm_{needed}, this is sm_{capability}")  # fmt: skip
    _check_dynamic(kernel, capability)


def _check_dynamic(kernel: Kernel, capability: int) -> None:
    """Raise ResourceError if a block needs more shared memory than the device has for one."""
    most = next((kib for known, kib in sorted(DYNAMIC_BYTES.items(), reverse=True) if known <= capability), 48)
    _check(kernel.name, shared_bytes(kernel), "bytes of shared memory", most * 1024)


def _check(kernel: str, needed: int, what: str, most: int) -> None:
    if needed > most:
        raise ResourceError(f"{kernel} needs {needed} {what} per block, the limit is {most}")
