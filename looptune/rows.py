"""Statements of one iteration that have nothing to do with each other: by the rows of what they change.

    for i: for j:                                    for row in 0..2 (blocks): for i: for j:
      C[2*i][j]     += parts of it      ==>            if (row < 1) C[2*i][j]     += parts of it
      C[2*i + 1][j] += parts of it                     else         C[2*i + 1][j] += parts of it

Little is done for each element there, and what a thread waits for is the memory: more threads wait at once. The
elements of one row stay together, for those a memory delivers together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations

import islpy as isl

from looptune.ir import Assign, Expr, If, Load, Loop, Stmt, Un, Var, While
from looptune.poly.text import condition, name, text
from looptune.ranges import linear
from looptune.rewrite import walk, walk_stmts
from looptune.scope import names_in, written

Body = tuple[Stmt, ...]


def by_rows(body: Body, chain: Sequence[Loop], given: Expr | None, part: str) -> list[Body]:
    """The ``body`` of the nest ``chain``, which adds up the parts that loops over ``part`` run through where ``given``
    holds, as several, none of which touches what another one changes; [body] where it is of one row."""
    pieces = [p for s in body for p in _pieces(s, part)]
    changing = written(pieces)
    inner = {s.var for s in walk_stmts(body) if isinstance(s, Loop)}
    touches = [[t for t in _touches((p,)) if _called(t.at) in changing] for p in pieces]
    groups = _Groups(len(pieces))
    groups.join_alike([[t.at.name for t in mine if isinstance(t.at, Var)] for mine in touches])
    changed = [[t.at for k in g for t in touches[k] if t.writes and isinstance(t.at, Load)] for g in groups.all()]
    rows = {g[0]: [_row(at) for at in some[:1]] for g, some in zip(groups.all(), changed, strict=True)}
    groups.join_alike([rows.get(k, []) for k in range(len(pieces))])
    elements = _Elements(chain, given, changing | inner)
    whole = [(g[0], elements.of([t for k in g for t in touches[k]])) for g in groups.all()]
    for (first, a), (second, b) in combinations(whole, 2):
        if a.meets(b):
            groups.join(first, second)
    adding = [any(isinstance(s, Loop) and s.var == part for s in walk_stmts((p,))) for p in pieces]
    of = groups.all()
    first = next((g[0] for g in of if any(adding[k] for k in g)), 0)
    for g in of:
        if not any(adding[k] for k in g):
            groups.join(first, g[0])
    made = [reduce(partial(_joined, part=part), (pieces[k] for k in g), Body()) for g in groups.all()]
    return made if len(made) > 1 else [body]


def _pieces(stmt: Stmt, part: str) -> Iterator[Stmt]:
    """A statement as several that do the same, as far as none of them is asked for by what another one changes."""
    match stmt:
        case If(cond, then, ()) if not names_in(cond) & written(then):
            yield from (replace(stmt, then=(p,)) for s in then for p in _pieces(s, part))
        case Loop(var, body=(_, _, *_) as body) if var == part:
            yield from (replace(stmt, body=(s,)) for s in body)
        case _:
            yield stmt


def _joined(body: Body, stmt: Stmt, part: str) -> Body:
    """``body`` with another of its pieces, in one statement with the last one as before."""
    match body, stmt:
        case (*before, If(cond, then, ()) as last), If(asked, (s,), ()) if cond == asked:
            return *before, replace(last, then=_joined(then, s, part))
        case (*before, Loop(var, body=parts) as last), Loop(name, body=more) if var == name == part:
            return *before, replace(last, body=(*parts, *more))
    return *body, stmt


@dataclass(frozen=True, slots=True)
class _Touch:
    """A local or an element that a statement names, where the conditions ``given`` hold."""

    at: Load | Var
    writes: bool
    given: tuple[Expr, ...]


def _touches(body: Sequence[Stmt], given: tuple[Expr, ...] = ()) -> Iterator[_Touch]:
    for stmt in body:
        match stmt:
            case Assign(target, value):
                yield _Touch(target, True, given)
                yield from _named((value, target.index if isinstance(target, Load) else ()), given)
            case If(cond, then, other):
                yield from _named(cond, given)
                yield from _touches(then, (*given, cond))
                yield from _touches(other, (*given, Un("!", cond)))
            case Loop(_, lo, hi, inner):
                yield from _named((lo, hi), given)
                yield from _touches(inner, given)
            case While(cond, inner):
                yield from _named(cond, given)
                yield from _touches(inner, given)


def _named(asked: object, given: tuple[Expr, ...]) -> Iterator[_Touch]:
    return (_Touch(n, False, given) for n in walk(asked) if isinstance(n, (Load, Var)))


def _called(at: Load | Var) -> str:
    return at.array if isinstance(at, Load) else at.name


def _row(element: Load) -> object:
    """The same for elements whose subscripts differ in the last one only."""
    sums = (linear(e) for e in element.index[:-1])
    return element.array, tuple((frozenset(terms.items()), constant) for terms, constant in sums)


class _Groups:
    def __init__(self, count: int) -> None:
        self._of = list(range(count))

    def join(self, a: int, b: int) -> None:
        new, old = sorted((self._of[a], self._of[b]))
        self._of = [new if g == old else g for g in self._of]

    def join_alike(self, keys: Sequence[Sequence[object]]) -> None:
        """Those that share one of their ``keys``."""
        first: dict[object, int] = {}
        for k, mine in enumerate(keys):
            for key in mine:
                self.join(first.setdefault(key, k), k)

    def all(self) -> list[tuple[int, ...]]:
        """Those in each, in their order."""
        return [tuple(k for k, g in enumerate(self._of) if g == group) for group in dict.fromkeys(self._of)]


@dataclass(frozen=True, slots=True)
class _Whole:
    """The elements that one iteration touches, and those of them that it changes."""

    touched: isl.UnionSet
    changed: isl.UnionSet

    def meets(self, other: _Whole) -> bool:
        pairs = (self.changed, other.touched), (self.touched, other.changed)
        return not all(a.intersect(b).is_empty() for a, b in pairs)


class _Elements:
    """``moving``: names whose value is not the same in the whole iteration."""

    def __init__(self, chain: Sequence[Loop], given: Expr | None, moving: Collection[str]) -> None:
        self._moving = moving
        bounds = [(name(f.var), text(f.lo), text(f.hi)) for f in chain]
        self._holds = [f"{lo} <= {var}" for var, lo, _ in bounds if lo is not None]
        self._holds += [f"{var} < {hi}" for var, _, hi in bounds if hi is not None]
        self._holds += self._asked(() if given is None else (given,))
        self._named = {f.var for f in chain} | names_in((tuple((f.lo, f.hi) for f in chain), given))

    def of(self, touches: Sequence[_Touch]) -> _Whole:
        found: dict[tuple[Load, tuple[Expr, ...]], bool] = {}
        for t in touches:
            if isinstance(t.at, Load):
                found[t.at, t.given] = found.get((t.at, t.given), False) or t.writes
        return _Whole(self._set(found), self._set([key for key, writes in found.items() if writes]))

    def _set(self, elements: Collection[tuple[Load, tuple[Expr, ...]]]) -> isl.UnionSet:
        arrays = {name(at.array) for at, _ in elements}
        named = self._named | names_in(tuple((at.index, given) for at, given in elements))
        names = sorted({name(n) for n in named} - arrays)
        some = "; ".join(
            self._element(at, given, "e" * (1 + max(map(len, names), default=0))) for at, given in elements
        )
        return isl.UnionSet(f"[{', '.join(names)}] -> {{ {some} }}")

    def _element(self, at: Load, given: Sequence[Expr], free: str) -> str:
        """``free``: what no name begins with."""
        places = [f"{free}{d}" for d in range(len(at.index))]
        index = [None if names_in(e) & set(self._moving) else text(e) for e in at.index]
        where = [f"{p} = {e}" for p, e in zip(places, index, strict=True) if e is not None]
        asked = " and ".join([*where, *self._holds, *self._asked(given)]) or "true"
        return f"{name(at.array)}[{', '.join(places)}] : {asked}"

    def _asked(self, given: Sequence[Expr]) -> list[str]:
        """Conditions that hold in the whole iteration if they do at any time in it."""
        return [f"({condition(e)[0]})" for e in given if not names_in(e) & set(self._moving)]
