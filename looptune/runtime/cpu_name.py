"""The name of the processor. ``looptune build`` copies this file into its modules, so that the names are equal."""

from __future__ import annotations

import platform
from pathlib import Path


def cpu_name() -> str:
    """Return the name of the processor."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip().replace("(R)", "").replace("(TM)", "")
    return platform.processor() if platform.processor() else platform.machine()
