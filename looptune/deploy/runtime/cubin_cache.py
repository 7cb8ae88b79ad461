"""Machine code of a module's kernels, stored in files, so that a process compiles no kernel that another one compiled.

    the module's text, the kernel, its types, the GPU's architecture, the compilers' versions ─▶ name of the file

A kernel of a matrix product takes seconds to compile and a millisecond to load.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from looptune.core.cache_file import publish_file, read_published

CUBIN_COMPILERS = ("numba", "numba-cuda", "cuda-core", "nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvcc-cu12",
             "nvidia-nvjitlink-cu12")  # fmt: skip
"""The packages that make machine code, of which those of either version of CUDA are installed."""


def cached_cubin(
    make: Callable[[Any, Sequence[str], str], bytes], kernel: Any, signature: Sequence[str], arch: str
) -> bytes:
    """Return what ``make`` returns for these arguments, from a file if it was made before.

    Where the module has no file, or the folder cannot be written, it is made in every process.
    """
    stamp = module_stamp(kernel.py_func.__module__)
    if stamp is None:
        return make(kernel, signature, arch)
    facts = repr((stamp, kernel.__name__, tuple(signature), arch, compiler_versions()))
    path = cubin_folder() / f"{kernel.__name__}-{hashlib.sha256(facts.encode()).hexdigest()[:32]}.cubin"
    code = read_published(path)
    if code is None:
        code = make(kernel, signature, arch)
        with contextlib.suppress(OSError):
            publish_file(path, code)
    return code


def cubin_folder() -> Path:
    """Return the folder of the files: in the user's folder for caches."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path(os.path.expanduser("~")) / ".cache") / "looptune" / "modules"


@cache
def module_stamp(name: str) -> str | None:
    """Return a digest of the text of the module, or None if it has no file."""
    try:
        return hashlib.sha256(Path(str(sys.modules[name].__file__)).read_bytes()).hexdigest()
    except (OSError, KeyError, AttributeError):
        return None


@cache
def compiler_versions() -> tuple[str, ...]:
    """Return the versions of the compilers that are installed."""
    found = []
    for name in CUBIN_COMPILERS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return tuple(found)
