"""Copies of the elements of an array that one thread, or one block, alone uses and writes, if ``stage`` asks for them.

    for j (grid): for i in i0 .. i0 + 32: for k in i0 .. i: A[i][j] -= A[i][k] * A[k][j]
        thread      A_own[v] = A[i0 + v][j], v in 0 .. 32;  A_own[i - i0] -= A[i][k] * A_own[k - i0];  and back
    for k (one block): for i: for j: A[i][j] -= A[i][k] * A[k][j]
        block       the same with a tile in shared memory, which its threads fill and write back

A thread's copy is an array of its own: no other thread accesses an element with the same value of the grid's variable,
which is one subscript of all of them. What else the kernel reads of the array must be elements that it never writes. An
element waits neither for a store nor for a load of another one, which may be the same as far as a compiler knows. The
copies are as long as the subscripts differ, which must be a number. If the iterations of all loops are numbers, they
are written one after the other, so that a copy of a thread has no subscript that is computed, and is in registers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError
from looptune.ir.def_use import names_in, written_names
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import Assign, Binary, Const, Expr, If, Load, Local, Loop, Node, Stmt, Var
from looptune.ir.rewrite import conjunction, rewrite, walk
from looptune.ir.simplify import add, mul, sub
from looptune.lower.passes.loop_normalization import unroll_whole
from looptune.lower.staged_tiles import staged_arrays, without_tiles
from looptune.lower.team import TeamFor, runs_in_one_block
from looptune.lower.thread_code import map_thread_code
from looptune.poly.block_footprint import Extent
from looptune.poly.disjoint import Place, Surroundings, accesses, distances, never_written

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan

MOST_OWN = 64
"""Elements of a thread's copy."""
MOST_STATEMENTS = 256
"""Of a thread with a copy in registers: a triangle of 16 x 16 iterations has half as many, which Numba compiles in two
seconds; one of 32 x 32 takes it fifteen."""


def copy_own_elements(kernel: Kernel, plan: Plan) -> Kernel:
    """Return the kernel with copies of the arrays that a grid's loop, or a loop that one block runs, stages and writes.

    DirectiveError where a block cannot have a copy.
    """
    if kernel.keeps_tiles:
        return kernel
    match kernel.body:
        case (Loop() as loop,) if kernel.team is not None and not kernel.loops and runs_in_one_block(loop):
            asked = [a for a in staged_arrays((loop,)) if a in written_names(kernel.body)]
            made = reduce(lambda k, array: _in_block(k, loop, array, plan), asked, kernel)
            return replace(made, body=(without_tiles(loop, asked),))
    if kernel.team is not None or len(kernel.loops) != 1:
        return kernel
    (axis,) = kernel.axes if kernel.axes else kernel.loops
    asked = [a for a in staged_arrays((axis,)) if a in written_names(kernel.body)]
    made = reduce(lambda k, array: _in_thread(k, axis, array, plan), asked, kernel)
    return replace(made, axes=(without_tiles(axis, asked),)) if asked else made


def _in_thread(kernel: Kernel, axis: Loop, array: str, plan: Plan) -> Kernel:
    around = Surroundings((replace(axis, body=()),))
    found = [p for p, _ in accesses(kernel.body, array, around)]
    told = [p.index for p, written in accesses(kernel.body, array, around) if written]
    fixed = next((d for d, e in enumerate(told[0]) if axis.var in names_in(e)), None)
    inner = {f.var for f in walk(kernel.body) if isinstance(f, Loop)}
    if fixed is None or names_in(told[0][fixed]) & inner:
        raise _refused(axis, array, "its elements are not those of one iteration")
    own = [p for p in found if p.index[fixed] == told[0][fixed] and _free(p.index, fixed, axis.var)]
    written_elsewhere = any(index not in {p.index for p in own} for index in told)
    apart = never_written(kernel.body, around, kernel.body, around, array)
    if written_elsewhere or any(p.index not in apart for p in found if p not in own):
        raise _refused(axis, array, "other iterations use elements that it writes")
    dims = [d for d in range(len(told[0])) if d != fixed]
    extents = {d: _extent(axis, array, own, d, inner | {axis.var}) for d in dims}
    if prod(e.count for e in extents.values()) > MOST_OWN:
        raise _refused(axis, array, f"a thread would have more than {MOST_OWN} elements")
    name = _fresh(f"{array}__own", kernel, plan)
    copy = _Copy(array, name, plan.array(array).dtype, extents, {fixed: told[0][fixed]}, 0)
    mine = {p.index for p in own}

    def rule(n: Node) -> Node | None:
        return copy.element(n.index) if isinstance(n, Load) and n.array == array and n.index in mine else None

    body = (*copy.moved(plan, back=False), *rewrite(rule, kernel.body), *copy.moved(plan, back=True))
    straight = unroll_whole(body, MOST_STATEMENTS)
    body = body if straight is None else straight
    return replace(kernel, body=body, locals=(*kernel.locals, Local(name, copy.dtype, (Const(copy.size),))))


def _free(index: Sequence[Expr], fixed: int, var: str) -> bool:
    return all(var not in names_in(e) for d, e in enumerate(index) if d != fixed)


def _in_block(kernel: Kernel, loop: Loop, array: str, plan: Plan) -> Kernel:
    assert kernel.team is not None, "one block runs the loop"
    found = [p for p, _ in accesses(kernel.body, array, Surroundings())]
    inner = {f.var for f in walk(kernel.body) if isinstance(f, Loop)}
    extents = {d: _extent(loop, array, found, d, inner) for d in range(len(found[0].index))}
    name = _fresh(f"{array}_block__tile", kernel, plan)
    odd = 1 - extents[max(extents)].count % 2 if len(extents) > 1 else 0
    copy = _Copy(array, name, plan.array(array).dtype, extents, {}, odd)

    def rule(n: Node) -> Node | None:
        return copy.element(n.index) if isinstance(n, Load) and n.array == array else None

    inside = map_thread_code(kernel, lambda body: rewrite(rule, body))
    assert inside.team is not None, "the kernel keeps its team"
    moved = (copy.moved(plan, back=back, team=True) for back in (False, True))
    ways = [tuple(TeamFor(s) for s in stmts if isinstance(s, Loop)) for stmts in moved]
    team = replace(inside.team, phases=(*ways[0], *inside.team.phases, *ways[1]),
                   tiles=(*inside.team.tiles, Local(name, copy.dtype, (Const(copy.size),))))  # fmt: skip
    return replace(inside, team=team)


def _extent(loop: Loop, array: str, places: Sequence[Place], d: int, inner: set[str]) -> Extent:
    """Return what the accesses use along a dimension, from what is the same in all iterations of one of them."""
    starts = [f.lo for p in places for f in p.around.loops if f.var in names_in(p.index[d])]
    starts += [_sum(p.index[d], inner) for p in places]
    for start in dict.fromkeys(e for e in starts if not names_in(e) & inner):
        ranges = [distances(p.index[d], start, p.around) for p in places]
        known = [r for r in ranges if r is not None]
        if len(known) == len(ranges):
            least, most = min(a for a, _ in known), max(b for _, b in known)
            return Extent(add(start, Const(least, start.dtype)), 1 + most - least)
    raise _refused(loop, array, "how many elements it uses is not a number: tile it, or run its steps in blocks")


@dataclass(frozen=True, slots=True)
class _Copy:
    """The copy ``name`` of elements of ``array``; ``fixed``: the subscripts that all of them have in common.

    ``odd`` is added to the length of its rows, so that a column is not in one bank of shared memory.
    """

    array: str
    name: str
    dtype: str
    extents: Mapping[int, Extent]
    fixed: Mapping[int, Expr]
    odd: int

    @property
    def widths(self) -> list[int]:
        """Return the elements of a row along each dimension; those of the last one are adjacent."""
        counts = [e.count for e in self.extents.values()]
        return [*counts[:-1], counts[-1] + self.odd] if counts else []

    @property
    def size(self) -> int:
        return prod(self.widths)

    def element(self, index: Sequence[Expr]) -> Load:
        return self.at([_sum(sub(index[d], e.first)) for d, e in self.extents.items()])

    def at(self, inside: Sequence[Expr]) -> Load:
        flat: Expr = Const(0)
        for e, n in zip(inside, self.widths, strict=True):
            flat = add(mul(flat, Const(n)), e)
        return Load(self.name, (flat,), self.dtype)

    def moved(self, plan: Plan, *, back: bool, team: bool = False) -> tuple[Stmt, ...]:
        """Return what copies the elements, or writes them back, as far as the array has them: loops, or one copy."""
        counters = {d: Var(f"{self.array}{d}__own", e.first.dtype) for d, e in self.extents.items()}
        index = tuple(
            self.fixed[d] if d in self.fixed else add(self.extents[d].first, counters[d])
            for d in range(len(self.fixed) + len(self.extents))
        )
        copy, element = self.at(list(counters.values())), Load(self.array, index, self.dtype)
        body: tuple[Stmt, ...] = (Assign(element, copy) if back else Assign(copy, element),)
        guards = list(self.guards(index, plan))
        if guards:
            body = (If(conjunction(guards), body),)
        for d, var in reversed(counters.items()):
            count = Const(self.extents[d].count, var.dtype)
            loop = Loop(var.name, Const(0, var.dtype), count, body, dtype=var.dtype, mode="sequential")
            body = (replace(loop, mode="parallel", thread_axis="team") if team else loop,)
        return body

    def guards(self, index: Sequence[Expr], plan: Plan) -> Iterator[Expr]:
        for d in self.extents:
            extent = plan.array(self.array).shape[d]
            if extent is not None:
                yield Binary("<", index[d], extent)
            if self.extents[d].first != Const(0):
                yield Binary(">=", index[d], Const(0, index[d].dtype))


def _sum(e: Expr, without: Collection[str] = ()) -> Expr:
    """Return a sum with each of its terms once, those that are added first; terms that name some are left out."""
    terms, constant = affine_terms(e)
    made: Expr = Const(0, e.dtype)
    kept = [(t, k) for t, k in terms.items() if not names_in(t) & {*without}]
    for term, factor in sorted(kept, key=lambda item: item[1] < 0):
        part = mul(Const(abs(factor), e.dtype), term)
        made = add(made, part) if factor > 0 else sub(made, part)
    return add(made, Const(constant, e.dtype))


def _fresh(name: str, kernel: Kernel, plan: Plan) -> str:
    taken = {*plan.used_names, *(v.name for v in kernel.locals)}
    stem, _, end = name.partition("__")
    return next(c for k in range(len(taken) + 1) if (c := f"{stem}{k or ''}__{end}") not in taken)


def _refused(loop: Loop, array: str, why: str) -> DirectiveError:
    return DirectiveError(f"stage {array} at loop {loop.var}, which writes it: {why}", loop.span)
