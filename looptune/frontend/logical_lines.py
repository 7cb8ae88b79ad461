r"""Join the physical lines of C to logical ones, and map each character to its place in the file.

A backslash at the end of a line continues it in the next one, also in comments such as ``// C:\data\``, in tokens and
in directives. The digraphs ``<: :> <% %> %:`` stand for ``[ ] { } #``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

_JOIN = re.compile(r"\\[ \t]*\n")
_DIGRAPHS = {"<:": "[ ", ":>": "] ", "<%": "{ ", "%>": "} ", "%:": "# "}
_DIGRAPH = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|<:|:>|<%|%>|%:""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SplicedText:
    r"""A text with its lines joined; its k-th piece begins at ``starts[k]``, and in the file at ``offsets[k]``.

    A logical line is followed by as many newlines as it has in the file, so that lines keep their numbers.

    >>> line = splice_lines("int \\\nn;\nm")
    >>> line.text, line.offset(4), line.offset(line.text.index("m"))
    ('int n;\n\nm', 6, 9)
    """

    text: str
    starts: Sequence[int]
    offsets: Sequence[int]

    def offset(self, offset: int) -> int:
        """Return the offset in the file of the character at ``offset`` of the text."""
        piece = bisect_right(self.starts, offset) - 1
        return self.offsets[piece] + offset - self.starts[piece]


def splice_lines(text: str) -> SplicedText:
    """Return the text with continued lines joined and digraphs replaced; it maps each character to its position."""
    if "\\" not in text:
        return SplicedText(replace_digraphs(text), (0,), (0,))
    pieces: list[str] = []
    starts, places = [0], [0]
    length = at = owed = 0

    def put(piece: str) -> None:
        nonlocal length
        pieces.append(piece)
        length += len(piece)

    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end + 1
        join = _JOIN.search(text, at, end)
        put(text[at : join.start() if join else end])
        owed += join is not None
        at = end
        if not join and owed:
            put("\n" * owed)
            owed = 0
        elif not join:
            continue
        starts.append(length)
        places.append(at)
    return SplicedText(replace_digraphs("".join(pieces)), tuple(starts), tuple(places))


def replace_digraphs(text: str) -> str:
    """Return the text with digraphs replaced by what they stand for, each followed by a blank."""
    if not any(digraph in text for digraph in _DIGRAPHS):
        return text
    return _DIGRAPH.sub(lambda found: _DIGRAPHS.get(found[0], found[0]), text)
