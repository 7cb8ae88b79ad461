"""Replacements of parts of a file's text, which keep its byte order mark, its line ends and all the rest."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of a text: ``text`` replaces the characters from ``start`` to ``end``."""

    start: int
    end: int
    text: str


def apply_edits(raw: str, edits: Sequence[Edit], head: str = "") -> str:
    """Return the exact text of a file, with its byte order mark and line ends, after edits; ``head`` comes first.

    The edits are those of the text with one newline per line end, see ``decode``. What they leave alone is as it was.
    """
    mark = "\ufeff" if raw.startswith("\ufeff") else ""
    raw = raw.removeprefix(mark)
    ends = "\r\n" if "\r\n" in raw else "\n"
    returns = [m.start() - k for k, m in enumerate(re.finditer("\r\n", raw))]

    def place(offset: int) -> int:
        return offset + bisect_left(returns, offset)

    text, at = head.replace("\n", ends), 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        text += raw[place(at) : place(edit.start)] + edit.text.replace("\n", ends)
        at = edit.end
    return mark + text + raw[place(at) :]
