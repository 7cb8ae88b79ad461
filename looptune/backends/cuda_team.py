"""The kernel of a team on a GPU: threads of one block that share what an iteration of the grid has to do.

    i = blockIdx.y * 8 + threadIdx.y;  live = i < n          no early return: all threads meet at each barrier
    y_own = 0;  if live: for j = lane, lane + 32, ...: y_own += A[i][j] * x[j]
    shared[slot] = y_own;  barrier;  halves of the lanes added to the others, barrier, until one is left
    if live and lane == 0: y[i] = y[i] + y_own

Deterministic: the order of every sum depends on the block's shape and the sizes alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from looptune.backends.kernel_writer import KernelWriter
from looptune.ir import Assign, Load, Loop, Var
from looptune.plans import Kernel
from looptune.team import Accumulator, Alone, Branch, Phase, Repeat, Spread, Team, Tree


def shared_bytes(kernel: Kernel) -> int:
    """Bytes of shared memory that a block needs."""
    threads, rows = kernel.block[0] * kernel.block[1], _rows(kernel)
    arrays = _arrays(kernel) if kernel.team is not None else {}
    return sum(np.dtype(dtype).itemsize * (rows if known else threads) for dtype, known in arrays.values())


def _rows(kernel: Kernel) -> int:
    """How many teams a block holds."""
    return kernel.block[0] * kernel.block[1] // kernel.lanes


def _arrays(kernel: Kernel) -> dict[str, tuple[str, bool]]:
    """The shared arrays by name: type, and whether it is a scalar for each team, not an element for each thread."""
    assert kernel.team is not None, "only a team shares memory"
    found: dict[str, tuple[str, bool]] = {}
    for tree in kernel.team.trees if kernel.lanes > 1 else ():
        found |= {name: (a.own.dtype, False) for name, a in zip(_buffers(tree), tree.into, strict=True)}
    return found | {_slot(v): (v.dtype, True) for v in kernel.team.told}


def _buffers(tree: Tree) -> list[str]:
    """The array of each accumulator; one tree uses them after the other."""
    seen: Counter[str] = Counter()
    made = []
    for a in tree.into:
        made.append(f"shared_{a.own.dtype}_{seen[a.own.dtype]}__team")
        seen[a.own.dtype] += 1
    return made


def _slot(v: Var) -> str:
    return f"{v.name}__team"


def together(kernel: Kernel, writer: KernelWriter, live: str) -> Iterator[str]:
    """The body of the kernel, its axis being assigned; ``live`` is whether the team has an iteration, "" for always."""
    assert kernel.team is not None, "the kernel has a team"
    body = _Body(kernel, kernel.team, writer)
    x = kernel.block[0]
    flat = f"{writer.thread('y')} * {x} + {writer.thread('x')}" if kernel.block[1] > 1 else writer.thread("x")
    lane = {"x": writer.thread("x"), "y": writer.thread("y"), "xy": flat}[kernel.team.along]
    yield "    " + writer.new("uint32", "lane", lane)
    yield "    " + writer.new("uint32", "slot", flat)
    for name, (dtype, known) in _arrays(kernel).items():
        count = _rows(kernel) if known else kernel.block[0] * kernel.block[1]
        yield "    " + writer.shared(name, count, dtype)
    if live:
        yield "    " + writer.new("bool", "live", live, fits=True)
    body.phases(kernel.team.phases, "live" if live else "", "    ")
    while body.lines and body.lines[-1] == f"    {writer.barrier}":
        body.lines.pop()
    yield from body.lines


class _Body:
    """``when`` is the condition under which a team takes part, "" for always; barriers stand outside of it."""

    def __init__(self, kernel: Kernel, team: Team, writer: KernelWriter) -> None:
        self.kernel = kernel
        self.team = team
        self.writer = writer
        self.lines: list[str] = []
        self.conditions = 0
        self.row = {"x": writer.thread("y"), "y": writer.thread("x"), "xy": "0"}[team.along]
        self.apart = kernel.block[0] if team.along == "y" else 1

    def phases(self, phases: tuple[Phase, ...], when: str, indent: str) -> None:
        for phase in phases:
            match phase:
                case Alone():
                    self.alone(phase, when, indent)
                case Tree():
                    self.tree(phase, when, indent)
                case Spread(loop):
                    self.lines += self.writer.loop(loop, self.guarded(when, indent), "lane", self.kernel.lanes)
                    self.barrier(indent)
                case Repeat():
                    self.repeat(phase, when, indent)
                case Branch():
                    self.branch(phase, when, indent)

    def guarded(self, when: str, indent: str) -> str:
        """The indentation of what stands under the condition."""
        if when:
            self.lines.append(indent + self.writer.when(when))
        return indent + "    " if when else indent

    def barrier(self, indent: str) -> None:
        """Unless the last thing was one."""
        if self.lines and self.lines[-1].strip() != self.writer.barrier:
            self.lines.append(f"{indent}{self.writer.barrier}")

    def alone(self, phase: Alone, when: str, indent: str) -> None:
        name, both = self.writer.name, self.writer.both
        if phase.by_all:
            self.lines += self.writer.block(phase.body, self.guarded(when, indent))
            return
        if phase.known:  # another lane may not have read what was made known before
            self.barrier(indent)
        inside = self.guarded(both(when, "lane == 0"), indent)
        self.lines += self.writer.block(phase.body, inside)
        self.lines += [inside + self.writer.put(_slot(v), self.row, name(v.name)) for v in phase.known]
        self.barrier(indent)
        self.lines += [indent + self.writer.set(name(v.name), f"{_slot(v)}[{self.row}]") for v in phase.known]

    def tree(self, phase: Tree, when: str, indent: str) -> None:
        for a in phase.into:
            self.lines += self.writer.statement(Assign(a.own, a.identity), indent)
        self.terms(phase, self.guarded(when, indent))
        buffers = dict(zip(_buffers(phase), phase.into, strict=True))
        if self.kernel.lanes > 1:
            name = self.writer.name
            self.lines += [indent + self.writer.put(b, "slot", name(a.own.name)) for b, a in buffers.items()]
            self.barrier(indent)
            self.halves(buffers, indent)
        for buffer, a in buffers.items():
            if isinstance(a.target, Load):
                self.lines += self.writer.statement(a.update, self.guarded(self.writer.both(when, "lane == 0"), indent))
                continue
            if self.kernel.lanes > 1:
                first = "slot - lane" if self.apart == 1 else f"slot - lane * {self.apart}"
                self.lines.append(indent + self.writer.set(self.writer.name(a.own.name), f"{buffer}[{first}]"))
            self.lines += self.writer.statement(a.update, self.guarded(when, indent))
        self.barrier(indent)

    def terms(self, phase: Tree, indent: str) -> None:
        """The loop of one lane."""
        x, y = self.kernel.block
        match phase.loop.body:
            case (Loop() as inner,) if phase.deep and self.team.along == "xy":
                within = partial(self.writer.loop, inner, lane=self.writer.thread("x"), lanes=x)
                self.lines += self.writer.loop(phase.loop, indent, self.writer.thread("y"), y, within)
            case _:
                self.lines += self.writer.loop(phase.loop, indent, "lane", self.kernel.lanes)

    def halves(self, buffers: Mapping[str, Accumulator], indent: str) -> None:
        """The second half of the lanes joined to the first, until one is left."""
        writer, lanes = self.writer, self.kernel.lanes
        half = writer.half
        partner = f"slot + {half}" if self.apart == 1 else f"slot + {half} * {self.apart}"
        opened, at = writer.scope(indent)
        self.lines += [
            *opened,
            at + writer.new("uint32", half, str(1 << (lanes - 1).bit_length() - 1)),
            at + writer.repeat(f"{half} > 0"),
            f"{at}    " + writer.when(writer.both(f"lane < {half}", f"lane + {half} < {lanes}")),
        ]
        inside = at + "        "
        for buffer, a in buffers.items():
            self.lines.append(inside + writer.set(writer.name(a.other.name), f"{buffer}[{partner}]"))
            self.lines += writer.statement(Assign(a.own, a.joined(a.own, a.other)), inside)
            self.lines.append(inside + writer.put(buffer, "slot", writer.name(a.own.name)))
        self.lines += [
            f"{at}    {writer.barrier}",
            f"{at}    " + writer.set(half, writer.quotient(half, "2"), "uint32"),
        ]

    def repeat(self, phase: Repeat, when: str, indent: str) -> None:
        """All teams of a block go round as often as the one that does most, for they meet at barriers."""
        writer, loop = self.writer, phase.loop
        var = writer.name(loop.var)
        kind, start, end = writer.range_of(loop)
        opened, at = writer.scope(indent)
        self.lines += opened
        if when:
            self.lines += [at + writer.new(kind, name, "0") for name in (var, f"{var}__end")]
            inside = self.guarded(when, at)
            self.lines += [inside + writer.set(var, start), inside + writer.set(f"{var}__end", end)]
        else:
            self.lines += [
                at + writer.new(kind, name, value, fits=True) for name, value in ((var, start), (f"{var}__end", end))
            ]
        more = writer.both(when, f"{var} < {var}__end")
        self.lines.append(at + writer.repeat(writer.any_thread(more)))
        writer.bind(loop.var, kind == "uint32")
        self.phases(phase.body, self.condition(more, at + "    "), at + "    ")
        writer.unbind(loop.var)
        self.lines.append(f"{at}    " + writer.set(var, f"{var} + {loop.step}", kind))

    def branch(self, phase: Branch, when: str, indent: str) -> None:
        writer = self.writer
        cond = writer.condition(phase.cond)
        then = self.condition(writer.both(when, cond), indent)
        other = self.condition(writer.both(when, writer.negated(f"({cond})")), indent) if phase.other else ""
        self.barrier(indent)  # a lane may not have read yet what the condition asks for
        self.phases(phase.then, then, indent)
        if other:
            self.phases(phase.other, other, indent)

    def condition(self, text: str, indent: str) -> str:
        """A variable that holds it."""
        self.conditions += 1
        name = f"live{self.conditions}__team"
        self.lines.append(indent + self.writer.new("bool", name, text, fits=True))
        return name
