"""Sections about one nest of several, with what is likely best for the others.

    loop 2: rfactor {64, 256}                  loop 2: rfactor {64, 256}
    or                                   ==>   loop 5: permute c, i, b             and what was there before
    loop 5: permute {c, i, b | b, c, i}        or ...

Each nest is a launch of its own, so that what is good for one does not depend on the others; but a version is measured
as a whole. The likely best for a nest is the first version of the first section that is about it alone: sections are in
the order in which they win most often. Its blocks are those of its loops then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from looptune.ir.nodes import Loop
from looptune.ir.rewrite import walk_stmts
from looptune.tune.space.space import parse

if TYPE_CHECKING:
    from looptune.tune.space.patterns import Patterns

_PLACES = re.compile(r"loop ([\d., ]+): ")
_BLOCK = "codelet: grid blocksize "


@dataclass(frozen=True, slots=True)
class NestSection:
    """A section whose lines are about loops of some outermost nests, by their numbers."""

    title: str
    device: str
    lines: tuple[str, ...]
    nests: frozenset[int]

    def first(self) -> list[str]:
        """Return the lines of its first version, with its block as that of its nests."""
        version = next(iter(parse("\n".join(self.lines), "<derived>")), None)
        lines = [] if version is None else version.text.splitlines()
        own = ", ".join(map(str, sorted(self.nests)))
        return [line.replace("codelet", f"loop {own}", 1) if line.startswith(_BLOCK) else line for line in lines]

    def text(self, more: Iterable[str]) -> str:
        """Return the section with further lines, before its block."""
        own = [line for line in self.lines if not line.startswith(_BLOCK)]
        block = [line for line in self.lines if line.startswith(_BLOCK)]
        return "\n".join([*([self.title] if self.title else []), *([self.device] if self.device else []),
                          *own, *more, *block])  # fmt: skip


def with_others(found: Patterns, sections: Sequence[str]) -> Iterator[str]:
    """Yield the sections, each about some of a GPU's nests after one that has the likely best of the others as well."""
    top = _outermost_nests(found)
    read = [_read(section, top) for section in sections]
    likely: dict[int, list[str]] = {}
    for section in read:
        if section is not None and len(section.nests) == 1:
            (nest,) = section.nests
            if nest not in likely and (lines := section.first()) and found.legal(lines):
                likely[nest] = lines
    for text, section in zip(sections, read, strict=True):
        if section is not None and section.nests:
            others = [line for nest in sorted(likely) if nest not in section.nests for line in likely[nest]]
            if others and found.legal([*section.lines, *others]):
                yield section.text(others)
        yield text


def _outermost_nests(found: Patterns) -> Mapping[int, int]:
    """Return the number of the outermost loop around each loop of the text, by its number."""
    return {
        f.number: nest.number
        for nest in walk_stmts(found.body)
        if isinstance(nest, Loop) and any(nest is s for s in found.body)
        for f in walk_stmts((nest,))
        if isinstance(f, Loop)
    }


def _read(section: str, top: Mapping[int, int]) -> NestSection | None:
    """Return the section if all its lines but the block are about loops of the text, None otherwise, or for a CPU."""
    title = device = ""
    lines: list[str] = []
    nests: set[int] = set()
    for line in section.splitlines():
        places = _PLACES.match(line)
        if line.startswith("#"):
            title = line
        elif line.startswith("for "):
            device = line
        elif line.startswith(_BLOCK):
            lines.append(line)
        elif places is not None:
            lines.append(line)
            numbers = {int(place.partition(".")[0]) for place in places[1].split(",")}
            if not numbers <= top.keys():
                return None
            nests |= {top[number] for number in numbers}
        else:
            return None
    return None if device == "for cpu" else NestSection(title, device, tuple(lines), frozenset(nests))
