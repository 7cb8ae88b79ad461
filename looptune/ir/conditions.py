"""Simplify comparisons of integers, remove those that enclosing ones decide, and merge equal neighbours.

    if (4 * j + 3 >= 4 * i)               if (j >= i)
      if (4 * j + 1 >= 4 * i) S    ==>      S
      if (4 * j >= 4 * i + 1) T             if (j >= i + 1) T

Unrolling the border of a triangle makes many copies of conditions of which few differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import gcd

from looptune.ir.def_use import names_in, written_names
from looptune.ir.intervals import affine_terms, cannot_overflow
from looptune.ir.nodes import Binary, Const, Expr, If, Loop, Stmt, While
from looptune.ir.rewrite import has_load
from looptune.ir.simplify import add, mul


@dataclass(frozen=True, slots=True)
class _LinearInequality:
    """The sum of the terms is at least ``least``."""

    terms: frozenset[tuple[Expr, int]]
    least: int

    @property
    def negation(self) -> _LinearInequality:
        return _LinearInequality(frozenset((t, -k) for t, k in self.terms), 1 - self.least)


Facts = tuple[_LinearInequality, ...]


def simplify_conditions(body: tuple[Stmt, ...], facts: Facts = ()) -> tuple[Stmt, ...]:
    """Return the body with its conditions simplified; ``facts`` are the conditions that hold around it."""
    out: list[Stmt] = []
    for stmt in body:
        for done in _statement(stmt, facts):
            match out, done:
                case [*_, If(cond, first, ()) as before], If(asked, then, ()) if cond == asked and _stays(cond, first):
                    out[-1] = replace(before, then=(*first, *then))
                case _:
                    out.append(done)
        facts = _without(facts, written_names((stmt,)))
    return tuple(out)


def _stays(cond: Expr, body: tuple[Stmt, ...]) -> bool:
    return not has_load(cond) and not names_in(cond) & written_names(body)


def _statement(stmt: Stmt, facts: Facts) -> tuple[Stmt, ...]:
    match stmt:
        case Loop(body=body):
            return (replace(stmt, body=simplify_conditions(body, _without(facts, written_names(body) | {stmt.var}))),)
        case While(_, body):
            return (replace(stmt, body=simplify_conditions(body, _without(facts, written_names(body)))),)
        case If(cond, then, other):
            asked = _condition(cond, facts)
            match asked:
                case Const(value):
                    return simplify_conditions(then if value else other, facts)
            found = tuple(_facts(asked))
            not_so = (found[0].negation,) if len(found) == 1 and _fact(asked) is not None else ()
            yes, no = simplify_conditions(then, (*facts, *found)), simplify_conditions(other, (*facts, *not_so))
            return (replace(stmt, cond=asked, then=yes, other=no),)
    return (stmt,)


def _without(facts: Facts, changed: set[str]) -> Facts:
    return tuple(f for f in facts if not any(names_in(t) & changed for t, _ in f.terms))


def _condition(e: Expr, facts: Facts) -> Expr:
    match e:
        case Binary("&&", lhs, rhs):
            first = _condition(lhs, facts)
            then = _condition(rhs, (*facts, *_facts(first)))
            match first, then:
                case (Const(value), _):
                    return then if value else first
                case (_, Const(value)) if value:
                    return first
            return replace(e, lhs=first, rhs=then)
    fact = _fact(e)
    if fact is None:
        return e
    for known in facts:
        if known.terms == fact.terms and known.least >= fact.least:
            return Const(1, e.dtype)
        if known.terms == fact.negation.terms and known.least >= fact.negation.least:
            return Const(0, e.dtype)
    return _said(fact, e)


def _facts(e: Expr) -> Iterator[_LinearInequality]:
    """All that holds where the condition does."""
    match e:
        case Binary("&&", lhs, rhs):
            yield from (*_facts(lhs), *_facts(rhs))
        case _:
            fact = _fact(e)
            if fact is not None:
                yield fact


def _fact(e: Expr) -> _LinearInequality | None:
    """Return a comparison of sums of variables."""
    match e:
        case Binary(">=" | ">" | "<=" | "<" as op, lhs, rhs) if cannot_overflow(lhs) and cannot_overflow(rhs):
            more, less = (lhs, rhs) if op.startswith(">") else (rhs, lhs)
        case _:
            return None
    (p, c), (q, d) = affine_terms(more), affine_terms(less)
    terms: Mapping[Expr, int] = {t: k for t in (*p, *q) if (k := p.get(t, 0) - q.get(t, 0))}
    if not terms or has_load((*terms,)):
        return None
    least = d - c + (0 if op.endswith("=") else 1)
    common = gcd(*terms.values())
    return _LinearInequality(frozenset((t, k // common) for t, k in terms.items()), -(-least // common))


def _said(fact: _LinearInequality, e: Expr) -> Expr:
    """Return the comparison as it was written where it is in lowest terms already."""
    assert isinstance(e, Binary)
    (p, _), (q, _) = affine_terms(e.lhs), affine_terms(e.rhs)
    if gcd(*p.values(), *q.values()) == 1:
        return e
    left, right = (
        _sum((t, abs(k)) for t, k in sorted(fact.terms, key=lambda f: str(f[0])) if (k > 0) == positive)
        for positive in (True, False)
    )
    least, dtype = fact.least, e.lhs.dtype
    if left is None:
        assert right is not None, "a fact has a term"
        return replace(e, op="<=", lhs=right, rhs=Const(-least, dtype))
    if right is None:
        return replace(e, op=">=", lhs=left, rhs=Const(least, dtype))
    more, less = Const(max(-least, 0), dtype), Const(max(least, 0), dtype)
    return replace(e, op=">=", lhs=add(left, more), rhs=add(right, less))


def _sum(terms: Iterator[tuple[Expr, int]]) -> Expr | None:
    total: Expr | None = None
    for term, factor in terms:
        scaled = mul(Const(factor, term.dtype), term)
        total = scaled if total is None else add(total, scaled)
    return total
