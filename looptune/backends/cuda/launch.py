"""The launcher of CUDA plans, for sweeps and for built modules: parameters in memory, launches, graphs.

    few launches     their parameters stay in memory: only the addresses of arrays that have moved are written
    many             launched one by one; when called again with the same arrays, all replayed from one CUDA graph
    concurrent       as many, and in the graph two kernels at a time

Parameters are in Numba's layout, in which an array is two null pointers, items, item size, data, shape and stride, or
in C's, in which it is a pointer. ``looptune build`` copies this file into its modules.
"""

from __future__ import annotations

import ctypes
import math
import struct
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from cuda.bindings import driver

from looptune.backends.cuda.driver import (
    MAX_BLOCKS_Y,
    SUCCESS,
    WORD,
    Graph,
    Memory,
    allow_shared,
    check,
    max_cooperative_blocks,
)
from looptune.backends.cuda.fork import Fork

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


class TooManyElements(ValueError):
    """An array has more elements than the subscripts of the kernels can address."""


class LoadedKernel(NamedTuple):
    """A kernel on a device: the driver's handle, and the types of its parameters (arrays have a bracket)."""

    name: str
    function: Any
    types: Sequence[str]


class Size(int):
    """An integer parameter of a call, which may be a constant of its kernels; what is computed with it is an int."""


class ArgumentSlot:
    """A placeholder for an argument of the call while a plan is bound: number ``k`` of its arrays, or of its floats."""

    def __init__(self, k: int) -> None:
        self.k = k


class Scratch(Memory):
    """Device memory that belongs to a plan."""

    def __init__(self, count: int, dtype: str, zeros: bool) -> None:
        self.count, self.dtype = count, dtype
        size = max(1, count * np.dtype(dtype).itemsize)
        super().__init__(size)
        if zeros:
            # The default stream cannot be used while a stream is captured that waits for it.
            stream = check(driver.cuStreamCreate(1))
            check(driver.cuMemsetD8Async(self.pointer, 0, size, stream))
            check(driver.cuStreamSynchronize(stream))
            check(driver.cuStreamDestroy(stream))


class ParameterBlock:
    """The parameters of one kernel in memory.

    ``arrays``: the words of each array of the call; ``floats`` and ``own``: where the call's floats are, and the sizes
    and host loop variables in the order they are given.
    """

    def __init__(
        self, kernel: LoadedKernel, block: Sequence[int], args: Sequence[Any], pointers_only: bool = False
    ) -> None:
        """Lay out the arguments of ``kernel``; ``pointers_only``: an array is its pointer, as in C.

        ``block``: its threads along x, y and z, and then the bytes of shared memory that the launch asks for.
        """
        self.kernel, self.pointers_only = kernel, pointers_only
        self.block, self.shared = (*block[:3], 1, 1)[:3], (*block[3:], 0)[0]
        if self.shared:
            allow_shared(kernel.function, self.shared)
        self.blocks = 0
        lengths = [ARRAY_WORDS if "[" in t and not pointers_only else 1 for t in kernel.types]
        self.memory = (ctypes.c_int64 * max(1, sum(lengths)))()
        start = ctypes.addressof(self.memory)
        self.pointers = (ctypes.c_void_p * len(self.memory))(*(start + WORD * k for k in range(len(self.memory))))
        self.at = ctypes.addressof(self.pointers)
        self.arrays: list[tuple[int, int]] = []
        self.floats: list[tuple[int, Any]] = []
        self.own: list[Any] = []
        word = 0
        for kind, length, arg in zip(kernel.types, lengths, args, strict=True):
            if "[" in kind:
                self._array(word, np.dtype(kind.partition("[")[0]).itemsize, arg)
            else:
                slot = C_TYPES[kind].from_buffer(self.memory, WORD * word)
                self.own += [] if isinstance(arg, ArgumentSlot) else [slot]
                self.floats += [(arg.k, slot)] if isinstance(arg, ArgumentSlot) else []
            word += length

    def _array(self, word: int, item: int, arg: ArgumentSlot | Scratch) -> None:
        if not self.pointers_only:
            self.memory[word + ITEM] = self.memory[word + STRIDE] = item
        if isinstance(arg, ArgumentSlot):
            self.arrays.append((arg.k, word))
        else:
            self._place(word, arg.pointer, arg.count)

    def _place(self, word: int, pointer: int, count: int) -> None:
        if self.pointers_only:
            self.memory[word] = pointer
        else:
            self.memory[word + COUNT] = self.memory[word + EXTENT] = count
            self.memory[word + DATA] = pointer

    def place(self, pointers: Sequence[int], counts: Sequence[int]) -> None:
        """Set the addresses and the numbers of elements of the call's arrays."""
        for k, word in self.arrays:
            self._place(word, pointers[k], counts[k])

    def set_floats(self, floats: Sequence[float]) -> None:
        """Set the call's floats."""
        for k, slot in self.floats:
            slot.value = floats[k]

    def fill(self, values: Sequence[int]) -> None:
        """Set the sizes and host loop variables of one launch."""
        for slot, value in zip(self.own, values, strict=True):
            slot.value = value

    def call(self, grid: Grid, stream: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function that launches the kernel, and all that it is passed.

        ``grid`` is the blocks along each dimension, or the blocks on each multiprocessor of a kernel whose blocks wait
        for each other. Raises GridTooLarge for more than a GPU takes, or than it runs at one time.
        """
        if isinstance(grid, int):
            self.blocks = self.blocks or self._cooperative(grid)
            dimensions = (self.blocks, 1, 1)
            return driver.cuLaunchCooperativeKernel, (
                self.kernel.function, *dimensions, *self.block, self.shared, stream, self.at
            )  # fmt: skip
        x, y, z = (*grid, 1, 1)[:3]
        if max(y, z) > MAX_BLOCKS_Y:
            along, needed = ("y", y) if y > MAX_BLOCKS_Y else ("z", z)
            raise GridTooLarge(
                f"{self.kernel.name} needs {needed} blocks along {along}, the limit is {MAX_BLOCKS_Y}"
            )  # fmt: skip
        return driver.cuLaunchKernel, (
            self.kernel.function, int(x), int(y), int(z), *self.block, self.shared, stream, self.at, 0
        )  # fmt: skip

    def _cooperative(self, each: int) -> int:
        blocks, fit = max_cooperative_blocks(self.kernel.function, self.block[0], each, self.shared)
        if fit >= each:
            return blocks
        raise GridTooLarge(
            f"{self.kernel.name}: persistent {each} needs {each} blocks at a time on a multiprocessor, and {fit} fit: "
            f"use persistent {fit}"
            if fit
            else f"{self.kernel.name}: not even one of its blocks fits on a multiprocessor"
        )


class Launcher(ABC):
    """The kernels of a plan at one set of sizes, launched one by one or replayed from a CUDA graph."""

    def __init__(self) -> None:
        self.pointers: tuple[int, ...] = ()
        self.counts: tuple[int, ...] = ()
        self.floats: tuple[float, ...] = ()
        self.last: Any = None
        self.graphs: OrderedDict[Any, Graph] = OrderedDict()
        self.own_stream: Any = None
        self.fork: Fork | None = None
        """Where kernels may run at the same time; it outlives the captures, of which its stream is a part."""

    @abstractmethod
    def step(self, stream: Any) -> None:
        """Launch all kernels of the plan on ``stream``, in order, with the arrays and floats of the call.

        Those that may run at the same time do so where the stream is captured, see ``Fork.serves``.
        """

    def place(self, pointers: tuple[int, ...], counts: tuple[int, ...]) -> None:
        """Set the address and the number of elements of each array for the next calls."""
        self.pointers, self.counts = pointers, counts

    def step_or_replay(self, floats: tuple[float, ...], stream: Any) -> None:
        """Launch all kernels; the second call with the same arguments records a graph, which later ones replay."""
        # As bytes: NaN is equal to itself then, and zero is not minus zero.
        call = (self.pointers, self.counts, struct.pack(f"{len(floats)}d", *floats))
        self.floats = floats
        if check(driver.cuStreamIsCapturing(stream)):
            self.step(stream)
            return
        graph = self.graphs.get(call)
        if graph is None and call == self.last:
            graph = self.graphs[call] = self._captured()
            while len(self.graphs) > GRAPHS:
                self.graphs.popitem(last=False)
        self.last = call
        if graph is None:
            self.step(stream)
        else:
            self.graphs.move_to_end(call)
            graph.launch(stream)

    def _captured(self) -> Graph:
        if self.own_stream is None:
            self.own_stream = check(driver.cuStreamCreate(1))
        return Graph(self.own_stream, self.step)

    def __del__(self) -> None:
        if driver is not None and getattr(self, "own_stream", None) is not None:
            driver.cuStreamDestroy(self.own_stream)


class BoundPlan(Launcher):
    """A built module's plan, bound to a device and a stream.

    ``plan(launch, new, *params)`` calls ``launch(kernel, grid, block, *args)`` for each launch in turn, and
    ``new(count, dtype)`` for its own arrays, with ``zeros=True`` for those that have to be zero. With ``flag=True`` the
    array is a number by which data decide on launches, and ``new`` also returns a function that waits and tells whether
    it is not zero. A grid that is a number is the number of blocks that each multiprocessor runs of a kernel whose
    blocks wait for each other. With ``beside=True`` the kernel may run at the same time as that of the call directly
    before.
    ``params`` are the sizes, and an ArgumentSlot for every other parameter; ``load`` compiles and loads a kernel, whose
    parameters with these numbers have these values if they are a ``Size``. Its own arrays have at most ``most``
    elements, else TooManyElements is raised.
    """

    def __init__(
        self, plan: Callable[..., None], params: Sequence[Any],
        load: Callable[[Any, tuple[tuple[int, int], ...]], LoadedKernel], stream: int,
        most: float = math.inf,
    ) -> None:  # fmt: skip
        super().__init__()
        self.plan, self.params, self.load, self.most = plan, params, load, most
        self.stream = driver.CUstream(stream)
        self.scratch: list[Scratch] = []
        self.made = 0
        self.reading: Any = None
        """The stream on which flags are read, None as long as launches are only looked at."""
        self.decided = False
        self.frames: dict[Any, ParameterBlock] = {}
        # With what launches it, and all that the driver is told.
        self.launches: list[tuple[ParameterBlock, Callable[..., Any], tuple[Any, ...]]] | None = []
        self._walk(self._keep)
        # Only a graph runs two at a time.
        if len(self.launches) > FEW or self.fork is not None or self.decided:
            self.launches = None

    def place(self, pointers: tuple[int, ...], counts: tuple[int, ...]) -> None:
        super().place(pointers, counts)
        for frame, *_ in self.launches or ():
            self._settle(frame)

    def run(self, floats: tuple[float, ...]) -> None:
        """Run the plan once, asynchronously, with the arrays that were placed."""
        if self.decided:
            if check(driver.cuStreamIsCapturing(self.stream)):
                raise ValueError("the call cannot be captured in a CUDA graph: data decide how many launches it makes")
            self.floats = floats
            self.step(self.stream)
            return
        if self.launches is None:
            self.step_or_replay(floats, self.stream)
            return
        for frame, call, told in self.launches:
            for k, slot in frame.floats:
                slot.value = floats[k]
            status = call(*told)
            if status[0] != SUCCESS:
                check(status)

    def step(self, stream: Any) -> None:
        for frame in self.frames.values():
            self._settle(frame)
        self.reading = stream
        fork = self.fork if self.fork is not None and self.fork.serves(stream) else None
        waiting: list[Callable[[Any], None]] = []

        def launch(kernel: Any, grid: Grid, block: Sequence[int], *args: Any, beside: bool = False) -> None:
            if fork is None:
                self._launch(kernel, grid, block, args, stream)
                return
            # What waits is launched with the next one, or before it; at most two run at the same time.
            if waiting and not beside:
                fork.run(stream, [waiting.pop()])
            waiting.append(lambda on: self._launch(kernel, grid, block, args, on))
            if len(waiting) == 2:
                fork.run(stream, waiting)
                waiting.clear()

        self._walk(launch)
        for last in waiting:
            last(stream)

    def _launch(self, kernel: Any, grid: Grid, block: Sequence[int], args: Sequence[Any], stream: Any) -> None:
        frame = self._frame(kernel, block, args)
        frame.fill(_sizes(args))
        call, told = frame.call(grid, stream)
        check(call(*told))

    def _walk(self, launch: Callable[..., None]) -> None:
        self.made = 0
        self.plan(launch, self._new, *self.params)

    def _new(self, count: int, dtype: str, zeros: bool = False, flag: bool = False) -> Any:
        """Return the same memory in every walk: it is asked for in the same order."""
        if count > self.most:
            raise TooManyElements(f"an array of the kernels has {count} elements, the limit is {self.most}")
        if self.made == len(self.scratch):
            self.scratch.append(Scratch(int(count), dtype, zeros))
        self.made += 1
        made = self.scratch[self.made - 1]
        if not flag:
            return made
        self.decided = True
        return made, (once() if self.reading is None else lambda: self._holds(made))

    def _holds(self, flag: Scratch) -> bool:
        """Wait for the launches so far, and read a flag that they have set."""
        found = np.zeros(1, flag.dtype)
        check(driver.cuMemcpyDtoHAsync(found.ctypes.data, flag.pointer, found.nbytes, self.reading))
        check(driver.cuStreamSynchronize(self.reading))
        return bool(found[0])

    def _frame(self, kernel: Any, block: Sequence[int], args: Sequence[Any]) -> ParameterBlock:
        """Return the frame of a kernel; ``ArgumentSlot`` and ``Scratch`` live as long as this object."""
        sizes = constant_sizes(args)
        key = (kernel, block, sizes, tuple(id(a) for a in args if isinstance(a, ArgumentSlot | Scratch)))
        frame = self.frames.get(key)
        if frame is None:
            frame = self.frames[key] = ParameterBlock(self.load(kernel, sizes), block, args)
            self._settle(frame)
        return frame

    def _settle(self, frame: ParameterBlock) -> None:
        if self.pointers:
            frame.place(self.pointers, self.counts)
        if self.floats:
            frame.set_floats(self.floats)

    def _keep(self, kernel: Any, grid: Grid, block: Sequence[int], *args: Any, beside: bool = False) -> None:
        """Note a launch, as long as there are few; in any case all kernels are compiled and their grids checked."""
        assert self.launches is not None, "they are being noted"
        if beside and self.fork is None:
            self.fork = Fork()
        if len(self.launches) > FEW:
            self._frame(kernel, block, args).call(grid, self.stream)
            return
        frame = ParameterBlock(self.load(kernel, constant_sizes(args)), block, args)
        frame.fill(_sizes(args))
        self.launches.append((frame, *frame.call(grid, self.stream)))


def once() -> Callable[[], bool]:
    """Return what takes the place of reading a flag where launches are only looked at: it is true the first time."""
    left = [True]
    return lambda: bool(left and left.pop())


def constant_sizes(args: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Return the numbers of the arguments that may be constants, each with its value."""
    return tuple((k, int(a)) for k, a in enumerate(args) if isinstance(a, Size))


def _sizes(args: Sequence[Any]) -> list[int]:
    return [a for a in args if isinstance(a, int)]
