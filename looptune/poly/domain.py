"""The iterations in which each statement runs, and their times: the translation of the loop tree to isl text.

    for i in 0..n:                 S1: { [i, j] : 0 <= i < n and i + 1 <= j < n }   at time (0, i, 1, j, 0)
      S0
      for j in i+1..n: S1          S0: { [i] : 0 <= i < n }                         at time (0, i, 0, 0, 0)

What is not affine is over-approximated: a statement under such a condition MAY run, a loop with such a bound is open on
that side, and ``while`` is a loop from 0 without end. Each is reported as an ``Unanalysable``. The condition of a
``while`` is a statement of its own, which runs once in a pass, before all others of the pass. An ``if`` adds no
dimension: its statements are numbered with those around it, and count as reading what the condition reads; transforms
move an ``if`` as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from looptune.core.source import Span
from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import declared_names, integer_parameters, names_in, written_names
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
    Stmt,
    Unary,
    Var,
    While,
)
from looptune.ir.rewrite import substitute, walk
from looptune.ir.simplify import is_integer
from looptune.poly.affine import Least, constant, lower_bound, name, to_isl
from looptune.poly.data_conditions import DataCondition, affine_part, conjuncts
from looptune.poly.opaque_terms import OpaqueTerms


@dataclass(frozen=True, slots=True)
class Unanalysable:
    """Code that cannot be analysed: ``what`` is a noun phrase, ``statements`` are those concerned.

    ``condition``: only whether a statement runs is unknown; the elements that it accesses if it runs are known.
    ``passes``: only how often a while loop around it runs is unknown.
    """

    what: str
    span: Span
    statements: frozenset[str] = frozenset()
    condition: bool = False
    passes: bool = False

    def __str__(self) -> str:
        return f"{self.what} cannot be analysed"


@dataclass(frozen=True, slots=True)
class Statement:
    """One assignment with its loops, outermost first, and its description for isl.

    ``dims`` names one isl dimension per loop, ``domain`` is a condition on them, ``time`` the place in the tree.
    ``exact``: it runs in every iteration of the domain. ``conditions`` are the expressions that decide whether it runs;
    the last of them is ``guard`` (or its negation) if the statement is the first of a branch: nothing runs between the
    two. ``data_conditions`` are those that are not affine, in parts. ``is_condition``: the statement only evaluates the
    last of them, for the statement of this name; or, with its own name, the condition of its innermost ``while``.
    """

    name: str
    loops: tuple[Loop | While, ...]
    assign: Assign
    dims: tuple[str, ...]
    domain: str
    time: tuple[str, ...]
    exact: bool
    conditions: tuple[Expr, ...]
    unknown: Unanalysable | None
    guard: Expr | None = None
    data_conditions: tuple[DataCondition, ...] = ()
    is_condition: str = ""

    def iteration_text(self, values: tuple[int, ...], sizes: Mapping[str, int]) -> dict[str, int]:
        """Return an iteration in the user's names and values; a ``while`` counts its passes.

        ``sizes`` are the integer parameters by name.
        """
        env = {**sizes, **self.counters(values)}
        found: dict[str, int] = {}
        for f, value in zip(self.loops, values, strict=True):
            match f:
                case Loop(var, source_value=None):
                    found[var] = value
                case Loop(var, source_value=Node() as e):
                    held = constant_value(e, env)
                    found[var if held is not None else f"pass of {var}"] = value if held is None else held
                case While():
                    found["pass"] = value
        return found

    def counters(self, values: tuple[int, ...]) -> dict[str, int]:
        """Return an iteration by the variables of the tree's loops."""
        return {f.var: v for f, v in zip(self.loops, values, strict=True) if isinstance(f, Loop)}


def constant_value(e: Expr, env: Mapping[str, int]) -> int | None:
    """Return the value of an integer expression, or None if it contains names that are not in ``env``."""
    used = {n.name: n.dtype for n in walk(e) if isinstance(n, Var)}
    value = substitute(e, {v: Const(env[v], dtype) for v, dtype in used.items() if v in env})
    return int(value.value) if isinstance(value, Const) else None


@dataclass(frozen=True, slots=True)
class IterationDomains:
    """The statements of a codelet in textual order, and the assumptions about its sizes.

    ``context``: the extents of arrays are not negative; C demands more of a variable length array, but programs do call
    with n = 0. Nothing is concluded from the bounds of the arrays, because programs do run over a row's end into the
    next row. ``known`` are locals that stand for an affine value. ``ranges`` holds, by loop, the condition to reach it
    and the condition to run at all. ``least`` has a constant that a size is never below, where one is known. ``terms``
    are those parameters that stand for an expression.
    """

    parameters: tuple[str, ...]
    context: tuple[str, ...]
    known: Mapping[str, Expr]
    statements: Mapping[str, Statement]
    unknown: tuple[Unanalysable, ...]
    ranges: tuple[tuple[Loop, tuple[str, ...], str, str | None], ...]
    least: Least
    terms: OpaqueTerms

    def affine(self, e: Expr, dims: tuple[str, ...], *, products: bool = True) -> str | None:
        """Return ``e`` as isl text over ``dims`` and the parameters, or None if it depends on anything else.

        ``products`` of sizes may be parameters.
        """
        return _affine(e, self.known, {*dims, *self.parameters}, self.terms, products=products)

    def named_terms(self, e: Expr) -> Expr:
        """Return ``e`` with locals that stand for a value replaced by it, and quotients of sizes by their names."""
        return self.terms.replaced(substitute(e, self.known), products=False)

    def condition(self, e: Expr, wanted: bool, dims: tuple[str, ...]) -> tuple[str, bool]:
        """Return a condition, as isl text, that holds wherever ``e`` is true (or false), and whether it is exact."""
        return affine_part(self.terms.replaced(substitute(e, self.known)), wanted, {*dims, *self.parameters})


def _affine(
    e: Expr,
    known: Mapping[str, Expr],
    scope: Collection[str],
    terms: OpaqueTerms,
    least: Least | None = None,
    *,
    products: bool = True,
) -> str | None:
    value = terms.replaced(substitute(e, known), products=products)
    if any(name(v) not in scope and v not in terms.found for v in names_in(value)):
        return None
    return to_isl(value) if least is None else to_isl(value, least)


def scan(codelet: Codelet) -> IterationDomains:
    """Return the iteration domains of the codelet's statements."""
    scalars = integer_parameters(codelet)
    assigned = written_names(codelet.body)
    parameters = tuple(p for p in scalars if p not in assigned)
    terms = OpaqueTerms(parameters)
    known = _known_values(codelet, set(parameters), terms)
    scope = {name(p) for p in parameters}
    for load in (n for n in walk(codelet.body) if isinstance(n, Load)):
        for subscript in load.index:
            terms.replaced(substitute(subscript, known), products=False)
            terms.replaced(substitute(subscript, known))
    context: list[str] = []
    least: dict[str, int] = {}
    for extent in _extents(codelet):
        affine = _affine(extent, known, scope, terms)
        if affine is not None and constant(extent) is None:
            context.append(f"{affine} >= 0")
        match substitute(extent, known):
            case Var(var) if var in parameters:
                least[var] = 0
    walker = _Walker(known, terms, used_names=declared_names(codelet))
    top = _Place(scope=frozenset(scope), least=least)
    walker.block(codelet.body, top)
    length = max((len(s.time) for s in walker.statements), default=1)
    statements = {s.name: replace(s, time=s.time + ("0",) * (length - len(s.time))) for s in walker.statements}
    unknown = _collected(walker.unknown)
    return IterationDomains(
        (*map(name, parameters), *terms.found),
        tuple(dict.fromkeys(context)),
        known,
        statements,
        unknown,
        tuple(walker.ranges),
        least,
        replace(terms, open=False),
    )


def _extents(codelet: Codelet) -> Iterator[Expr]:
    """Of all arrays, but those that say of themselves that they may be empty, as the parts of a sum over no loop."""
    for array in (*codelet.params, *codelet.locals):
        match array:
            case Array(shape=shape) | Local(shape=shape):
                yield from (extent for extent in shape if extent is not None and not _may_be_zero(extent))


def _may_be_zero(extent: Expr) -> bool:
    match extent:
        case Binary("max", _, Const(0)) | Binary("max", Const(0), _):
            return True
    return False


def _collected(unknown: list[tuple[Unanalysable, str]]) -> tuple[Unanalysable, ...]:
    """Each unknown once, with all the statements it concerns."""
    found: dict[Unanalysable, set[str]] = {}
    for u, statement in unknown:
        found.setdefault(u, set()).add(statement)
    return tuple(replace(u, statements=frozenset(names)) for u, names in found.items())


def _known_values(codelet: Codelet, parameters: set[str], terms: OpaqueTerms) -> dict[str, Expr]:
    """Integer locals assigned once, from an affine value, before every use in the block that assigns them."""
    integers = {v.name for v in codelet.locals if not v.shape and is_integer(v.dtype)}
    times: dict[str, int] = {}
    uses: dict[str, int] = {}
    for node in walk(codelet.body):
        match node:
            case Assign(Var(target)):
                times[target] = times.get(target, 0) + 1
            case Var(used):
                uses[used] = uses.get(used, 0) + 1
    candidates = {v for v in integers if times.get(v) == 1}
    known: dict[str, Expr] = {}

    def visit(body: tuple[Stmt, ...], scope: set[str]) -> None:
        for k, stmt in enumerate(body):
            match stmt:
                case Assign(Var(target), value) if target in candidates:
                    later = sum(isinstance(n, Var) and n.name == target for n in walk(body[k + 1 :]))
                    whole = substitute(value, known)
                    if later == uses[target] - 1 and names_in(whole) <= scope and to_isl(terms.replaced(whole)):
                        known[target] = whole
                case Loop(var, _, _, inner):
                    visit(inner, scope | {var})
                case While(_, inner):
                    visit(inner, scope)
                case If(_, then, other):
                    visit(then, scope)
                    visit(other, scope)

    visit(codelet.body, parameters)
    return known


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the walk is: the loops and conditions around, and what they say."""

    loops: tuple[Loop | While, ...] = ()
    dims: tuple[str, ...] = ()
    domain: tuple[str, ...] = ()
    time: tuple[str, ...] = ()
    exact: bool = True
    conditions: tuple[Expr, ...] = ()
    unknown: tuple[Unanalysable, ...] = ()
    scope: frozenset[str] = frozenset()
    least: Least = field(default_factory=dict)
    data_conditions: tuple[DataCondition, ...] = ()
    ifs: int = 0

    def with_condition(
        self, condition: str, exact: bool, of: tuple[Expr, ...], unknown: tuple[Unanalysable, ...]
    ) -> _Place:
        return replace(self, domain=(*self.domain, *([condition] if condition != "true" else [])),
                       exact=self.exact and exact, conditions=self.conditions + of,
                       unknown=self.unknown + unknown)  # fmt: skip


@dataclass(slots=True)
class _Walker:
    known: Mapping[str, Expr]
    terms: OpaqueTerms
    used_names: set[str]
    statements: list[Statement] = field(default_factory=list)
    unknown: list[tuple[Unanalysable, str]] = field(default_factory=list)
    ranges: list[tuple[Loop, tuple[str, ...], str, str | None]] = field(default_factory=list)

    def block(self, body: tuple[Stmt, ...], place: _Place, start: int = 0, guard: Expr | None = None) -> int:
        """Walk ``body``, numbering from ``start``; the next free number. ``guard`` is asked right before the first."""
        for stmt in body:
            asked, guard = guard, None
            match stmt:
                case Assign():
                    self.assign(stmt, replace(place, time=(*place.time, str(start))), asked)
                case Loop():
                    self.loop(stmt, replace(place, time=(*place.time, str(start))))
                case While():
                    self.passes(stmt, replace(place, time=(*place.time, str(start))))
                case If(cond, then, other):
                    yes, no = (self.branch(cond, taken, place, start) for taken in (True, False))
                    middle = self.block(then, yes, start, cond)
                    start = self.block(other, no, middle, Unary("!", cond)) - 1
            start += 1
        return start

    def assign(self, stmt: Assign, place: _Place, guard: Expr | None) -> None:
        self.unknown += [(u, stmt.name) for u in place.unknown]
        domain = " and ".join(f"({c})" for c in place.domain)
        unknown = min(place.unknown, key=lambda u: u.condition, default=None)
        self.statements.append(Statement(stmt.name, place.loops, stmt, place.dims, domain, place.time, place.exact,
                                         place.conditions, unknown, guard, place.data_conditions))  # fmt: skip

    def loop(self, loop: Loop, place: _Place) -> None:
        var = name(loop.var)
        lo, hi = (self.affine(bound, place) for bound in (loop.lo, loop.hi))
        runs = None if lo is None or hi is None else f"{lo} < {hi}"
        self.ranges.append((loop, place.dims, " and ".join(f"({c})" for c in place.domain), runs))
        conditions = [f"{lo} <= {var}"] if lo is not None else []
        conditions += [f"{var} < {hi}"] if hi is not None else []
        conditions += [f"({var} - {lo}) mod {loop.step} = 0"] if lo is not None and loop.step > 1 else []
        unknown = tuple(
            Unanalysable(
                f"the bound {expression_text(bound)} of loop {loop.var}", bound.span if bound.span.line else loop.span
            )
            for bound, affine in ((loop.lo, lo), (loop.hi, hi))
            if affine is None
        )
        bound = lower_bound(substitute(loop.lo, self.known), place.least)
        least = {v: b for v, b in place.least.items() if v != loop.var}
        inside = place.with_condition(
            " and ".join(conditions) if conditions else "true", not unknown, (loop.lo, loop.hi), unknown
        )
        self.block(loop.body, replace(
            inside, loops=(*place.loops, loop), dims=(*place.dims, var), time=(*place.time, var),
            scope=place.scope | {var}, least=least if bound is None else {**least, loop.var: bound},
        ))  # fmt: skip

    def passes(self, loop: While, place: _Place) -> None:
        """``while`` as a loop that counts its passes, each of which begins with the evaluation of its condition."""
        var = next(v for v in (f"pass{k}" for k in range(len(self.used_names) + 1)) if v not in self.used_names)
        self.used_names.add(var)
        what = f"the condition {expression_text(loop.cond)} of a while loop"
        unknown = Unanalysable(what, _span(loop.cond, loop), passes=True)
        inside = place.with_condition(f"{var} >= 0", False, (), (unknown,))
        inside = replace(inside, loops=(*place.loops, loop), dims=(*place.dims, var), time=(*place.time, var))
        self.pass_condition(loop, replace(inside, time=(*inside.time, "-1")))
        self.block(loop.body, inside)

    def pass_condition(self, loop: While, place: _Place) -> None:
        """Add the statement that evaluates the condition of a ``while``; a copy of the loop has one of its own."""
        called, taken = pass_condition_name(loop), {s.name for s in self.statements}
        while called in taken:
            called += "_"
        asked = Assign(Var(called, loop.cond.dtype), loop.cond, name=called, span=_span(loop.cond, loop))
        self.assign(asked, place, None)
        self.statements[-1] = replace(self.statements[-1], is_condition=called)

    def branch(self, cond: Expr, taken: bool, place: _Place, start: int) -> _Place:
        """Inside an ``if``: the affine parts of its condition hold, the others may be either way."""
        domain, asked = list(place.domain), list(place.data_conditions)
        for part, wanted in conjuncts(cond, taken):
            whole = self.terms.replaced(substitute(part, self.known))
            holds, exact = affine_part(whole, wanted, {*place.scope, *self.terms.found}, place.least)
            if not exact:
                here = " and ".join(f"({c})" for c in domain)
                asked.append(DataCondition(part, wanted, len(place.loops), start, here, place.ifs, cond))
            domain += [holds] if holds != "true" else []
        affine = len(asked) == len(place.data_conditions)
        unknown = () if affine else (Unanalysable(f"condition {expression_text(cond)}", cond.span, condition=True),)
        return replace(
            place, domain=tuple(domain), exact=place.exact and affine, conditions=(*place.conditions, cond),
            unknown=place.unknown + unknown, data_conditions=tuple(asked), ifs=place.ifs + 1,
        )  # fmt: skip

    def affine(self, e: Expr, place: _Place) -> str | None:
        return _affine(e, self.known, place.scope, self.terms, place.least)


def pass_condition_name(loop: While) -> str:
    """Return the name of the statement that evaluates the condition of a ``while``, which has a number of its own."""
    return f"while{loop.number}_if"


def _span(e: Expr, around: While) -> Span:
    return e.span if e.span.line else around.span
