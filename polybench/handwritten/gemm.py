"""C = alpha * A @ B + beta * C as a good programmer writes it in an hour: what a tuned kernel is compared with.

Parameters as in ``polybench/gemm.c``: ni, nj, nk, alpha, beta, C[ni][nj], A[ni][nk], B[nk][nj].
``cpu`` and ``cuda`` take the element type and return a function that updates C in place. ``kernels`` lists the CUDA
kernels behind ``cuda``, each as a Python function and the types it is called with, to be compiled without a GPU.
``library_cpu`` and ``library_cuda`` are the BLAS of NumPy and cuBLAS, where it is installed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda as nc


def cpu(dtype: str) -> Callable[..., None]:
    """Threads take blocks of rows; a panel of B that stays in the second-level cache serves a whole block."""
    rows, depth, cols = 32, 64, 1024
    real = numba.from_dtype(np.dtype(dtype))
    size, matrix = numba.int64, real[:, ::1]
    accumulate = numba.njit(fastmath={"contract"})(_accumulate)

    @numba.njit(numba.void(size, size, size, real, real, matrix, matrix, matrix), parallel=True)
    def gemm(ni, nj, nk, alpha, beta, c, a, b):
        for block in numba.prange((ni + rows - 1) // rows):
            top, bottom = block * rows, min(block * rows + rows, ni)
            for i in range(top, bottom):
                for j in range(nj):
                    c[i, j] *= beta
            for left in range(0, nj, cols):
                right = min(left + cols, nj)
                for front in range(0, nk, depth):
                    back = min(front + depth, nk)
                    for i in range(top, bottom):
                        accumulate(c[i, left:right], alpha, a[i, front:back], b[front:back], left, right)

    return gemm


def _accumulate(c_row: Any, alpha: Any, a_row: Any, b: Any, left: int, right: int) -> None:
    """c_row += alpha * a_row @ b[:, left:right], four rows of b at a time: C is loaded once for four products."""
    whole = a_row.size // 4 * 4
    for k in range(0, whole, 4):
        a0, a1, a2, a3 = alpha * a_row[k], alpha * a_row[k + 1], alpha * a_row[k + 2], alpha * a_row[k + 3]
        b0, b1 = b[k, left:right], b[k + 1, left:right]
        b2, b3 = b[k + 2, left:right], b[k + 3, left:right]
        for j in range(c_row.size):
            c_row[j] += a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j]
    for k in range(whole, a_row.size):
        a0, b0 = alpha * a_row[k], b[k, left:right]
        for j in range(c_row.size):
            c_row[j] += a0 * b0[j]


def library_cpu(dtype: str, turned: tuple[bool, bool] = (False, False)) -> Callable[..., None]:
    """The BLAS that NumPy was built with. ``turned``: whether A and B are given transposed."""

    def gemm(ni: int, nj: int, nk: int, alpha: float, beta: float, c: Any, a: Any, b: Any) -> None:
        c *= beta
        c += alpha * ((a.T if turned[0] else a) @ (b.T if turned[1] else b))

    return gemm


def library_cuda(dtype: str, turned: tuple[bool, bool] = (False, False)) -> Callable[..., None] | None:
    """cuBLAS in full precision, without TF32; None where it is not installed. ``turned``: whether A and B are given
    transposed.

    It takes matrices by columns, and ours by rows are such matrices transposed: C' = alpha * B' @ A' + beta * C'. What
    lies by rows has as many columns as one of its rows has elements.
    """
    blas = cublas()
    if blas is None:
        return None
    real = ctypes.c_float if dtype == "float32" else ctypes.c_double
    multiply = blas.cublasSgemm_v2 if dtype == "float32" else blas.cublasDgemm_v2
    turn_a, turn_b = turned
    handle = ctypes.c_void_p()
    _done(blas.cublasCreate_v2(ctypes.byref(handle)))

    def gemm(ni: int, nj: int, nk: int, alpha: float, beta: float, c: Any, a: Any, b: Any, stream: Any = 0) -> None:
        if ni == 0 or nj == 0:
            return
        c_at, a_at, b_at = (ctypes.c_void_p(x.__cuda_array_interface__["data"][0]) for x in (c, a, b))
        factor, kept = ctypes.byref(real(alpha)), ctypes.byref(real(beta))
        _done(blas.cublasSetStream_v2(handle, ctypes.c_void_p(int(stream))))
        b_width, a_width = max(nk if turn_b else nj, 1), max(ni if turn_a else nk, 1)
        _done(
            multiply(handle, int(turn_b), int(turn_a), nj, ni, nk, factor, b_at, b_width, a_at, a_width, kept, c_at, nj)
        )

    return gemm


def cublas() -> ctypes.CDLL | None:
    """From wherever NVIDIA's own finder of libraries knows it to be: a wheel, conda, the CUDA toolkit."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        path = load_nvidia_dynamic_lib("cublas").abs_path
        return None if path is None else ctypes.CDLL(path)
    except (ImportError, RuntimeError, OSError):
        return None


def _done(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"cuBLAS answered with status {status}")


def cuda(dtype: str) -> Callable[..., None]:
    """The arrays are on the device; the call launches on ``stream`` and does not wait."""
    real, kernel = np.dtype(dtype).type, tiled(dtype)

    def gemm(ni: int, nj: int, nk: int, alpha: float, beta: float, c: Any, a: Any, b: Any, stream: Any = 0) -> None:
        if ni > 0 and nj > 0:
            blocks = ((nj + 31) // 32, (ni + 31) // 32)
            sizes = np.uint32(ni), np.uint32(nj), np.uint32(nk)
            kernel[blocks, (32, 8), stream](*sizes, real(alpha), real(beta), c, a, b)

    return gemm


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    size, real = numba.uint32, numba.from_dtype(np.dtype(dtype))
    matrix = real[:, ::1]
    return [(tiled(dtype).py_func, (size, size, size, real, real, matrix, matrix, matrix))]


def tiled(dtype: str) -> Any:
    """A block of 32 x 8 threads computes 32 x 32 elements of C, four rows a thread, from tiles in shared memory.

    A warp reads 32 neighbours of a row of A and of B; one element of B's tile then serves four products.
    Unsigned indices need no test for negative values, and ``while`` leaves the unrolling to NVVM.
    """
    real, element = np.dtype(dtype).type, numba.from_dtype(np.dtype(dtype))
    u32, one, four, step, tile = np.uint32, np.uint32(1), np.uint32(4), np.uint32(8), np.uint32(32)
    nothing = real(0)

    @nc.jit
    def kernel(ni, nj, nk, alpha, beta, c, a, b):
        a_tile = nc.shared.array((32, 32), element)
        b_tile = nc.shared.array((32, 32), element)
        total = nc.local.array(4, element)
        x, y = u32(nc.threadIdx.x), u32(nc.threadIdx.y)
        top, j = u32(u32(nc.blockIdx.y) * tile), u32(u32(nc.blockIdx.x) * tile + x)
        r = u32(0)
        while r < four:
            total[r] = nothing
            r = u32(r + one)
        front = u32(0)
        while front < nk:
            r = y
            while r < tile:
                a_tile[r, x] = a[top + r, front + x] if top + r < ni and front + x < nk else nothing
                b_tile[r, x] = b[front + r, j] if front + r < nk and j < nj else nothing
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
            if i < ni and j < nj:
                c[i, j] = alpha * total[r] + beta * c[i, j]
            r = u32(r + one)

    return kernel
