"""A team of threads at the body of one grid iteration: what one of them does by itself, and what they share.

    for j (grid):                       a team for each j
        mean[j] = 0                     TeamSingle    lane 0
        for i (reduces): mean[j] += …   TeamReduce    each lane sums every L-th term, a tree combines the L lanes
        mean[j] /= n                    TeamSingle
        for i (parallel): A[i][j] = …   TeamFor       each lane runs every L-th iteration
        for t: …                        TeamLoop      all lanes together, because of a TeamReduce inside
        if (c) …                        TeamBranch    likewise

After each of these, every lane sees the effects of all others: memory through a barrier, and a scalar that the team
owns because all lanes hold the same value of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from looptune.ir.def_use import names_in, referenced_names, written_names
from looptune.ir.intervals import affine_terms, never_equal
from looptune.ir.nodes import Assign, Expr, If, Load, Local, Loop, Node, Reduction, Stmt, Var, While
from looptune.ir.rewrite import rewrite, walk, walk_stmts
from looptune.lower.accumulators import Accumulator, ignores_nan
from looptune.lower.passes.scalar_replacement import replace_with_scalars


@dataclass(frozen=True, slots=True)
class TeamSingle:
    """``broadcast`` are the scalars of the team that the other lanes have to be told.

    ``is_uniform``: every lane does it, as it sets such scalars to constants and nothing else.
    """

    body: tuple[Stmt, ...]
    broadcast: tuple[Var, ...] = ()
    is_uniform: bool = False


@dataclass(frozen=True, slots=True)
class TeamReduce:
    """``loop`` accumulates into what is ``private`` of the accumulators.

    ``two_level``: its only statement is another such loop, which a block shares out along x where the outer one has y.
    """

    loop: Loop
    accumulators: tuple[Accumulator, ...]
    two_level: bool = False


@dataclass(frozen=True, slots=True)
class TeamFor:
    """A loop whose iterations the lanes of the team share."""

    loop: Loop


@dataclass(frozen=True, slots=True)
class TeamLoop:
    """``loop`` without its body."""

    loop: Loop
    body: tuple[Phase, ...]


@dataclass(frozen=True, slots=True)
class TeamBranch:
    """A condition that all threads of the team evaluate."""

    cond: Expr
    then: tuple[Phase, ...]
    other: tuple[Phase, ...]


Phase = TeamSingle | TeamReduce | TeamFor | TeamLoop | TeamBranch


@dataclass(frozen=True, slots=True)
class Team:
    """``block_axis``: the dimension of the block that is the team's; "xy" where that is the whole block.

    ``outer``: the loop reduced stands around the grid's loop in the codelet, ``for i: for j (grid): s[j] += …``.
    """

    block_axis: Literal["x", "y", "xy"]
    outer: bool = False
    phases: tuple[Phase, ...] = ()

    @property
    def trees(self) -> tuple[TeamReduce, ...]:
        return tuple(p for p in _all(self.phases) if isinstance(p, TeamReduce))

    @property
    def shared(self) -> tuple[Loop, ...]:
        """The loops whose iterations the lanes divide, those that reduce and the others, in textual order."""
        found: list[Loop] = []
        for p in _all(self.phases):
            match p:
                case TeamReduce(loop, _, deep):
                    found += (loop, *(f for f in loop.body if isinstance(f, Loop) and deep and self.block_axis == "xy"))
                case TeamFor(loop):
                    found.append(loop)
        return tuple(found)

    @property
    def inner_loops(self) -> tuple[Loop | While, ...]:
        """The loops that every lane runs by itself, or that all run together."""
        shared, found = self.shared, list[Loop | While]()
        for p in _all(self.phases):
            match p:
                case TeamLoop(loop):
                    found.append(loop)
                case TeamSingle(body) | TeamReduce(Loop(body=body)) | TeamFor(Loop(body=body)):
                    inner = [n for n in walk(body) if isinstance(n, (Loop, While))]
                    found += (n for n in inner if all(n is not f for f in shared))
        return tuple(found)

    @property
    def broadcasts(self) -> tuple[Var, ...]:
        """The scalars that lane 0 makes known to the others."""
        return tuple(dict.fromkeys(v for p in _all(self.phases) if isinstance(p, TeamSingle) for v in p.broadcast))


def _all(phases: Iterable[Phase]) -> Iterator[Phase]:
    for phase in phases:
        yield phase
        match phase:
            case TeamLoop(_, body):
                yield from _all(body)
            case TeamBranch(_, then, other):
                yield from _all((*then, *other))


def is_team_reducible(loop: Loop) -> bool:
    """Tell whether the loop reduces into elements that do not change in it.

    Each lane can then have a local for each.
    """
    changing = {loop.var} | {f.var for f in walk(loop.body) if isinstance(f, Loop)} | written_names(loop.body)
    fixed = all(isinstance(r.target, Var) or not names_in(r.target.index) & changing for r in loop.reductions)
    return loop.mode == "parallel" and bool(loop.reductions) and fixed


def has_team_directive(loop: Loop) -> bool:
    """Tell whether a directive distributes the iterations of a loop without reductions over a team."""
    return loop.mode == "parallel" and loop.thread_axis == "team" and not loop.reductions


def privates_stay_local(loop: Loop) -> bool:
    """No array that each iteration has its own of would have to be known to all lanes of a team.

    Loops that it shares hold all there is of it.
    """
    arrays = {a for f in walk_stmts(loop) if isinstance(f, Loop) for a in f.private_arrays}
    return not arrays or not arrays & _outside_trees((loop,))


def _outside_trees(body: tuple[Stmt, ...]) -> set[str]:
    """Return what is named outside loops that a team shares and that own it."""
    found: set[str] = set()
    for stmt in body:
        match stmt:
            case Loop(_, _, _, inner, private_arrays=own) if is_team_reducible(stmt) or has_team_directive(stmt):
                found |= referenced_names(inner) - set(own)
            case Loop(_, _, _, inner):
                found |= _outside_trees(inner)
            case If(_, then, other):
                found |= _outside_trees((*then, *other))
            case _:
                found |= referenced_names((stmt,))
    return found


def has_disjoint_targets(loop: Loop, inner: Loop) -> bool:
    """Each iteration of ``inner`` accumulates into elements of its own in all iterations of the reducing ``loop``."""
    changing = {loop.var} | {f.var for f in walk(inner.body) if isinstance(f, Loop)} | written_names(loop.body)
    places: dict[str, set[tuple[Expr, ...]]] = {}
    for r in loop.reductions:
        match r.target:
            case Load(array, index):
                places.setdefault(array, set()).add(index)
            case Var():
                return False
    own = all(is_injective_index(inner, index, changing) for found in places.values() for index in found)
    return own and all(never_equal(a, b) for found in places.values() for a, b in combinations(found, 2))


def is_injective_index(inner: Loop, index: tuple[Expr, ...], changing: set[str]) -> bool:
    """One subscript is a multiple of the loop's variable, plus what does not change."""
    var = Var(inner.var, inner.dtype)
    terms = [affine_terms(e)[0] for e in index]
    multiple = any(t.get(var) and all(e == var or var.name not in names_in(e) for e in t) for t in terms)
    return multiple and not names_in(index) & (changing - {inner.var})


def needs_team(body: tuple[Stmt, ...]) -> bool:
    """``body`` is for a team: it has something to reduce, or a loop that a directive gives to one."""
    return any(_teamed(stmt) for stmt in body)


def _teamed(stmt: Stmt) -> bool:
    match stmt:
        case Loop(_, _, _, body):
            return is_team_reducible(stmt) or has_team_directive(stmt) or needs_team(body)
        case If(_, then, other):
            return needs_team((*then, *other))
    return False


def _divisible(body: tuple[Stmt, ...]) -> bool:
    """Tell whether a team has something to share out in ``body``."""
    inner = [(s.then + s.other if isinstance(s, If) else s.body) for s in body if isinstance(s, (If, Loop))]
    parallel = any(isinstance(s, Loop) and s.mode == "parallel" and not s.reductions for s in body)
    return parallel or needs_team(body) or any(_divisible(b) for b in inner)


def is_two_level_reduction(body: tuple[Stmt, ...]) -> bool:
    """Two loops that reduce the same, one all that the other holds: a block can share out both."""
    match body:
        case (Loop(body=(Loop() as inner,)) as loop,):
            return (
                is_team_reducible(loop) and is_team_reducible(inner) and set(inner.reductions) == set(loop.reductions)
            )
    return False


def scalar_replaced(
    body: tuple[Stmt, ...], taken: set[str], around: tuple[Loop, ...], *, within: bool
) -> tuple[tuple[Stmt, ...], tuple[Local, ...]]:
    """``promote``; ``within``: not around the one loop that ``body`` is."""
    match body:
        case (Loop(_, _, _, inner) as loop,) if within:
            done, made = replace_with_scalars(inner, taken, around)
            return (replace(loop, body=done),), made
    return replace_with_scalars(body, taken, around)


def team_phases(
    body: tuple[Stmt, ...], private: Iterable[Local], taken: set[str], around: tuple[Loop, ...]
) -> tuple[tuple[Phase, ...], tuple[Local, ...]]:
    """Return the phases of ``body`` and the locals that they need; ``taken``: the names in use, which is extended.

    ``private`` are the locals of the team; ``around`` as for ``promote``.
    """
    maker = _Maker(taken, around)
    made = maker.block(body)
    return _told(made, {v.name: Var(v.name, v.dtype) for v in private if not v.shape}), tuple(maker.made)


def _told(phases: tuple[Phase, ...], private: dict[str, Var]) -> tuple[Phase, ...]:
    """Each Alone with what it must make known: the team's scalars that it assigns and that others than lane 0 read."""
    read = set[str]()
    for p in _all(phases):
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
        self.taken = taken
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
                return TeamFor(replace(stmt, body=self.promoted(stmt.body)))
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
        done, made = scalar_replaced(body, self.taken, self.around, within=deep)
        self.made += made
        return TeamReduce(replace(loop, body=done), into, deep)

    def accumulator(self, r: Reduction, quiet: bool) -> Accumulator:
        base = r.target.name if isinstance(r.target, Var) else r.target.array
        own, other = (Var(self.fresh(f"{base}_{what}"), r.target.dtype) for what in ("own", "other"))
        self.made += [Local(v.name, v.dtype) for v in (own, other)]
        return Accumulator(r.op, r.target, own, other, quiet)

    def promoted(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        done, made = replace_with_scalars(body, self.taken, self.around)
        self.made += made
        return done

    def fresh(self, name: str) -> str:
        free = next(c for k in range(len(self.taken) + 2) if (c := f"{name}{k}" if k else name) not in self.taken)
        self.taken.add(free)
        return free
