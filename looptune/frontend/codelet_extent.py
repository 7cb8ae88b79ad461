"""Find the text of a codelet: the body of its function, or the part that pragmas or the user choose."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.errors import UnsupportedError
from looptune.core.source import Span
from looptune.frontend.source_layout import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from looptune.frontend import c_ast
    from looptune.frontend.codelet_selection import Region
    from looptune.frontend.preprocess import Preprocessed

_COMMENTS = re.compile(r"/\*.*?\*/|//.*")


def codelet_extent(source: Preprocessed, path: str, function: c_ast.Function, region: Region | None) -> tuple[int, int]:
    """Return the offsets of the text that the codelet's body is."""
    text = source.sources[path]
    starts = [0, *(m.end() for m in re.finditer("\n", text)), len(text) + 1]

    def offset(span: Span) -> int:
        return starts[span.line - 1] + span.col - 1

    if region is None:
        return offset(function.open), offset(function.close) + 1
    if region.begin.file != path:
        raise UnsupportedError(f"a part of {function.name} in a file that it includes cannot be a codelet: write it in "
                               f"{Path(path).name}", region.begin)  # fmt: skip
    if region.kind == "nest":
        return _nest_extent(source, function, region, offset(Span(path, region.begin.line, 1)))
    if region.kind == "block":
        return offset(region.begin), offset(source.closing(region.begin)) + 1
    lines = text.split("\n")
    _check_own_lines(lines, region)
    end = region.end.line - 1
    while lines[end - 1].endswith("\\"):
        end -= 1
    return min(starts[region.begin.line], len(text)), starts[end]


def _check_own_lines(lines: Sequence[str], region: Region) -> None:
    """Raise UnsupportedError if a statement of the scop stands in the line of one of its pragmas."""

    def parted(span: Span) -> tuple[str, str]:
        """Return what stands before the pragma in its line, or before the macro that it comes from, and what after."""
        line = lines[span.line - 1]
        if line.lstrip().startswith("#") or lines[span.line - 2].endswith("\\"):
            return "", ""
        before = re.sub(r"\b_Pragma\s*$", "", line[: span.col - 1])
        return before, re.sub(r"^(?:\w+\s*)?(?:\(\s*(?:\"[^\"]*\"|[^()\"]*)\s*\))?", "", line[span.col - 1 :], count=1)

    if _COMMENTS.sub("", parted(region.begin)[1]).strip():
        raise UnsupportedError("statements stand after this scop's pragma in its line: write it in a line of its own",
                               region.begin)  # fmt: skip
    if _COMMENTS.sub("", parted(region.end)[0]).strip():
        raise UnsupportedError("statements stand before this end of a scop in its line: write it in a line of its own",
                               region.end)  # fmt: skip


def _nest_extent(source: Preprocessed, function: c_ast.Function, region: Region, line: int) -> tuple[int, int]:
    """Return the offsets of a loop; ``line`` is that of the line in which it begins with its directives.

    Raises UnsupportedError for a loop that a macro makes.
    """
    path = function.open.file
    body = layout(path, source.sources[path], source.tokens, function.open)
    token = None if body is None else body.find(region.end, ("for", "while", "do"))
    run = None if body is None or token is None else body.run(token, token)
    if body is not None and run is not None:
        start, end = body.start(run.tokens[0]), body.end(run.tokens[1])
        if start is not None and end is not None:
            return start if len(region.items) == 1 else line, end
    raise UnsupportedError("this loop, which comes from a macro, cannot be a codelet: choose its function", region.end)
