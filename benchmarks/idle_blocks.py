"""What the idle blocks of a triangular grid cost: a grid of 32 x 32 blocks, of which 528 work, and those alone.

    python benchmarks/idle_blocks.py        needs an NVIDIA GPU; writes a Markdown table to standard output

Each block has 128 threads and 32 KiB of shared memory, and does so many rounds of dependent operations; idle ones leave
at once. Ten launches of each kernel are timed together, behind one that keeps the device busy meanwhile.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np
from numba import config, cuda, float32

from looptune.runtime import targets

SIDE, THREADS, RUNS, LAUNCHES = 32, 128, 60, 10


@cuda.jit(device=True, inline="always")
def work(a: Any, out: Any, x: Any, y: Any, rounds: Any) -> None:
    tile = cuda.shared.array(8192, float32)
    t = cuda.threadIdx.x
    tile[t] = a[t]
    cuda.syncthreads()
    s = float32(0)
    for k in range(rounds):
        s = s * tile[(t + k) & 127] + float32(1)
    out[(y * SIDE + x) * THREADS + t] = s


@cuda.jit
def whole(a: Any, out: Any, rounds: Any) -> None:
    if cuda.blockIdx.x <= cuda.blockIdx.y:
        work(a, out, cuda.blockIdx.x, cuda.blockIdx.y, rounds)


@cuda.jit
def packed(a: Any, out: Any, rounds: Any) -> None:
    p, q = cuda.blockIdx.x, cuda.blockIdx.y
    y = q if p <= q else SIDE - 1 - q
    work(a, out, p if p <= q else p - q - 1, y, rounds)


@cuda.jit
def busy(out: Any, rounds: Any) -> None:
    s = out[0]
    for _ in range(rounds):
        s = s * float32(0.5) + float32(1)
    out[0] = s


def times_us(kernel: Any, grid: tuple[int, int], a: Any, out: Any, rounds: int) -> list[float]:
    """Microseconds of one launch, of each of RUNS."""
    found, ahead = [], cuda.to_device(np.zeros(1, np.float32))
    for _ in range(RUNS):
        first, last = cuda.event(), cuda.event()
        busy[1, 1](ahead, 400_000)
        first.record()
        for _ in range(LAUNCHES):
            kernel[grid, THREADS](a, out, rounds)
        last.record()
        last.synchronize()
        found.append(cuda.event_elapsed_time(first, last) * 1e3 / LAUNCHES)
    return found


def main() -> None:
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    a = cuda.to_device(np.ones(THREADS, np.float32))
    outs = [cuda.to_device(np.zeros(SIDE * SIDE * THREADS, np.float32)) for _ in range(2)]
    print(f"# Idle blocks of a triangle of {SIDE} x {SIDE}, {targets.devices()[0].name}\n")
    print("| rounds of a block | whole grid, us | working blocks alone, us | ratio |\n|---:|---:|---:|---:|")
    for rounds in (1, 500, 5000):
        grids = ((SIDE, SIDE), (SIDE + 1, SIDE // 2))
        kernels = zip((whole, packed), grids, outs, strict=True)
        all_us, some_us = (median(times_us(k, grid, a, out, rounds)) for k, grid, out in kernels)
        print(f"| {rounds:,} | {all_us:.2f} | {some_us:.2f} | {all_us / some_us:.2f} |")
    assert np.array_equal(outs[0].copy_to_host(), outs[1].copy_to_host()), "both do the same"
    print("\nCommand: `python benchmarks/idle_blocks.py`")


if __name__ == "__main__":
    main()
