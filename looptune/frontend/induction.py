"""Integers that a loop changes by the same amount in each iteration, written in terms of the loop's variable.

    k = 3;                                     for (i = 0; i < n; i++)
    for (i = 0; i < n; i++) {                    for (j = 0; j < m; j++)
      for (j = 0; j < m; j++)         ==>          a[3 + i * m + i + j] = 0;
        a[k++] = 0;                            k = 3 + n * (m + 1);
      k++;
    }

These are the offsets of pointers and the user's own counters. A ``while`` loop whose condition compares such an integer
becomes a counted loop. Every assignment keeps its place, with a value that does not read the integer; the ones that
nothing reads are removed as those of loop variables are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from looptune.frontend.finalize import FINAL
from looptune.frontend.name_resolution import OFFSET, base
from looptune.ir.def_use import written_names
from looptune.ir.nodes import Assign, Binary, Cast, Const, Expr, If, Load, Local, Loop, Node, Stmt, Unary, Var, While
from looptune.ir.rewrite import rewrite, walk
from looptune.ir.simplify import add, ceil_div, div, fold, is_integer, max_of, mul, sub

Sum = Mapping[tuple[Expr, ...], int]
"""Coefficients by product of expressions: 2*i*n + 1 is {(i, n): 2, (): 1}."""
_DEEPEST = 7
"""Loops around which a value is followed: each one doubles the work."""
_LARGEST = 200
"""Nodes of a value."""


def close_forms(
    stmts: tuple[Stmt, ...], locals_: Mapping[str, Local]
) -> tuple[tuple[Stmt, ...], dict[str, Local], frozenset[str]]:
    """Return the statements, new locals, and the variables of the text for whose values others stand."""
    names = _candidates(stmts, locals_)
    if not names or _depth(stmts) > _DEEPEST:
        return stmts, {}, frozenset()
    closer = _Closer({n: locals_[n].dtype for n in names})
    made = closer.block(stmts, {})
    return made, closer.locals, frozenset(base(n) for n in closer.replaced if OFFSET not in n)


def _candidates(stmts: tuple[Stmt, ...], locals_: Mapping[str, Local]) -> frozenset[str]:
    """Return the integer locals that stand for pointers, or that a loop changes in terms of themselves."""
    integers = {n for n, v in locals_.items() if not v.shape and is_integer(v.dtype) and v.dtype != "bool"}
    found = {n for n in integers if OFFSET in n}
    for loop in (n for n in walk(stmts) if isinstance(n, Loop | While)):
        for node in walk(loop.body):
            match node:
                case Assign(Var(name), value) if name in integers and name in _names(value):
                    found.add(name)
    return frozenset(found) if any(isinstance(n, Loop | While) for n in walk(stmts)) else frozenset()


def _depth(stmts: tuple[Stmt, ...]) -> int:
    deepest = 0
    for stmt in stmts:
        match stmt:
            case Loop(body=body) | While(body=body):
                deepest = max(deepest, 1 + _depth(body))
            case If(_, then, other):
                deepest = max(deepest, _depth(then), _depth(other))
    return deepest


def _names(e: object) -> set[str]:
    return {n.name for n in walk(e) if isinstance(n, Var)}


def _assigned(stmts: tuple[Stmt, ...]) -> set[str]:
    return {n.target.name for n in walk(stmts) if isinstance(n, Assign) and isinstance(n.target, Var)}


Known = dict[str, Expr]
"""The values of variables at a place of the program, in terms of what does not change there."""


@dataclass(slots=True)
class _Closer:
    """``known`` arguments hold values at the place that is reached.

    ``dtypes`` are those of the variables that are followed; ``runs`` are the trip counts of the loops around.
    """

    dtypes: Mapping[str, str]
    locals: dict[str, Local] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)
    runs: tuple[Expr, ...] = ()
    serial: int = 0

    def block(self, stmts: tuple[Stmt, ...], known: Known) -> tuple[Stmt, ...]:
        return tuple(made for stmt in stmts for made in self.stmt(stmt, known))

    def stmt(self, stmt: Stmt, known: Known) -> Iterator[Stmt]:
        match stmt:
            case Assign(target, value):
                yield self.assign(stmt, target, value, known)
            case If(cond, then, other):
                yes, no = dict(known), dict(known)
                made = replace(
                    stmt, cond=self.put(cond, known), then=self.block(then, yes), other=self.block(other, no)
                )
                known.clear()
                known.update({n: v for n, v in yes.items() if no.get(n) == v})
                yield made
            case Loop():
                yield from self.loop(self.entered(stmt, known), known)
            case While():
                yield from self.while_(stmt, known)

    def entered(self, loop: Loop, known: Known) -> Loop:
        """Return the loop with known values in its bounds, and in the user's variable of it."""
        counter = loop.counter
        if counter is not None and counter.value is not None:
            kept = {n: v for n, v in known.items() if n not in _assigned(loop.body)}
            counter = replace(counter, value=self.put(counter.value, kept))
        return replace(loop, lo=self.put(loop.lo, known), hi=self.put(loop.hi, known), counter=counter)

    def while_(self, loop: While, known: Known) -> Iterator[Stmt]:
        steps = self.steps(loop.body, known, set())
        stale = _stale(known, _assigned(loop.body))
        for name in sorted(_names(loop.cond) & steps.keys() - (known.keys() - stale)):
            yield self.saved(name, known)
        counted = self.counted(loop, steps, known)
        if counted is not None:
            yield from self.loop(counted, known)
            return
        _forget(known, _assigned(loop.body))
        inside = dict(known)
        yield replace(loop, cond=self.put(loop.cond, inside), body=self.block(loop.body, inside))

    def assign(self, stmt: Assign, target: Var | Load, value: Expr, known: Known) -> Assign:
        value = self.put(value, known)
        if isinstance(target, Load):
            index = tuple(self.put(e, known) for e in target.index)
            return replace(stmt, target=replace(target, index=index), value=value)
        _forget(known, {target.name})
        if target.name not in self.dtypes or not _is_simple(value) or target.name in _names(value):
            return replace(stmt, value=value)
        known[target.name] = value
        return replace(stmt, value=value, name=FINAL)

    def put(self, e: Expr, known: Known) -> Expr:
        """Return an expression with the known values in place of the variables."""

        def rule(n: Node) -> Node | None:
            match n:
                case Var(name) if name in known:
                    self.replaced.add(name)
                    return rewrite(self.without_max, known[name])
                case Binary() | Unary() | Cast():
                    return fold(n)
            return None

        return e if _names(e).isdisjoint(known) else rewrite(rule, e)

    def without_max(self, n: Node) -> Node | None:
        """Return ``x`` for ``max(0, x)`` where a loop around runs ``x`` times."""
        match n:
            case Binary("max", Const(0), x) if x in self.runs:
                return x
            case Binary() | Unary() | Cast():
                return fold(n)
        return None

    # -- loops --------------------------------------------------------------------------------------

    def loop(self, loop: Loop, known: Known) -> Iterator[Stmt]:
        steps = self.steps(loop.body, known, {loop.var})
        stale = _stale(known, _assigned(loop.body))
        for name, step in steps.items():
            if step and (name not in known or name in stale):
                yield self.saved(name, known)
            elif name in stale:
                del known[name]
        firsts = {name: known[name] for name in steps if name in known}
        _forget(known, _assigned(loop.body))
        length = _trip_count(loop)
        inside = known | {name: _closed(first, steps[name], loop) for name, first in firsts.items()}
        around, self.runs = self.runs, (*self.runs, length)
        body = self.block(loop.body, inside)
        self.runs = around
        yield replace(loop, body=body)
        trips = max_of(Const(0, length.dtype), length)
        for name, first in firsts.items():
            passed = _product(steps[name], _sum(_cast(trips, first.dtype)))
            last = _expr(_plus(_sum(first), passed), first.dtype)
            if _is_simple(last):
                known[name] = last
                yield Assign(Var(name, last.dtype), last, name=FINAL, span=loop.span)

    def saved(self, name: str, known: Known) -> Assign:
        """Return the assignment that keeps the value with which a variable enters a loop."""
        self.serial += 1
        dtype = self.dtypes[name]
        kept = f"{base(name)}_first{OFFSET}{self.serial}i"
        self.locals[kept] = Local(kept, dtype)
        known[name] = Var(kept, dtype)
        return Assign(Var(kept, dtype), Var(name, dtype), name=FINAL)

    def steps(self, body: tuple[Stmt, ...], known: Known, varying: set[str]) -> dict[str, Sum]:
        """Return by how much the body changes the variables, of those that it always changes by the same."""
        changed = _assigned(body)
        before = {n: Var(f"{n}?", self.dtypes[n]) for n in changed & self.dtypes.keys()}
        entered = {n: v for n, v in known.items() if n not in changed and not _names(v) & changed}
        trial = _Closer(self.dtypes, serial=self.serial)
        after: Known = {**entered, **before}
        trial.block(body, after)
        found: dict[str, Sum] = {}
        # what the trial would keep where an inner loop begins is another value in each iteration
        unsure = {*changed, *varying, *trial.locals, *(v.name for v in before.values())}
        for name, first in before.items():
            if name in after:
                step = _plus(_sum(after[name]), {m: -c for m, c in _sum(first).items()})
                if not any(_names(e) & unsure for m in step for e in m):
                    found[name] = step
        return found

    def counted(self, loop: While, steps: Mapping[str, Sum], known: Known) -> Loop | None:
        """Return a ``while`` loop that runs a number of times which is known when it begins as a counted loop.

        None for any other, such as one whose condition reads an array that its body writes.
        """
        changed = _assigned(loop.body)
        written = written_names(loop.body)
        if any(n.array in written for n in walk(loop.cond) if isinstance(n, Load)):
            return None
        outer = {n: v for n, v in known.items() if n not in changed and not _names(v) & changed}
        match self.put(loop.cond, outer):
            case Binary("<" | "<=" | ">" | ">=" | "!=" as op, a, b) if is_integer(a.dtype):
                trips = self.number_of_trips(op, a, b, steps, changed, known)
            case _:
                return None
        if trips is None:
            return None
        self.serial += 1
        names = [n for n in steps if n in _names(loop.cond)]
        var = f"{base(names[0])}#w{self.serial}@"
        return Loop(var, Const(0, trips.dtype), trips, loop.body, dtype=trips.dtype, directives=loop.directives,
                    span=loop.span)  # fmt: skip

    def number_of_trips(
        self, op: str, a: Expr, b: Expr, steps: Mapping[str, Sum], changed: set[str], known: Known
    ) -> Expr | None:
        """Return how often ``a op b`` holds before it does not, or None where that is not known."""
        if op in (">", ">="):
            return self.number_of_trips({">": "<", ">=": "<="}[op], b, a, steps, changed, known)
        signed = a.dtype in ("int32", "int64")
        if not signed and (op, a) in (("<", Const(0, a.dtype)), ("<=", Const(1, a.dtype))):
            op, a = "!=", Const(0, a.dtype)
        gap = _plus(_sum(b), {m: -c for m, c in _sum(a).items()})
        moving = {m: c for m, c in gap.items() if any(_names(e) & changed for e in m)}
        if len(moving) != 1:
            return None
        ((factors, factor),) = moving.items()
        match factors:
            case (Var(name),) | (Cast(_, Var(name)),) if name in steps and factor in (1, -1):
                step = steps[name]
            case _:
                return None
        wraps = isinstance(factors[0], Cast) and self.dtypes[name] not in ("int32", "int64")
        if [*step] != [()] or name not in known or wraps:
            return None
        closing = -factor * step[()]
        rest = {m: c for m, c in gap.items() if m not in moving}
        first = known[name] if known[name].dtype == a.dtype else fold(Cast(a.dtype, known[name]))
        distance = _plus(rest, {m: factor * c for m, c in _sum(first).items()})
        if op == "!=" and closing == -1:
            closing, distance = 1, {m: -c for m, c in distance.items()}
        elif closing <= 0 or (op == "!=" and closing != 1):
            return None
        if not signed:
            # it counts down to zero
            if op != "!=" or rest or first.dtype != a.dtype:
                return None
            return fold(Cast("int64", _expr(distance, a.dtype)))
        if op == "<=":
            distance = _plus(distance, {(): 1})
        length = _expr(distance, a.dtype)
        return ceil_div(length, closing)


def _stale(known: Known, changed: set[str]) -> set[str]:
    """Return the variables whose values are in terms of what changes."""
    return {n for n, v in known.items() if _names(v) & changed}


def _forget(known: Known, changed: set[str]) -> None:
    """Remove the values that change, and those in terms of what does."""
    for name in [n for n, v in known.items() if n in changed or _names(v) & changed]:
        del known[name]


def _is_simple(e: Expr) -> bool:
    """Tell whether a value may be computed again where it is used."""
    nodes = [*walk(e)]
    return len(nodes) <= _LARGEST and all(
        (isinstance(n, Const | Var | Cast | Unary) and is_integer(n.dtype))
        or (isinstance(n, Binary) and n.op in ("+", "-", "*", "max", "min", "/"))
        for n in nodes
    )


# -- sums of products ---------------------------------------------------------------------------------


def _sum(e: Expr) -> Sum:
    match e:
        case Const(int(value)):
            return {(): value} if value else {}
        case Binary("+", lhs, rhs):
            return _plus(_sum(lhs), _sum(rhs))
        case Binary("-", lhs, rhs):
            return _plus(_sum(lhs), {m: -c for m, c in _sum(rhs).items()})
        case Binary("*", lhs, rhs):
            return _product(_sum(lhs), _sum(rhs))
        case Unary("-", arg):
            return {m: -c for m, c in _sum(arg).items()}
    return {(e,): 1}


def _plus(a: Sum, b: Sum) -> Sum:
    total = {m: a.get(m, 0) + b.get(m, 0) for m in (*a, *b)}
    return {m: c for m, c in total.items() if c}


def _product(a: Sum, b: Sum) -> Sum:
    total: dict[tuple[Expr, ...], int] = {}
    for m, c in a.items():
        for n, d in b.items():
            both = tuple(sorted((*m, *n), key=repr))
            total[both] = total.get(both, 0) + c * d
    return {m: c for m, c in total.items() if c}


def _expr(p: Sum, dtype: str) -> Expr:
    """Return the sum as an expression of the type, the constant last."""
    made: Expr = Const(0, dtype)
    for factors, c in sorted(p.items(), key=lambda item: (not item[0], item[1] < 0)):
        term: Expr = Const(abs(c), dtype)
        for f in factors:
            term = mul(term, f)
        if made == Const(0, dtype):
            made = term if c > 0 else fold(Unary("-", term))
        else:
            made = add(made, term) if c > 0 else sub(made, term)
    return made


def _cast(e: Expr, dtype: str) -> Expr:
    return e if e.dtype == dtype else fold(Cast(dtype, e))


def _closed(first: Expr, step: Sum, loop: Loop) -> Expr:
    """Return the value that a variable has in an iteration: ``first + step * (var - lo) / by``."""
    dtype = first.dtype
    var, lo = _cast(Var(loop.var, loop.dtype), dtype), _cast(loop.lo, dtype)
    passed = _plus(_sum(var), {m: -c for m, c in _sum(lo).items()})
    if all(c % loop.step == 0 for c in step.values()):
        step = {m: c // loop.step for m, c in step.items()}
    else:
        passed = _sum(div(_expr(passed, dtype), Const(loop.step, dtype)))
    return _expr(_plus(_sum(first), _product(passed, step)), dtype)


def _trip_count(loop: Loop) -> Expr:
    """Return how often a loop runs; where this is negative it does not run."""
    return ceil_div(sub(loop.hi, loop.lo), loop.step)
