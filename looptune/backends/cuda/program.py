"""A loaded CUDA plan: kernels are launched through the driver, or all of them replayed from one CUDA graph.

    first call      cuLaunchKernel for every launch of the plan          3 us of host time each
    called again    with the same arrays and sizes: one cuGraphLaunch    0.5 us a kernel, on the device

A plan whose host loops launch thousands of kernels (a step of Gram-Schmidt, of FDTD) would otherwise wait for the host.
Parameters are in Numba's layout, in which an array is two null pointers, items, item size, data, shape and stride, or
in C's, in which it is a pointer.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, ObjectCode
from numba import cuda, types

from looptune.backends.base import Binary, PartialRun, Program, TimeLimit
from looptune.backends.codegen.memory_ops import aligned, unaligned
from looptune.backends.codegen.python import ident, numba_type
from looptune.backends.cuda.driver import MAX_BLOCKS_Y, MOST_ELEMENTS, WORD, Graph, check, max_cooperative_blocks
from looptune.backends.early_stop import run_in_batches
from looptune.core.errors import ResourceError, UsageError
from looptune.ir.nodes import Scalar
from looptune.ir.simplify import is_integer
from looptune.lower.checkpoints import checkpoints
from looptune.lower.plan import ARRIVED, Kernel, Plan, count, evaluate_size, grid_function, launches
from looptune.lower.signature import scalar_type
from looptune.lower.tiles import WIDE


@dataclass(frozen=True, slots=True)
class CallingConvention:
    """The calling convention of kernels.

    ``words``: the words of an array's layout that are its parameters; ``entry``: the pattern by which the entry of a
    cubin is found.
    """

    words: slice
    entry: str


class CudaProgram(Program):
    """A plan loaded on a GPU; ``stream`` of ``run`` is a driver's handle, None for the default stream."""

    def __init__(self, binary: Binary, convention: CallingConvention | None = None) -> None:
        """``convention``: None is Numba's."""
        entry = ident(binary.plan.codelet.name)
        # Numba's mangling keeps the function's name and its length.
        self.convention = (
            convention
            if convention is not None
            else CallingConvention(slice(None), rf"_ZN[\w]*?{len(entry)}{entry}[\w]*")
        )
        self.plan = binary.plan
        Device().set_current()
        self.modules = {name: ObjectCode.from_cubin(code) for name, code in binary.objects.items()}
        self.entries = {
            name: driver.CUfunction(int(m.get_kernel(_entry(binary.objects[name], self.convention.entry)).handle))
            for name, m in self.modules.items()
        }
        self.grids = {k.name: grid_function(k) for k in binary.plan.compiled_kernels if not k.steps}
        self.together = {k.name: _fitting(k, self.entries[k.name]) for k in binary.plan.compiled_kernels if k.steps}
        self.wide = aligned(binary.plan)
        self.resident: dict[str, Any] = {}
        self.last: object = None
        self.graph: Graph | None = None
        self.stream: Any = None

    def run(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None) -> None:
        where = driver.CUstream(0 if stream is None else int(stream))
        layouts, frames = self._frames(arrays, scalars)
        call = (tuple(layouts.items()), tuple(scalars.items()))
        if call != self.last or check(driver.cuStreamIsCapturing(where)):
            self._launch(frames, scalars, where)
            self.last, self.graph = call, None
            return
        if self.graph is None:
            self.stream = check(driver.cuStreamCreate(1)) if self.stream is None else self.stream
            self.graph = Graph(self.stream, lambda own: self._launch(frames, scalars, own))
        self.graph.launch(where)

    def run_within(
        self, limit: TimeLimit, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None
    ) -> PartialRun:
        where = driver.CUstream(0 if stream is None else int(stream))
        frames = self._frames(arrays, scalars)[1]
        queued = self._queued(frames, scalars, where)
        sizes = self._sizes(scalars)
        events = tuple(check(driver.cuEventCreate(0)) for _ in range(4))
        try:
            batch = partial(_batch, where, events, queued)
            return run_in_batches(batch, limit, count(self.plan.steps, sizes), checkpoints(self.plan, sizes))
        finally:
            for event in events:
                check(driver.cuEventDestroy(event))

    def _frames(
        self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float]
    ) -> tuple[dict[str, _Layout], dict[str, _Frame]]:
        everything = {**arrays, **self._residents(scalars)}
        layouts = {name: _layout(a, self.plan.array(name).dtype) for name, a in everything.items()}
        for name, layout in layouts.items():
            if layout[COUNT] > MOST_ELEMENTS:
                raise ResourceError(f"{name} has {layout[COUNT]} elements, the limit is {MOST_ELEMENTS}")
        for name in self.wide:
            if layouts[name][DATA] % WIDE:
                raise UsageError(unaligned(name))
        return layouts, {
            k.name: _Frame(self.plan, k, layouts, scalars, self.convention.words) for k in self.plan.compiled_kernels
        }

    def _launch(self, frames: Mapping[str, _Frame], scalars: Mapping[str, int | float], stream: Any) -> None:
        for _ in self._queued(frames, scalars, stream):
            pass

    def _sizes(self, scalars: Mapping[str, int | float]) -> dict[str, int]:
        return {p.name: int(scalars[p.name]) for p in self.plan.codelet.params if isinstance(p, Scalar) and _whole(p)}

    def _queued(self, frames: Mapping[str, _Frame], scalars: Mapping[str, int | float], stream: Any) -> Iterator[None]:
        """Put one launch after the other on ``stream``, one each time it is asked."""
        for kernel, env in launches(self.plan.steps, self._sizes(scalars)):
            if kernel.steps:
                at, blocks = frames[kernel.name].filled(env), self.together[kernel.name]
                entry, threads = self.entries[kernel.name], kernel.block[0]
                check(driver.cuLaunchCooperativeKernel(entry, blocks, 1, 1, threads, 1, 1, 0, stream, at))
                yield
                continue
            grid = self.grids[kernel.name](env)
            if grid is None:
                yield
                continue
            x, y, z = grid
            if max(y, z) > MAX_BLOCKS_Y:
                along, needed = ("y", y) if y > MAX_BLOCKS_Y else ("z", z)
                raise ResourceError(f"{kernel.name} needs {needed} blocks along {along}, the limit is {MAX_BLOCKS_Y}")
            at = frames[kernel.name].filled(env)
            width, height = kernel.block
            check(driver.cuLaunchKernel(self.entries[kernel.name], x, y, z, width, height, 1, 0, stream, at, 0))
            yield

    def _residents(self, scalars: Mapping[str, int | float]) -> dict[str, Any]:
        """Return the codelet's own variables on the device, allocated once for given sizes."""
        env = {n: int(v) for n, v in scalars.items() if float(v).is_integer()}
        for local in self.plan.device_locals:
            count = int(np.prod([evaluate_size(e, env) for e in local.shape], dtype=np.int64)) if local.shape else 1
            held = self.resident.get(local.name)
            if held is None or held.size != count:
                self.resident[local.name] = cuda.device_array(count, local.dtype)
                if local.name == ARRIVED:
                    self.resident[ARRIVED].copy_to_device(np.zeros(1, local.dtype))
                    check(driver.cuStreamSynchronize(driver.CUstream(0)))  # a launch on another stream would not wait
        return self.resident


BEHIND = 32
"""So many launches behind, a device is surely busy while the next are queued: what it takes a launch to arrive is no
more than a few."""


def _batch(stream: Any, events: Sequence[Any], queued: Iterator[None], most: int) -> tuple[int, float, float]:
    """Queue at most so many launches and wait.

    How many there were, and microseconds the device was busy, at least and at most.

    It may have waited for the host while some were queued, unless those before them had not ended even then.
    """
    first, last, *ends = events
    made, idle_ns = 0, 0
    check(driver.cuEventRecord(first, stream))
    for number in range(-(-most // BEHIND)):
        wanted = min(BEHIND, most - made)
        start = time.perf_counter_ns()
        new = sum(1 for _ in islice(queued, wanted))
        behind = number > 0 and driver.cuEventQuery(ends[1 - number % 2])[0] == driver.CUresult.CUDA_ERROR_NOT_READY
        made, idle_ns = made + new, idle_ns + (0 if behind else time.perf_counter_ns() - start)
        if new < wanted:
            break
        check(driver.cuEventRecord(ends[number % 2], stream))
    check(driver.cuEventRecord(last, stream))
    check(driver.cuEventSynchronize(last))
    elapsed_us = 1e3 * float(check(driver.cuEventElapsedTime(first, last)))
    return made, max(0.0, elapsed_us - idle_ns / 1e3), elapsed_us


_Layout = tuple[int, ...]
"""An array as Numba passes it: two null pointers, items, item size, data, shape, stride."""
COUNT, DATA = 2, 4


class _Frame:
    """The parameters of one kernel in memory: written once, but for the host loops' variables."""

    def __init__(
        self,
        plan: Plan,
        kernel: Kernel,
        layouts: Mapping[str, _Layout],
        scalars: Mapping[str, int | float],
        passed: slice,
    ) -> None:
        """Lay out the arguments of a kernel; ``passed``: which words of an array's layout are parameters."""
        words = [word for a in kernel.arrays for word in layouts[a][passed]]
        self.memory = np.zeros(len(words) + len(kernel.scalars), np.int64)
        self.memory[: len(words)] = words
        start = self.memory.ctypes.data
        self.pointers = (ctypes.c_void_p * len(self.memory))(*(start + WORD * k for k in range(len(self.memory))))
        self.own: dict[str, Any] = {}
        for k, name in enumerate(kernel.scalars, len(words)):
            slot = self.memory[k : k + 1].view(np.dtype(scalar_type(plan, name)))[:1]
            if name in scalars:
                slot[0] = scalars[name]
            self.own[name] = slot

    def filled(self, env: Mapping[str, int]) -> int:
        """Return the address of the parameters' addresses, with the values that this launch has."""
        for name, slot in self.own.items():
            if name in env:
                slot[0] = env[name]
        return ctypes.addressof(self.pointers)


def _layout(array: Any, dtype: str) -> _Layout:
    facts = array.__cuda_array_interface__
    item = np.dtype(dtype).itemsize
    count = int(np.prod(facts["shape"], dtype=np.int64))
    return 0, 0, count, item, int(facts["data"][0]), count, item


def _entry(cubin: bytes, name: str) -> str:
    """Return the name of the one kernel of a cubin, which matches the pattern ``name``."""
    found = re.search(rb"\.text\.(" + name.encode() + rb")\0", cubin)
    assert found is not None, f"no kernel {name} in its cubin"
    return found[1].decode()


def _fitting(kernel: Kernel, entry: Any) -> int:
    """How many blocks of a persistent kernel are launched: all run at one time. ResourceError where they cannot."""
    blocks, fit = max_cooperative_blocks(entry, kernel.block[0], kernel.blocks_per_sm)
    if fit < kernel.blocks_per_sm:
        raise ResourceError(
            f"{kernel.name}: persistent {kernel.blocks_per_sm} needs {kernel.blocks_per_sm} blocks at a time on a "
            "multiprocessor, "
            f"and {fit} fit: ask for {fit}"
            if fit
            else f"{kernel.name}: not even one of its blocks fits on a multiprocessor"
        )
    return blocks


def _whole(p: Scalar) -> bool:
    return is_integer(p.dtype)


def argument_types(plan: Plan, kernel: Kernel) -> tuple[Any, ...]:
    """Return the Numba types of a kernel's parameters.

    Flat arrays (readonly if the kernel does not write them), then scalar parameters and host loop variables.
    """
    arrays = ((getattr(types, numba_type(plan.array(name).dtype)), name not in kernel.writes) for name in kernel.arrays)
    scalars = (getattr(types, numba_type(scalar_type(plan, name))) for name in kernel.scalars)
    return *(types.Array(item, 1, "C", readonly=readonly) for item, readonly in arrays), *scalars
