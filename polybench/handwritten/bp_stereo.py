"""Belief propagation for stereo as a good programmer writes it in an hour or two: what a tuned kernel is compared with.

Parameters as in ``polybench/bp_stereo.c``: height, width, iterations, left, right, cost, sent, disparity.
``cpu`` and ``cuda`` take the element type and return a function that updates cost, sent and disparity in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda as nc

DISPARITIES = 15
STEP, JUMP = 1024, 1741
"""The cost of neighbours whose disparities differ by one, and by two or more, in units of 1/1024."""
WIDTH, ROWS = 32, 4
"""Threads of a block along x and y: small blocks, which spread over a GPU evenly."""


def cpu(dtype: str) -> Callable[..., None]:
    """Rows are shared out to the cores; within a row each step is a loop over the pixels of one colour, vectorised."""
    real = numba.from_dtype(np.dtype(dtype))
    as_real = np.dtype(dtype).type
    step, jump, most, half_unit = as_real(STEP), as_real(JUMP), as_real(15), as_real(0.5)
    size, image, planes, messages = numba.int64, real[:, ::1], real[:, :, :, ::1], real[:, :, :, :, ::1]

    @numba.njit
    def data_cost(width, colour, left_row, right_row, y, cost):
        for d in range(DISPARITIES):
            for x in range(colour, width, 2):
                apart = most
                if x >= d:
                    apart = min(abs(left_row[x] - right_row[x - d]), most)
                cost[d, y, x // 2] = (112 * int(as_real(64) * apart + half_unit) + 50) // 100
            for k in range((width - colour + 1) // 2, (width + 1) // 2):
                cost[d, y, k] = 1075

    @numba.njit
    def gathered(first, last, odd, y, cost, sent, around, total):
        """What comes from the four neighbours, by the direction it comes from, and the sum of all with the cost."""
        for d in range(DISPARITIES):
            for k in range(first, last):
                around[0, d, k] = sent[1, d, y - 1, k]
                around[1, d, k] = sent[0, d, y + 1, k]
                around[2, d, k] = sent[3, d, y, k - 1 + odd]
                around[3, d, k] = sent[2, d, y, k + odd]
            for k in range(first, last):
                total[d, k] = cost[d, y, k] + around[0, d, k] + around[1, d, k] + around[2, d, k] + around[3, d, k]

    @numba.njit
    def told(first, last, around, total, h, least, out):
        for k in range(first, last):
            least[k] = total[0, k] - around[0, k]
        for d in range(DISPARITIES):
            for k in range(first, last):
                h[d, k] = total[d, k] - around[d, k]
                least[k] = min(least[k], h[d, k])
        for d in range(1, DISPARITIES):
            for k in range(first, last):
                h[d, k] = min(h[d, k], h[d - 1, k] + step)
        for d in range(DISPARITIES - 2, -1, -1):
            for k in range(first, last):
                h[d, k] = min(h[d, k], h[d + 1, k] + step)
        for d in range(DISPARITIES):
            for k in range(first, last):
                out[d, k] = min(h[d, k] - least[k], jump)

    @numba.njit
    def best(first, last, total, row, odd):
        for k in range(first, last):
            chosen = 0
            for d in range(1, DISPARITIES):
                if total[d, k] < total[chosen, k]:
                    chosen = d
            row[2 * k + odd] = chosen

    @numba.njit(numba.void(size, size, size, image, image, planes, messages, numba.int32[:, ::1]), parallel=True)
    def bp_stereo(height, width, iterations, left, right, cost, sent, disparity):
        half = (width + 1) // 2
        for y in numba.prange(height):
            for c in range(2):
                data_cost(width, (y + c) % 2, left[y], right[y], y, cost[c])
            sent[:, :, :, y] = 0
            disparity[y] = 0
        for t in range(iterations):
            for y in numba.prange(1, height - 1):
                odd, c = (y + t) % 2, t % 2
                first, last = 1 - odd, (width - odd) // 2
                around, total = np.empty((4, DISPARITIES, half), real), np.empty((DISPARITIES, half), real)
                h, least = np.empty((DISPARITIES, half), real), np.empty(half, real)
                gathered(first, last, odd, y, cost[c], sent[:, 1 - c], around, total)
                for n in range(4):
                    told(first, last, around[n], total, h, least, sent[n, c, :, y])
        for y in numba.prange(1, height - 1):
            around, total = np.empty((4, DISPARITIES, half), real), np.empty((DISPARITIES, half), real)
            for c in range(2):
                odd = (y + c) % 2
                first, last = 1 - odd, (width - odd) // 2
                gathered(first, last, odd, y, cost[c], sent[:, 1 - c], around, total)
                best(first, last, total, disparity[y], odd)

    return bp_stereo


def cuda(dtype: str) -> Callable[..., None]:
    """The arrays are on the device; the calls launch on ``stream`` and do not wait.

    A thread has a pixel; blocks of one iteration wait for nothing but the launch before.
    """
    begin, send, decide = started(dtype), sending(dtype), deciding(dtype)

    def bp_stereo(
        height: int, width: int, iterations: int, left: Any, right: Any, cost: Any, sent: Any, disparity: Any,
        stream: Any = 0,
    ) -> None:  # fmt: skip
        if height < 1 or width < 1:
            return
        half = (width + 1) // 2
        blocks, threads = (-(-half // WIDTH), -(-height // ROWS)), (WIDTH, ROWS)
        sizes = np.uint32(height), np.uint32(width), np.uint32(half)
        left, right, cost, sent, disparity = (a.reshape(a.size) for a in (left, right, cost, sent, disparity))
        begin[blocks, threads, stream](*sizes, left, right, cost, sent)
        for t in range(iterations):
            send[blocks, threads, stream](*sizes, np.uint32(t), cost, sent)
        decide[blocks, threads, stream](*sizes, cost, sent, disparity)

    return bp_stereo


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    size, real = numba.uint32, numba.from_dtype(np.dtype(dtype))[::1]
    return [
        (started(dtype).py_func, (size, size, size, real, real, real, real)),
        (sending(dtype).py_func, (size, size, size, size, real, real)),
        (deciding(dtype).py_func, (size, size, size, real, real, numba.int32[::1])),
    ]


def started(dtype: str) -> Any:
    """Each thread has the two pixels of its place: their costs, and messages of nothing."""
    real, u32, count = np.dtype(dtype).type, np.uint32, np.uint32(DISPARITIES)
    zero, most, units, half_unit = real(0), real(15), real(64), real(0.5)

    @nc.jit
    def kernel(height, width, half, left, right, cost, sent):
        k = u32(nc.blockIdx.x * WIDTH + nc.threadIdx.x)
        y = u32(nc.blockIdx.y * ROWS + nc.threadIdx.y)
        if k >= half or y >= height:
            return
        plane = u32(height * half)
        c = u32(0)
        while c < u32(2):
            x = u32(u32(2) * k + (y + c) % u32(2))
            at = u32(c * count * plane + y * half + k)
            d = u32(0)
            while d < count:
                apart = most
                if x < width and d <= x:
                    apart = min(abs(left[u32(y * width + x)] - right[u32(y * width + x - d)]), most)
                cost[at] = real((np.int32(112) * np.int32(units * apart + half_unit) + np.int32(50)) // np.int32(100))
                n = u32(0)
                while n < u32(4):
                    sent[u32(n * u32(2) * count * plane + at)] = zero
                    n = u32(n + u32(1))
                at = u32(at + plane)
                d = u32(d + u32(1))
            c = u32(c + u32(1))

    return kernel


def sending(dtype: str) -> Any:
    """Each thread has a pixel of the colour whose turn it is, and what its neighbours sent in registers."""
    element, real, u32 = numba.from_dtype(np.dtype(dtype)), np.dtype(dtype).type, np.uint32
    step, jump, count, last = real(STEP), real(JUMP), np.uint32(DISPARITIES), np.uint32(DISPARITIES - 1)

    @nc.jit
    def kernel(height, width, half, t, cost, sent):
        k = u32(nc.blockIdx.x * WIDTH + nc.threadIdx.x)
        y = u32(nc.blockIdx.y * ROWS + nc.threadIdx.y)
        odd = u32((y + t) % u32(2))
        x = u32(u32(2) * k + odd)
        if y < u32(1) or u32(y + u32(1)) >= height or x < u32(1) or u32(x + u32(1)) >= width:
            return
        plane, turn = u32(height * half), u32(t % u32(2))
        both = u32(u32(2) * count * plane)
        mine = u32(turn * count * plane + y * half + k)
        theirs = u32((u32(1) - turn) * count * plane + y * half + k)
        around = nc.local.array((4, DISPARITIES), element)
        total = nc.local.array(DISPARITIES, element)
        h = nc.local.array(DISPARITIES, element)
        d = u32(0)
        while d < count:
            at = u32(theirs + d * plane)
            around[0, d] = sent[u32(both + at - half)]
            around[1, d] = sent[u32(at + half)]
            around[2, d] = sent[u32(u32(3) * both + at + odd - u32(1))]
            around[3, d] = sent[u32(u32(2) * both + at + odd)]
            own = cost[u32(mine + d * plane)]
            total[d] = own + around[0, d] + around[1, d] + around[2, d] + around[3, d]
            d = u32(d + u32(1))
        n = u32(0)
        while n < u32(4):
            least = total[0] - around[n, 0]
            d = u32(0)
            while d < count:
                h[d] = total[d] - around[n, d]
                least = min(least, h[d])
                d = u32(d + u32(1))
            d = u32(1)
            while d < count:
                h[d] = min(h[d], h[u32(d - u32(1))] + step)
                d = u32(d + u32(1))
            d = u32(0)
            while d < last:
                h[u32(last - u32(1) - d)] = min(h[u32(last - u32(1) - d)], h[u32(last - d)] + step)
                d = u32(d + u32(1))
            d = u32(0)
            while d < count:
                sent[u32(n * both + mine + d * plane)] = min(h[d] - least, jump)
                d = u32(d + u32(1))
            n = u32(n + u32(1))

    return kernel


def deciding(dtype: str) -> Any:
    """Each thread has the two pixels of its place: the disparity of the least belief of each."""
    u32, count, large = np.uint32, np.uint32(DISPARITIES), np.dtype(dtype).type(STEP * STEP)

    @nc.jit
    def kernel(height, width, half, cost, sent, disparity):
        k = u32(nc.blockIdx.x * WIDTH + nc.threadIdx.x)
        y = u32(nc.blockIdx.y * ROWS + nc.threadIdx.y)
        if k >= half or y >= height:
            return
        plane = u32(height * half)
        both = u32(u32(2) * count * plane)
        c = u32(0)
        while c < u32(2):
            odd = u32((y + c) % u32(2))
            x = u32(u32(2) * k + odd)
            best, least = u32(0), large
            if y > u32(0) and u32(y + u32(1)) < height and x > u32(0) and u32(x + u32(1)) < width:
                mine = u32(c * count * plane + y * half + k)
                at = u32((u32(1) - c) * count * plane + y * half + k)
                d = u32(0)
                while d < count:
                    vertical = sent[u32(both + at - half)] + sent[u32(at + half)]
                    across = sent[u32(u32(3) * both + at + odd - u32(1))] + sent[u32(u32(2) * both + at + odd)]
                    belief = cost[mine] + vertical + across
                    if belief < least:
                        best, least = d, belief
                    mine, at = u32(mine + plane), u32(at + plane)
                    d = u32(d + u32(1))
            if x < width:
                disparity[u32(y * width + x)] = best
            c = u32(c + u32(1))

    return kernel
