"""A = Q R by modified Gram-Schmidt as a good programmer writes it in an hour: what a tuned kernel is compared with.

Parameters as in ``polybench/gramschm.c``: n, m, A[m][n], R[n][n], Q[m][n]. ``cpu`` and ``cuda`` take the element type
and return a function that updates A, Q and the upper triangle of R in place. ``kernels`` lists the CUDA kernels behind
``cuda``, each as a Python function and the types it is called with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda as nc

PANEL, WIDTH = 16, 128
"""Columns made orthogonal before the others are touched; columns that a thread then takes at a time."""
COLUMNS = 16
"""Of A, for a block on a GPU: half a line of the cache in float."""


def cpu(dtype: str) -> Callable[..., None]:
    """A panel of columns at a time: the others, shared out among threads, stay in the cache for all of the panel."""
    real = numba.from_dtype(np.dtype(dtype))
    size, matrix, nothing = numba.int64, real[:, ::1], np.dtype(dtype).type(0)

    @numba.njit(fastmath={"contract"})
    def project(m, k, left, right, a, r, q):
        row = r[k, left:right]
        row[:] = nothing
        for i in range(m):
            factor, column = q[i, k], a[i, left:right]
            for j in range(row.size):
                row[j] += factor * column[j]
        for i in range(m):
            factor, column = q[i, k], a[i, left:right]
            for j in range(row.size):
                column[j] -= factor * row[j]

    # As in C, a column of zeros makes NaN of its neighbours, no exception.
    @numba.njit(numba.void(size, size, matrix, matrix, matrix), parallel=True, error_model="numpy")
    def gramschm(n, m, a, r, q):
        for front in range(0, n, PANEL):
            back = min(front + PANEL, n)
            for k in range(front, back):
                total = nothing
                for i in range(m):
                    total += a[i, k] * a[i, k]
                r[k, k] = math.sqrt(total)
                for i in range(m):
                    q[i, k] = a[i, k] / r[k, k]
                project(m, k, k + 1, back, a, r, q)
            for block in numba.prange((n - back + WIDTH - 1) // WIDTH):
                left = back + block * WIDTH
                for k in range(front, back):
                    project(m, k, left, min(left + WIDTH, n), a, r, q)

    return gramschm


def cuda(dtype: str) -> Callable[..., None]:
    """One launch for each column. The arrays are on the device; the call launches on ``stream`` and does not wait."""
    kernel = step(dtype)

    def gramschm(n: int, m: int, a: Any, r: Any, q: Any, stream: Any = 0) -> None:
        height = min(64, max(2, 1 << (m // 16).bit_length() - 1)) if m >= 16 else 2
        for k in range(n):
            blocks = max(1, (n - k - 1 + COLUMNS - 1) // COLUMNS)
            kernel[blocks, (COLUMNS, height), stream](np.uint32(n), np.uint32(m), np.uint32(k), a, r, q)

    return gramschm


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    size, matrix = numba.uint32, numba.from_dtype(np.dtype(dtype))[:, ::1]
    return [(step(dtype).py_func, (size, size, size, matrix, matrix, matrix))]


def step(dtype: str) -> Any:
    """Column k becomes a column of Q, and each block takes it out of 16 of the columns that are left.

    Every block computes the norm for itself, which costs less than a launch and a wait; the first one writes it. With
    s = a_k . a_j,  R[k][j] = s / norm  and  a_j -= a_k * (R[k][j] / norm), so that no block waits for Q either.
    The threads of a column, 2 to 64 of them, add up their parts in shared memory. Each takes four rows at a time, for
    it waits no longer for eight loads than for two.
    """
    real, element = np.dtype(dtype).type, numba.from_dtype(np.dtype(dtype))
    u32, one, width = np.uint32, np.uint32(1), np.uint32(COLUMNS)
    nothing = real(0)

    @nc.jit
    def kernel(n, m, k, a, r, q):
        parts = nc.shared.array(1024, element)
        x, y, height = u32(nc.threadIdx.x), u32(nc.threadIdx.y), u32(nc.blockDim.y)
        thread, threads = u32(y * width + x), u32(height * width)
        twice, far = u32(height + height), u32(height + height + height)
        total = nothing
        i = thread
        while i < m:
            total += a[i, k] * a[i, k]
            i = u32(i + threads)
        parts[thread] = total
        nc.syncthreads()
        half = u32(threads >> one)
        while half > 0:
            if thread < half:
                parts[thread] += parts[thread + half]
            nc.syncthreads()
            half = u32(half >> one)
        norm = math.sqrt(parts[0])
        if nc.blockIdx.x == 0:
            if thread == 0:
                r[k, k] = norm
            i = thread
            while i < m:
                q[i, k] = a[i, k] / norm
                i = u32(i + threads)
        nc.syncthreads()
        j = u32(k + one + u32(nc.blockIdx.x) * width + x)
        total = nothing
        if j < n:
            i = y
            while i + far < m:
                near = a[i, k] * a[i, j] + a[i + height, k] * a[i + height, j]
                total += near + a[i + twice, k] * a[i + twice, j] + a[i + far, k] * a[i + far, j]
                i = u32(i + twice + twice)
            while i < m:
                total += a[i, k] * a[i, j]
                i = u32(i + height)
        parts[thread] = total
        nc.syncthreads()
        half = u32(height >> one)
        while half > 0:
            if y < half:
                parts[thread] += parts[thread + half * width]
            nc.syncthreads()
            half = u32(half >> one)
        if j < n:
            share = parts[x] / norm if m > 0 else nothing
            if y == 0:
                r[k, j] = share
            share = share / norm
            i = y
            while i + far < m:
                first, second = a[i, j] - a[i, k] * share, a[i + height, j] - a[i + height, k] * share
                third, fourth = a[i + twice, j] - a[i + twice, k] * share, a[i + far, j] - a[i + far, k] * share
                a[i, j], a[i + height, j], a[i + twice, j], a[i + far, j] = first, second, third, fourth
                i = u32(i + twice + twice)
            while i < m:
                a[i, j] -= a[i, k] * share
                i = u32(i + height)

    return kernel
