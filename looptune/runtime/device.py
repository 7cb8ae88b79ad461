"""The device a sweep runs on: its facts, its memory, and how long one run takes on it.

A ``Run`` is what is timed (a version, the default, a hand-written kernel): called with a stream, it updates its arrays
in place. ``Device.sampler`` makes of it a function that returns microseconds.
"""

from __future__ import annotations

import math
import os
import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from looptune.runtime.cpu_name import cpu_name
from looptune.runtime.disturbance import Watch
from looptune.runtime.energy import EnergyCounter, rapl

Run = Callable[[Any], None]
Restore = Mapping[str, tuple[Any, Any]]
"""For each array that is written: where it is, and a copy of its original contents."""


DEVICES: Mapping[str, str] = MappingProxyType({
    "numba-cuda": "numba-cuda", "cuda-c": "numba-cuda", "numba-cpu": "numba-cpu", "opencl": "opencl",
})  # fmt: skip
"""The device that each target runs on, by the target it is listed as: two compilers share a GPU."""


def on_gpu(target: str) -> bool:
    """Tell whether the target runs on a GPU through the CUDA driver; targets of other packages do not."""
    return DEVICES.get(target) == "numba-cuda"


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """The facts of a device.

    ``target``: one of those in DEVICES; ``arch`` is "sm_90" or the machine's architecture; ``cores`` are
    multiprocessors on a GPU. ``cache_bytes``: the last-level cache, a GPU's L2 or all L3 of a CPU; 0 if it is not
    known.
    """

    name: str
    target: str
    arch: str
    cores: int
    memory_bytes: int
    cache_bytes: int
    driver: str

    @property
    def model(self) -> tuple[str, str, int]:
        """Return the name, architecture and number of cores; devices that are equal in these share their times."""
        return self.name, self.arch, self.cores

    @property
    def driver_name(self) -> str:
        """Return the driver's version; of CUDA as everyone writes it, which the driver counts as 13000.

        >>> DeviceInfo("NVIDIA H200", "numba-cuda", "sm_90", 132, 0, 0, "13010").driver_name
        'CUDA 13.1'
        """
        if not on_gpu(self.target) or not self.driver.isdecimal():
            return self.driver
        major, minor = divmod(int(self.driver), 1000)
        return f"CUDA {major}.{minor // 10}"

    @property
    def slug(self) -> str:
        """Return the name in a form that is valid as a folder name."""
        return slug(self.name)


def slug(name: str) -> str:
    """Return the name of a device as a folder name.

    >>> slug("NVIDIA H200")
    'nvidia-h200'
    """
    kept = "".join(ch.lower() if ch.isalnum() else "-" for ch in name)
    return "-".join(part for part in kept.split("-") if part)


SHORT_US = 20_000.0
"""A run below this warms the caches for a second one, which counts; a longer one hardly notices."""
BATCH_US, BATCH = 200.0, 25
"""One sample of a run that is much shorter is the median of so many microseconds of runs, or of so many runs."""
ASLEEP_S, AWAKE_S = 2e-3, 12e-3
"""Threads that had nothing to do for the first are asleep; after the second each has a core of its own again."""
LINE = 64
"""Bytes of a cache line."""


class Device(ABC):
    """A device that runs and times kernels; ``stream`` is the argument of a Run on it.

    ``cold``: a sample begins with other data in the caches. ``asynchronous``: runs are queued, and timed by the
    device's own clock.
    """

    facts: DeviceInfo
    stream: Any = None
    cold: bool = False
    asynchronous: ClassVar[bool] = False

    @abstractmethod
    def place(self, array: np.ndarray) -> Any:
        """Return a copy of ``array`` in the device's memory."""

    @abstractmethod
    def fetch(self, array: Any) -> np.ndarray:
        """Return a copy in the host's memory, made after all queued work has ended."""

    @abstractmethod
    def copy(self, source: Any, target: Any) -> None:
        """Copy the contents of one placed array into another of the same size."""

    @abstractmethod
    def inside(self, array: Any, start: int, shape: tuple[int, ...]) -> Any:
        """Return the part of a one-dimensional placed array that begins at element ``start``, without a copy."""

    @abstractmethod
    def flat(self, array: Any) -> Any:
        """Return a placed array as a one-dimensional array, without a copy."""

    @abstractmethod
    def external_kernel(self, call: Callable[..., None], args: Sequence[Any]) -> Run:
        """Return a hand-written kernel as a Run."""

    @abstractmethod
    def time_once(self, run: Run) -> float:
        """Run and wait; microseconds, host time included."""

    def sampler(self, run: Run, restore: Restore) -> Callable[[], float]:
        """Return a function that runs once more and returns its microseconds.

        ``restore``: the arrays that are reset before it.

        A short run is sampled right after one that does not count, or after several where the device was asleep. Of
        very short ones a batch is run, each on restored arrays, and the median of the batch is the sample: neither the
        clock's own time nor a thread that lost its core for some milliseconds decides.
        """

        def restored() -> float:
            for target, source in restore.values():
                self.copy(source, target)
            return self.time_once(run)

        def sample() -> float:
            end = time.monotonic() + (AWAKE_S if self.needs_warm_up(run) else 0.0)
            took_us = restored()
            while took_us < SHORT_US and time.monotonic() < end:
                took_us = restored()
            return self._batch(restored, took_us) if took_us < SHORT_US else took_us

        return sample

    def _batch(self, restored: Callable[[], float], warm_us: float) -> float:
        """Return the median of as many runs as fit into BATCH_US, BATCH at most and one at least."""
        times = [restored()]
        fitting = BATCH_US / max(min(warm_us, times[0]), BATCH_US / BATCH)
        times += [restored() for _ in range(1, int(fitting))]
        return median(times)

    def needs_warm_up(self, run: Run) -> bool:
        """Return whether one run is too short to wake the device."""
        return False

    def watch(self) -> Callable[[], str]:
        """Begin to watch the machine; the function returned says what has disturbed it since then, "" for nothing."""
        return Watch().disturbance

    def energy_counter(self) -> EnergyCounter | None:
        """Return the counter of the energy that the device uses, or None where there is none that can be read."""
        return None

    def repeater(self, run: Run | None, restore: Restore) -> Callable[[int], None]:
        """Return a function that runs so many times, the arrays being restored before each, and waits for the end.

        Without ``run`` the arrays are restored and nothing else happens. Only a device with an energy counter needs
        it, and an asynchronous one has its own.
        """
        assert not self.asynchronous, "runs are waited for"

        def repeat(times: int) -> None:
            for _ in range(times):
                for target, source in restore.values():
                    self.copy(source, target)
                if run is not None:
                    run(self.stream)

        return repeat


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


class Cpu(Device):
    """The cores of the host.

    If the system wakes two threads on one core, it moves one of them milliseconds later: until then a kernel of 40 us
    takes 4 ms.
    """

    def __init__(self) -> None:
        self._ended = -math.inf
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.facts = DeviceInfo(
            cpu_name(), "numba-cpu", platform.machine(), cores(), pages, _cpu_cache_bytes(), platform.release()
        )

    def place(self, array: np.ndarray) -> np.ndarray:
        """Return a copy of the array that begins at a cache line.

        NumPy's large arrays begin 16 bytes after one, so that every second vector of 32 bytes would be a part of two
        lines.
        """
        memory = np.empty(array.nbytes + LINE, np.uint8)
        first = -memory.ctypes.data % LINE
        placed = memory[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
        np.copyto(placed, array)
        return placed

    def fetch(self, array: np.ndarray) -> np.ndarray:
        return np.array(array, copy=True)

    def copy(self, source: np.ndarray, target: np.ndarray) -> None:
        np.copyto(target, source)

    def inside(self, array: np.ndarray, start: int, shape: tuple[int, ...]) -> np.ndarray:
        return array[start : start + math.prod(shape)].reshape(shape)

    def flat(self, array: np.ndarray) -> np.ndarray:
        return array.reshape(-1)

    def external_kernel(self, call: Callable[..., None], args: Sequence[Any]) -> Run:
        return _Foreign(call, args)

    def time_once(self, run: Run) -> float:
        start = time.perf_counter_ns()
        run(None)
        took_us = (time.perf_counter_ns() - start) / 1e3
        self._ended = time.monotonic()
        return took_us

    def needs_warm_up(self, run: Run) -> bool:
        """Tell whether the kernel may have threads of its own that were asleep while others ran."""
        return isinstance(run, _Foreign) or time.monotonic() - self._ended > ASLEEP_S

    def energy_counter(self) -> EnergyCounter | None:
        return rapl()


@dataclass(frozen=True, slots=True)
class _Foreign:
    call: Callable[..., None]
    args: Sequence[Any]

    def __call__(self, stream: Any) -> None:
        self.call(*self.args)


def _cpu_cache_bytes() -> int:
    """Return the largest caches of the system, each counted once however many cores share it."""
    found: dict[tuple[int, str], int] = {}
    for cache in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cache/index[0-9]*"):
        try:
            level, shared = int((cache / "level").read_text()), (cache / "shared_cpu_list").read_text().strip()
            found[level, shared] = 1024 * int((cache / "size").read_text().strip().removesuffix("K"))
        except (OSError, ValueError):
            continue
    last = max((level for level, _ in found), default=0)
    return sum(size for (level, _), size in found.items() if level == last)
