"""Recursion limits: trees of a thousand nested terms are accepted, deeper ones give a message."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress

FRAMES = 8_000
"""Of Python functions in each other: a term of a sum takes up to five."""
_STACK_BYTES = 100 * 2**20
"""Of the main thread, which grows into it; what functions of C between them take."""
TOO_DEEP = "expressions or loops are nested too deeply here: split the longest expression into several statements"


def raise_recursion_limit() -> None:
    """Let functions call each other so deeply; nothing changes where they may already."""
    if sys.getrecursionlimit() >= FRAMES:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft != resource.RLIM_INFINITY and soft < _STACK_BYTES:
        most = _STACK_BYTES if hard == resource.RLIM_INFINITY else min(_STACK_BYTES, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_STACK, (max(soft, most), hard))
    sys.setrecursionlimit(FRAMES)
