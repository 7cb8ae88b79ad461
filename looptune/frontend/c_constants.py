"""C's constants: integers typed by value, base and suffix, floats rounded once, characters with all escapes."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from looptune.core.errors import ParseError
from looptune.frontend.symbol_table import refuse
from looptune.ir.nodes import Const
from looptune.ir.simplify import wrap

if TYPE_CHECKING:
    from looptune.core.source import Span

MOST_DIGITS = 4000
"""Of a constant; Python reads a few more."""
_LONGEST = 400
"""Characters of an integer constant, zeros in front of it too."""
_CHARACTER = re.compile(r"(L|u8|u|U)?'(.*)'", re.DOTALL)
_PREFIXED = {"L": "int32", "u8": "uint8", "u": "uint16", "U": "uint32"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]+)|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|(.)", re.DOTALL)
_SIMPLE = {
    "n": 10, "t": 9, "r": 13, "\\": 92, "'": 39, '"': 34, "?": 63, "a": 7, "b": 8, "e": 27, "E": 27, "f": 12, "v": 11,
}  # fmt: skip
_HEX = re.compile(r"0[xX]([0-9a-fA-F]*)\.?([0-9a-fA-F]*)[pP]([+-]?\d+)")
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)([uUlL]*)")
_BASE = {"0x": 16, "0X": 16, "0b": 2, "0B": 2}


def number(text: str, span: Span, float_literals: bool = False) -> Const:
    """Return the C constant with its type in C; ``float_literals``: constants of type double become float.

    >>> from looptune.core.source import Span
    >>> number("0x10u", Span("", 0, 0)), number("1.5f", Span("", 0, 0)).dtype
    (Const(value=16, dtype='uint32'), 'float32')
    """
    if len(text) > MOST_DIGITS:
        raise ParseError(f"a constant of {len(text)} characters is too long: the limit is {MOST_DIGITS}", span)
    if text.endswith("'"):
        return character(text, span)
    if (re.match(r"0[xX]", text) is None and re.search(r"[.eE]", text)) or re.match(r"0[xX].*[.pP]", text):
        body = text[:-3] if text[-3:].lower() == "f16" else text.rstrip("fFlL")
        suffix = text[len(body) :].lower()
        if suffix == "l":
            raise refuse("long double", "double", span)
        # A constant of _Float16 has the precision of float, like all arithmetic of that type.
        dtype = "float32" if suffix in ("f", "f16") or float_literals else "float64"
        return Const(rounded(body, dtype), dtype, span=span)
    return integer(text, span)


def integer(text: str, span: Span) -> Const:
    """Return the first of the types that C tries in which the value fits.

    >>> from looptune.core.source import Span
    >>> [number(t, Span("", 0, 0)).dtype for t in ("2147483648", "0x80000000", "1u", "1l")]
    ['int64', 'uint32', 'uint32', 'int64']
    """
    found = _INTEGER.fullmatch(text)
    if found is None:
        raise ParseError(f"{text} is not a constant", span)
    body, suffix = found[1], found[2].lower()
    if len(body) > _LONGEST:
        raise ParseError(f"{_short(text)} fits no integer type", span)
    base = _BASE.get(body[:2], 8 if body[0] == "0" else 10)
    value = int(body[2:] if base in (2, 16) else body, base)
    types = ["int32", "uint32", "int64", "uint64"]
    if "u" in suffix:
        types = ["uint32", "uint64"]
    elif base == 10:
        types = ["int32", "int64"]
    if "l" in suffix:
        types = [t for t in types if t in ("int64", "uint64")]
    fitting = [t for t in types if value == wrap(value, t)]
    if not fitting:
        raise ParseError(f"{_short(text)} fits no integer type", span)
    return Const(value, fitting[0], span=span)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:20]}... of {len(text)} characters"


def character(text: str, span: Span) -> Const:
    """Return the value that gcc gives a character constant.

    A plain one is an int with the value of a (signed) char, several characters are its bytes.

    >>> from looptune.core.source import Span
    >>> [number(t, Span("", 0, 0)).value for t in (r"'\\x41'", r"'\\377'", "'ab'", r"'\\0'")]
    [65, -1, 24930, 0]
    """
    found = _CHARACTER.fullmatch(text)
    if found is None or not found[2]:
        raise ParseError(f"{text} is not a character", span)
    codes = [_code(m, found[1] is None, span) for m in _ESCAPE.finditer(found[2])]
    if found[1] is not None:
        if len(codes) != 1:
            raise refuse(f"{_short(text)}, several characters in one,", "one character", span)
        return Const(wrap(codes[0][0], _PREFIXED[found[1]]), _PREFIXED[found[1]], span=span)
    units = [unit for code in codes for unit in code]
    if len(units) > 4:
        raise refuse(f"{_short(text)}, more characters than an int has bytes,", "one character", span)
    value = 0
    for unit in units:
        value = value << 8 | unit & 255
    return Const(wrap(value, "int8" if len(units) == 1 else "int32"), span=span)


def _code(m: re.Match[str], plain: bool, span: Span) -> tuple[int, ...]:
    """One character of a constant: its bytes where it is ``plain``, else its number."""
    hexadecimal, octal, four, eight, escaped, written = m.groups()
    if hexadecimal is not None or octal is not None:
        return (int(hexadecimal, 16) if hexadecimal is not None else int(octal, 8),)
    if escaped is not None:
        if escaped not in _SIMPLE:
            raise ParseError(f"\\{escaped} is not an escape sequence of C", span)
        return (_SIMPLE[escaped],)
    point = ord(written) if written is not None else int(four if four is not None else eight, 16)
    if point > 0x10FFFF or 0xD800 <= point < 0xE000:
        raise ParseError(f"{point:#x} is not a character", span)
    return tuple(chr(point).encode()) if plain else (point,)


def rounded(text: str, dtype: str) -> float:
    """Return the value of the float type nearest to a constant without its suffix; ties go to the even one.

    >>> rounded("0x1.000001000000001p0", "float32") > 1, rounded("1e999", "float64")
    (True, inf)
    """
    hexadecimal = _HEX.fullmatch(text)
    try:
        double = float.fromhex(text) if hexadecimal is not None else float(text)
    except OverflowError:  # of fromhex alone
        double = float("inf")
    if dtype == "float64" or double == 0 or double == float("inf"):
        return double
    if hexadecimal is None:
        exact = Fraction(text)
    else:
        whole, part, exponent = hexadecimal.groups()
        exact = int(f"0{whole}{part}", 16) * Fraction(2) ** (int(exponent) - 4 * len(part))
    with np.errstate(over="ignore"):
        near = np.float32(double)
        around = (near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(0)))
    return float(min(around, key=lambda f: (abs(_exactly(f) - exact), int(f.view(np.uint32)) % 2)))


def _exactly(value: np.float32) -> Fraction:
    """Infinity is where the next float would be."""
    return Fraction(2) ** 128 if np.isinf(value) else Fraction(float(value))
