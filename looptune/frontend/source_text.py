"""The text of source files: what is read, in which encoding, with which line ends, and which names it declares."""

from __future__ import annotations

import re
import stat
from pathlib import Path

from looptune.core.cache_file import read_file
from looptune.core.errors import ParseError, UsageError


def read_source(path: Path) -> bytes:
    """Return the bytes of a source file. Raises ParseError if it is a device or too large."""
    mode = path.stat().st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise ParseError(f"{path} is a device, not a source file")
    try:
        return read_file(path)
    except OSError as error:
        raise ParseError(f"cannot read {path}: {error.strerror}") from error


def encoding(data: bytes) -> str:
    """Return the encoding of a source file: UTF-16 with a byte order mark, UTF-8, or else Latin-1."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def exact_text(data: bytes) -> str:
    """Return the exact text of a source file, including a byte order mark and line ends."""
    return data.decode(encoding(data), errors="replace")


def decode(data: bytes, path: str) -> str:
    """Return the text of a source file; lines end in one newline."""
    text = exact_text(data).removeprefix("\ufeff")
    if "\0" in text:
        raise UsageError(f"not a text file: {path}")
    return normalise_line_ends(text)


def normalise_line_ends(text: str) -> str:
    """Return the text with one newline per line end, and a space for all else that ``str.splitlines`` splits at."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub("[\v\f\x1c-\x1e\x85\u2028\u2029]", " ", text)


def is_declared(text: str, name: str) -> bool:
    """Tell whether the text declares ``name`` as a parameter or variable, so that it cannot be a macro to define.

    >>> is_declared("void f(int n, double *x)", "n"), is_declared("#define n 3", "n"), is_declared("return n;", "n")
    (True, False, False)
    """
    plain = re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#(?:[^\n\\]|\\.|\\\n)*", " ", text, flags=re.DOTALL | re.MULTILINE)
    before = re.findall(rf"\b([A-Za-z_]\w*)\s+{re.escape(name)}\b(?!\s*\()", plain)
    return any(word not in ("return", "else", "case", "goto", "sizeof", "do") for word in before)
