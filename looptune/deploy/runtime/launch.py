"""A plan on one device, at one set of sizes and on one stream, ready to be launched repeatedly.

    few launches     their parameters stay in memory: only the addresses of arrays that have moved are written
    many             launched one by one; when called again with the same arrays, all replayed from one CUDA graph

Parameters are in Numba's layout: an array is two null pointers, items, item size, data, shape and stride.
"""

from __future__ import annotations

import ctypes
import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from cuda.bindings import driver

from looptune.backends.cuda.driver import MAX_BLOCKS_Y, SUCCESS, WORD, Graph, check, max_cooperative_blocks

FEW = 8
"""Launches whose parameters are all kept in memory."""
GRAPHS = 4
"""Graphs kept of one plan: for callers that take turns with a few sets of arrays."""
ARRAY_WORDS, COUNT, ITEM, DATA, EXTENT, STRIDE = 7, 2, 3, 4, 5, 6

C_TYPES = {
    "int8": ctypes.c_int8, "int16": ctypes.c_int16, "int32": ctypes.c_int32, "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8, "uint16": ctypes.c_uint16, "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float, "float64": ctypes.c_double, "bool": ctypes.c_bool,
}  # fmt: skip


Grid = Sequence[int] | int


class GridTooLarge(ValueError):
    """The grid of a kernel has more blocks than a GPU takes, or than it runs at one time where they have to."""


class ArgumentSlot:
    """A placeholder for an argument of the call while a plan is bound: number ``k`` of its arrays, or of its floats."""

    def __init__(self, k: int) -> None:
        self.k = k


class Scratch:
    """Device memory that belongs to a plan."""

    def __init__(self, count: int, dtype: str, zeros: bool) -> None:
        self.count = count
        size = max(1, count * np.dtype(dtype).itemsize)
        self.pointer = int(check(driver.cuMemAlloc(size)))
        if zeros:
            check(driver.cuMemsetD8(self.pointer, 0, size))
            check(driver.cuStreamSynchronize(driver.CUstream(0)))  # a launch on another stream would not wait

    def __del__(self) -> None:
        if driver is not None and hasattr(self, "pointer"):
            driver.cuMemFree(self.pointer)


class ParameterBlock:
    """The parameters of one kernel in memory.

    ``arrays``: the words of each array of the call; ``floats`` and ``own``: where the call's floats are, and the sizes
    and host loop variables in the order they are given.
    """

    def __init__(self, kernel: Any, block: Sequence[int], types: Sequence[str], args: Sequence[Any]) -> None:
        self.kernel = kernel
        self.block = (*block, 1, 1)[:3]
        lengths = [ARRAY_WORDS if "[" in t else 1 for t in types]
        self.memory = (ctypes.c_int64 * max(1, sum(lengths)))()
        start = ctypes.addressof(self.memory)
        self.pointers = (ctypes.c_void_p * len(self.memory))(*(start + WORD * k for k in range(len(self.memory))))
        self.at = ctypes.addressof(self.pointers)
        self.arrays: list[tuple[int, int]] = []
        self.floats: list[tuple[int, Any]] = []
        self.own: list[Any] = []
        word = 0
        for kind, length, arg in zip(types, lengths, args, strict=True):
            if length == ARRAY_WORDS:
                self._array(word, np.dtype(kind.partition("[")[0]).itemsize, arg)
            else:
                slot = C_TYPES[kind].from_buffer(self.memory, WORD * word)
                self.own += [] if isinstance(arg, ArgumentSlot) else [slot]
                self.floats += [(arg.k, slot)] if isinstance(arg, ArgumentSlot) else []
            word += length

    def _array(self, word: int, item: int, arg: ArgumentSlot | Scratch) -> None:
        self.memory[word + ITEM] = self.memory[word + STRIDE] = item
        if isinstance(arg, ArgumentSlot):
            self.arrays.append((arg.k, word))
        else:
            self.place(word, arg.pointer, arg.count)

    def place(self, word: int, pointer: int, count: int) -> None:
        self.memory[word + COUNT] = self.memory[word + EXTENT] = count
        self.memory[word + DATA] = pointer

    def fill(self, args: Sequence[Any]) -> None:
        """Set the sizes and host loop variables of one launch."""
        values = (a for a in args if isinstance(a, int))
        for slot, value in zip(self.own, values, strict=True):
            slot.value = value


class BoundPlan:
    """A plan that is bound to a device.

    ``plan(launch, new, *params)`` calls ``launch(kernel, grid, block, *args)`` for each launch in turn, and
    ``new(count, dtype)`` for its own arrays, with ``zeros=True`` for those that have to be zero. A grid that is a
    number is the number of blocks that each multiprocessor runs of a kernel whose blocks wait for each other.
    ``params`` are the sizes, and a Given for every other parameter.
    """

    def __init__(
        self,
        plan: Callable[..., None],
        params: Sequence[Any],
        types: Callable[[Any], Sequence[str]],
        loaded: Callable[[Any], Any],
        stream: int,
    ) -> None:
        self.plan, self.params, self.types, self.loaded = plan, params, types, loaded
        self.stream = driver.CUstream(stream)
        self.scratch: list[Scratch] = []
        self.made = 0
        self.frames: dict[Any, ParameterBlock] = {}
        # With what launches it, and all that the driver is told.
        self.launches: list[tuple[ParameterBlock, Callable[..., Any], tuple[Any, ...]]] | None = []
        self.pointers: tuple[int, ...] = ()
        self.counts: tuple[int, ...] = ()
        self.floats: tuple[float, ...] = ()
        self.last: Any = None
        self.graphs: OrderedDict[Any, Graph] = OrderedDict()
        self.own_stream: Any = None
        self._walk(self._keep)
        if len(self.launches) > FEW:
            self.launches = None

    def place(self, pointers: tuple[int, ...], counts: tuple[int, ...]) -> None:
        """Set the address and the number of elements of each array for the next calls."""
        self.pointers, self.counts = pointers, counts
        for frame, *_ in self.launches or ():
            self._settle(frame)

    def run(self, floats: tuple[float, ...]) -> None:
        if self.launches is None:
            self._many(floats)
            return
        for frame, call, told in self.launches:
            for k, slot in frame.floats:
                slot.value = floats[k]
            status = call(*told)
            if status[0] != SUCCESS:
                check(status)

    def _many(self, floats: tuple[float, ...]) -> None:
        # As bytes: NaN is equal to itself then, and zero is not minus zero.
        call = (self.pointers, self.counts, struct.pack(f"{len(floats)}d", *floats))
        self.floats = floats
        if check(driver.cuStreamIsCapturing(self.stream)):
            self._step(self.stream)
            return
        graph = self.graphs.get(call)
        if graph is None and call == self.last:
            graph = self.graphs[call] = self._captured()
            while len(self.graphs) > GRAPHS:
                self.graphs.popitem(last=False)
        self.last = call
        if graph is None:
            self._step(self.stream)
        else:
            self.graphs.move_to_end(call)
            graph.launch(self.stream)

    def _captured(self) -> Graph:
        if self.own_stream is None:
            self.own_stream = check(driver.cuStreamCreate(1))
        return Graph(self.own_stream, self._step)

    def _step(self, stream: Any) -> None:
        """Launch the kernels one after the other, after filling their frames."""
        for frame in self.frames.values():
            self._settle(frame)

        def launch(kernel: Any, grid: Grid, block: Sequence[int], *args: Any) -> None:
            frame = self._frame(kernel, block, args)
            frame.fill(args)
            call, told = _call(frame, kernel, grid, stream)
            check(call(*told))

        self._walk(launch)

    def _walk(self, launch: Callable[..., None]) -> None:
        self.made = 0
        self.plan(launch, self._new, *self.params)

    def _new(self, count: int, dtype: str, zeros: bool = False) -> Scratch:
        """Return the same memory in every walk: it is asked for in the same order."""
        if self.made == len(self.scratch):
            self.scratch.append(Scratch(int(count), dtype, zeros))
        self.made += 1
        return self.scratch[self.made - 1]

    def _frame(self, kernel: Any, block: Sequence[int], args: Sequence[Any]) -> ParameterBlock:
        """Return the frame of a kernel; ``ArgumentSlot`` and ``Scratch`` live as long as this object."""
        key = (kernel, block, tuple(id(a) for a in args if isinstance(a, ArgumentSlot | Scratch)))
        frame = self.frames.get(key)
        if frame is None:
            frame = self.frames[key] = ParameterBlock(self.loaded(kernel), block, self.types(kernel), args)
            self._settle(frame)
        return frame

    def _settle(self, frame: ParameterBlock) -> None:
        for k, word in frame.arrays if self.pointers else ():
            frame.place(word, self.pointers[k], self.counts[k])
        for k, slot in frame.floats if self.floats else ():
            slot.value = self.floats[k]

    def _keep(self, kernel: Any, grid: Grid, block: Sequence[int], *args: Any) -> None:
        """Note a launch, as long as there are few; in any case all kernels are compiled and their grids checked."""
        assert self.launches is not None, "they are being noted"
        if len(self.launches) > FEW:
            _call(self._frame(kernel, block, args), kernel, grid, self.stream)
            return
        frame = ParameterBlock(self.loaded(kernel), block, self.types(kernel), args)
        frame.fill(args)
        self.launches.append((frame, *_call(frame, kernel, grid, self.stream)))

    def __del__(self) -> None:
        if driver is not None and getattr(self, "own_stream", None) is not None:
            driver.cuStreamDestroy(self.own_stream)


def _call(frame: ParameterBlock, kernel: Any, grid: Grid, stream: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return what launches a kernel, and all that the driver is told."""
    if not isinstance(grid, int):
        whole = _whole(kernel, grid)
        return driver.cuLaunchKernel, (frame.kernel, *whole, *frame.block, 0, stream, frame.at, 0)
    blocks, fit = max_cooperative_blocks(frame.kernel, frame.block[0], grid)
    if fit < grid:
        raise GridTooLarge(f"{kernel.__name__} needs {grid} blocks at a time on a multiprocessor, {fit} fit")
    return driver.cuLaunchCooperativeKernel, (frame.kernel, blocks, 1, 1, *frame.block, 0, stream, frame.at)


def _whole(kernel: Any, grid: Sequence[int]) -> tuple[int, ...]:
    """Return the grid in three dimensions."""
    x, y, z = (*grid, 1, 1)[:3]
    if max(y, z) > MAX_BLOCKS_Y:
        raise GridTooLarge(f"{kernel.__name__} needs {max(y, z)} blocks along y or z, the limit is {MAX_BLOCKS_Y}")
    return int(x), int(y), int(z)
