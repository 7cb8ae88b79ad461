"""The kernel of a team on a GPU: threads of one block that share the work of an iteration of the grid.

    i = blockIdx.y * 8 + threadIdx.y;  live = i < n          no early return: all threads reach each barrier
    y_own = 0;  if live: for j = lane, lane + 32, ...: y_own += A[i][j] * x[j]
    shared[slot] = y_own;  barrier;  if lane < 4: combine those of lanes lane + 4, lane + 8, ... with it;  barrier
    if lane == 0: combine those of lanes 1, 2 and 3 with it;  if live: y[i] = y[i] + y_own

There is a barrier wherever a lane writes what another has accessed since the last one, or the other way round. The
result is deterministic: the order of every sum depends only on the block's shape and the sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from looptune.ir.def_use import names_in, referenced_names, written_names
from looptune.ir.nodes import Assign, Const, Expr, Local, Loop, Stmt, Var, promoted_type
from looptune.ir.rewrite import walk
from looptune.lower.team import LANE, Phase, Team, TeamBranch, TeamFor, TeamLoop, TeamReduce, TeamSingle, shared_rows
from looptune.lower.tiles import WIDE

if TYPE_CHECKING:
    from looptune.backends.codegen.writer import KernelWriter
    from looptune.ir.accumulators import Accumulator
    from looptune.lower.plan import Kernel

SERIAL = 8
"""So many lanes' sums are joined by one of them; of more, several lanes join as many each."""


def levels(lanes: int) -> Iterator[int]:
    """Yield how many lanes still have partial results after each level of the tree, until one lane combines them all.

    >>> list(levels(8)), list(levels(32)), list(levels(512))
    ([], [4], [64, 8])
    """
    while lanes > SERIAL:
        lanes = -(-lanes // SERIAL)
        yield lanes


def shared_bytes(kernel: Kernel) -> int:
    """Return the bytes of shared memory that a block needs."""
    threads, rows = kernel.block[0] * kernel.block[1], _rows(kernel)
    arrays = _arrays(kernel) if kernel.team is not None else {}
    own = sum(np.dtype(dtype).itemsize * (rows if known else threads) for dtype, known in arrays.values())
    tiles = kernel.team.tiles if kernel.team is not None else ()
    sizes = (np.dtype(t.dtype).itemsize * _size(t) for t in tiles)
    return (-(-own // WIDE) * WIDE if tiles else own) + sum(-(-n // WIDE) * WIDE for n in sizes)


def _size(tile: Local) -> int:
    """Return the elements of an array whose extents are constants."""
    return prod(n.value for n in tile.shape if isinstance(n, Const) and isinstance(n.value, int))


def _rows(kernel: Kernel) -> int:
    """How many teams a block holds."""
    return kernel.block[0] * kernel.block[1] // kernel.lanes


def _arrays(kernel: Kernel) -> dict[str, tuple[str, bool]]:
    """Return the shared arrays by name, with their types.

    The flag says whether there is a scalar for each team instead of an element for each thread.
    """
    assert kernel.team is not None, "only a team shares memory"
    found: dict[str, tuple[str, bool]] = {}
    for tree in kernel.team.trees if kernel.lanes > 1 else ():
        found |= {name: (a.private.dtype, False) for name, a in zip(_buffers(tree), tree.accumulators, strict=True)}
    return found | {_slot(v): (promoted_type(v.dtype), True) for v in kernel.team.broadcasts}


def _buffers(tree: TeamReduce) -> list[str]:
    """Return the array of each accumulator; one tree uses them after the other."""
    seen: Counter[str] = Counter()
    made = []
    for a in tree.accumulators:
        made.append(f"shared_{a.private.dtype}_{seen[a.private.dtype]}__team")
        seen[a.private.dtype] += 1
    return made


def _slot(v: Var) -> str:
    return f"{v.name}__team"


def emit_team_body(kernel: Kernel, writer: KernelWriter, live: str) -> Iterator[str]:
    """Yield the body of a kernel with teams, after its axis is assigned.

    ``live``: the condition that the team has an iteration, "" for always.
    """
    assert kernel.team is not None, "the kernel has a team"
    body = _Body(kernel, kernel.team, writer)
    x = kernel.block[0]
    flat = f"{writer.thread('y')} * {x} + {writer.thread('x')}" if kernel.block[1] > 1 else writer.thread("x")
    lane = {"x": writer.thread("x"), "y": writer.thread("y"), "xy": flat}[kernel.team.block_axis]
    yield "    " + writer.declare("uint32", "lane", lane)
    yield "    " + writer.declare("uint32", "slot", flat)
    for name, (dtype, known) in _arrays(kernel).items():
        count = _rows(kernel) if known else kernel.block[0] * kernel.block[1]
        yield "    " + writer.shared_array(name, count, dtype)
    for tile in kernel.team.tiles:
        yield "    " + writer.shared_array(writer.name(tile.name), _size(tile), tile.dtype)
    if any(isinstance(n, Var) and n.name == LANE for f in kernel.team.shared for n in walk(f)):
        yield "    " + writer.declare("uint32", writer.name(LANE), "lane", fits=True)
        writer.bind(LANE, True)
    if live:
        yield "    " + writer.declare("bool", "live", live, fits=True)
    body.phases(kernel.team.phases, "live" if live else "", "    ")
    yield from body.lines
    writer.unbind(LANE)


@dataclass(frozen=True, slots=True)
class _Touched:
    """The shared arrays that a step accesses, and of these the ones it writes; ``first``: lane 0 alone does."""

    arrays: frozenset[str]
    changed: frozenset[str] = frozenset()
    first: bool = False

    def conflicts_with(self, other: _Touched) -> bool:
        """Two lanes may access one element, of which one writes it."""
        both = self.changed & other.arrays or other.changed & self.arrays
        return bool(both) and not (self.first and other.first)


class _Body:
    """``when`` is the condition under which a team takes part, "" for always; barriers stand outside of it.

    ``since``: what has been touched since the last barrier.
    """

    def __init__(self, kernel: Kernel, team: Team, writer: KernelWriter) -> None:
        self.kernel = kernel
        self.team = team
        self.writer = writer
        self.lines: list[str] = []
        self.conditions = 0
        self.since: frozenset[_Touched] = frozenset()
        self.row = {"x": writer.thread("y"), "y": writer.thread("x"), "xy": "0"}[team.block_axis]
        self.apart = kernel.block[0] if team.block_axis == "y" else 1

    def phases(self, phases: tuple[Phase, ...], when: str, indent: str) -> None:
        for phase in phases:
            match phase:
                case TeamSingle():
                    self.single_lane(phase, when, indent)
                case TeamReduce():
                    self.tree(phase, when, indent)
                case TeamFor(loop):
                    self.touch(self.by_all((loop,)), indent)
                    self.shared(loop, self.guarded(when, indent))
                case TeamLoop():
                    self.repeat(phase, when, indent)
                case TeamBranch():
                    self.branch(phase, when, indent)

    def guarded(self, when: str, indent: str) -> str:
        """Return the indentation of what stands under the condition."""
        if when:
            self.lines.append(indent + self.writer.if_(when))
        return indent + "    " if when else indent

    def touch(self, touched: _Touched, indent: str) -> None:
        """Record the next accesses of the team, after a barrier if one is needed."""
        if self.kernel.lanes > 1 and any(touched.conflicts_with(t) for t in self.since):
            self.lines.append(f"{indent}{self.writer.barrier}")
            self.since = frozenset()
        self.since |= {touched}

    def by_all(self, stmts: Iterable[Stmt]) -> _Touched:
        plain = [replace(s, reductions=()) if isinstance(s, Loop) else s for s in stmts]
        shared = frozenset(self.kernel.arrays) | {t.name for t in self.team.tiles}
        return _Touched(shared & referenced_names(plain), shared & written_names(plain))

    def uniform_condition(self, *exprs: Expr) -> _Touched:
        return _Touched(frozenset(self.kernel.arrays) & names_in(exprs))

    def steps(self, phase: Phase) -> tuple[_Touched, ...]:
        """Return what the phase touches, a step after the other."""
        match phase:
            case TeamSingle(body, known):
                slots, own = frozenset(map(_slot, known)), self.by_all(body)
                return _Touched(own.arrays | slots, own.changed | slots, True), _Touched(slots)
            case TeamReduce(loop, into):
                buffers = frozenset(_buffers(phase))
                updates = self.by_all(phase.updates)
                last = _Touched(buffers | updates.arrays, buffers | updates.changed, True)
                told = any(isinstance(a.target, Var) for a in into)
                own = self.by_all((loop,))
                return own, _Touched(buffers, buffers), last, _Touched(buffers if told else frozenset())
            case TeamFor(loop):
                return (self.by_all((loop,)),)
            case TeamLoop(loop, body):
                return self.uniform_condition(loop.lo, loop.hi), *(t for p in body for t in self.steps(p))
            case TeamBranch(cond, then, other):
                return self.uniform_condition(cond), *(t for p in (*then, *other) for t in self.steps(p))

    def single_lane(self, phase: TeamSingle, when: str, indent: str) -> None:
        if phase.is_uniform:
            self.lines += self.writer.block(phase.body, self.guarded(when, indent))
            return
        name, (own, told) = self.writer.name, self.steps(phase)
        self.touch(own, indent)
        inside = self.guarded(self.writer.both(when, "lane == 0"), indent)
        self.lines += self.writer.block(phase.body, inside)
        self.lines += [inside + self.writer.store(_slot(v), self.row, name(v.name)) for v in phase.broadcast]
        self.touch(told, indent)
        if phase.broadcast:
            # A team that takes no part has put nothing there.
            inside = self.guarded(when, indent)
            self.lines += [inside + self.writer.set(name(v.name), f"{_slot(v)}[{self.row}]") for v in phase.broadcast]

    def tree(self, phase: TeamReduce, when: str, indent: str) -> None:
        writer = self.writer
        terms, buffered, last, told = self.steps(phase)
        for a in phase.accumulators:
            self.lines += writer.statement(Assign(a.private, a.identity), indent)
        self.touch(terms, indent)
        self.terms(phase, self.guarded(when, indent))
        buffers = dict(zip(_buffers(phase), phase.accumulators, strict=True))
        scalars = {b: a for b, a in buffers.items() if isinstance(a.target, Var)}
        several = self.kernel.lanes > 1
        first = "slot - lane" if self.apart == 1 else f"slot - lane * {self.apart}"
        if several:
            left = self.combine_lanes(buffers, buffered, indent)
            self.touch(last, indent)
            inside = self.guarded("lane == 0", indent)
            self.join(buffers, inside, left, 1)
            self.put(scalars, inside)
        if phase.updates:
            self.touch(last, indent)
            inside = self.guarded(writer.both(when, "lane == 0"), indent)
            for stmt in phase.updates:
                self.lines += writer.statement(stmt, inside)
        self.touch(told, indent)
        for buffer, a in scalars.items():
            if several:
                self.lines.append(indent + writer.set(writer.name(a.private.name), f"{buffer}[{first}]"))
            self.lines += writer.statement(a.update, self.guarded(when, indent))

    def combine_lanes(self, buffers: Mapping[str, Accumulator], touched: _Touched, indent: str) -> int:
        """Return the lanes' sums in shared memory, level by level fewer; how many lanes have one that is left."""
        lanes = self.kernel.lanes
        self.touch(touched, indent)
        self.put(buffers, indent)
        for left in levels(lanes):
            self.touch(touched, indent)
            inside = self.guarded(f"lane < {left}", indent)
            self.join(buffers, inside, lanes, left)
            self.put(buffers, inside)
            lanes = left
        return lanes

    def put(self, buffers: Mapping[str, Accumulator], indent: str) -> None:
        self.lines += [
            indent + self.writer.store(b, "slot", self.writer.name(a.private.name)) for b, a in buffers.items()
        ]

    def terms(self, phase: TeamReduce, indent: str) -> None:
        """Emit the loop of one lane."""
        x, y = self.kernel.block
        match phase.loop.body:
            case (Loop() as inner,) if phase.two_level and self.team.block_axis == "xy":
                within = partial(self.writer.loop, inner, lane=self.writer.thread("x"), lanes=x)
                self.lines += self.writer.loop(phase.loop, indent, self.writer.thread("y"), y, within)
            case _:
                self.shared(phase.loop, indent)

    def shared(self, loop: Loop, indent: str) -> None:
        """Every so manieth iteration; all of a loop over a lane's turns."""
        lanes = self.kernel.lanes if loop.mode == "parallel" else 1
        inner = shared_rows(loop) if self.team.block_axis == "xy" else None
        if inner is not None:
            self.lines += self.writer.loop(
                loop, indent, self.writer.thread("y"), self.kernel.block[1], partial(self.row_of, loop.body[:-1], inner)
            )
            return
        self.lines += self.writer.loop(loop, indent, "lane" if lanes > 1 else "", lanes)

    def row_of(self, first: tuple[Stmt, ...], inner: Loop, indent: str) -> Iterator[str]:
        """Yield what a row of the block runs: statements on locals, then its share of the inner loop."""
        yield from self.writer.block(first, indent)
        yield from self.writer.loop(inner, indent, self.writer.thread("x"), self.kernel.block[0])

    def join(self, buffers: Mapping[str, Accumulator], indent: str, lanes: int, left: int) -> None:
        """Emit the combination of the sums of ``lanes`` into those of ``left`` of them, of which this lane has one."""
        writer, turn = self.writer, "turn__team"
        opened, at = writer.scope(indent)
        self.lines += [
            *opened,
            at + writer.declare("uint32", turn, "1"),
            at + writer.while_(f"{turn} < {-(-lanes // left)}"),
        ]
        inside = self.guarded(f"lane + {turn} * {left} < {lanes}" if lanes % left else "", f"{at}    ")
        for buffer, a in buffers.items():
            other = f"{buffer}[slot + {turn} * {left * self.apart}]"
            self.lines.append(inside + writer.set(writer.name(a.partner.name), other))
            self.lines += writer.statement(Assign(a.private, a.combine(a.private, a.partner)), inside)
        self.lines.append(f"{at}    " + writer.set(turn, f"{turn} + 1", "uint32"))

    def repeat(self, phase: TeamLoop, when: str, indent: str) -> None:
        """Emit a loop that the teams of a block repeat equally often, since they meet at barriers."""
        writer, loop = self.writer, phase.loop
        self.touch(self.uniform_condition(loop.lo, loop.hi), indent)
        before = self.since
        self.since |= set(self.steps(phase))  # those of the iteration before
        if self.team.block_axis == "xy":
            self.lines += writer.loop(loop, self.guarded(when, indent), within=partial(self.inside, phase.body))
            self.since |= before
            return
        var = writer.name(loop.var)
        kind, start, end = writer.range_of(loop)
        opened, at = writer.scope(indent)
        self.lines += opened
        if when:
            self.lines += [at + writer.declare(kind, name, "0") for name in (var, f"{var}__end")]
            inside = self.guarded(when, at)
            self.lines += [inside + writer.set(var, start), inside + writer.set(f"{var}__end", end)]
        else:
            self.lines += [
                at + writer.declare(kind, name, value, fits=True)
                for name, value in ((var, start), (f"{var}__end", end))
            ]
        more = writer.both(when, f"{var} < {var}__end")
        self.lines.append(at + writer.while_(writer.block_any(more)))
        self.since = frozenset()
        writer.bind(loop.var, kind == "uint32", loop)
        self.phases(phase.body, self.condition(more, at + "    "), at + "    ")
        writer.unbind(loop.var)
        self.lines.append(f"{at}    " + writer.set(var, f"{var} + {loop.step}", kind))
        self.since = frozenset()

    def inside(self, body: tuple[Phase, ...], indent: str) -> Iterator[str]:
        """Yield the phases of an iteration that the whole block runs."""
        around, self.lines = self.lines, []
        self.phases(body, "", indent)
        made, self.lines = self.lines, around
        yield from made

    def branch(self, phase: TeamBranch, when: str, indent: str) -> None:
        writer = self.writer
        cond = writer.condition(phase.cond)
        self.touch(self.uniform_condition(phase.cond), indent)
        then = self.condition(writer.both(when, cond), indent)
        other = self.condition(writer.both(when, writer.negated(f"({cond})")), indent) if phase.other else ""
        self.phases(phase.then, then, indent)
        if other:
            self.phases(phase.other, other, indent)

    def condition(self, text: str, indent: str) -> str:
        """Return a variable that holds it."""
        self.conditions += 1
        name = f"live{self.conditions}__team"
        self.lines.append(indent + self.writer.declare("bool", name, text, fits=True))
        return name
