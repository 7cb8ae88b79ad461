"""A 3 x 3 convolution as a good programmer writes it in an hour: what a tuned kernel is compared with.

Parameters as in ``polybench/2dconv.c``: ni, nj, A[ni][nj], B[ni][nj]; the border of B is not written.
``cpu`` and ``cuda`` take the element type and return a function that updates B in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda as nc

WEIGHTS = (0.2, 0.5, -0.8, -0.3, 0.6, -0.9, 0.4, 0.7, 0.1)
"""Of the neighbours above, beside and below, each from left to right."""


def cpu(dtype: str) -> Callable[..., None]:
    """Threads take blocks of rows; along a row the nine products are vectors."""
    real = numba.from_dtype(np.dtype(dtype))
    size, matrix = numba.int64, real[:, ::1]
    filter_row = numba.njit(fastmath={"contract"})(_filter_row(dtype))

    @numba.njit(numba.void(size, size, matrix, matrix), parallel=True)
    def conv2d(ni, nj, a, b):
        for i in numba.prange(1, max(ni - 1, 1)):
            if nj > 2:
                filter_row(a[i - 1], a[i], a[i + 1], b[i, 1 : nj - 1])

    return conv2d


def _filter_row(dtype: str) -> Callable[..., None]:
    w0, w1, w2, w3, w4, w5, w6, w7, w8 = (np.dtype(dtype).type(w) for w in WEIGHTS)

    def filter_row(above: Any, middle: Any, below: Any, out: Any) -> None:
        for j in range(out.size):
            out[j] = (
                w0 * above[j] + w1 * above[j + 1] + w2 * above[j + 2]
                + w3 * middle[j] + w4 * middle[j + 1] + w5 * middle[j + 2]
                + w6 * below[j] + w7 * below[j + 1] + w8 * below[j + 2]
            )  # fmt: skip

    return filter_row


def cuda(dtype: str) -> Callable[..., None]:
    """The arrays are on the device; the call launches on ``stream`` and does not wait."""
    kernel = rolling(dtype)

    def conv2d(ni: int, nj: int, a: Any, b: Any, stream: Any = 0) -> None:
        if ni > 2 and nj > 2:
            blocks = ((nj - 2 + 63) // 64, (ni - 2 + 31) // 32)
            kernel[blocks, (64, 4), stream](np.uint32(ni), np.uint32(nj), a, b)

    return conv2d


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    size, matrix = numba.uint32, numba.from_dtype(np.dtype(dtype))[:, ::1]
    return [(rolling(dtype).py_func, (size, size, matrix, matrix))]


def rolling(dtype: str) -> Any:
    """A thread walks down eight rows of one column with the three rows it needs in registers: three loads a result.

    Its neighbours in the warp load the same elements one place further, from the first-level cache.
    """
    w0, w1, w2, w3, w4, w5, w6, w7, w8 = (np.dtype(dtype).type(w) for w in WEIGHTS)
    u32, one, two, height = np.uint32, np.uint32(1), np.uint32(2), np.uint32(8)

    @nc.jit
    def kernel(ni, nj, a, b):
        left = u32(u32(nc.blockIdx.x) * u32(64) + u32(nc.threadIdx.x))
        top = u32((u32(nc.blockIdx.y) * u32(4) + u32(nc.threadIdx.y)) * height)
        j, right = u32(left + one), u32(left + two)
        if right < nj and top + two < ni:
            a0, a1, a2 = a[top, left], a[top, j], a[top, right]
            b0, b1, b2 = a[top + one, left], a[top + one, j], a[top + one, right]
            r = u32(0)
            while r < height:
                below = u32(top + r + two)
                if below < ni:
                    c0, c1, c2 = a[below, left], a[below, j], a[below, right]
                    upper = w0 * a0 + w1 * a1 + w2 * a2
                    b[below - one, j] = upper + w3 * b0 + w4 * b1 + w5 * b2 + w6 * c0 + w7 * c1 + w8 * c2
                    a0, a1, a2 = b0, b1, b2
                    b0, b1, b2 = c0, c1, c2
                r = u32(r + one)

    return kernel
