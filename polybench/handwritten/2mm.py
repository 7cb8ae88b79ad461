"""C += A @ B, then E += C @ D as a good programmer writes it in an hour: what a tuned kernel is compared with.

Parameters as in ``polybench/2mm.c``: ni, nj, nk, nl, A[ni][nk], B[nk][nj], C[ni][nj], D[nj][nl], E[ni][nl].
``cpu`` and ``cuda`` take the element type and return a function that updates C and E in place. ``kernels`` lists the
CUDA kernels behind ``cuda``, each as a Python function and the types it is called with.
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
            for left in range(0, out.shape[1], width):
                right = min(left + width, out.shape[1])
                for front in range(0, b.shape[0], depth):
                    back = min(front + depth, b.shape[0])
                    for i in range(top, bottom):
                        accumulate(out[i, left:right], a[i, front:back], b[front:back], left, right)

    @numba.njit(numba.void(size, size, size, size, matrix, matrix, matrix, matrix, matrix))
    def mm2(ni, nj, nk, nl, a, b, c, d, e):
        product(c, a, b)
        product(e, c, d)

    return mm2


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

    def mm2(ni: int, nj: int, nk: int, nl: int, a: Any, b: Any, c: Any, d: Any, e: Any) -> None:
        c += a @ b
        e += c @ d

    return mm2


def cuda(dtype: str) -> Callable[..., None]:
    """The arrays are on the device; the call launches on ``stream`` and does not wait."""
    kernel = product(dtype)

    def run(rows: int, cols: int, depth: int, out: Any, a: Any, b: Any, stream: Any) -> None:
        if rows > 0 and cols > 0:
            blocks = ((cols + 63) // 64, (rows + 127) // 128)
            kernel[blocks, (16, 16), stream](np.uint32(rows), np.uint32(cols), np.uint32(depth), out, a, b)

    def mm2(ni: int, nj: int, nk: int, nl: int, a: Any, b: Any, c: Any, d: Any, e: Any, stream: Any = 0) -> None:
        run(ni, nj, nk, c, a, b, stream)
        run(ni, nl, nj, e, c, d, stream)

    return mm2


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    size, matrix = numba.uint32, numba.from_dtype(np.dtype(dtype))[:, ::1]
    return [(product(dtype).py_func, (size, size, size, matrix, matrix, matrix))]


def product(dtype: str) -> Any:
    """out += a @ b: a block of 16 x 16 threads computes 128 x 64 elements, 8 x 4 a thread, from tiles 16 deep.

    A thread's elements are 16 apart, so that a half-warp reads 16 neighbours of b's tile and one element of a's: twelve
    reads of shared memory, none in conflict, for 32 multiplications.
    """
    real, element = np.dtype(dtype).type, numba.from_dtype(np.dtype(dtype))
    u32, one, deep = np.uint32, np.uint32(1), np.uint32(16)
    wide, high, tall = np.uint32(64), np.uint32(8), np.uint32(4)
    nothing = real(0)

    @nc.jit
    def kernel(rows, cols, depth, out, a, b):
        a_tile = nc.shared.array((128, 16), element)
        b_tile = nc.shared.array((16, 64), element)
        total = nc.local.array((8, 4), element)
        x, y = u32(nc.threadIdx.x), u32(nc.threadIdx.y)
        top, left = u32(u32(nc.blockIdx.y) * u32(128)), u32(u32(nc.blockIdx.x) * wide)
        b_row, b_col = u32(y // tall), u32((y % tall) * deep + x)
        r = u32(0)
        while r < high:
            c = u32(0)
            while c < tall:
                total[r, c] = nothing
                c = u32(c + one)
            r = u32(r + one)
        front = u32(0)
        while front < depth:
            r = u32(0)
            while r < high:
                i = u32(r * deep + y)
                a_tile[i, x] = a[top + i, front + x] if top + i < rows and front + x < depth else nothing
                r = u32(r + one)
            r = u32(0)
            while r < tall:
                k = u32(r * tall + b_row)
                b_tile[k, b_col] = b[front + k, left + b_col] if front + k < depth and left + b_col < cols else nothing
                r = u32(r + one)
            nc.syncthreads()
            k = u32(0)
            while k < deep:
                r = u32(0)
                while r < high:
                    c = u32(0)
                    while c < tall:
                        total[r, c] += a_tile[r * deep + y, k] * b_tile[k, c * deep + x]
                        c = u32(c + one)
                    r = u32(r + one)
                k = u32(k + one)
            nc.syncthreads()
            front = u32(front + deep)
        r = u32(0)
        while r < high:
            c = u32(0)
            while c < tall:
                i, j = u32(top + r * deep + y), u32(left + c * deep + x)
                if i < rows and j < cols:
                    out[i, j] += total[r, c]
                c = u32(c + one)
            r = u32(r + one)

    return kernel
