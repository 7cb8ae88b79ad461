"""The text of threads that keep their elements through all iterations of a loop of a persistent kernel.

    home0 = ..., home1 = ...                      where the thread's elements begin
    if fresh:  a_0_0 = a[home0][home1], ...       before the first iteration
    operand[...] = a[k][...] · barrier · a_0_0 = f(a_0_0, operand[...]), ... · a_next[...] = a_0_0
    if last:   a[home0][home1] = a_0_0, ...       after the last one

Blocks that have several tiles load and store all elements in each iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from looptune.lower.plan import launched_grid
from looptune.lower.resident_tiles import FINAL, FLAT_THREAD, NOW, ResidentBody, corner, home, stride
from looptune.lower.temporal_tiles import FRESH, LAST, thread_number

if TYPE_CHECKING:
    from looptune.backends.codegen.writer import KernelWriter
    from looptune.lower.plan import Kernel

ALIGNED = 16
"""Bytes that each array in shared memory begins at a multiple of."""


def shared_bytes(kernel: Kernel) -> int:
    """Return the bytes of shared memory that a block needs; of a plan that is no text, those of its own elements."""
    whole = kernel.resident
    assert whole is not None, "the kernel keeps elements"
    if kernel.resident_body is None:
        types = {s.array: np.dtype(s.dtype).itemsize for s in whole.statements}
        return whole.shared * whole.columns * whole.block_threads * sum(types.values())
    sizes = (s.count * np.dtype(s.dtype).itemsize for s in kernel.resident_body.shared)
    return sum(-(-n // ALIGNED) * ALIGNED for n in sizes)


def declared_shared(body: ResidentBody, writer: KernelWriter, indent: str, dynamic: bool) -> Iterator[str]:
    """Yield the declarations of what the threads of a block share; ``dynamic``: the launch asks for the memory."""
    if dynamic:
        yield from (indent + line for line in writer.open_dynamic_shared())
    yield from (indent + writer.shared_array(writer.name(s.name), s.count, s.dtype) for s in body.shared)
    writer.shared_bytes = None


def emit_resident_body(kernel: Kernel, writer: KernelWriter) -> Iterator[str]:
    """Yield what a thread does in one iteration with the elements that it keeps, or has of one of several tiles."""
    indent = "    "
    whole, body = kernel.resident, kernel.resident_body
    assert whole is not None, "the kernel keeps elements"
    assert body is not None, "the plan is finished"
    x = whole.threads[-1]
    writer.tiles = frozenset(s.name for s in body.shared)
    yield indent + writer.declare("uint32", FLAT_THREAD.name, writer.thread("x") if len(whole.threads) == 1
                                  else f"{writer.thread('y')} * {x} + {writer.thread('x')}")  # fmt: skip
    named = [FLAT_THREAD.name]
    for d, (dim, n) in enumerate(zip(whole.along, whole.threads, strict=True)):
        own = thread_number(dim)
        yield indent + writer.declare("uint32", own, writer.thread(dim))
        block = writer.block_number(dim, "int64")
        yield indent + writer.declare("int32", corner(d).name, f"{block} * {n if whole.cyclic else whole.shape[d]}")
        yield indent + writer.declare(
            "int32",
            home(d).name,
            f"{corner(d).name} + {own}" + (f" * {whole.thread_stride(d)}" if whole.thread_stride(d) > 1 else ""),
        )
        named += [own, corner(d).name, home(d).name]
        if whole.cyclic:
            count = {k: c for (k, _), c in zip(kernel.grid_axes, launched_grid(kernel), strict=True)}[dim]
            yield indent + writer.declare("int32", stride(d).name, f"({writer.bound(count)}) * {n}")
            named.append(stride(d).name)
    counted = {FLAT_THREAD.name, *(thread_number(dim) for dim in whole.along)}
    for name in named:
        writer.nonnegative.add(name)
    writer.counters |= counted
    yield indent + writer.declare("int32", NOW.name, writer.name(whole.loop.var))
    yield indent + writer.if_(FRESH)
    yield from writer.block(body.load, indent + "    ")
    yield indent + writer.if_(f"{FINAL} == 0")
    yield from writer.block(body.gather, indent + "    ")
    yield indent + "    " + writer.barrier
    yield from writer.block(body.compute, indent + "    ")
    yield from writer.block(body.exchange, indent + "    ")
    yield indent + writer.if_(LAST)
    yield from writer.block(body.store, indent + "    ")
    writer.tiles = frozenset()
    for name in named:
        writer.unbind(name)


def resident_kernels(kernels: Iterable[Kernel]) -> Iterator[Kernel]:
    """Yield the kernels whose threads keep elements."""
    return (k for k in kernels if k.resident is not None)
