"""A CUDA driver that is not there: memory is the host's, launches are noted with the parameters they were made with."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import dataclass, field
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from cuda.bindings import driver as real

OK = real.CUresult.CUDA_SUCCESS
WRONG = real.CUresult.CUDA_ERROR_INVALID_VALUE
ADVICE = real.CUdevice_attribute


@dataclass
class Launched:
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    stream: int
    pointers: int


@dataclass
class Driver:
    """``words``: how many 64-bit words of each launch's parameters are kept. Devices by context: 1 is GPU 0."""

    name: str = "NVIDIA H200"
    cores: int = 132
    capability: tuple[int, int] = (9, 0)
    context: int = 1
    log: list[Any] = field(default_factory=list)
    held: dict[int, Any] = field(default_factory=dict)
    own: threading.local = field(default_factory=threading.local)
    quick: bool = False
    streams_capture: int = 0
    mode: Any = real.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL

    def __getattr__(self, name: str) -> Any:
        """What a test does not look at: noted, and it worked."""
        if not name.startswith("cu"):
            return getattr(real, name)
        return lambda *given: (self.log.append((name, *given)), (OK, len(self.log)))[1]

    def CUstream(self, handle: int) -> int:
        return int(handle)

    def CUfunction(self, handle: int) -> int:
        return handle

    def cuCtxGetCurrent(self) -> tuple[Any, int]:
        return OK, self.context

    def cuCtxGetDevice(self) -> tuple[Any, int]:
        return OK, self.context - 1

    def cuDeviceGetName(self, length: int, device: int) -> tuple[Any, bytes]:
        return OK, self.name.encode() + b"\0"

    def cuDeviceGetAttribute(self, what: Any, device: int) -> tuple[Any, int]:
        major, minor = self.capability
        return OK, {
            ADVICE.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: major,
            ADVICE.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: minor,
            ADVICE.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: self.cores,
        }[what]

    def cuPointerGetAttribute(self, what: Any, pointer: int) -> tuple[Any, int]:
        return OK, 0

    def cuStreamIsCapturing(self, stream: int) -> tuple[Any, int]:
        return OK, self.streams_capture

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> tuple[Any, Any]:
        before, self.mode = self.mode, mode
        return OK, before

    def cuMemAlloc(self, nbytes: int) -> tuple[Any, int]:
        if nbytes == 0:
            return WRONG, 0
        if self.streams_capture and self.mode != real.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED:
            return real.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 0
        made = ctypes.create_string_buffer(nbytes + 16)
        address = -(-ctypes.addressof(made) // 16) * 16
        self.held[address] = made
        return OK, address

    def cuMemcpyHtoDAsync(self, target: int, source: int, nbytes: int, stream: int) -> tuple[Any]:
        ctypes.memmove(target, source, nbytes)
        return (OK,)

    def cuMemcpyDtoH(self, target: int, source: int, nbytes: int) -> tuple[Any]:
        ctypes.memmove(target, source, nbytes)
        return (OK,)

    def cuLaunchKernel(self, kernel: Any, *rest: Any) -> tuple[Any]:
        if min(*rest[:6]) < 1:
            return (WRONG,)
        if not self.quick:
            self.log.append(Launched(kernel, rest[:3], rest[3:6], rest[7], rest[8]))
            self.own.last = self.log[-1]
        return (OK,)

    @property
    def launched(self) -> list[Launched]:
        return [entry for entry in self.log if isinstance(entry, Launched)]

    def calls(self, name: str) -> list[Any]:
        return [entry[1:] for entry in self.log if isinstance(entry, tuple) and entry[0] == name]


def words(launched: Launched, count: int) -> list[int]:
    """The first parameters, each read where it is."""
    table = (ctypes.c_void_p * count).from_address(launched.pointers)
    return [ctypes.c_int64.from_address(address).value for address in table]


class Code:
    """A cubin whose kernels are called what they are."""

    @classmethod
    def from_cubin(cls, code: bytes) -> Code:
        return cls()

    def get_kernel(self, name: str) -> Any:
        return SimpleNamespace(handle=hash(name))


def install(module: ModuleType, kind: type[Driver] = Driver, **facts: Any) -> Driver:
    """``module``, as ``looptune build`` makes it, on a made-up GPU for good; nothing is compiled."""
    driver = kind(**facts)
    vars(module).update(driver=driver, ObjectCode=Code, cubin=_named)
    return driver


def _named(kernel: Any, signature: Any, arch: str) -> bytes:
    """What is looked for in machine code."""
    return f".text._ZN1m{len(kernel.__name__)}{kernel.__name__}".encode()


class DeviceArray:
    """What has the CUDA Array Interface, and nothing else; each at an address of its own where none is given."""

    addresses = count(1 << 30, 1 << 20)

    def __init__(self, shape: tuple[int, ...], dtype: str = "float32", pointer: int | None = None, **more: Any) -> None:
        pointer = next(self.addresses) if pointer is None else pointer
        read_only = more.pop("read_only", False)
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": np.dtype(dtype).str, "data": (pointer, read_only), "version": 3, **more,
        }  # fmt: skip
