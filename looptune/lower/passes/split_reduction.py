"""Split reduction: P blocks compute partial sums of every sum, and these are added afterwards.

    for i: for j:                        for p in 0..P (blocks): for i: for j:
      C[i][j] *= beta                      part[p][i][j] = 0
      for k in 0..K: C[i][j] += e   ==>    for k in p*ceil(K/P) .. min((p + 1)*ceil(K/P), K): part[p][i][j] += e
                                         for i: for j:
                                           C[i][j] *= beta
                                           s = C[i][j]; for p in 0..P: s += part[p][i][j]; C[i][j] = s

The partial sums are computed before everything else in the iterations of i and j, so nothing there may change their
operands. Copies that unrolling made of the inner of two parallel loops have nests of their own first. If a loop inside
the split one indexes the sums, each of its iterations has a partial sum; the threads of a block may have a sum of their
own in that loop as well:

    for i in 0..n:                       for p in 0..P (blocks): for j: part[p][j] = 0
      for j: t[i] += A[i][j] * x[j] ==>    for i of p: for j: t[i] += A[i][j] * x[j]
      for j: y[j] += A[i][j] * t[i]                    for j: part[p][j] += A[i][j] * t[i]
                                         for j: s = y[j]; for p in 0..P: s += part[p][j]; y[j] = s

The loop that indexes the sums may be the one that has such a sum. A loop directly before that initialises the sums is
executed where they are added. Regrouped sums of several elements have one partial sum for all of them, ``C[i][j] +=
alpha * s; if (j < i) C[j][i] += alpha * s``. On a GPU the sums of several rows, which ``unroll`` and ``jam`` give to
one thread, are added by separate blocks for each row, see ``row_groups``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from looptune.core.errors import InfeasibleDirective
from looptune.ir.accumulators import Accumulator, ignores_nan
from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import (
    assigned_targets,
    names_in,
    referenced_names,
    restrict_reductions,
    share_conditions,
    take_name,
    target_name,
    written_names,
)
from looptune.ir.intervals import never_equal
from looptune.ir.nodes import (
    Array,
    Assign,
    Binary,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Local,
    Loop,
    Node,
    Reduction,
    Select,
    Stmt,
    Var,
)
from looptune.ir.rewrite import (
    conjunction,
    disjunction,
    has_load,
    map_blocks,
    rewrite,
    rewrite_stmts,
    substitute,
    walk,
    walk_stmts,
)
from looptune.ir.simplify import add, ceil_div, div, max_of, min_of, mul, sub
from looptune.lower.accumulation_guards import AccumulationGuard, accumulation_guard
from looptune.lower.passes.array_copies import (
    ArrayCopies,
    array_extents,
    array_reduction,
    check_size,
    copied_targets,
    redirect,
)
from looptune.lower.passes.init_fusion import fuse_initialization
from looptune.lower.passes.reduction_targets import (
    TargetGroup,
    group_targets_by_loop,
    inseparable_error,
    loop_over_parts,
)
from looptune.lower.passes.row_groups import select_row, split_by_row
from looptune.lower.team import needs_team
from looptune.schedule.binding import identity
from looptune.schedule.directives.base import trip_count
from looptune.schedule.directives.reduction_simplification import (
    SharedSum,
    SharedSums,
    regroupable_statements,
    share_sums,
)
from looptune.schedule.directives.rfactor import ReductionParts

if TYPE_CHECKING:
    from looptune.lower.machine import Machine
    from looptune.lower.plan import Plan

SEVERAL = 16
"""So many parts of sums that one loop tells apart are added up by a team of threads: each load waits for the memory."""


@dataclass(frozen=True, slots=True)
class SplitReduction:
    """The result of expanding split reductions.

    ``parts``: by the name of an array of partial sums, or of a local that adds them, the reduction to which they
    belong; a target without an index is the element with the index of the partial sum. ``sums``: what the locals that
    hold sums stand for.
    """

    codelet: Codelet
    parts: Mapping[str, Reduction]
    sums: tuple[SharedSum, ...] = ()


def split_reductions(plan: Plan, machine: Machine) -> Plan:
    """Return the plan of a codelet in which loops over parts of sums are loops of the grid."""
    codelet = plan.codelet if machine.blocks else _without_teams(plan.codelet)
    made = expand_split_reductions(codelet, blocks=machine.blocks)
    return replace(plan, codelet=made.codelet, partial_sums=tuple(made.parts.items()), block_sums=made.sums)


def _without_teams(codelet: Codelet) -> Codelet:
    """Loops that were given to a team are parallel ones."""

    def rule(stmt: Stmt) -> Stmt | None:
        return replace(stmt, thread_axis="") if isinstance(stmt, Loop) and stmt.thread_axis == "team" else None

    return replace(codelet, body=rewrite_stmts(rule, codelet.body))


def expand_split_reductions(codelet: Codelet, *, blocks: bool = True) -> SplitReduction:
    """Return the codelet with loops of several ``parts`` expanded into partial sums and combine nests.

    Raises InfeasibleDirective if one remains. ``blocks``: threads come in blocks, as on a GPU:
    different ones combine the sums of several rows in one iteration, and the copies of arrays are interleaved.
    """
    codelet = replace(codelet, body=distribute_parallel_copies(codelet.body))
    if not _divided(codelet.body):
        return SplitReduction(codelet, {})
    dealing = _Splitting(codelet, blocks=blocks)
    body = dealing.split_all()
    made = replace(codelet, body=body, locals=(*codelet.locals, *dealing.made))
    return SplitReduction(made, dealing.parts, tuple(dealing.sums))


def check_split_reductions(codelet: Codelet) -> None:
    """Raise InfeasibleDirective where a loop cannot be split; the codelet is not rewritten, which takes longer."""
    if _divided(codelet.body):
        _Splitting(replace(codelet, body=distribute_parallel_copies(codelet.body)), only_check=True).split_all()


SPLIT = ReductionParts.word


def split_factor(loop: Loop) -> int:
    """Return how many blocks share the loop's iterations, 1 if no directive says so."""
    said = loop.annotation(ReductionParts)
    return 1 if said is None else said.split_factor


def _divided(body: tuple[Stmt, ...]) -> bool:
    return any(isinstance(s, Loop) and s.in_parts for s in walk_stmts(body))


def distribute_parallel_copies(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return a parallel loop around parallel copies of one loop as a nest for each copy, so that each can be a grid.

    The iterations of a parallel loop are independent, so it can be distributed over what it holds; and copies of one
    body own their locals. Copies that reduce are shared out in one kernel.
    """

    def rule(n: Stmt) -> tuple[Stmt, ...] | None:
        match n:
            case Loop(mode="parallel", body=(Loop() as first, _, *_) as parts) if first.number and all(
                isinstance(p, Loop) and (p.mode, p.reductions, identity(p)) == ("parallel", (), identity(first))
                for p in parts
            ):
                return tuple(restrict_reductions(n, (p,)) for p in parts)
        return None

    return rewrite_stmts(rule, body)


@dataclass(slots=True)
class _Splitting:
    """``only_check``: what is dealt out is left out. ``blocks``: see ``expand_split_reductions``."""

    codelet: Codelet
    only_check: bool = False
    blocks: bool = False
    used_names: set[str] = field(init=False)
    changed: set[str] = field(init=False)
    made: list[Local] = field(default_factory=list)
    parts: dict[str, Reduction] = field(default_factory=dict)
    sums: list[SharedSum] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.used_names = {p.name for p in self.codelet.params} | {v.name for v in self.codelet.locals}
        self.used_names |= referenced_names(self.codelet.body)
        self.changed = written_names(self.codelet.body)

    def split_all(self) -> tuple[Stmt, ...]:
        body = self.block(self.codelet.body, frozenset())
        left = next((s for s in walk_stmts(body) if isinstance(s, Loop) and s.in_parts), None)
        if left is not None:
            raise InfeasibleDirective(
                left, "between it and parallel loops around only an if on loop variables and sizes may stand"
            )
        return body

    def block(self, body: tuple[Stmt, ...], host: frozenset[str]) -> tuple[Stmt, ...]:
        """``host`` are the loop variables around, all of them the host's."""
        out: list[Stmt] = []
        for stmt in body:
            chain, given, inside = _chain(stmt)
            if any(isinstance(s, Loop) and s.in_parts for s in inside):
                made = self.nests(chain, given, inside, host)
                whole = fuse_initialization(out[-1], made) if out else None
                out = [*out, *made] if whole is None else [*out[:-1], *whole]
                continue
            if isinstance(stmt, Loop) and stmt.mode in ("parallel", "thread"):
                out.append(stmt)
                continue
            inner = host | {stmt.var} if isinstance(stmt, Loop) else host
            out.append(map_blocks(partial(self.block, host=inner), stmt))
        return tuple(out)

    def nests(
        self, chain: tuple[Loop, ...], given: Expr | None, inside: tuple[Stmt, ...], host: frozenset[str]
    ) -> tuple[Stmt, ...]:
        """Return that of the parts, and that of the sums; ``inside`` runs where ``given`` holds."""
        at = [k for k, s in enumerate(inside) if isinstance(s, Loop) and s.in_parts]
        loops = [s for s in inside[at[0] : at[-1] + 1] if isinstance(s, Loop)]
        first = loops[0]
        if len(loops) < at[-1] + 1 - at[0] or any(split_factor(f) != split_factor(first) for f in loops):
            raise InfeasibleDirective(first, "another statement stands between it and the rest of its iterations")
        ahead, behind = inside[: at[0]], inside[at[-1] + 1 :]
        _check(loops, (*ahead, *behind))
        part = Var(take_name(f"{first.var}_part", self.used_names), first.dtype)
        made = assigned_targets(loops)
        targets = tuple(dict.fromkeys(r for f in loops for r in f.reductions if r.target in made))
        if not targets:  # with these sizes there is nothing to add up
            left = tuple(replace(s.without(ReductionParts), mode="sequential") if s in loops else s for s in inside)
            return _within(chain, _under(given, left))
        copied = copied_targets(loops, targets, alone=not chain)
        if copied:
            return self.copy_arrays(chain, loops, targets, copied, part)
        told = group_targets_by_loop(loops, targets)
        if told and (chain or len(inside) > len(loops) or not all(needs_team(f.body) for f in loops)):
            raise inseparable_error(first, told[0].index_loop[0])
        groups = told or [TargetGroup((), targets)]
        every = loop_over_parts(first, part, split_factor(first))
        varying = {f.var for f in chain}
        if not told and self.fixed(chain, host) and not self.only_check:
            common = share_sums(loops, regroupable_statements((*chain, *loops), (*loops,)), self.used_names)
            if common is not None:
                shares, added = self.common(common, every, chain, varying)
                making = replace(
                    every, body=_within(chain, _under(given, shares)), mode="parallel", thread_axis="parts"
                )
                return (making, *self.combine_nest(chain, given, (*ahead, *added, *behind), part))
        held = {t: at for g in groups for t, at in self.arrays(g, part, loops, chain, host).items()}
        if self.only_check:
            return (*ahead, *behind)
        runs = _some(loops)
        begin, whole = list[Stmt](), list[Stmt]()
        for g in groups:
            sums = [self.accumulator(r, loops) for r in g.targets]
            together = tuple(_together(sums, held, loops, g.index_loop))
            begins = (
                _under(c.condition, tuple(Assign(held[a.target], a.identity) for a in some)) for c, some in together
            )
            begin += _within(g.index_loop, tuple(s for made in begins for s in made))
            chained = (*chain, *g.index_loop)
            team = len(chained) == 1 and split_factor(first) >= SEVERAL
            each = ((c, _added(some, held, every, sure=c.always_accumulates, team=team)) for c, some in together)
            joined = share_conditions(s for c, some in each for s in _under(c.condition, some))
            body = (*ahead, *_under(runs, joined), *behind)
            if team:
                whole += _within((replace(chained[0], thread_axis="x"),), _under(given, body))
            else:
                whole += self.combine_nest(chained, given, body, part)
        shares = tuple(_share(f, part, held, varying) for f in loops)
        parts = _within(chain, _under(given, _under(runs, (*begin, *shares))))
        return (replace(every, body=parts, mode="parallel", thread_axis="parts"), *whole)

    def copy_arrays(
        self, chain: Sequence[Loop], loops: Sequence[Loop], targets: Sequence[Reduction],
        copied: Mapping[str, tuple[Reduction, ...]], part: Var,
    ) -> tuple[Stmt, ...]:  # fmt: skip
        """Return the nests of loops whose parts have copies of arrays, and of these and the other sums added up."""
        if chain:
            copied_name, around = next(iter(copied)), chain[0].var
            what = f"each part has a copy of {copied_name}: there may be no parallel loop around, as {around} is"
            raise InfeasibleDirective(loops[0], what)
        copies = {name: self.copies(loops[0], name, some) for name, some in copied.items()}
        rest = TargetGroup((), tuple(r for r in targets if target_name(r.target) not in copies))
        held = self.arrays(rest, part, loops, (), frozenset())
        if self.only_check:
            return ()
        sums = [self.accumulator(r, loops) for r in rest.targets]
        every, team = (
            loop_over_parts(loops[0], part, split_factor(loops[0])),
            self.blocks and split_factor(loops[0]) >= SEVERAL,
        )
        begin: list[Stmt] = [Assign(held[a.target], a.identity) for a in sums]
        whole = [*_added(sums, held, every, sure=False, team=team)] if sums else []
        for copy in copies.values():
            loop, index = copy.over_elements()
            target = Load(copy.array, index, copy.dtype)
            own = self.accumulator(replace(copy.reduction, target=target), loops, copied[copy.array])
            begin += copy.cleared(part, own.identity)
            body = _added([own], {target: copy.element(index, part)}, every, sure=False, team=team)
            whole.append(replace(loop, body=body, annotations=every.annotations))
        dealt = (_share(f, part, held, set(), interleaved=self.blocks) for f in loops)
        shares = (redirect(replace(f, mode="sequential", reductions=()), copies, part) for f in dealt)
        return (replace(every, body=(*begin, *shares), mode="parallel", thread_axis="copies"), *whole)

    def copies(self, loop: Loop, array: str, targets: Sequence[Reduction]) -> ArrayCopies:
        """Return the copies of an array for the parts of the loop, and make them."""
        extents = array_extents(self.codelet, loop, array, self.changed)
        each = tuple(
            Loop(take_name(f"{array}_element", self.used_names), Const(0, e.dtype), e, (), dtype=e.dtype)
            for e in extents
        )
        name = take_name(f"{array}_parts", self.used_names)
        made = ArrayCopies(name, array_reduction(targets, self.blocks), each, split_factor(loop), self.blocks)
        check_size(loop, made)
        self.made.append(made.local)
        self.parts[name] = made.reduction
        return made

    def combine_nest(
        self, chain: Sequence[Loop], given: Expr | None, body: tuple[Stmt, ...], part: Var
    ) -> tuple[Stmt, ...]:
        """Return the nest that adds parts up in ``body``; in several rows, in blocks for each."""
        deep = any(f.thread_axis == "z" for f in chain)
        rows = split_by_row(body, chain, given, part.name) if self.blocks and chain and not deep else [body]
        if len(rows) == 1:
            return _within(chain, _under(given, body))
        row = Var(take_name("row", self.used_names), part.dtype)
        nest = _within(chain, _under(given, select_row(row, rows)))
        count = Const(len(rows), row.dtype)
        return (Loop(row.name, Const(0, row.dtype), count, nest, mode="parallel", dtype=row.dtype, thread_axis="z"),)

    def common(
        self, sums: SharedSums, every: Loop, chain: Sequence[Loop], varying: set[str]
    ) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
        """Return the parts of sums that several elements get, and these added up: one array holds them all."""
        part, own = Var(every.var, every.dtype), sums.own
        shape = (Const(len(own), every.dtype), *map(_extent, chain))
        array = self.array(Reduction("+", own[0]), sums.loop, shape)
        held: dict[Var | Load, Load] = {
            v: Load(array, (part, Const(k, every.dtype), *_places(chain)), v.dtype) for k, v in enumerate(own)
        }
        self.made += sums.locals
        self.sums += sums.found
        begin = tuple(Assign(v, Const(0, v.dtype)) for v in own)
        stored = (s for v, g in zip(own, sums.conditions, strict=True) for s in _under(g, (Assign(held[v], v),)))
        adding = [
            (self.accumulator(r, (sums.loop,)), g) for r, g in zip(sums.loop.reductions, sums.conditions, strict=True)
        ]
        parts = (s for a, g in adding for s in _under(g, (Assign(a.private, a.combine(a.private, held[a.target])),)))
        first = (Assign(a.private, a.identity) for a, _ in adding)
        after = substitute(sums.after, {a.target.name: a.private for a, _ in adding if isinstance(a.target, Var)})
        added = (*first, replace(every, body=share_conditions(parts), mode="sequential"), *after)
        return (*begin, _share(sums.loop, part, {}, varying), *share_conditions(stored)), added

    def accumulator(self, r: Reduction, loops: Sequence[Loop], of: Sequence[Reduction] = ()) -> Accumulator:
        """Return the local that adds up a sum, ``of`` those of several elements of an array."""
        own = Var(take_name(f"{target_name(r.target)}_sum", self.used_names), r.target.dtype)
        self.made.append(Local(own.name, own.dtype))
        self.parts[own.name] = r
        numbers = all(ignores_nan(f, t.target) for t in of or (r,) for f in loops if t in f.reductions)
        return Accumulator(r.op, r.target, own, own, numbers)

    def arrays(
        self, told: TargetGroup, part: Var, loops: Sequence[Loop], chain: Sequence[Loop], host: frozenset[str]
    ) -> dict[Var | Load, Load]:
        """Return the element that holds a part of each target.

        Targets whose subscripts differ by constants, as those of copies do, share one array.
        """
        held: dict[Var | Load, Load] = {}
        loop = loops[0]
        for r in told.targets:
            sure, nest = (
                accumulation_guard(loops, r.target, told.index_loop).always_accumulates,
                (*chain, *told.index_loop),
            )
            if self.fixed(nest, host) and not (told.index_loop and sure):
                shape = tuple(map(_extent, nest))
                held[r.target] = Load(self.array(r, loop, shape), (part, *_places(nest)), r.target.dtype)
                continue
            shape, target = self.as_target(r, loop)
            if not sure:
                raise InfeasibleDirective(
                    loop,
                    f"data or loops inside of it decide whether it adds to {expression_text(target)}, which has its "
                    "parts by element as the loops around vary",
                )
            of = replace(r, target=replace(target, index=()))
            beside = [(t, at.array) for t, at in held.items() if self.parts[at.array] == of]
            shared = all(isinstance(t, Load) and never_equal(t.index, target.index) for t, _ in beside)
            name = beside[0][1] if beside and shared else self.array(of, loop, shape)
            held[r.target] = Load(name, (part, *target.index), target.dtype)
        return held

    def fixed(self, chain: Sequence[Loop], host: frozenset[str]) -> bool:
        """How often each loop of the nest runs is the same whenever it does."""
        return not names_in(tuple((f.lo, f.hi) for f in chain)) & (host | {f.var for f in chain} | self.changed)

    def array(self, r: Reduction, loop: Loop, shape: tuple[Expr, ...]) -> str:
        name = take_name(f"{target_name(r.target)}_parts", self.used_names)
        self.made.append(Local(name, r.target.dtype, (Const(split_factor(loop), loop.dtype), *shape)))
        self.parts[name] = r
        return name

    def as_target(self, r: Reduction, loop: Loop) -> tuple[tuple[Expr, ...], Load]:
        """Return the extents of the target's array, where those of the nest change."""
        arrays = [a for a in (*self.codelet.params, *self.codelet.locals) if isinstance(a, (Array, Local))]
        extents: tuple[Expr | None, ...] = next((a.shape for a in arrays if a.name == target_name(r.target)), (None,))
        known = tuple(e for e in extents if e is not None)
        if len(known) < len(extents) or not isinstance(r.target, Load):
            raise InfeasibleDirective(
                loop, f"how many parts of {target_name(r.target)} there are changes while the codelet runs"
            )
        return known, r.target


def _chain(stmt: Stmt) -> tuple[tuple[Loop, ...], Expr | None, tuple[Stmt, ...]]:
    """Return the parallel loops of a perfect nest, outermost first, with the body of the last one and its condition.

    The conditions between the loops do not change in them.
    """
    chain: list[Loop] = []
    given: list[Expr] = []
    inside: tuple[Stmt, ...] = (stmt,)
    while True:
        match inside:
            case (Loop(mode="parallel" | "thread", reductions=(), in_parts=False) as loop,) if (
                chain or loop.mode == "parallel"
            ):
                chain.append(loop)
                inside = loop.body
            case (If(cond, then, ()),) if chain and not names_in(cond) & written_names(then) and _plain(cond):
                given.append(cond)
                inside = then
            case _:
                return tuple(chain), conjunction(given) if given else None, inside


def _plain(cond: Expr) -> bool:
    """Tell whether it reads no array."""
    return not has_load(cond)


def _places(chain: Sequence[Loop]) -> tuple[Expr, ...]:
    """Return the iteration of each loop, from 0."""
    return tuple(div(sub(Var(f.var, f.dtype), f.lo), Const(f.step, f.dtype)) for f in chain)


def _check(loops: Sequence[Loop], others: Sequence[Stmt]) -> None:
    """Check that what the partial sums are computed from is invariant in the iteration.

    Nothing else may be computed.
    """
    for loop in loops:
        nested = [f for f in walk_stmts(loop.body) if isinstance(f, Loop)]
        if any(f.in_parts for f in nested):
            raise InfeasibleDirective(
                loop, f"loop {next(f.var for f in nested if f.in_parts)} inside of it is split as well"
            )
        own = {target_name(r.target) for r in loop.reductions}
        mine = {r.target for r in loop.reductions}
        if any(isinstance(t, Var) for t in mine) and others:
            raise InfeasibleDirective(loop, f"it reduces the local {min(own)}: accumulate in an element of an array")
        used = _besides(loop, mine)
        elsewhere = [*others, *(f for f in loops if f is not loop and f.reductions != loop.reductions)]
        changed = sorted(used & written_names(elsewhere)) or sorted(
            (written_names((loop,)) - own) & referenced_names(elsewhere)
        )
        if changed:
            raise InfeasibleDirective(
                loop, f"{changed[0]} changes in the same iteration of the loops around it: distribute them"
            )


def _besides(loop: Loop, targets: Collection[Var | Load]) -> set[str]:
    """Return the names in the loop, but for those in its targets."""
    found: Counter[str] = Counter()
    for n in walk(loop):
        match n:
            case Loop(var=name) | Var(name) | Load(name):
                found[name] += 1
        if isinstance(n, (Var, Load)) and n in targets:
            found.subtract(m.name if isinstance(m, Var) else m.array for m in walk(n) if isinstance(m, (Var, Load)))
    return {name for name, count in found.items() if count > 0}


def _share(
    loop: Loop, part: Var, held: Mapping[Var | Load, Load], varying: set[str], *, interleaved: bool = False
) -> Loop:
    """Return the iterations that ``part`` is for, accumulating into its own element.

    They follow each other. If they are ``interleaved``, or where how many there are varies, each is ``parts`` after the
    one before, which is affine.
    """
    own = _with(loop.without(ReductionParts), held)
    step = Const(loop.step, loop.dtype)
    if interleaved or names_in((loop.lo, loop.hi)) & varying:
        return replace(own, lo=add(loop.lo, mul(step, part)), step=loop.step * split_factor(loop))
    width = mul(step, ceil_div(trip_count(loop), split_factor(loop)))
    start = add(loop.lo, mul(width, part))
    return replace(own, lo=start, hi=min_of(loop.hi, add(start, width)))


def _with(loop: Loop, env: Mapping[Var | Load, Expr]) -> Loop:
    """With other expressions in the places of some elements."""
    return rewrite(lambda n: env.get(n) if isinstance(n, (Var, Load)) else None, loop)


def _extent(loop: Loop) -> Expr:
    """How many parts its iterations have.

    It is asked for where no condition around the loop is, so that a divisor may be 0 there.
    """

    def rule(n: Node) -> Node | None:
        match n:
            case Binary("/" | "%", _, rhs) if not isinstance(rhs, Const):
                return Select(Binary("==", rhs, Const(0, rhs.dtype)), Const(0, n.dtype), n)
        return None

    extent = rewrite(rule, trip_count(loop))
    return max_of(extent, Const(0, loop.dtype))


def _together(
    sums: Sequence[Accumulator], held: Mapping[Var | Load, Load], loops: Sequence[Loop], each: Sequence[Loop]
) -> Iterator[tuple[AccumulationGuard, list[Accumulator]]]:
    """Those whose parts are in one array, which are next to each other, and under one condition."""
    found: dict[tuple[str, AccumulationGuard], list[Accumulator]] = {}
    for a in sums:
        found.setdefault((held[a.target].array, accumulation_guard(loops, a.target, each)), []).append(a)
    return ((condition, some) for (_, condition), some in found.items())


def _added(
    sums: Sequence[Accumulator], held: Mapping[Var | Load, Load], every: Loop, *, sure: bool, team: bool
) -> tuple[Stmt, ...]:
    """Return the parts of some targets added up, by a ``team`` of threads or by one.

    Not ``sure``: a target that nothing was added to is not touched, for it may be no element, or another iteration's.
    """
    loop = replace(
        every, body=tuple(Assign(a.private, a.combine(a.private, held[a.target])) for a in sums), mode="sequential"
    )
    if team:
        loop = replace(loop, mode="parallel", reductions=tuple(Reduction(a.op, a.private) for a in sums))
    if not sure:
        return *(Assign(a.private, a.identity) for a in sums), loop, *(a.update for a in sums)
    return *(Assign(a.private, a.target) for a in sums), loop, *(Assign(a.target, a.private) for a in sums)


def _some(loops: Sequence[Loop]) -> Expr | None:
    """Return that one of the loops runs, or None where that is known."""
    asked: list[Expr] = []
    for f in loops:
        match f.lo, f.hi:
            case Const(lo), Const(hi):
                if lo < hi:
                    return None
            case _:
                asked.append(Binary("<", f.lo, f.hi))
    return disjunction(asked) if asked else Const(0)


def _under(condition: Expr | None, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return body if condition is None else (If(condition, body),)


def _within(chain: Sequence[Loop], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    for loop in reversed(chain):
        body = (replace(loop, body=body),)
    return body
