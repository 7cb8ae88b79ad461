"""Numba's threads on GNU's OpenMP, which wait for each other actively for about 50 us, and then sleep.

libgomp's own limit is some milliseconds. Where other programs use the cores too, a thread then spends these waiting for
one that has no core, in every launch: kernels of 50 us took 12 ms. Fifty microseconds is about what it takes to wake a
thread, so that no wait takes more than twice as long as with the better of the two ways.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from functools import cache

SPINS = "2000"
"""Rounds of about 25 ns in which a thread waits actively."""
CHOSEN = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
"""What a user sets who chooses otherwise; libgomp reads it when it is loaded."""


@cache
def load_openmp_layer() -> None:
    """Load libgomp by Numba's layer with this limit, unless the user chose one; it stays as it is if loaded already."""
    if any(name in os.environ for name in CHOSEN):
        return
    os.environ[CHOSEN[0]] = SPINS
    try:
        with contextlib.suppress(ImportError):  # another layer then runs the threads
            importlib.import_module("numba.np.ufunc.omppool")
    finally:
        del os.environ[CHOSEN[0]]
