"""CUDA's driver: calls with their results checked, and graphs of launches.

``looptune build`` copies this file into its modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuda.bindings import driver

MAX_BLOCKS_Y = 65535
"""Blocks of a grid along y, and along z."""
MOST_ELEMENTS = 2**31
"""Of an array: kernels count places in 32 bits, and what is added to them stays below as much again."""
WORD = 8
"""Bytes of a parameter's slot: no parameter is longer."""
SUCCESS = driver.CUresult.CUDA_SUCCESS


def check(result: tuple[Any, ...]) -> Any:
    """Return the value of a driver call.

    Raises RuntimeError with the driver's own name of the error if the call failed.
    """
    error, *values = result
    if error != SUCCESS:
        name = driver.cuGetErrorName(error)[1]
        raise RuntimeError(f"CUDA: {name.decode() if isinstance(name, bytes) else error}")
    return values[0] if len(values) == 1 else tuple(values) if values else None


def max_cooperative_blocks(entry: Any, threads: int, each: int, shared: int = 0) -> tuple[int, int]:
    """Return the blocks of a kernel with ``each`` on every multiprocessor, and how many fit on one at a time.

    ``shared``: the bytes of shared memory that the launch asks for.
    """
    number = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    multiprocessors = int(check(driver.cuDeviceGetAttribute(number, check(driver.cuCtxGetDevice()))))
    fit = int(check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(entry, threads, shared)))
    return each * multiprocessors, fit


def allow_shared(entry: Any, count: int) -> None:
    """Let launches of a kernel ask for so many bytes of shared memory; ``entry`` may be a kernel of a library."""
    most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    device = check(driver.cuCtxGetDevice())
    if driver.cuKernelSetAttribute(most, count, driver.CUkernel(int(entry)), device)[0] != SUCCESS:
        check(driver.cuFuncSetAttribute(entry, most, count))


class Memory:
    """Device memory that is freed with this object."""

    def __init__(self, nbytes: int) -> None:
        self.pointer = int(check(driver.cuMemAlloc(max(1, nbytes))))

    def __del__(self) -> None:
        if driver is not None and hasattr(self, "pointer"):
            driver.cuMemFree(self.pointer)


class Graph:
    """A graph of what ``action`` puts on ``stream``: it is not run, but recorded to be launched any number of times.

    ``owner`` holds the modules and the memory that it refers to, and lives as long; with None the caller ensures that.
    """

    def __init__(self, stream: Any, action: Callable[[Any], None], owner: object = None) -> None:
        self.owner = owner
        check(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        try:
            action(stream)
        except BaseException:
            # Else the stream would go on to record.
            error, *made = driver.cuStreamEndCapture(stream)
            if error == SUCCESS:
                driver.cuGraphDestroy(made[0])
            raise
        graph = check(driver.cuStreamEndCapture(stream))
        try:
            self.ready = check(driver.cuGraphInstantiate(graph, 0))
        finally:
            driver.cuGraphDestroy(graph)

    def launch(self, stream: Any) -> None:
        check(driver.cuGraphLaunch(self.ready, stream))

    def __del__(self) -> None:
        if driver is not None and hasattr(self, "ready"):
            driver.cuGraphExecDestroy(self.ready)
