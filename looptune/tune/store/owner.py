"""Identify the process that wrote a row, so that neither a reused process number nor a reboot is mistaken for it.

token = "boot id, process number, start tick"
"""

from __future__ import annotations

import os
from pathlib import Path


def process_token() -> str:
    """Return the identity of this process."""
    return _token(os.getpid())


def is_alive(token: str) -> bool:
    """Return whether the process is still there; where the system cannot tell, it is not."""
    match token.split():
        case [_, pid, started] if pid.isdecimal() and started != "?":
            return _token(int(pid)) == token
    return False


def _token(pid: int) -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # Field 2 is the program's name in parentheses and may hold blanks; fields 3 (state) and 22 (start) follow it.
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return f"? {pid} ?"
    return f"{boot} {pid} {rest[18]}" if state != "Z" else f"{boot} {pid} ?"
