"""The phases of a team of threads, stored in the kernel's team: see ``lower.team``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.ir.accumulators import Accumulator, ignores_nan
from looptune.ir.def_use import names_in, referenced_names, take_name, written_names
from looptune.ir.nodes import Assign, If, Load, Local, Loop, Node, Reduction, Stmt, Var
from looptune.ir.rewrite import rewrite
from looptune.lower.passes.scalar_replacement import replace_team_scalars, replace_with_scalars
from looptune.lower.team import (
    Phase,
    TeamBranch,
    TeamFor,
    TeamLoop,
    TeamReduce,
    TeamSingle,
    all_phases,
    has_team_directive,
    is_team_reducible,
    is_two_level_reduction,
    needs_team,
    shared_rows,
)

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan


def divide_into_phases(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with the phases of its team, and the locals that these need; one without a team as it is."""
    if kernel.team is None:
        return kernel
    taken = plan.used_names
    body, broadcast = replace_team_scalars(kernel.body, taken, kernel.axes)
    phases, made = team_phases(body, kernel.locals + broadcast, taken, kernel.axes)
    return replace(
        kernel, team=replace(kernel.team, phases=phases), locals=(*kernel.locals, *broadcast, *made)
    )  # fmt: skip


def _divisible(body: tuple[Stmt, ...]) -> bool:
    """Tell whether a team has something to share out in ``body``."""
    inner = [(s.then + s.other if isinstance(s, If) else s.body) for s in body if isinstance(s, (If, Loop))]
    parallel = any(isinstance(s, Loop) and s.mode == "parallel" and not s.reductions for s in body)
    return parallel or needs_team(body) or any(_divisible(b) for b in inner)


def scalar_replaced(
    body: tuple[Stmt, ...], taken: set[str], around: tuple[Loop, ...], *, within: bool
) -> tuple[tuple[Stmt, ...], tuple[Local, ...]]:
    """Apply scalar replacement; ``within``: only inside the single loop of which ``body`` consists."""
    match body:
        case (Loop(_, _, _, inner) as loop,) if within:
            done, made = replace_with_scalars(inner, taken, around)
            return (replace(loop, body=done),), made
    return replace_with_scalars(body, taken, around)


def team_phases(
    body: tuple[Stmt, ...], private: Iterable[Local], taken: set[str], around: tuple[Loop, ...]
) -> tuple[tuple[Phase, ...], tuple[Local, ...]]:
    """Return the phases of ``body`` and the locals that they need; ``taken``: the names in use, which is extended.

    ``private`` are the locals of the team; ``around`` as for ``replace_with_scalars``.
    """
    maker = _Maker(taken, around)
    made = maker.block(body)
    return _told(made, {v.name: Var(v.name, v.dtype) for v in private if not v.shape}), tuple(maker.made)


def _told(phases: tuple[Phase, ...], private: dict[str, Var]) -> tuple[Phase, ...]:
    """Each Alone with what it must make known: the team's scalars that it assigns and that others than lane 0 read."""
    read = set[str]()
    for p in all_phases(phases):
        match p:
            case TeamReduce(loop, into):
                read |= referenced_names((loop,)) | names_in(tuple(a.target for a in into))
            case TeamFor(loop):
                read |= referenced_names((loop,))
            case TeamLoop(loop):
                read |= names_in((loop.lo, loop.hi))
            case TeamBranch(cond):
                read |= names_in(cond)
    wanted = read & private.keys()

    def tell(p: Phase) -> Phase:
        match p:
            case TeamSingle(body) if all(isinstance(s, Assign) and _constant(s, private) for s in body):
                return TeamSingle(body, is_uniform=True)
            case TeamSingle(body):
                return TeamSingle(body, tuple(private[n] for n in sorted(written_names(body) & wanted)))
            case TeamLoop(loop, body):
                return TeamLoop(loop, tuple(map(tell, body)))
            case TeamBranch(cond, then, other):
                return TeamBranch(cond, tuple(map(tell, then)), tuple(map(tell, other)))
        return p

    return tuple(map(tell, phases))


def _constant(stmt: Assign, private: Mapping[str, Var]) -> bool:
    return isinstance(stmt.target, Var) and stmt.target.name in private and not names_in(stmt.value)


class _Maker:
    def __init__(self, taken: set[str], around: tuple[Loop, ...]) -> None:
        self.used_names = taken
        self.around = around
        self.made: list[Local] = []

    def block(self, body: tuple[Stmt, ...]) -> tuple[Phase, ...]:
        out: list[Phase] = []
        alone: list[Stmt] = []

        def flush() -> None:
            if alone:
                out.append(TeamSingle(self.promoted(tuple(alone))))
                alone.clear()

        for stmt in body:
            phase = self.phase(stmt)
            if phase is None:
                alone.append(stmt)
                continue
            flush()
            out.append(phase)
        flush()
        return tuple(out)

    def phase(self, stmt: Stmt) -> Phase | None:
        """None for what lane 0 does alone."""
        match stmt:
            case Loop() if is_team_reducible(stmt):
                return self.tree(stmt)
            case Loop(mode="parallel", reductions=()) if has_team_directive(stmt) or not needs_team(stmt.body):
                inner = shared_rows(stmt)
                if inner is None:
                    return TeamFor(replace(stmt, body=self.promoted(stmt.body)))
                row = replace(inner, body=self.promoted(inner.body))
                return TeamFor(replace(stmt, body=(*stmt.body[:-1], row)))
            case Loop(_, _, _, body) if _divisible(body):
                return TeamLoop(replace(stmt, body=()), self.block(body))
            case If(cond, then, other) if _divisible((*then, *other)):
                return TeamBranch(cond, self.block(then), self.block(other))
        return None

    def tree(self, loop: Loop) -> TeamReduce:
        into = tuple(self.accumulator(r, ignores_nan(loop, r.target)) for r in loop.reductions)
        env = {a.target: a.private for a in into}

        def rule(n: Node) -> Node | None:
            return env.get(n) if isinstance(n, (Var, Load)) else None

        body, deep = rewrite(rule, loop.body), is_two_level_reduction((loop,))
        done, made = scalar_replaced(body, self.used_names, self.around, within=deep)
        self.made += made
        return TeamReduce(replace(loop, body=done), into, deep)

    def accumulator(self, r: Reduction, ignores_nan: bool) -> Accumulator:
        base = r.target.name if isinstance(r.target, Var) else r.target.array
        own, other = (Var(take_name(f"{base}_{what}", self.used_names), r.target.dtype) for what in ("own", "other"))
        self.made += [Local(v.name, v.dtype) for v in (own, other)]
        return Accumulator(r.op, r.target, own, other, ignores_nan)

    def promoted(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        done, made = replace_with_scalars(body, self.used_names, self.around)
        self.made += made
        return done
