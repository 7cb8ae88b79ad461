"""A process that was forked has none of the threads of its parent: kernels run on one core there, and do not wait."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from looptune.backends.numba_cpu import parallel_for
from looptune.backends.numba_cpu.parallel_for import inherits_threads, usable_threads
from tests.helpers.built_modules import AXPY, written

SCRIPT = """
import multiprocessing, os, sys, warnings
import numpy as np
import looptune
warnings.simplefilter("ignore")
from axpy_tuned import axpy
N = 300000
x = np.ones(N, np.float32)
kernels = [looptune.compile(sys.argv[1], target="numba-cpu"), axpy]

def total(number):
    y = np.zeros(N, np.float32)
    kernels[number](N, 2.0, x, y)
    return float(y.sum())

print(total(0), total(1))
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(*pool.map(total, (0, 1)))
print(total(0), total(1))
"""


@pytest.mark.wide
def test_workers_call_the_kernels_of_their_parent(tmp_path: Path) -> None:
    """With GCC's OpenMP, Numba ends a process that shares work among threads it has not; a pool then waits forever."""
    written(tmp_path, AXPY, None, "numba-cpu", default=True)
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py", "source.c"], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert done.stdout.splitlines() == ["600000.0 600000.0"] * 3, done.stderr


def test_threads_are_lost_where_numba_had_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the process that started them, nor in one that was forked before."""
    inherits_threads.cache_clear()
    assert not inherits_threads(os.getpid())
    monkeypatch.setattr(parallel_for, "IMPORTED_IN", os.getppid())
    inherits_threads.cache_clear()
    monkeypatch.setattr(parallel_for.numba_threads, "_is_initialized", True)
    assert usable_threads() == 1
    inherits_threads.cache_clear()
    monkeypatch.setattr(parallel_for.numba_threads, "_is_initialized", False)
    assert not inherits_threads(os.getpid())
    inherits_threads.cache_clear()
