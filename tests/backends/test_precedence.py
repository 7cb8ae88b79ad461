"""Generated expressions mean what their trees mean: parentheses follow from precedence, never from names."""

from __future__ import annotations

import ast
import operator
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import looptune
from looptune.backends.numba_cpu.functions import FunctionWriter
from looptune.backends.numba_cuda.writer import CudaWriter
from looptune.frontend import load
from looptune.ir.c_printer import expression_text
from looptune.ir.interpreter import run
from looptune.ir.nodes import Assign, Binary, Cast, Codelet, Const, Expr, Load, Local, Select, Unary, Var
from looptune.ir.simplify import truncdiv
from looptune.lower.pipeline import lower

STARTS = {"n / 2 - 1": 4, "c_lo / 2 + c_lo": 10, "2 * (n / 2 - c_lo) + 5": 1, "n - (n / 2 - 1)": 6, "c_lo - 1": 6}
"""The first iteration of a loop up to n = 10, where c_lo is 7."""


@pytest.mark.wide
def test_bounds_with_quotients_and_names_of_helpers() -> None:
    """Loops begin where C says, whatever a variable is called."""
    loops = "".join(
        f"  for (int i = {lo}; i < n; i++)\n    x[{k}][i - ({lo}) + {lo}] += 1;\n" for k, lo in enumerate(STARTS)
    )
    text = f"void bounds(int n, int c_lo, float x[{len(STARTS)}][n])\n{{\n{loops}}}\n".replace("c_lo", "c_div")
    x = np.zeros((len(STARTS), 10), np.float32)
    looptune.compile(text, target="numba-cpu")(10, 7, x)
    assert (x == [[float(i >= lo) for i in range(10)] for lo in STARTS.values()]).all()


NAMES = ("c_x", "c_div", "int64", "n")
OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.Lt: operator.lt, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip


def python(node: ast.expr, names: Mapping[str, int]) -> Any:
    """The value of an expression of a generated module, without wrapping; helpers divide as C does."""
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return names[name]
        case ast.UnaryOp(ast.USub(), arg):
            return -python(arg, names)
        case ast.UnaryOp(ast.Invert(), arg):
            return ~python(arg, names)
        case ast.UnaryOp(ast.Not(), arg):
            return not python(arg, names)
        case ast.BinOp(lhs, op, rhs):
            return OPERATORS[type(op)](python(lhs, names), python(rhs, names))
        case ast.Compare(lhs, [op], [rhs]):
            return OPERATORS[type(op)](python(lhs, names), python(rhs, names))
        case ast.IfExp(cond, then, other):
            return python(then if python(cond, names) else other, names)
        case ast.BoolOp(ast.And(), parts):
            return all(python(p, names) for p in parts)
        case ast.BoolOp(ast.Or(), parts):
            return any(python(p, names) for p in parts)
        case ast.Call(ast.Name(name), args):
            given = [python(a, names) for a in args]
            match name:
                case "c_div":
                    return truncdiv(*given)
                case "c_mod":
                    return given[0] - given[1] * truncdiv(*given)
                case "min" | "max":
                    return (min if name == "min" else max)(given)
            return int(given[0])
    raise AssertionError(ast.dump(node))


def trees(count: int, values: bool) -> Iterator[Expr]:
    """Random integer expressions that divide by no zero and shift by little; ``values``: with all operators."""
    rng = random.Random(count)
    ops = ("+", "-", "*", "/", "%", "min", "max", *(("&", "|", "^", "<<", ">>", "<", "==") if values else ()))

    def tree(depth: int) -> Expr:
        kind = rng.randrange(12) if depth else rng.randrange(2)
        match kind:
            case 0:
                return Const(rng.randint(-3, 9))
            case 1:
                return Var(rng.choice(NAMES))
            case 2:
                return Unary(rng.choice("-~!") if values else "-", tree(depth - 1))
            case 3:
                cond = Binary(rng.choice(["<", "==", "!="]), tree(depth - 1), tree(depth - 1))
                return Select(cond, tree(depth - 1), tree(depth - 1))
        op = rng.choice(ops)
        if op in ("/", "%"):
            return Binary(op, tree(depth - 1), rng.choice([Const(rng.choice([-3, -1, 2, 5])), Var("n"), Var("c_div")]))
        if op in ("<<", ">>"):
            return Binary(op, tree(depth - 1), Const(rng.randint(0, 2)))
        return Binary(op, tree(depth - 1), tree(depth - 1))

    yield from (tree(rng.randint(1, 3)) for _ in range(count))


WORTH = {"c_x": 7, "c_div": -3, "int64": 4, "n": 10}


def meaning(e: Expr) -> int:
    """What the interpreter makes of it."""
    out = {"x": np.zeros(1, np.int64)}
    body = (Assign(Load("x", (Const(0),), "int64"), Cast("int64", e)),)
    scalars = tuple(Local(n, "int32") for n in WORTH)
    sets = tuple(Assign(Var(n), Const(v)) for n, v in WORTH.items())
    run(Codelet("f", (), scalars, (*sets, *body)), out, {})
    return int(out["x"][0])


def python_names() -> dict[str, int]:
    return {"c_x": 7, "c_div_": -3, "int64_": 4, "n": 10}


@pytest.mark.wide
def test_python_has_the_structure_of_the_tree() -> None:
    """Values, bounds, conditions and places, parsed by Python, are what the interpreter computes."""
    made = lower(load("void f(int n, float x[n])\n{\n  for (int i = 0; i < n; i++)\n    x[i] = 1;\n}\n").codelet)
    writers = (FunctionWriter(made), CudaWriter(made, {"n"}))
    for e in trees(400, values=True):
        want = meaning(e)
        for writer in writers:
            for text in (writer.value(e), f"{writer.value(e, level=7)} * 1", f"0 - ({writer.condition(e)}) * -1"):
                got = python(ast.parse(text, mode="eval").body, python_names())
                assert got == (want if text[0] != "0" else bool(want)), f"{expression_text(e)} as {text}"
    for e in trees(300, values=False):
        for writer in writers:
            for level in range(8):
                inside = writer.bound(e, level)
                text = {5: f"{inside} - 3", 6: f"{inside} * 2", 7: f"-{inside}"}.get(level, inside)
                got = python(ast.parse(text, mode="eval").body, python_names())
                want = {5: meaning(e) - 3, 6: 2 * meaning(e), 7: -meaning(e)}.get(level, meaning(e))
                assert got == want, f"{expression_text(e)} as {text}"
        text = writers[1].index(e)
        assert python(ast.parse(text, mode="eval").body, python_names()) % 2**32 == meaning(e) % 2**32
