"""Evaluate the expression after ``#if``, which C computes in the widest integers, signed or not.

pcpp's own evaluator has Python's remainder, no signed characters, and only unsigned comparisons.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from looptune.core.errors import ParseError
from looptune.frontend.c_constants import character, integer
from looptune.ir.simplify import wrap

if TYPE_CHECKING:
    from looptune.core.source import Span

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<character>(?:u8|[LuU])?'(?:[^'\\]|\\.)+')|(?P<name>[^\W\d]\w*)
        |(?P<operator><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&^|~!?:(),])|(?P<other>\S))""", re.VERBOSE | re.DOTALL,
)  # fmt: skip
_BINDS = {
    "*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, "<=": 7, ">": 7, ">=": 7, "==": 6, "!=": 6,
    "&": 5, "^": 4, "|": 3, "&&": 2, "||": 1,
}  # fmt: skip
"""How closely each operator binds."""
_COMPARES: dict[str, Callable[[int, int], bool]] = {
    "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__, "==": int.__eq__, "!=": int.__ne__,
}  # fmt: skip
_COMPUTES: dict[str, Callable[[int, int], int]] = {
    "*": int.__mul__, "+": int.__add__, "-": int.__sub__, "&": int.__and__, "^": int.__xor__, "|": int.__or__,
}  # fmt: skip
LIMITS: Mapping[str, int] = MappingProxyType({
    "CHAR_BIT": 8, "SCHAR_MIN": -(2**7), "SCHAR_MAX": 2**7 - 1, "UCHAR_MAX": 2**8 - 1, "SHRT_MIN": -(2**15),
    "SHRT_MAX": 2**15 - 1, "USHRT_MAX": 2**16 - 1, "INT_MIN": -(2**31), "INT_MAX": 2**31 - 1, "UINT_MAX": 2**32 - 1,
    "LONG_MIN": -(2**63), "LONG_MAX": 2**63 - 1, "ULONG_MAX": 2**64 - 1, "LLONG_MIN": -(2**63),
    "LLONG_MAX": 2**63 - 1, "ULLONG_MAX": 2**64 - 1, "CHAR_MIN": -(2**7), "CHAR_MAX": 2**7 - 1,
})  # fmt: skip
"""The macros of ``limits.h``, which is not read."""
_DEEPEST = 100
"""Parentheses, signs and ``?`` inside each other."""


@dataclass(frozen=True, slots=True)
class _Value:
    number: int
    dtype: str = "int64"


def evaluate_condition(text: str, span: Span, known: Mapping[str, int] = MappingProxyType({})) -> int:
    """Return the value of a preprocessor expression whose macros are expanded; names that are not ``known`` are 0.

    Raises ParseError, at ``span``, where the text is no such expression.

    >>> from looptune.core.source import Span
    >>> [evaluate_condition(t, Span("", 0, 0)) for t in ("-7 % 3", "-1 > 0u", "0 && 1 / 0", "(1 ? -1 : 0u) > 0")]
    [-1, 1, 0, 1]
    """
    reader = _Reader(text, span, known)
    found = reader.comma()
    if reader.at < len(reader.tokens):
        raise reader.unexpected()
    return found.number


class _Reader:
    def __init__(self, text: str, span: Span, known: Mapping[str, int]) -> None:
        self.span = span
        self.known = known
        self.tokens = [(str(m.lastgroup), m[m.lastgroup]) for m in _TOKEN.finditer(text) if m.lastgroup is not None]
        self.at = 0
        self.depth = 0
        self.skipped = 0
        """How many operators around leave out what is read: it divides by zero without harm."""

    @property
    def word(self) -> str:
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("operator", "")
        return text if kind == "operator" else ""

    def error(self, why: str) -> ParseError:
        return ParseError(f"this condition cannot be evaluated: {why}", self.span)

    def unexpected(self) -> ParseError:
        shown = self.tokens[self.at][1] if self.at < len(self.tokens) else ""
        return self.error(f"{shown} is not expected there" if shown else "it ends too early")

    def accept(self, word: str) -> bool:
        found = self.word == word
        self.at += found
        return found

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise self.error(f"a {word} is missing")

    def comma(self) -> _Value:
        found = self.conditional()
        while self.accept(","):
            found = self.conditional()
        return found

    def conditional(self) -> _Value:
        cond = self.binary(1)
        if not self.accept("?"):
            return cond
        then = self.unless(cond.number == 0, self.comma)
        self.expect(":")
        other = self.unless(cond.number != 0, self.inside(self.conditional))
        chosen = then if cond.number else other
        dtype = "uint64" if "uint64" in (then.dtype, other.dtype) else "int64"
        return _Value(wrap(chosen.number, dtype), dtype)

    def unless(self, skip: bool, read: Callable[[], _Value]) -> _Value:
        self.skipped += skip
        found = read()
        self.skipped -= skip
        return found

    def inside(self, read: Callable[[], _Value]) -> Callable[[], _Value]:
        """``read``, one level deeper."""

        def deeper() -> _Value:
            if self.depth == _DEEPEST:
                raise self.error(f"it is nested more than {_DEEPEST} deep")
            self.depth += 1
            found = read()
            self.depth -= 1
            return found

        return deeper

    def binary(self, least: int) -> _Value:
        lhs = self.unary()
        while (binds := _BINDS.get(op := self.word, 0)) >= least:
            self.at += 1
            known = {"&&": lhs.number == 0, "||": lhs.number != 0}.get(op, False)
            rhs = self.unless(known, lambda above=binds + 1: self.binary(above))  # type: ignore[misc]
            lhs = self.computed(op, lhs, rhs)
        return lhs

    def unary(self) -> _Value:
        op = self.word
        if op in ("-", "+", "~", "!"):
            self.at += 1
            arg = self.inside(self.unary)()
            if op == "!":
                return _Value(int(arg.number == 0))
            return _Value(wrap({"-": -arg.number, "+": arg.number, "~": ~arg.number}[op], arg.dtype), arg.dtype)
        if self.accept("("):
            found = self.inside(self.comma)()
            self.expect(")")
            return found
        return self.primary()

    def primary(self) -> _Value:
        if self.at == len(self.tokens):
            raise self.unexpected()
        kind, text = self.tokens[self.at]
        match kind:
            case "number":
                found = self.number(text)
            case "character":
                constant = character(text, self.span)
                found = _Value(int(constant.value), "uint64" if constant.dtype[0] == "u" else "int64")
            case "name":
                value = self.known.get(text, 0)
                found = _Value(value, "uint64" if value >= 2**63 else "int64")
            case _:
                raise self.unexpected()
        self.at += 1
        return found

    def number(self, text: str) -> _Value:
        if re.match(r"0[xX].*[.pP]|(?!0[xX]).*[.eE]", text) is not None:
            raise self.error(f"{text} is not an integer")
        unsigned = "u" in text.lower()
        value = int(integer(text if unsigned else f"{text}u", self.span).value)
        return _Value(value, "uint64" if unsigned or value >= 2**63 else "int64")

    def computed(self, op: str, lhs: _Value, rhs: _Value) -> _Value:
        if op in ("&&", "||"):
            both = (lhs.number != 0, rhs.number != 0)
            return _Value(int(all(both) if op == "&&" else any(both)))
        if op in ("<<", ">>"):
            return self.shifted(lhs, rhs.number if op == "<<" else -rhs.number)
        dtype = "uint64" if "uint64" in (lhs.dtype, rhs.dtype) else "int64"
        a, b = wrap(lhs.number, dtype), wrap(rhs.number, dtype)
        if op in _COMPARES:
            return _Value(int(_COMPARES[op](a, b)))
        if op in _COMPUTES:
            return _Value(wrap(_COMPUTES[op](a, b), dtype), dtype)
        if b == 0:
            if not self.skipped:
                raise self.error("it divides by zero")
            return _Value(0, dtype)
        quotient = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
        return _Value(wrap(quotient if op == "/" else a - b * quotient, dtype), dtype)

    def shifted(self, value: _Value, left: int) -> _Value:
        """Shifted to the right where ``left`` is negative; bits that leave are lost."""
        far = max(-64, min(64, left))
        number = value.number << far if far >= 0 else value.number >> -far
        return _Value(wrap(number, value.dtype), value.dtype)
