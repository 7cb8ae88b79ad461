"""An NVIDIA GPU through the driver API: memory, events, graphs. This module contains no kernel.

In one sample, the arrays are restored, the L2 is flushed by a memset of twice its size (unless warm), and the run is
timed between two events. The run is replayed from a CUDA graph, and the host queues all of it behind the memset, so
that no time includes what a launch costs the host: 20 us through Numba, a quarter of GEMM's time at 512.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.bindings import driver

from looptune.backends.cuda.driver import Graph, Memory, check
from looptune.backends.numba_cuda.backend import numba_stream
from looptune.core.errors import NotCapturable, TargetError
from looptune.runtime import nvml
from looptune.runtime.device import Device, DeviceInfo, Restore, Run

if TYPE_CHECKING:
    from looptune.runtime.energy import EnergyCounter


class DeviceArray:
    """Device memory with a shape, which kernels and other libraries take through the CUDA Array Interface."""

    def __init__(self, shape: tuple[int, ...], dtype: str, inside: DeviceArray | None = None, start: int = 0) -> None:
        """Allocate new memory, or refer to the part of another array that begins at its element ``start``."""
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.nbytes = math.prod(shape) * self.dtype.itemsize
        self.memory: Memory = Memory(self.nbytes) if inside is None else inside.memory
        self.pointer: int = self.memory.pointer if inside is None else inside.pointer + start * self.dtype.itemsize

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def reshape(self, *shape: int) -> DeviceArray:
        """Return the same memory with another shape of equally many elements."""
        assert math.prod(shape) == self.size, f"{self.shape} cannot be {shape}"
        return DeviceArray(shape, self.dtype.name, self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "version": 3,
            "strides": None,
        }


class Gpu(Device):
    """The GPU number ``index``; ``warm``: the L2 is left as the run before left it."""

    asynchronous = True

    def __init__(self, index: int = 0, warm: bool = False) -> None:
        self.facts = facts(index)
        self.device = check(driver.cuDeviceGet(index))
        self.context = check(driver.cuDevicePrimaryCtxRetain(self.device))
        check(driver.cuCtxSetCurrent(self.context))
        self.stream = check(driver.cuStreamCreate(1))
        self.events = tuple(check(driver.cuEventCreate(0)) for _ in range(2))
        self.warm, self.cold = warm, not warm
        self.flushed = DeviceArray((max(2 * self.facts.cache_bytes, 1),), "uint8")

    def place(self, array: np.ndarray) -> DeviceArray:
        whole = np.ascontiguousarray(array)
        placed = DeviceArray(whole.shape, whole.dtype.name)
        if whole.nbytes:
            check(driver.cuMemcpyHtoD(placed.pointer, whole.ctypes.data, whole.nbytes))
        return placed

    def fetch(self, array: DeviceArray) -> np.ndarray:
        check(driver.cuStreamSynchronize(self.stream))
        out = np.empty(array.shape, array.dtype)
        if out.nbytes:
            check(driver.cuMemcpyDtoH(out.ctypes.data, array.pointer, out.nbytes))
        return out

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        if source.nbytes:
            check(driver.cuMemcpyDtoDAsync(target.pointer, source.pointer, source.nbytes, self.stream))

    def inside(self, array: DeviceArray, start: int, shape: tuple[int, ...]) -> DeviceArray:
        return DeviceArray(shape, array.dtype.name, array, start)

    def flat(self, array: DeviceArray) -> DeviceArray:
        return array.reshape(array.size)

    def external_kernel(self, call: Callable[..., None], args: Sequence[Any]) -> Run:
        return lambda stream: call(*args, stream=numba_stream(stream))

    def time_once(self, run: Run) -> float:
        return self._timed(lambda: run(self.stream), self._flush)

    def watch(self) -> Callable[[], str]:
        """Watch the clocks; what runs on the host delays no run that is queued behind the flush."""
        known = nvml.gpu(uuid(self.device))
        return (lambda: "") if known is None else nvml.GpuWatch.begin(known).disturbance

    def sampler(self, run: Run, restore: Restore) -> Callable[[], float]:
        replay = self._recorded(run, run)

        def before() -> None:
            for target, source in restore.values():
                self.copy(source, target)
            self._flush()

        return lambda: self._timed(lambda: replay(self.stream), before)

    def energy_counter(self) -> EnergyCounter | None:
        known = nvml.gpu(uuid(self.device))
        return None if known is None else known.energy_counter()

    def repeater(self, run: Run | None, restore: Restore) -> Callable[[int], None]:
        def once(stream: Any) -> None:
            for target, source in restore.values():
                self.copy(source, target)
            if run is not None:
                run(stream)

        replay = self._recorded(once, run)

        def repeat(times: int) -> None:
            for _ in range(times):
                replay(self.stream)
            check(driver.cuStreamSynchronize(self.stream))

        return repeat

    def _recorded(self, run: Run, owner: object) -> Run:
        """Return the run as the launch of a graph, or the run itself if data decide on its launches."""
        try:
            return Graph(self.stream, run, owner).launch
        except NotCapturable:
            return run

    def _timed(self, action: Callable[[], None], before: Callable[[], None]) -> float:
        first, last = self.events
        before()
        check(driver.cuEventRecord(first, self.stream))
        action()
        check(driver.cuEventRecord(last, self.stream))
        check(driver.cuEventSynchronize(last))
        return float(check(driver.cuEventElapsedTime(first, last))) * 1e3

    def _flush(self) -> None:
        """Other data in the L2; also some tens of microseconds of work for the launches to queue behind."""
        if not self.warm:
            check(driver.cuMemsetD8Async(self.flushed.pointer, 0, self.flushed.nbytes, self.stream))


def uuid(device: Any) -> str:
    """Return the identifier of a device as NVML writes it."""
    text = check(driver.cuDeviceGetUuid(device)).bytes.hex()
    return f"GPU-{'-'.join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))}"


def available() -> str:
    """Return "" if a GPU can be used, else the reason why not."""
    try:
        return "" if count() else "the driver finds no GPU"
    except (RuntimeError, OSError) as error:
        return f"no NVIDIA driver ({error})"


def count() -> int:
    """Return how many GPUs the driver finds."""
    check(driver.cuInit(0))
    return int(check(driver.cuDeviceGetCount()))


def facts(index: int) -> DeviceInfo:
    """Return the facts of GPU number ``index``, without making a context on it; raises TargetError if there is none."""
    if index >= count():
        raise TargetError(f"no GPU number {index}: {count()} found")
    device = check(driver.cuDeviceGet(index))
    attribute = driver.CUdevice_attribute

    def number(what: Any) -> int:
        return int(check(driver.cuDeviceGetAttribute(what, device)))

    major = number(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
    minor = number(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    return DeviceInfo(
        name=check(driver.cuDeviceGetName(128, device)).split(b"\0")[0].decode(),
        target="numba-cuda",
        arch=f"sm_{major}{minor}",
        cores=number(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        memory_bytes=int(check(driver.cuDeviceTotalMem(device))),
        cache_bytes=number(attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
        driver=str(check(driver.cuDriverGetVersion())),
    )
