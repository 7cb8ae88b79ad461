"""What holds of any tree, whoever made it: checked after every rewriting, so that a broken pass is caught at once."""

from __future__ import annotations

from looptune.ir import Array, Assign, Bin, Codelet, Expr, If, Load, Loop, Node, Scalar, Select, Stmt, Var, While
from looptune.rewrite import walk
from looptune.simplify import is_integer

_SHIFTS = ("<<", ">>")


def verify(codelet: Codelet) -> Codelet:
    """The codelet itself; an assertion with the broken invariant otherwise."""
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
                _exprs((target, value, stmt.at), scope, ranks)
            case Loop(var, lo, hi, body, step):
                assert step >= 1, f"loop {var} has step {step}"
                assert var not in scope, f"loop {var} rebinds a name bound around it"
                assert lo.dtype == hi.dtype == stmt.dtype, f"loop {var}: bounds are {lo.dtype} and {hi.dtype}"
                _exprs((lo, hi), scope, ranks)
                _block(body, scope | {var: stmt.dtype}, ranks)
            case If(cond, then, other):
                _exprs((cond,), scope, ranks)
                _block(then, scope, ranks)
                _block(other, scope, ranks)
            case While(cond, body):
                _exprs((cond,), scope, ranks)
                _block(body, scope, ranks)


def _exprs(roots: tuple[object, ...], scope: dict[str, str], ranks: dict[str, tuple[int, str]]) -> None:
    for node in walk(roots):
        _expr(node, scope, ranks)


def _expr(node: Node | Expr, scope: dict[str, str], ranks: dict[str, tuple[int, str]]) -> None:
    match node:
        case Var(name, dtype):
            assert scope.get(name) == dtype, f"{name} is {scope.get(name, 'not in scope')}, used as {dtype}"
        case Load(array, index, dtype):
            assert ranks.get(array) == (len(index), dtype), f"{array} is {ranks.get(array)}, used as {node}"
            assert all(is_integer(i.dtype) for i in index), f"{node} has an index that is no integer"
        case Bin(op, lhs, rhs) if op not in _SHIFTS and op not in ("&&", "||"):
            assert lhs.dtype == rhs.dtype, f"{op} has operands of {lhs.dtype} and {rhs.dtype}"
        case Select(_, then, other):
            assert then.dtype == other.dtype, f"?: has operands of {then.dtype} and {other.dtype}"
