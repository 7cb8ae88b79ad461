"""What a launch costs where a host loop makes thousands of them: through Numba, the driver, and one CUDA graph; and the
same steps in one persistent kernel, whose blocks wait for each other after each.

    python benchmarks/launch_cost.py [LAUNCHES]        needs an NVIDIA GPU; writes a Markdown table to standard output

The kernel is a step over 1,024 elements, so that what is timed is the launching: the wall time of all launches and the
wait for the last, over their number. The persistent kernel has one block on each multiprocessor. The graph is what
``looptune.compile``'s kernel replays when it is called again with the same arrays, and what every timing of a sweep
replays.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import cycle
from statistics import median
from typing import Any

import numpy as np
from numba import config, cuda

import looptune
from looptune.backends.codegen.python import ident
from looptune.runtime import targets

SOURCE = """
void steps(int t, int n, float x[n])
{
    for (int k = 0; k < t; k++)
        for (int i = 0; i < n; i++)
            x[i] = 0.5f * x[i] + 1;
}
"""
N, RUNS = 1024, 7


def per_launch_us(launches: int, call: Callable[[], Any]) -> list[float]:
    """Microseconds a launch, of each of RUNS calls."""
    times = []
    for _ in range(RUNS):
        cuda.synchronize()
        start = time.perf_counter()
        call()
        cuda.synchronize()
        times.append((time.perf_counter() - start) / launches * 1e6)
    return times


def main() -> None:
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    launches = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
    kernel = looptune.compile(SOURCE, target="numba-cuda")
    whole = looptune.compile(SOURCE, target="numba-cuda", directives=["loop k: persistent"])
    module: dict[str, Any] = {"__name__": "emitted"}
    exec(compile(kernel.source, "<emitted>", "exec"), module)
    emitted, x = module[ident("steps")], cuda.to_device(np.ones(N, np.float32))
    other = cuda.to_device(np.ones(N, np.float32))

    def changing(called: Callable[..., Any]) -> Callable[[], None]:
        """Calls with other arrays than the call before had: no graph is made."""
        arrays = cycle([other, x])
        return lambda: called(launches, N, next(arrays))

    emitted(2, N, x)
    for called in (kernel, whole):
        called(launches, N, x)
        called(launches, N, x)
    rows = (
        ("one graph", per_launch_us(launches, lambda: kernel(launches, N, x))),
        ("one persistent kernel", per_launch_us(launches, changing(whole))),
        ("the driver, one by one", per_launch_us(launches, changing(kernel))),
        ("Numba, one by one", per_launch_us(launches, lambda: emitted(launches, N, x))),
    )
    name = targets.devices()[0].name
    print(f"# {launches:,} launches of a kernel of {N:,} threads, {name}\n")
    print("| launched through | us a launch | least .. most of the runs |\n|---|---|---|")
    for through, times in rows:
        print(f"| {through} | {median(times):.2f} | {min(times):.2f} .. {max(times):.2f}, n={RUNS} |")
    print(f"\nCommand: `python benchmarks/launch_cost.py {launches}`")


if __name__ == "__main__":
    main()
