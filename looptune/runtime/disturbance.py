"""Whether other programs disturbed a measurement: waits for a core, and core time taken from a virtual machine.

Linux counts both for the whole machine; on a system that does not count them, nothing is reported.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

WAITING = 0.1
"""Tasks waited for a core in more than this part of the time: the cores were shared."""
STOLEN = 0.02
"""More than this part of the cores' time was stolen."""


def waited_for_cores_s() -> float | None:
    """Return the seconds since the system started in which a task was ready to run and had no core.

    Linux's pressure stall information. None where there is none.
    """
    try:
        first = Path("/proc/pressure/cpu").read_text().splitlines()[0]
        return int(first.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


def stolen_s() -> float | None:
    """Return the seconds of all cores since the system started that the host of a virtual machine gave to others."""
    try:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()
        return int(fields[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


@dataclass(frozen=True, slots=True)
class Watch:
    """The machine's counters when a measurement began."""

    start: float = field(default_factory=time.monotonic)
    waited_s: float | None = field(default_factory=waited_for_cores_s)
    stolen_s: float | None = field(default_factory=stolen_s)

    def disturbance(self) -> str:
        """Return what disturbed the measurement, for a person; "" where nothing did."""
        passed = max(time.monotonic() - self.start, 1e-9)
        cores = os.cpu_count() or 1
        waiting = _share(waited_for_cores_s(), self.waited_s, passed)
        stolen = _share(stolen_s(), self.stolen_s, passed * cores)
        said = [f"tasks waited for a core in {min(waiting, 1.0):.0%} of the time"] if waiting > WAITING else []
        said += [f"{min(stolen, 1.0):.0%} of the cores' time was stolen"] if stolen > STOLEN else []
        return f"{', '.join(said)}, load {os.getloadavg()[0]:.1f} on {cores} cores" if said else ""


def _share(now: float | None, before: float | None, of: float) -> float:
    return 0.0 if now is None or before is None else (now - before) / of
