"""Planted bugs: every way to change one thing in a finished tree, as a pass that is slightly wrong would.

bounds      a loop's start or end one more or one less, its step one more
min, max    one of the two alone                                  the last strip of a tile, a ragged end
blocks      a statement gone, twice, or after the next one        a lost copy, a lost launch, a wrong order
guards      an ``if`` gone, never taken, of the other branch, or negated; its comparison off by one, or of what the next
            iteration would compare
copies      an assignment that runs the next iteration instead: target, value and ``at`` alike
threads     a sequential loop run by threads, or one that reduces by threads that know nothing of it
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Binary, Const, Expr, If, Loop, Stmt, Unary, Var, While
from looptune.ir.rewrite import substitute, walk
from looptune.ir.simplify import add, sub

_NEAR = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "<=", "!=": "=="}


@dataclass(frozen=True)
class Mutant:
    """``what`` was done, and the whole body it was done in."""

    what: str
    body: tuple[Stmt, ...]


def mutants(body: tuple[Stmt, ...]) -> Iterator[Mutant]:
    """All of them, in the order of the text."""
    for k, stmt in enumerate(body):
        before, after = body[:k], body[k + 1 :]
        yield Mutant(f"{_said(stmt)} gone", (*before, *after))
        yield Mutant(f"{_said(stmt)} twice", (*before, stmt, stmt, *after))
        if after:
            yield Mutant(f"{_said(stmt)} after {_said(after[0])}", (*before, after[0], stmt, *after[1:]))
        for what, changed in _changed(stmt):
            yield Mutant(what, (*before, *changed, *after))


def _changed(stmt: Stmt) -> Iterator[tuple[str, tuple[Stmt, ...]]]:
    match stmt:
        case Assign():
            yield from _moved(stmt)
        case Loop(var, lo, hi, inner, step, mode):
            one = Const(1, stmt.dtype)
            yield f"loop {var} starts one later", (replace(stmt, lo=add(lo, one)),)
            yield f"loop {var} starts one sooner", (replace(stmt, lo=sub(lo, one)),)
            yield f"loop {var} ends one later", (replace(stmt, hi=add(hi, one)),)
            yield f"loop {var} ends one sooner", (replace(stmt, hi=sub(hi, one)),)
            yield f"loop {var} steps one more", (replace(stmt, step=step + 1),)
            for name, bound in (("lo", lo), ("hi", hi)):
                for e in _alone(bound):
                    yield f"loop {var} with half of a min or max", (replace(stmt, **{name: e}),)
            if stmt.reductions:
                yield f"loop {var} reducing unawares", (replace(stmt, reductions=()),)
            if mode not in ("parallel", "thread"):
                yield f"loop {var} run by threads", (replace(stmt, mode="parallel"),)
            for m in mutants(inner):
                yield m.what, (replace(stmt, body=m.body),)
        case While(_, inner):
            for m in mutants(inner):
                yield m.what, (replace(stmt, body=m.body),)
        case If(cond, then, other):
            yield "a guard gone", then
            yield "a branch never taken", other
            yield "a condition negated", (replace(stmt, cond=Unary("!", cond)),)
            for var in sorted(v.name for v in {n for n in walk(cond) if isinstance(n, Var)} if v.dtype == "int32"):
                further = substitute(cond, {var: add(Var(var), Const(1))})
                yield f"a condition of {var} + 1", (replace(stmt, cond=further),)
            if other:
                yield "branches swapped", (replace(stmt, then=other, other=then),)
            match cond:
                case Binary(op, lhs, rhs) if op in _NEAR:
                    yield "a comparison off by one", (replace(stmt, cond=Binary(_NEAR[op], lhs, rhs)),)
            for m in mutants(then):
                yield m.what, (replace(stmt, then=m.body),)
            for m in mutants(other):
                yield m.what, (replace(stmt, other=m.body),)


def _moved(stmt: Assign) -> Iterator[tuple[str, tuple[Stmt, ...]]]:
    """The copy of the iteration one further, in each variable that says which it is."""
    for var in sorted(names_in(stmt.instance)):
        further = {var: add(Var(var), Const(1))}
        target, value = substitute((stmt.target, stmt.value), further)
        at = substitute(stmt.instance, further)
        yield f"{_said(stmt)} of {var} + 1", (replace(stmt, target=target, value=value, instance=at),)


def _alone(e: Expr) -> Iterator[Expr]:
    match e:
        case Binary("min" | "max", lhs, rhs):
            yield lhs
            yield rhs


def _said(stmt: Stmt) -> str:
    match stmt:
        case Assign(name=name):
            return f"a copy of {name}" if name else "a load or store"
        case Loop(var):
            return f"loop {var}"
        case While():
            return "a while"
        case If():
            return "an if"
