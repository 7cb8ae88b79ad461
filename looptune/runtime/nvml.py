"""What the driver says of an NVIDIA GPU while it runs: clocks, power, energy, and why its clocks were lowered.

NVML, by the package ``nvidia-ml-py`` (the extra ``cuda``). Without the package, or where the driver does not count
something, it is None.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from looptune.runtime.energy import EnergyCounter

try:
    import pynvml
except ImportError:  # measuring times does without it
    pynvml = None

SLOWED = 0.02
"""The clocks were lowered in more than this part of the time."""

_REASONS = MappingProxyType({0x8: "hardware slowdown", 0x20: "heat", 0x40: "heat", 0x80: "the power supply"})
"""Reasons for lowered clocks, by their bits; that a kernel draws all the power that is allowed is no disturbance."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as NVML knows it."""

    handle: Any

    def lowered_s(self) -> float | None:
        """Return the seconds since the driver was loaded in which heat lowered the clocks."""
        found = _asked(lambda: pynvml.nvmlDeviceGetViolationStatus(self.handle, pynvml.NVML_PERF_POLICY_THERMAL))
        return None if found is None else found.violationTime / 1e9

    def lowered_now(self) -> str:
        """Return why the clocks are lowered at this moment, "" where they are not."""
        bits = _asked(lambda: int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(self.handle)))
        return ", ".join(dict.fromkeys(why for bit, why in _REASONS.items() if (bits or 0) & bit))

    def clock_mhz(self) -> int | None:
        """Return the clock of the multiprocessors in MHz."""
        found: int | None = _asked(lambda: int(pynvml.nvmlDeviceGetClockInfo(self.handle, pynvml.NVML_CLOCK_SM)))
        return found

    def energy_j(self) -> float | None:
        """Return the energy that the GPU used since the driver was loaded, in joules."""
        found: float | None = _asked(lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(self.handle) / 1e3)
        return found

    def energy_counter(self) -> EnergyCounter | None:
        """Return the energy counter of the GPU with its clock, or None where the driver counts no energy."""
        if self.energy_j() is None:
            return None

        def read() -> tuple[float, ...] | None:
            joules = self.energy_j()
            return None if joules is None else (joules,)

        return EnergyCounter(read, mhz=self.clock_mhz)


def gpu(uuid: str) -> Gpu | None:
    """Return the GPU with this identifier (``GPU-…``), or None where NVML does not know it."""
    if pynvml is None:
        return None
    handle = _asked(lambda: pynvml.nvmlInit() or pynvml.nvmlDeviceGetHandleByUUID(uuid))
    return None if handle is None else Gpu(handle)


def _asked(what: Callable[[], Any]) -> Any:
    try:
        return what()
    except pynvml.NVMLError:
        return None


@dataclass(frozen=True, slots=True)
class GpuWatch:
    """What NVML counted when a measurement on a GPU began."""

    gpu: Gpu
    start: float = field(default_factory=time.monotonic)
    lowered_s: float | None = None

    @classmethod
    def begin(cls, gpu: Gpu) -> GpuWatch:
        return cls(gpu, lowered_s=gpu.lowered_s())

    def disturbance(self) -> str:
        """Return what lowered the clocks since then, for a person; "" where nothing did."""
        now, clock = self.gpu.lowered_s(), self.gpu.clock_mhz()
        at = "" if clock is None else f", now {clock} MHz"
        if now is not None and self.lowered_s is not None:
            share = (now - self.lowered_s) / max(time.monotonic() - self.start, 1e-9)
            if share > SLOWED:
                return f"heat lowered the clocks in {min(share, 1.0):.0%} of the time{at}"
        why = self.gpu.lowered_now()
        return f"the clocks are lowered because of {why}{at}" if why else ""
