"""Distribute independent statements of one iteration to blocks of their own, by the rows that they change.

    for i: for j:                                    for row in 0..2 (blocks): for i: for j:
      C[2*i][j]     += parts of it      ==>            if (row < 1) C[2*i][j]     += parts of it
      C[2*i + 1][j] += parts of it                     else         C[2*i + 1][j] += parts of it

There is little work for each element, and a thread mostly waits for memory: with more threads, more of them wait at the
same time. The elements of one row stay together, since one memory transaction delivers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import combinations, islice

from looptune.ir.def_use import names_in, target_name, written_names
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import Assign, Binary, Const, Expr, If, Load, Loop, Stmt, Unary, Var, While
from looptune.ir.rewrite import walk, walk_stmts
from looptune.poly.iteration_footprint import ElementAccess, Elements

Body = tuple[Stmt, ...]


def split_by_row(body: Body, chain: Sequence[Loop], given: Expr | None, part: str) -> list[Body]:
    """Split ``body`` of the nest ``chain`` into independent groups of rows.

    It adds the partial sums of loops over ``part`` where ``given`` holds; no group accesses what another one changes.
    [body] if it has one row.
    """
    pieces = [p for s in body for p in _pieces(s, part)]
    changing = written_names(pieces)
    inner = {s.var for s in walk_stmts(body) if isinstance(s, Loop)}
    touches = [[t for t in _touches((p,)) if target_name(t.at) in changing] for p in pieces]
    groups = DisjointSets(len(pieces))
    groups.join_equal([[t.at.name for t in mine if isinstance(t.at, Var)] for mine in touches])
    groups.join_equal(_rows(groups, touches))
    elements = Elements(chain, given, changing | inner)
    whole = [(g[0], elements.of([t for k in g for t in touches[k]])) for g in groups.all()]
    for (first, a), (second, b) in combinations(whole, 2):
        if a is None or b is None or a.may_alias(b):
            groups.join(first, second)
    adding = [any(isinstance(s, Loop) and s.var == part for s in walk_stmts((p,))) for p in pieces]
    groups.join_rest(lambda g: any(adding[k] for k in g))
    made = [reduce(partial(_joined, part=part), (pieces[k] for k in g), Body()) for g in groups.all()]
    return made if len(made) > 1 else [body]


def _rows(groups: DisjointSets, touches: Sequence[Sequence[ElementAccess]]) -> list[list[object]]:
    """For the first piece of each group the row of the first element that the group changes."""
    rows: list[list[object]] = [[] for _ in touches]
    for g in groups.all():
        changed = (t.at for k in g for t in touches[k] if t.writes and isinstance(t.at, Load))
        rows[g[0]] = [_row(at) for at in islice(changed, 1)]
    return rows


def select_row(row: Var, rows: Sequence[tuple[Stmt, ...]], first: int = 0) -> tuple[Stmt, ...]:
    """Return the one of the ``rows`` whose number, counted from ``first``, is ``row``."""
    half = len(rows) // 2
    if not half:
        return rows[0]
    below = Binary("<", row, Const(first + half, row.dtype))
    return (If(below, select_row(row, rows[:half], first), select_row(row, rows[half:], first + half)),)


def _pieces(stmt: Stmt, part: str) -> Iterator[Stmt]:
    """Yield a statement as several that do the same together.

    They are split as far as no part changes the condition of another.
    """
    match stmt:
        case If(cond, then, ()) if not names_in(cond) & written_names(then):
            yield from (replace(stmt, then=(p,)) for s in then for p in _pieces(s, part))
        case Loop(var, body=(_, _, *_) as body) if var == part:
            yield from (replace(stmt, body=(s,)) for s in body)
        case _:
            yield stmt


def _joined(body: Body, stmt: Stmt, part: str) -> Body:
    """``body`` with another of its pieces, in one statement with the last one as before."""
    match body, stmt:
        case (*before, If(cond, then, ()) as last), If(asked, (s,), ()) if cond == asked and not names_in(
            cond
        ) & written_names(then):
            return *before, replace(last, then=_joined(then, s, part))
        case (*before, Loop(var, body=parts) as last), Loop(name, body=more) if var == name == part:
            return *before, replace(last, body=(*parts, *more))
    return *body, stmt


def _touches(body: Sequence[Stmt], given: tuple[Expr, ...] = ()) -> Iterator[ElementAccess]:
    for stmt in body:
        match stmt:
            case Assign(target, value):
                yield ElementAccess(target, True, given)
                yield from _named((value, target.index if isinstance(target, Load) else ()), given)
            case If(cond, then, other):
                yield from _named(cond, given)
                yield from _touches(then, (*given, cond))
                yield from _touches(other, (*given, Unary("!", cond)))
            case Loop(_, lo, hi, inner):
                yield from _named((lo, hi), given)
                yield from _touches(inner, given)
            case While(cond, inner):
                yield from _named(cond, given)
                yield from _touches(inner, given)


def _named(asked: object, given: tuple[Expr, ...]) -> Iterator[ElementAccess]:
    return (ElementAccess(n, False, given) for n in walk(asked) if isinstance(n, (Load, Var)))


def _row(element: Load) -> object:
    """Return the same for elements whose subscripts differ in the last one only."""
    sums = (affine_terms(e) for e in element.index[:-1])
    return element.array, tuple((frozenset(terms.items()), constant) for terms, constant in sums)


class DisjointSets:
    """Disjoint sets of the numbers ``0 .. count - 1``."""

    def __init__(self, count: int) -> None:
        self._of = list(range(count))

    def join(self, a: int, b: int) -> None:
        new, old = sorted((self._of[a], self._of[b]))
        self._of = [new if g == old else g for g in self._of]

    def join_equal(self, keys: Sequence[Sequence[object]]) -> None:
        """Join the numbers that have one of their ``keys`` in common."""
        first: dict[object, int] = {}
        for k, mine in enumerate(keys):
            for key in mine:
                self.join(first.setdefault(key, k), k)

    def join_rest(self, alone: Callable[[tuple[int, ...]], bool]) -> None:
        """Join the groups that may not stand ``alone`` with the first one that may."""
        every = self.all()
        first = next(filter(alone, every), every[0])
        for g in every:
            if not alone(g):
                self.join(first[0], g[0])

    def all(self) -> list[tuple[int, ...]]:
        """Return the members of each set, in order."""
        return [tuple(k for k, g in enumerate(self._of) if g == group) for group in dict.fromkeys(self._of)]
