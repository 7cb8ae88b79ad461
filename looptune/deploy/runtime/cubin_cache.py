"""Machine code of a module's kernels, stored in files, so that a process compiles no kernel that another one compiled.

    the module's code, the kernel, its types, the GPU's architecture, the compilers' versions ─▶ name of the file

A kernel of a matrix product takes seconds to compile and a millisecond to load.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from types import CodeType
from typing import Any

from looptune.core.cache_file import publish_file, read_published
from looptune.deploy.runtime.module_folder import module_folder

CUBIN_COMPILERS = ("numba", "numba-cuda", "cuda-core", "nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvcc-cu12",
             "nvidia-nvjitlink-cu12")  # fmt: skip
"""The packages that make machine code, of which those of either version of CUDA are installed."""


def cached_cubin(
    make: Callable[[Any, Sequence[str], str], bytes], kernel: Any, signature: Sequence[str], arch: str,
    sizes: tuple[tuple[int, int], ...] = (),
) -> bytes:  # fmt: skip
    """Return what ``make`` returns for these arguments, from a file if it was made before.

    ``sizes``: parameters of the kernel that are constants, with their values.

    Where the folder cannot be written, it is made in every process.
    """
    facts = repr((MODULE_CODE, kernel.__name__, tuple(signature), arch, compiler_versions(), sizes))
    path = module_folder() / f"{kernel.__name__}-{hashlib.sha256(facts.encode()).hexdigest()[:32]}.cubin"
    code = read_published(path)
    if code is None:
        code = make(kernel, signature, arch)
        with contextlib.suppress(OSError):
            publish_file(path, code)
    return code


def code_digest(code: CodeType) -> str:
    """Return a digest of compiled Python: of its instructions, names and constants, and not of their places.

    A module's file says less, for it may have been replaced since the module was imported.
    """
    return hashlib.sha256(repr(_content(code)).encode()).hexdigest()


def _content(part: Any) -> Any:
    """Return a code object, or a constant, as a value whose text is the same in every process."""
    match part:
        case CodeType():
            names = (part.co_name, part.co_names, part.co_varnames, part.co_freevars, part.co_cellvars)
            return (*names, part.co_argcount, part.co_flags, part.co_code, tuple(map(_content, part.co_consts)))
        case tuple():
            return tuple(map(_content, part))
        case frozenset():
            return sorted(map(repr, part))
    return part


MODULE_CODE = code_digest(sys._getframe().f_code)
"""Of the module that contains this text and the kernels."""


@cache
def compiler_versions() -> tuple[str, ...]:
    """Return the versions of the compilers that are installed."""
    found = []
    for name in CUBIN_COMPILERS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return tuple(found)
