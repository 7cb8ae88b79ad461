"""A plan's functions on the CPU: called with the arrays, by all cores or a few, to the end or until a limit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numba import get_num_threads, set_num_threads

from looptune.backends.base import Limit, Program, Ran
from looptune.backends.marks import course
from looptune.backends.stopping import watched
from looptune.plans import Plan, count, repeats


class CpuProgram(Program):
    """``entry``: the driver's function; ``threads``: at most so many, None for all cores."""

    def __init__(self, plan: Plan, entry: Any, threads: int | None) -> None:
        self.plan = plan
        self.entry = entry
        self.threads = threads
        self.stops = repeats(plan)

    def run(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None) -> None:
        self._call(arrays, scalars, np.zeros(2, np.int64))

    def run_within(
        self, limit: Limit, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None
    ) -> Ran:
        sizes = {n: int(v) for n, v in scalars.items() if float(v).is_integer()}
        launches = count(self.plan.steps, sizes)
        if self.stops:
            call = partial(self._call, arrays, scalars)
            return watched(call, limit, launches, course(self.plan, sizes))
        start = time.perf_counter_ns()
        self.run(arrays, scalars)
        return Ran((time.perf_counter_ns() - start) / 1e3, launches, launches)

    def _call(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], told: np.ndarray) -> None:
        """``told``: whether to stop, and how many launches were made."""
        given = [arrays[p.name] if p.name in arrays else scalars[p.name] for p in self.plan.codelet.params]
        threads = get_num_threads()
        if self.threads is not None and self.threads < threads:
            set_num_threads(self.threads)  # of this thread alone
        try:
            self.entry(*given, get_num_threads(), *([told] if self.stops else []))
        finally:
            set_num_threads(threads)
