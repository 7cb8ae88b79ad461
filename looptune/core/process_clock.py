"""How long this process has been running, by the clock of its user."""

from __future__ import annotations

import os
import time
from pathlib import Path

_IMPORTED = time.monotonic()


def seconds_running() -> float:
    """Return the seconds since the process was started, with what it imported first.

    Where the system does not say when that was, the seconds since this module was imported.
    """
    try:
        # Field 22 of proc(5), in ticks since the system started; the name in field 2 may contain blanks.
        started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return time.monotonic() - _IMPORTED
