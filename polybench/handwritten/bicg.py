"""s = A^T @ r and q = A @ p as a good programmer writes them in an hour or two: what tuning must beat.

Parameters as in ``polybench/bicg.c``: nx, ny, A[nx][ny], p[ny], q[nx], r[nx], s[ny]. Memory decides the time, so A is
read once for both products.
``cpu`` and ``cuda`` take the element type and return a function that writes q and s in place. ``kernels`` lists the
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
    """Each thread takes a slab of rows and a vector of its own for s; the threads' vectors are added at the end."""
    real = numba.from_dtype(np.dtype(dtype))
    size, vector, nothing = numba.int64, real[::1], np.dtype(dtype).type(0)

    @numba.njit(fastmath={"contract", "reassoc"})
    def both(a_row, p, factor, part):
        total = nothing
        for j in range(p.size):
            total += a_row[j] * p[j]
            part[j] += factor * a_row[j]
        return total

    @numba.njit(numba.void(size, size, real[:, ::1], vector, vector, vector, vector), parallel=True)
    def bicg(nx, ny, a, p, q, r, s):
        slabs = numba.get_num_threads()
        parts = np.zeros((slabs, ny), dtype=a.dtype)
        for slab in numba.prange(slabs):
            for i in range(slab * nx // slabs, (slab + 1) * nx // slabs):
                q[i] = both(a[i], p, r[i], parts[slab])
        for j in range(ny):
            s[j] = nothing
        for slab in range(slabs):
            for j in range(ny):
                s[j] += parts[slab, j]

    return bicg


def cuda(dtype: str) -> Callable[..., None]:
    """The arrays are on the device; the call launches on ``stream`` and does not wait."""
    clear, multiply = cleared(dtype), tiled(dtype)

    def bicg(nx: int, ny: int, a: Any, p: Any, q: Any, r: Any, s: Any, stream: Any = 0) -> None:
        sizes = np.uint32(nx), np.uint32(ny)
        if nx > 0 or ny > 0:
            clear[(max(nx, ny) + 255) // 256, 256, stream](*sizes, q, s)
        if nx > 0 and ny > 0:
            blocks = ((ny + COLUMNS - 1) // COLUMNS, (nx + ROWS - 1) // ROWS)
            multiply[blocks, (32, 8), stream](*sizes, a, p, q, r, s)

    return bicg


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    size, real = numba.uint32, numba.from_dtype(np.dtype(dtype))
    vector = real[::1]
    return [
        (cleared(dtype).py_func, (size, size, vector, vector)),
        (tiled(dtype).py_func, (size, size, real[:, ::1], vector, vector, vector, vector)),
    ]


def cleared(dtype: str) -> Any:
    """q = 0 and s = 0, which the blocks add to."""
    u32, nothing = np.uint32, np.dtype(dtype).type(0)

    @nc.jit
    def kernel(nx, ny, q, s):
        k = u32(u32(nc.blockIdx.x) * u32(nc.blockDim.x) + u32(nc.threadIdx.x))
        if k < nx:
            q[k] = nothing
        if k < ny:
            s[k] = nothing

    return kernel


def tiled(dtype: str) -> Any:
    """A block adds the products of 64 rows and 256 columns of A to q and to s; a warp reads 8 x 32 neighbours of a row.

    A thread keeps the sums of its eight columns in registers. What it has of a row's sum goes to shared memory, to be
    added when the block is through: there is no wait between rows.
    Where columns overhang, the last one is read instead, so that no load waits for a comparison.
    """
    element, nothing = numba.from_dtype(np.dtype(dtype)), np.dtype(dtype).type(0)
    u32, one, eight, warp_size = np.uint32, np.uint32(1), np.uint32(8), np.uint32(32)
    columns, rows = np.uint32(COLUMNS), np.uint32(ROWS)

    @nc.jit
    def kernel(nx, ny, a, p, q, r, s):
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
            j[c] = min(place, u32(ny - one))
            weight[c] = p[j[c]] if place < ny else nothing
            total[c] = nothing
            c = u32(c + one)
        k = warp
        while k < rows and top + k < nx:
            factor, part = r[top + k], nothing
            c = u32(0)
            while c < eight:
                value[c] = a[top + k, j[c]]
                c = u32(c + one)
            c = u32(0)
            while c < eight:
                total[c] += factor * value[c]
                part += weight[c] * value[c] if left + lane + c * warp_size < ny else nothing
                c = u32(c + one)
            in_row[k, lane] = part
            k = u32(k + eight)
        c = u32(0)
        while c < eight:
            in_column[warp, lane + c * warp_size] = total[c]
            c = u32(c + one)
        nc.syncthreads()
        k = u32(warp * warp_size + lane)
        if left + k < ny:
            part, c = nothing, u32(0)
            while c < eight:
                part += in_column[c, k]
                c = u32(c + one)
            nc.atomic.add(s, left + k, part)
        if k < rows and top + k < nx:
            part, c = nothing, u32(0)
            while c < warp_size:
                part += in_row[k, c]
                c = u32(c + one)
            nc.atomic.add(q, top + k, part)

    return kernel
