"""A loaded CUDA plan of a sweep: its launches, on any stream, replayed from a CUDA graph or stopped between two.

    first call      cuLaunchKernel for every launch of the plan          3 us of host time each
    called again    with the same arrays and sizes: one cuGraphLaunch    0.5 us a kernel, on the device

A plan whose host loops launch thousands of kernels (a step of Gram-Schmidt, of FDTD) would otherwise wait for the host.
"""

from __future__ import annotations

import math
import re
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, ObjectCode
from numba import types

from looptune.backends.base import Binary, PartialRun, Program, TimeLimit
from looptune.backends.codegen.kernel import check_elements, launched_block
from looptune.backends.codegen.memory_ops import aligned, unaligned
from looptune.backends.codegen.python import ident, numba_type
from looptune.backends.cuda.driver import check
from looptune.backends.cuda.fork import Fork
from looptune.backends.cuda.launch import ArgumentSlot, GridTooLarge, Launcher, LoadedKernel, ParameterBlock, Scratch
from looptune.backends.early_stop import run_in_batches
from looptune.core.errors import NotCapturable, ResourceError, UsageError
from looptune.core.short_floats import rounded
from looptune.ir.def_use import integer_parameters
from looptune.lower.checkpoints import checkpoints
from looptune.lower.concurrent_launches import has_concurrent, in_groups
from looptune.lower.plan import ARRIVED, Kernel, Plan, count, data_decide, evaluate_size, grid_function, launches
from looptune.lower.signature import half_scalars, scalar_type
from looptune.lower.tiles import WIDE

if TYPE_CHECKING:
    from looptune.ir.nodes import Local

MOST_SIZES = 16
"""Of calls whose launches, memory and graphs are kept."""


@dataclass(frozen=True, slots=True)
class CallingConvention:
    """The calling convention of kernels.

    ``pointers_only``: an array is its pointer, else Numba's seven words; ``entry``: the pattern by which the entry of a
    cubin is found.
    """

    pointers_only: bool
    entry: str


class CudaProgram(Program):
    """A plan loaded on a GPU; ``stream`` of ``run`` is a driver's handle, None for the default stream."""

    def __init__(self, binary: Binary, convention: CallingConvention | None = None) -> None:
        """``convention``: None is Numba's."""
        entry = ident(binary.plan.codelet.name)
        # Numba's mangling keeps the function's name and its length.
        self.convention = convention or CallingConvention(False, rf"_ZN[\w]*?{len(entry)}{entry}[\w]*")
        self.plan = binary.plan
        Device().set_current()
        self.modules = {name: ObjectCode.from_cubin(code) for name, code in binary.objects.items()}
        self.entries = {
            name: driver.CUfunction(int(m.get_kernel(_entry(binary.objects[name], self.convention.entry)).handle))
            for name, m in self.modules.items()
        }
        self.grids = {k.name: grid_function(k) for k in binary.plan.compiled_kernels if not k.steps}
        self.wide = aligned(binary.plan)
        self.launchers: OrderedDict[Any, PlanLauncher] = OrderedDict()
        self.captured: set[PlanLauncher] = set()
        """Those whose memory a graph of the caller's uses, which may be launched as long as this program is there."""

    def run(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None) -> None:
        launcher, floats = self._placed(arrays, scalars)
        where = driver.CUstream(0 if stream is None else int(stream))
        capturing = bool(check(driver.cuStreamIsCapturing(where)))
        if capturing and data_decide(self.plan):
            raise NotCapturable(
                f"{self.plan.codelet.name} cannot be captured in a CUDA graph: data decide how many launches it makes"
            )
        if launcher.scratch and capturing:
            self.captured.add(launcher)
        with _grids_reported():
            if data_decide(self.plan):
                launcher.floats = floats
                launcher.step(where)
            else:
                launcher.step_or_replay(floats, where)

    def run_within(
        self, limit: TimeLimit, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None
    ) -> PartialRun:
        where = driver.CUstream(0 if stream is None else int(stream))
        launcher, floats = self._placed(arrays, scalars)
        queued, sizes = launcher.queued(floats, where), launcher.sizes
        counted = None if data_decide(self.plan) else count(self.plan.steps, sizes)
        events = tuple(check(driver.cuEventCreate(0)) for _ in range(4))
        try:
            batch = partial(_batch, where, events, queued)
            with _grids_reported():
                return run_in_batches(batch, limit, counted, checkpoints(self.plan, sizes))
        finally:
            for event in events:
                check(driver.cuEventDestroy(event))

    def _placed(
        self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float]
    ) -> tuple[PlanLauncher, tuple[float, ...]]:
        """Return the launcher for these sizes, with the addresses of the arrays, and the floats of the call."""
        pointers = {name: int(a.__cuda_array_interface__["data"][0]) for name, a in arrays.items()}
        counts = {name: math.prod(a.__cuda_array_interface__["shape"]) for name, a in arrays.items()}
        check_elements(self.plan, counts, scalars)
        for name in self.wide:
            if pointers.get(name, 0) % WIDE:
                raise UsageError(unaligned(name))
        sizes, floats = _split(self.plan, scalars)
        launcher = self._launcher(sizes, tuple(arrays), tuple(floats))
        launcher.place(tuple(pointers.values()), tuple(counts.values()))
        return launcher, tuple(floats.values())

    def _launcher(self, sizes: Mapping[str, int], arrays: tuple[str, ...], floats: tuple[str, ...]) -> PlanLauncher:
        """Return the launches for these sizes, which are kept, and made anew where others need their memory."""
        key = *sizes.items(), arrays, floats
        found = self.launchers.pop(key, None)
        if found is None:
            try:
                found = PlanLauncher(self, sizes, arrays, floats)
            except RuntimeError:
                if not self.launchers:
                    raise
                self.launchers.clear()
                found = PlanLauncher(self, sizes, arrays, floats)
        self.launchers[key] = found
        if len(self.launchers) > MOST_SIZES:
            self.launchers.popitem(last=False)
        return found


class PlanLauncher(Launcher):
    """The launches of a plan at one set of sizes; ``arrays`` and ``floats`` name what each call brings, in order."""

    def __init__(
        self, program: CudaProgram, sizes: Mapping[str, int], arrays: Sequence[str], floats: Sequence[str]
    ) -> None:
        super().__init__()
        self.plan, self.grids, self.sizes = program.plan, program.grids, dict(sizes)
        self.pairs = has_concurrent(self.plan)
        self.names = (*arrays, *floats)
        self.scratch = {local.name: _scratch(local, self.sizes) for local in self.plan.device_locals}
        given = {name: ArgumentSlot(k) for names in (arrays, floats) for k, name in enumerate(names)}
        self.frames = {
            k.name: ParameterBlock(
                LoadedKernel(k.name, program.entries[k.name], parameter_types(self.plan, k)),
                launched_block(k),
                [self.scratch.get(name) or given.get(name, name) for name in (*k.arrays, *k.scalars)],
                program.convention.pointers_only,
            )
            for k in self.plan.compiled_kernels
        }

    def step(self, stream: Any) -> None:
        """Launch all kernels: one after the other, or, in a graph, those at once that need not wait for each other."""
        if self.pairs and check(driver.cuStreamIsCapturing(stream)):
            self.fork = self.fork or Fork()
        if self.fork is None or not self.fork.serves(stream):
            for _ in self.queued(self.floats, stream):
                pass
            return
        self._settle(self.floats)
        for group in in_groups(launches(self.plan.steps, self.sizes)):
            self.fork.run(stream, [partial(self._launch, kernel, env) for kernel, env in group])

    def queued(self, floats: Sequence[float], stream: Any) -> Iterator[None]:
        """Put one launch after the other on ``stream``, one each time it is asked."""
        self._settle(floats)
        for kernel, env in launches(self.plan.steps, self.sizes, partial(self._holds, stream)):
            self._launch(kernel, env, stream)
            yield

    def _holds(self, stream: Any, flag: str) -> bool:
        """Wait for the launches so far, and read a flag that they have set."""
        found = np.zeros(1, np.int32)
        check(driver.cuMemcpyDtoHAsync(found.ctypes.data, self.scratch[flag].pointer, found.nbytes, stream))
        check(driver.cuStreamSynchronize(stream))
        return bool(found[0])

    def _settle(self, floats: Sequence[float]) -> None:
        for frame in self.frames.values():
            frame.place(self.pointers, self.counts)
            frame.set_floats(floats)

    def _launch(self, kernel: Kernel, env: Mapping[str, int], stream: Any) -> None:
        grid = kernel.blocks_per_sm if kernel.steps else self.grids[kernel.name](env)
        if grid is not None:
            frame = self.frames[kernel.name]
            frame.fill([env[name] for name in kernel.scalars if name in env])
            call, passed = frame.call(grid, stream)
            check(call(*passed))


@contextmanager
def _grids_reported() -> Iterator[None]:
    """Raise ResourceError for a grid that the GPU does not run."""
    try:
        yield
    except GridTooLarge as why:
        raise ResourceError(str(why)) from None


def _split(plan: Plan, scalars: Mapping[str, int | float]) -> tuple[dict[str, int], dict[str, float]]:
    """Return the sizes and the other scalar parameters of a call."""
    whole = {*integer_parameters(plan.codelet)}
    sizes = {name: int(value) for name, value in scalars.items() if name in whole}
    halves = half_scalars(plan)
    floats = {n: rounded(v, halves[n]) if n in halves else v for n, v in scalars.items() if n not in whole}
    return sizes, floats


def _scratch(local: Local, sizes: Mapping[str, int]) -> Scratch:
    elements = math.prod(evaluate_size(extent, sizes) for extent in local.shape)
    return Scratch(elements, local.dtype, zeros=local.name == ARRIVED)


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


def _entry(cubin: bytes, name: str) -> str:
    """Return the name of the one kernel of a cubin, which matches the pattern ``name``."""
    found = re.search(rb"\.text\.(" + name.encode() + rb")\0", cubin)
    assert found is not None, f"no kernel {name} in its cubin"
    return found[1].decode()


def parameter_types(plan: Plan, kernel: Kernel) -> list[str]:
    """Return the types of a kernel's parameters by name: flat arrays have a bracket, then come the scalars."""
    arrays = (f"{plan.array(name).dtype}[::1]" for name in kernel.arrays)
    return [*arrays, *(scalar_type(plan, name) for name in kernel.scalars)]


def argument_types(plan: Plan, kernel: Kernel) -> tuple[Any, ...]:
    """Return the Numba types of a kernel's parameters.

    Flat arrays (readonly if the kernel does not write them), then scalar parameters and host loop variables.
    """
    arrays = ((getattr(types, numba_type(plan.array(name).dtype)), name not in kernel.writes) for name in kernel.arrays)
    scalars = (getattr(types, numba_type(scalar_type(plan, name))) for name in kernel.scalars)
    return *(types.Array(item, 1, "C", readonly=readonly) for item, readonly in arrays), *scalars
