"""Loops that keep the best of their terms together with where it was: argmin, argmax, and the first or last match.

    for (i) if (a[i] < best) { best = a[i]; at = i; }                  the first of the least
    for (i) for (j) if (m[i][j] >= m[row][column]) { row = i; column = j; }
    for (i) if (a[i] == key) at = i;                                   the last that is equal
    for (i) if (!found && a[i] == key) { found = 1; at = i; }          the first that is equal

A group of variables is set under one condition, and the loop uses them in no other way. Blocks of iterations may then
run at the same time, each with variables of its own that begin as those of the loop do. In the order of the blocks, the
variables of a block that set them are taken if the same test still holds. That chooses the iteration that the loop
chooses, also among equal terms and NaNs: a term that passes a comparison in the loop passes it in its block, which has
seen fewer terms, and of a block the loop keeps the term that the block keeps, or none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from looptune.ir.def_use import names_in, target_name, written_names
from looptune.ir.intervals import has_invariant_bounds, may_be_one_place, never_negative
from looptune.ir.nodes import SHORT_FLOATS, Assign, Binary, Cast, Const, Expr, If, Load, Loop, Node, Stmt, Unary, Var
from looptune.ir.rewrite import conjuncts, has_load, rewrite, walk, walk_stmts
from looptune.ir.simplify import fold, is_integer, widens

Place = Var | Load
"""A scalar, or an element whose subscripts the loop does not change."""


@dataclass(frozen=True, slots=True)
class ArgReduction:
    """An ``update`` of several ``targets`` under one condition.

    ``test`` is the part of the condition that reads them, None where there is none. ``key_is_left``: it compares the
    targets, on the left or not, with the term to which the update makes them equal; None where it only asks whether
    they were set before.
    """

    update: If
    targets: tuple[Place, ...]
    test: Expr | None
    key_is_left: bool | None = None

    @property
    def word(self) -> str:
        """Return "argmin" or "argmax" of a comparison; else "first" or "last", the match that is kept."""
        if self.key_is_left is None or not isinstance(self.test, Binary):
            return "last" if self.test is None else "first"
        return "argmax" if self.test.op.startswith("<") == self.key_is_left else "argmin"

    def test_of(self, held: Mapping[Place, Expr]) -> Expr | None:
        """Return the test that the variables ``held`` of a block have to pass to be taken."""
        if self.key_is_left is None or not isinstance(self.test, Binary):
            return self.test
        key = self.test.lhs if self.key_is_left else self.test.rhs
        own = with_values(key, held)
        lhs, rhs = (key, own) if self.key_is_left else (own, key)
        return Binary(self.test.op, lhs, rhs)


def arg_reductions(loop: Loop) -> tuple[ArgReduction, ...]:
    """Return the groups of variables that the loop keeps so; none if it has a group whose uses are not all known."""
    return tuple(_found(loop, loop.body, _never_negative(loop, frozenset())))


def arg_reductions_of(loop: Loop, arrays: Collection[str]) -> tuple[ArgReduction, ...]:
    """Return the groups if they are all that carries a dependence: the loop does so on ``arrays``; else none."""
    found = arg_reductions(loop) if has_invariant_bounds(loop) else ()
    kept = {target_name(t) for group in found for t in group.targets}
    elements = {t.array: t for group in found for t in group.targets if isinstance(t, Load)}
    others = any(isinstance(n, Load) and n.array in elements and n != elements[n.array] for n in walk(loop))
    return () if others or not kept.issuperset(arrays) else found


def _found(loop: Loop, body: tuple[Stmt, ...], known: frozenset[str]) -> Iterator[ArgReduction]:
    for stmt in body:
        match stmt:
            case If(then=then, other=other):
                made = _of_update(loop, stmt, known)
                if made is not None:
                    yield made
                else:
                    yield from _found(loop, (*then, *other), known)
            case Loop():
                yield from _found(loop, stmt.body, _never_negative(stmt, known))


def _never_negative(loop: Loop, known: frozenset[str]) -> frozenset[str]:
    """Return the variables that are never negative in the loop."""
    return known | {loop.var} if never_negative(loop.lo, known) else known - {loop.var}


def _of_update(loop: Loop, update: If, known: frozenset[str]) -> ArgReduction | None:
    """Return the group that a statement of the loop sets, if the loop does nothing else with it."""
    sets = [s for s in update.then if isinstance(s, Assign)]
    values = {s.target: s.value for s in sets}
    targets = tuple(values)
    if update.other or len(sets) != len(update.then) or len(values) != len(sets) or not sets:
        return None
    if not all(_is_only_here(loop, update, t) for t in targets) or any(_reads(s.value, targets) for s in sets):
        return None
    tests = [e for e in conjuncts(update.cond) if _reads(e, targets)]
    if len(tests) > 1 or (not tests and not _is_data(loop, update.cond)):
        return None
    if not tests:
        return ArgReduction(update, targets, None)
    (test,) = tests
    changed = {f.var for f in walk_stmts(loop) if isinstance(f, Loop)} | written_names(loop.body)
    changed -= {target_name(t) for t in targets}
    match test:
        case Binary("<" | "<=" | ">" | ">=", lhs, rhs) if _reads(lhs, targets) != _reads(rhs, targets):
            left = _reads(lhs, targets)
            key, term = (lhs, rhs) if left else (rhs, lhs)
            if not names_in(key) & changed and _bare(with_values(key, values)) == _bare(term):
                return ArgReduction(update, targets, test, left)
    if not names_in(test) & changed and _is_false(with_values(test, values), known):
        return ArgReduction(update, targets, test)
    return None


def _is_only_here(loop: Loop, update: If, target: Place) -> bool:
    """Tell whether the loop uses the target in the update alone, and always as the same place."""
    index = target.index if isinstance(target, Load) else ()
    changed = {f.var for f in walk_stmts(loop) if isinstance(f, Loop)} | written_names(loop.body)
    if has_load(index) or names_in(index) & changed:
        return False
    uses = [n for n in walk(loop) if isinstance(n, Var | Load) and may_be_one_place(n, target)]
    here = [n for n in walk(update) if n == target]
    return len(uses) == len(here)


def _reads(e: Expr, targets: tuple[Place, ...]) -> bool:
    return any(isinstance(n, Var | Load) and any(may_be_one_place(n, t) for t in targets) for n in walk(e))


def _is_data(loop: Loop, condition: Expr) -> bool:
    """Tell whether data decide the condition."""
    return has_load(condition) or bool(names_in(condition) & written_names(loop.body))


def with_values(e: Expr, values: Mapping[Place, Expr]) -> Expr:
    """Return the expression with values for some variables and elements."""

    def rule(n: Node) -> Node | None:
        return values.get(n) if isinstance(n, Var | Load) else None

    return rewrite(rule, e)


def _bare(e: Expr) -> Expr:
    """Return the value without casts around it, or around its subscripts, that keep every value."""
    match e:
        case Cast(dtype, arg) if _keeps_values(dtype, arg.dtype):
            return _bare(arg)
        case Load(array, index, dtype):
            return Load(array, tuple(map(_bare, index)), dtype)
    return e


def _keeps_values(dtype: str, of: str) -> bool:
    if is_integer(dtype) or is_integer(of):
        return widens(dtype, of)
    return dtype == of or dtype == "float64" or (dtype == "float32" and of in SHORT_FLOATS)


def _is_false(test: Expr, known: frozenset[str]) -> bool:
    """Tell whether the test surely fails; the variables ``known`` are never negative."""
    match fold(test):
        case Const(value):
            return not value
        case Unary("!", Const(value)):
            return bool(value)
        case Binary("<" | "==" as op, x, Const(int(limit))) if is_integer(x.dtype):
            return limit <= (0 if op == "<" else -1) and never_negative(x, known)
    return False
