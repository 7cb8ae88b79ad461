"""Machine code of a kernel: linked from PTX without a GPU, cached on disk by its input, and its resources."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cuda.core import Linker, LinkerOptions, ObjectCode

from looptune.backends.base import Resources
from looptune.backends.codegen.kernel import shared_bytes
from looptune.core.cache_file import publish_file, read_published

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel

Code = tuple[bytes, str]
"""A cubin and the linker's log."""


def link(ptx: str, arch: str, registers: int = 0) -> Code:
    """Return the linked code. ``registers``: the limit per thread, or 0 for none."""
    options = LinkerOptions(arch=arch, verbose=True, max_register_count=registers if registers else None)
    linker = Linker(ObjectCode.from_ptx(ptx.encode()), options=options)
    code = linker.link("cubin").code
    return bytes(code), linker.get_info_log()


def load_or_make(cache: Path | None, facts: Sequence[object], make: Callable[[], Code]) -> Code:
    """Return the result of ``make``, from the folder of compiled kernels if one with the same ``facts`` is there.

    If another process is making it, wait for that. None: always make it.
    """
    if cache is None:
        return make()
    path = cache / f"kernel-{hashlib.sha256(repr(facts).encode()).hexdigest()[:32]}.cubin"
    if (before := _published(path)) is not None:
        return before
    with _alone(path):
        if (before := _published(path)) is not None:
            return before
        code, log = make()
        # Where it cannot be written it is made again next time.
        with contextlib.suppress(OSError):
            publish_file(path, log.encode().replace(b"\0", b"") + b"\0" + code)
        return code, log


def _published(path: Path) -> Code | None:
    found = read_published(path)
    if found is None:
        return None
    said, _, code = found.partition(b"\0")
    return code, said.decode()


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Yield when no other process makes the file; at once where there can be no lock.

    The lock of a process that dies is free.
    """
    lock = path.with_suffix(".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("wb")
    except OSError:
        yield
        return
    with file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            # Whoever waits for it has the open file; who comes later finds what was made.
            lock.unlink(missing_ok=True)


def resources(kernel: Kernel, log: str) -> Resources:
    """Return the resources of a kernel that the linker reports."""

    def number(pattern: str) -> int:
        found = re.findall(pattern, log)
        return max((int(n) for n in found), default=0)

    local = max(number(r"(\d+) bytes lmem"), number(r"(\d+) bytes stack frame"))
    threads = kernel.block[0] * kernel.block[1]
    return Resources(kernel.name, number(r"[Uu]sed (\d+) registers"), local, shared_bytes(kernel), threads)
