"""A team of threads in one iteration of the grid: what one thread does alone, and what they share.

    for j (grid):                       a team for each j
        mean[j] = 0                     TeamSingle    lane 0
        for i (reduces): mean[j] += …   TeamReduce    each lane sums every L-th term, a tree combines the L lanes
        mean[j] /= n                    TeamSingle
        for i (parallel): A[i][j] = …   TeamFor       each lane runs every L-th iteration
        for t: …                        TeamLoop      all lanes together, because of a TeamReduce inside
        if (c) …                        TeamBranch    the same

After each of these, every lane sees the effects of all others: memory through a barrier, and a scalar of the team
because all lanes hold the same value of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from looptune.ir.accumulators import Accumulator
from looptune.ir.def_use import names_in, read_names, referenced_names, written_names
from looptune.ir.intervals import affine_terms, never_equal
from looptune.ir.nodes import Assign, Expr, If, Load, Local, Loop, Stmt, Var, While
from looptune.ir.rewrite import walk, walk_stmts

LANE = "lane__number"
"""The variable that says which lane of its team a thread is."""


@dataclass(frozen=True, slots=True)
class TeamSingle:
    """Statements that one lane executes; ``broadcast`` are the scalars whose values the other lanes need.

    ``is_uniform``: every lane executes them, since they only set such scalars to constants.
    """

    body: tuple[Stmt, ...]
    broadcast: tuple[Var, ...] = ()
    is_uniform: bool = False


@dataclass(frozen=True, slots=True)
class TeamReduce:
    """A loop whose iterations the lanes divide; it accumulates into the ``private`` variables of the accumulators.

    ``two_level``: its only statement is another such loop, which a block divides along x, and the outer one along y.
    ``updates``: the statements by which lane 0 adds the lanes' results to elements of arrays, see
    ``passes.team_updates``.
    """

    loop: Loop
    accumulators: tuple[Accumulator, ...]
    two_level: bool = False
    updates: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class TeamFor:
    """A loop whose iterations the lanes of the team share."""

    loop: Loop


@dataclass(frozen=True, slots=True)
class TeamLoop:
    """A loop that all lanes execute together; ``loop`` is without its body."""

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
    """The threads of a block, or of one row or column of it, that execute an iteration together.

    ``block_axis``: the dimension of the block; "xy" is the whole block. ``outer``: in the codelet, the loop that
    reduces stands around the grid's loop, ``for i: for j (grid): s[j] += …``. ``tiles``: arrays in shared memory.
    """

    block_axis: Literal["x", "y", "xy"]
    outer: bool = False
    phases: tuple[Phase, ...] = ()
    tiles: tuple[Local, ...] = ()

    @property
    def trees(self) -> tuple[TeamReduce, ...]:
        return tuple(p for p in all_phases(self.phases) if isinstance(p, TeamReduce))

    @property
    def shared(self) -> tuple[Loop, ...]:
        """Return the loops whose iterations the lanes divide, those that reduce and the others, in textual order."""
        found: list[Loop] = []
        for p in all_phases(self.phases):
            match p:
                case TeamReduce(loop, _, deep):
                    found += (loop, *(f for f in loop.body if isinstance(f, Loop) and deep and self.block_axis == "xy"))
                case TeamFor(loop):
                    found.append(loop)
        return tuple(found)

    @property
    def inner_loops(self) -> tuple[Loop | While, ...]:
        """Return the loops that every lane runs by itself, or that all run together."""
        shared, found = self.shared, list[Loop | While]()
        for p in all_phases(self.phases):
            match p:
                case TeamLoop(loop):
                    found.append(loop)
                case TeamSingle(body) | TeamReduce(Loop(body=body)) | TeamFor(Loop(body=body)):
                    inner = [n for n in walk(body) if isinstance(n, (Loop, While))]
                    found += (n for n in inner if all(n is not f for f in shared))
        return tuple(found)

    @property
    def broadcasts(self) -> tuple[Var, ...]:
        """Return the scalars that lane 0 sends to the other lanes."""
        return tuple(
            dict.fromkeys(v for p in all_phases(self.phases) if isinstance(p, TeamSingle) for v in p.broadcast)
        )


def exchanged_names(phases: Iterable[Phase], *, again: bool = False) -> set[str]:
    """Return the names that lanes may read after other lanes have written them: in another phase, or ``again``.

    The barriers between phases make this right; a compiler that is told that such an array changes through one name
    only, as ``restrict`` says, may nevertheless read it before them.
    """
    found: set[str] = set()
    used: list[tuple[set[str], set[str]]] = []
    for phase in phases:
        match phase:
            case TeamLoop(_, body):
                found |= exchanged_names(body, again=True)
            case TeamBranch(_, then, other):
                found |= exchanged_names(then, again=again) | exchanged_names(other, again=again)
        stmts = _statements(phase)
        reads, writes = read_names(stmts), written_names(stmts)
        found |= reads & writes if again else set()
        for other_reads, other_writes in used:
            found |= reads & other_writes | other_reads & writes
        used.append((reads, writes))
    return found


def _statements(phase: Phase) -> tuple[Stmt, ...]:
    """Return all statements of a phase."""
    match phase:
        case TeamSingle(body):
            return body
        case TeamReduce(loop, updates=updates):
            return (loop, *updates)
        case TeamFor(loop):
            return (loop,)
        case TeamLoop(loop, body):
            return (loop, *(s for p in body for s in _statements(p)))
        case TeamBranch(cond, then, other):
            inside = (tuple(s for p in some for s in _statements(p)) for some in (then, other))
            return (If(cond, *inside),)


def all_phases(phases: Iterable[Phase]) -> Iterator[Phase]:
    """Yield the phases and those inside of them."""
    for phase in phases:
        yield phase
        match phase:
            case TeamLoop(_, body):
                yield from all_phases(body)
            case TeamBranch(_, then, other):
                yield from all_phases((*then, *other))


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


def runs_in_one_block(loop: Loop) -> bool:
    """Tell whether a directive has the threads of one block run a sequential loop together."""
    return loop.mode == "sequential" and loop.thread_axis == "team"


def shared_rows(loop: Loop) -> Loop | None:
    """Return the loop directly in a loop of a team that the same team shares too, or None.

    The threads of a whole block have the iterations of the outer one along y and those of the inner one along x. What
    stands before the inner loop sets locals, which every thread does for itself.
    """
    match loop.body:
        case (*first, Loop() as inner) if has_team_directive(loop) and has_team_directive(inner):
            own = all(isinstance(s, Assign) and isinstance(s.target, Var) and not s.name for s in first)
            return inner if own else None
    return None


def has_rows(body: tuple[Stmt, ...]) -> bool:
    """Return whether a block of two dimensions shares two nested loops of the body."""
    if is_two_level_reduction(body):
        return True
    return any(isinstance(f, Loop) and shared_rows(f) is not None for f in walk(body))


def privates_stay_local(loop: Loop) -> bool:
    """Return whether every private array of ``loop`` is used only inside the loops that own it.

    A private array that is used outside would have to be sent to all lanes of a team, which is not implemented.
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
    """Return whether each iteration of ``inner`` accumulates into its own elements in all iterations of ``loop``."""
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
    """Return whether a subscript is a multiple of the loop's variable plus a part that does not change."""
    var = Var(inner.var, inner.dtype)
    terms = [affine_terms(e)[0] for e in index]
    multiple = any(t.get(var) and all(e == var or var.name not in names_in(e) for e in t) for t in terms)
    return multiple and not names_in(index) & (changing - {inner.var})


def needs_team(body: tuple[Stmt, ...]) -> bool:
    """Return whether ``body`` needs a team: it has a parallel reduction, or a loop that a directive gives to a team."""
    return any(_teamed(stmt) for stmt in body)


def _teamed(stmt: Stmt) -> bool:
    match stmt:
        case Loop(_, _, _, body):
            return is_team_reducible(stmt) or has_team_directive(stmt) or needs_team(body)
        case If(_, then, other):
            return needs_team((*then, *other))
    return False


def is_two_level_reduction(body: tuple[Stmt, ...]) -> bool:
    """Return whether the body is two nested loops, and nothing else, that reduce the same: a block can divide both."""
    match body:
        case (Loop(body=(Loop() as inner,)) as loop,):
            return (
                is_team_reducible(loop) and is_team_reducible(inner) and set(inner.reductions) == set(loop.reductions)
            )
    return False
