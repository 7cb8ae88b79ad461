"""The meaning of the IR: run it on NumPy arrays, one statement at a time. It is slow, and it is the reference.

Integers are C's: they wrap in their dtype, ``/`` and ``%`` truncate. Floats round to their dtype after every operation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from looptune.core.short_floats import BFLOAT, rounded
from looptune.ir.nodes import (
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
    Select,
    Stmt,
    Unary,
    Var,
    While,
)
from looptune.ir.simplify import evaluate, is_integer, wrap

Trace = Callable[[str, tuple[int, ...]], None]
Meaning = Callable[[], Any]
"""What an expression is worth now."""


def _gamma(x: Any) -> float:
    if x == 0 or not np.isfinite(x):
        return math.copysign(math.inf, x) if x == 0 or x > 0 else math.nan
    try:
        return math.gamma(x)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def _log_gamma(x: Any) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def _remainder(x: Any, y: Any) -> float:
    return math.nan if np.isnan(x) or np.isnan(y) or np.isinf(x) or y == 0 else math.remainder(x, y)


def _exponent(x: Any) -> float:
    if x == 0 or not np.isfinite(x):
        return -math.inf if x == 0 else math.nan if np.isnan(x) else math.inf
    return math.frexp(x)[1] - 1


def _int_exponent(x: Any) -> int:
    """Return glibc's values where there is no exponent."""
    if x == 0 or not np.isfinite(x):
        return 2**31 - 1 if np.isinf(x) else -(2**31)
    return math.frexp(x)[1] - 1


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sqrt": np.sqrt, "pow": np.power, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "fabs": np.abs, "abs": np.abs, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": lambda x: np.copysign(np.trunc(x) + np.copysign(type(x)(abs(x - np.trunc(x)) >= 0.5), x), x),
    "fmin": np.fmin, "fmax": np.fmax,
    "fmod": np.fmod, "hypot": np.hypot, "cbrt": np.cbrt, "copysign": np.copysign,
    "fma": lambda a, b, c: type(a)(math.fma(a, b, c)) if hasattr(math, "fma") else a * b + c,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "exp10": lambda x: np.power(type(x)(10), x),
    "erf": math.erf, "erfc": math.erfc, "tgamma": _gamma, "lgamma": _log_gamma, "rint": np.rint,
    "remainder": _remainder, "nextafter": np.nextafter, "ldexp": np.ldexp, "logb": _exponent, "ilogb": _int_exponent,
    "popcount": lambda x: int(x).bit_count(), "clz": lambda x: 64 - int(x).bit_length(),
}  # fmt: skip


class Interpreter:
    """The variables of one run; ``where`` holds loop variables and scalars, the arrays are the caller's."""

    def __init__(self, arrays: Mapping[str, np.ndarray], scalars: Mapping[str, Any], trace: Trace | None) -> None:
        self.arrays = dict(arrays)
        self.scalars = dict(scalars)
        self.trace = trace
        self._known: dict[int, tuple[Meaning, Expr]] = {}

    def run(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.step(stmt)

    def step(self, stmt: Stmt) -> None:
        match stmt:
            case Assign(target, value):
                if self.trace is not None:
                    self.trace(stmt.name, tuple(int(self.value(e)) for e in stmt.instance))
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
        return self._place(array, tuple(map(self._meaning, index)))

    def value(self, e: Expr) -> Any:
        return self._meaning(e)()

    def _place(self, array: str, index: tuple[Meaning, ...]) -> tuple[int, ...]:
        where = tuple([int(i()) for i in index])
        shape = self.arrays[array].shape
        inside = len(where) == len(shape) and all(0 <= i < n for i, n in zip(where, shape, strict=True))
        assert inside, f"{array}{list(where)} is outside its shape {shape}"
        return where

    def _meaning(self, e: Expr) -> Meaning:
        """Return a function that gives its value, made once: expressions are evaluated many times."""
        known = self._known.get(id(e))
        if known is None:
            known = self._known[id(e)] = (self._made(e), e)
        return known[0]

    def _made(self, e: Expr) -> Meaning:
        match e:
            case Const(value, dtype):
                constant = value if is_integer(dtype) else np.dtype(dtype).type(value)
                return lambda: constant
            case Var(name):
                return lambda: self.scalars[name]
            case Load(array, index, dtype):
                at = tuple(map(self._meaning, index))
                if is_integer(dtype):
                    return lambda: int(self.arrays[array][self._place(array, at)])
                return lambda: self.arrays[array][self._place(array, at)]
            case Binary(op, lhs, rhs):
                return _binary(e, op, self._meaning(lhs), self._meaning(rhs))
            case Unary(op, arg):
                return _unary(op, arg.dtype, self._meaning(arg))
            case Call(fn, args, dtype):
                called, given = FUNCTIONS[fn], tuple(map(self._meaning, args))
                if is_integer(dtype):
                    return lambda: int(called(*[a() for a in given]))
                number = np.dtype(dtype).type
                return lambda: number(called(*[a() for a in given]))
            case Select(cond, then, other):
                asked, yes, no = map(self._meaning, (cond, then, other))
                return lambda: yes() if asked() else no()
            case Cast(dtype, arg):
                inner = self._meaning(arg)
                return lambda: convert(inner(), dtype)


COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
COMPUTED: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "min": min, "max": max,
}  # fmt: skip


def _binary(e: Binary, op: str, a: Meaning, b: Meaning) -> Meaning:
    if op == "&&":
        return lambda: int(bool(a()) and bool(b()))
    if op == "||":
        return lambda: int(bool(a()) or bool(b()))
    if op in COMPARED:
        compared = COMPARED[op]
        return lambda: int(compared(a(), b()))
    if not is_integer(e.lhs.dtype):
        computed = COMPUTED[op]
        return lambda: computed(a(), b())
    dtype = e.dtype
    if op in ("+", "-", "*"):
        made = COMPUTED[op]
        return lambda: wrap(made(a(), b()), dtype)

    def integer() -> int:
        x, y = a(), b()
        # A count that C leaves undefined is taken modulo the bits of the type, as processors do.
        value = evaluate(op, x, y % (64 if dtype in ("int64", "uint64") else 32) if op in ("<<", ">>") else y)
        assert value is not None, f"{x} {op} {y} is undefined in C"
        return wrap(value, dtype)

    return integer


def _unary(op: str, dtype: str, arg: Meaning) -> Meaning:
    if op == "!":
        return lambda: int(not arg())
    if op == "~":
        return lambda: wrap(~arg(), dtype)
    if is_integer(dtype):
        return lambda: wrap(-arg(), dtype)
    return lambda: -arg()


def convert(value: Any, dtype: str) -> Any:
    """Return ``(dtype)value`` as C converts it: floats truncate toward zero, integers wrap, values are rounded once.

    An integer from a NaN or an infinity, which C leaves undefined, is the least of its type.
    """
    if dtype == "bool":
        return int(value != 0)
    if is_integer(dtype):
        return wrap(int(value) if isinstance(value, int) or np.isfinite(value) else -(2**63), dtype)
    if dtype == BFLOAT:
        return np.dtype(dtype).type(rounded(float(value), dtype))
    if isinstance(value, int) and dtype == "float32":
        return np.float32(np.int64(value) if value < 2**63 else np.uint64(value))
    return np.dtype(dtype).type(value)


def run(
    codelet: Codelet, arrays: Mapping[str, np.ndarray], scalars: Mapping[str, int | float], trace: Trace | None = None
) -> None:
    """Run ``codelet`` on ``arrays`` (by name, of the declared shapes, updated in place).

    ``trace(statement, iterations)`` is called before every assignment.
    """
    typed = {p.name: convert(scalars[p.name], p.dtype) for p in codelet.params if p.name in scalars}
    machine = Interpreter(arrays, typed, trace)
    for local in codelet.locals:
        allocate(machine, local)
    with np.errstate(all="ignore"):
        machine.run(codelet.body)


def allocate(machine: Interpreter, local: Local) -> None:
    """Allocate the local, filled with zeros."""
    if local.shape:
        machine.arrays[local.name] = np.zeros([int(machine.value(e)) for e in local.shape], local.dtype)
    else:
        machine.scalars[local.name] = convert(0, local.dtype)
