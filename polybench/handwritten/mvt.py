"""x1 += A @ y1 and x2 += A^T @ y2 as a good programmer writes them in an hour or two: what tuning must beat.

Parameters as in ``polybench/mvt.c``: n, A[n][n], x1[n], x2[n], y1[n], y2[n]. Memory decides the time, so A is read once
for both products.
``cpu`` and ``cuda`` take the element type and return a function that updates x1 and x2 in place. ``kernels`` lists the
CUDA kernels behind ``cuda``, each as a Python function and the types it is called with, to be compiled without a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda as nc

COLUMNS, ROWS = 256, 64
"""Of A for one block of 32 x 8 threads."""


def cpu(dtype: str) -> Callable[..., None]:
    """Each thread takes a slab of rows and a vector of its own for x2; the threads' vectors are added at the end."""
    real = numba.from_dtype(np.dtype(dtype))
    vector, nothing = real[::1], np.dtype(dtype).type(0)

    @numba.njit(fastmath={"contract", "reassoc"})
    def both(a_row, y1, factor, part):
        total = nothing
        for j in range(y1.size):
            total += a_row[j] * y1[j]
            part[j] += factor * a_row[j]
        return total

    @numba.njit(numba.void(numba.int64, real[:, ::1], vector, vector, vector, vector), parallel=True)
    def mvt(n, a, x1, x2, y1, y2):
        slabs = numba.get_num_threads()
        parts = np.zeros((slabs, n), dtype=a.dtype)
        for slab in numba.prange(slabs):
            for i in range(slab * n // slabs, (slab + 1) * n // slabs):
                x1[i] += both(a[i], y1, y2[i], parts[slab])
        for slab in range(slabs):
            for j in range(n):
                x2[j] += parts[slab, j]

    return mvt


def cuda(dtype: str) -> Callable[..., None]:
    """The arrays are on the device; the call launches on ``stream`` and does not wait."""
    multiply = tiled(dtype)

    def mvt(n: int, a: Any, x1: Any, x2: Any, y1: Any, y2: Any, stream: Any = 0) -> None:
        if n > 0:
            blocks = ((n + COLUMNS - 1) // COLUMNS, (n + ROWS - 1) // ROWS)
            multiply[blocks, (32, 8), stream](np.uint32(n), a, x1, x2, y1, y2)

    return mvt


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    real = numba.from_dtype(np.dtype(dtype))
    vector = real[::1]
    return [(tiled(dtype).py_func, (numba.uint32, real[:, ::1], vector, vector, vector, vector))]


def tiled(dtype: str) -> Any:
    """A block adds the products of 64 rows and 256 columns of A to x1 and x2; a warp reads 8 x 32 neighbours of a row.

    A thread keeps the sums of its eight columns in registers. What it has of a row's sum goes to shared memory, to be
    added when the block is through: there is no wait between rows.
    Where columns overhang, the last one is read instead, so that no load waits for a comparison.
    """
    element, nothing = numba.from_dtype(np.dtype(dtype)), np.dtype(dtype).type(0)
    u32, one, eight, warp_size = np.uint32, np.uint32(1), np.uint32(8), np.uint32(32)
    columns, rows = np.uint32(COLUMNS), np.uint32(ROWS)

    @nc.jit
    def kernel(n, a, x1, x2, y1, y2):
        # One column more than a warp has lanes: the threads that add up rows then use different banks.
        in_row = nc.shared.array((64, 33), element)
        in_column = nc.shared.array((8, 256), element)
        j = nc.local.array(8, u32)
        weight, total, value = nc.local.array(8, element), nc.local.array(8, element), nc.local.array(8, element)
        lane, warp = u32(nc.threadIdx.x), u32(nc.threadIdx.y)
        left, top = u32(u32(nc.blockIdx.x) * columns), u32(u32(nc.blockIdx.y) * rows)
        c = u32(0)
        while c < eight:
            place = u32(left + lane + c * warp_size)
            j[c] = min(place, u32(n - one))
            weight[c] = y1[j[c]] if place < n else nothing
            total[c] = nothing
            c = u32(c + one)
        k = warp
        while k < rows and top + k < n:
            factor, part = y2[top + k], nothing
            c = u32(0)
            while c < eight:
                value[c] = a[top + k, j[c]]
                c = u32(c + one)
            c = u32(0)
            while c < eight:
                total[c] += factor * value[c]
                part += weight[c] * value[c] if left + lane + c * warp_size < n else nothing
                c = u32(c + one)
            in_row[k, lane] = part
            k = u32(k + eight)
        c = u32(0)
        while c < eight:
            in_column[warp, lane + c * warp_size] = total[c]
            c = u32(c + one)
        nc.syncthreads()
        k = u32(warp * warp_size + lane)
        if left + k < n:
            part, c = nothing, u32(0)
            while c < eight:
                part += in_column[c, k]
                c = u32(c + one)
            nc.atomic.add(x2, left + k, part)
        if k < rows and top + k < n:
            part, c = nothing, u32(0)
            while c < warp_size:
                part += in_row[k, c]
                c = u32(c + one)
            nc.atomic.add(x1, top + k, part)

    return kernel
