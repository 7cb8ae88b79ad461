"""FDTD-2D as a good programmer writes it in an hour or two: what a tuned kernel is compared with.

Parameters as in ``polybench/fdtd-2d.c``: tmax, nx, ny, fict[tmax], ex[nx][ny+1], ey[nx+1][ny], hz[nx][ny].
``cpu`` and ``cuda`` take the element type and return a function that updates the fields in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda as nc

STEPS = 4
"""Time steps in one launch: a block's tile overhangs by as many elements on each side."""
WIDTH, ROWS = 64, 8
"""Threads of a block along j and i."""


def cpu(dtype: str) -> Callable[..., None]:
    """The three fields are swept once a step, in blocks of rows: hz follows ey and ex one row behind, in the cache.

    The last row of a block waits for the first of the next one, and is done after all of them.
    """
    block, half, rate = 32, np.dtype(dtype).type(0.5), np.dtype(dtype).type(0.7)
    real = numba.from_dtype(np.dtype(dtype))
    size, line, matrix = numba.int64, real[::1], real[:, ::1]

    @numba.njit(fastmath={"contract"})
    def electric(i, source, ex_row, ey_row, hz_row, hz_above):
        if i == 0:
            ey_row[:] = source
        else:
            for j in range(ey_row.size):
                ey_row[j] -= half * (hz_row[j] - hz_above[j])
        inner, right, left = ex_row[1 : hz_row.size], hz_row[1:], hz_row[: hz_row.size - 1]
        for j in range(inner.size):
            inner[j] -= half * (right[j] - left[j])

    @numba.njit(fastmath={"contract"})
    def magnetic(ex_row, ey_row, ey_below, hz_row):
        right = ex_row[1:]
        for j in range(hz_row.size):
            hz_row[j] -= rate * (right[j] - ex_row[j] + ey_below[j] - ey_row[j])

    @numba.njit(numba.void(size, size, size, line, matrix, matrix, matrix), parallel=True)
    def fdtd_2d(tmax, nx, ny, fict, ex, ey, hz):
        blocks = (nx + block - 1) // block
        if nx == 0 and tmax > 0:
            ey[0] = fict[tmax - 1]
        if ny > 0:
            for t in range(tmax):
                for b in numba.prange(blocks):
                    top, bottom = b * block, min(b * block + block, nx)
                    for i in range(top, bottom):
                        electric(i, fict[t], ex[i], ey[i], hz[i], hz[max(i - 1, 0)])
                        if i > top:
                            magnetic(ex[i - 1], ey[i - 1], ey[i], hz[i - 1])
                for b in numba.prange(blocks):
                    i = min(b * block + block, nx) - 1
                    magnetic(ex[i], ey[i], ey[i + 1], hz[i])

    return fdtd_2d


def cuda(dtype: str) -> Callable[..., None]:
    """The arrays are on the device; the calls launch on ``stream`` and do not wait.

    Blocks overlap, so a launch reads one set of fields and writes another, made once for each shape. The number of
    launches is even, so that the last one writes the caller's fields; their steps differ by one at most.
    """
    kernel, height = stepping(dtype), tile_height(dtype)
    spare: dict[tuple[int, int], tuple[Any, ...]] = {}

    def fdtd_2d(tmax: int, nx: int, ny: int, fict: Any, ex: Any, ey: Any, hz: Any, stream: Any = 0) -> None:
        if tmax < 1 or ny < 1:
            return
        if (nx, ny) not in spare:
            spare[nx, ny] = tuple(nc.device_array(s, dtype) for s in ((nx, ny + 1), (nx + 1, ny), (nx, ny)))
        fields = (ex, ey, hz), spare[nx, ny]
        core = WIDTH - 2 * STEPS, height - 2 * STEPS
        blocks = -(-(ny + 1) // core[0]), -(-(nx + 1) // core[1])
        launches = 2 * -(-tmax // (2 * STEPS))
        for k in range(launches):
            first, last = tmax * k // launches, tmax * (k + 1) // launches
            sizes = np.uint32(nx), np.uint32(ny), np.uint32(first), np.uint32(last)
            kernel[blocks, (WIDTH, ROWS), stream](*sizes, fict, *fields[k % 2], *fields[1 - k % 2])

    return fdtd_2d


def kernels(dtype: str) -> list[tuple[Callable[..., None], tuple[Any, ...]]]:
    size, real = numba.uint32, numba.from_dtype(np.dtype(dtype))
    matrix = real[:, ::1]
    return [(stepping(dtype).py_func, (size, size, size, size, real[::1], *(matrix,) * 6))]


def tile_height(dtype: str) -> int:
    """Rows of a tile: three fields of them take the 48 KiB of shared memory that a block may have."""
    return 48 * 1024 // (3 * WIDTH * np.dtype(dtype).itemsize)


def stepping(dtype: str) -> Any:
    """A block takes its tile of the fields through the time steps first .. last - 1 in shared memory.

    Each step makes one more ring of the tile's edge wrong, because the elements around it are not there; what is
    written back lies ``STEPS`` elements inside. Unsigned numbers below zero are large: one comparison tests both ends.
    """
    element, half, rate = numba.from_dtype(np.dtype(dtype)), np.dtype(dtype).type(0.5), np.dtype(dtype).type(0.7)
    rows = tile_height(dtype)
    u32, one, halo = np.uint32, np.uint32(1), np.uint32(STEPS)
    width, height, stride = np.uint32(WIDTH), np.uint32(rows), np.uint32(ROWS)
    wide, high = np.uint32(WIDTH - 2 * STEPS), np.uint32(rows - 2 * STEPS)

    @nc.jit
    def kernel(nx, ny, first, last, fict, ex, ey, hz, new_ex, new_ey, new_hz):
        ex_tile = nc.shared.array((rows, WIDTH), element)
        ey_tile = nc.shared.array((rows, WIDTH), element)
        hz_tile = nc.shared.array((rows, WIDTH), element)
        x, y = u32(nc.threadIdx.x), u32(nc.threadIdx.y)
        top = u32(u32(nc.blockIdx.y) * high - halo)
        j = u32(u32(nc.blockIdx.x) * wide - halo + x)
        r = y
        while r < height:
            i = u32(top + r)
            if i < nx and j <= ny:
                ex_tile[r, x] = ex[i, j]
            if i <= nx and j < ny:
                ey_tile[r, x] = ey[i, j]
            if i < nx and j < ny:
                hz_tile[r, x] = hz[i, j]
            r = u32(r + stride)
        t = first
        while t < last:
            source = fict[t]
            nc.syncthreads()
            r = y
            while r < height:
                i = u32(top + r)
                if i == u32(0) and j < ny:
                    ey_tile[r, x] = source
                if i < nx and j < ny:
                    h = hz_tile[r, x]
                    if i > u32(0) and r > u32(0):
                        ey_tile[r, x] -= half * (h - hz_tile[r - one, x])
                    if j > u32(0) and x > u32(0):
                        ex_tile[r, x] -= half * (h - hz_tile[r, x - one])
                r = u32(r + stride)
            nc.syncthreads()
            r = y
            while r < height - one:
                i = u32(top + r)
                if i < nx and j < ny and x < width - one:
                    along = ex_tile[r, x + one] - ex_tile[r, x]
                    hz_tile[r, x] -= rate * (along + ey_tile[r + one, x] - ey_tile[r, x])
                r = u32(r + stride)
            t = u32(t + one)
        inside = x >= halo and x < width - halo
        r = y
        while r < height - halo:
            i = u32(top + r)
            core = inside and r >= halo
            if core and i < nx and j <= ny:
                new_ex[i, j] = ex_tile[r, x]
            if core and i <= nx and j < ny:
                new_ey[i, j] = ey_tile[r, x]
            if core and i < nx and j < ny:
                new_hz[i, j] = hz_tile[r, x]
            r = u32(r + stride)

    return kernel
