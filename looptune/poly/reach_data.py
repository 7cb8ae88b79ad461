"""The loops of a codelet as data for ``runtime.array_reach``: bounds, conditions and the accesses that surely happen.

Whatever depends on data is left out: accesses under a condition on array elements, in a ``while``, or on one side of
``?:``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from looptune.ir.def_use import names_in, written_names
from looptune.ir.nodes import (
    Array,
    Assign,
    Binary,
    Cast,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Loop,
    Node,
    Select,
    Stmt,
    Unary,
    Var,
)
from looptune.ir.rewrite import substitute, walk
from looptune.ir.simplify import is_integer
from looptune.poly.domain import scan

Data = Any
"""Tuples, strings and integers."""


def access_records(codelet: Codelet) -> tuple[Data, ...]:
    """Return the loops, conditions and accesses of a codelet as nested tuples.

    These are ("for", variable, lo, hi, step, body), ("if", condition, then, else) and ("at", array parameter, place).
    """
    nest = scan(codelet)
    shapes = {p.name: p.shape for p in codelet.params if isinstance(p, Array)}
    changing = frozenset(written_names(codelet.body)) - nest.known.keys()
    return tuple(_Reader(shapes, nest.known, changing).block(codelet.body))


def always_accessed(codelet: Codelet, found: Sequence[Data]) -> set[str]:
    """Return the arrays all of whose accesses are in ``found``."""
    made = Counter(n.array for n in walk(codelet.body) if isinstance(n, Load))
    kept = Counter(_arrays(found))
    return {array for array, count in made.items() if kept[array] >= count}


def _arrays(found: Sequence[Data]) -> Iterator[str]:
    for kind, *parts in found:
        if kind == "at":
            yield parts[0]
        for inner in parts[-2:] if kind == "if" else parts[-1:] if kind == "for" else ():
            yield from _arrays(inner)


@dataclass(frozen=True, slots=True)
class _Reader:
    shapes: Mapping[str, tuple[Expr | None, ...]]
    known: Mapping[str, Expr]
    changing: frozenset[str]

    def block(self, body: Sequence[Stmt]) -> Iterator[Data]:
        for stmt in body:
            yield from self.statement(stmt)

    def statement(self, stmt: Stmt) -> Iterator[Data]:
        match stmt:
            case Assign(target, value):
                yield from self.places(value)
                yield from self.places(target)
            case Loop(var, lo, hi, body, step):
                yield from self.places(lo)
                yield from self.places(hi)
                ends, inner = (self.data(lo), self.data(hi)), tuple(self.block(body))
                if None not in ends and inner:
                    yield ("for", var, *ends, step, inner)
            case If(cond, then, other):
                yield from self.places(cond)
                asked = self.data(cond)
                branches = (tuple(self.block(then)), tuple(self.block(other)))
                if asked is not None and any(branches):
                    yield ("if", asked, *branches)

    def places(self, e: Node) -> Iterator[Data]:
        """Yield the elements that every evaluation of the expression reads."""
        match e:
            case Select(cond):
                yield from self.places(cond)
            case Binary("&&" | "||", lhs, _):
                yield from self.places(lhs)
            case Binary(_, lhs, rhs):
                yield from self.places(lhs)
                yield from self.places(rhs)
            case Unary(_, arg) | Cast(_, arg):
                yield from self.places(arg)
            case Load(array, index):
                for subscript in index:
                    yield from self.places(subscript)
                place = self.place(index, self.shapes[array]) if array in self.shapes else None
                if place is not None:
                    yield ("at", array, place)

    def place(self, index: tuple[Expr, ...], shape: tuple[Expr | None, ...]) -> Data | None:
        """Return counted in elements, which has no type to fit."""
        at: Data = 0
        for subscript, extent in zip(index, shape, strict=True):
            e, n = self.data(subscript), 1 if extent is None else self.data(extent)
            if e is None or n is None:
                return None
            at = e if at == 0 else ("+", "", ("*", "", at, n), e)
        return at

    def data(self, e: Expr) -> Data | None:
        """Return an integer expression, or None where it is made of more than parameters and loop variables."""
        whole = substitute(e, self.known)
        return None if names_in(whole) & self.changing else _data(whole)


def _data(e: Expr) -> Data | None:
    if e.dtype != "bool" and not is_integer(e.dtype):
        return None
    dtype = "" if e.dtype == "bool" else e.dtype
    match e:
        case Const(value):
            return int(value)
        case Var(name):
            return name
        case Cast(_, arg) if e.dtype != "bool":
            return _of("cast", dtype, arg)
        case Unary(op, arg):
            return _of(op, dtype, arg)
        case Binary(op, lhs, rhs):
            return _of(op, dtype, lhs, rhs)
        case Select(cond, then, other):
            return _of("?:", dtype, cond, then, other)
    return None


def _of(op: str, dtype: str, *args: Expr) -> Data | None:
    made = tuple(_data(a) for a in args)
    return None if None in made else (op, dtype, *made)
