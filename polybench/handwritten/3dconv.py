"""3DCONV as a good programmer writes it in an hour: what a tuned kernel is compared with.

Parameters as in ``polybench/3dconv.c``: ni, nj, nk, A[ni][nj][nk], B[ni][nj][nk]; the faces of B are not written.
``cpu`` and ``cuda`` take the element type and return a function that updates B in place.

An element needs eleven of its neighbours, four of them in the plane i - 1, three in i and four in i + 1:

    i - 1:  -1  .  2      i:  .  -3  .      i + 1:  21  .   4      rows j - 1, j, j + 1 from above,
             .  .  5          .   6  .               .  .   7      columns k - 1, k, k + 1 from the left
             .  . -8          .  -9  .               .  .  10
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda as nc

WEIGHTS = (-1, 2, 5, -8, -3, 6, -9, 21, 4, 7, 10)
"""Plane by plane; the coefficients that one neighbour has several of are added up."""


def cpu(dtype: str) -> Callable[..., None]:
    """Threads take planes; along a row the eleven products are vectors."""
    real = numba.from_dtype(np.dtype(dtype))
    size, volume = numba.int64, real[:, :, ::1]
    filter_row = numba.njit(fastmath={"contract"})(_filter_row(dtype))

    @numba.njit(numba.void(size, size, size, volume, volume), parallel=True)
    def conv3d(ni, nj, nk, a, b):
        for i in numba.prange(1, max(ni - 1, 1)):
            for j in range(1, nj - 1):
                if nk > 2:
                    before, here, after = a[i - 1, j - 1 : j + 2], a[i, j - 1 : j + 2], a[i + 1, j - 1 : j + 2]
                    filter_row(before, here, after, b[i, j, 1 : nk - 1])

    return conv3d


def _filter_row(dtype: str) -> Callable[..., None]:
    w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10 = (np.dtype(dtype).type(w) for w in WEIGHTS)

    def filter_row(before: Any, here: Any, after: Any, out: Any) -> None:
        """``before``, ``here`` and ``after`` are rows j - 1, j and j + 1 of the three planes."""
        for k in range(out.size):
            out[k] = (
                w0 * before[0, k] + w1 * before[0, k + 2] + w2 * before[1, k + 2] + w3 * before[2, k + 2]
                + w4 * here[0, k + 1] + w5 * here[1, k + 1] + w6 * here[2, k + 1]
                + w7 * after[0, k] + w8 * after[0, k + 2] + w9 * after[1, k + 2] + w10 * after[2, k + 2]
            )  # fmt: skip

    return filter_row


def cuda(dtype: str) -> Callable[..., None]:
    """The arrays are on the device; the call launches on ``stream`` and does not wait."""
    kernel = marching(dtype)

    def conv3d(ni: int, nj: int, nk: int, a: Any, b: Any, stream: Any = 0) -> None:
        if ni > 2 and nj > 2 and nk > 2:
            blocks = ((nk - 2 + 31) // 32, (nj - 2 + 7) // 8, (ni - 2 + 15) // 16)
            kernel[blocks, (32, 8), stream](np.uint32(ni), np.uint32(nj), np.uint32(nk), a, b)

    return conv3d


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    size, volume = numba.uint32, numba.from_dtype(np.dtype(dtype))[:, :, ::1]
    return [(marching(dtype).py_func, (size, size, size, volume, volume))]


def marching(dtype: str) -> Any:
    """A thread marches through sixteen planes of one column (j, k) and loads each plane's seven neighbours once.

    What a plane adds to the results of the next two planes waits in two registers.
    """
    w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10 = (np.dtype(dtype).type(w) for w in WEIGHTS)
    u32, one, two, depth, nothing = np.uint32, np.uint32(1), np.uint32(2), np.uint32(16), np.dtype(dtype).type(0)

    @nc.jit
    def kernel(ni, nj, nk, a, b):
        left = u32(u32(nc.blockIdx.x) * u32(32) + u32(nc.threadIdx.x))
        up = u32(u32(nc.blockIdx.y) * u32(8) + u32(nc.threadIdx.y))
        k, right = u32(left + one), u32(left + two)
        j, down = u32(up + one), u32(up + two)
        first = u32(u32(nc.blockIdx.z) * depth)
        if right < nk and down < nj:
            waiting, coming = nothing, nothing
            p = u32(0)
            while p < depth + two:
                i = u32(first + p)
                if i < ni:
                    corner, edge, beside, below = a[i, up, left], a[i, up, right], a[i, j, right], a[i, down, right]
                    if p >= two:
                        b[i - one, j, k] = waiting + w7 * corner + w8 * edge + w9 * beside + w10 * below
                    waiting = coming + w4 * a[i, up, k] + w5 * a[i, j, k] + w6 * a[i, down, k]
                    coming = w0 * corner + w1 * edge + w2 * beside + w3 * below
                p = u32(p + one)

    return kernel
