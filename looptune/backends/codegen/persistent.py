"""The body of a persistent kernel, in any language: host loops and launches, as each block of the kernel executes them.

    while k__step < n:                               a host loop, in every block
        k = uint32(k__step);  k__step += 1
        block = blockIdx.x                           a launch: this block executes its share, one after the other
        while block < y__blocks * x__blocks:
            block_x = block % x__blocks;  block_y = block / x__blocks;  block += gridDim.x
            the lines of the kernel
        all blocks wait for each other

If there are as many blocks as tiles that overlap (``lower/passes/temporal_tile_bodies``), a block keeps its tile in
registers from one launch to the next. ``fresh`` says that it has to load the whole tile, and ``last`` that it has to
store the whole core: with fewer blocks always, and else in the first and the last launch of the host loop. Such
launches come in pairs, from the arrays to their spares and back, and one text serves for both:

    turn = 0
    while k__step < n or turn == 1:
        k = uint32(k__step);  k__step += 4
        A_from = A__spare if turn == 1 else A
        A_to = A if turn == 1 else A__spare
        fresh = blocks > gridDim.x or k__step == 4;  last = blocks > gridDim.x or (turn == 1 and k__step >= n)
        the launch
        turn = 1 - turn

The lines of a kernel are those of ``kernel``, with block and thread numbers that are computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from looptune.backends.codegen import block_swizzle, resident_tiles, temporal_tiles
from looptune.backends.codegen.kernel import dynamic_shared_bytes, resident_tile_bytes, shared_bytes
from looptune.ir.nodes import Const, Expr, promoted_type
from looptune.ir.simplify import add, max_of
from looptune.lower.plan import (
    ARRIVED,
    HostIf,
    HostLoop,
    Kernel,
    Launch,
    Plan,
    Step,
    host_loops,
    kernels_in,
    launched_grid,
)
from looptune.lower.resident_tiles import FINAL, ResidentTile
from looptune.lower.signature import counters, extent_names, scalar_type
from looptune.lower.temporal_tiles import FRESH, KEPT, LAST, TemporalTile

if TYPE_CHECKING:
    from looptune.backends.codegen.writer import KernelWriter

Body = Callable[[Kernel], Iterable[str]]
"""The lines of a kernel on its own."""
MET, BLOCK, BLOCKS = "met__", "block__", "blocks__"
FIRST_PASS = "first__kept"
AT, TURN = "__step", "turn__kept"


def persistent_lines(plan: Plan, kernel: Kernel, writer: KernelWriter, body: Body) -> Iterator[str]:
    """Yield the lines between the kernel's parameters and its end."""
    yield "    " + writer.declare("int64", MET, "0")
    leave, writer.leave = writer.leave, writer.leave.replace("return", "continue")
    kept: dict[str, str] = {}
    if resident_tile_bytes(kernel):
        yield from ("    " + line for line in writer.open_dynamic_shared())
    for resident in temporal_tiles.resident_kernels(kernels_in(kernel.steps)).values():
        assert resident.time_tile is not None, "it has tiles"
        assert resident.time_body is not None, "the plan is finished"
        yield from temporal_tiles.declared_tiles(resident.time_body, writer, "    ")
        kept |= {v.name: promoted_type(v.dtype) for v in resident.time_tile.registers(plan.codelet)}
    writer.shared_bytes = None
    for owning in resident_tiles.resident_kernels(kernels_in(kernel.steps)):
        assert owning.resident is not None, "it keeps elements"
        assert owning.resident_body is not None, "the plan is finished"
        yield from resident_tiles.declared_shared(
            owning.resident_body, writer, "    ", dynamic_shared_bytes(owning) > 0
        )
        kept |= {v.name: promoted_type(v.dtype) for v in owning.resident.registers(plan.codelet)}
    yield from ("    " + writer.declare(dtype, name, writer.zero(dtype)) for name, dtype in kept.items())
    writer.predeclared = frozenset(kept)
    yield from _Persistent(plan, kernel, writer, body).steps(kernel.steps, "    ")
    writer.leave, writer.predeclared = leave, frozenset()
    yield "    " + writer.grid_barrier_exit(writer.name(ARRIVED), MET)


class _Persistent:
    def __init__(self, plan: Plan, kernel: Kernel, writer: KernelWriter, body: Body) -> None:
        self.plan, self.kernel, self.writer, self.body = plan, kernel, writer, body
        known = {*kernel.scalars, *(loop.var for loop in host_loops(kernel.steps))}
        self.counters = (extent_names(plan) | counters(plan)) & known
        self.kinds = {name: scalar_type(plan, name) for name in sorted(known)}

    def steps(self, steps: tuple[Step, ...], indent: str) -> Iterator[str]:
        writer = self.writer
        for step in steps:
            match step:
                case Launch(kernel):
                    yield from self.launch(kernel, indent)
                    yield indent + writer.grid_barrier(writer.name(ARRIVED), MET)
                case HostLoop(body=(Launch(Kernel(time_tile=TemporalTile(resident=True) as tile) as kernel), _)):
                    yield from self.in_turn(step, kernel, tile, indent)
                case HostLoop(body=(Launch(Kernel(resident=ResidentTile() as owned) as kernel),)):
                    yield from self.resident(step, kernel, owned, indent)
                case HostLoop(var, lo, hi, stride, inner):
                    at = writer.name(var) + AT
                    opened, inside = writer.scope(indent)
                    yield from opened
                    yield inside + writer.declare("int64", at, self.number(lo))
                    yield inside + writer.while_(f"{at} < {self.number(hi)}")
                    yield inside + "    " + writer.declare(self.kinds[var], writer.name(var), at)
                    yield inside + "    " + writer.set(at, f"{at} + {stride}")
                    yield from self.steps(inner, inside + "    ")
                case HostIf(cond, then, other):
                    self.known()
                    yield indent + writer.if_(writer.condition(cond))
                    yield from self.steps(then, indent + "    ") if then else writer.nothing(indent + "    ")
                    if other:
                        yield indent + writer.else_()
                        yield from self.steps(other, indent + "    ")

    def launch(self, kernel: Kernel, indent: str, whole: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
        """Yield the part of every block that is this one's, one after the other.

        ``whole``: variables with the conditions in which they are true; they also are if there are too few blocks.
        """
        writer = self.writer
        opened, inside = writer.scope(indent)
        yield from opened
        counts = {dim: f"{dim}__{BLOCKS}" for dim, _ in kernel.grid_axes}
        for name, count in zip(counts.values(), launched_grid(kernel), strict=True):
            yield inside + writer.declare("uint32", name, self.number(max_of(count, Const(0, count.dtype))))
        yield inside + writer.declare("uint32", BLOCKS, " * ".join(counts.values()) or "1")
        few = f"{BLOCKS} > {writer.grid_width}"
        for name, holds in whole.items():
            yield inside + writer.declare("int32", name, writer.either(few, holds))
        yield inside + writer.declare("uint32", BLOCK, writer.block_number("x", "uint32"))
        yield inside + writer.while_(f"{BLOCK} < {BLOCKS}")
        at = inside + "    "
        own: dict[str, str] = {}
        before = ""
        for dim, name in counts.items():
            own[f"block {dim}"] = f"{dim}__{BLOCK}"
            ahead = f"({writer.quotient(BLOCK, before)})" if before else BLOCK
            yield at + writer.declare("uint32", own[f"block {dim}"], f"{ahead} % {name}")
            before = f"({before} * {name})" if before else name
        yield at + writer.set(BLOCK, f"{BLOCK} + {writer.grid_width}", "uint32")
        x, y = kernel.block
        if y > 1:
            own |= {"thread x": "thread__x", "thread y": "thread__y"}
            thread = writer.unsigned(writer.thread("x"))
            yield at + writer.declare("uint32", "thread__x", f"{thread} % {writer.unsigned(str(x))}")
            yield at + writer.declare("uint32", "thread__y", writer.quotient(thread, writer.unsigned(str(x))))
        if x * y < self.kernel.block[0]:
            yield at + writer.if_(f"{writer.thread('x')} < {x * y}")
            at += "    "
        writer.coordinates = own
        yield from (at[4:] + line for text in self.body(kernel) for line in text.split("\n"))
        writer.coordinates = {}
        if shared_bytes(kernel):
            yield inside + "    " + writer.barrier

    def in_turn(self, loop: HostLoop, kernel: Kernel, tile: TemporalTile, indent: str) -> Iterator[str]:
        """Yield a loop around launches that blocks which keep their tiles make from arrays to their spares and back."""
        writer, at, stride = self.writer, self.writer.name(loop.var) + AT, loop.step // 2
        opened, inside = writer.scope(indent)
        yield from opened
        yield inside + writer.declare("int64", at, self.number(loop.lo))
        yield inside + writer.declare("int32", TURN, "0")
        yield inside + writer.while_(writer.either(f"{at} < {self.number(loop.hi)}", f"{TURN} == 1"))
        within = inside + "    "
        yield within + writer.declare(self.kinds[loop.var], writer.name(loop.var), at)
        yield within + writer.set(at, f"{at} + {stride}")
        chosen: dict[str, str] = {}
        for array, spare in tile.spares:
            names, dtype = (writer.name(array), writer.name(spare)), self.plan.array(array).dtype
            chosen |= {array: f"{array}_from{KEPT}", spare: f"{array}_to{KEPT}"}
            yield within + writer.choose_array(chosen[array], dtype, f"{TURN} == 1", *reversed(names))
            yield within + writer.choose_array(chosen[spare], dtype, f"{TURN} == 1", *names)
        ends = f"({writer.both(f'{TURN} == 1', f'{at} >= {self.number(loop.hi)}')})"
        begins = f"{at} == {self.number(add(loop.lo, Const(stride, loop.lo.dtype)))}"
        writer.renamed = chosen
        yield from self.launch(kernel, within, {FRESH: begins, LAST: ends})
        writer.renamed = {}
        yield within + writer.grid_barrier(writer.name(ARRIVED), MET)
        yield within + writer.set(TURN, f"1 - {TURN}", "int32")

    def resident(self, loop: HostLoop, kernel: Kernel, owned: ResidentTile, indent: str) -> Iterator[str]:
        """Yield a loop of one launch, whose threads keep their elements if there are as many blocks as tiles.

        The iterations read one of two arrays and write the other, in turn. After the last one, a further pass stores
        all elements.
        """
        writer, at, hi = self.writer, self.writer.name(loop.var) + AT, self.number(loop.hi)
        opened, inside = writer.scope(indent)
        yield from opened
        yield inside + writer.declare("int64", at, self.number(loop.lo))
        yield inside + writer.declare("int32", TURN, "0")
        yield inside + writer.declare("int32", FINAL, "0")
        yield inside + writer.while_(f"{FINAL} == 0")
        within = inside + "    "
        yield within + writer.declare(self.kinds[loop.var], writer.name(loop.var), at)
        first = writer.declare("int32", FIRST_PASS, f"{at} == {self.number(loop.lo)}")
        yield within + first
        yield within + writer.set(FINAL, f"{at} >= {hi}", "int32")
        yield within + writer.set(at, f"{at} + {loop.step}")
        chosen: dict[str, str] = {}
        for array, spare in owned.spares:
            names, dtype = (writer.name(array), writer.name(spare)), self.plan.array(array).dtype
            chosen |= {array: f"{array}_from{KEPT}", spare: f"{array}_to{KEPT}"}
            yield within + writer.choose_array(chosen[array], dtype, f"{TURN} == 1", *reversed(names))
            back = writer.either(f"{TURN} == 1", f"{FINAL} == 1")
            yield within + writer.choose_array(chosen[spare], dtype, f"({back})", *names)
        writer.renamed = chosen
        yield from self.launch(kernel, within, {FRESH: f"{FIRST_PASS} == 1", LAST: f"{FINAL} == 1"})
        writer.renamed = {}
        yield within + writer.grid_barrier(writer.name(ARRIVED), MET)
        yield within + writer.set(TURN, f"1 - {TURN}", "int32")

    def number(self, e: Expr) -> str:
        """``e`` in 64 signed bits."""
        self.known()
        return block_swizzle.host_integer(e, self.writer)

    def known(self) -> None:
        """Tell the writer what is known of the sizes and the host loop variables."""
        self.writer.counters, self.writer.nonnegative = set(self.counters), set(self.counters)
        self.writer.kinds = dict(self.kinds)
