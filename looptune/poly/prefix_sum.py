"""Prefix sums: loops in which an iteration uses what the iterations before it have accumulated.

    for i: s += x[i]; y[i] = s                     the value s, the terms that it accumulates, and what uses it
    for i: y[i] = y[i - 1] + x[i]                  the same with a scalar: s = s + x[i]; y[i] = s
    for i: t[0] += x[i]; y[i] = t[0]               likewise, and t[0] = s after the loop

    for p: a = 0; for i in part p: a += x[i]       the sum of each part of the iterations
           sums[p] = a
    for p: starts[p] = s; s = s + sums[p]          the value before each part, which is a prefix sum again
    for p: b = starts[p]                           the loop, each part from the value before it
           for i in part p: b += x[i]; y[i] = b

Both compute the same if every assignment of the value accumulates by one associative operation, and if what it
accumulates depends neither on the value nor on an element that the loop has written before. All that is judged here, on
the dependences of the loop with scalars.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import NoReturn, TypeVar

from looptune.core.source import Span
from looptune.ir.accumulators import Accumulator, ignores_nan
from looptune.ir.def_use import (
    declared_names,
    names_in,
    take_name,
    upward_exposed_uses,
    written_names,
)
from looptune.ir.nodes import (
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
    PrefixDivision,
    Stmt,
    Unary,
    Var,
    While,
)
from looptune.ir.rewrite import map_blocks, renaming, rewrite, rewrite_stmts, substitute, walk, walk_stmts
from looptune.ir.simplify import BIG_STEP, add, ceil_div, fold, max_of, min_of, mul, sub
from looptune.ir.verify import verify
from looptune.poly.access import source_text
from looptune.poly.affine import name as isl_name
from looptune.poly.delinearization import polynomial
from looptune.poly.dependence import conflict
from looptune.poly.isl_limits import QUESTION, IslLimitExceeded, isl_operation_limit
from looptune.poly.legality import LoopDependences
from looptune.poly.scop import Scop, build

Names = tuple[str, str, str, str]
"""Of one value: the arrays of the sums of parts and of the values before them, the scalars of a sum and of a part."""
Replaced = TypeVar("Replaced", Expr, tuple[Stmt, ...])
_COUNTERS = ("int32", "int64")


class NoPrefixSum(Exception):
    """The loop is none that can be divided; the message is a clause that says why."""


@dataclass(frozen=True, slots=True)
class RunningValue:
    """A value that a loop carries: iterations accumulate into the scalar ``var`` by ``op``.

    ``text`` at ``span`` is what the user calls it, ``name`` what new variables for it are called after. ``exact``: any
    order of the terms gives the same value.
    """

    var: Var
    op: str
    exact: bool
    ignores_nan: bool
    name: str
    text: str
    span: Span

    def accumulator(self, term: Expr) -> Accumulator:
        private = Var(self.var.name, term.dtype)
        return Accumulator(self.op, self.var, private, private, self.ignores_nan)

    @property
    def identity(self) -> Const:
        return self.accumulator(self.var).identity

    def plus(self, term: Expr) -> Assign:
        return Assign(self.var, self.accumulator(term).combine(self.var, term))


@dataclass(frozen=True, slots=True)
class PrefixLoop:
    """A loop of ``codelet`` that can be divided; this is ``text`` with a scalar for each of the ``values``.

    ``terms`` is the part of its body that accumulates, with what that needs. ``distinct`` are the statements that write
    another element each time.
    """

    text: Codelet
    codelet: Codelet
    loop: Loop
    values: tuple[RunningValue, ...]
    terms: tuple[Stmt, ...]
    distinct: frozenset[str] = frozenset()

    @classmethod
    def of(cls, codelet: Codelet, number: int) -> PrefixLoop:
        """Return the loop of this number as a prefix sum. Raises NoPrefixSum."""
        loop = _loop(codelet, number)
        _check_counter(codelet, loop)
        scalar, stored = _with_scalars(codelet, loop)
        loop = _loop(scalar, number)
        carried = _carried(loop)
        return _Judgement(codelet, scalar, loop, build(scalar), stored).result(carried)

    def divided(self, length: int) -> PrefixDivision:
        """Return the codelet with the loop in parts of ``length`` iterations."""
        return _Division(self, length, declared_names(self.codelet)).made()


def is_prefix_sum(codelet: Codelet, number: int) -> bool:
    """Tell whether the loop of this number may be one that can be divided; its other dependences are not looked at."""
    try:
        with isl_operation_limit(QUESTION):
            PrefixLoop.of(codelet, number)
    except (NoPrefixSum, IslLimitExceeded):
        return False
    return True


def _loop(codelet: Codelet, number: int) -> Loop:
    return next(f for f in walk_stmts(codelet.body) if isinstance(f, Loop) and f.number == number)


def _around(body: tuple[Stmt, ...], loop: Loop) -> tuple[Loop | While, ...] | None:
    """Return the loops around ``loop``, outermost first."""
    for stmt in body:
        if stmt is loop:
            return ()
        inner = (*stmt.then, *stmt.other) if isinstance(stmt, If) else getattr(stmt, "body", ())
        found = _around(inner, loop)
        if found is not None:
            return found if isinstance(stmt, If) else (stmt, *found)  # type: ignore[arg-type]
    return None


def _check_counter(codelet: Codelet, loop: Loop) -> None:
    """Raise NoPrefixSum unless the iterations can be counted before any of the codelet runs."""
    if any(isinstance(f, While) for f in walk_stmts(loop.body)):
        raise NoPrefixSum(f"loop {loop.var} has a while loop in it, whose trips are not known")
    if loop.step != 1:
        raise NoPrefixSum(f"loop {loop.var} has steps of {loop.step}: they must be 1")
    if loop.dtype not in _COUNTERS:
        raise NoPrefixSum(f"loop {loop.var} counts in {loop.dtype}: it must be int or long")
    inside = {v.name for v in codelet.locals} | written_names(codelet.body)
    inside |= {f.var for f in walk_stmts(codelet.body) if isinstance(f, Loop)}
    moving = sorted(names_in((loop.lo, loop.hi)) & inside)
    if moving or any(isinstance(n, Load) for n in walk((loop.lo, loop.hi))):
        on = moving[0] if moving else "data"
        raise NoPrefixSum(f"the bounds of loop {loop.var} depend on {on}: they must be made of sizes")


def _with_scalars(codelet: Codelet, loop: Loop) -> tuple[Codelet, Mapping[str, Assign]]:
    """Return the codelet whose loop keeps in scalars what an iteration reads of the last one in arrays.

    These are elements that the last iteration has written, and those that all iterations have in common. The statements
    that write them are returned by the name of the scalar.
    """
    taken, found = declared_names(codelet), dict[str, Assign]()
    before: list[Stmt] = []
    after: list[Stmt] = []
    for total, element in _totals(loop):
        own = Var(take_name(f"{element.array}_last", taken), element.dtype)
        found[own.name] = total
        loop = replace(loop, body=_replaced(loop.body, element, own))
        before += _if_runs(loop, Assign(own, element, span=total.span))
        after += _if_runs(loop, Assign(element, own, span=total.span))
    body: list[Stmt] = []
    for stmt in loop.body:
        last = _last_written(stmt, loop)
        if last is None:
            body.append(stmt)
            continue
        assert isinstance(stmt, Assign), "only an assignment writes"
        own = Var(take_name(f"{last.array}_last", taken), last.dtype)
        found[own.name] = stmt
        value = _replaced(stmt.value, last, own)
        body += [
            replace(stmt, target=own, value=value, directives=()),
            replace(stmt, value=own, name="", directives=()),
        ]
        before += _if_runs(loop, Assign(own, substitute(last, {loop.var: loop.lo}), span=stmt.span))
    if not found:
        return codelet, {}
    locals_ = tuple(Local(name, stmt.target.dtype, span=stmt.span) for name, stmt in found.items())
    whole = (*before, replace(loop, body=tuple(body)), *after)
    made = replace(codelet, body=_spliced(codelet.body, _loop(codelet, loop.number), whole))
    return named(replace(made, locals=codelet.locals + locals_)), found


def _totals(loop: Loop) -> Iterator[tuple[Assign, Load]]:
    """Yield each element that every iteration accumulates into, no other of its array being used, with a statement."""
    moving = written_names(loop.body) | {f.var for f in walk_stmts((loop,)) if isinstance(f, Loop)}
    seen: set[str] = set()
    for stmt in loop.body:
        if isinstance(stmt, Assign) and isinstance(stmt.target, Load) and stmt.target.array not in seen:
            element, touched = stmt.target, [n for n in walk(loop.body) if isinstance(n, Load)]
            seen.add(element.array)
            fixed = not names_in(element.index) & moving and not any(isinstance(n, Load) for n in walk(element.index))
            if fixed and element in walk(stmt.value) and all(n == element for n in touched if n.array == element.array):
                yield stmt, element


def _if_runs(loop: Loop, stmt: Stmt) -> tuple[Stmt, ...]:
    """Return the statement under the condition that the loop has an iteration."""
    runs = fold(Binary("<", loop.lo, loop.hi))
    if isinstance(runs, Const):
        return (stmt,) if runs.value else ()
    return (If(runs, (stmt,)),)


def _last_written(stmt: Stmt, loop: Loop) -> Load | None:
    """Return the element that a statement reads and the last iteration wrote, if nothing else writes the array."""
    if not isinstance(stmt, Assign) or not isinstance(stmt.target, Load):
        return None
    target = stmt.target
    if names_in(target.index) & written_names(loop.body) or any(isinstance(n, Load) for n in walk(target.index)):
        return None
    step = Binary("-", Var(loop.var, loop.dtype), Const(1, loop.dtype))
    last = replace(target, index=substitute(target.index, {loop.var: step}))
    writers = sum(isinstance(s, Assign) and s.target == target for s in walk_stmts(loop.body))
    others = sum(
        isinstance(s, Assign) and isinstance(s.target, Load) and s.target.array == target.array
        for s in walk_stmts(loop.body)
    )
    read = sum(_same_element(n, last) for n in walk(stmt.value))
    return last if (writers, others, read) == (1, 1, 1) and last != target else None


def _replaced(tree: Replaced, element: Load, own: Var) -> Replaced:
    """Return a tree with ``own`` in place of an element."""
    return rewrite(lambda n: own if _same_element(n, element) else None, tree)


def _same_element(n: Node, element: Load) -> bool:
    if not isinstance(n, Load) or n.array != element.array:
        return False
    pairs = [(polynomial(a), polynomial(b)) for a, b in zip(n.index, element.index, strict=True)]
    return n.index == element.index or all(a is not None and a == b for a, b in pairs)


def _spliced(body: tuple[Stmt, ...], loop: Loop, made: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return ``body`` with ``made`` in place of the loop."""
    k = next((k for k, s in enumerate(body) if s is loop), None)
    if k is not None:
        return (*body[:k], *made, *body[k + 1 :])
    return tuple(map_blocks(lambda block: _spliced(block, loop, made), s) for s in body)


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What the dependences say of a loop with scalars; ``stored`` has the statements of ``_with_scalars``."""

    text: Codelet
    codelet: Codelet
    loop: Loop
    model: Scop
    stored: Mapping[str, Assign]

    def result(self, carried: Sequence[str]) -> PrefixLoop:
        values = tuple(map(self.value, carried))
        kept = self.needed(values)
        self.check_scalars(values, kept)
        self.check_arrays(kept)
        distinct = frozenset(self.distinct(self.loop.body, values))
        return PrefixLoop(self.text, self.codelet, self.loop, values, filtered(self.loop.body, kept), distinct)

    def updates(self, scalar: str) -> list[Assign]:
        assigns = (s for s in walk_stmts(self.loop.body) if isinstance(s, Assign))
        return [s for s in assigns if isinstance(s.target, Var) and s.target.name == scalar]

    def value(self, scalar: str) -> RunningValue:
        """Return the value that a scalar holds. Raises NoPrefixSum unless iterations only accumulate into it."""
        updates = self.updates(scalar)
        into = [self.model.space.accesses[s.name][0] for s in updates]
        stored = self.stored.get(scalar)
        text = into[0].text if stored is None else source_text(stored.target)
        ops = {a.reduces for a in into}
        if None in ops or len(ops) > 1:
            raise NoPrefixSum(f"loop {self.loop.var} carries {text}, which is not accumulated by one operation")
        (op,) = ops
        exact = all(a.exact for a in into)
        if op in ("min", "max") and not exact:
            raise NoPrefixSum(f"the order of the values decides what {text} is if one of them is NaN")
        nan = ignores_nan(self.loop, updates[0].target)
        if op in ("min", "max") and not nan and any(_calls(s.value, scalar) for s in updates):
            raise NoPrefixSum(f"{text} is accumulated by a function and by a comparison")
        target, name = updates[0].target, scalar if stored is None else _array(stored)
        assert op is not None, "all of them accumulate"
        assert isinstance(target, Var), "they accumulate into a scalar"
        return RunningValue(target, op, exact, nan, name, text, updates[0].span)

    def distinct(self, body: tuple[Stmt, ...], values: tuple[RunningValue, ...]) -> Iterator[str]:
        """Yield the statements that write at a place that a counter says, which grows before each of them runs again.

        The counter and the statement stand in one block. Another loop around might set the counter back.
        """
        counters = (
            {v.var.name for v in values if self.grows(v)} if _around(self.codelet.body, self.loop) == () else set()
        )
        assigns = [s for s in body if isinstance(s, Assign)]
        raised = {s.target.name for s in assigns if isinstance(s.target, Var)} & counters
        yield from (s.name for s in assigns if isinstance(s.target, Load) and _places(s.target, raised))
        for stmt in body:
            for block in blocks_of(stmt):
                yield from self.distinct(block, values)

    def grows(self, value: RunningValue) -> bool:
        """Return whether every assignment of the value adds a positive constant to it, without wrapping."""
        return value.var.dtype in _COUNTERS and all(_raises(s) for s in self.updates(value.var.name))

    def needed(self, values: tuple[RunningValue, ...]) -> frozenset[str]:
        """Return the names of the statements that accumulate, and of those that assign the scalars they read."""
        own = {v.var.name for v in values}
        listed = list(_decided(self.loop.body, ()))
        kept = {s.name for s, _ in listed if isinstance(s.target, Var) and s.target.name in own}
        while True:
            read = names_in(tuple(e for s, around in listed if s.name in kept for e in (s.value, *around))) - own
            more = {s.name for s, _ in listed if isinstance(s.target, Var) and s.target.name in read}
            if more <= kept:
                return frozenset(kept)
            kept |= more

    def check_scalars(self, values: tuple[RunningValue, ...], kept: frozenset[str]) -> None:
        """Raise NoPrefixSum if what is accumulated depends on a value."""
        own = {v.var.name: v.text for v in values}
        for name in sorted(kept):
            for a in self.model.space.accesses[name]:
                if a.array in own and not a.write and a.reduces is None:
                    self.depends(own[a.array])
        bounds = [f for f in walk_stmts(self.loop.body) if isinstance(f, Loop)]
        for f in bounds:
            inside = {s.name for s in walk_stmts(f.body) if isinstance(s, Assign)}
            for v in sorted(names_in((f.lo, f.hi)) & own.keys()) if inside & kept else ():
                self.depends(own[v])

    def depends(self, text: str) -> NoReturn:
        raise NoPrefixSum(f"what loop {self.loop.var} accumulates depends on the value of {text} so far")

    def check_arrays(self, kept: frozenset[str]) -> None:
        """Raise NoPrefixSum if what is accumulated reads an element that the loop has written before."""
        inside = [s.name for s in walk_stmts(self.loop.body) if isinstance(s, Assign)]
        around = _around(self.codelet.body, self.loop)
        assert around is not None, "the loop is in the codelet"
        here = LoopDependences(self.model, frozenset(inside), 2 * len(around) + 1, self.model.order())
        space = self.model.space
        for then in (n for n in inside if n in kept):
            for read in (a for a in space.accesses[then] if not a.write and a.index):
                for first in inside:
                    writes = (a for a in space.accesses[first] if a.write and a.array == read.array)
                    for write in writes:
                        met = conflict(space, write, read).intersect(space.before(first, then))
                        if not met.intersect(here.equal_prefix(first, then, here.depth)).is_empty():
                            raise NoPrefixSum(
                                f"what loop {self.loop.var} accumulates reads {read.text}, which the loop has written"
                            )


def _raises(update: Assign) -> bool:
    match update.value:
        case Binary("+", Var() as x, Const(value)) | Binary("+", Const(value), Var() as x):
            return x == update.target and value > 0
    return False


def _places(element: Load, counters: Collection[str]) -> bool:
    """Tell whether one of the subscripts is the sum of a counter and a constant."""
    sums = [s for e in element.index if (s := polynomial(e)) is not None]
    return any({m: c for m, c in s.items() if m} == {(isl_name(k),): 1} for s in sums for k in counters)


def blocks_of(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """Return the blocks in a statement."""
    match stmt:
        case If(_, then, other):
            return then, other
        case Loop(body=body) | While(body=body):
            return (body,)
    return ()


def _carried(loop: Loop) -> list[str]:
    """Return the scalars that may have in an iteration what another one has assigned."""
    assigns = (s for s in walk_stmts(loop.body) if isinstance(s, Assign))
    scalars = dict.fromkeys(s.target.name for s in assigns if isinstance(s.target, Var))
    exposed = upward_exposed_uses(loop.body)
    found = [v for v in scalars if v in exposed]
    if not found:
        raise NoPrefixSum(f"no iteration of loop {loop.var} uses what the ones before it have accumulated")
    return found


def _calls(value: Expr, scalar: str) -> bool:
    return any(getattr(n, "fn", "") in ("fmin", "fmax") and scalar in names_in(n) for n in walk(value))


def _array(stmt: Assign) -> str:
    assert isinstance(stmt.target, Load), "it writes an element"
    return stmt.target.array


def _decided(body: tuple[Stmt, ...], around: tuple[Expr, ...]) -> Iterator[tuple[Assign, tuple[Expr, ...]]]:
    """Yield the assignments, each with the conditions and the bounds of the loops around it."""
    for stmt in body:
        match stmt:
            case Assign():
                yield stmt, around
            case If(cond, then, other):
                yield from _decided((*then, *other), (*around, cond))
            case Loop(_, lo, hi, inner):
                yield from _decided(inner, (*around, lo, hi))


def filtered(body: tuple[Stmt, ...], kept: frozenset[str]) -> tuple[Stmt, ...]:
    """Return a copy of the statements ``kept``, with the loops and the conditions around them."""

    def rule(s: Stmt) -> Stmt | tuple[Stmt, ...] | None:
        match s:
            case Assign(name=name):
                return replace(s, name="", directives=()) if name in kept else ()
            case Loop(body=()) | If(then=(), other=()):
                return ()
            case Loop():
                return replace(s, number=0, directives=(), counter=None)
            case If(cond, (), other):
                return If(Unary("!", cond), other, span=s.span)
            case If():
                return replace(s, directives=())
        return None

    return rewrite_stmts(rule, body)


@dataclass(slots=True)
class _Division:
    prefix: PrefixLoop
    length: int
    taken: set[str]

    def made(self) -> PrefixDivision:
        before, loop = self.prefix.codelet, self.prefix.loop
        names = [self.names(v) for v in self.prefix.values]
        sums, scan, rest = self.sums(names), self.scan(names), self.rest(names)
        locals_ = [v for one, value in zip(names, self.prefix.values, strict=True) for v in self.locals(one, value)]
        body = _spliced(before.body, loop, (sums, scan, rest))
        after = named(replace(before, body=body, locals=(*before.locals, *locals_)))
        at = _number(after, sums.var), _number(after, scan.var), _number(after, rest.var)
        distinct = self.prefix.distinct
        return PrefixDivision(self.prefix.text, before, verify(after), loop.number, at, tuple(names), distinct)

    def names(self, value: RunningValue) -> Names:
        """Return the names of the arrays of sums and of starts, and of the scalars of a sum and of a part."""
        sums, starts, total, part = (
            take_name(f"{value.name}_{x}", self.taken) for x in ("sums", "starts", "sum", "part")
        )
        return sums, starts, total, part

    def locals(self, names: Names, value: RunningValue) -> Iterator[Local]:
        dtype, extent = value.var.dtype, max_of(self.parts, Const(1, self.parts.dtype))
        yield from (Local(name, dtype, (extent,), True, span=value.span) for name in names[:2])
        yield from (Local(name, dtype, span=value.span) for name in names[2:])

    @property
    def parts(self) -> Expr:
        return ceil_div(sub(self.prefix.loop.hi, self.prefix.loop.lo), self.length)

    def over_parts(self, kind: str) -> tuple[Var, Loop]:
        """Return a loop over the parts, without a body, and its variable."""
        loop = self.prefix.loop
        var = Var(take_name(f"{loop.var}_{kind}", self.taken), loop.dtype)
        return var, Loop(var.name, Const(0, loop.dtype), self.parts, (), dtype=loop.dtype, span=loop.span)

    def bounds(self, part: Var) -> tuple[Expr, Expr]:
        loop, length = self.prefix.loop, Const(self.length, self.prefix.loop.dtype)
        start = add(loop.lo, mul(length, part))
        end = add(start, length)
        total = sub(loop.hi, loop.lo)
        whole = isinstance(total, Const) and int(total.value) % self.length == 0
        if self.length > BIG_STEP:  # the sum might exceed the type
            return start, add(start, min_of(length, sub(loop.hi, start)))
        return start, end if whole else min_of(end, loop.hi)

    def sums(self, names: Sequence[Names]) -> Loop:
        """Return the loop that accumulates the terms of each part."""
        loop, values = self.prefix.loop, self.prefix.values
        part, outer = self.over_parts("sum")
        own = Var(take_name(f"{loop.var}_term", self.taken), loop.dtype)
        lo, hi = self.bounds(part)
        renamed = {loop.var: own.name, **{v.var.name: n[2] for v, n in zip(values, names, strict=True)}}
        terms = rewrite(renaming(renamed), self.prefix.terms)
        inner = Loop(own.name, lo, hi, terms, dtype=loop.dtype, span=loop.span)
        totals = [(Var(n[2], v.var.dtype), v, n[0]) for v, n in zip(values, names, strict=True)]
        first = (Assign(total, v.identity, span=v.span) for total, v, _ in totals)
        last = (Assign(Load(sums, (part,), v.var.dtype), total, span=v.span) for total, v, sums in totals)
        return replace(outer, body=(*first, inner, *last))

    def scan(self, names: Sequence[Names]) -> Loop:
        """Return the loop that computes the value before each part, and that after all of them."""
        part, outer = self.over_parts("scan")
        pairs = list(zip(self.prefix.values, names, strict=True))
        starts = (Assign(Load(n[1], (part,), v.var.dtype), v.var, span=v.span) for v, n in pairs)
        sums = (replace(v.plus(Load(n[0], (part,), v.var.dtype)), span=v.span) for v, n in pairs)
        return replace(outer, body=(*starts, *sums))

    def rest(self, names: Sequence[Names]) -> Loop:
        """Return the loop of the text in parts, each from the value before it."""
        loop = self.prefix.loop
        part, outer = self.over_parts("part")
        lo, hi = self.bounds(part)
        pairs = list(zip(self.prefix.values, names, strict=True))
        first = (Assign(Var(n[3], v.var.dtype), Load(n[1], (part,), v.var.dtype), span=v.span) for v, n in pairs)
        body = rewrite(renaming({v.var.name: n[3] for v, n in pairs}), loop.body)
        return replace(outer, body=(*first, replace(loop, lo=lo, hi=hi, body=body)))


def _number(codelet: Codelet, var: str) -> int:
    return next(f.number for f in walk_stmts(codelet.body) if isinstance(f, Loop) and f.var == var)


def named(codelet: Codelet) -> Codelet:
    """Return the codelet with numbers for new loops and names for new statements; each is an instance of its own."""
    nodes = tuple(walk_stmts(codelet.body))
    used = {s.name for s in nodes if isinstance(s, Assign)}
    names = (name for k in count() if (name := f"P{k}") not in used)
    numbers = count(1 + max(f.number for f in nodes if isinstance(f, (Loop, While))))

    def visit(stmt: Stmt, around: tuple[Expr, ...]) -> Stmt:
        match stmt:
            case Assign():
                return replace(stmt, name=stmt.name or next(names), instance=around)
            case Loop():
                number = stmt.number or next(numbers)
                inside = (*around, Var(stmt.var, stmt.dtype))
                return replace(stmt, number=number, body=tuple(visit(s, inside) for s in stmt.body))
        return map_blocks(lambda block: tuple(visit(s, around) for s in block), stmt)

    return replace(codelet, body=tuple(visit(s, ()) for s in codelet.body))
