"""What the IR means: run it on NumPy arrays, one statement at a time. Slow, and the reference.

Integers are C's: they wrap in their dtype, ``/`` and ``%`` truncate. Floats round to their dtype after every operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from looptune.ir import (
    Assign,
    Bin,
    Call,
    Cast,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Local,
    Loop,
    Select,
    Stmt,
    Un,
    Var,
    While,
)
from looptune.simplify import evaluate, is_integer, wrap

Trace = Callable[[str, tuple[int, ...]], None]

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sqrt": np.sqrt, "pow": np.power, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "fabs": np.abs, "abs": np.abs, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": lambda x: np.copysign(np.trunc(x) + np.copysign(type(x)(abs(x - np.trunc(x)) >= 0.5), x), x),
    "fmin": np.fmin, "fmax": np.fmax,
    "fmod": np.fmod, "hypot": np.hypot, "cbrt": np.cbrt, "copysign": np.copysign,
    "fma": lambda a, b, c: type(a)(math.fma(a, b, c)) if hasattr(math, "fma") else a * b + c,
}  # fmt: skip


class _Machine:
    """The variables of one run; ``where`` holds loop variables and scalars, arrays are the caller's."""

    def __init__(self, arrays: Mapping[str, np.ndarray], scalars: Mapping[str, Any], trace: Trace | None) -> None:
        self.arrays = dict(arrays)
        self.scalars = dict(scalars)
        self.trace = trace

    def run(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.step(stmt)

    def step(self, stmt: Stmt) -> None:
        match stmt:
            case Assign(target, value):
                if self.trace is not None:
                    self.trace(stmt.name, tuple(int(self.value(e)) for e in stmt.at))
                self.store(target, self.value(value))
            case Loop(var, lo, hi, body, step):
                for i in range(int(self.value(lo)), int(self.value(hi)), step):
                    self.scalars[var] = i
                    self.run(body)
            case If(cond, then, other):
                self.run(then if self.value(cond) else other)
            case While(cond, body):
                while self.value(cond):
                    self.run(body)

    def store(self, target: Var | Load, value: Any) -> None:
        match target:
            case Var(name):
                self.scalars[name] = value
            case Load(array, index):
                self.arrays[array][self.place(array, index)] = value

    def place(self, array: str, index: tuple[Expr, ...]) -> tuple[int, ...]:
        where = tuple(int(self.value(e)) for e in index)
        shape = self.arrays[array].shape
        inside = len(where) == len(shape) and all(0 <= i < n for i, n in zip(where, shape, strict=True))
        assert inside, f"{array}{list(where)} is outside its shape {shape}"
        return where

    def value(self, e: Expr) -> Any:
        match e:
            case Const(value, dtype):
                return value if is_integer(dtype) else np.dtype(dtype).type(value)
            case Var(name):
                return self.scalars[name]
            case Load(array, index, dtype):
                value = self.arrays[array][self.place(array, index)]
                return int(value) if is_integer(dtype) else value
            case Bin(op, lhs, rhs):
                return self.binary(op, lhs, rhs)
            case Un(op, arg):
                return self.unary(op, arg)
            case Call(fn, args, dtype):
                value = FUNCTIONS[fn](*(self.value(a) for a in args))
                return int(value) if is_integer(dtype) else np.dtype(dtype).type(value)
            case Select(cond, then, other):
                return self.value(then if self.value(cond) else other)
            case Cast(dtype, arg):
                return convert(self.value(arg), dtype)

    def binary(self, op: str, lhs: Expr, rhs: Expr) -> Any:
        if op == "&&":
            return int(bool(self.value(lhs)) and bool(self.value(rhs)))
        if op == "||":
            return int(bool(self.value(lhs)) or bool(self.value(rhs)))
        a, b = self.value(lhs), self.value(rhs)
        if is_integer(lhs.dtype):
            value = evaluate(op, a, b)
            assert value is not None, f"{a} {op} {b} is undefined in C"
            return wrap(value, Bin(op, lhs, rhs).dtype)
        match op:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                return a / b
            case "min":
                return min(a, b)
            case "max":
                return max(a, b)
            case _:
                return int({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[op])

    def unary(self, op: str, arg: Expr) -> Any:
        value = self.value(arg)
        match op:
            case "!":
                return int(not value)
            case "~":
                return wrap(~value, arg.dtype)
            case _:
                return wrap(-value, arg.dtype) if is_integer(arg.dtype) else -value


def convert(value: Any, dtype: str) -> Any:
    """``(dtype)value`` as C converts: floats truncate toward zero, integers wrap."""
    return wrap(int(value), dtype) if is_integer(dtype) else np.dtype(dtype).type(value)


def run(
    codelet: Codelet, arrays: Mapping[str, np.ndarray], scalars: Mapping[str, int | float], trace: Trace | None = None
) -> None:
    """Run ``codelet`` on ``arrays`` (by name, of the declared shapes, updated in place).

    ``trace(statement, iterations)`` is called before every assignment.
    """
    typed = {p.name: convert(scalars[p.name], p.dtype) for p in codelet.params if p.name in scalars}
    machine = _Machine(arrays, typed, trace)
    for local in codelet.locals:
        allocate(machine, local)
    with np.errstate(all="ignore"):
        machine.run(codelet.body)


def allocate(machine: _Machine, local: Local) -> None:
    if local.shape:
        machine.arrays[local.name] = np.zeros([int(machine.value(e)) for e in local.shape], local.dtype)
    else:
        machine.scalars[local.name] = convert(0, local.dtype)
