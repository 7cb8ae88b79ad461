"""Resident arrays: the elements that each thread owns stay in its registers through all iterations of a loop.

    for k: for i: for j: A[i][j] = f(A[i][j], A[i][k], A[k][j])

    owner        the thread that has the place (i, j) executes every assignment to A[i][j], in the order of the text
    own place    A[i][j] is a register
    others       A[i][k] and A[k][j] as they are before the iteration are in memory: their owners have stored them
    recomputed   where the iteration itself has written A[i][k] before, its value is that of the assignment's expression

What others read in iteration k of A are the elements at (i, k) and at (k, j), for all i and j: these the owners store
at the end of iteration k - 1, to the array that the next iteration reads. Two arrays take turns, so that no thread
overwrites what another one still reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.core.errors import InfeasibleDirective
from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import names_in, written_names
from looptune.ir.intervals import affine_terms, body_ranges, difference_range
from looptune.ir.nodes import (
    Annotations,
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
    Stmt,
    Unary,
    Var,
)
from looptune.ir.rewrite import conjuncts, has_load, map_children, rewrite_stmts, substitute, walk, walk_stmts
from looptune.ir.simplify import sub
from looptune.lower.host_loops import Found, check_on_host, outermost_loops_where, persistent_blocks
from looptune.lower.passes.temporal_tiling import (
    block_size,
    declared_extents,
    largest_extent,
    ping_pong_name,
)
from looptune.lower.resident_tiles import (
    RESIDENT,
    ExchangedElements,
    OwnedStatement,
    ResidentTile,
    is_own,
    owned_elements,
    place,
)
from looptune.lower.temporal_tiles import steps_per_launch
from looptune.poly.loop_bounds import iteration_conditions
from looptune.poly.step_sources import Sources, step_sources

if TYPE_CHECKING:
    from looptune.lower.machine import Machine
    from looptune.lower.plan import Plan

MOST_DIMENSIONS = 2
COUNTER = "int32"
"""The type of counters: places are compared with their bounds at the corners of rectangles, where others might wrap."""
MOST_LOADS = 64
"""That one value may be recomputed from."""


def check(codelet: Codelet) -> None:
    """Raise InfeasibleDirective where the elements of a loop have no owners."""
    changed = written_names(codelet.body)
    for loop, around in _asked(codelet):
        check_on_host(loop, around, changed)
        outer = next((f for f in around if isinstance(f, Loop) and persistent_blocks(f)), None)
        if outer is not None and sum(owned_elements(f) is not None for f in walk(outer) if isinstance(f, Loop)) > 1:
            raise InfeasibleDirective(loop, f"the launch of loop {outer.var} around it has another such loop")
        keep_resident(loop, codelet)


def _asked(codelet: Codelet) -> Found:
    return outermost_loops_where(codelet.body, lambda loop: owned_elements(loop) is not None)


def add_resident_spares(plan: Plan, machine: Machine) -> Plan:
    """Return the plan of a codelet with another array for each that threads keep."""
    codelet = plan.codelet
    kept = {a for loop, _ in _asked(codelet) for a in written_names(loop.body)}
    arrays = (v for v in (*codelet.params, *codelet.locals) if isinstance(v, (Array, Local)) and v.name in kept)
    made = [Local(ping_pong_name(v.name), v.dtype, shape) for v in arrays if (shape := declared_extents(v))]
    return replace(plan, codelet=replace(codelet, locals=(*codelet.locals, *made))) if made else plan


def without_owners(codelet: Codelet) -> Codelet:
    """Return a codelet with these arrays as it was, and with loops whose elements have no owners."""
    kept = {a for loop, _ in _asked(codelet) for a in written_names(loop.body)}

    def rule(stmt: Stmt) -> Stmt | None:
        match stmt:
            case Loop(annotations=said) if any(a.word == RESIDENT for a in said):
                return replace(stmt, annotations=Annotations(a for a in said if a.word != RESIDENT))
        return None

    spares = set(map(ping_pong_name, kept))
    own = tuple(v for v in codelet.locals if v.name not in spares)
    return replace(codelet, body=rewrite_stmts(rule, codelet.body), locals=own)


def keep_resident(loop: Loop, codelet: Codelet) -> ResidentTile:
    """Return what each thread keeps of the arrays that the loop writes.

    Raises InfeasibleDirective where an element has no owner, or what another thread reads of it is not known.
    """
    said = owned_elements(loop)
    assert said is not None, "a directive asks for it"
    made = _Owners(loop, codelet)
    rank = len(made.extents)
    if rank == 1 and said.rows > 1:
        raise InfeasibleDirective(loop, "arrays of one dimension have no rows: leave out `rows`")
    if rank == 1 and said.shared:
        raise InfeasibleDirective(loop, "arrays of one dimension have no rows: leave out `shared`")
    x, y = block_size(loop)
    statements, exchanged = made.statements()
    return ResidentTile(
        loop, tuple((a, ping_pong_name(a)) for a in made.kept), statements, exchanged, made.extents,
        (y, x) if rank == 2 else (x * y,), said.rows, said.columns, said.shared, said.cyclic,
    )  # fmt: skip


Place = tuple[Expr, ...]
"""A position along each dimension."""


class _Written:
    """An assignment of the loop: its loops, the conditions around it, and its place in terms of their variables.

    ``env``: each variable of its loops in terms of ``place(d)``; ``conditions`` likewise.
    """

    def __init__(self, loop: Loop, assign: Assign, loops: Sequence[Loop], conditions: Sequence[Expr]) -> None:
        assert isinstance(assign.target, Load), "only elements are written"
        self.assign, self.target = assign, assign.target
        self.env: dict[str, Expr] = {}
        fixed: list[Expr] = []
        inner = {f.var for f in loops}
        for d, e in enumerate(self.target.index):
            terms, constant = affine_terms(e)
            match [(t, k) for t, k in terms.items() if names_in(t) & inner]:
                case []:
                    fixed.append(Binary("==", place(d), e))
                case [(Var(name), 1)] if len(terms) == 1 and name in inner and name not in self.env:
                    self.env[name] = sub(place(d), Const(constant))
                case [(Var(name), 1)] if len(terms) == 1 and name in self.env:
                    fixed.append(Binary("==", place(d), e))  # a diagonal
                case _:
                    raise InfeasibleDirective(
                        loop, f"it writes {expression_text(self.target)}, which is not at the place of the iteration"
                    )
        ranges = body_ranges(loop, {})
        for f in loops:
            trips = difference_range(f.hi, f.lo, ranges)
            ranges = body_ranges(f, ranges)
            if f.var not in self.env and trips is not None and trips[1] <= 1:
                self.env[f.var] = substitute(f.lo, self.env)
            if f.var not in self.env:
                raise InfeasibleDirective(
                    loop, f"iterations of loop {f.var} inside it write the same element of {self.target.array}"
                )
            if f.step != 1:
                raise InfeasibleDirective(loop, f"loop {f.var} inside it is unrolled or tiled")
        bounds = [c for f in loops for c in iteration_conditions(f)]
        self.conditions = tuple(substitute(c, self.env) for c in (*fixed, *bounds, *conditions))


class _Owners:
    """The owners of the elements that a loop writes; ``kept`` are its arrays."""

    def __init__(self, loop: Loop, codelet: Codelet) -> None:
        self.loop, self.codelet, self.changed = loop, codelet, written_names(codelet.body)
        counting = (f for f in walk_stmts(loop) if isinstance(f, Loop))
        if any(getattr(n, "dtype", "") != COUNTER for f in counting for n in (f, *walk((f.lo, f.hi)))):
            raise InfeasibleDirective(loop, "a loop of its nest counts, or has a bound, in another type than int")
        arrays = {v.name: v for v in (*codelet.params, *codelet.locals) if isinstance(v, (Array, Local)) and v.shape}
        self.written = tuple(self.assignments(loop.body, (), ()))
        if not self.written:
            raise InfeasibleDirective(loop, "it writes no array")
        self.kept = tuple(dict.fromkeys(w.target.array for w in self.written))
        owned = {a for f in walk_stmts(loop) if isinstance(f, Loop) for a in f.private_arrays}
        if owned & set(self.kept):
            raise InfeasibleDirective(loop, f"{min(owned & set(self.kept))} is private to each iteration")
        if len({len(arrays[a].shape) for a in self.kept}) > 1:
            raise InfeasibleDirective(loop, f"{' and '.join(self.kept)} have different numbers of dimensions")
        if len(arrays[self.kept[0]].shape) > MOST_DIMENSIONS:
            raise InfeasibleDirective(loop, f"{self.kept[0]} has more than {MOST_DIMENSIONS} dimensions")
        for array in self.kept:
            if not declared_extents(arrays[array]):
                raise InfeasibleDirective(loop, f"the extent of {array} must be declared")
        self.shapes = {a: declared_extents(v) for a, v in arrays.items()}
        self.extents = tuple(largest_extent(along) for along in zip(*(self.shapes[a] for a in self.kept), strict=True))
        self.sources: Sources = {}

    def assignments(self, body: Iterable[Stmt], loops: tuple[Loop, ...], asked: tuple[Expr, ...]) -> Iterator[_Written]:
        """Yield the assignments in the order of the text."""
        for stmt in body:
            match stmt:
                case Assign(target=Load()):
                    yield _Written(self.loop, stmt, loops, asked)
                case Assign(target=Var(name)):
                    raise InfeasibleDirective(self.loop, f"{name} is a scalar, which no thread owns")
                case Loop(lo=lo, hi=hi, body=inner):
                    self.known((lo, hi), f"the trip count of loop {stmt.var} inside it")
                    if stmt.reductions or steps_per_launch(stmt) or stmt.in_parts:
                        raise InfeasibleDirective(self.loop, f"loop {stmt.var} inside it reduces or has tiles")
                    yield from self.assignments(inner, (*loops, stmt), asked)
                case If(cond, then, other):
                    self.known((cond,), "a condition in it")
                    yield from self.assignments(then, loops, (*asked, *conjuncts(cond)))
                    yield from self.assignments(other, loops, (*asked, Unary("!", cond)))
                case _:
                    raise InfeasibleDirective(self.loop, "the trip count of a while loop in it depends on data")

    def known(self, exprs: tuple[Expr, ...], what: str) -> None:
        """Check that what decides which iterations run is made of sizes and counters, which are ints."""
        if has_load(exprs) or names_in(exprs) & self.changed:
            raise InfeasibleDirective(self.loop, f"{what} depends on data")

    def statements(self) -> tuple[tuple[OwnedStatement, ...], tuple[ExchangedElements, ...]]:
        """Return the assignments at their places, and what other threads read in an iteration."""
        self.sources = step_sources(self.codelet, self.loop)
        made: list[OwnedStatement] = []
        exchanged: list[ExchangedElements] = []
        for k, w in enumerate(self.written):
            value = self.value(k, w.env)
            made.append(OwnedStatement(w.target.array, w.target.dtype, value, w.conditions))
            foreign = (n for n in walk(value) if isinstance(n, Load) and n.array in self.kept and not is_own(n))
            exchanged += [self.exchange(n, w.conditions) for n in dict.fromkeys(foreign)]
        return tuple(made), tuple(_largest(exchanged))

    def value(self, k: int, env: Mapping[str, Expr], own: bool = True) -> Expr:
        """Return the value of assignment ``k`` from what is known before the iteration.

        ``env``: the variables of its loops. ``own``: at its place, the thread has the present value in a register.
        """
        w = self.written[k]

        def rule(n: Node) -> Node | None:
            match n:
                case Load(array, index) if array in self.kept:
                    at = tuple(substitute(e, env) for e in index)
                    if has_load(index):
                        raise InfeasibleDirective(self.loop, f"the index of a read of {array} depends on data")
                    if own and index == w.target.index:
                        return Load(array, tuple(place(d) for d in range(len(index))), n.dtype)
                    by = self.sources[k, n]
                    return Load(array, at, n.dtype) if by is None else self.recomputed(by, at)
                case Var(name) if name in env:
                    return env[name]
            return None

        made: Expr = _replaced(w.assign.value, rule)
        if sum(isinstance(n, Load) for n in walk(made)) > MOST_LOADS:
            raise InfeasibleDirective(
                self.loop, f"to recompute what {expression_text(w.target)} depends on in an iteration takes too much"
            )
        return made

    def recomputed(self, k: int, at: Place) -> Expr:
        """Return the value that assignment ``k`` gives the element ``at``."""
        env = {place(d).name: e for d, e in enumerate(at)}
        return self.value(k, {v: substitute(e, env) for v, e in self.written[k].env.items()}, own=False)

    def exchange(self, load: Load, conditions: tuple[Expr, ...]) -> ExchangedElements:
        """Return the elements that a load stands for, in terms of their own places; more than those where need be."""
        found: dict[str, Expr] = {}
        equal: list[Expr] = []
        places = {place(d).name for d in range(len(self.extents))}
        for d, e in enumerate(load.index):
            terms, constant = affine_terms(e)
            match [(t, c) for t, c in terms.items() if names_in(t) & places]:
                case []:
                    equal.append(Binary("==", place(d), e))
                case [(Var(name), 1)] if len(terms) == 1 and name not in found:
                    found[name] = sub(place(d), Const(constant))
                case [(Var(name), 1)] if len(terms) == 1:
                    equal.append(Binary("==", place(d), substitute(e, found)))
                case _:
                    pass
        if equal:
            return ExchangedElements(load.array, tuple(equal))
        left = places - found.keys()
        return ExchangedElements(load.array, tuple(substitute(c, found) for c in conditions if not names_in(c) & left))


def _replaced(e: Expr, rule: Callable[[Node], Node | None]) -> Expr:
    """Return the expression with the rule applied to the outermost nodes that it replaces."""

    def visit(n: Node) -> Node:
        new = rule(n)
        return map_children(visit, n) if new is None else new

    made = visit(e)
    assert isinstance(made, Expr), "an expression stays one"
    return made


def _largest(exchanged: Iterable[ExchangedElements]) -> Iterator[ExchangedElements]:
    """Yield those that are no part of others."""
    distinct = list(dict.fromkeys(exchanged))
    for e in distinct:
        whole = (o for o in distinct if o != e and o.array == e.array)
        if not any(set(o.conditions) <= set(e.conditions) for o in whole):
            yield e
