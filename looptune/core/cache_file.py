"""Cache files: each is complete and undamaged, or treated as missing.

A file is published by renaming, and begins with a digest of the rest: a file that was truncated or changed is ignored.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import select
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

_DIGEST_BYTES = 32
LARGEST = 64 * 2**20
"""Bytes of a file that is read as text, if nothing else is said."""
_SILENT_S = 5.0
"""How long a pipe may have no writer."""


def publish_file(path: Path, data: bytes) -> None:
    """Write ``data`` for ``read_published``, in place of what ``path`` names; OSError where it cannot be written."""
    replace_file(path, hashlib.sha256(data).digest() + data)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file that others see whole or not at all, and its folder; OSError where it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_by(path, lambda file: file.write(data))


def replace_by(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file by ``write`` that others see whole or not at all; OSError where it cannot be written.

    A link stays one, and the file that it names is replaced; a file keeps its permissions. Pipes and devices are
    written into: renaming would put a file in their place.
    """
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        with path.open("wb") as file:
            write(file)
        return
    if mode is not None and not os.access(path, os.W_OK):  # renaming would not ask
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    path = Path(os.path.realpath(path))
    part = path.with_name(f"{path.name[:40]}.{os.getpid()}-{secrets.token_hex(4)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
        if mode is not None:
            os.chmod(part, stat.S_IMODE(mode))
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def read_file(path: Path, most: int = LARGEST) -> bytes:
    """Return the bytes of a file or a pipe.

    Raises OSError if there are more than ``most``, if nothing is written into the pipe, or if it cannot be read.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            waiting = select.poll()
            waiting.register(file, select.POLLIN)
            if not waiting.poll(_SILENT_S * 1e3):
                raise OSError(errno.EAGAIN, "it is a pipe that nothing is written into")
        os.set_blocking(file.fileno(), True)
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    return data


def _mode(path: Path) -> int | None:
    """Return the type and the permissions of the file, or None if there is none."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def replace_text(path: Path, text: str) -> None:
    """Replace a file by a text in UTF-8, see ``replace_file``; undecodable bytes of file names are escaped."""
    replace_file(path, text.encode("utf-8", "backslashreplace"))


def read_published(path: Path) -> bytes | None:
    """Return the bytes that were published there, or None if there is nothing or the checksum differs."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    data = whole[_DIGEST_BYTES:]
    return data if whole[:_DIGEST_BYTES] == hashlib.sha256(data).digest() else None
