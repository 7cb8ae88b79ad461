"""An OpenCL device: its memory, and runs timed by the host's clock, from an empty queue to an empty queue."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl

from looptune.backends.opencl.backend import DeviceArray, allocate, context, device
from looptune.runtime.device import Device, DeviceInfo, Run


class OpenClDevice(Device):
    """The device that ``backends.opencl.backend`` compiles for."""

    def __init__(self) -> None:
        self.facts = facts()
        self.stream = cl.CommandQueue(context())

    def place(self, array: np.ndarray) -> DeviceArray:
        whole = np.ascontiguousarray(array)
        placed = allocate(whole.shape, whole.dtype)
        if whole.nbytes:
            cl.enqueue_copy(self.stream, placed.buffer, whole)
        return placed

    def fetch(self, array: DeviceArray) -> np.ndarray:
        out = np.empty(array.shape, array.dtype)
        if out.nbytes:
            cl.enqueue_copy(self.stream, out, array.buffer, src_offset=array.start * array.dtype.itemsize)
        self.stream.finish()
        return out

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        if source.nbytes:
            cl.enqueue_copy(
                self.stream, target.buffer, source.buffer, byte_count=source.nbytes,
                src_offset=source.start * source.dtype.itemsize, dst_offset=target.start * target.dtype.itemsize,
            )  # fmt: skip

    def inside(self, array: DeviceArray, start: int, shape: tuple[int, ...]) -> DeviceArray:
        return replace(array, shape=shape, start=array.start + start)

    def flat(self, array: DeviceArray) -> DeviceArray:
        return replace(array, shape=(math.prod(array.shape),))

    def external_kernel(self, call: Callable[..., None], args: Sequence[Any]) -> Run:
        return lambda stream: call(*args, queue=stream)

    def time_once(self, run: Run) -> float:
        self.stream.finish()
        start = time.perf_counter_ns()
        run(self.stream)
        self.stream.finish()
        return (time.perf_counter_ns() - start) / 1e3


def facts() -> DeviceInfo:
    """Return the facts of the OpenCL device."""
    own = device()
    return DeviceInfo(
        name=" ".join(own.name.split()), target="opencl", arch=" ".join(own.version.split()[:2]),
        cores=own.max_compute_units, memory_bytes=own.global_mem_size, cache_bytes=own.global_mem_cache_size,
        driver=own.driver_version,
    )  # fmt: skip
