"""y = alpha * A @ x + beta * B @ x and tmp = A @ x as a good programmer writes them in an hour: what tuning must beat.

Parameters as in ``polybench/gesummv.c``: n, alpha, beta, A[n][n], B[n][n], x[n], y[n], tmp[n].
``cpu`` and ``cuda`` take the element type and return a function that writes y and tmp in place. ``kernels`` lists the
CUDA kernels behind ``cuda``, each as a Python function and the types it is called with, to be compiled without a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda as nc


def cpu(dtype: str) -> Callable[..., None]:
    """Threads take rows; a row of A and of B are multiplied side by side, in vector registers."""
    real = numba.from_dtype(np.dtype(dtype))
    matrix, vector, nothing = real[:, ::1], real[::1], np.dtype(dtype).type(0)

    @numba.njit(fastmath={"contract", "reassoc"})
    def products(a_row, b_row, x):
        first, second = nothing, nothing
        for j in range(x.size):
            first += a_row[j] * x[j]
            second += b_row[j] * x[j]
        return first, second

    @numba.njit(numba.void(numba.int64, real, real, matrix, matrix, vector, vector, vector), parallel=True)
    def gesummv(n, alpha, beta, a, b, x, y, tmp):
        for i in numba.prange(n):
            first, second = products(a[i], b[i], x)
            tmp[i] = first
            y[i] = alpha * first + beta * second

    return gesummv


def cuda(dtype: str) -> Callable[..., None]:
    """The arrays are on the device; the call launches on ``stream`` and does not wait."""
    real, kernel = np.dtype(dtype).type, rows(dtype)

    def gesummv(n: int, alpha: float, beta: float, a: Any, b: Any, x: Any, y: Any, tmp: Any, stream: Any = 0) -> None:
        if n > 0:
            kernel[(n + 7) // 8, (32, 8), stream](np.uint32(n), real(alpha), real(beta), a, b, x, y, tmp)

    return gesummv


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    real = numba.from_dtype(np.dtype(dtype))
    matrix, vector = real[:, ::1], real[::1]
    return [(rows(dtype).py_func, (numba.uint32, real, real, matrix, matrix, vector, vector, vector))]


def rows(dtype: str) -> Any:
    """A block of 32 x 8 threads multiplies eight rows of A and of B, each warp 8 x 32 neighbours at a time."""
    element, nothing = numba.from_dtype(np.dtype(dtype)), np.dtype(dtype).type(0)
    u32, zero, one, eight, warp_size = np.uint32, np.uint32(0), np.uint32(1), np.uint32(8), np.uint32(32)
    ahead = np.uint32(7 * 32)

    @nc.jit
    def kernel(n, alpha, beta, a, b, x, y, tmp):
        in_a = nc.shared.array((8, 32), element)
        in_b = nc.shared.array((8, 32), element)
        lane, warp = u32(nc.threadIdx.x), u32(nc.threadIdx.y)
        i = u32(u32(nc.blockIdx.x) * eight + warp)
        j = lane if i < n else n
        first, second = nothing, nothing
        while j + ahead < n:
            c = zero
            while c < eight:
                first += a[i, j] * x[j]
                second += b[i, j] * x[j]
                j, c = u32(j + warp_size), u32(c + one)
        while j < n:
            first += a[i, j] * x[j]
            second += b[i, j] * x[j]
            j = u32(j + warp_size)
        in_a[warp, lane], in_b[warp, lane] = first, second
        nc.syncthreads()
        if lane == zero and i < n:
            first, second, c = nothing, nothing, zero
            while c < warp_size:
                first += in_a[warp, c]
                second += in_b[warp, c]
                c = u32(c + one)
            tmp[i] = first
            y[i] = alpha * first + beta * second

    return kernel
