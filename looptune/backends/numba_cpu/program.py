"""A plan's functions on the CPU: called with the arrays, on all cores or a few, to the end or until a limit."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import get_num_threads, set_num_threads

from looptune.backends.base import PartialRun, Program, TimeLimit
from looptune.backends.early_stop import run_watched
from looptune.backends.numba_cpu.parallel_for import usable_threads
from looptune.core.short_floats import rounded
from looptune.ir.nodes import SHORT_FLOATS
from looptune.lower.checkpoints import checkpoints
from looptune.lower.plan import Plan, count, data_decide, has_host_loop


class CpuProgram(Program):
    """A plan loaded on the CPU; ``entry`` is the driver's function, ``threads`` a limit, None for all cores."""

    def __init__(self, plan: Plan, entry: Any, threads: int | None) -> None:
        self.plan = plan
        self.entry = entry
        self.threads = threads
        self.stops = has_host_loop(plan)
        self._names = tuple(p.name for p in plan.codelet.params)
        self._halves = tuple(k for k, p in enumerate(plan.codelet.params) if p.dtype in SHORT_FLOATS)
        self._all = usable_threads()
        self._process = os.getpid()

    def run(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None) -> None:
        self._call(arrays, scalars, (np.zeros(2, np.int64),) if self.stops else ())

    def run_within(
        self, limit: TimeLimit, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None
    ) -> PartialRun:
        sizes = {n: int(v) for n, v in scalars.items() if float(v).is_integer()}
        launches = count(self.plan.steps, sizes)
        if self.stops:
            counted = None if data_decide(self.plan) else launches
            return run_watched(
                lambda told: self._call(arrays, scalars, (told,)), limit, counted, checkpoints(self.plan, sizes)
            )
        start = time.perf_counter_ns()
        self.run(arrays, scalars)
        return PartialRun((time.perf_counter_ns() - start) / 1e3, launches, launches)

    def _call(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], told: tuple[Any, ...]) -> None:
        """``told``: whether to stop, and how many launches were made.

        What is done here besides is as short as may be, for it counts: after the arrays have been through the caches,
        asking Numba for its threads takes 12 us of an Intel Xeon.
        """
        given = [arrays[name] if name in arrays else scalars[name] for name in self._names]
        for k in self._halves:
            name = self._names[k]
            kind = self.plan.codelet.params[k].dtype
            given[k] = arrays[name].view(np.uint16) if name in arrays else rounded(scalars[name], kind)
        alone = os.getpid() != self._process  # a fork copies no thread
        if alone or self.threads is None or self.threads >= self._all:
            self.entry(*given, 1 if alone else self._all, *told)
            return
        before = get_num_threads()
        set_num_threads(min(self.threads, before))  # of this thread alone
        try:
            self.entry(*given, get_num_threads(), *told)
        finally:
            set_num_threads(before)
