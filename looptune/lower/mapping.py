"""Map parallel loops to grid and block, and the rest to thread or host: a Codelet becomes a Plan.

    sequential loop around a parallel one    ─▶ host loop, a launch per iteration, or one launch for all if persistent
    parallel loop                            ─▶ kernel; with the parallel loop directly inside: y and x of the grid;
                                                if three are asked for: z, y and x
    sequential loop, several steps a launch  ─▶ host loop of two launches, from arrays to their spares and back; of
                                                one, in place, without blocks of threads
    loop that reduces, parallel              ─▶ the threads of one block, along one of its dimensions: see ``team``
    loop for a team                          ─▶ the same; neighbours that also need one block are the same kernel
    while or if on data around one of these  ─▶ host while or if; kernels of one thread evaluate the condition
    anything else, in runs of statements     ─▶ kernel of one thread; beside a block that reduces, its first thread

The outermost two nested parallel loops form the grid if the inner one's bounds do not depend on the outer one; a single
parallel loop is linearised over the whole block. Copies that unrolling made of the inner one, including a remainder,
become kernels of their own, so that each has its partner. The strips of a tiled parallel loop (mode "thread") move into
the thread. A local that more than one kernel needs is in device memory.

A loop that reduces may be one of the two, or the only one:

    for i: for j (reduces): y[i] += …        i on y, a block has as many rows as it is high; j on x, its threads a team
    for i (reduces): for j: s[j] += …        j on x, the grid's; i on y
    for i (reduces): s += …                  one block, all of whose threads are a team
    for b: for i: for j (reduces): s += …    b on y and i on x of the grid, all threads of a block are a team
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError, InfeasibleDirective, UnsupportedError
from looptune.ir.bounding_box import rectangular_hull
from looptune.ir.def_use import (
    continuing_condition,
    integer_parameters,
    names_in,
    privatizable_arrays,
    read_names,
    referenced_names,
    target_name,
    upward_exposed_uses,
    written_names,
)
from looptune.ir.nodes import (
    Annotation,
    Assign,
    Binary,
    Call,
    Cast,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Local,
    Loop,
    Node,
    Select,
    Stmt,
    Unary,
    Var,
    While,
)
from looptune.ir.rewrite import has_load, rewrite, walk, walk_stmts
from looptune.ir.simplify import add, is_integer, min_of
from looptune.lower.host_loops import persistent_blocks
from looptune.lower.passes.resident_tiling import keep_resident
from looptune.lower.passes.temporal_tiling import DEFAULT_BLOCK, block_size, tile_in_time
from looptune.lower.plan import (
    ARRIVED,
    HostIf,
    HostLoop,
    HostWhile,
    Kernel,
    Launch,
    Plan,
    Step,
    host_loops,
    kernels_in,
    with_kernels,
)
from looptune.lower.resident_tiles import RESIDENT, ResidentTile, owned_elements
from looptune.lower.team import (
    Team,
    has_disjoint_targets,
    has_rows,
    has_team_directive,
    is_team_reducible,
    is_two_level_reduction,
    needs_team,
    privates_stay_local,
    runs_in_one_block,
)
from looptune.lower.temporal_tiles import TemporalTile, steps_per_launch

if TYPE_CHECKING:
    from looptune.lower.machine import Machine

FLAG = "__holds"
"""What is in the name of a scalar in device memory that says whether a condition on data holds."""
FROM = "__from"
"""What the name of a host loop's variable ends with whose launches take several steps."""


MADE = (
    "__tile", "__first", "__thread", "__buffer", "__ahead", "__next", "__turn", "__number", "__band", "__all", "__pack",
    "__point", "__own", "__core", "__spare", "__kept", "__begins", FLAG, FROM,
    "arrived__",
)  # fmt: skip
"""What the names of variables end with that are made from here on, numbers apart, but for those that
``backends.codegen.python`` tells from the program's own."""


def check_names(codelet: Codelet) -> None:
    """Raise UnsupportedError if a variable of the program might be confused with one that the lowering makes."""
    loops = (s for s in walk_stmts(codelet.body) if isinstance(s, Loop))
    named = [*((v.name, v.span) for v in (*codelet.params, *codelet.locals)), *((f.var, f.span) for f in loops)]
    for name, span in named:
        ending = next((e for e in MADE if name.rstrip("0123456789").endswith(e)), None)
        if ending is not None:
            raise UnsupportedError(f"{name}: names that end in {ending} are reserved for generated kernels: "
                                   "choose another name", span)  # fmt: skip


def map_loops(plan: Plan, machine: Machine) -> Plan:
    """Give the codelet of ``plan`` its host steps and kernels, whose parameters are not known yet.

    If threads form blocks, as on a GPU, a thread that is alone also runs the statements beside its loop, which saves
    launches. If they do not, the loop of a team is a parallel loop (``split_reduction``).
    """
    codelet = plan.codelet
    sizes = frozenset(integer_parameters(codelet))
    scheduler = HostScheduler(machine.blocks, codelet)
    steps = scheduler.steps(codelet.body, _Reach(sizes - written_names(codelet.body), machine.host_reads))
    kernels = list(kernels_in(steps))
    own = [_private(k, kernels, codelet) for k in kernels]
    shared = {n for k, mine in zip(kernels, own, strict=True) for n in referenced_names(k.body) - mine}
    shared |= {spare for k in kernels if k.time_tile is not None for _, spare in k.time_tile.spares}
    shared |= {spare for k in kernels if k.resident is not None for _, spare in k.resident.spares}
    resident = tuple(v for v in (*codelet.locals, *scheduler.flags) if v.name in shared)
    taken, called = plan.used_names, codelet.name
    while any(f"{called}_{i}" in taken for i in range(len(kernels))):
        called += "_"
    done = {
        id(k): _named(k, f"{called}_{i}", plan, resident, mine)
        for i, (k, mine) in enumerate(zip(kernels, own, strict=True))
    }
    made = with_kernels(steps, lambda k: done[id(k)])
    counter = (Local(ARRIVED, "int64"),) if any(loop.blocks_per_sm for loop in host_loops(made)) else ()
    return replace(plan, steps=made, device_locals=(*resident, *counter))


def _named(kernel: Kernel, name: str, plan: Plan, resident: tuple[Local, ...], mine: set[str]) -> Kernel:
    """Return the kernel with its name, its locals ``mine``, and the scalars in device memory read and written there."""
    scalars = {v.name: v.dtype for v in resident if not v.shape and v.name not in mine}

    def rule(n: Node) -> Node | None:
        match n:
            case Var(v) if v in scalars:
                return Load(v, (Const(0),), scalars[v])
        return None

    body = rewrite(rule, kernel.body)
    loops = [f for f in (*kernel.loops, *walk_stmts(body)) if isinstance(f, Loop)]
    return replace(
        kernel, name=name, body=body, locals=tuple(v for v in plan.codelet.locals if v.name in mine),
        sums=tuple(s for s in plan.block_sums if s.own in mine), annotations=_inherited(loops),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Reach:
    """What the host can decide where a statement stands.

    ``known`` are the names whose values it can compute. ``reads``: it can read device memory, which it does for a
    ``while``, and for an ``if`` in a loop that ends when data say so (``ends``).
    """

    known: frozenset[str]
    reads: bool
    ends: bool = False

    def computes(self, *exprs: Expr) -> bool:
        return _on_host(exprs, self.known)

    def decides(self, stmt: While | If) -> bool:
        if self.reads and (self.ends or isinstance(stmt, While)):
            return True
        return isinstance(stmt, If) and self.computes(stmt.cond)

    def inside(self, loop: Loop | While) -> _Reach:
        if isinstance(loop, While):
            return replace(self, ends=True)
        reads = self.reads and not persistent_blocks(loop)
        ends = self.ends or continuing_condition(loop) is not None
        return _Reach(self.known | {loop.var}, reads, ends)


@dataclass(frozen=True, slots=True)
class HostScheduler:
    """Makes the host steps of a codelet; ``gathering``: statements join the block that shares a loop beside them.

    ``flags`` are the scalars in which kernels store whether conditions on data hold.
    """

    gathering: bool
    codelet: Codelet
    flags: list[Local] = field(default_factory=list)

    def steps(self, body: tuple[Stmt, ...], reach: _Reach) -> tuple[Step, ...]:
        """Return the steps of a body."""
        out: list[Step] = []
        alone: list[Stmt] = []
        team: list[Loop] = []

        def flush() -> None:
            if alone:
                size = block_size(team[0]) if team else DEFAULT_BLOCK
                out.append(Launch(_bare((), size, tuple(alone), (Team("xy") if team else None))))
                alone.clear()
                team.clear()

        for stmt in body:
            if not _launchable(stmt, reach):
                alone.append(stmt)
                continue
            if isinstance(stmt, While | If) and not (isinstance(stmt, If) and reach.computes(stmt.cond)):
                alone.append(decision := self.decision(stmt))
                flush()
                out.append(self.decided(stmt, decision, reach))
                continue
            kernel = _kernel(stmt, reach.known) if isinstance(stmt, Loop) else None
            if self.gathering and isinstance(stmt, Loop) and kernel is not None and _one_block(kernel):
                if team and block_size(team[0]) != block_size(stmt):
                    flush()
                alone.append(stmt)
                team.append(stmt)
                continue
            flush()
            out.append(self.step(stmt, kernel, reach))
        flush()
        return tuple(out)

    def decision(self, stmt: While | If) -> Assign:
        """Return the assignment by which a thread stores whether a condition on data holds, in a flag of its own."""
        flag = Local(f"{'while' if isinstance(stmt, While) else 'if'}{FLAG}{len(self.flags)}", "int32")
        self.flags.append(flag)
        return Assign(Var(flag.name, flag.dtype), Binary("!=", stmt.cond, Const(0, stmt.cond.dtype)), span=stmt.span)

    def decided(self, stmt: While | If, decision: Assign, reach: _Reach) -> HostWhile | HostIf:
        """Return the step of a condition on data, which a kernel before it has evaluated."""
        flag = target_name(decision.target)
        if isinstance(stmt, While):
            return HostWhile(flag, stmt.cond, self.steps((*stmt.body, decision), reach.inside(stmt)))
        return HostIf(stmt.cond, self.steps(stmt.then, reach), self.steps(stmt.other, reach), flag)

    def step(self, stmt: Stmt, kernel: Kernel | None, reach: _Reach) -> Step:
        match stmt:
            case Loop(mode="sequential") if steps_per_launch(stmt):
                return self.tiled(stmt)
            case Loop(mode="sequential") if self.gathering and owned_elements(stmt) is not None:
                return self.resident(stmt)
            case Loop(var, lo, hi, inner, step):
                if kernel is not None:
                    return Launch(kernel)
                blocks = persistent_blocks(stmt) if self.gathering else 0
                steps = self.steps(inner, reach.inside(stmt))
                return HostLoop(var, lo, hi, step, _ending(stmt, steps), blocks)
            case If(cond, then, other):
                return HostIf(cond, self.steps(then, reach), self.steps(other, reach))
        raise AssertionError("only loops and conditions are launched")

    def tiled(self, loop: Loop) -> HostLoop:
        """Return a host loop of two launches of several steps each, the second one from the spare arrays back.

        Without blocks of threads it has one launch, in place. Raises DirectiveError if the loop cannot be tiled.
        """
        first, steps = Var(f"{loop.var}{FROM}", loop.dtype), steps_per_launch(loop) * loop.step
        blocks = persistent_blocks(loop) if self.gathering else 0
        launches = []
        for back in (False, True) if self.gathering else (False,):
            lo = add(first, Const(steps * back, loop.dtype))
            some = replace(loop, lo=lo, hi=min_of(add(lo, Const(steps, loop.dtype)), loop.hi))
            try:
                tiles = tile_in_time(some, self.codelet, tiles=self.gathering)
            except InfeasibleDirective as no:
                raise DirectiveError(f"overlap {steps_per_launch(loop)} of loop {loop.var}: {no}", loop.span) from None
            tiles = replace(tiles, reversed=back, resident=blocks > 0)
            launches.append(Launch(_tiled(tiles if self.gathering else tiles.untiled)))
        return HostLoop(first.name, loop.lo, loop.hi, len(launches) * steps, tuple(launches), blocks)

    def resident(self, loop: Loop) -> HostLoop:
        """Return a host loop of one launch, whose threads keep their elements from one iteration to the next.

        Raises DirectiveError if they own none.
        """
        try:
            whole = keep_resident(loop, self.codelet)
        except InfeasibleDirective as no:
            raise DirectiveError(f"{RESIDENT} of loop {loop.var}: {no}", loop.span) from None
        return HostLoop(
            loop.var, loop.lo, loop.hi, loop.step, (Launch(_owned(whole)),), max(1, persistent_blocks(loop))
        )


def _owned(whole: ResidentTile) -> Kernel:
    """Return the kernel of an iteration of a loop; its axes go from block to block."""
    axes = [Loop(f"{whole.loop.var}__core{d}", Const(0), extent, (), step)
            for d, (extent, step) in enumerate(zip(whole.extents, whole.shape, strict=True))]  # fmt: skip
    return replace(_bare(tuple(axes), block_size(whole.loop), whole.loop.body), resident=whole)


def _one_block(kernel: Kernel) -> bool:
    """All that it does is one loop, shared by the threads of a block."""
    return kernel.team is not None and not kernel.loops and not is_two_level_reduction(kernel.body)


def _ending(loop: Loop, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps of a loop, which end it where its other iterations do nothing."""
    match steps:
        case (*before, HostIf(flag=flag, other=()) as last) if flag and continuing_condition(loop) is not None:
            return (*before, replace(last, ends=True))
    return steps


def _launchable(stmt: Stmt, reach: _Reach) -> bool:
    """Tell whether the statement is, or holds at the host's reach, a loop whose iterations are threads."""
    match stmt:
        case Loop() if has_team_directive(stmt) or runs_in_one_block(stmt):
            return True
        case Loop(_, lo, hi, body) if reach.computes(lo, hi):
            return _kernel(stmt, reach.known) is not None or any(_launchable(s, reach.inside(stmt)) for s in body)
        case If(_, then, other) if reach.decides(stmt):
            return any(_launchable(s, reach) for s in (*then, *other))
        case While(_, body) if reach.decides(stmt):
            return any(_launchable(s, reach.inside(stmt)) for s in body)
    return False


def _on_host(exprs: tuple[Expr, ...], known: frozenset[str]) -> bool:
    return all(
        node.name in known if isinstance(node, Var) else is_integer(node.dtype) and not isinstance(node, (Load, Call))
        for node in walk(exprs)
        if isinstance(node, (Var, Load, Call, Const, Binary, Unary, Cast, Select))
    )


def _kernel(loop: Loop, known: frozenset[str]) -> Kernel | None:
    """Return the kernel of a perfect chain of parallel and thread loops: its first two parallel ones are the grid."""
    if loop.thread_axis in ("z", "parts") and loop.mode == "parallel":
        return _deep(loop, known)
    shared = _shared(loop, known)
    if shared is not None:
        return shared
    axes: list[Loop] = []
    inside: list[Loop] = []
    body: tuple[Stmt, ...] = (loop,)
    while len(axes) < 2 and (here := _only_loop(body)) is not None and here.mode in ("parallel", "thread"):
        if here.mode == "parallel":
            boxed = rectangular_hull(here, axes[0]) if axes and not inside and here.thread_axis else None
            here = here if boxed is None else boxed
            if here.reductions or has_team_directive(here) or not _on_host((here.lo, here.hi), known):
                break
            axes.append(here)
        else:
            inside.append(here)
        body = here.body
    if not axes:
        return None
    while inside and not any(n is axes[-1] for n in walk(inside[-1].body)):
        body = (replace(inside.pop(), body=body),)
    for thread in reversed(inside):
        body = (replace(thread, body=body),)
    turned = len(axes) == 2 and axes[0].thread_axis == "x"
    team = Team("xy") if _for_whole_blocks(body) else None
    return _bare(tuple(reversed(axes)) if turned else tuple(axes), block_size(loop), body, team)


def _for_whole_blocks(body: tuple[Stmt, ...]) -> bool:
    """Return whether the threads of a block run an iteration of the grid together: a sequential loop is a team's."""
    match body:
        case (Loop() as loop,):
            return runs_in_one_block(loop)
        case (If(_, then, ()),):
            return _for_whole_blocks(then)
    return False


def _only_loop(body: tuple[Stmt, ...]) -> Loop | None:
    """Return the loop that the body is; of one under a condition each iteration asks for it."""
    match body:
        case (Loop() as loop,):
            return loop
        case (If(cond, (Loop(mode="parallel") as loop,), ()),) if not has_load(cond):
            return None if names_in(cond) & written_names(loop.body) else replace(loop, body=(If(cond, loop.body),))
    return None


def _deep(loop: Loop, known: frozenset[str]) -> Kernel | None:
    """Return a grid, or one block, for each iteration of the loop; None if its grids have a z axis already.

    The host then launches a grid for each iteration.
    """
    inner = _only_loop(loop.body)
    kernel = None if inner is None else _kernel(inner, known)
    if kernel is not None and kernel.z_axis is not None:
        return None
    if loop.thread_axis == "z" and (kernel is None or kernel.team is not None):
        return _kernel(replace(loop, thread_axis=""), known)
    if inner is None:
        shares = needs_team(loop.body) and privates_stay_local(loop)
        kernel = _bare((), block_size(loop), loop.body, Team("xy")) if shares else None
    alone = replace(loop, body=())
    return replace(_bare((), DEFAULT_BLOCK, loop.body) if kernel is None else kernel, z_axis=alone)


def _shared(loop: Loop, known: frozenset[str]) -> Kernel | None:
    """Return the kernel in which teams of threads share a loop.

    The loop is ``loop`` or in it, and reduces or was given to a team.
    """
    if has_team_directive(loop) or runs_in_one_block(loop):
        return _bare((), block_size(loop), (loop,), Team("xy"))
    if loop.mode != "parallel" or not privates_stay_local(loop):
        return None
    inner = _inner_axis(loop, known)
    if not loop.reductions:
        if inner is not None:
            return _rows_of_blocks(loop, known)
        if not needs_team(loop.body) or _for_whole_blocks(loop.body):
            return None
        return _bare((loop,), block_size(loop), loop.body, Team("y" if loop.thread_axis == "x" else "x"))
    if inner is not None and has_disjoint_targets(loop, inner):
        team = Team("x" if loop.thread_axis == "x" else "y", outer=True)
        return _bare((inner,), block_size(loop), (replace(loop, body=inner.body),), team)
    return _bare((), block_size(loop), (loop,), Team("xy")) if is_team_reducible(loop) else None


def _rows_of_blocks(loop: Loop, known: frozenset[str]) -> Kernel | None:
    """Return the kernel of two or three nested parallel loops, each of whose iterations has a block as its team.

    None where nothing in them is for a team, or a directive says which of the loops the threads are.
    """
    axes = [loop]
    while len(axes) < 3 and (inner := _inner_axis(axes[-1], known)) is not None:
        axes.append(inner)
    body = axes[-1].body
    if any(f.thread_axis for f in axes) or not needs_team(body) or _for_whole_blocks(body):
        return None
    deep = replace(axes.pop(0), body=()) if len(axes) > 2 else None
    return replace(_bare(tuple(axes), block_size(loop), body, Team("xy")), z_axis=deep)


def _inner_axis(loop: Loop, known: frozenset[str]) -> Loop | None:
    """Return the parallel loop that is all of the loop's body, where the two can be a grid."""
    match loop.body:
        case (Loop(lo=lo, hi=hi, mode="parallel", reductions=()) as inner,) if _on_host((lo, hi), known):
            return None if has_team_directive(inner) else inner
    return None


def _bare(axes: tuple[Loop, ...], threads: tuple[int, int], body: tuple[Stmt, ...], team: Team | None = None) -> Kernel:
    """Return a kernel whose parameters are not known yet."""
    x, y = threads
    teams = 0 if team is None else 2 if team.block_axis == "xy" and has_rows(body) else 1
    dimensions = teams if team is not None and team.block_axis == "xy" else len(axes) + teams
    shape = (1, 1) if not dimensions else (x * y, 1) if dimensions == 1 else (x, y)
    return Kernel("", axes, shape, body, (), (), (), team)


def _tiled(whole: TemporalTile) -> Kernel:
    """Return the kernel of a launch; its axes go from core to core."""
    axes = [
        Loop(f"{whole.loop.var}__core{d}", Const(0), extent, (), step)
        for d, (extent, step) in enumerate(zip(whole.extents, whole.core, strict=True))
    ]
    deep = axes.pop(0) if len(axes) > 2 else None
    return replace(_bare(tuple(axes), block_size(whole.loop), (whole.loop,)), z_axis=deep, time_tile=whole)


def _private(kernel: Kernel, kernels: list[Kernel], codelet: Codelet) -> set[str]:
    """Return the locals that each thread of ``kernel`` owns.

    They are scalars that are written before they are read, and not read by a later kernel, and the arrays that each
    iteration of a loop around all their uses owns.
    """
    used = referenced_names(kernel.body) & written_names(kernel.body)
    arrays = {v.name for v in codelet.locals if v.shape and v.name in used}
    around = {a for f in kernel.loops for a in f.private_arrays}
    kept = privatizable_arrays(kernel.body, arrays, around)
    late = upward_exposed_uses(kernel.body)
    mine = {v.name for v in codelet.locals if not v.shape and v.name in used - late}
    if kernel.loops:
        return mine | kept
    elsewhere = [read_names(k.body) & upward_exposed_uses(k.body) for k in kernels if k is not kernel]
    return mine.difference(*elsewhere) | kept


def _inherited(loops: Sequence[Loop]) -> tuple[Annotation, ...]:
    """Return what the kernel inherits: of each class the annotation of the outermost loop that has one."""
    inherited: dict[type[Annotation], Annotation] = {}
    for said in (a for f in loops for a in f.annotations if a.inherited):
        inherited.setdefault(type(said), said)
    return tuple(inherited.values())
