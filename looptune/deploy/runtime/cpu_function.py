"""A tuned function on a CPU: arrays with gaps are copied, the others are used without a copy."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from looptune.backends.numba_cpu.parallel_for import usable_threads
from looptune.deploy.runtime.arguments import Parameter, Shape, number, on_host
from looptune.deploy.runtime.function import Function, Tuned, as_compiled, in_order
from looptune.deploy.runtime.lookup import Device
from looptune.runtime.array_reach import Reach
from looptune.runtime.cpu_name import cpu_name

KNOWN_SIZES = 1024
"""Sets of sizes that are remembered."""

Ready = tuple["tuple[Shape, ...]", "Callable[..., None]", "tuple[Reach | None, ...]"]


class Host(Function):
    """The plans' ``launches`` make compiled functions of C's parameters and the number of threads."""

    def __init__(self, tuned: Tuned) -> None:
        super().__init__(tuned)
        self.known: dict[tuple[int, ...], Ready] = {}
        self.seen: tuple[tuple[int, ...], tuple[tuple[int, int], ...]] | None = None

    def __call__(
        self, ints: tuple[Any, ...], floats: tuple[Any, ...], arrays: tuple[Any, ...], stream: Any = None
    ) -> None:
        values = self.values(ints)
        shapes, function, reach = self.known[values] if values in self.known else self.ready(values)
        hosts = [on_host(p, a, s) for p, a, s in zip(self.arrays, arrays, shapes, strict=True)]
        used = [_usable(host, shape) for host, shape in zip(hosts, shapes, strict=True)]
        places = tuple((a.ctypes.data, a.size) for a in used)
        if self.seen != (values, places):
            self.check_memory(reach, places)
            self.check_gaps(hosts, used)
            self.seen = (values, places)
        real = [number(p, value) for p, value in zip(self.floats, floats, strict=True)]
        params = in_order(self.tuned.params, values, real, as_compiled(used))
        function(*params, usable_threads())
        for p, host, array in zip(self.arrays, hosts, used, strict=True):
            if p.written and host is not array and not np.shares_memory(host, array):
                host[...] = array.reshape(host.shape)

    def check_gaps(self, hosts: Sequence[np.ndarray], used: Sequence[np.ndarray]) -> None:
        """Raise ValueError if an array that was copied shares memory with a written one.

        Arrays with gaps are copied.
        """
        for k, (p, mine) in enumerate(zip(self.arrays, hosts, strict=True)):
            for q, other, copy in zip(self.arrays, hosts, used, strict=True):
                copied = q is not p and copy is not other and (p.written or q.written)
                if copied and used[k] is not copy and np.shares_memory(mine, other):
                    raise ValueError(f"{p.name} overlaps {q.name}, and one of them is written: pass a copy of one")

    def ready(self, values: tuple[int, ...]) -> Ready:
        """Return the shapes of the arrays at these sizes, the compiled function, and the extents that loops access."""
        shapes, device = self.shapes(values), self.device()
        match = self.look_up(device, values)
        self.warn(match, device, values, 4)
        if len(self.known) > KNOWN_SIZES:
            self.known.clear()
        self.known[values] = (shapes, self.tuned.plans[match.plan].launches(), self.reach(values))
        return self.known[values]

    def device(self) -> Device:
        return this_cpu()

    def copied(self, p: Parameter, array: Any, shape: Shape, stream: Any) -> np.ndarray:
        return np.array(_usable(on_host(p, array, shape), shape))


@cache
def this_cpu() -> Device:
    """Return this CPU as a device, with the name that results give it."""
    return Device(cpu_name(), len(os.sched_getaffinity(0)), platform.machine())


def _usable(array: np.ndarray, shape: Shape) -> np.ndarray:
    """Return the array, or a copy, as compiled code takes it.

    Rows one after the other, writeable, of the declared rank.
    """
    if array.ndim == len(shape) and array.flags.c_contiguous and array.flags.writeable:
        return array
    shaped = array.reshape(-1) if len(shape) == 1 else array
    if shaped.flags.c_contiguous and shaped.flags.writeable and (not array.size or np.shares_memory(shaped, array)):
        return shaped
    return np.array(shaped, order="C")
