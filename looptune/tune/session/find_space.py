"""The space that a file is swept over: that of a space file, of the file's pragmas, or one derived from its loops."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from looptune.core.cache_file import read_file
from looptune.core.errors import DirectiveError, UsageError
from looptune.frontend import Unit, directive_parser
from looptune.runtime.problem_sizes import integers
from looptune.schedule import directives
from looptune.schedule.binding import original_loops_at
from looptune.tune.formats import t1
from looptune.tune.space.derive import derive, matrix_products
from looptune.tune.space.pragma_choices import pragma_space
from looptune.tune.space.space import Space, parse

if TYPE_CHECKING:
    from looptune.core.source import Span
    from looptune.ir.nodes import Codelet
    from looptune.schedule.analysis import Analysis
    from looptune.schedule.directives.base import Transform

BLOCKS = ("codelet: grid blocksize", "codelet: pack")
"""How the lines of a derived space begin that say which blocks of threads there are."""


def find_space(
    file: Path, given: Path | None, unit: Unit, analysis: Analysis, *, gpu: bool, seconds: float = math.inf
) -> Space:
    """Return the space to sweep for ``file``.

    It is that of the space file or T1 problem ``given``, else of the file beside it, else of its pragmas, else derived
    in about so many ``seconds``. For products of doubles on a GPU, that of a file beside it begins with the sections
    for tensor cores that a derived space has.
    Raises UsageError for a file that cannot be read, ParseError and DirectiveError at a line of it.
    """
    device = "gpu" if gpu else "cpu"
    path = given if given is not None else space_file(file)
    if path is None:
        own = pragma_space(unit)
        text = "" if own is not None else derive(analysis, seconds, integers(unit.codelet, unit.values), device)
        return own if own is not None else parse(text if gpu else without_blocks(text), "<derived>").on(device)
    try:
        text = read_file(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read the space file {path}: {getattr(error, 'strerror', 'it is not text')}"
        ) from error
    problem_file = path.suffix == ".json"
    name = f"{path} as a space file" if problem_file else str(path)
    space = parse(t1.space_text(path, text) if problem_file else text, name)
    _check(space, analysis.codelet)
    if given is None and gpu and (cores := matrix_products(analysis, integers(unit.codelet, unit.values))):
        space = replace(space, sections=(*parse(cores, "<derived>").sections, *space.sections))
    return space.on(device)


def without_blocks(text: str) -> str:
    r"""Return the text of a space without the shapes of blocks, which a CPU does not have, and what then is equal.

    >>> without_blocks("loop 1: tile 8\ncodelet: grid blocksize {32x8, 32x4}\nor\nloop 1: tile 8")
    'loop 1: tile 8'
    """
    sections: dict[str, None] = {}
    for section in text.rstrip("\n").split("\nor\n"):
        lines = (line for line in section.splitlines() if not line.startswith(("#", *BLOCKS)))
        own = "\n".join(lines)
        if own and not own.startswith("for gpu"):
            sections[own] = None
    return "\nor\n".join(sections)


def _check(space: Space, codelet: Codelet) -> None:
    """DirectiveError at the line of a space file that names no loop of the codelet, or a directive there cannot be.

    Where a directive divides loops, the lines after it may name those that it makes: they are looked for when it is
    applied.
    """
    for section in space.sections:
        divided = False
        for line in section.lines:
            for address in line.addresses if not divided else ():
                original_loops_at(codelet, address.where, address.loop, line.span)
            words = [line.template.pick(index) for index in line.template.cover()]
            kinds = [_kind(text, line.span) for text in words if text.strip()]
            divided = divided or any(kind.stage == "division" for kind in kinds)


def _kind(text: str, span: Span) -> type[Transform]:
    """Return the transform of a directive. Raises DirectiveError if it takes no such arguments."""
    said = directives.current(directive_parser.parse(text, span))
    try:
        for _, one in directives.find(said).per_loop(said):
            directives.find(one).parse(one)
    except DirectiveError as error:
        raise DirectiveError(error.message, span) from error
    return directives.find(said)


def space_file(file: Path) -> Path | None:
    """Return the space file that belongs to a C file, or None if there is none.

    It is ``pragmas/<name>.pragmas`` beside the file's folder, else ``<name>.pragmas`` beside the file.
    """
    places = (file.parent.parent / "pragmas" / f"{file.stem}.pragmas", file.with_suffix(".pragmas"))
    return next((p for p in places if p.exists()), None)
