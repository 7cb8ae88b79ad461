"""Plans on an OpenCL device: PoCL on a processor, or any other driver with 32-bit counters and local memory.

``build`` needs the driver, since the device's driver compiles OpenCL C; ``load`` takes the binary that it returns.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl

from looptune.backends.base import Backend, Binary, PartialRun, Program, Resources, TimeLimit
from looptune.backends.codegen.kernel import check_elements, shared_bytes
from looptune.backends.early_stop import run_in_batches
from looptune.backends.opencl.writer import NAME, device_text, file_text, machine
from looptune.core.errors import ResourceError, TargetError
from looptune.core.short_floats import rounded
from looptune.ir.def_use import integer_parameters
from looptune.ir.rewrite import walk
from looptune.lower.checkpoints import checkpoints
from looptune.lower.pipeline import finish
from looptune.lower.plan import FinishedPlan, Kernel, Plan, count, data_decide, evaluate_size, grid_function, launches
from looptune.lower.signature import half_scalars, scalar_type
from looptune.lower.staged_tiles import staging_loops
from looptune.lower.tiles import WIDE

if TYPE_CHECKING:
    from looptune.core.floating_point import Contract

_OPTIONS = ("-cl-std=CL1.2", "-cl-fp32-correctly-rounded-divide-sqrt")
_PROBE = "__kernel void probe(__global float *x) { x[get_global_id(0)] = 1.0f; }"
OBJECT = "program"
SOUND_POCL = 4
"""PoCL 3.0, which pip has, leaves rows of a block out, or writes beyond its memory, where threads wait in a loop whose
length is an argument; the same kernels are right on other drivers and in threads that take turns."""


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """An array in a device's memory: of a ``buffer``, the elements from ``start`` on."""

    buffer: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int = 0

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


@cache
def device() -> Any:
    """Return the first device of a driver that compiles for it.

    Raises TargetError with the drivers' messages if there is none.
    """
    said = []
    for found in (d for platform in _platforms() for d in platform.get_devices()):
        try:
            _compiled(cl.Context([found]), found, _PROBE)
            return found
        except cl.Error as error:
            said.append(f"{found.name}: {_reason(error)}")
    why = "; ".join(said) if said else "no driver has a device; pip install 'looptune[opencl]' brings PoCL"
    raise TargetError(f"no OpenCL device can be used: {why}")


@cache
def context() -> Any:
    """Return the OpenCL context of the device."""
    return cl.Context([device()])


def _platforms() -> list[Any]:
    try:
        return list(cl.get_platforms())
    except cl.Error:
        return []


def _compiled(where: Any, found: Any, text: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        return cl.Program(where, text).build(options=_options(found), devices=[found])


def _options(found: Any) -> list[str]:
    """Divisions and roots as IEEE 754 rounds them, where the device can."""
    exact = found.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    return list(_OPTIONS if exact else _OPTIONS[:1])


def _reason(error: Any) -> str:
    """Return what a compiler says is wrong, in a line."""
    lines = [line.strip() for line in str(error).splitlines() if "error:" in line]
    return lines[0] if lines else str(error).splitlines()[0]


class OpenCl(Backend):
    """The backend of OpenCL C."""

    name = NAME

    def __init__(self, contract: Contract = "cc") -> None:
        self.contract = contract

    def emit(self, plan: Plan) -> str:
        return file_text(self.finish(plan))

    def finish(self, plan: Plan) -> FinishedPlan:
        return finish(plan, machine(self.contract))

    def measuring(self) -> Backend:
        return OpenCl("fast")

    def build(self, plan: Plan) -> Binary:
        start = time.perf_counter()
        finished = self.finish(plan)
        self._check(finished)
        try:
            program = _compiled(context(), device(), device_text(finished))
        except cl.Error as error:
            raise RuntimeError(f"{device().name}: {_reason(error)}") from error
        (code,) = program.get_info(cl.program_info.BINARIES)
        used = tuple(_resources(k, program) for k in finished.kernels)
        return Binary(self.name, finished, file_text(finished), {OBJECT: code}, used, time.perf_counter() - start)

    def _check(self, plan: FinishedPlan) -> None:
        """Check the limits of the device.

        Raises ResourceError if a block has more threads, or takes more shared memory, than the device has, or if its
        driver is known to run the kernel wrongly.
        """
        for k in plan.kernels:
            if _staged(k) and _old_pocl():
                raise ResourceError(f"{k.name} stages tiles, which PoCL {_old_pocl()} miscompiles: leave out stage")
            for needed, most, what in (
                (k.block[0] * k.block[1], device().max_work_group_size, "threads"),
                (shared_bytes(k), device().local_mem_size, "bytes of shared memory"),
            ):
                if needed > most:
                    raise ResourceError(f"{k.name} needs {needed} {what} per block, the limit is {most}")

    def load(self, binary: Binary) -> OpenClProgram:
        return OpenClProgram(binary)


def _staged(kernel: Kernel) -> bool:
    return bool(staging_loops((*kernel.loops, *walk(kernel.body))))


def _old_pocl() -> str:
    """Return the version of the PoCL that the device is of, where its barriers in loops cannot be relied on.

    Else "".
    """
    found = re.search(r"PoCL (\d+)\.(\d+)", device().platform.version)
    return f"{found[1]}.{found[2]}" if found is not None and int(found[1]) < SOUND_POCL else ""


def _resources(kernel: Kernel, program: Any) -> Resources:
    """Return the resources of a kernel; the registers of a processor are not known and are 0."""
    info, own = cl.kernel_work_group_info, getattr(program, kernel.name)
    local = int(own.get_work_group_info(info.PRIVATE_MEM_SIZE, device()))
    return Resources(kernel.name, 0, local, shared_bytes(kernel), kernel.block[0] * kernel.block[1])


class OpenClProgram(Program):
    """A plan loaded on an OpenCL device; ``stream`` of ``run`` is a command queue, None for the program's own."""

    def __init__(self, binary: Binary) -> None:
        self.plan = binary.plan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)
            self.program = cl.Program(context(), [device()], [binary.objects[OBJECT]]).build()
        self.kernels = {k.name: cl.Kernel(self.program, k.name) for k in binary.plan.kernels}
        self.grids = {k.name: grid_function(k) for k in binary.plan.kernels}
        self.queue = cl.CommandQueue(context())
        self.resident: dict[str, DeviceArray] = {}
        self.passed: dict[str, Any] = {}

    def run(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None) -> None:
        queue = self.queue if stream is None else stream
        for _ in self._queued(arrays, scalars, queue):
            pass
        if stream is None:
            queue.finish()

    def run_within(
        self, limit: TimeLimit, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None
    ) -> PartialRun:
        queue = self.queue if stream is None else stream
        queued = self._queued(arrays, scalars, queue)
        sizes = self._sizes(scalars)
        batch: Callable[[int], tuple[int, float, float]] = partial(_batch, queue, queued)
        counted = None if data_decide(self.plan) else count(self.plan.steps, sizes)
        return run_in_batches(batch, limit, counted, checkpoints(self.plan, sizes))

    def _sizes(self, scalars: Mapping[str, int | float]) -> dict[str, int]:
        whole = integer_parameters(self.plan.codelet)
        return {name: int(scalars[name]) for name in whole}

    def _queued(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], queue: Any) -> Iterator[None]:
        """Put one launch after the other on the queue, one each time it is asked."""
        check_elements(self.plan, {name: prod(given.shape) for name, given in arrays.items()}, scalars)
        # A kernel does not keep what it is called with alive.
        halves = half_scalars(self.plan)
        self.passed = {name: _buffer(held) for name, held in {**arrays, **self._residents(scalars)}.items()}
        for kernel in self.plan.kernels:
            own = self.kernels[kernel.name]
            for place, name in enumerate(kernel.arrays):
                own.set_arg(place, self.passed[name])
        for kernel, env in launches(self.plan.steps, self._sizes(scalars), partial(self._holds, queue)):
            grid = self.grids[kernel.name](env)
            if grid is None:
                yield
                continue
            own, block = self.kernels[kernel.name], (*kernel.block, 1)
            for place, name in enumerate(kernel.scalars, len(kernel.arrays)):
                number = env[name] if name in env else scalars[name]
                number = rounded(number, halves[name]) if name in halves else number
                own.set_arg(place, np.dtype(scalar_type(self.plan, name)).type(number))
            around = tuple(blocks * threads for blocks, threads in zip(grid, block, strict=True))
            cl.enqueue_nd_range_kernel(queue, own, around, block)
            yield

    def _holds(self, queue: Any, flag: str) -> bool:
        """Wait for the launches so far, and read a flag that they have set."""
        found = np.zeros(1, np.int32)
        cl.enqueue_copy(queue, found, self.resident[flag].buffer, is_blocking=True)
        return bool(found[0])

    def _residents(self, scalars: Mapping[str, int | float]) -> dict[str, DeviceArray]:
        """Return the codelet's own variables on the device, allocated once for given sizes."""
        env = {n: int(v) for n, v in scalars.items() if float(v).is_integer()}
        for local in self.plan.device_locals:
            shape = tuple(evaluate_size(e, env) for e in local.shape)
            held = self.resident.get(local.name)
            if held is None or held.shape != shape:
                self.resident[local.name] = allocate(shape, np.dtype(local.dtype))
        return self.resident


def allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
    """Return a new array in device memory."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return DeviceArray(cl.Buffer(context(), cl.mem_flags.READ_WRITE, max(size, WIDE)), shape, dtype)


def _buffer(held: DeviceArray) -> Any:
    """Return what a kernel takes: the whole buffer, or a part of it."""
    if not held.start:
        return held.buffer
    first = held.start * held.dtype.itemsize
    return held.buffer.get_sub_region(first, max(held.nbytes, 1))


def _batch(queue: Any, queued: Iterator[None], most: int) -> tuple[int, float, float]:
    """Queue at most so many launches and wait: how many there were, and microseconds, which the host's are as well."""
    start = time.perf_counter_ns()
    made = sum(1 for _ in islice(queued, most))
    queue.finish()
    took_us = (time.perf_counter_ns() - start) / 1e3
    return made, took_us, took_us
