"""Lower bounds on the work of every version of a codelet, however it is compiled.

    bytes   each element that is read or written, once
    flops   an operation once for all iterations of the loops in which its operands do not change,
            once for all its neighbours (c * A[i - 1] is c * A[i] of the iteration before), never if only a
            later value counts, nor if it is not known to be reached; half of a square whose other half is the
            same, and factors of a sum as a ``factor`` of its own, where that is less

A rate computed from these that is above the device's peak is an error: see ``runtime.roofline``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from looptune.ir import operation_count
from looptune.ir.def_use import is_dead_store, names_in, referenced_names, written_names
from looptune.ir.nodes import Array, Assign, Binary, Cast, Codelet, Const, If, Load, Loop, Node, Select, Stmt, While
from looptune.ir.rewrite import rewrite, rewrite_stmts, walk
from looptune.ir.simplify import is_integer
from looptune.poly.footprint import elements
from looptune.runtime.roofline import MinimumWork
from looptune.schedule.directives.base import statement_names
from looptune.schedule.directives.fold import triangular_half
from looptune.schedule.directives.reduction_simplification import simplify_reductions

if TYPE_CHECKING:
    from looptune.poly.scop import Scop

_ONE = Const(1.0, "float32")
_PLACE = Assign(Load("", (), "float32"), Binary("+", _ONE, _ONE))
"""Where an operation stands in a nest that is only counted."""


def minimum_work(model: Scop, sizes: Mapping[str, int]) -> MinimumWork:
    """Return the minimum work of the analysed codelet; ``sizes`` are its integer parameters."""
    codelet = model.codelet
    itemsize = {p.name: np.dtype(p.dtype).itemsize for p in codelet.params if isinstance(p, Array)}
    touched = sum(count * itemsize[name] for name, count in elements(model, sizes).items())
    operations = min(least_flops(body, sizes) for body in (codelet.body, _regrouped(codelet.body)))
    return MinimumWork(operations, touched, _dtype(codelet))


def _regrouped(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """With the sums made once that ``fold`` and ``factor`` may make so, each beginning with its first term.

    One addition less, which is that to the element.
    """
    halved = rewrite_stmts(lambda s: triangular_half(s) if isinstance(s, Loop) else None, body)
    made, held, _ = simplify_reductions(halved, statement_names(halved), referenced_names(halved))
    own = {local.name for local in held}

    def begun(s: Stmt) -> Stmt | None:
        match s:
            case Assign(Load(), Binary("+", _, total)) if names_in(total) & own:
                return replace(s, value=total)
        return None

    return rewrite_stmts(begun, made)


def least_flops(body: Sequence[Stmt], sizes: Mapping[str, int]) -> int:
    """Return the number of operations that every version has to execute, or 0 if it is unknown.

    >>> from looptune.ir.nodes import Var
    >>> i, s, x, y = Var("i"), Var("s", "float32"), Var("x", "float32"), Var("y", "float32")
    >>> least_flops((Loop("i", Const(0), Const(10), (Assign(s, Binary("+", s, Binary("*", x, y))),)),), {})
    11
    """
    nests = Counter(nest for nest, _ in set(_operations(tuple(body), ())))
    found = ((times, operation_count.count((nest,), sizes)) for nest, times in nests.items())
    return sum(times * trips for times, trips in found if trips is not None)


_Around = tuple[Loop | If, ...]
"""Loops and conditions around a statement, outermost first; of an ``If`` the other branch is empty."""


def _operations(body: tuple[Stmt, ...], around: _Around) -> Iterator[tuple[Stmt, Node]]:
    """Every operation, as what it is but for constants in subscripts, with the nest in which it cannot be saved."""
    for stmt in body:
        match stmt:
            case Assign(_, value) if not any(isinstance(f, Loop) and is_dead_store(stmt, f) for f in around):
                surely = walk(rewrite(_decided, value))
                yield from (
                    (_nest(n, around), rewrite(_anywhere, n)) for n in surely if operation_count.is_operation(n)
                )
            case Loop(body=inner):
                yield from _operations(inner, (*around, stmt))
            case If(cond, then, other):
                yield from _operations(then, (*around, If(cond, then)))
                yield from _operations(other, (*around, If(cond, (), other)))
            case While():
                continue


def _decided(n: Node) -> Node | None:
    """Without what may not be evaluated."""
    match n:
        case Select(cond):
            return Select(cond, _ONE, _ONE)
        case Binary("&&" | "||", lhs):
            return lhs
    return None


def _nest(operation: Node, around: _Around) -> Stmt:
    """``1 + 1`` in the loops that it changes with; of the others the first iteration."""
    made: Stmt = _PLACE
    for outer in reversed(around):
        match outer:
            case Loop(var, lo, _, body, step):
                changes = names_in(operation) & ({var} | written_names(body))
                hi = outer.hi if changes else Binary("+", lo, Const(step, outer.dtype))
                made = Loop(var, lo, hi, (made,), step, dtype=outer.dtype)
            case If(cond, then):
                made = If(cond, (made,)) if then else If(cond, (), (made,))
    return made


def _anywhere(n: Node) -> Node | None:
    match n:
        case Load(index=index) if index:
            return replace(n, index=tuple(rewrite(_zero, e) for e in index))
    return None


def _zero(n: Node) -> Node | None:
    match n:
        case Binary("+" | "-", e, Const()) | Binary("+", Const(), e):
            return e
        case Const(value, dtype) if value and is_integer(dtype):
            return replace(n, value=0)
    return None


def _dtype(codelet: Codelet) -> Literal["float32", "float64"]:
    declared = {p.dtype for p in (*codelet.params, *codelet.locals)}
    used = {n.dtype for n in walk(codelet.body) if isinstance(n, (Const, Cast))}
    return "float32" if "float32" in declared | used else "float64"
