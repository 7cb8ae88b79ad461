r"""Escape text from outside (directives, names of devices, kernels and files, commands) in generated text.

docstring        within the double quotes of a Python docstring
quoted           a Python string literal
comment_lines    the lines of a /* C comment */
printable        one line on a terminal, or in a message

None of them changes plain text of letters, digits and the usual marks, so that what people read is what was written.

>>> print(docstring('2" x 4""'))
2" x 4\"\"
>>> comment_lines(["*/ int x; /*"])
['* / int x; / *']
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any


def docstring(text: str) -> str:
    """Escape ``text`` for a docstring between three double quotes; it may have several lines."""
    lines = (_escaped(line.replace("\\", "\\\\")) for line in text.split("\n"))
    return re.sub(r'"(?="|\Z)', r"\"", "\n".join(lines))


def quote(text: str) -> str:
    r"""Return the literal of ``text`` with double quotes.

    >>> print(quote('a"b' + chr(10)))
    "a\"b\n"
    """
    inner = text.replace("\\", "\\\\").replace('"', r"\"").replace("\n", r"\n").replace("\t", r"\t")
    return f'"{_escaped(inner)}"'


def comment_lines(lines: Iterable[str]) -> list[str]:
    """Split ``lines`` where they have line breaks, and take out what opens or closes a comment of C.

    A backslash at the end of a line joins it to the next one, where a slash may stand: it is followed by a point.
    """
    plain = (_escaped(line) for text in lines for line in (text.split("\n") if text else [""]))
    apart = (re.sub(r"\*(?=/)|/(?=\*)", lambda mark: f"{mark[0]} ", line) for line in plain)
    return [re.sub(r"(\\|\?\?/)(\s*)\Z", r"\1.\2", line) for line in apart]


def comment(text: str) -> str:
    """Escape a text of one or several lines for a comment of C."""
    return "\n".join(comment_lines([text]))


def printable(text: str) -> str:
    """Escape what moves the cursor, colours text, ends a line or has no place in UTF-8.

    >>> printable(chr(27) + "[31mred")
    '\\\\x1b[31mred'
    """
    return _escaped(text.replace("\n", r"\n"))


def utf8(text: str) -> str:
    r"""Spell bytes of a file's name or an argument that are no text as ``\xff``.

    >>> print(utf8("a" + chr(0xdcff)))
    a\xff
    """
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def dump_json(value: Any) -> str:
    """Return JSON of a value that may contain arbitrary file names: halves of surrogate pairs are escaped.

    >>> dump_json(["a" + chr(0xdcff)])
    '["a\\\\\\\\udcff"]'
    """
    text = json.dumps(value)
    if "\\ud" not in text:
        return text
    return re.sub(r"[\ud800-\udfff]", lambda half: rf"\\u{ord(half[0]):x}", json.dumps(value, ensure_ascii=False))


def _escaped(text: str) -> str:
    """Return the text without unprintable characters: control characters, line breaks, halves of surrogate pairs."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)
