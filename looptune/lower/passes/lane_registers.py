"""Loops that a team shares, in terms of the turns of a lane; elements that a lane uses repeatedly are in registers.

    for j (shared): P[p][j] = 0                 lane + 32 t is the lane's j in its turn t:  for t in 0..4: k[t] = 0
    for i: y_own = ...                          for i: y_own = ...
      for j (shared): P[p][j] += A[i][j]   ==>    for t in 0..4: k[t] += A[i][lane + 32 t]
                                                for t in 0..4: P[p][lane + 32 t] = k[t]

Turns are counted if every lane has the same constant number of them, so that a compiler can unroll them all, and if an
element is held in a register. The latter is done for an array that the team accesses only in such loops: with the same
constant bounds, so that an iteration always belongs to the same lane, and only at the one element that belongs to the
iteration. The first of the loops assigns all elements, and one of the loops is in another loop, in which they would be
loaded and stored repeatedly. If the turns are unrolled, the registers have names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from looptune.ir.def_use import names_in, referenced_names, written_names
from looptune.ir.nodes import Assign, Binary, Const, Expr, If, Load, Local, Loop, Node, Stmt, Var
from looptune.ir.rewrite import rewrite, substitute, walk
from looptune.ir.simplify import add, mul
from looptune.lower.passes.init_fusion import fuse_initializers
from looptune.lower.team import (
    LANE,
    Phase,
    TeamBranch,
    TeamFor,
    TeamLoop,
    TeamReduce,
    TeamSingle,
    is_injective_index,
    shared_rows,
)

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan

MOST_BYTES = 128
"""Of the registers of a thread, which has up to 1020 and 128 where an SM is full of threads."""
TURN = "__turn"
"""What the names of variables end in that count a lane's turns."""


@dataclass(frozen=True, slots=True)
class _LaneElement:
    """The element of an iteration of ``loop``, held in the array ``own`` by its turn."""

    element: Load
    loop: Loop
    own: Local


def fuse_first_values(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with the first values of sums where those are joined, by ``init_fusion``."""
    if kernel.team is None or kernel.lanes == 1:
        return kernel
    return replace(kernel, team=replace(kernel.team, phases=fuse_initializers(kernel.team.phases)))


def keep_lane_elements(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with arrays of each thread, which compilers keep in registers, for elements of one lane."""
    team = kernel.team
    if team is None or kernel.lanes == 1:
        return kernel
    before = team.phases
    found = _found(kernel, before)
    phases: list[Phase] = []
    made = _Turns({k.element.array: k for k in found}, kernel.lanes)
    for k, phase in enumerate(before):
        phases.append(made.phase(phase))
        later = _used(before[k + 1 :])
        phases += [made.store(f) for f in found if f.element.array in _used((phase,)) - later]
    return replace(kernel, team=replace(team, phases=tuple(phases)), locals=(*kernel.locals, *(k.own for k in found)))


def _found(kernel: Kernel, phases: tuple[Phase, ...]) -> list[_LaneElement]:
    """Return what to keep, as much as there is room for."""
    loops, elsewhere = list(_shared(phases)), _elsewhere(phases)
    changing = written_names(kernel.body) | {f.var for f in walk(kernel.body) if isinstance(f, Loop)}
    taken = _names(kernel)
    found: list[_LaneElement] = []
    room = MOST_BYTES
    for array in sorted(kernel.writes & set(kernel.arrays) - elsewhere):
        mine = [f for f in loops if array in referenced_names((f,))]
        element = _element(array, mine, changing)
        if element is None or not _begins(array, phases) or array not in _used(_repeated(phases)):
            continue
        turns = _turns(mine[0], kernel.lanes)
        room -= turns * np.dtype(element.dtype).itemsize
        if room < 0:
            return found
        name = f"{array}_kept" + "_" * (f"{array}_kept" in taken)
        found.append(_LaneElement(element, mine[0], Local(name, element.dtype, (Const(turns),))))
    return found


def _names(kernel: Kernel) -> set[str]:
    used = referenced_names((*kernel.loops, *kernel.body)) | {v.name for v in kernel.locals}
    return used | {*kernel.arrays, *kernel.scalars}


def _trips(loop: Loop) -> int | None:
    """None where the bounds are not constant, or the variable may be negative, which places are not."""
    match loop.lo, loop.hi:
        case Const(int(lo)), Const(int(hi)) if lo >= 0:
            return max(0, -(-(hi - lo) // loop.step))
    return None


def _turns(loop: Loop, lanes: int) -> int:
    """How many a lane has at most."""
    trips = _trips(loop)
    assert trips is not None, "the bounds are constant"
    return -(-trips // lanes)


def _element(array: str, loops: list[Loop], changing: set[str]) -> Load | None:
    """Return the one that each iteration of all the loops uses, in terms of the first one's variable."""
    first = loops[0]
    same = all((f.lo, f.hi, f.step) == (first.lo, first.hi, first.step) for f in loops)
    if not same or not _trips(first):
        return None
    var = Var(first.var, first.dtype)
    found = {
        replace(n, index=substitute(n.index, {f.var: var}))
        for f in loops for n in walk(f.body) if isinstance(n, Load) and n.array == array
    }  # fmt: skip
    element = found.pop()
    return None if found or not is_injective_index(first, element.index, changing) else element


def _begins(array: str, phases: tuple[Phase, ...]) -> bool:
    """Tell whether the first phase that touches the array assigns the element of each iteration before it reads any."""
    first = next(p for p in phases if array in _used((p,)))
    match first:
        case TeamFor(Loop(body=body)):
            touching = next(s for s in body if array in referenced_names((s,)))
            match touching:
                case Assign(Load(name), value):
                    return name == array and array not in names_in(value)
    return False


def _shared(phases: Iterable[Phase]) -> Iterator[Loop]:
    """Yield the loops that lanes share, one iteration in so many each."""
    for phase in phases:
        match phase:
            case TeamFor(loop) | TeamReduce(loop, _, False):
                yield replace(loop, reductions=())
            case TeamLoop(_, body):
                yield from _shared(body)
            case TeamBranch(_, then, other):
                yield from _shared((*then, *other))


def _elsewhere(phases: Iterable[Phase]) -> set[str]:
    """Return what is named outside of these."""
    found: set[str] = set()
    for phase in phases:
        match phase:
            case TeamSingle(body):
                found |= referenced_names(body)
            case TeamReduce(loop, into, deep):
                found |= names_in((*(a.target for a in into), loop.lo, loop.hi)) | (
                    referenced_names((loop,)) if deep else set()
                )
            case TeamFor(loop):
                rows = shared_rows(loop) is not None
                found |= names_in((loop.lo, loop.hi)) | (referenced_names((loop,)) if rows else set())
            case TeamLoop(loop, body):
                found |= names_in((loop.lo, loop.hi)) | _elsewhere(body)
            case TeamBranch(cond, then, other):
                found |= names_in(cond) | _elsewhere((*then, *other))
    return found


def _used(phases: Iterable[Phase]) -> set[str]:
    return referenced_names(_shared(phases))


def _repeated(phases: Iterable[Phase]) -> tuple[Phase, ...]:
    """Those that a loop repeats."""
    return tuple(p for p in phases if isinstance(p, TeamLoop))


@dataclass(frozen=True, slots=True)
class _Turns:
    """Loops over the turns of a lane in place of those that lanes share; ``keep_lane_elements`` by the array's name."""

    elements: dict[str, _LaneElement]
    lanes: int

    def phase(self, phase: Phase) -> Phase:
        match phase:
            case TeamFor(loop) if self.concerns(loop):
                return TeamFor(self.turns(loop))
            case TeamReduce(loop, _, False) if self.concerns(loop):
                return replace(phase, loop=self.turns(loop))
            case TeamLoop(_, body):
                return replace(phase, body=tuple(map(self.phase, body)))
            case TeamBranch(_, then, other):
                return replace(phase, then=tuple(map(self.phase, then)), other=tuple(map(self.phase, other)))
        return phase

    def concerns(self, loop: Loop) -> bool:
        trips = _trips(loop)
        even = trips is not None and trips > 0 and trips % self.lanes == 0
        return even or bool(referenced_names(loop.body) & self.elements.keys())

    def store(self, k: _LaneElement) -> TeamFor:
        held = Load(k.own.name, (_turn(k.loop),), k.own.dtype)
        return TeamFor(self.over(k.loop, (Assign(k.element, held),)))

    def turns(self, loop: Loop) -> Loop:
        def rule(n: Node) -> Node | None:
            if isinstance(n, Load) and n.array in self.elements:
                return Load(self.elements[n.array].own.name, (_turn(loop),), n.dtype)
            return None

        return self.over(loop, rewrite(rule, loop.body))

    def over(self, loop: Loop, body: tuple[Stmt, ...]) -> Loop:
        turn = _turn(loop)
        trip = add(Var(LANE), mul(Const(self.lanes), turn))
        place: Expr = add(loop.lo, mul(Const(loop.step, loop.dtype), trip))
        inside = substitute(body, {loop.var: place})
        turns = _turns(loop, self.lanes)
        if _trips(loop) != turns * self.lanes:
            inside = (If(Binary("<", place, loop.hi), inside),)
        count = Const(turns)
        return replace(
            loop, var=turn.name, lo=Const(0), hi=count, step=1, body=inside, mode="sequential", reductions=()
        )


def _turn(loop: Loop) -> Var:
    return Var(loop.var + TURN)
