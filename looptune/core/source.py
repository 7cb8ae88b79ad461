"""Places in source text, and messages that point at them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Span:
    """Columns ``[col, col + width)`` of one line; ``line`` and ``col`` count from 1.

    ``text`` is the whole source line, so that a message needs no second look at the file.
    """

    file: str
    line: int
    col: int
    width: int = 1
    text: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}" if self.line else self.file


def location(span: Span, near: Span) -> str:
    """Return ``line:col``, with the file name if it is not the file of ``near``."""
    return f"{span.line}:{span.col}" if span.file == near.file else str(span)


NOWHERE = Span("<built>", 0, 0, 0)


def with_severity(severity: str, message: str) -> str:
    """Return ``message`` with "error" or "warning" in it, after the place that ``caret`` put first, as compilers do.

    >>> with_severity("warning", "a.c:1:6: unknown loop")
    'a.c:1:6: warning: unknown loop'
    >>> with_severity("error", "no such file: a.c")
    'error: no such file: a.c'
    """
    placed = re.match(r"[^:\n]+:\d+:\d+: ", message)
    start = placed.end() if placed is not None else 0
    return f"{message[:start]}{severity}: {message[start:]}"


def caret(span: Span, message: str) -> str:
    """Return the message with its line and carets under the span, in the form compilers use.

    >>> print(caret(Span("a.c", 1, 6, 3, "for (itr = 0;;)"), "unknown loop"))
    a.c:1:6: unknown loop
      for (itr = 0;;)
           ^^^
    """
    if not span.text.strip():
        return f"{span}: {message}"
    width = max(1, min(span.width, len(span.text) - span.col + 1))
    pad = "".join("\t" if ch == "\t" else " " for ch in span.text[: span.col - 1])
    return f"{span}: {message}\n  {span.text}\n  {pad}{'^' * width}"
