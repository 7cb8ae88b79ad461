"""The invariants of every tree, checked after each rewriting, so that a broken pass is found at once."""

from __future__ import annotations

from collections.abc import Iterable

from looptune.ir.def_use import assigned_targets
from looptune.ir.nodes import (
    Array,
    Assign,
    Binary,
    Call,
    Cast,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Loop,
    Scalar,
    Select,
    Stmt,
    Unary,
    Var,
    While,
)
from looptune.ir.simplify import is_integer

_MIXED = frozenset({"<<", ">>", "&&", "||"})
"""Operators whose operands may be of different types."""


def verify(codelet: Codelet) -> Codelet:
    """Return the codelet itself. Raises AssertionError, with the invariant, if it violates one."""
    scope = {p.name: p.dtype for p in codelet.params if isinstance(p, Scalar)}
    scope |= {v.name: v.dtype for v in codelet.locals if not v.shape}
    ranks = {p.name: (len(p.shape), p.dtype) for p in codelet.params if isinstance(p, Array)}
    ranks |= {v.name: (len(v.shape), v.dtype) for v in codelet.locals if v.shape}
    count = len(codelet.params) + len(codelet.locals)
    assert len(scope) + len(ranks) == count, f"{codelet.name} declares a name twice"
    _block(codelet.body, scope, ranks)
    return codelet


def _block(stmts: tuple[Stmt, ...], scope: dict[str, str], ranks: dict[str, tuple[int, str]]) -> None:
    for stmt in stmts:
        match stmt:
            case Assign(target, value):
                assert target.dtype == value.dtype, f"{target} is assigned a {value.dtype}"
                _exprs((target, value, *stmt.instance), scope, ranks)
            case Loop(var, lo, hi, body, step):
                assert step >= 1, f"loop {var} has step {step}"
                assert var not in scope, f"loop {var} rebinds a name bound around it"
                assert all(name in ranks for name in stmt.private_arrays), (
                    f"loop {var} owns {', '.join(stmt.private_arrays)}, no arrays"
                )
                assert lo.dtype == hi.dtype == stmt.dtype, f"loop {var}: bounds are {lo.dtype} and {hi.dtype}"
                _exprs((lo, hi), scope, ranks)
                _block(body, scope | {var: stmt.dtype}, ranks)
                if stmt.reductions:
                    stale = {r.target for r in stmt.reductions} - assigned_targets(body)
                    assert not stale, f"loop {var} reduces {stale}, which it does not assign"
            case If(cond, then, other):
                _exprs((cond,), scope, ranks)
                _block(then, scope, ranks)
                _block(other, scope, ranks)
            case While(cond, body):
                _exprs((cond,), scope, ranks)
                _block(body, scope, ranks)


def _exprs(roots: Iterable[Expr], scope: dict[str, str], ranks: dict[str, tuple[int, str]]) -> None:
    for e in roots:
        match e:
            case Const():
                pass
            case Var(name, dtype):
                assert scope.get(name) == dtype, f"{name} is {scope.get(name, 'not in scope')}, used as {dtype}"
            case Binary(op, lhs, rhs):
                alike = op in _MIXED or lhs.dtype == rhs.dtype
                assert alike, f"{op} has operands of {lhs.dtype} and {rhs.dtype}"
                _exprs((lhs, rhs), scope, ranks)
            case Load(array, index, dtype):
                assert ranks.get(array) == (len(index), dtype), f"{array} is {ranks.get(array)}, used as {e}"
                assert all(is_integer(i.dtype) for i in index), f"{e} has an index that is not an integer"
                _exprs(index, scope, ranks)
            case Select(cond, then, other):
                assert then.dtype == other.dtype, f"?: has operands of {then.dtype} and {other.dtype}"
                _exprs((cond, then, other), scope, ranks)
            case Unary(_, arg) | Cast(_, arg):
                _exprs((arg,), scope, ranks)
            case Call(_, args):
                _exprs(args, scope, ranks)
