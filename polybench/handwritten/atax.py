"""tmp = A @ x and y = A^T @ tmp as a good programmer writes them in an hour: what tuning must beat.

Parameters as in ``polybench/atax.c``: nx, ny, A[nx][ny], x[ny], y[ny], tmp[nx].
``cpu`` and ``cuda`` take the element type and return a function that writes y and tmp in place. ``kernels`` lists the
CUDA kernels behind ``cuda``, each as a Python function and the types it is called with, to be compiled without a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda as nc

COLUMNS, ROWS = 128, 64
"""Of A for one block of the second kernel, which gives each thread a column."""


def cpu(dtype: str) -> Callable[..., None]:
    """Each thread takes a slab of rows and a vector of its own for y; a row is used twice while it is in the cache."""
    real = numba.from_dtype(np.dtype(dtype))
    size, vector, nothing = numba.int64, real[::1], np.dtype(dtype).type(0)

    @numba.njit(fastmath={"contract", "reassoc"})
    def both(a_row, x, part):
        total = nothing
        for j in range(x.size):
            total += a_row[j] * x[j]
        for j in range(x.size):
            part[j] += total * a_row[j]
        return total

    @numba.njit(numba.void(size, size, real[:, ::1], vector, vector, vector), parallel=True)
    def atax(nx, ny, a, x, y, tmp):
        slabs = numba.get_num_threads()
        parts = np.zeros((slabs, ny), dtype=a.dtype)
        for slab in numba.prange(slabs):
            for i in range(slab * nx // slabs, (slab + 1) * nx // slabs):
                tmp[i] = both(a[i], x, parts[slab])
        for j in range(ny):
            y[j] = nothing
        for slab in range(slabs):
            for j in range(ny):
                y[j] += parts[slab, j]

    return atax


def cuda(dtype: str) -> Callable[..., None]:
    """The arrays are on the device; the call launches on ``stream`` and does not wait."""
    by_rows, by_columns = rows(dtype), columns(dtype)

    def atax(nx: int, ny: int, a: Any, x: Any, y: Any, tmp: Any, stream: Any = 0) -> None:
        sizes = np.uint32(nx), np.uint32(ny)
        if nx > 0 or ny > 0:
            by_rows[(max(nx, 1) + 7) // 8, (32, 8), stream](*sizes, a, x, y, tmp)
        if nx > 0 and ny > 0:
            blocks = ((ny + COLUMNS - 1) // COLUMNS, (nx + ROWS - 1) // ROWS)
            by_columns[blocks, COLUMNS, stream](*sizes, a, y, tmp)

    return atax


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    size, real = numba.uint32, numba.from_dtype(np.dtype(dtype))
    matrix, vector = real[:, ::1], real[::1]
    return [
        (rows(dtype).py_func, (size, size, matrix, vector, vector, vector)),
        (columns(dtype).py_func, (size, size, matrix, vector, vector)),
    ]


def rows(dtype: str) -> Any:
    """tmp = A @ x and y = 0: a block of 32 x 8 threads multiplies eight rows, each warp 8 x 32 neighbours at a time."""
    element, nothing = numba.from_dtype(np.dtype(dtype)), np.dtype(dtype).type(0)
    u32, zero, one, eight, warp_size = np.uint32, np.uint32(0), np.uint32(1), np.uint32(8), np.uint32(32)
    ahead = np.uint32(7 * 32)

    @nc.jit
    def kernel(nx, ny, a, x, y, tmp):
        part = nc.shared.array((8, 32), element)
        lane, warp = u32(nc.threadIdx.x), u32(nc.threadIdx.y)
        i = u32(u32(nc.blockIdx.x) * eight + warp)
        j = u32(i * warp_size + lane)
        while j < ny:
            y[j] = nothing
            j = u32(j + u32(nc.gridDim.x) * eight * warp_size)
        total, j = nothing, lane if i < nx else ny
        while j + ahead < ny:
            c = zero
            while c < eight:
                total += a[i, j] * x[j]
                j, c = u32(j + warp_size), u32(c + one)
        while j < ny:
            total += a[i, j] * x[j]
            j = u32(j + warp_size)
        part[warp, lane] = total
        nc.syncthreads()
        if lane == zero and i < nx:
            total, c = nothing, zero
            while c < warp_size:
                total += part[warp, c]
                c = u32(c + one)
            tmp[i] = total

    return kernel


def columns(dtype: str) -> Any:
    """y += A^T @ tmp for 128 columns and 64 rows a block, a thread a column: a warp reads 32 neighbours of a row.

    The last rows come first: they were read last before, and are in the second-level cache.
    """
    nothing = np.dtype(dtype).type(0)
    u32, one, width, height = np.uint32, np.uint32(1), np.uint32(COLUMNS), np.uint32(ROWS)

    @nc.jit
    def kernel(nx, ny, a, y, tmp):
        j = u32(u32(nc.blockIdx.x) * width + u32(nc.threadIdx.x))
        i = u32((u32(nc.gridDim.y) - one - u32(nc.blockIdx.y)) * height)
        end = min(u32(i + height), nx)
        if j < ny:
            total = nothing
            while i < end:
                total += a[i, j] * tmp[i]
                i = u32(i + one)
            nc.atomic.add(y, j, total)

    return kernel
