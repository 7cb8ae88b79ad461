"""The one ``prange`` of the CPU target: chunks of a kernel's outer axis, run on all cores.

    share(kernel, lo, step, trips, cores, args)    kernel(first, last, *args) for chunks of lo, lo + step, ...

It takes the kernel as a function pointer, so it is compiled once for a list of argument types and stored in the cache,
not compiled again with every version: a version then builds in a third of a second instead of in more than one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import int64, prange, types, void

from looptune.backends.numba_cpu.code_cache import kept

CHUNKS_PER_CORE = 4
"""A core has neighbouring ones, and in every launch the same: it finds in its caches what it, or gcc's loops, left."""


def share_types(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the types of the parameters of ``sharer(args)``."""
    kernel = types.FunctionType(void(int64, int64, *args))
    return kernel, int64, int64, int64, int64, types.BaseTuple.from_types(args)


@cache
def sharer(args: tuple[Any, ...]) -> Callable[..., None]:
    """Return ``share`` for kernels of the signature ``void(int64, int64, *args)``; ``args`` are Numba types."""

    # It is called by compiled code alone: Numba's functions for callers in Python and C are left out.
    @kept(void(*share_types(args)), parallel=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    def share(kernel, lo, step, trips, cores, args):  # type: ignore[no-untyped-def]
        chunks = min(max(trips, 0), CHUNKS_PER_CORE * cores)
        for chunk in prange(chunks):
            first = lo + step * (int64(chunk) * trips // chunks)
            last = lo + step * ((int64(chunk) + 1) * trips // chunks)
            kernel(first, last, *args)

    made: Callable[..., None] = share
    return made
