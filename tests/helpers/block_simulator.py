"""Numba's CUDA simulator with a greenlet for each thread of a block, instead of an operating system's thread.

They run one at a time, each up to the next barrier, in an order shuffled anew after each: what depends on a barrier
that is missing comes out wrong. Integers are Python's, cut to size where a kernel casts them, as Numba computes with 64
bits between casts and NumPy does not. Importing this is enough; it is for a process with ``NUMBA_ENABLE_CUDASIM=1``.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from greenlet import greenlet
from numba import config, cuda
from numba.cuda.simulator import kernel, kernelapi
from numba.cuda.simulator.cudadrv.devicearray import FakeWithinKernelCUDAArray

ORDER = random.Random(0)


class Thread:
    """One thread of a block; ``copies`` are its groups of copies that are on their way."""

    running: Thread

    def __init__(self, block: Block, at: tuple[int, ...], action: Any) -> None:
        self.block = block
        self.blockIdx, self.threadIdx = block.at, kernelapi.Dim3(*at)
        self.thread_id = at[0] + block.shape[0] * (at[1] + block.shape[1] * at[2])
        self.greenlet = greenlet(action)
        self.copies: list[list[Any]] = [[]]

    def advance(self) -> bool:
        """Up to its next barrier; whether it has come to one."""
        Thread.running = self
        self.greenlet.switch()
        return not self.greenlet.dead

    def syncthreads(self, vote: object = None) -> list[object]:
        """What each thread said at this barrier."""
        assert self.greenlet.parent is not None, "a thread runs within its block"
        self.vote = vote
        self.greenlet.parent.switch()
        return self.block.votes

    def syncthreads_count(self, vote: object) -> int:
        return sum(1 for said in self.syncthreads(vote) if said)

    def syncthreads_and(self, vote: object) -> int:
        return int(all(self.syncthreads(vote)))

    def syncthreads_or(self, vote: object) -> int:
        return int(any(self.syncthreads(vote)))


class Block:
    """In place of the simulator's BlockManager."""

    def __init__(self, function: Any, grid: Any, shape: tuple[int, ...], debug: bool) -> None:
        self.function, self.shape = function, (*shape, 1, 1)[:3]

    def run(self, at: tuple[int, ...], *args: Any) -> None:
        self.at = kernelapi.Dim3(*at)
        plain = [_plain(a) for a in args]
        places = np.ndindex(*self.shape)
        waiting = [Thread(self, place, lambda: self.function(*plain)) for place in places]
        while waiting:
            ORDER.shuffle(waiting)
            met = [thread for thread in waiting if thread.advance()]
            assert len(met) in (0, len(waiting)), f"{len(waiting) - len(met)} threads ended before a barrier of others"
            self.votes = [thread.vote for thread in met]
            waiting = met


class Integers(np.ndarray):
    """An array whose elements are read as Python's integers."""

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        return found if isinstance(found, np.ndarray) else found.item()


def _plain(given: Any) -> Any:
    if isinstance(given, FakeWithinKernelCUDAArray):
        array: np.ndarray = given._item._ary
        return array.view(Integers) if array.dtype.kind in "iu" else array
    return given.item() if isinstance(given, np.integer) else given


class Cast:
    """An integer type as kernels call it, and as they name it of an array."""

    def __init__(self, name: str) -> None:
        self.dtype, bits = np.dtype(name), 8 * np.dtype(name).itemsize
        self.values, self.least = 1 << bits, 0 if name.startswith("u") else 1 << (bits - 1)

    def __call__(self, value: Any) -> int:
        return (int(value) + self.least) % self.values - self.least


class Float:
    """A floating-point type; an integer is rounded once."""

    def __init__(self, name: str) -> None:
        self.dtype = np.dtype(name)
        self.itemsize = self.dtype.itemsize

    def __call__(self, value: Any) -> Any:
        exact = value if not isinstance(value, int) else np.uint64(value) if value >= 2**63 else np.int64(value)
        return self.dtype.type(exact)


INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
CASTS = {name: Cast(name) for name in INTEGERS} | {name: Float(name) for name in ("float32", "float64")}


class Arrays:
    """In place of NumPy where the simulator makes a kernel's own arrays."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def empty(shape: Any, dtype: Any) -> np.ndarray:
        made = np.empty(shape, dtype)
        return made.view(Integers) if made.dtype.kind in "iu" else made


class Threads:
    """In place of ``threading``, for the simulator to know which thread it is."""

    @staticmethod
    def current_thread() -> Thread:
        return Thread.running


def jit(*args: Any, launch_bounds: object = None, max_registers: object = None, **options: Any) -> Any:
    """``cuda.jit`` with what it tells a compiler, of which the simulator knows nothing."""
    made = simulated(*args, **options)
    if args and callable(args[0]):
        args[0].__globals__.update(CASTS)
        return made

    def decorate(function: Any) -> Any:
        function.__globals__.update(CASTS)
        return made(function)

    return decorate


if config.ENABLE_CUDASIM:
    simulated, cuda.jit = cuda.jit, jit
kernel.BlockManager = Block
kernelapi.threading = Threads
kernelapi.np = Arrays()
