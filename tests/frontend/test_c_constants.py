"""Constants of C: integers typed by value, base and suffix, floats rounded once, characters with all escapes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from looptune.core.errors import LooptuneError
from looptune.core.source import Span
from looptune.frontend.c_constants import number
from looptune.ir.c_printer import constant
from looptune.ir.nodes import Const

HERE = Span("", 0, 0)

CHARACTERS = {
    r"'\x41'": 65, r"'\101'": 65, r"'\?'": 63, r"'\e'": 27, r"'\0'": 0, r"'\377'": -1, r"'\xff'": -1, "'ab'": 24930,
    r"'\''": 39, "'\"'": 34, r"'\\'": 92, "L'a'": 97, r"L'\u00e9'": 233, "u'b'": 98, r"U'\U0001F600'": 0x1F600,
    "u8'a'": 97, "'abcd'": 0x61626364, r"'\12a'": 10 * 256 + 97, r"'\n'": 10, "'\u00e9'": 0xC3A9,
}  # fmt: skip


@pytest.mark.parametrize("text", CHARACTERS)
def test_characters_have_the_value_that_gcc_gives_them(text: str) -> None:
    """Every escape sequence counts, and several characters are bytes of an int."""
    assert number(text, HERE).value == CHARACTERS[text]


INTEGERS = {
    "2147483647": "int32", "2147483648": "int64", "0x80000000": "uint32",
    "0b10000000000000000000000000000000": "uint32",
    "020000000000": "uint32", "4294967296u": "uint64", "1l": "int64", "0x8000000000000000l": "uint64", "1ul": "uint64",
    "0xFFFFFFFFFFFFFFFF": "uint64", "1ll": "int64", "0": "int32", "4294967295u": "uint32", "0x7fffffff": "int32",
}  # fmt: skip


@pytest.mark.parametrize("text", INTEGERS)
def test_integers_have_the_first_type_of_c_that_holds_them(text: str) -> None:
    """Decimal ones without a u are signed; binary, octal and hexadecimal ones may be unsigned."""
    assert number(text, HERE).dtype == INTEGERS[text]


@pytest.mark.parametrize(
    "text", ["9" * 5000, "1." + "0" * 5000, "9223372036854775808", "''", r"'\q'", "'abcde'", "L'ab'", r"'\uD800'", "08"]
)
def test_what_is_no_constant_is_refused(text: str) -> None:
    """A message, no traceback."""
    with pytest.raises(LooptuneError):
        number(text, HERE)


FLOATS = {
    "0x1.000001000000001p0f": "0x1.000002p+0", "1.000000059604644775390625f": "0x1.0p+0",
    "1.00000005960464477539062500000001f": "0x1.000002p+0", "0x1.000003p0f": "0x1.000004p+0",
    "3.4028235677973366e38f": "0x1.fffffep+127", "3.40282356779733661637539395458142568448e38f": "inf",
    "0x1.ffffff0000000000001p127f": "inf", "1e-46f": "0x0.0p+0", "7.0064923216240854e-46f": "0x1p-149",
    "0.1f": "0x1.99999ap-4", "0.1": "0x1.999999999999ap-4", "1e999": "inf", "0x1p9999f": "inf",
}  # fmt: skip


@pytest.mark.parametrize("text", FLOATS)
def test_floats_are_rounded_once(text: str) -> None:
    """A constant is the nearest value of its own type, not of a double's; what is printed is read as the same."""
    found = number(text, HERE)
    assert found.value == float.fromhex(FLOATS[text])
    if not math.isinf(found.value):
        assert number(constant(found), HERE) == found


def test_without_doubles_a_constant_is_rounded_once_too() -> None:
    """Unsuffixed constants that are read as floats are rounded from their text."""
    assert number("1.00000005960464477539062500000001", HERE, float_literals=True).value == 1 + 2.0**-23
    assert number("0.1", HERE, float_literals=True) == Const(float(np.float32(0.1)), "float32")
