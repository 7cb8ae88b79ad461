"""The host's side of a plan in C: the body of a function that makes the launches, for any launching API.

for (long long t = 0; t < tmax; t += 1) {
    const long long x = (ny + 31) / 32, y = (nx + 7) / 8;
    if (x > 0 && y > 0) ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from looptune.backends.codegen.c import CWriter
from looptune.backends.codegen.c_expressions import LEVEL
from looptune.ir.nodes import Scalar
from looptune.ir.simplify import is_integer
from looptune.lower.concurrent_launches import is_concurrent
from looptune.lower.plan import HostIf, HostLoop, HostWhile, Kernel, Launch, Plan, Step, fuse_persistent_launches

if TYPE_CHECKING:
    from looptune.lower.plan import Dimension

_Writer = TypeVar("_Writer", bound=CWriter)
Spelled = Callable[[Kernel, Sequence[str], bool], str]
"""A launch as text: of a kernel, with the blocks along x, y and z; of a persistent one with none.

The last one says whether it may run at the same time as the launch directly before it, if that has blocks.
"""


def host_writer(plan: Plan, writer: _Writer) -> _Writer:
    """Return the writer for the host, where parameters have the types of the C function."""
    writer.counters, writer.nonnegative = set(), set()
    writer.kinds = {p.name: p.dtype for p in plan.codelet.params if isinstance(p, Scalar) and is_integer(p.dtype)}
    return writer


@dataclass(frozen=True, slots=True)
class HostLines:
    """Writes the host's side of a plan.

    ``spelled`` is the text of a launch, and ``read`` that of an expression: a flag in device memory, after the launches
    so far. ``guarded``: a condition leaves out launches without blocks; else the launching function has to.
    """

    writer: CWriter
    spelled: Spelled
    read: Callable[[str], str]
    guarded: bool = True

    def steps(self, found: tuple[Step, ...], indent: str) -> Iterator[str]:
        """Yield the lines of the host for the steps."""
        writer, inside = self.writer, indent + "    "
        before: Step | None = None
        for step in found:
            match step:
                case Launch(kernel):
                    beside = isinstance(before, Launch) and is_concurrent(before.kernel, kernel)
                    yield from _launch(kernel, writer, indent, self.spelled, beside, self.guarded)
                case HostLoop() if step.blocks_per_sm:
                    yield indent + self.spelled(fuse_persistent_launches(step), (), False)
                case HostLoop(var, lo, hi, stride, body):
                    name, wide = writer.name(var), writer.types["int64"]
                    begins, ends = f"{wide} {name} = {writer.wide(lo)}", writer.wide(hi, LEVEL["<"] + 1)
                    yield f"{indent}for ({begins}; {name} < {ends}; {name} += {stride}) {{"
                    writer.kinds[var] = "int64"
                    yield from self.steps(body, inside)
                    del writer.kinds[var]
                case HostWhile(flag, _, body):
                    yield f"{indent}while ({self.read(flag)}) {{"
                    yield from self.steps(body, inside)
                case HostIf(cond, then, other, flag):
                    yield indent + writer.if_(self.read(flag) if flag else writer.condition(cond))
                    yield from self.steps(then, inside)
                    if step.ends:
                        yield from (indent + writer.else_(), f"{inside}break;")
                    elif other:
                        yield indent + writer.else_()
                        yield from self.steps(other, inside)
            before = step


def _launch(
    kernel: Kernel, writer: CWriter, indent: str, spelled: Spelled, beside: bool, guarded: bool
) -> Iterator[str]:
    counts = []
    for dim, axis in kernel.grid_axes:
        per = axis.step * kernel.threads(dim)
        hi = writer.wide(axis.hi, LEVEL["-"])
        lo = writer.bound(axis.lo, LEVEL["-"] + 1)
        span = hi if lo == "0" else f"{hi} - {lo}"
        count = f"({span} + {per - 1}) / {per}" if per > 1 else span
        if kernel.packing is not None and dim != "z":
            count = str(kernel.packing.blocks["xy".index(dim)])
        counts.append((f"{dim}__blocks", count))
    if not counts:
        yield indent + spelled(kernel, ("1", "1", "1"), beside)
        return
    opened, inside = writer.scope(indent)
    yield from opened
    text = ", ".join(f"{name} = {value}" for name, value in counts)
    yield f"{inside}const {writer.types['int64']} {text};"
    if guarded:
        yield inside + writer.if_(writer.both(*(f"{name} > 0" for name, _ in counts)))
        inside += "    "
    along = dict(zip((dim for dim, _ in kernel.grid_axes), (name for name, _ in counts), strict=True))
    order: tuple[Dimension, ...] = ("y", "x", "z") if kernel.exchanged else ("x", "y", "z")
    yield inside + spelled(kernel, [along.get(dim, "1") for dim in order], beside)
