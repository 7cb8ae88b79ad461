"""What a process of benchmarks/peers.py is asked to time: a kernel, its sizes, its data, and a way to time it.

Its modules are those of the peers: ``peers_looptune``, ``peers_torch`` (the libraries and torch.compile),
``peers_jax`` and ``peers_triton``. Each has ``prepare(task, peer)``, which returns a ``Version``.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from looptune.frontend import Unit, load
from looptune.ir.nodes import Array
from looptune.runtime.problem_sizes import problem

BATCH_US = 400.0
"""Runs that are timed together take at least so long."""
MOST_RUNS = 200
AHEAD_US = 60.0
"""The device is kept busy so long before a batch, so that its launches are queued when the first begins."""
COEFFICIENTS_2D = ((0.2, 0.5, -0.8), (-0.3, 0.6, -0.9), (0.4, 0.7, 0.1))
"""Of 2DCONV's A[i + a - 1][j + b - 1] in row a and column b."""
COEFFICIENTS_3D: Mapping[tuple[int, int, int], float] = MappingProxyType({
    (-1, -1, -1): 2 + 5 - 8, (1, -1, -1): 4 + 7 + 10, (0, -1, 0): -3, (0, 0, 0): 6, (0, 1, 0): -9, (-1, -1, 1): 2,
    (1, -1, 1): 4, (-1, 0, 1): 5, (1, 0, 1): 7, (-1, 1, 1): -8, (1, 1, 1): 10,
})  # fmt: skip
"""Of 3DCONV's A[i + a][j + b][k + c], with those of one element added up."""
BP_MOST, BP_STEP, BP_JUMP = 15.0, 1024.0, 1741.0
"""Of belief propagation: the largest difference of two pixels, a step of the disparity, and the most a message says."""
NUMBERS: Mapping[str, float] = MappingProxyType({"alpha": 1.5, "beta": 0.75})
"""In place of PolyBench's: with its own, an array that is updated in place grows beyond all numbers in a few runs."""
Results = Mapping[str, np.ndarray]


class NothingToTime(Exception):
    """A peer has no version of a kernel; the message says why."""


class Version(NamedTuple):
    """A prepared version.

    ``results``: of one run on the original data, made before anything is timed; ``sample`` returns the microseconds of
    one run; ``by``: what runs, where the column does not say it; ``package``: name and version.
    """

    results: Results
    sample: Callable[[], float]
    by: str
    package: str


@dataclass(frozen=True)
class Task:
    """A kernel at one size. ``gate``: a file that is locked by the process that lets the GPU choose among versions."""

    file: str
    dtype: str
    sizes: Mapping[str, int]
    target: str
    db: str
    flush: bool
    gate: str

    @staticmethod
    def parsed(text: str) -> Task:
        return Task(**json.loads(text))

    @property
    def kernel(self) -> str:
        return Path(self.file).stem

    @property
    def gpu(self) -> bool:
        return self.target != "numba-cpu"

    @cached_property
    def unit(self) -> Unit:
        return load(self.file, dtype=self.dtype)

    @cached_property
    def values(self) -> dict[str, int | float]:
        """The scalar parameters: the sizes, and numbers that keep repeated runs finite."""
        known = {n: v for n, v in self.unit.values.items() if v is not None}
        known |= {n: v for n, v in NUMBERS.items() if n in {p.name for p in self.unit.codelet.params}}
        return dict(problem(self.unit.codelet, {**known, **self.sizes}).values)

    def arrays(self) -> dict[str, np.ndarray]:
        """New arrays, which are the same for every peer."""
        return problem(self.unit.codelet, self.values).arrays(self.unit.codelet, 0)

    @cached_property
    def written(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.unit.codelet.params if isinstance(p, Array) and p.io != "in")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other process has the GPU choose at the same time."""
        with open(self.gate, "a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield


def runs(us: float, batch_us: float = BATCH_US, most: int = MOST_RUNS) -> int:
    """How many runs of so many microseconds are timed together."""
    return max(1, min(most, int(batch_us / max(us, 1e-3)) + 1))


def host_sampler(run: Callable[[], Any]) -> Callable[[], float]:
    """Of runs that end when the call returns: the mean over a batch."""

    def timed(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            run()
        return (time.perf_counter() - start) / count * 1e6

    run()
    count = runs(timed(1), 2e3)
    return lambda: timed(count)
