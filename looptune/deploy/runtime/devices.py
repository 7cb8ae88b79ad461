"""NVIDIA GPUs through the driver: contexts, streams, memory, and machine code for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from cuda.bindings import driver
from cuda.core import Device as CudaDevice
from cuda.core import Linker, LinkerOptions, ObjectCode
from numba import cuda, types

from looptune.backends.cuda.driver import SUCCESS, Memory, check
from looptune.backends.numba_cuda.noalias import noalias_readonly
from looptune.deploy.runtime.lookup import Device

UNTIMED = 2
"""CU_EVENT_DISABLE_TIMING."""


def cubin(kernel: Any, signature: Sequence[str], arch: str) -> bytes:
    """Compile a kernel to machine code for ``arch``, with the settings of the sweep; this needs no GPU."""
    source = ObjectCode.from_ptx(ptx(kernel, signature, arch).encode())
    most = kernel.targetoptions.get("max_registers")
    return bytes(Linker(source, options=LinkerOptions(arch=arch, max_register_count=most)).link("cubin").code)


def ptx(kernel: Any, signature: Sequence[str], arch: str) -> str:
    """Return the PTX that Numba generates."""
    major, minor = divmod(int(arch.removeprefix("sm_")), 10)
    args = tuple(numba_type(name) for name in signature)
    with noalias_readonly():
        told = {"launch_bounds": kernel.targetoptions.get("launch_bounds")}
        text, _ = cuda.compile_ptx(kernel.py_func, args, cc=(major, minor), fastmath=False, opt=True, **told)
    return str(text)


def numba_type(name: str) -> Any:
    """Return the Numba type of a name.

    A name is ``float32[::1]``, a flat array, with ``readonly`` after it if it is not written, or ``uint32``.
    """
    item, bracket, rest = name.partition("[")
    kind = types.boolean if item == "bool" else getattr(types, item)
    return types.Array(kind, 1, "C", readonly=rest.endswith("readonly")) if bracket else kind


def entry_of(code: bytes, name: str) -> str:
    """Return the mangled name of the kernel; Numba's mangling contains the function's name and its length."""
    found = re.search(rb"\.text\.(_ZN[\w]*?" + f"{len(name)}{name}".encode() + rb"[\w]*)", code)
    assert found is not None, f"no kernel {name} in its cubin"
    return found[1].decode()


def handle(stream: Any) -> int:
    """Return the driver's handle of a stream.

    An int, or an object of cuda-core, cuda-bindings, CuPy, torch or Numba.
    """
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr", "handle"):
        found = getattr(stream, name, None)
        if found is not None:
            return int(getattr(found, "value", found) or 0)
    if not hasattr(stream, "__int__"):
        raise TypeError(f"stream must be a CUDA stream or its handle, got {type(stream).__name__}")
    return int(stream)


def current() -> int:
    """Return the current context; if there is none, the primary context of the first GPU becomes current."""
    status, context = driver.cuCtxGetCurrent()
    found = int(context) if status == SUCCESS else 0
    if found:
        return found
    CudaDevice(0).set_current()
    return int(check(driver.cuCtxGetCurrent()))


def device_of() -> Device:
    """Return the device of the current context."""
    device = check(driver.cuCtxGetDevice())
    attribute = driver.CUdevice_attribute

    def fact(what: Any) -> int:
        return int(check(driver.cuDeviceGetAttribute(what, device)))

    major = fact(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
    minor = fact(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    cores = fact(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    name = check(driver.cuDeviceGetName(128, device)).split(b"\0")[0].decode()
    return Device(name, cores, f"sm_{major}{minor}")


def device_of_pointer(pointer: int) -> int:
    """Return the number of the device on which an address is."""
    what = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(check(driver.cuPointerGetAttribute(what, pointer)))


def order(first: int, then: int) -> None:
    """Make work that is queued on stream ``then`` from now on wait for what is queued on ``first`` by now."""
    event = check(driver.cuEventCreate(UNTIMED))
    try:
        check(driver.cuEventRecord(event, driver.CUstream(first)))
        check(driver.cuStreamWaitEvent(driver.CUstream(then), event, 0))
    finally:
        # Freed by the driver once it is past.
        check(driver.cuEventDestroy(event))


def capturing(stream: int) -> bool:
    """Return whether work on this stream is captured into a graph.

    Not so of the default stream while another captures, where the driver gives an error instead.
    """
    status, found = driver.cuStreamIsCapturing(driver.CUstream(stream))
    return status == SUCCESS and int(found) == 1


@contextmanager
def allowed_in_capture() -> Iterator[None]:
    """Let this thread allocate memory and load kernels, which CUDA otherwise forbids while a stream is captured.

    Neither becomes a part of the graph; both are there when it is launched.
    """
    relaxed = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = check(driver.cuThreadExchangeStreamCaptureMode(relaxed))
    try:
        yield
    finally:
        check(driver.cuThreadExchangeStreamCaptureMode(before))


@cache
def context_device(context: int) -> int:
    """Return the value of ``device_of_pointer`` for memory of the current context."""
    memory = Memory(1)  # it is freed with its last name, and what is freed has no place
    return device_of_pointer(memory.pointer)


def fetched(pointer: int, count: int, dtype: str) -> np.ndarray:
    """Return elements at an address, on the host. Pending writes to them must have ended."""
    out = np.empty(count, dtype)
    if out.nbytes:
        check(driver.cuMemcpyDtoH(out.ctypes.data, pointer, out.nbytes))
    return out
