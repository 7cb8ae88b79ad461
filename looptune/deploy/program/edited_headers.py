"""Copies of the headers in which codelets are defined, with the calls of these, and of the headers that include them.

    app.c       #include "all.h"          ─▶    app.looptune.c     #include "all_1a2b3c4d.h"
    all.h       #include "kernels.h"      ─▶    all_1a2b3c4d.h     #include "kernels_5e6f7a8b.h"

Each source file of a program has copies of its own: what it defines before it includes a header may change the header.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.errors import UnsupportedError
from looptune.core.escape import quote
from looptune.deploy.program.file_names import digest
from looptune.deploy.text_replacement import Edit, apply_edits
from looptune.frontend.source_text import encoding, exact_text, read_source

if TYPE_CHECKING:
    from looptune.frontend import Unit
    from looptune.frontend.preprocess import Include, Preprocessed


@dataclass(frozen=True, slots=True)
class EditedHeader:
    """A copy of the header at ``path``: a file with ``name`` in the folder of the generated files."""

    path: Path
    name: str
    content: bytes


def check_copied(source: Preprocessed, unit: Unit) -> None:
    """Raise UnsupportedError if a copy of the header with the codelet cannot take the header's place.

    It cannot where its text stands in the program more than once, or if one directive includes several files.
    """
    (part,) = unit.parts
    begin, end = part.body
    own = (t for t in source.tokens if t.span.file == part.path and t.macro is None)
    inside = [t.place for t in own if t.place is not None and begin <= t.place[0] < end]
    if len(inside) > len({*inside}):
        raise UnsupportedError(f"the header with {part.function} is included more than once: include it once, "
                               "or define the codelet in the source file", unit.codelet.span)  # fmt: skip
    named: dict[tuple[str, int], str] = {}
    for one in source.includes:
        if named.setdefault((one.file, one.start), one.path) != one.path:
            raise UnsupportedError("an #include of this program names several files by a macro: name the header with "
                                   f"{part.function}", unit.codelet.span)  # fmt: skip


def edited_headers(
    source: Preprocessed, main: str, edits: Mapping[str, Sequence[Edit]]
) -> tuple[tuple[EditedHeader, ...], tuple[Edit, ...]]:
    """Return the copies of headers, and the edits of the file ``main`` that include them.

    ``edits`` are those of each header with codelets, by its name in ``source``.
    """
    real = {file: Path(file).resolve() for file in source.sources}
    includes = [(real[one.file], one, Path(one.path).resolve()) for one in source.includes]
    copied = {real[file] for file in edits}
    while more := {file for file, _, included in includes if included in copied} - copied:
        copied |= more
    names = {path: f"{path.stem}_{digest(path, main)}{path.suffix}" for path in copied - {real[main]}}
    given = {real[file]: those for file, those in edits.items()}
    made: list[EditedHeader] = []
    for path, name in sorted(names.items()):
        here = {one.start: _edit(one, names.get(to, str(to))) for file, one, to in includes
                if file == path and (to in names or _is_quoted(one, source))}  # fmt: skip
        data = read_source(path)
        head = f"#line 1 {quote(_shown(path, source))}\n"
        text = apply_edits(exact_text(data), [*given.get(path, ()), *here.values()], head)
        made.append(EditedHeader(path, name, text.encode(encoding(data), errors="backslashreplace")))
    own = {one.start: _edit(one, names[to]) for file, one, to in includes if file == real[main] and to in names}
    return tuple(made), tuple(own.values())


def mentions_codelets(path: Path, folders: Sequence[Path]) -> bool:
    """Tell whether the text of a source file, or of a header that it includes, has codelets or scops."""
    texts = [exact_text(read_source(path))]
    for name in re.findall(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', texts[0], flags=re.MULTILINE):
        found = next((f for f in (path.parent / name, *(d / name for d in folders)) if f.is_file()), None)
        texts += [] if found is None else [exact_text(read_source(found))]
    return any(re.search(r"\b(?:hmpp|scop)\b", text) is not None for text in texts)


def _edit(one: Include, path: str) -> Edit:
    return Edit(one.start, one.end, f'"{path}"')


def _is_quoted(one: Include, source: Preprocessed) -> bool:
    """Tell whether a header is looked for beside the one that includes it, where its copy is not."""
    return source.sources[one.file][one.start] != "<"


def _shown(path: Path, source: Preprocessed) -> str:
    return next(file for file in source.sources if Path(file).resolve() == path)
