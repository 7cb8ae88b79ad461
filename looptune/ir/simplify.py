"""Simplify integer expressions: constants folded, ``x + 0``, ``x * 1``, ``(x + 1) + 1`` removed.

Only integers are changed: a float expression keeps every operation, because rounding is part of its meaning.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

from looptune.ir.nodes import COMPARISONS, Binary, Cast, Const, Expr, Select, Unary

_BITS = {
    "bool": 1, "int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64,
}  # fmt: skip


def is_integer(dtype: str) -> bool:
    """Tell whether the type is an integer type."""
    return dtype in _BITS


def wrap(value: int, dtype: str) -> int:
    """Return ``value`` as C stores it in ``dtype``: in two's complement; in a bool, whether it is not zero.

    >>> wrap(2**31, "int32"), wrap(-1, "uint8"), wrap(256, "bool")
    (-2147483648, 255, 1)
    """
    if dtype == "bool":
        return int(value != 0)
    if -128 <= value <= 127 and (value >= 0 or dtype.startswith("i")):
        return value
    bits = _BITS[dtype]
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.startswith("i") and value >> (bits - 1) else value


def fits(value: int, dtype: str) -> bool:
    """Return whether the integer type can represent ``value``.

    >>> fits(255, "uint8"), fits(2**31, "int32")
    (True, False)
    """
    return wrap(value, dtype) == value


def overflows_never(dtype: str) -> bool:
    """Tell whether sums and products of the integer type are exact.

    In signed types, overflow is undefined in C, and unsigned types wrap.

    C has no arithmetic in types narrower than int.
    """
    return dtype in ("int32", "int64")


def truth(e: Expr) -> Expr:
    """Return an expression that is 1 if ``e`` is not zero, else 0."""
    match e:
        case Binary(op) if op in COMPARISONS:
            return e
        case Unary("!"):
            return e
        case Const(value, dtype) if is_integer(dtype):
            return Const(int(value != 0), span=e.span)
    return Binary("!=", e, Const(0, e.dtype), span=e.span)


def widens(dtype: str, of: str) -> bool:
    """Return whether ``dtype`` can represent every value of ``of``, both integer types."""
    if not (is_integer(dtype) and is_integer(of)):
        return False
    if "bool" in (dtype, of):
        return of == "bool"
    bits, of_bits = int(dtype.lstrip("uint")), int(of.lstrip("uint"))
    return bits >= of_bits if dtype[0] == of[0] else dtype[0] == "i" and bits > of_bits


def is_lossless_index_cast(to: str, of: str) -> bool:
    """Tell whether a cast of an index or a bound from the type ``of`` preserves every value.

    From 32 bits or more it does, since positions fit in an int; from fewer only if every value fits.

    >>> [is_lossless_index_cast(*pair) for pair in (("int64", "int32"), ("int32", "int64"), ("uint8", "int32"))]
    [True, True, False]
    """
    if not (is_integer(to) and is_integer(of)):
        return False
    same = to.startswith("u") == of.startswith("u")
    return _BITS[to] >= 32 or (_BITS[to] >= _BITS[of] if same else of.startswith("u") and _BITS[to] > _BITS[of])


def truncdiv(a: int, b: int) -> int:
    """Return the quotient of C's integer division, which rounds toward zero.

    >>> truncdiv(-7, 2), truncdiv(7, -2)
    (-3, -3)
    """
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": truncdiv, "%": lambda a, b: a - b * truncdiv(a, b),
    "min": min, "max": max, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne, "&&": lambda a, b: bool(a and b), "||": lambda a, b: bool(a or b),
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip


def evaluate(op: str, a: int, b: int) -> int | None:
    """Return ``a op b`` on C integers, or None if it is undefined in C."""
    match op:
        case "/" | "%" if not b:
            return None
        case "<<" | ">>" if not 0 <= b < 64:
            return None
    return int(_OPERATIONS[op](a, b))


def fold(e: Expr) -> Expr:
    """Simplify one node whose children are simple already; returns the same object if nothing applies."""
    match e:
        case Binary():
            return _fold_binary(e)
        case Unary("-", Const(int(a), dtype)) if is_integer(dtype):
            return Const(wrap(-a, dtype), dtype, span=e.span)
        case Cast(dtype, Const(int(a), of)) if is_integer(dtype) and is_integer(of):
            return Const(wrap(a, dtype), dtype, span=e.span)
        case Cast(dtype, arg) if arg.dtype == dtype:
            return arg
    return e


def _fold_binary(e: Binary) -> Expr:
    lhs, rhs = e.lhs, e.rhs
    integers = is_integer(lhs.dtype)
    if isinstance(lhs, Const) and isinstance(rhs, Const) and integers and is_integer(rhs.dtype):
        value = evaluate(e.op, int(lhs.value), int(rhs.value))
        return e if value is None else Const(wrap(value, e.dtype), e.dtype, span=e.span)
    match e.op:
        case "&&" if _is_zero(lhs) or _is_zero(rhs):
            return Const(0, span=e.span)
        case "==" if integers:
            return _fold_equality(e)
        case "+" | "-" if integers:
            return _fold_sum(e)
        case "*" if integers:
            return _fold_product(e)
        case "/" | "%" if integers:
            return _fold_quotient(e)
        case "min" | "max" if integers and lhs == rhs:
            return lhs
    return e


def _is_zero(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 0


def _is_one(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 1


def _fold_equality(e: Binary) -> Expr:
    match e.lhs, e.rhs:
        case Binary("+", Binary("*", Const(int(a)), _), Const(int(b))) as total, Const(int(c)) if (
            a and (c - b) % a and overflows_never(total.dtype)
        ):
            return Const(0, span=e.span)
        case Binary("*", Const(int(a)), x), Const(0) if a and overflows_never(x.dtype):
            return replace(e, lhs=x)
    return e


def _fold_sum(e: Binary) -> Expr:
    lhs, rhs, plus = e.lhs, e.rhs, e.op == "+"
    if _is_zero(rhs):
        return lhs
    if plus and _is_zero(lhs):
        return rhs
    if isinstance(rhs, Const) and isinstance(rhs.value, int):
        return _fold_constant_term(e, rhs.value)
    return e if plus else _fold_difference(e)


def _fold_difference(e: Binary) -> Expr:
    if e.lhs == e.rhs:
        return Const(0, e.dtype)
    match e.lhs:
        case Binary("+", x, y) if e.rhs in (x, y):
            return x if y == e.rhs else y
    return e


def _fold_constant_term(e: Binary, b: int) -> Expr:
    """Simplify a sum with the constant ``b``, or the difference from it."""
    if b < 0 and fits(-b, e.dtype):
        return fold(replace(e, op="-" if e.op == "+" else "+", rhs=Const(-b, e.rhs.dtype)))
    match e.lhs:
        case Binary("+" | "-" as inner, x, Const(int(a))):
            total = (a if inner == "+" else -a) + (b if e.op == "+" else -b)
            if e.dtype.startswith("u"):  # a sum wraps, whatever its order
                total = wrap(total, e.dtype)
                total -= (1 << _BITS[e.dtype]) if total >> (_BITS[e.dtype] - 1) else 0
            return add(x, Const(total, e.dtype)) if fits(abs(total), e.dtype) else e
    return e if e.op == "+" else _fold_difference(e)


def _fold_product(e: Binary) -> Expr:
    lhs, rhs = e.lhs, e.rhs
    if _is_one(lhs):
        return rhs
    if _is_one(rhs):
        return lhs
    return Const(0, e.dtype) if _is_zero(lhs) or _is_zero(rhs) else e


def _fold_quotient(e: Binary) -> Expr:
    if e.op == "/" and _is_one(e.rhs):
        return e.lhs
    match e.lhs, e.rhs:
        case Binary("*", Const(int(a)), x) | Binary("*", x, Const(int(a))), Const(int(b)) if (
            b and a % b == 0 and overflows_never(e.dtype) and fits(a // b, e.dtype)
        ):
            return mul(x, Const(a // b, e.dtype)) if e.op == "/" else Const(0, e.dtype)
    return e


def add(a: Expr, b: Expr) -> Expr:
    """Return ``a + b``, simplified."""
    return fold(Binary("+", a, b))


def sub(a: Expr, b: Expr) -> Expr:
    """Return ``a - b``, simplified."""
    return fold(Binary("-", a, b))


def mul(a: Expr, b: Expr) -> Expr:
    """Return ``a * b``, simplified."""
    return fold(Binary("*", a, b))


def div(a: Expr, b: Expr) -> Expr:
    """Return ``a / b``, simplified."""
    return fold(Binary("/", a, b))


BIG_STEP = 2**20
"""A loop in larger steps is counted without sums that could exceed its type."""


def ceil_div(a: Expr, k: int) -> Expr:
    """Return ``a / k``, rounded up where it is positive, and else 0 or less; no sum exceeds the type for a large ``k``.

    >>> ceil_div(Const(2_000_000_000), 1_500_000_000), ceil_div(Const(-5), 4)
    (Const(value=2, dtype='int32'), Const(value=0, dtype='int32'))
    """
    by, most = Const(k, a.dtype), Const(k - 1, a.dtype)
    if isinstance(a, Const):
        return Const(truncdiv(int(a.value) + k - 1, k), a.dtype)
    if k <= BIG_STEP:
        return div(add(a, most), by)
    return add(div(a, by), div(add(mod(a, by), most), by))


def mod(a: Expr, b: Expr) -> Expr:
    """Return ``a % b``, simplified."""
    if b == Const(1, b.dtype):
        return Const(0, b.dtype)
    return fold(Binary("%", a, b))


def min_of(a: Expr, b: Expr) -> Expr:
    """Return ``min(a, b)``, simplified."""
    return fold(Binary("min", a, b))


def max_of(a: Expr, b: Expr) -> Expr:
    """Return ``max(a, b)``, simplified."""
    return fold(Binary("max", a, b))


def as_min_max(e: Select) -> tuple[str, Expr, Expr] | None:
    """Return "min" or "max" and its two operands if a selection chooses between two floats that it compares, else None.

    >>> a, b = Const(1.0, "float32"), Const(2.0, "float32")
    >>> as_min_max(Select(Binary(">", a, b), b, a))[0]
    'min'
    """
    match e.cond:
        case Binary("<" | "<=" | ">" | ">=" as op, a, b) if a.dtype == b.dtype and not is_integer(a.dtype):
            if (e.then, e.other) in ((a, b), (b, a)):
                return ("min" if (e.then == a) == op.startswith("<") else "max"), a, b
    return None
