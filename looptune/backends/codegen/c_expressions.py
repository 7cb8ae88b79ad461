"""Expressions in C, in three readings: a value, a number that does not wrap, and an index.

    value      C's own: every operation in its type; signed integers wrap
    bound      long long, of sizes and loop variables
    index      unsigned int, modulo 2**32: sums and products need no sign

``kinds`` has the types with which variables are declared, which for a counter is not the type in the program.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from looptune.backends.codegen import half
from looptune.backends.codegen.python import parenthesise
from looptune.backends.codegen.writer import KernelWriter
from looptune.core.short_floats import rounded
from looptune.ir.c_printer import LEAST, decimal, opens_with_minus
from looptune.ir.intervals import never_negative
from looptune.ir.nodes import SHORT_FLOATS, Binary, Call, Cast, Const, Expr, Load, Select, Unary, Var
from looptune.ir.simplify import as_min_max, is_integer, widens

LEVEL = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
UNARY, ATOM = 11, 12
"""How tightly C's operators bind."""
COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_SIGNED = ("int8", "int16", "int32", "int64")


class CValues(KernelWriter):
    """Writes expressions in C; ``types`` are the names of C's types."""

    types: ClassVar[Mapping[str, str]]
    wide_suffix: ClassVar[str]
    """Of a constant of 64 bits."""
    functions: dict[str, str]
    half_parameters: Mapping[str, str] = MappingProxyType({})
    """Scalars that are floats of 16 bits, with their types; they are passed as floats that need not be rounded yet."""

    @abstractmethod
    def special(self, value: float, dtype: str) -> str:
        """Return a NaN or an infinity as text."""

    @abstractmethod
    def function(self, fn: str, dtype: str) -> str:
        """Return the name of a function of math.h for a type."""

    @abstractmethod
    def inline(self, result: str) -> str:
        """Return the beginning of the definition of a helper."""

    @abstractmethod
    def half_function(self, name: str) -> str:
        """Return the definition of a function of ``codegen/half``."""

    def convert_half(self, name: str, text: str) -> str:
        """Return the call of a function of ``codegen/half`` on a value."""
        self.functions |= {f: self.half_function(f) for f in half.needed(name)}
        return f"{name}({text})"

    def as_half(self, e: Expr) -> str:
        """Return ``e``, a float of 16 bits, as it is stored."""
        functions = half.CONVERSIONS[e.dtype]
        match e:
            case Load():
                return self.element(e)
            case Cast(arg=arg) if arg.dtype == "float64":
                return self.convert_half(functions.from_double, self.value(arg))
            case Cast("bfloat16", arg) if is_integer(arg.dtype):
                # A float does not hold each integer that does not exceed the type.
                return self.convert_half(functions.from_double, self.cast("float64", self.value(arg, UNARY)))
            case Cast(arg=arg):
                text = self.value(arg) if not is_integer(arg.dtype) else self.cast("float32", self.value(arg, UNARY))
                return self.convert_half(functions.from_float, text)
            case Var(name) if name in self.half_parameters:
                return self.convert_half(functions.from_float, self.name(name))
        return self.convert_half(functions.from_float, self.value(e))

    def half_value(self, e: Expr) -> str:
        """Return ``e``, a float of 16 bits, as the float that it is computed with."""
        match e:
            case Const(value):
                return self.literal(Const(rounded(value, e.dtype), "float32"))
            case Var(name) if name not in self.half_parameters:
                return self.name(name)
        return self.convert_half(half.CONVERSIONS[e.dtype].to_float, self.as_half(e))

    def cast(self, dtype: str, text: str, level: int = 0) -> str:
        """Return ``text``, an operand that binds as tightly as a cast's does, converted to another type."""
        return parenthesise(f"({self.types[dtype]}){text}", UNARY, level)

    def least(self, op: str, dtype: str, a: str, b: str) -> str:
        """Return the minimum or maximum of two values; if one is a NaN, the result is the first."""
        name, kind = f"{op}_{dtype}", self.types[dtype]
        sign = "<" if op == "min" else ">"
        self.functions[name] = (
            f"{self.inline(kind)} {name}({kind} a, {kind} b)\n{{\n    return b {sign} a ? b : a;\n}}\n"
        )
        return f"{name}({a}, {b})"

    def element(self, load: Load) -> str:
        if load.array in self.tiles:
            return f"{load.array}[{self.global_index(load.index[0])}]"
        (place,) = load.index
        return f"{self.renamed.get(load.array) or self.name(load.array)}[{self.global_index(place)}]"

    def long(self, e: Expr) -> str:
        if isinstance(e, Const):
            return f"{int(e.value)}u"
        return self.cast("uint64", self.wide(e, UNARY) if self.plan.wide_indices else self.unsigned_index(e, UNARY))

    def wide_index(self, e: Expr) -> str:
        return self.bound(e)

    def variable(self, var: Var, dtype: str, level: int = 0) -> str:
        """Return a variable in the type that is asked for."""
        text = self.name(var.name)
        return text if self.kinds.get(var.name, var.dtype) == dtype else self.cast(dtype, text, level)

    def value(self, e: Expr, level: int = 0) -> str:
        """Return ``e`` with C's value and, except for the narrowest integers, in its type."""
        match e:
            case Const() | Var() | Load() | Cast() if e.dtype in SHORT_FLOATS:
                return parenthesise(self.half_value(e), UNARY if isinstance(e, Const) else ATOM, level)
            case Const():
                return parenthesise(self.literal(e), UNARY if opens_with_minus(e) else ATOM, level)
            case Var():
                return self.variable(e, e.dtype, level)
            case Load():
                return self.element(e)
            case Cast("bool", arg):
                return f"({self.condition(arg)})"
            case Cast("float32", arg) if arg.dtype in SHORT_FLOATS:
                return self.value(arg, level)
            case Cast(dtype, arg):
                return self.cast(dtype, self.value(arg, UNARY), level)
            case Select(no_nans=True) if (found := as_min_max(e)) is not None:
                op, *both = found
                return self.call(f"f{op}", [self.value(one) for one in both], e.dtype, level)
            case Select(cond, then, other):
                return f"({self.condition(cond)} ? {self.value(then)} : {self.value(other)})"
            case Call(fn, args, dtype):
                return self.call(fn, [self.value(a) for a in args], dtype, level)
            case Unary("!") | Binary("<" | "<=" | ">" | ">=" | "==" | "!=" | "&&" | "||"):
                return f"({self.condition(e)})"
            case Unary(op, arg):
                return self.negative(op, arg, level)
            case Binary("min" | "max" as op, lhs, rhs):
                return self.least(op, e.dtype, self.value(lhs), self.value(rhs))
            case Binary(op, lhs, rhs):
                return self.binary(op, lhs, rhs, level)
        raise AssertionError(f"no C for {e}")

    def negative(self, op: str, arg: Expr, level: int) -> str:
        if op == "-" and arg.dtype in _SIGNED and not isinstance(arg, Const):
            wide = self.wrapping(arg.dtype)
            return self.cast(arg.dtype, f"(0 - {self.cast(wide, self.value(arg, UNARY))})", level)
        text = f"{op}{self.value(arg, ATOM)}"
        if is_integer(arg.dtype) and self.narrow(arg.dtype):
            return self.cast(arg.dtype, f"({text})", level)
        return parenthesise(text, UNARY, level)

    def binary(self, op: str, lhs: Expr, rhs: Expr, level: int) -> str:
        own, dtype = LEVEL[op], lhs.dtype
        if op in ("+", "-", "*", "<<") and dtype in _SIGNED and not self.small(Binary(op, lhs, rhs)):
            wide = self.wrapping(dtype)
            a = self.cast(wide, self.value(lhs, UNARY), own)
            b = self.value(rhs, own + 1) if op == "<<" else self.cast(wide, self.value(rhs, UNARY), own + 1)
            return self.cast(dtype, f"({a} {op} {b})", level)
        text = f"{self.value(lhs, own)} {op} {self.value(rhs, own + 1)}"
        if is_integer(dtype) and self.narrow(dtype):
            return self.cast(dtype, f"({text})", level)
        return parenthesise(text, own, level)

    def small(self, e: Expr) -> bool:
        """Return whether ``e`` consists of sizes, loop variables and constants, so that it does not overflow."""
        match e:
            case Const(_, dtype):
                return dtype == "int32"
            case Var(name, dtype):
                return dtype == "int32" and name in self.kinds
            case Binary("+" | "-" | "*" | "/" | "%" | "min" | "max", lhs, rhs):
                return self.small(lhs) and self.small(rhs)
        return False

    def narrow(self, dtype: str) -> bool:
        """Return whether C computes values of this type in int."""
        return dtype.endswith(("int8", "int16"))

    def wrapping(self, dtype: str) -> str:
        """Return the unsigned type in which sums of a signed type wrap."""
        return "uint64" if dtype == "int64" else "uint32"

    def literal(self, c: Const) -> str:
        if not is_integer(c.dtype):
            return self.number(float(c.value), c.dtype)
        value = int(c.value)
        if value in LEAST:
            return f"({self.literal(Const(value + 1, c.dtype))} - 1)"
        suffix = {"int64": self.wide_suffix, "uint32": "u", "uint64": f"u{self.wide_suffix}"}
        return f"{value}{suffix.get(c.dtype, '')}"

    def number(self, value: float, dtype: str) -> str:
        """Return the shortest decimal that is read as the value."""
        with np.errstate(over="ignore"):
            rounded = np.dtype(dtype).type(value)
        if not np.isfinite(rounded):
            return self.special(float(rounded), dtype)
        return decimal(Const(value, dtype)) + "f" * (dtype == "float32")

    def call(self, fn: str, args: list[str], dtype: str, level: int) -> str:
        text = f"{self.function(fn, dtype)}({', '.join(args)})"
        return self.cast(dtype, text, level) if is_integer(dtype) else text

    def condition(self, e: Expr) -> str:
        match e:
            case Binary("&&" | "||" as op, lhs, rhs):
                return f"({self.condition(lhs)} {op} {self.condition(rhs)})"
            case Binary(op, lhs, rhs) if op in COMPARED:
                below = LEVEL["<"] + 1
                if self.same_sign(lhs) and self.same_sign(rhs):
                    return f"{self.unsigned_index(lhs, below)} {op} {self.unsigned_index(rhs, below)}"
                if self.small(lhs) and self.small(rhs):
                    return f"{self.wide(lhs, below)} {op} {self.wide(rhs, below)}"
                return f"{self.value(lhs, below)} {op} {self.value(rhs, below)}"
            case Unary("!", arg):
                return f"!({self.condition(arg)})"
        return f"{self.value(e, LEVEL['!='] + 1)} != 0"

    def bound(self, e: Expr, level: int = 0) -> str:
        """Return ``e`` in 64 signed bits; a constant is written as short as possible."""
        if isinstance(e, Const) and abs(e.value) < 2**31:
            text = str(int(e.value))
            return parenthesise(text, UNARY if e.value < 0 else ATOM, level)
        return self.wide(e, level)

    def wide(self, e: Expr, level: int = 0) -> str:
        """Return ``e`` in 64 signed bits."""
        match e:
            case Const(value):
                return self.value(Const(int(value), "int64"), level)
            case Var() if is_integer(e.dtype):
                return self.variable(e, "int64", level)
            case Cast(dtype, arg) if widens(dtype, arg.dtype) or self.preserves_value(dtype, arg):
                return self.wide(arg, level)
            case Binary("min" | "max" as op, lhs, rhs) if lhs.dtype in _SIGNED:
                return self.least(op, "int64", self.wide(lhs), self.wide(rhs))
            case Binary("+" | "-" | "*" | "/" | "%" as op, lhs, rhs) if lhs.dtype in _SIGNED:
                own = LEVEL[op]
                return parenthesise(f"{self.wide(lhs, own)} {op} {self.bound(rhs, own + 1)}", own, level)
            case Unary("-", arg) if arg.dtype in _SIGNED:
                return parenthesise(f"-{self.wide(arg, ATOM)}", UNARY, level)
            case Select(cond, then, other):
                return f"({self.condition(cond)} ? {self.wide(then)} : {self.wide(other)})"
            case Cast("int64"):
                return self.value(e, level)
        return self.cast("int64", self.value(e, UNARY), level)

    def preserves_value(self, dtype: str, arg: Expr) -> bool:
        """Tell whether a cast of ``arg`` to the unsigned ``dtype`` preserves its value."""
        return dtype.startswith("u") and widens(dtype[1:], arg.dtype) and never_negative(arg, self.nonnegative)

    def unsigned_index(self, e: Expr, level: int = 0) -> str:
        """Return ``e`` modulo 2**32, as an unsigned int."""
        match e:
            case Const(n):
                return str(int(n)) if 0 <= n < 2**31 else f"{int(n) % 2**32}u"
            case Var() if is_integer(e.dtype):
                return self.variable(e, "uint32", level)
            case Binary("+" | "-" | "*" as op, lhs, rhs):
                own = LEVEL[op]
                text = f"{self.unsigned_index(lhs, own)} {op} {self.unsigned_index(rhs, own + 1)}"
                return parenthesise(text, own, level)
            case Binary("/" | "%" as op, lhs, rhs) if self.counts(lhs) and self.counts(rhs):
                own = LEVEL[op]
                text = f"{self.unsigned_index(lhs, own)} {op} {self.unsigned_index(rhs, own + 1)}"
                return parenthesise(text, own, level)
            case Binary("min" | "max" as op, lhs, rhs) if self.counts(lhs) and self.counts(rhs):
                return self.least(op, "uint32", self.unsigned_index(lhs), self.unsigned_index(rhs))
        return self.cast("uint32", self.wide(e, UNARY), level)

    def counts(self, e: Expr) -> bool:
        """Tell whether the expression is a number of iterations or a position, which fits 32 bits.

        It consists of sizes, counters and constants.
        """
        return self.small(e) and never_negative(e, self.nonnegative)
