"""C = beta * C + alpha * A @ A.T as a good programmer writes it in an hour: what a tuned kernel is compared with.

Parameters as in ``polybench/syrk.c``: n, m, alpha, beta, C[n][n], A[n][m]. A @ A.T is symmetric: half of it is computed
and added twice. ``cpu`` and ``cuda`` take the element type and return a function that updates C in place. ``kernels``
lists the CUDA kernels behind ``cuda``, each as a Python function and the types it is called with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda as nc


def cpu(dtype: str) -> Callable[..., None]:
    """Threads take blocks of C below the diagonal, with the mirrored block: the rows of A they need fit the cache."""
    rows, nothing = 32, np.dtype(dtype).type(0)
    real = numba.from_dtype(np.dtype(dtype))
    size, matrix = numba.int64, real[:, ::1]

    @numba.njit(fastmath={"contract", "reassoc"})
    def four(a, b0, b1, b2, b3):
        t0, t1, t2, t3 = nothing, nothing, nothing, nothing
        for k in range(a.size):
            t0 += a[k] * b0[k]
            t1 += a[k] * b1[k]
            t2 += a[k] * b2[k]
            t3 += a[k] * b3[k]
        return t0, t1, t2, t3

    @numba.njit(numba.void(size, size, real, real, matrix, matrix), parallel=True)
    def syrk(n, m, alpha, beta, c, a):
        blocks = (n + rows - 1) // rows
        for pair in numba.prange(blocks * (blocks + 1) // 2):
            down = int((math.sqrt(8.0 * pair + 1) - 1) / 2)
            across = pair - down * (down + 1) // 2
            bottom, right = min(down * rows + rows, n), min(across * rows + rows, n)
            for i in range(down * rows, bottom):
                end = min(right, i + 1)
                for j in range(across * rows, end, 4):
                    # Beyond the end the last row again, so that there are always four.
                    last = end - 1
                    sums = four(a[i], a[j], a[min(j + 1, last)], a[min(j + 2, last)], a[min(j + 3, last)])
                    for t in range(min(4, end - j)):
                        c[i, j + t] = beta * c[i, j + t] + alpha * sums[t]
                        if j + t < i:
                            c[j + t, i] = beta * c[j + t, i] + alpha * sums[t]

    return syrk


def library_cpu(dtype: str) -> Callable[..., None]:
    """The BLAS that NumPy was built with, which knows a product with its own transpose."""
    real = np.dtype(dtype).type

    def syrk(n: int, m: int, alpha: float, beta: float, c: Any, a: Any) -> None:
        c *= real(beta)
        c += real(alpha) * (a @ a.T)

    return syrk


def cuda(dtype: str) -> Callable[..., None]:
    """The arrays are on the device; the call launches on ``stream`` and does not wait."""
    real, kernel = np.dtype(dtype).type, triangle(dtype)

    def syrk(n: int, m: int, alpha: float, beta: float, c: Any, a: Any, stream: Any = 0) -> None:
        if n > 0:
            blocks = (n + 63) // 64
            kernel[(blocks, blocks), (16, 16), stream](np.uint32(n), np.uint32(m), real(alpha), real(beta), c, a)

    return syrk


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    size, real = numba.uint32, numba.from_dtype(np.dtype(dtype))
    return [(triangle(dtype).py_func, (size, size, real, real, real[:, ::1], real[:, ::1]))]


def triangle(dtype: str) -> Any:
    """A block of 16 x 16 threads computes 64 x 64 elements on or below the diagonal, 4 x 4 a thread, and mirrors them.

    The rows of A that meet in a block are read 16 columns at a time, those of C's columns transposed on the way into
    shared memory. The mirrored block passes through shared memory as well: its writes are then rows of C too.
    """
    real, element = np.dtype(dtype).type, numba.from_dtype(np.dtype(dtype))
    u32, one, four, deep, wide = np.uint32, np.uint32(1), np.uint32(4), np.uint32(16), np.uint32(64)
    nothing = real(0)

    @nc.jit
    def kernel(n, m, alpha, beta, c, a):
        rows = nc.shared.array((64, 16), element)
        # A column more than 64: sixteen writes of a transposed row fall into as many banks.
        cols = nc.shared.array((16, 65), element)
        total = nc.local.array((4, 4), element)
        x, y = u32(nc.threadIdx.x), u32(nc.threadIdx.y)
        top, left = u32(u32(nc.blockIdx.y) * wide), u32(u32(nc.blockIdx.x) * wide)
        if left > top:
            return
        r = u32(0)
        while r < four:
            s = u32(0)
            while s < four:
                total[r, s] = nothing
                s = u32(s + one)
            r = u32(r + one)
        front = u32(0)
        while front < m:
            inside = front + x < m
            r = u32(0)
            while r < four:
                i = u32(r * deep + y)
                rows[i, x] = a[top + i, front + x] if inside and top + i < n else nothing
                cols[x, i] = a[left + i, front + x] if inside and left + i < n else nothing
                r = u32(r + one)
            nc.syncthreads()
            k = u32(0)
            while k < deep:
                r = u32(0)
                while r < four:
                    s = u32(0)
                    while s < four:
                        total[r, s] += rows[r * deep + y, k] * cols[k, s * deep + x]
                        s = u32(s + one)
                    r = u32(r + one)
                k = u32(k + one)
            nc.syncthreads()
            front = u32(front + deep)
        r = u32(0)
        while r < four:
            i = u32(top + r * deep + y)
            s = u32(0)
            while s < four:
                j = u32(left + s * deep + x)
                if i < n and j < n:
                    c[i, j] = beta * c[i, j] + alpha * total[r, s]
                cols[y, s * deep + x] = total[r, s]
                s = u32(s + one)
            nc.syncthreads()
            if left < top:
                i = u32(top + r * deep + x)
                s = u32(0)
                while s < four:
                    j = u32(left + s * deep + y)
                    if i < n and j < n:
                        c[j, i] = beta * c[j, i] + alpha * cols[x, s * deep + y]
                    s = u32(s + one)
            nc.syncthreads()
            r = u32(r + one)

    return kernel
