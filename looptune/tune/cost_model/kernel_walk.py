"""Count what the warps of a kernel execute: the loop IR is walked once, for all lanes of a sample at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from looptune.backends.codegen.team import levels
from looptune.ir.def_use import written_names
from looptune.ir.nodes import Assign, Const, Expr, If, Load, Loop, Node, Stmt, Var, While
from looptune.ir.rewrite import has_load, map_children, walk
from looptune.ir.simplify import add, is_integer, mul
from looptune.lower import team as teams
from looptune.lower import temporal_tiles
from looptune.lower.resident_tiles import is_own
from looptune.lower.team import Phase, TeamBranch, TeamFor, TeamLoop, TeamReduce, TeamSingle, shared_rows
from looptune.lower.tiles import Tile, filled_tiles
from looptune.tune.cost_model.coalescing import AccessContext, Memory, count_copy, straight_line_accesses
from looptune.tune.cost_model.instruction_costs import LOOP, chain, depth, of_segment
from looptune.tune.cost_model.linear_forms import counter, form, scope_of
from looptune.tune.cost_model.warp_program import AccessCount, Instructions, LoopWork
from looptune.tune.cost_model.warp_samples import LANE, LANES, Sample, Warps, sample_warps

if TYPE_CHECKING:
    from looptune.lower.plan import FinishedPlan, Kernel
    from looptune.lower.resident_tiles import ResidentTile
    from looptune.lower.temporal_tiles import InteriorBody

JOINING = 3.0
"""Instructions of a step in which the sums of a team's lanes are joined: fetched, added, waited for."""


@dataclass(frozen=True, slots=True)
class KernelWork:
    """The work of one launch: ``warps``, the ``tiles`` of a block in shared memory, ``notes`` on what was assumed."""

    nest: LoopWork
    warps: float
    tiles: tuple[Tile, ...]
    memory: Memory
    notes: tuple[str, ...]


def count(kernel: Kernel, plan: FinishedPlan, at: Mapping[str, int], sample: Sample) -> KernelWork:
    """Count one launch of a kernel of a plan for ``lower.machine.MODEL``; ``at``: sizes and variables of host loops."""
    tiles = kernel.tiles.tiles if kernel.tiles is not None else _shared(kernel)
    memory = Memory.of(kernel, plan, tiles, at)
    top = sample_warps(kernel, at, sample)
    walker = _Walker(kernel, memory, float(top.weight.sum()), sample)
    here = AccessContext(memory.buffered(top), memory.scoped(scope_of(kernel, at)))
    level = _Level()
    if kernel.team is not None:
        lane = here.with_value(teams.LANE, Var(LANE[kernel.team.block_axis]))
        walker.phases(kernel.team.phases, lane, level)
    elif kernel.time_body is not None:
        for d in ("x", "y"):
            here = here.with_value(temporal_tiles.thread_number(d), Var(LANE[d]))
        walker.stepped(kernel.time_body.interior_body, here, level)
    elif kernel.resident is not None:
        walker.segment(resident_values(kernel.resident, plan), here, level)
        level.barriers += 2
    elif kernel.tiles is not None:
        walker.fill(kernel.tiles.all, here, level)
        walker.block(kernel.tiles.body, here, level)
    else:
        walker.block(kernel.body, here, level)
    nest = walker.made("", 1.0, here.warps, level)
    return KernelWork(nest, walker.launched, tiles, memory, tuple(dict.fromkeys(walker.notes)))


def resident_values(whole: ResidentTile, plan: FinishedPlan) -> list[Assign]:
    """Return the assignments of an iteration to elements that a thread keeps: each is written at most once.

    What it is computed from is in registers, and here too what is in shared memory.
    """

    def visit(n: Node) -> Node:
        loads = [x for x in walk(n) if isinstance(x, Load)]
        if loads and not any(map(is_own, loads)):
            return Var("operand", loads[0].dtype)
        return Var(f"{n.array}__element", n.dtype) if isinstance(n, Load) else map_children(visit, n)

    values = [(s.dtype, visit(s.value)) for s in whole.statements]
    dtype, value = max(values, key=lambda v: sum(1 for _ in walk(v[1])))
    assert isinstance(value, Expr), "an expression stays one"
    return [Assign(Var(f"kept{k}", dtype), value) for k in range(len(whole.cells))]


def _shared(kernel: Kernel) -> tuple[Tile, ...]:
    """Return what blocks that take tiles through several steps have in shared memory."""
    found = () if kernel.time_body is None else kernel.time_body.shared
    return tuple(Tile(s.name, s.array, s.dtype, (Const(0),), (s.count,), s.count) for s in found)


@dataclass(slots=True)
class _Level:
    """What is found of one nest."""

    uses: list[AccessCount] = field(default_factory=list)
    inner: list[LoopWork] = field(default_factory=list)
    instructions: Instructions = field(default_factory=Instructions)
    depth: int = 0
    chain: int = 0
    barriers: int = 0

    def more(self, instructions: Instructions) -> None:
        self.instructions = self.instructions.plus(instructions)


class _Walker:
    def __init__(self, kernel: Kernel, memory: Memory, launched: float, sample: Sample) -> None:
        self.kernel, self.memory = kernel, memory
        self.launched, self.sample = launched, sample
        self.notes: list[str] = []
        self.counters = 0

    def made(self, name: str, trips: float, warps: Warps, level: _Level, *, ahead: bool = False) -> LoopWork:
        runs = warps.requests / self.launched if self.launched else 0.0
        stores = any(u.write and not u.shared for u in level.uses)
        return LoopWork(name, trips, runs, warps.requests, tuple(level.uses), tuple(level.inner), level.instructions,
                    level.depth, level.chain, level.barriers, stores, ahead)  # fmt: skip

    def block(self, body: Sequence[Stmt], here: AccessContext, level: _Level) -> None:
        line: list[Assign] = []

        def flush() -> None:
            self.segment(line, here, level)
            line.clear()

        for stmt in body:
            if not isinstance(stmt, Assign):
                flush()
            match stmt:
                case Assign(Var(name, dtype), value) if is_integer(dtype):
                    flush()
                    self.segment([stmt], here, level)
                    here = here.with_value(name, value)
                case Assign():
                    line.append(stmt)
                case Loop():
                    self.fill(filled_tiles(stmt), here, level)
                    self.loop(stmt, here, level, partial(self.block, stmt.body))
                    here = here.without_names(written_names((stmt,)))
                case If(cond, then, other):
                    yes, no = self.branches(cond, here, level)
                    self.block(then, yes, level)
                    self.block(other, no, level)
                    here = here.without_names(written_names((stmt,)))
                case While(cond, inner):
                    self.notes.append("how often a while loop runs depends on data: counted once")
                    here = here.without_names(written_names((stmt,)))
                    self.branches(cond, here, level)
                    self.block(inner, here, level)
        flush()

    def segment(self, line: Sequence[Assign], here: AccessContext, level: _Level) -> None:
        """Count straight code: each element is loaded once, then its operations run."""
        if not line or not here.warps.requests:
            return
        uses, instructions = straight_line_accesses(line, here, self.memory)
        level.uses += uses
        level.more(instructions)
        level.more(of_segment(line).times(here.warps.requests))
        level.depth += depth(line, self.memory.arrays)
        level.chain = max(level.chain, chain(line))

    def branches(self, cond: Expr, here: AccessContext, level: _Level) -> tuple[AccessContext, AccessContext]:
        """Count both sides of a condition; all lanes run both where data decide."""
        if has_load(cond):
            self.segment([Assign(Var("", cond.dtype), cond)], here, level)
        else:
            level.more(Instructions(other=2 * here.warps.requests))
        holds = here.warps.integer(cond)
        if holds is None:
            self.notes.append("a condition depends on data: both of its branches are counted")
            return here, here
        whole = np.broadcast_to(holds != 0, here.warps.active.shape)
        return here.where(whole), here.where(~whole)

    def loop(
        self, loop: Loop, here: AccessContext, level: _Level, body: Callable[[AccessContext, _Level], None]
    ) -> None:
        """Count the loop as a nest of its own, in which ``body`` continues."""
        here = here.without_names(written_names(loop.body))
        inside = here.warps.inside(loop, self.sample)
        if inside is None:
            self.notes.append(f"how often loop {loop.var} runs depends on data: counted once")
            inside = here.warps.with_value(loop.var, here.warps.integer(loop.lo))
        if not inside.requests:
            return
        self.counters += 1
        name = f"{loop.var} {self.counters}"
        lo = form(loop.lo, here.scope)
        known = None if lo is None else lo.plus(counter(name, loop.step))
        own = _Level()
        body(AccessContext(inside, {**here.scope, loop.var: known}), own)
        own.more(Instructions(other=LOOP * inside.requests))
        level.inner.append(self.made(name, inside.requests / here.warps.requests, inside, own))

    def fill(self, tiles: Sequence[Tile], here: AccessContext, level: _Level) -> None:
        """Count the copies of tiles by the block, with a barrier before and after."""
        if not tiles or not here.warps.requests:
            return
        own = _Level(depth=1, barriers=2)
        threads = prod(self.kernel.block)
        for tile in tiles:
            uses, instructions = count_copy(tile, threads, here, self.memory, self.sample)
            own.uses += uses
            own.more(instructions)
        ahead = any(t.buffers > 1 for t in tiles)
        level.inner.append(self.made("", 1.0, here.warps, own, ahead=ahead))

    def stepped(self, steps: InteriorBody, here: AccessContext, level: _Level) -> None:
        """Tiles are loaded, taken through the steps, and stored; in each step the threads wait for each other."""
        for name, value in steps.positions:
            here = here.with_value(name, value)
        self.block(steps.loads, here, level)

        def step(inside: AccessContext, own: _Level) -> None:
            for group in steps.groups:
                self.block(group, inside, own)
                own.barriers += 1

        self.loop(steps.loop, here, level, step)
        self.block(steps.stores, here, level)

    def phases(self, phases: Sequence[Phase], here: AccessContext, level: _Level) -> None:
        """Count what a team does: its lanes share the iterations, with barriers in between."""
        team, lanes = self.kernel.team, self.kernel.lanes
        assert team is not None, "phases are a team's"
        for phase in phases:
            level.barriers += 1
            match phase:
                case TeamSingle(body):
                    first = here.warps.integer(Var(LANE[team.block_axis]))
                    assert first is not None, "a lane knows its number"
                    own = _Level()
                    self.block(body, here.where(np.broadcast_to(first == 0, here.warps.active.shape)), own)
                    level.inner.append(self.made("", 1.0, here.warps, own))
                case TeamReduce(loop, into, deep):
                    self.shared(loop, here, level, deep=deep and team.block_axis == "xy")
                    level.more(
                        Instructions(
                            other=combine_instructions(lanes, team.block_axis) * len(into) * here.warps.requests
                        )
                    )
                    level.barriers += 1 + len(list(levels(lanes)))
                case TeamFor(loop):
                    self.shared(loop, here, level, deep=team.block_axis == "xy" and shared_rows(loop) is not None)
                case TeamLoop(loop, body):
                    self.loop(loop, here, level, partial(self.phases, body))
                case TeamBranch(cond, then, other):
                    yes, no = self.branches(cond, here, level)
                    self.phases(then, yes, level)
                    self.phases(other, no, level)

    def shared(self, loop: Loop, here: AccessContext, level: _Level, *, deep: bool) -> None:
        """Every lane has one iteration in so many; ``deep``: of two loops, along y and x."""
        width, height = self.kernel.block
        match loop.body:
            case (*first, Loop() as inner) if deep:
                outer = lane_share(replace(loop, body=(*first, lane_share(inner, "x", width))), "y", height)
            case _:
                team = self.kernel.team
                assert team is not None, "lanes are a team's"
                outer = loop if loop.mode == "sequential" else lane_share(loop, team.block_axis, self.kernel.lanes)
        self.loop(outer, here, level, partial(self.block, outer.body))


def combine_instructions(lanes: int, along: str) -> float:
    """Return the instructions per warp that combine the partial results of a team of ``lanes`` lanes in a tree.

    ``along`` is the axis of the block, "x" or "y"; fewer warps take part in each level.
    """
    left = [lanes, *levels(lanes), 1]
    side = 1 if along == "y" else LANES
    steps = (-(-b // side) * (-(-a // b) - 1) for a, b in pairwise(left))
    return JOINING * max(1, sum(steps)) / -(-lanes // side)


def lane_share(loop: Loop, along: str, lanes: int) -> Loop:
    """Return the share of the iterations that one of this many lanes runs."""
    first = add(loop.lo, mul(Const(loop.step, loop.dtype), Var(LANE[along], loop.dtype)))
    return replace(loop, lo=first, step=loop.step * lanes)
