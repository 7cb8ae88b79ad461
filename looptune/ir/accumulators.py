"""The local in which a lane of a team, or a block, accumulates its part of a sum, a product, a minimum or a maximum."""

from __future__ import annotations

import math
from dataclasses import dataclass

from looptune.ir.def_use import names_in, written_names
from looptune.ir.nodes import Assign, Binary, Call, Cast, Const, Expr, If, Load, Loop, Select, Stmt, Var
from looptune.ir.rewrite import walk, walk_stmts
from looptune.ir.simplify import is_integer, wrap

_BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


@dataclass(frozen=True, slots=True)
class Accumulator:
    """The local ``private`` in which a lane accumulates for ``target``; ``partner`` holds the value of another lane.

    ``ignores_nan``: the accumulation is ``fmin`` or ``fmax``, which ignore a NaN on either side. ``first``: a first
    value that replaces that of the target.
    """

    op: str
    target: Var | Load
    private: Var
    partner: Var
    ignores_nan: bool
    first: Const | None = None

    @property
    def identity(self) -> Const:
        """Return the identity of the operation: accumulating it changes nothing.

        >>> x = Var("x", "int32")
        >>> Accumulator("min", x, x, x, False).identity
        Const(value=2147483647, dtype='int32')
        """
        dtype = self.private.dtype
        match self.op:
            case "+" | "*":
                unit = int(self.op == "*")
                return Const(unit if is_integer(dtype) else float(unit), dtype)
            case "|" | "^":
                return Const(0, dtype)
            case "&":
                return Const(wrap(-1, dtype), dtype)
            case "min" | "max" if is_integer(dtype):
                most = 2 ** _BITS[dtype] - 1
                least = 0 if dtype.startswith("u") else -most - 1
                return Const(most if self.op == "min" else least, dtype)
        return Const(math.nan if self.ignores_nan else math.inf if self.op == "min" else -math.inf, dtype)

    @property
    def update(self) -> Stmt:
        """Return ``target op= private``, under the condition of ``if_nonempty``."""
        return self.if_nonempty(self.updated(self.target))

    @property
    def fetched(self) -> Stmt:
        """Return ``partner = target``, for ``updated``, under the condition of ``if_nonempty``."""
        return self.if_nonempty(Assign(self.partner, self.target))

    def updated(self, before: Expr) -> Assign:
        return Assign(self.target, self.combine(before if self.first is None else self.first, self.private))

    def if_nonempty(self, stmt: Stmt) -> Stmt:
        """Return the statement under the condition that something was accumulated, unless the target surely exists.

        An element into which nothing is accumulated may be outside of its array.
        """
        if isinstance(self.target, Var) or self.first is not None:
            return stmt
        nothing = self.identity
        is_nan = nothing.value != nothing.value
        some = Binary("==", self.private, self.private) if is_nan else Binary("!=", self.private, nothing)
        return If(some, (stmt,))

    def combine(self, a: Expr, b: Expr) -> Expr:
        """Return ``a op b``; a minimum or maximum is ``a`` if ``b`` is a NaN, as for the terms."""
        match self.op:
            case "&" | "|" if a.dtype == "bool":
                return Cast("bool", Binary(self.op, Cast("int32", a), Cast("int32", b)))
            case "+" | "*" | "&" | "|" | "^":
                return Binary(self.op, a, b)
        if self.ignores_nan:
            return Call(f"f{self.op}", (a, b), a.dtype)
        return Select(Binary("<" if self.op == "min" else ">", b, a), b, a)


def ignores_nan(loop: Loop, target: Var | Load) -> bool:
    """Return whether every accumulation into ``target`` is a call of ``fmin`` or ``fmax``."""
    values = [n.value for n in walk_stmts(loop.body) if isinstance(n, Assign) and n.target == target]
    calls = [[n for n in walk(v) if isinstance(n, Call) and any(x == target for x in walk(n.args))] for v in values]
    return all(calls)


def is_shareable(loop: Loop) -> bool:
    """Tell whether OpenMP can share out a loop: a parallel one with reductions that OpenMP has, into fixed places."""
    changing = {loop.var} | written_names(loop.body) | {f.var for f in walk(loop.body) if isinstance(f, Loop)}
    places = (r.target for r in loop.reductions if isinstance(r.target, Load))
    # fmin passes over NaN, OpenMP's min does not.
    odd = any(r.op in ("min", "max") and ignores_nan(loop, r.target) for r in loop.reductions)
    return loop.mode == "parallel" and not odd and not any(names_in(t.index) & changing for t in places)
