"""The one ``prange`` of the CPU target: chunks of a kernel's outer axis, run on all cores.

    share(kernel, lo, step, trips, cores, work, uneven, args)
        kernel(first, last, *args) for chunks of lo, lo + step, ...

What one core does in the time in which several are woken and waited for is left to one: a launch inside of a loop of
the host may have a few iterations. Where later iterations do more or less than earlier ones, as in a triangle, a core
has as many chunks of the first half as of the second, those that mirror them:

    cores 2     0 0 0 0 1 1 1 1        uneven     0 0 1 1 1 1 0 0

It takes the kernel as a function pointer, so it is compiled once for a list of argument types and stored in the cache,
not compiled again with every version: a version then builds in a third of a second instead of in more than one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from numba import boolean, float64, get_num_threads, int64, prange, types, void
from numba.np.ufunc import parallel as numba_threads

from looptune.backends.numba_cpu.code_cache import kept
from looptune.backends.numba_cpu.openmp_layer import load_openmp_layer

CHUNKS_PER_CORE = 4
"""A core has neighbouring ones, and in every launch the same: it finds in its caches what it, or gcc's loops, left."""
HALF = CHUNKS_PER_CORE // 2

LEAST_WORK = 32768.0
"""Assignments that cores share: one core makes them in 3 to 30 us, and to wake the others takes 5 to 20 us."""


IMPORTED_IN = os.getpid()
"""The process that has this module, or forked the one that has it."""


@cache
def inherits_threads(process: int) -> bool:
    """Return whether Numba had started its threads in the process that forked this one, where they are not.

    It has to be asked before Numba is: with OpenMP of GCC, Numba ends a process that would wait for them.
    """
    return process != IMPORTED_IN and bool(getattr(numba_threads, "_is_initialized", True))


def usable_threads() -> int:
    """Return the number of threads that share the work, 1 in a process that has lost them by a fork."""
    return 1 if inherits_threads(os.getpid()) else int(get_num_threads())


def share_types(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the types of the parameters of ``sharer(args)``."""
    kernel = types.FunctionType(void(int64, int64, *args))
    return kernel, int64, int64, int64, int64, float64, boolean, types.BaseTuple.from_types(args)


@cache
def sharer(args: tuple[Any, ...], least_work: float = LEAST_WORK) -> Callable[..., None]:
    """Return ``share`` for kernels of the signature ``void(int64, int64, *args)``; ``args`` are Numba types.

    ``work`` is about the number of assignments of the launch, which one core makes where it is below ``least_work``;
    ``uneven``: it differs between the iterations. With one of the ``cores`` no thread is asked for.
    """
    load_openmp_layer()

    # It is called by compiled code alone: Numba's functions for callers in Python and C are left out.
    @kept(void(*share_types(args)), parallel=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    def share(kernel, lo, step, trips, cores, work, uneven, args):  # type: ignore[no-untyped-def]
        if work < least_work or cores == 1:
            kernel(lo, lo + step * trips, *args)
            return
        chunks = min(max(trips, 0), CHUNKS_PER_CORE * cores)
        mirrored = uneven and chunks == CHUNKS_PER_CORE * cores
        for chunk in prange(chunks):
            number = int64(chunk)
            if mirrored:
                core, own = number // CHUNKS_PER_CORE, number % CHUNKS_PER_CORE
                number = core * HALF + own % HALF
                if own >= HALF:
                    number = chunks - 1 - number
            first = lo + step * (number * trips // chunks)
            last = lo + step * ((number + 1) * trips // chunks)
            kernel(first, last, *args)

    made: Callable[..., None] = share
    return made
