"""An NVML in place of the package pynvml."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


class Nvml:
    """An NVML whose GPU has these counters."""

    NVML_PERF_POLICY_THERMAL, NVML_CLOCK_SM = 1, 1
    NVMLError = RuntimeError

    def __init__(self) -> None:
        self.lowered_ns, self.reasons, self.mhz, self.millijoules = 5_000_000_000, 0x4, 1980, 7000
        self.counts_energy = True

    def nvmlInit(self) -> None:
        """Nothing is to be done."""

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid != "GPU-1":
            raise self.NVMLError("not found")
        return "handle"

    def nvmlDeviceGetViolationStatus(self, handle: str, policy: int) -> Any:
        return SimpleNamespace(violationTime=self.lowered_ns)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return self.reasons

    def nvmlDeviceGetClockInfo(self, handle: str, clock: int) -> int:
        return self.mhz

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        if not self.counts_energy:
            raise self.NVMLError("not supported")
        return self.millijoules
