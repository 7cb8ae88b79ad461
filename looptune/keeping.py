"""Files that hold what can be made again: whole, or as if they were not there.

A file is published by renaming, and opens with a digest of the rest: one that was cut short or changed is no file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

_DIGEST_BYTES = 32


def publish_file(path: Path, data: bytes) -> None:
    """Write ``data`` for ``published``, in place of what ``path`` names; OSError where it cannot be written."""
    replace_file(path, hashlib.sha256(data).digest() + data)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that others see whole or not at all; OSError where it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name[:40]}.{os.getpid()}-{secrets.token_hex(4)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def replace_text(path: Path, text: str) -> None:
    """The same with UTF-8; what names of files have that is none is spelt out."""
    replace_file(path, text.encode("utf-8", "backslashreplace"))


def published(path: Path) -> bytes | None:
    """What was published there; None where there is nothing, or no longer what was."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    data = whole[_DIGEST_BYTES:]
    return data if whole[:_DIGEST_BYTES] == hashlib.sha256(data).digest() else None
