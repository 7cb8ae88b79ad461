"""A tuned function on NVIDIA GPUs: a call finds its plan, places its arrays and launches.

    sizes, stream, context ─▶ BoundPlan, made at the first call: looked up, compiled (PTX, cubin), bound
    arrays ─▶ addresses ─▶ BoundPlan.place, if they have moved ─▶ BoundPlan.run

The current context determines the device. Every thread has its own bound plans, so that threads share only compiled
kernels.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
from cuda.bindings import driver
from cuda.core import ObjectCode

from looptune.backends.cuda.driver import MOST_ELEMENTS, Memory, check
from looptune.backends.cuda.launch import (
    ArgumentSlot,
    BoundPlan,
    GridTooLarge,
    LoadedKernel,
    Size,
    TooManyElements,
    constant_sizes,
    once,
)
from looptune.deploy.runtime.arguments import (
    READERS,
    DeviceBuffer,
    ExpectedArray,
    Parameter,
    Shape,
    expected_array,
    number,
    on_device,
    on_host,
    reader,
    tensor_memory,
)
from looptune.deploy.runtime.constant_sizes import MOST_SPECIALIZED, SPECIALIZE, Sizes, with_constants
from looptune.deploy.runtime.cubin_cache import cached_cubin
from looptune.deploy.runtime.devices import (
    allowed_in_capture,
    capturing,
    context_device,
    cubin,
    current,
    device_of,
    device_of_pointer,
    entry_of,
    fetched,
    handle,
    order,
)
from looptune.deploy.runtime.function import Function, Tuned
from looptune.deploy.runtime.lookup import Device, Match
from looptune.runtime.array_reach import Reach

BOUND = 64
"""Sets of sizes, streams and contexts that a thread keeps ready."""
KNOWN = 1024
"""Addresses that are known to be on the device of a call."""
WIDE = 16
"""Bytes that a kernel with tiles reads at a time, where its plan says so."""
DEFAULT_STREAMS = (0, 1)


class Compilation(Thread):
    """Kernels that are compiled in the background; ``error`` is why they could not be, None where they were."""

    error: BaseException | None = None

    def run(self) -> None:
        try:
            super().run()
        except BaseException as error:  # a later call says so
            self.error = error


Stage = tuple[Parameter, Any, DeviceBuffer]
"""An array on the host, and its copy on the device."""


class PreparedCall(NamedTuple):
    """What is computed once for calls with the same sizes.

    ``expected``: the type and shape of each array; ``counts``: their elements; ``wide``: the numbers of the arrays that
    are read WIDE bytes at a time; ``ordinal``: the number of the device; ``size_values``: addresses known to be on it;
    ``reach``: the elements that the loops access; ``pending``: the kernels for these sizes, while they are compiled;
    ``before``: the launches until then, whose memory a graph of the program's own may use.
    """

    bound: BoundPlan
    expected: tuple[ExpectedArray, ...]
    counts: tuple[int, ...]
    wide: tuple[int, ...]
    ordinal: int
    size_values: set[int]
    reach: tuple[Reach | None, ...] = ()
    pending: Thread | None = None
    before: BoundPlan | None = None


class Gpu(Function):
    """A tuned function on NVIDIA GPUs."""

    def __init__(self, tuned: Tuned) -> None:
        super().__init__(tuned)
        self.own = threading.local()
        self.lock = threading.RLock()
        self.compiled: dict[tuple[str, Any, Sizes], Any] = {}
        self.prepared: dict[tuple[str, Any, Sizes], bytes] = {}
        self.specialized: set[tuple[int, ...]] = set()
        self.compiling: dict[tuple[str, tuple[int, ...]], Compilation] = {}
        self.captured: set[BoundPlan] = set()
        """Those whose own arrays a graph of the program uses, which may be launched as long as the program runs."""

    def __call__(
        self, ints: tuple[Any, ...], floats: tuple[Any, ...], arrays: tuple[Any, ...], stream: Any = None
    ) -> None:
        where = 0 if stream is None else handle(stream)
        context = current()
        try:
            ready: PreparedCall = self.own.ready[context, where, ints]
        except (AttributeError, KeyError, TypeError):
            ready = self.ready(context, where, ints)
        if ready.pending is not None and not ready.pending.is_alive() and not capturing(where):
            ready = self._exchanged(ready, context, where, self.values(ints))
        bound, counts = ready.bound, ready.counts
        lasts: tuple[int, ...] = ()
        stages: tuple[Stage, ...] = ()
        # Most calls have arrays of one type, each exactly what is declared.
        kind = type(arrays[0]) if arrays else type(None)
        read, last = READERS.get(kind) or reader(kind)
        pointers = read(ready.expected, arrays) if arrays else ()
        if pointers is None:
            pointers, counts, lasts, stages = self._each(ready, arrays, where)
        elif last is not None and (stream := last()) != where:
            lasts = (stream,)
        if pointers != bound.pointers or counts != bound.counts:
            self._checked(ready, pointers, counts)
            bound.place(pointers, counts)
        for x in floats:
            if type(x) is not float:
                floats = tuple(number(p, x) for p, x in zip(self.floats, floats, strict=True))
                break
        if bound.scratch and capturing(where):
            self.captured.add(bound)
        others = _to_wait_for(lasts, where) if lasts else ()
        for other in others:
            order(other, where)
        bound.run(floats)
        for other in others:
            order(where, other)
        if stages:
            _fetch(stages, where)

    def _each(
        self, ready: PreparedCall, arrays: tuple[Any, ...], where: int
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[Stage, ...]]:
        """Return the addresses of arrays of any types, and what a launch needs of them.

        These are their numbers of elements, the streams on which they were last written, and the copies of those on the
        host.

        TypeError and ValueError for what does not fit.
        """
        places: list[DeviceBuffer] = []
        stages: list[Stage] = []
        for p, wanted, array in zip(self.arrays, ready.expected, arrays, strict=True):
            read, last = READERS.get(type(array)) or reader(type(array))
            exact = read((wanted,), (array,))
            place = on_device(p, array, wanted.shape, where) if exact is None else None
            if exact is not None:
                place = DeviceBuffer(exact[0], wanted.items, None if last is None else last())
            elif place is None:
                place = _stage(on_host(p, array, wanted.shape), where)
                stages.append((p, array, place))
            places.append(place)
        lasts = dict.fromkeys(place.stream for place in places if place.stream is not None)
        return tuple(p.pointer for p in places), tuple(p.items for p in places), tuple(lasts), tuple(stages)

    def _checked(self, ready: PreparedCall, pointers: tuple[int, ...], counts: tuple[int, ...]) -> None:
        """Check the arrays of a call.

        Raises ValueError if one is on another device than the call, begins where it cannot be read, is too short for
        the loops, overlaps another, or has elements that the subscripts of the kernels may not address.
        """
        for p, pointer, items in zip(self.arrays, pointers, counts, strict=True):
            if pointer not in ready.size_values:
                _known(p, pointer, items, ready)
        for p, items, reach in zip(self.arrays, counts, ready.reach, strict=True):
            if reach is None and items > ready.bound.most:
                raise ValueError(f"{p.name} has {items} elements, the limit is {ready.bound.most} where the C does not "
                                 f"declare its extent: declare it, as in {p.name}[n]")  # fmt: skip
        self.check_memory(ready.reach, tuple(zip(pointers, counts, strict=True)))
        for k in ready.wide:
            if pointers[k] % WIDE:
                raise ValueError(f"{self.arrays[k].name} must begin at a multiple of {WIDE} bytes: pass a copy")

    def device(self) -> Device:
        current()
        return device_of()

    def match(self, ints: tuple[Any, ...]) -> Match:
        return self._usable(self.device(), self.values(ints))[0]

    def copied(self, p: Parameter, array: Any, shape: Shape, stream: Any) -> np.ndarray:
        where = 0 if stream is None else handle(stream)
        current()
        place = on_device(p, array, shape, where)
        if place is None:
            return np.array(on_host(p, array, shape), order="C").reshape(_declared(shape, array.size))
        for other in {where, place.stream} - {None}:
            check(driver.cuStreamSynchronize(driver.CUstream(other)))
        return fetched(place.pointer, place.items, p.dtype).reshape(_declared(shape, place.items))

    def ready(self, context: int, where: int, ints: tuple[Any, ...]) -> PreparedCall:
        """Return the launches for sizes of any integer type; new sizes are looked up, compiled and laid out."""
        values = self.values(ints)
        if not hasattr(self.own, "ready"):
            self.own.ready = OrderedDict()
        held: OrderedDict[tuple[int, int, tuple[int, ...]], PreparedCall] = self.own.ready
        key = (context, where, values)
        if key not in held:
            with allowed_in_capture():
                held[key] = self._made(context, where, values)
            while len(held) > BOUND:
                held.popitem(last=False)
        return held[key]

    def _made(self, context: int, where: int, values: tuple[int, ...]) -> PreparedCall:
        shapes = self.shapes(values)
        device, ordinal = device_of(), context_device(context)
        begun = self._begun(device, values)
        pending = begun if begun is not None and begun.is_alive() else None
        failed = None if begun is None or pending is not None else begun.error
        constant = pending is None and failed is None and self._specializes(values)
        match, bound = self._first_that_runs(device, values, where, constant)
        self.warn(match, device, values, 5)
        if failed is not None:
            self.warn_of_failure(failed, values, 5)
        wide = self.tuned.plans[match.plan].wide
        wanted = tuple(expected_array(p, shape) for p, shape in zip(self.arrays, shapes, strict=True))
        numbers = tuple(k for k, p in enumerate(self.arrays) if p.name in wide)
        counts = tuple(w.items for w in wanted)
        return PreparedCall(bound, wanted, counts, numbers, ordinal, set(), self.reach(values), pending)

    def _exchanged(self, ready: PreparedCall, context: int, where: int, values: tuple[int, ...]) -> PreparedCall:
        """Return the launches of the kernels that were compiled in the background."""
        made = self._made(context, where, values)._replace(before=ready.bound)
        self.own.ready[context, where, values] = made
        return made

    def _sizes(self, values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(v for p, v in zip(self.integers, values, strict=True) if p.size)

    def _marked(self, values: tuple[int, ...]) -> list[int]:
        """Return the integers of a call, those as ``Size`` that are to be constants."""
        return [Size(v) if p.size else v for p, v in zip(self.integers, values, strict=True)]

    def _specializes(self, values: tuple[int, ...]) -> bool:
        """Return whether the sizes are to be constants of kernels."""
        sizes = self._sizes(values)
        with self.lock:
            if SPECIALIZE is not False and len(self.specialized) < MOST_SPECIALIZED:
                self.specialized.add(sizes)
            return SPECIALIZE is not False and sizes in self.specialized

    def _begun(self, device: Device, values: tuple[int, ...]) -> Compilation | None:
        """Return what compiles, or compiled, the kernels for these sizes, if that is to be done in the background."""
        if SPECIALIZE != "background" or not self._specializes(values):
            return None
        key = device.capability, self._sizes(values)
        with self.lock:
            if key not in self.compiling:
                found: list[tuple[Any, Sizes]] = []
                plan = self.tuned.plans[self._usable(device, values)[0].plan]
                plan.launches(lambda k, grid, block, *args, **_: found.append((k, constant_sizes(args))),
                              _unmade, *self._params(self._marked(values)))  # fmt: skip
                made = Compilation(target=self._compile, args=(dict.fromkeys(found), device.capability), daemon=True)
                self.compiling[key] = made
                made.start()
            return self.compiling[key]

    def _compile(self, kernels: Iterable[tuple[Any, Sizes]], arch: str) -> None:
        for kernel, sizes in kernels:
            self.prepared[arch, kernel, sizes] = self.machine_code(kernel, arch, sizes)

    def _params(self, whole: Iterable[int]) -> list[Any]:
        """Return what a plan is called with: the sizes, and a slot for each array and each float."""
        given = {p.name: ArgumentSlot(k) for ps in (self.floats, self.arrays) for k, p in enumerate(ps)}
        left = iter(whole)
        return [given[p.name] if p.name in given else next(left) for p in self.tuned.params]

    def _first_that_runs(
        self, device: Device, values: tuple[int, ...], where: int, constant: bool
    ) -> tuple[Match, BoundPlan]:
        """Return the match at these sizes, or the default where it does not run, bound to the device."""
        refused: ValueError | None = None
        for match in self._usable(device, values):
            try:
                return match, self._laid_out(match, device, values, where, constant)
            except (GridTooLarge, TooManyElements) as error:
                refused = refused or error
        assert refused is not None, "there is a default"
        raise refused

    def _usable(self, device: Device, values: tuple[int, ...]) -> list[Match]:
        """Return the matches whose plans count all elements of the arrays, the closest first.

        ValueError if there is none, since no array of the declared extents has so many.
        """
        first = self.look_up(device, values)
        names = dict.fromkeys((self.tuned.default, self.tuned.large or self.tuned.default))
        found = [first, *(Match("default", None, name) for name in names if name != first.plan)]
        most = self._most_elements(values)
        if most > MOST_ELEMENTS:
            found = [match for match in found if self.tuned.plans[match.plan].wide_indices]
        if not found:
            raise ValueError(f"the loops access element {most - 1} of an array, which is beyond its declared extent")
        return found

    def _most_elements(self, values: tuple[int, ...]) -> int:
        """Return the elements of the largest array, as far as its shape, or what the loops access, tells them."""
        shapes = (math.prod(n for n in shape if n is not None) for shape in self.shapes(values))
        reaches = (reach.most + 1 for reach in self.reach(values) if reach is not None)
        return max((*shapes, *reaches), default=0)

    def _laid_out(self, match: Match, device: Device, values: tuple[int, ...], where: int, constant: bool) -> BoundPlan:
        plan = self.tuned.plans[match.plan]
        params = self._params(self._marked(values) if constant else values)

        def load(kernel: Any, sizes: Sizes) -> LoadedKernel:
            function = self.loaded(kernel, device.capability, sizes)
            return LoadedKernel(kernel.__name__, function, self.tuned.signatures[kernel])

        return BoundPlan(plan.launches, params, load, where, math.inf if plan.wide_indices else MOST_ELEMENTS)

    def loaded(self, kernel: Any, arch: str, sizes: Sizes = ()) -> Any:
        """Return the handle of the kernel, compiled once for each architecture whichever thread asks first."""
        with self.lock:
            key = arch, kernel, sizes
            if key not in self.compiled:
                # A cache whose folder cannot be written keeps nothing.
                code = self.prepared.pop(key, None) or self.machine_code(kernel, arch, sizes)
                module = ObjectCode.from_cubin(code)
                entry = module.get_kernel(entry_of(code, kernel.__name__))
                # The module owns the code.
                self.compiled[key] = (driver.CUfunction(int(entry.handle)), module)
            return self.compiled[key][0]

    def machine_code(self, kernel: Any, arch: str, sizes: Sizes) -> bytes:
        """Return the machine code of the kernel with these sizes as constants, where it can be made."""
        signature = self.tuned.signatures[kernel]
        sized = with_constants(kernel, signature, sizes) if sizes else None
        if sized is None:
            return cached_cubin(cubin, kernel, signature, arch)
        return cached_cubin(cubin, sized, signature, arch, sizes)


def _to_wait_for(streams: Sequence[int], where: int) -> list[int]:
    """Return the streams that ``where`` must wait for; a captured graph cannot wait for streams outside it."""
    apart: list[int] = []
    for other in streams:
        same = other == where or (other in DEFAULT_STREAMS and where in DEFAULT_STREAMS)
        if not same and other not in apart:
            apart.append(other)
    return [other for other in apart if capturing(other)] if apart and capturing(where) else apart


def _known(p: Parameter, pointer: int, items: int, ready: PreparedCall) -> None:
    """Check an address, once. Raises ValueError if it is on another device than the call."""
    if not items:
        return
    there = device_of_pointer(pointer)
    if there != ready.ordinal:
        raise ValueError(f"{p.name} is on GPU {there}, and the current context is GPU {ready.ordinal}'s")
    if len(ready.size_values) > KNOWN:
        ready.size_values.clear()
    ready.size_values.add(pointer)


def _unmade(*_: Any, flag: bool = False, **__: Any) -> Any:
    """Take the place of making an array where launches are only looked at."""
    return (ArgumentSlot(0), once()) if flag else ArgumentSlot(0)


def _stage(array: np.ndarray, where: int) -> DeviceBuffer:
    """Return a copy on the device, made on the stream that will use it."""
    whole = np.ascontiguousarray(array)
    memory = Memory(whole.nbytes)
    if whole.nbytes:
        check(driver.cuMemcpyHtoDAsync(memory.pointer, whole.ctypes.data, whole.nbytes, driver.CUstream(where)))
    return DeviceBuffer(memory.pointer, whole.size, None, (memory, whole))


def _fetch(stages: Sequence[Stage], where: int) -> None:
    check(driver.cuStreamSynchronize(driver.CUstream(where)))
    for p, array, place in stages:
        if p.written:
            target = array if isinstance(array, np.ndarray) else tensor_memory(array)
            target[...] = fetched(place.pointer, place.items, p.dtype).reshape(target.shape)


def _declared(shape: Shape, count: int) -> tuple[int, ...]:
    known = math.prod(n for n in shape if n is not None)
    return tuple((count // known if known else 0) if n is None else n for n in shape)
