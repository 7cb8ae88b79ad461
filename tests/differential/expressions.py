"""Random C expressions that C defines: every value is known to lie between two bounds, and what could leave its type
is masked, converted to unsigned or guarded."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.differential.tree import Tree, expression
from tests.differential.types import (
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    INTEGERS,
    LLONG,
    LONG,
    UINT,
    ULLONG,
    ULONG,
    Type,
    common,
    promoted,
)  # fmt: skip

INFINITE = 10**30
"""The bounds of a float of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Value:
    """An expression, its type, and the bounds of its value."""

    tree: Tree
    type: Type
    lo: int
    hi: int

    def __str__(self) -> str:
        return str(self.tree)


Leaf = Callable[[], Value]


def full(tree: Tree, t: Type) -> Value:
    """A value of which only the type is known."""
    return Value(tree, t, -INFINITE, INFINITE) if t.is_float else Value(tree, t, t.lo, t.hi)


def constant(number: int) -> Value:
    return Value(expression(str(number) if number >= 0 else f"({number})"), INT, number, number)


def cast(v: Value, t: Type) -> Value:
    """``(t)v``; a float becomes an integer only where it is known to fit."""
    made = expression("(", t.spelling, ")", _primary(v))
    if v.type.is_float and not t.is_float and t.spelling != "_Bool":
        near = expression("(", v.tree, " > -100 && ", v.tree, " < 100 ? ", made, " : (", t.spelling, ")7)")
        if t.signed:
            return Value(near, t, -100, 100)
        near = expression("(", v.tree, " > 0 && ", v.tree, " < 100 ? ", made, " : (", t.spelling, ")7)")
        return Value(near, t, 0, 100)
    if t.is_float or (t.lo <= v.lo and v.hi <= t.hi):
        return Value(made, t, v.lo, v.hi)
    return full(made, t)


def _primary(v: Value) -> Tree:
    text = str(v.tree)
    return v.tree if text.isidentifier() or text.isdigit() else expression("(", v.tree, ")")


def converted(v: Value, t: Type) -> Value:
    """``v`` as an operand of type ``t``, the conversion being C's own."""
    if t.is_float or (t.lo <= v.lo and v.hi <= t.hi):
        return replace(v, type=t)
    return replace(full(v.tree, t), tree=v.tree)


class Expressions:
    """Makes expressions from leaves; ``floats`` may be inexact only if ``rough``."""

    def __init__(self, rng: random.Random, *, rough: bool) -> None:
        self.rng = rng
        self.rough = rough

    def value(self, leaves: Sequence[Leaf], depth: int, want: str = "any") -> Value:
        """An expression of leaves, at most so deep. ``want``: "any", "integer" or "float"."""
        if depth <= 0 or self.rng.random() < 0.15:
            return self.leaf(leaves, want)
        return self._float(leaves, depth) if want == "float" else self._integer(leaves, depth, want)

    def leaf(self, leaves: Sequence[Leaf], want: str) -> Value:
        for _ in range(4):
            v = self.rng.choice(leaves)() if leaves and self.rng.random() < 0.8 else self.literal(want)
            if want == "any" or v.type.is_float == (want == "float"):
                return v
            if want == "float":
                return cast(v, DOUBLE) if self.rng.random() < 0.5 else v
        return self.literal(want)

    def literal(self, want: str) -> Value:
        r = self.rng
        if want == "float" or (want == "any" and r.random() < 0.2):
            text = r.choice(("1.5", "2.0f", "0.5", ".25f", "3.", "-1.0", "4e0", "0x1p-1"))
            if self.rough:
                text = r.choice((text, "0.1", "0.7f", "1e-3", "16777217.0f", "0.1f"))
            t = FLOAT if text[-1] == "f" and "x" not in text else DOUBLE
            return Value(expression(f"({text})" if text[0] == "-" else text), t, -20000000, 20000000)
        if r.random() < 0.12:
            plain = (("'a'", 97), ("'\\n'", 10), ("'\\0'", 0), ("'\\''", 39), ("' '", 32))
            numeric = (("'\\x41'", 65), ("'\\101'", 65), ("'\\xff'", -1), ("'\\007'", 7))
            text, number = r.choice((*plain, *numeric))
            return Value(expression(text), INT, number, number)
        if r.random() < 0.15:
            text, t, number = r.choice((
                ("7u", UINT, 7), ("3l", LONG, 3), ("5ul", ULONG, 5), ("0x10", INT, 16), ("017", INT, 15),
                ("2147483647", INT, 2**31 - 1), ("4294967295u", UINT, 2**32 - 1), ("3000000000", LONG, 3000000000),
                ("0xffffffff", UINT, 2**32 - 1), ("1ull", ULLONG, 1), ("9223372036854775807ll", LLONG, 2**63 - 1),
                ("18446744073709551615ul", ULONG, 2**64 - 1), ("0x80000000", UINT, 2**31),
            ))  # fmt: skip
            return Value(expression(text), t, number, number)
        return constant(r.choice((0, 1, 2, 3, 5, 7, 10, 13, -1, -2, -3)))

    def _integer(self, leaves: Sequence[Leaf], depth: int, want: str) -> Value:
        r = self.rng
        kind = r.choices(
            ("arithmetic", "divide", "shift", "bits", "unary", "compare", "logical", "select", "cast"),
            (30, 10, 8, 10, 8, 7, 4, 8, 12),
        )[0]
        a = self.value(leaves, depth - 1, want)
        b = self.value(leaves, depth - 1, want)
        match kind:
            case "arithmetic":
                return self.arithmetic(r.choice("++--*"), a, b)
            case "divide" if not (a.type.is_float or b.type.is_float):
                return self.divide(r.choice("/%"), a, b)
            case "shift" if not a.type.is_float:
                return self.shift(r.choice(("<<", ">>")), a, b)
            case "bits" if not (a.type.is_float or b.type.is_float):
                return self.bits(r.choice("&|^"), a, b)
            case "unary":
                return self.unary(a)
            case "compare":
                return self.compare(a, b)
            case "logical":
                op = r.choice((" && ", " || "))
                asked = [self.condition(leaves, depth - 1) for _ in range(2)]
                return Value(expression("(", asked[0], op, asked[1], ")"), INT, 0, 1)
            case "select":
                return self.select(self.condition(leaves, depth - 1), a, b)
            case "cast":
                return cast(a, r.choice(INTEGERS if want == "integer" or r.random() < 0.8 else (HALF, FLOAT, DOUBLE)))
        return self.arithmetic("+", a, b)

    def _float(self, leaves: Sequence[Leaf], depth: int) -> Value:
        r = self.rng
        a, b = (
            self.value(leaves, depth - 1, "float"),
            self.value(leaves, depth - 1, "float" if r.random() < 0.6 else "any"),
        )
        chance = r.random()
        if chance < 0.55 or (chance < 0.8 and not self.rough):
            return self.arithmetic(r.choice("++--*") if self.rough or r.random() < 0.15 else r.choice("+-"), a, b)
        if chance < 0.65:
            return self.arithmetic("*", a, constant(r.choice((2, -1, 3))))
        if chance < 0.75:
            return self.select(self.condition(leaves, depth - 1), a, b)
        if chance < 0.82:
            return cast(a, r.choice((HALF, FLOAT, DOUBLE)))
        name = r.choice(("fabs", "floor", "sqrt", "fmin", "ceil", "fmax") if self.rough else ("fabs", "floor", "ceil"))
        if name in ("fmin", "fmax"):
            return Value(expression(f"{name}(", a.tree, ", ", b.tree, ")"), DOUBLE, -INFINITE, INFINITE)
        inner = expression("fabs(", a.tree, ")") if name == "sqrt" else a.tree
        return Value(expression(f"{name}(", inner, ")"), DOUBLE, -INFINITE, INFINITE)

    def arithmetic(self, op: str, a: Value, b: Value) -> Value:
        """A sum, a difference or a product; where it could overflow, of masked or unsigned operands."""
        t = common(a.type, b.type)
        a, b = converted(a, t), converted(b, t)
        lo, hi = _bounds(op, a, b)
        if not t.is_float and not (t.lo <= lo and hi <= t.hi):
            if not t.signed:
                lo, hi = t.lo, t.hi
            elif self.rng.random() < 0.5:
                a, b = self.masked(a, 9), self.masked(b, 9)
                lo, hi = _bounds(op, a, b)
            else:
                t = UINT if t.bits == 32 else ULONG
                a, lo, hi = full(expression("(", t.spelling, ")", _primary(a)), t), t.lo, t.hi
        return Value(self._joined(a, op, b), t, lo, hi)

    def masked(self, v: Value, bits: int) -> Value:
        """``v & mask``, which is not negative."""
        if v.lo >= 0 and v.hi < 2**bits:
            return v
        mask = 2**bits - 1
        return Value(expression("(", v.tree, f" & {mask})"), promoted(v.type), 0, mask)

    def divide(self, op: str, a: Value, b: Value) -> Value:
        """A quotient or a remainder, never by nothing."""
        t = common(a.type, b.type)
        if b.lo <= 0 <= b.hi:
            b = Value(expression("(", b.tree, " | 1)"), promoted(b.type), b.type.lo if b.lo < 0 else 1,
                      promoted(b.type).hi if b.lo < 0 else b.hi | 1)  # fmt: skip
        a, b = converted(a, t), converted(b, t)
        if t.signed and a.lo <= t.lo and b.lo <= -1 <= b.hi:
            a = self.masked(a, 12)
        far = max(abs(a.lo), abs(a.hi))
        if op == "%":
            far = min(far, max(abs(b.lo), abs(b.hi)) - 1)
        if not t.signed and b.lo <= 0:  # it wrapped
            b = Value(expression("(", b.tree, " | 1)"), t, 1, t.hi)
        return Value(self._joined(a, op, b), t, -far if a.lo < 0 or b.lo < 0 else 0, min(far, t.hi))

    def shift(self, op: str, a: Value, b: Value) -> Value:
        by = self.rng.randint(0, 6)
        if self.rng.random() < 0.3 and not b.type.is_float:
            amount = self.masked(b, 3)
        else:
            amount = constant(by)
        t = promoted(a.type)
        if op == "<<" and t.signed and not (a.lo >= 0 and a.hi << amount.hi <= t.hi):
            a = self.masked(a, 10)
            t = promoted(a.type)
        if op == "<<":
            hi = a.hi << amount.hi
            return Value(self._joined(a, op, amount), t, 0, hi if hi <= t.hi else t.hi)
        return Value(self._joined(a, op, amount), t, a.lo if a.lo < 0 else 0, max(a.hi, 0))

    def bits(self, op: str, a: Value, b: Value) -> Value:
        t = common(a.type, b.type)
        a, b = converted(a, t), converted(b, t)
        if a.lo >= 0 and b.lo >= 0:
            top = 2 ** max(a.hi.bit_length(), b.hi.bit_length()) - 1
            return Value(self._joined(a, op, b), t, 0, min(a.hi, b.hi) if op == "&" else min(top, t.hi))
        if op == "&" and (a.lo >= 0 or b.lo >= 0):
            return Value(self._joined(a, op, b), t, 0, a.hi if a.lo >= 0 else b.hi)
        return full(self._joined(a, op, b), t)

    def unary(self, a: Value) -> Value:
        op = self.rng.choice("--~!" if not a.type.is_float else "-!")
        tree = expression("(", op, _primary(a), ")")
        t = promoted(a.type)
        if op == "!":
            return Value(tree, INT, 0, 1)
        if t.is_float:
            return Value(tree, t, -a.hi, -a.lo)
        if op == "~":
            return Value(tree, t, -a.hi - 1, -a.lo - 1) if t.signed else full(tree, t)
        if t.signed and a.lo <= t.lo:
            return self.unary(self.masked(a, 8))
        return Value(tree, t, -a.hi, -a.lo) if t.signed else full(tree, t)

    def compare(self, a: Value, b: Value) -> Value:
        return Value(self._joined(a, self.rng.choice(("<", "<=", ">", ">=", "==", "!=")), b), INT, 0, 1)

    def condition(self, leaves: Sequence[Leaf], depth: int) -> Tree:
        """Something that is true or not."""
        if depth > 0 and self.rng.random() < 0.15:
            return self.value(leaves, depth - 1, "integer").tree
        return self.compare(self.value(leaves, depth - 1), self.value(leaves, depth - 1)).tree

    def select(self, cond: Tree, a: Value, b: Value) -> Value:
        t = common(a.type, b.type)
        a, b = converted(a, t), converted(b, t)
        return Value(expression("(", cond, " ? ", a.tree, " : ", b.tree, ")"), t, min(a.lo, b.lo), max(a.hi, b.hi))

    def _joined(self, a: Value, op: str, b: Value) -> Tree:
        return expression("(", a.tree, f" {op} ", b.tree, ")")


def _bounds(op: str, a: Value, b: Value) -> tuple[int, int]:
    match op:
        case "+":
            return a.lo + b.lo, a.hi + b.hi
        case "-":
            return a.lo - b.hi, a.hi - b.lo
        case _:
            ends = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
            return min(ends), max(ends)
