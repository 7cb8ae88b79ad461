"""The code that each thread of a GPU's kernel runs, wherever a kernel holds it, and a walk through it in textual order.

a thread on its own         the kernel's body
a block with tiles          the body of its tiles, and the copies that fill them
a team                      its phases
several steps at a time     the steps of a block inside all bounds, then those of others
products of warps           none: it is complete when they are made
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from looptune.ir.intervals import Range, body_ranges
from looptune.ir.nodes import Annotations, Assign, Const, Expr, If, Load, Loop, Stmt, Var, While
from looptune.ir.rewrite import walk_outside_loops
from looptune.lower.known_values import KnownValues
from looptune.lower.resident_tiles import FLAT_THREAD, NOW, ResidentBody, corner, home, stride
from looptune.lower.team import LANE, Phase, TeamBranch, TeamFor, TeamLoop, TeamReduce, TeamSingle, shared_rows
from looptune.lower.temporal_tiles import ROW, StepGroup, TemporalBody, TileSteps, thread_number
from looptune.lower.tiles import AHEAD, BUFFER, FIRST, NEXT, ONCE, THREAD, Tile, TileFill, filled_tiles

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan

Body = tuple[Stmt, ...]


def map_thread_code(kernel: Kernel, rule: Callable[[Body], Body]) -> Kernel:
    """Return the kernel with ``rule`` applied to each run of statements, whatever is known of variables there."""
    if kernel.warp_tiles is not None:
        return kernel
    if kernel.time_body is not None:
        body = kernel.time_body
        interior = None if body.interior is None else _map_steps(body.interior, rule)
        return replace(kernel, time_body=replace(body, interior=interior, anywhere=_map_steps(body.anywhere, rule)))
    if kernel.resident_body is not None:
        own = kernel.resident_body
        return replace(kernel, resident_body=replace(
            own, load=rule(own.load), gather=rule(own.gather), compute=rule(own.compute),
            exchange=rule(own.exchange), store=rule(own.store)))  # fmt: skip
    if kernel.tiles is not None:
        return replace(kernel, tiles=replace(kernel.tiles, body=rule(kernel.tiles.body)))
    if kernel.team is not None:
        return replace(kernel, team=replace(kernel.team, phases=_map_phases(kernel.team.phases, rule)))
    return replace(kernel, body=rule(kernel.body))


def _map_steps(steps: TileSteps, rule: Callable[[Body], Body]) -> TileSteps:
    groups = tuple(replace(g, compute=rule(g.compute), publish=rule(g.publish)) for g in steps.groups)
    return TileSteps(rule(steps.load), rule(steps.publish), groups, rule(steps.store))


def _map_phases(phases: tuple[Phase, ...], rule: Callable[[Body], Body]) -> tuple[Phase, ...]:
    def loop(old: Loop) -> Loop:
        (new,) = rule((old,))
        assert isinstance(new, Loop), "a loop stays one"
        return new

    def mapped(phase: Phase) -> Phase:
        match phase:
            case TeamSingle(body):
                return replace(phase, body=rule(body))
            case TeamReduce():
                return replace(phase, loop=loop(phase.loop), updates=rule(phase.updates))
            case TeamFor():
                return TeamFor(loop(phase.loop))
            case TeamLoop(_, body):
                return TeamLoop(loop(phase.loop), _map_phases(body, rule))
            case TeamBranch(cond, then, other):
                (asked,) = rule((If(cond, (), ()),))
                assert isinstance(asked, If), "a condition stays one"
                return TeamBranch(asked.cond, _map_phases(then, rule), _map_phases(other, rule))

    return tuple(map(mapped, phases))


class ThreadWalk:
    """Rewrites what threads run, statement by statement in the order of the text, and knows signs at each place.

    A subclass says what becomes of a run of assignments (``assignments``), of an expression (``expression``) and of
    what fills a tile (``filled``). ``positions`` and ``values``: the variables that are set once, see ``Kernel``.
    """

    def __init__(self, kernel: Kernel, plan: Plan) -> None:
        self.kernel, self.plan = kernel, plan
        self.known = KnownValues.of_parameters(kernel, plan)
        self.positions, self.values = kernel.positions, kernel.values
        self.ranges: dict[str, Range] = {}
        self.ahead: dict[str, Tile] = {}

    def assignments(self, run: tuple[Assign, ...]) -> Body:
        """Return the statements in place of assignments that follow each other in a block."""
        return run

    def expression(self, e: Expr) -> Expr:
        """Return the expression at a place where it is evaluated or, as an element, assigned."""
        return e

    def filled(self, tile: Tile, buffers: tuple[Expr, ...]) -> Tile:
        """Return a tile that is filled here; ``buffers``: those of it that are, one after the other."""
        return tile

    def run(self) -> Kernel:
        """Return the rewritten kernel."""
        kernel = self._rewritten()
        return replace(kernel, positions=self.positions, values=self.values)

    def _rewritten(self) -> Kernel:
        kernel = self.kernel
        if kernel.warp_tiles is not None:
            return kernel
        if kernel.time_body is not None:
            return replace(kernel, time_body=self._temporal(kernel.time_body))
        if kernel.resident_body is not None:
            return replace(kernel, resident_body=self._resident(kernel.resident_body))
        self._axes()
        if kernel.tiles is not None:
            self.ranges = self._first_threads()
            fills = tuple(self.filled(t, (Const(0),)) for t in kernel.tiles.all)
            return replace(kernel, tiles=replace(kernel.tiles, all=fills, body=self.block(kernel.tiles.body)))
        if kernel.team is not None:
            self.known.bind(LANE, True)
            return replace(kernel, team=replace(kernel.team, phases=self._phases(kernel.team.phases)))
        return replace(kernel, body=self.block(kernel.body))

    def _axes(self) -> None:
        """Record the variables of the grid, and with tiles those that say where a thread is in its block."""
        if self.kernel.tiles is not None:
            for axis in (a for _, a in self.kernel.grid_axes if a is not self.kernel.z_axis):
                self.known.bind(axis.var + THREAD, True)
                self.known.bind(axis.var + FIRST, self.known.never_negative(axis.lo))
        for axis in self.kernel.loops:
            self.known.bind(axis.var, self.known.never_negative(axis.lo))
            self.known.begin(axis)

    def _first_threads(self) -> dict[str, Range]:
        """Return the ranges of what all threads of a block share: where the first threads of blocks may be."""
        found: dict[str, Range] = {}
        for dim, axis in self.kernel.grid_axes:
            match axis.lo, axis.hi:
                case Const(int(lo)), Const(int(hi)) if hi > lo:
                    per = axis.step * self.kernel.threads(dim)
                    found[axis.var + FIRST] = lo, lo + (hi - lo - 1) // per * per
                    if axis is self.kernel.z_axis:
                        found[axis.var] = lo, hi - 1
        return found

    def block(self, body: Body, *, joined: bool = True) -> Body:
        """Return the statements of a block; without ``joined`` its assignments are taken one by one."""
        out: list[Stmt] = []
        held: list[str] = []
        for plain, run in groupby(body, lambda s: isinstance(s, Assign)):
            stmts = tuple(run)
            assigned = tuple(s for s in stmts if isinstance(s, Assign))
            for stmt in self.assignments(assigned) if plain and joined else stmts:
                out.append(self.statement(stmt))
                held += self._defined(stmt)
        for name in held:
            self.known.unbind(name)
        return tuple(out)

    def _defined(self, stmt: Stmt) -> Iterable[str]:
        match stmt:
            case Assign(Var(name)) if name in self.positions:
                self.known.bind(name, True)
                return (name,)
            case Assign(Var(name), value) if name in self.values and self.known.never_negative(value):
                self.known.define(name, value)
                return (name,)
        return ()

    def statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Assign(target, value):
                to, what = self.expression(target), self.expression(value)
                assert isinstance(to, Var | Load), "an element stays one"
                return stmt if to is target and what is value else replace(stmt, target=to, value=what)
            case If(cond, then, other):
                return replace(stmt, cond=self.expression(cond), then=self.block(then), other=self.block(other))
            case While(cond, body):
                return replace(stmt, cond=self.expression(cond), body=self.block(body))
            case Loop():
                return self._tiled(stmt)

    def loop(self, loop: Loop, lanes: int = 1, body: Callable[[], Body] | None = None) -> Loop:
        """Return a loop of which a thread runs every ``lanes``-th iteration; ``body`` makes what is in it."""
        lo, hi = self.expression(loop.lo), self.expression(loop.hi)
        ranges, self.ranges = self.ranges, dict(body_ranges(loop, self.ranges)) if self.kernel.tiles else {}
        self.known.enter(loop, lanes)
        made = self.block(loop.body) if body is None else body()
        self.known.unbind(loop.var)
        self.ranges = ranges
        return replace(loop, lo=lo, hi=hi, body=made)

    def _tiled(self, loop: Loop) -> Loop:
        """Return a loop; before it, or in each of its iterations ahead of a loop in it, tiles may be filled."""
        tiles = filled_tiles(loop)
        if tiles:
            now = tuple(self.ahead[t.name] if t.prefetch_loop else self.filled(t, (Const(0),)) for t in tiles)
            loop = replace(loop, annotations=Annotations((*loop.annotations, TileFill(now))))
            return self.loop(loop) if loop.var != ONCE else replace(loop, body=self.block(loop.body))
        later = tuple(t for s in walk_outside_loops(loop.body) for t in filled_tiles(s) if t.prefetch_loop)
        if not later:
            return self.loop(loop)
        var, ranges = loop.var, self.ranges
        inner = body_ranges(loop, ranges)
        self.ranges = {**ranges, **({var + AHEAD: inner[var]} if var in inner else {})}
        buffer, following = Var(var + BUFFER), Var(var + NEXT)
        for v in (buffer, following):
            self.known.bind(v.name, True)
        self.known.enter(replace(loop, var=var + AHEAD))
        buffers: tuple[Expr, ...] = (*map(Const, range(max(t.buffers for t in later) - 1)), following)
        self.ahead |= {t.name: self.filled(t, buffers) for t in later}
        self.ranges = ranges
        made = self.loop(loop)
        for name in (var + AHEAD, buffer.name, following.name):
            self.known.unbind(name)
        return made

    def _phases(self, phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
        return tuple(map(self._phase, phases))

    def _phase(self, phase: Phase) -> Phase:
        match phase:
            case TeamSingle(body):
                return replace(phase, body=self.block(body))
            case TeamReduce():
                return replace(phase, loop=self._terms(phase), updates=self.block(phase.updates, joined=False))
            case TeamFor(loop):
                return TeamFor(self._shared(loop))
            case TeamLoop():
                return self._repeated(phase)
            case TeamBranch(cond, then, other):
                return TeamBranch(self.expression(cond), self._phases(then), self._phases(other))

    def _shared(self, loop: Loop) -> Loop:
        team = self.kernel.team
        inner = shared_rows(loop) if team is not None and team.block_axis == "xy" else None
        if inner is not None:
            x, y = self.kernel.block
            return self.loop(loop, y, lambda: (*self.block(loop.body[:-1]), self.loop(inner, x)))
        return self.loop(loop, self.kernel.lanes if loop.mode == "parallel" else 1)

    def _terms(self, phase: TeamReduce) -> Loop:
        """Return the loop of one lane; of two that a whole block shares, one has its lanes along y and one along x."""
        x, y = self.kernel.block
        assert self.kernel.team is not None, "phases are a team's"
        match phase.loop.body:
            case (Loop() as inner,) if phase.two_level and self.kernel.team.block_axis == "xy":
                return self.loop(phase.loop, y, lambda: (self.loop(inner, x),))
        return self._shared(phase.loop)

    def _repeated(self, phase: TeamLoop) -> TeamLoop:
        """Return a loop that the teams of a block repeat together: its variable counts no steps of one thread."""
        loop, inside = phase.loop, list[Phase]()
        assert self.kernel.team is not None, "phases are a team's"

        def body() -> Body:
            inside.extend(self._phases(phase.body))
            return ()

        if self.kernel.team.block_axis == "xy":
            return TeamLoop(self.loop(loop, body=body), tuple(inside))
        lo, hi = self.expression(loop.lo), self.expression(loop.hi)
        self.known.bind(loop.var, self.known.never_negative(loop.lo))
        body()
        self.known.unbind(loop.var)
        return TeamLoop(replace(loop, lo=lo, hi=hi), tuple(inside))

    def _temporal(self, body: TemporalBody) -> TemporalBody:
        for name in (*(thread_number(d) for d, _ in self.kernel.grid_axes if d != "z"), ROW):
            self.known.bind(name, True)
        interior = None if body.interior is None else self._steps(body.interior)
        return replace(body, interior=interior, anywhere=self._steps(body.anywhere))

    def _resident(self, body: ResidentBody) -> ResidentBody:
        """Rewrite what threads do with elements that they keep: places are not negative."""
        assert self.kernel.resident is not None, "the kernel keeps elements"
        own = (home, corner, stride)
        for name in (FLAT_THREAD.name, *(f(d).name for f in own for d in range(len(self.kernel.resident.extents)))):
            self.known.bind(name, True)
        for dim in self.kernel.resident.along:
            self.known.bind(thread_number(dim), True)
        self.known.bind(NOW.name, self.known.never_negative(self.kernel.resident.loop.lo))
        return replace(
            body, load=self.block(body.load, joined=False), gather=self.block(body.gather, joined=False),
            compute=self.block(body.compute, joined=False), exchange=self.block(body.exchange, joined=False),
            store=self.block(body.store, joined=False),
        )  # fmt: skip

    def _steps(self, steps: TileSteps) -> TileSteps:
        assert self.kernel.time_tile is not None, "the kernel takes several steps"
        load, publish = self.block(steps.load, joined=False), self.block(steps.publish, joined=False)
        groups = list[StepGroup]()

        def body() -> Body:
            groups.extend(
                replace(g, compute=self.block(g.compute), publish=self.block(g.publish, joined=False))
                for g in steps.groups
            )
            return ()

        self.loop(self.kernel.time_tile.loop, body=body)
        return TileSteps(load, publish, tuple(groups), self.block(steps.store, joined=False))
