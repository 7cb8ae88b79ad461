"""The correlation matrix as a good programmer writes it in an hour or two: what a tuned kernel is compared with.

Parameters as in ``polybench/corr.c``: m, n, float_n, eps, data[n][m], mean[m], stddev[m], symmat[m][m].
``cpu`` and ``cuda`` take the element type and return a function that updates the arrays in place; ``library_cpu``
leaves the product to NumPy's BLAS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda as nc

COLUMNS, DEEP = 16, 32
"""Threads of a block of ``standardising``: columns and rows."""
TILE, DEPTH, SIDE = 64, 16, 16
"""A block of ``multiplying`` computes TILE x TILE elements, DEPTH products at a time, with SIDE x SIDE threads."""


def cpu(dtype: str) -> Callable[..., None]:
    """Columns in strips, a strip a thread; then the upper triangle in blocks of rows, and its mirror image.

    A panel of the data that stays in the second-level cache serves a whole block of rows. A thread takes a long and a
    short block of the triangle together.
    """
    strip, rows = 64, 16
    real = numba.from_dtype(np.dtype(dtype))
    size, vector, matrix = numba.int64, real[::1], real[:, ::1]
    standardise = numba.njit(fastmath={"contract"})(_standardise)
    multiply = numba.njit(_multiplying())

    @numba.njit(numba.void(size, size, real, real, matrix, vector, vector, matrix), parallel=True)
    def corr(m, n, float_n, eps, data, mean, stddev, symmat):
        for s in numba.prange((m + strip - 1) // strip):
            left, right = s * strip, min(s * strip + strip, m)
            standardise(data[:, left:right], mean[left:right], stddev[left:right], float_n, eps)
        blocks = (m + rows - 1) // rows
        for pair in numba.prange((blocks + 1) // 2):
            multiply(data, symmat, pair * rows, min(pair * rows + rows, m))
            if pair < blocks - 1 - pair:
                top = (blocks - 1 - pair) * rows
                multiply(data, symmat, top, min(top + rows, m))
        for block in numba.prange(blocks):
            top, bottom = block * rows, min(block * rows + rows, m)
            for i in range(top, bottom):
                symmat[i, i] = 1
                for j in range(i):
                    symmat[i, j] = symmat[j, i]

    return corr


def _standardise(data: Any, mean: Any, stddev: Any, float_n: Any, eps: Any) -> None:
    """Mean and deviation of a strip's columns, row by row, so that neighbouring columns are one vector."""
    mean[:] = 0
    stddev[:] = 0
    for i in range(data.shape[0]):
        mean += data[i]
    mean /= float_n
    for i in range(data.shape[0]):
        for j in range(mean.size):
            stddev[j] += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
    root = np.sqrt(float_n)
    for j in range(mean.size):
        deviation = np.sqrt(stddev[j] / float_n)
        stddev[j] = 1 if deviation <= eps else deviation
    for i in range(data.shape[0]):
        for j in range(mean.size):
            data[i, j] = (data[i, j] - mean[j]) / (root * stddev[j])


def _multiplying() -> Callable[..., None]:
    depth, cols = 64, 1024
    accumulate = numba.njit(fastmath={"contract"})(_accumulate)

    def multiply(data: Any, symmat: Any, top: int, bottom: int) -> None:
        """Rows top .. bottom - 1 of the upper triangle of the transposed data times the data."""
        n, m = data.shape
        for i in range(top, bottom):
            symmat[i, i:] = 0
        for left in range(top, m, cols):
            right = min(left + cols, m)
            for front in range(0, n, depth):
                back = min(front + depth, n)
                for i in range(top, min(bottom, right)):
                    start = max(i, left)
                    accumulate(symmat[i, start:right], data[front:back, i], data[front:back], start, right)

    return multiply


def _accumulate(row: Any, factors: Any, data: Any, left: int, right: int) -> None:
    """row += factors @ data[:, left:right], four rows of data at a time: the row is loaded once for four products."""
    whole = factors.size // 4 * 4
    for k in range(0, whole, 4):
        a0, a1, a2, a3 = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        b0, b1 = data[k, left:right], data[k + 1, left:right]
        b2, b3 = data[k + 2, left:right], data[k + 3, left:right]
        for j in range(row.size):
            row[j] += a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j]
    for k in range(whole, factors.size):
        a0, b0 = factors[k], data[k, left:right]
        for j in range(row.size):
            row[j] += a0 * b0[j]


def library_cpu(dtype: str) -> Callable[..., None]:
    real = np.dtype(dtype).type

    def corr(m: int, n: int, float_n: float, eps: float, data: Any, mean: Any, stddev: Any, symmat: Any) -> None:
        mean[:] = data.sum(axis=0) / real(float_n)
        data -= mean
        stddev[:] = np.sqrt(np.einsum("ij,ij->j", data, data) / real(float_n))
        stddev[stddev <= real(eps)] = 1
        data /= np.sqrt(real(float_n)) * stddev
        np.matmul(data.T, data, out=symmat)
        np.fill_diagonal(symmat, 1)

    return corr


def cuda(dtype: str) -> Callable[..., None]:
    """The arrays are on the device; the call launches on ``stream`` and does not wait."""
    real, standardise, multiply = np.dtype(dtype).type, standardising(dtype), multiplying(dtype)

    def corr(
        m: int, n: int, float_n: float, eps: float, data: Any, mean: Any, stddev: Any, symmat: Any, stream: Any = 0
    ) -> None:
        if m > 0:
            strips, tiles = (m + COLUMNS - 1) // COLUMNS, (m + TILE - 1) // TILE
            sizes = np.uint32(m), np.uint32(n)
            standardise[strips, (COLUMNS, DEEP), stream](*sizes, real(float_n), real(eps), data, mean, stddev)
            multiply[(tiles, tiles), (SIDE, SIDE), stream](*sizes, data, symmat)

    return corr


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    size, real = numba.uint32, numba.from_dtype(np.dtype(dtype))
    vector, matrix = real[::1], real[:, ::1]
    return [
        (standardising(dtype).py_func, (size, size, real, real, matrix, vector, vector)),
        (multiplying(dtype).py_func, (size, size, matrix, matrix)),
    ]


def standardising(dtype: str) -> Any:
    """A block takes a strip of columns: its mean, its deviation, and the data in their terms.

    The second and the third pass find the strip in the cache.
    """
    real, element = np.dtype(dtype).type, numba.from_dtype(np.dtype(dtype))
    u32, one, wide, deep = np.uint32, np.uint32(1), np.uint32(COLUMNS), np.uint32(DEEP)
    nothing, unit = real(0), real(1)

    @nc.jit
    def kernel(m, n, float_n, eps, data, mean, stddev):
        sums = nc.shared.array((DEEP, COLUMNS), element)
        x, y = u32(nc.threadIdx.x), u32(nc.threadIdx.y)
        j = u32(u32(nc.blockIdx.x) * wide + x)
        inside = j < m
        total = nothing
        i = y
        while i < n:
            if inside:
                total += data[i, j]
            i = u32(i + deep)
        sums[y, x] = total
        nc.syncthreads()
        total = nothing
        i = u32(0)
        while i < deep:
            total += sums[i, x]
            i = u32(i + one)
        average = total / float_n
        nc.syncthreads()
        total = nothing
        i = y
        while i < n:
            if inside:
                off = data[i, j] - average
                total += off * off
            i = u32(i + deep)
        sums[y, x] = total
        nc.syncthreads()
        total = nothing
        i = u32(0)
        while i < deep:
            total += sums[i, x]
            i = u32(i + one)
        deviation = real(math.sqrt(total / float_n))
        if deviation <= eps:
            deviation = unit
        if inside and y == u32(0):
            mean[j] = average
            stddev[j] = deviation
        scale = real(math.sqrt(float_n)) * deviation
        i = y
        while i < n:
            if inside:
                data[i, j] = (data[i, j] - average) / scale
            i = u32(i + deep)

    return kernel


def multiplying(dtype: str) -> Any:
    """A block computes 64 x 64 elements of the upper triangle, 4 x 4 a thread, from tiles in shared memory.

    Both tiles are rows of the data, so all loads are of neighbours. A block below the diagonal has nothing to do; the
    others write their elements to both sides of it.
    """
    real, element = np.dtype(dtype).type, numba.from_dtype(np.dtype(dtype))
    u32, one, four, side = np.uint32, np.uint32(1), np.uint32(4), np.uint32(SIDE)
    tile, depth, threads = np.uint32(TILE), np.uint32(DEPTH), np.uint32(SIDE * SIDE)
    nothing, unit = real(0), real(1)

    @nc.jit
    def kernel(m, n, data, symmat):
        across = nc.shared.array((DEPTH, TILE), element)
        down = nc.shared.array((DEPTH, TILE), element)
        total = nc.local.array((4, 4), element)
        x, y = u32(nc.threadIdx.x), u32(nc.threadIdx.y)
        top, left = u32(u32(nc.blockIdx.y) * tile), u32(u32(nc.blockIdx.x) * tile)
        if top <= left:
            r = u32(0)
            while r < four:
                c = u32(0)
                while c < four:
                    total[r, c] = nothing
                    c = u32(c + one)
                r = u32(r + one)
            column, first = u32(u32(y * side + x) % tile), u32(u32(y * side + x) // tile)
            front = u32(0)
            while front < n:
                k = first
                while k < depth:
                    i = u32(front + k)
                    across[k, column] = data[i, left + column] if i < n and left + column < m else nothing
                    down[k, column] = data[i, top + column] if i < n and top + column < m else nothing
                    k = u32(k + threads // tile)
                nc.syncthreads()
                k = u32(0)
                while k < depth:
                    r = u32(0)
                    while r < four:
                        c = u32(0)
                        while c < four:
                            total[r, c] += down[k, y + r * side] * across[k, x + c * side]
                            c = u32(c + one)
                        r = u32(r + one)
                    k = u32(k + one)
                nc.syncthreads()
                front = u32(front + depth)
            r = u32(0)
            while r < four:
                i = u32(top + y + r * side)
                c = u32(0)
                while c < four:
                    j = u32(left + x + c * side)
                    if i <= j and j < m:
                        value = unit if i == j else total[r, c]
                        symmat[i, j] = value
                        symmat[j, i] = value
                    c = u32(c + one)
                r = u32(r + one)

    return kernel
