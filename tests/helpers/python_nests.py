"""Loop nests from short text, without the C front end: Python's own syntax, read as C.

for i in range(1, n):           half open, with an optional step
    A[i, j] += s                arrays are float64 unless ``dtypes`` says otherwise
    t = A[i][0] if i < n else 0.0
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

from looptune.core.source import Span
from looptune.ir.c_printer import arithmetic_type
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
    Local,
    Loop,
    Scalar,
    Select,
    Stmt,
    Unary,
    Var,
    While,
)
from looptune.ir.verify import verify

_OPS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "/", ast.Mod: "%", ast.LShift: "<<",
    ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "&&", ast.Or: "||", ast.Not: "!", ast.USub: "-",
}  # fmt: skip


def nest(
    code: str,
    arrays: Mapping[str, tuple[str | int | None, ...]],
    locals_: Mapping[str, tuple[str | int, ...]] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> Codelet:
    """The codelet of ``code``. Names that are neither arrays, locals nor loops become int parameters."""
    code = textwrap.dedent(code).strip("\n")
    tree = ast.parse(code)
    reader = _Reader(code.splitlines(), dict(dtypes or {}), {*arrays, *(locals_ or {})})
    body = reader.block(tree.body, ())
    shapes = {a: tuple(None if e is None else reader.extent(e) for e in shape) for a, shape in arrays.items()}
    own = tuple(Local(v, reader.dtype(v), tuple(map(reader.extent, shape))) for v, shape in (locals_ or {}).items())
    params = tuple(Array(a, reader.dtype(a), shape) for a, shape in shapes.items())
    scalars = tuple(Scalar(n, reader.dtypes.get(n, "int32")) for n in reader.scalars)
    return verify(Codelet("test", (*params, *scalars), own, body))


@dataclass
class _Reader:
    lines: list[str]
    dtypes: dict[str, str]
    named: set[str]
    scalars: dict[str, None] = field(default_factory=dict)
    loops: int = 0
    statements: int = 0

    def dtype(self, name: str) -> str:
        return self.dtypes.get(name, "float64")

    def extent(self, e: str | int) -> Expr:
        return self.expr(ast.parse(str(e), mode="eval").body, ())

    def span(self, node: ast.AST) -> Span:
        line, col, end = node.lineno, node.col_offset, node.end_col_offset
        return Span("nest.c", line, col + 1, end - col, self.lines[line - 1] if line <= len(self.lines) else "")

    def block(self, body: list[ast.stmt], around: tuple[str, ...]) -> tuple[Stmt, ...]:
        return tuple(self.stmt(s, around) for s in body)

    def stmt(self, s: ast.stmt, around: tuple[str, ...]) -> Stmt:
        match s:
            case ast.For(ast.Name(var), ast.Call(_, args), body):
                bounds = [self.expr(a, around) for a in args]
                lo, hi = (Const(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
                step = bounds[2].value if len(bounds) == 3 else 1
                self.loops += 1
                number = self.loops
                return Loop(var, lo, hi, self.block(body, (*around, var)), step, number=number, span=self.span(s))
            case ast.While(cond, body):
                self.loops += 1
                number = self.loops
                return While(self.expr(cond, around), self.block(body, around), number=number, span=self.span(s))
            case ast.If(cond, then, other):
                test = self.expr(cond, around)
                return If(test, self.block(then, around), self.block(other, around), span=self.span(s))
            case ast.Assign([target], value):
                return self.assign(s, target, self.expr(value, around), around)
            case ast.AugAssign(target, op, value):
                own = self.expr(target, around)
                return self.assign(s, target, self.binary(_OPS[type(op)], own, self.expr(value, around), s), around)
        raise AssertionError(ast.dump(s))

    def assign(self, s: ast.stmt, target: ast.expr, value: Expr, around: tuple[str, ...]) -> Assign:
        place = self.expr(target, around)
        assert isinstance(place, Var | Load)
        value = value if value.dtype == place.dtype else Cast(place.dtype, value)
        self.statements += 1
        at = tuple(Var(v) for v in around)
        return Assign(place, value, name=f"S{self.statements - 1}", instance=at, span=self.span(s))

    def binary(self, op: str, a: Expr, b: Expr, at: ast.AST) -> Expr:
        dtype = arithmetic_type(a.dtype, b.dtype)
        a, b = (e if e.dtype == dtype else Cast(dtype, e) for e in (a, b))
        return Binary(op, a, b, span=self.span(at))

    def expr(self, e: ast.expr, around: tuple[str, ...]) -> Expr:
        match e:
            case ast.Constant(value):
                return Const(value, "int32" if isinstance(value, int) else "float64", span=self.span(e))
            case ast.Name(name):
                if name not in self.named and name not in around:
                    self.scalars[name] = None
                known = self.named if name not in around else ()
                dtype = self.dtype(name) if name in known else self.dtypes.get(name, "int32")
                return Var(name, dtype, span=self.span(e))
            case ast.Subscript(inner, index):
                indices = [self.expr(i, around) for i in (index.elts if isinstance(index, ast.Tuple) else [index])]
                match inner:
                    case ast.Name(array):
                        return Load(array, tuple(indices), self.dtype(array), span=self.span(e))
                row = self.expr(inner, around)
                assert isinstance(row, Load)
                return Load(row.array, (*row.index, *indices), row.dtype, span=self.span(e))
            case ast.BinOp(a, op, b) | ast.Compare(a, [op], [b]) | ast.BoolOp(op, [a, b]):
                return self.binary(_OPS[type(op)], self.expr(a, around), self.expr(b, around), e)
            case ast.UnaryOp(op, arg):
                return Unary(_OPS[type(op)], self.expr(arg, around), span=self.span(e))
            case ast.IfExp(cond, then, other):
                pair = self.binary("+", self.expr(then, around), self.expr(other, around), e)
                assert isinstance(pair, Binary)
                return Select(self.expr(cond, around), pair.lhs, pair.rhs, span=self.span(e))
            case ast.Call(ast.Name("min" | "max" as op), [a, b]):
                return self.binary(op, self.expr(a, around), self.expr(b, around), e)
            case ast.Call(ast.Name("double" | "float" as to), [arg]):
                return Cast("float64" if to == "double" else "float32", self.expr(arg, around), span=self.span(e))
            case ast.Call(ast.Name(fn), args):
                return Call(fn, tuple(self.expr(a, around) for a in args), "float64", span=self.span(e))
        raise AssertionError(ast.dump(e))
