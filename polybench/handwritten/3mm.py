"""E = A @ B, F = C @ D, G = E @ F as a good programmer writes it in an hour: what a tuned kernel is compared with.

Parameters as in ``polybench/3mm.c``: ni, nj, nk, nl, nm, A[ni][nk], B[nk][nj], C[nj][nm], D[nm][nl], E[ni][nj],
F[nj][nl], G[ni][nl]. ``cpu`` and ``cuda`` take the element type and return a function that writes E, F and G in place.
``kernels`` lists the CUDA kernels behind ``cuda``, each as a Python function and the types it is called with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda as nc


def cpu(dtype: str) -> Callable[..., None]:
    """Threads take blocks of rows; a panel of the second factor that stays in the cache serves a whole block."""
    rows, depth, width = 32, 64, 1024
    real = numba.from_dtype(np.dtype(dtype))
    size, matrix = numba.int64, real[:, ::1]
    accumulate = numba.njit(fastmath={"contract"})(_accumulate)

    @numba.njit(numba.void(matrix, matrix, matrix), parallel=True)
    def product(out, a, b):
        for block in numba.prange((out.shape[0] + rows - 1) // rows):
            top, bottom = block * rows, min(block * rows + rows, out.shape[0])
            out[top:bottom] = 0
            for left in range(0, out.shape[1], width):
                right = min(left + width, out.shape[1])
                for front in range(0, b.shape[0], depth):
                    back = min(front + depth, b.shape[0])
                    for i in range(top, bottom):
                        accumulate(out[i, left:right], a[i, front:back], b[front:back], left, right)

    @numba.njit(numba.void(size, size, size, size, size, matrix, matrix, matrix, matrix, matrix, matrix, matrix))
    def mm3(ni, nj, nk, nl, nm, a, b, c, d, e, f, g):
        product(e, a, b)
        product(f, c, d)
        product(g, e, f)

    return mm3


def _accumulate(row: Any, factors: Any, b: Any, left: int, right: int) -> None:
    """row += factors @ b[:, left:right], four rows of b at a time: the row is loaded once for four products."""
    whole = factors.size // 4 * 4
    for k in range(0, whole, 4):
        f0, f1, f2, f3 = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        b0, b1 = b[k, left:right], b[k + 1, left:right]
        b2, b3 = b[k + 2, left:right], b[k + 3, left:right]
        for j in range(row.size):
            row[j] += f0 * b0[j] + f1 * b1[j] + f2 * b2[j] + f3 * b3[j]
    for k in range(whole, factors.size):
        f0, b0 = factors[k], b[k, left:right]
        for j in range(row.size):
            row[j] += f0 * b0[j]


def library_cpu(dtype: str) -> Callable[..., None]:
    """The BLAS that NumPy was built with."""

    def mm3(
        ni: int, nj: int, nk: int, nl: int, nm: int, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any
    ) -> None:
        np.matmul(a, b, out=e)
        np.matmul(c, d, out=f)
        np.matmul(e, f, out=g)

    return mm3


def cuda(dtype: str) -> Callable[..., None]:
    """The arrays are on the device; the call launches on ``stream`` and does not wait."""
    u32, kernel = np.uint32, products(dtype)

    def mm3(
        ni: int,
        nj: int,
        nk: int,
        nl: int,
        nm: int,
        a: Any,
        b: Any,
        c: Any,
        d: Any,
        e: Any,
        f: Any,
        g: Any,
        stream: Any = 0,
    ) -> None:
        first = u32(ni), u32(nj), u32(nk), a, b, e
        second = u32(nj), u32(nl), u32(nm), c, d, f
        third = u32(ni), u32(nl), u32(nj), e, f, g
        rows, cols = max(ni, nj), max(nj, nl)
        if rows > 0 and cols > 0:
            kernel[((cols + 31) // 32, (rows + 31) // 32, 2), (32, 8), stream](*first, *second)
        if ni > 0 and nl > 0:
            kernel[((nl + 31) // 32, (ni + 31) // 32, 1), (32, 8), stream](*third, *third)

    return mm3


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    size, matrix = numba.uint32, numba.from_dtype(np.dtype(dtype))[:, ::1]
    one = (size, size, size, matrix, matrix, matrix)
    return [(products(dtype).py_func, (*one, *one))]


def products(dtype: str) -> Any:
    """One product for each z of the grid, rows x cols and as deep as depth says: E and F do not wait for each other.

    Matrices of 512 are 16 x 16 tiles, hardly two for each multiprocessor: small tiles, two products at a time.
    A block of 32 x 8 threads computes 32 x 32 elements, four rows a thread, from tiles in shared memory.
    """
    real, element = np.dtype(dtype).type, numba.from_dtype(np.dtype(dtype))
    u32, one, four, step, tile = np.uint32, np.uint32(1), np.uint32(4), np.uint32(8), np.uint32(32)
    nothing = real(0)

    @nc.jit
    def kernel(rows0, cols0, depth0, a0, b0, out0, rows1, cols1, depth1, a1, b1, out1):
        a_tile = nc.shared.array((32, 32), element)
        b_tile = nc.shared.array((32, 32), element)
        total = nc.local.array(4, element)
        first = nc.blockIdx.z == 0
        rows, cols, depth = (rows0, cols0, depth0) if first else (rows1, cols1, depth1)
        a, b, out = (a0, b0, out0) if first else (a1, b1, out1)
        x, y = u32(nc.threadIdx.x), u32(nc.threadIdx.y)
        top, j = u32(u32(nc.blockIdx.y) * tile), u32(u32(nc.blockIdx.x) * tile + x)
        if top >= rows or j - x >= cols:
            return
        r = u32(0)
        while r < four:
            total[r] = nothing
            r = u32(r + one)
        front = u32(0)
        while front < depth:
            r = y
            while r < tile:
                a_tile[r, x] = a[top + r, front + x] if top + r < rows and front + x < depth else nothing
                b_tile[r, x] = b[front + r, j] if front + r < depth and j < cols else nothing
                r = u32(r + step)
            nc.syncthreads()
            k = u32(0)
            while k < tile:
                r = u32(0)
                while r < four:
                    total[r] += a_tile[y + r * step, k] * b_tile[k, x]
                    r = u32(r + one)
                k = u32(k + one)
            nc.syncthreads()
            front = u32(front + tile)
        r = u32(0)
        while r < four:
            i = top + y + r * step
            if i < rows and j < cols:
                out[i, j] = total[r]
            r = u32(r + one)

    return kernel
