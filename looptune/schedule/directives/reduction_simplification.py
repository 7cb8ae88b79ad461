"""Reduction simplification: accumulate the terms of sums in a local, and share sums between elements.

A sum that several elements get is computed once, and factors that the loop does not change are multiplied with the sum.

    for k:                                                s = 0
      C[i][j] += a * A[i][k] * B[j][k]                    for k: s += A[i][k] * B[j][k]
      if (j < i) C[j][i] += a * B[j][k] * A[i][k]   ==>   C[i][j] += a * s
                                                          if (j < i) C[j][i] += a * s

Two sums are equal if they have the same terms, each in the same loop, with factors and terms in any order, and the loop
changes nothing that these read. Nothing else in the loop may access the elements to which the sums are added, and
wherever the second sum is needed, the first one has to be needed too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import ClassVar

from looptune.ir.def_use import names_in, share_conditions, take_name, written_names
from looptune.ir.intervals import has_iteration, is_total
from looptune.ir.nodes import (
    Annotation,
    Assign,
    Binary,
    Cast,
    Const,
    Expr,
    If,
    Load,
    Local,
    Loop,
    Node,
    Reduction,
    Stmt,
    Unary,
    Var,
)
from looptune.ir.rewrite import conjunction, conjuncts, has_load, map_blocks, rewrite, rewrite_stmts, walk, walk_stmts
from looptune.poly.delinearization import polynomial
from looptune.schedule.directives.base import statement_names
from looptune.schedule.directives.jam import implies

Given = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class SharedSum:
    """A local, ``own``, that holds a sum; ``terms`` has the statements that each accumulation into it replaces."""

    own: str
    terms: tuple[tuple[Stmt, ...], ...]


@dataclass(frozen=True, slots=True)
class _Term:
    """An accumulation into ``target``, under the conditions ``conditions``, in the loops ``enclosing_loops``.

    These have iterations where all of ``loops_run`` holds.
    """

    target: Load
    assign: Assign
    conditions: Given
    enclosing_loops: tuple[int, ...]
    loops_run: Given

    @property
    def key(self) -> Hashable:
        return self.enclosing_loops, _plain(self.added)

    @property
    def added(self) -> Expr:
        match self.assign.value:
            case Binary("+", lhs, rhs):
                return rhs if lhs == self.target else lhs
        raise AssertionError("an accumulation adds")


@dataclass(frozen=True, slots=True)
class _Sum:
    """Of the ``terms`` of one element; ``also`` are those of another one, which are the same.

    ``factors`` are in all of them and do not change.
    """

    terms: Sequence[_Term]
    also: Sequence[_Term]
    factors: tuple[Expr, ...]


def simplify_reductions(
    body: tuple[Stmt, ...], names: Collection[str], taken: Collection[str]
) -> tuple[tuple[Stmt, ...], tuple[Local, ...], tuple[SharedSum, ...]]:
    """Regroup the sums of the statements ``names`` in ``body``.

    Returns the new body, the locals that hold the sums, and for each local the statements that it replaces. The names
    of the locals are not in ``taken``.
    """
    making = _Regrouping(frozenset(names), set(taken))
    made = making.block(body)
    return made, tuple(making.locals), tuple(making.found)


@dataclass(frozen=True, slots=True)
class SharedSums:
    """A loop whose sums are accumulated in locals and added to several elements afterwards.

    ``loop`` accumulates into the variables ``own``, which are declared by ``locals``, each where its entry of
    ``conditions`` holds; ``after`` adds them to the elements.
    """

    loop: Loop
    after: tuple[Stmt, ...]
    own: tuple[Var, ...]
    conditions: tuple[Expr | None, ...]
    locals: tuple[Local, ...]
    found: tuple[SharedSum, ...]


def share_sums(loops: Sequence[Loop], names: Collection[str], taken: set[str]) -> SharedSums | None:
    """Return the loop with its sums regrouped, or None.

    There is none if it does something else, if no two elements have equal sums, or for several loops. ``taken``: the
    names in use, which is extended.
    """
    if len(loops) != 1 or not names:
        return None
    body, made, found = simplify_reductions(tuple(loops), names, taken)
    at, adding = next((k, s) for k, s in enumerate(body) if isinstance(s, Loop))
    own = tuple(Var(v.name, v.dtype) for v in made)
    alone = {s.target for s in walk_stmts(adding) if isinstance(s, Assign)} <= {*own}
    if not alone or not any(len(terms) > 1 for sum_ in found for terms in sum_.terms):
        return None
    taken |= {v.name for v in made}
    loop = replace(adding, reductions=tuple(Reduction("+", v) for v in own))
    given = tuple(c for s in body[:at] for c in ([s.cond] * len(s.then) if isinstance(s, If) else [None]))
    return SharedSums(loop, body[at + 1 :], own, given, made, found)


@dataclass(frozen=True, slots=True)
class RegroupedSums(Annotation):
    """The annotation that permits to regroup the terms of the sums in the loop, see ``simplify_reductions``."""

    word: ClassVar = "factor"

    def pragma(self) -> str:
        return ""


def regroupable_statements(around: Sequence[Loop], body: tuple[Stmt, ...]) -> frozenset[str]:
    """Return the statements of ``body`` whose sums a directive regroups, at a loop ``around`` it or in it."""
    if any(f.annotation(RegroupedSums) for f in around):
        return statement_names(body)
    inner = (f for f in walk_stmts(body) if isinstance(f, Loop) and f.annotation(RegroupedSums))
    return frozenset().union(*map(statement_names, inner))


def undo_regrouping(body: tuple[Stmt, ...], found: Sequence[SharedSum]) -> tuple[Stmt, ...]:
    """Return the inverse of ``simplify_reductions`` on ``body``; elements that are now in a register remain there."""
    left = {sum_.own: iter(sum_.terms) for sum_ in found}
    assigns = [s for s in walk_stmts(body) if isinstance(s, Assign)]
    held: dict[Node, Node] = {s.target: s.value for s in assigns if isinstance(s.value, Load)}
    registers: dict[str, dict[Node, Node]] = {name: {} for name in left}
    for s in assigns:
        for name in names_in(s) & left.keys():
            registers[name] |= {held[n]: n for n in walk(s.value) if n in held}

    def rule(s: Stmt) -> Stmt | tuple[Stmt, ...] | None:
        match s:
            case Assign(Var(name), Binary("+")) if name in left:
                return rewrite(registers[name].get, next(left[name]))
            case Assign() if names_in(s) & left.keys():
                return ()
            case If(_, (), ()):
                return ()
        return None

    return rewrite_stmts(rule, body) if found else body


@dataclass(slots=True)
class _Regrouping:
    names: frozenset[str]
    used_names: set[str]
    locals: list[Local] = field(default_factory=list)
    found: list[SharedSum] = field(default_factory=list)

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in body:
            sums = list(_sums(stmt, self.names)) if isinstance(stmt, Loop) else []
            if sums:
                out += self.loop(stmt, sums)
            else:
                out.append(map_blocks(self.block, stmt))
        return tuple(out)

    def loop(self, loop: Stmt, sums: Sequence[_Sum]) -> tuple[Stmt, ...]:
        before: list[Stmt] = []
        after: list[Stmt] = []
        new: dict[int, Stmt | tuple[Stmt, ...]] = {}
        for sum_ in sums:
            first, target = sum_.terms[0], sum_.terms[0].target
            own = Var(take_name(f"{target.array}_sum", self.used_names), target.dtype)
            self.locals.append(Local(own.name, own.dtype))
            new |= self.accumulations(sum_, own)
            total: Expr = own
            for factor in reversed(sum_.factors):
                total = Binary("*", factor, total)
            adding = [Assign(to, Binary("+", to, total)) for to in (target, *(t.target for t in sum_.also[:1]))]
            wanted = [g for t in sum_.also[:1] for g in t.conditions if g not in first.conditions]
            before += _under(first.conditions, Assign(own, Const(0, own.dtype)))
            added = adding[0], *(_under(wanted, adding[1]) if sum_.also else ())
            # Of no terms there is no sum: its element may be none of the array, and its factors infinite.
            after += _under(first.conditions, *_under(first.loops_run, *added))
        rest = rewrite_stmts(lambda s: _replaced(s, new), (loop,))
        return (*share_conditions(before), *rest, *share_conditions(after))

    def accumulations(self, sum_: _Sum, own: Var) -> dict[int, Stmt | tuple[Stmt, ...]]:
        """Return what takes the place of each term, by identity."""
        new: dict[int, Stmt | tuple[Stmt, ...]] = {}
        rest, terms = list(sum_.also), list[tuple[Stmt, ...]]()
        for term in sum_.terms:
            stands_for: tuple[Stmt, ...] = (term.assign,)
            if sum_.also:
                other = next(t for t in rest if t.key == term.key)
                rest.remove(other)
                stands_for += _under([g for g in other.conditions if g not in term.conditions], other.assign)
                new[id(other.assign)] = ()
            terms.append(stands_for)
            value = Binary("+", own, _without(term.added, sum_.factors))
            new[id(term.assign)] = replace(term.assign, target=own, value=value)
        self.found.append(SharedSum(own.name, tuple(terms)))
        return new


def _replaced(s: Stmt, new: dict[int, Stmt | tuple[Stmt, ...]]) -> Stmt | tuple[Stmt, ...] | None:
    return () if isinstance(s, If) and not (s.then or s.other) else new.get(id(s))


def _under(given: Sequence[Expr], *body: Stmt) -> tuple[Stmt, ...]:
    return (If(conjunction(given), body),) if given else body


def _sums(loop: Loop, names: Collection[str]) -> Iterator[_Sum]:
    """Yield the sums that gain by regrouping: those of two elements, or with common factors."""
    found = list(_terms((loop,), (), (), ()))
    terms = [t for t in found if t is not None]
    if len(terms) < len(found):
        return
    elements: dict[Load, list[_Term]] = {}
    for term in terms:
        elements.setdefault(term.target, []).append(term)
    changed = written_names((loop,))
    moving = {f.var for f in walk_stmts((loop,)) if isinstance(f, Loop)} | changed
    alone = {array for array in {t.target.array for t in terms} if _alone(array, terms, loop)}
    left = [mine for mine in elements.values() if mine[0].target.array in alone and _settled(mine, moving, names)]
    while left:
        first, *left = left
        factors = _factors(first, moving)
        same = (mine for mine in left if _same(first, mine) and not names_in(tuple(t.added for t in mine)) & changed)
        pairs = ((a, b) for mine in same for a, b in ((first, mine), (mine, first)) if _wanted(b, a))
        terms, also = next(pairs, (first, []))
        left = [mine for mine in left if mine is not terms and mine is not also]
        if also or factors:
            yield _Sum(terms, also, factors)


def _terms(body: tuple[Stmt, ...], given: Given, loops: tuple[Loop, ...], ran: Given) -> Iterator[_Term | None]:
    """Yield the assignments; None for one that adds to no element, and for what is no counted loop."""
    for stmt in body:
        match stmt:
            case Loop(body=inner):
                asked = has_iteration(stmt, loops)
                yield from _terms(inner, given, (*loops, stmt), ran if asked is None else (*ran, asked))
            case If(cond, then, ()) if not has_load(cond):
                yield from _terms(then, (*given, *conjuncts(cond)), loops, ran)
            case Assign(Load() as target, Binary("+", lhs, rhs)) if target in (lhs, rhs):
                yield _Term(target, stmt, given, tuple(map(id, loops)), ran)
            case _:
                yield None


def _alone(array: str, terms: Sequence[_Term], loop: Loop) -> bool:
    """Return whether only accumulations into its elements access the array."""
    touched = sum(isinstance(n, Load) and n.array == array for n in walk(loop))
    return touched == 2 * sum(t.target.array == array for t in terms)


def _settled(mine: Sequence[_Term], moving: Collection[str], names: Collection[str]) -> bool:
    """Tell whether the loop changes neither the element nor its condition.

    The condition can then be evaluated outside.
    """
    first = mine[0]
    asked = (*first.target.index, *first.conditions, *first.loops_run)
    return (
        all(t.assign.name in names for t in mine)
        and len({(t.conditions, t.loops_run) for t in mine}) == 1
        and not names_in(asked) & set(moving)
        and all(map(is_total, first.conditions))
    )


def _factors(mine: Sequence[_Term], moving: Collection[str]) -> tuple[Expr, ...]:
    """Return what all terms are multiplied with and the loop does not change, one factor being left in each."""
    fixed = [f for f in _operands(mine[0].added, "*") if not names_in(f) & set(moving)]
    left = [list(_operands(t.added, "*")) for t in mine]
    found: list[Expr] = []
    for factor in fixed:
        if all(factor in operands and len(operands) > 1 for operands in left):
            found.append(factor)
            for operands in left:
                operands.remove(factor)
    return tuple(found)


def _without(e: Expr, factors: Sequence[Expr]) -> Expr:
    operands = list(_operands(e, "*"))
    for factor in factors:
        operands.remove(factor)
    return reduce(lambda a, b: Binary("*", a, b), operands)


def _same(first: Sequence[_Term], second: Sequence[_Term]) -> bool:
    alike = first[0].target.array == second[0].target.array and first[0].loops_run == second[0].loops_run
    return alike and len(first) == len(second) and Counter(t.key for t in first) == Counter(t.key for t in second)


def _wanted(some: Sequence[_Term], others: Sequence[_Term]) -> bool:
    """Where ``some`` are the ``others`` are."""
    return all(any(g == h or implies(h, g) for h in some[0].conditions) for g in others[0].conditions)


def _operands(e: Expr, op: str, dtype: str = "") -> Iterator[Expr]:
    """Yield the operands of a chain of one operator in one type."""
    match e:
        case Binary(this, lhs, rhs) if this == op and e.dtype == (dtype or e.dtype):
            yield from _operands(lhs, op, e.dtype)
            yield from _operands(rhs, op, e.dtype)
        case _:
            yield e


def _plain(e: Node) -> Hashable:
    """Return a key that is equal for expressions that differ only in the order of factors and terms."""
    match e:
        case Binary("*" | "+" as op):
            return op, e.dtype, tuple(sorted(repr(_plain(x)) for x in _operands(e, op)))
        case Load(array, index):
            return "load", array, tuple(map(_place, index))
        case Binary(op, lhs, rhs):
            return op, e.dtype, _plain(lhs), _plain(rhs)
        case Unary(op, arg):
            return op, e.dtype, _plain(arg)
        case Cast(dtype, arg):
            return "cast", dtype, _plain(arg)
    return repr(e)


def _place(e: Expr) -> Hashable:
    found = polynomial(e)
    return repr(e) if found is None else tuple(sorted(found.items()))
