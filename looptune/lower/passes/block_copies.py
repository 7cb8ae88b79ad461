"""Copies of the elements that a block uses and writes in an iteration of the grid, if ``stage`` asks for them.

    for b (grid): for w: for t (team): for i (team): A[i - t] = ...  the tile of a wave
        load        each element that the block accesses, to shared memory; neighbours along x
        compute     for w: for t: for i: A_block[i - t - first] = ...
        store       each element that the block may write, and no other: it may be that of a block beside it

The block's elements are those of ``poly.block_footprint``. No two blocks of a launch use an element that one of them
writes, since the grid's loops are parallel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import count
from math import prod
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import Assign, Const, Expr, If, Load, Local, Loop, Node, Stmt, Var
from looptune.ir.rewrite import map_blocks, rewrite, walk
from looptune.ir.simplify import add, mul, sub
from looptune.lower.staged_tiles import staged_arrays, staging_loops, without_tiles
from looptune.lower.team import Phase, TeamBranch, TeamFor, TeamLoop, has_team_directive
from looptune.lower.thread_code import map_thread_code
from looptune.poly.block_footprint import BlockFootprint, NoFootprint, sum_of
from looptune.poly.isl_limits import IslLimitExceeded

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan
    from looptune.poly.block_footprint import Extent


def copy_block_elements(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with copies of the arrays that a loop of a block's team stages.

    DirectiveError where a block cannot have a copy.
    """
    if kernel.team is None or kernel.team.block_axis != "xy" or not kernel.loops:
        return kernel
    return reduce(lambda k, array: _copied(k, array, plan), staged_arrays(walk(kernel.body)), kernel)


def _copied(kernel: Kernel, array: str, plan: Plan) -> Kernel:
    staging = next(f for f in staging_loops(walk(kernel.body)) if array in staged_arrays((f,)))
    inner = {f.var for f in walk(kernel.body) if isinstance(f, Loop)} | {v.name for v in kernel.locals}
    if not any(isinstance(n, Load) and n.array == array for n in walk(kernel.body)):
        return _without(kernel, array)
    shared = [n for n in walk(kernel.body) if isinstance(n, Var) and n.name not in inner]
    try:
        found = BlockFootprint.of(plan.codelet, kernel.body, list(dict.fromkeys(shared)), array)
        if found.empty:
            return _without(kernel, array)
        steps = _steps_of_lanes(kernel, array)
        copy = _BlockCopy(array, _fresh(array, kernel, plan), plan.array(array).dtype, found.box(), steps)
    except (IslLimitExceeded, NoFootprint) as no:
        raise DirectiveError(f"stage {array} at loop {staging.var}, in a tile of a team: {no}", staging.span) from None
    load = _shared_out(found.loads(copy.load, copy.element))
    store = _shared_out(found.stores(copy.store, copy.element))

    placed = _Placed(copy, count())
    inside = map_thread_code(_without(kernel, array), placed.block)
    assert inside.team is not None, "the kernel keeps its team"
    team = replace(inside.team, phases=_around(inside.team.phases, load, store),
                   tiles=(*inside.team.tiles, Local(copy.name, copy.dtype, (Const(copy.size),))))  # fmt: skip
    return replace(inside, team=team, positions=inside.positions | placed.names)


def _steps_of_lanes(kernel: Kernel, array: str) -> tuple[int, ...]:
    """Return how far apart neighbours along x are in each dimension, by what most accesses to the array say."""
    told: Counter[tuple[int, ...]] = Counter()
    for loop in (f for f in walk(kernel.body) if isinstance(f, Loop) and has_team_directive(f)):
        lane = Var(loop.var, loop.dtype)
        inner = any(isinstance(n, Loop) and has_team_directive(n) for n in walk(loop.body))
        for load in (n for n in walk(loop.body) if isinstance(n, Load) and n.array == array and not inner):
            told[tuple(affine_terms(e)[0].get(lane, 0) for e in load.index)] += 1
    return max(told, key=lambda steps: told[steps], default=())


def _without(kernel: Kernel, array: str) -> Kernel:
    """Return the kernel without the request for copies of the array."""

    def rule(n: Node) -> Node | None:
        return without_tiles(n, [array]) if isinstance(n, Loop) and array in staged_arrays((n,)) else None

    done = map_thread_code(kernel, lambda body: rewrite(rule, body))
    return replace(done, body=rewrite(rule, kernel.body))


def _around(phases: tuple[Phase, ...], load: tuple[Phase, ...], store: tuple[Phase, ...]) -> tuple[Phase, ...]:
    """Return the phases with the copies before and after the loop that the block runs, under its conditions."""
    match phases:
        case (TeamBranch(_, then, ()) as branch,):
            return (replace(branch, then=_around(then, load, store)),)
    return (*load, *phases, *store)


def _shared_out(stmts: tuple[Stmt, ...]) -> tuple[Phase, ...]:
    """Return loops of copies as phases; the threads of a block share the innermost two of a nest, rows along x."""

    def phase(stmt: Stmt) -> Phase:
        match stmt:
            case If(cond, then, other):
                return TeamBranch(cond, _shared_out(then), _shared_out(other))
            case Loop(body=(Loop(body=(Loop(),)),)):
                return TeamLoop(stmt, _shared_out(stmt.body))
            case Loop(body=(Loop() as inner,)):
                row = replace(inner, mode="parallel", thread_axis="team")
                return TeamFor(replace(stmt, mode="parallel", thread_axis="team", body=(row,)))
            case Loop():
                return TeamFor(replace(stmt, mode="parallel", thread_axis="team"))
        raise AssertionError("an element has a loop for each dimension")

    return tuple(map(phase, stmts))


class _Placed:
    """Makes accesses to an array those to its copy: from one place, a variable, the others are at constant distances.

    It is that of the least of the elements of a statement, so that it is not negative.
    """

    def __init__(self, copy: _BlockCopy, numbers: Iterator[int]) -> None:
        self.copy, self.numbers = copy, numbers
        self.names: frozenset[str] = frozenset()

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(made for stmt in body for made in self.statement(stmt))

    def statement(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, Assign):
            return (rewrite(self.copy.element_in, map_blocks(self.block, stmt)),)
        loads = [n for n in walk((stmt.target, stmt.value)) if isinstance(n, Load) and n.array == self.copy.array]
        least: dict[Expr, int] = {}
        for flat, beyond in (self.copy.place(n.index) for n in loads):
            least[flat] = min(beyond, least.get(flat, beyond))
        held = {flat: Var(f"{self.copy.array}_block{next(self.numbers)}__at", "uint32") for flat in least}

        def rule(n: Node) -> Node | None:
            if not (isinstance(n, Load) and n.array == self.copy.array):
                return None
            flat, beyond = self.copy.place(n.index)
            return Load(self.copy.name, (add(held[flat], Const(beyond - least[flat])),), n.dtype)

        self.names |= {v.name for v in held.values()}
        places = (Assign(v, add(flat, Const(least[flat]))) for flat, v in held.items())
        return (*places, rewrite(rule, stmt))


class _BlockCopy:
    """The copy ``name`` of a box of elements.

    Neighbouring threads, whose subscripts differ by ``steps``, have elements at odd distances if there are rows to be
    made longer: all banks of shared memory are odd multiples of such a distance.
    """

    def __init__(self, array: str, name: str, dtype: str, box: Sequence[Extent], steps: Sequence[int]) -> None:
        self.array, self.name, self.dtype, self.box = array, name, dtype, box
        self.widths = [e.count for e in box]
        if len(box) > 1 and self.distance(steps) % 2 == 0:
            self.widths[-1] += 1
        self.element = tuple(Var(f"{array}{d}__own", e.first.dtype) for d, e in enumerate(box))

    def distance(self, steps: Sequence[int]) -> int:
        """Return the elements between two that are so many apart along each dimension."""
        return sum(step * prod(self.widths[d + 1 :]) for d, step in enumerate(steps))

    @property
    def size(self) -> int:
        return prod(self.widths)

    def at(self, index: Sequence[Expr]) -> Load:
        """Return the copy of an element of the array."""
        flat, beyond = self.place(index)
        return Load(self.name, (add(flat, Const(beyond)),), self.dtype)

    def element_in(self, n: Node) -> Node | None:
        """Return the copy of what a node is an access to, or None."""
        return self.at(n.index) if isinstance(n, Load) and n.array == self.array else None

    def place(self, index: Sequence[Expr]) -> tuple[Expr, int]:
        """Return where the copy is: a sum that those of neighbours have in common, and a constant to be added."""
        flat: Expr = Const(0)
        beyond = 0
        for e, extent, n in zip(index, self.box, self.widths, strict=True):
            terms, constant = affine_terms(sub(e, extent.first))
            flat = add(mul(flat, Const(n)), sum_of([(k, term) for term, k in terms.items()], 0, e.dtype))
            beyond = beyond * n + constant
        return flat, beyond

    @property
    def load(self) -> Assign:
        """Return the statement that copies the element."""
        return Assign(self.at(self.element), Load(self.array, self.element, self.dtype))

    @property
    def store(self) -> Assign:
        """Return the statement that writes the element back."""
        return Assign(Load(self.array, self.element, self.dtype), self.at(self.element))


def _fresh(array: str, kernel: Kernel, plan: Plan) -> str:
    taken = {*plan.used_names, *(v.name for v in kernel.locals)}
    return next(c for k in range(len(taken) + 1) if (c := f"{array}_block{k or ''}__tile") not in taken)
