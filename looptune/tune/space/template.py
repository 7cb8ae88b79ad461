"""Text with choices in braces, numbered as a mixed-radix number.

    unroll {1..8}, {contiguous, split}      16 texts:   0 'unroll 1, contiguous'   1 'unroll 1, split'   2 'unroll 2, …
    {32x8, 16x16}      items                 {2..16 by 2}        a range, both ends included
    {i, j, k | i, k, j}   with a bar: alternatives, each of them a template, so braces nest; an empty one is no text

The number of texts is exact, and any text is found from its number in time linear in the template: nothing is
enumerated. The last choice turns fastest. ParseError points at the brace or the item.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from looptune.core.errors import ParseError
from looptune.core.source import Span
from looptune.schedule import directives
from looptune.schedule.directive_lines import subspan

_RANGE = re.compile(r"(\d{1,9})\s*\.\.\s*(\d{1,9})(?:\s+by\s+(\d{1,9}))?", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_CLOSED = re.compile(r"\{[^{}]*\}")
_WORDS = re.compile(r"(?:\w+\s+)*(\w+)\s+")
_DEEPEST = 40
_OPEN, _CLOSE = "{([", "})]"

Note = Callable[["Choice", "str | int"], None]
"""Told each choice passed through and the alternative taken, from left to right."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text without choices."""

    text: str
    size: int = 1

    def pick(self, index: int, note: Note) -> str:
        return self.text

    def cover(self) -> Iterator[int]:
        yield 0


@dataclass(frozen=True, slots=True)
class Range:
    """The integers ``first, first + step, ...`` up to ``last`` inclusive."""

    first: int
    last: int
    step: int

    @property
    def size(self) -> int:
        return (self.last - self.first) // self.step + 1

    def pick(self, index: int, note: Note) -> str:
        return str(self.first + index * self.step)

    def cover(self) -> Iterator[int]:
        yield 0
        if self.size > 1:
            yield self.size - 1


@dataclass(frozen=True, slots=True)
class Choice:
    """Alternatives for the arguments of ``directive``, which is "" for a choice among whole directives."""

    alternatives: tuple[Template | Range, ...]
    size: int
    directive: str

    def pick(self, index: int, note: Note) -> str:
        for alternative in self.alternatives:
            if index < alternative.size:
                note(self, label(alternative, index))
                return alternative.pick(index, note)
            index -= alternative.size
        raise AssertionError("an index is below the size")

    def cover(self) -> Iterator[int]:
        start = 0
        for alternative in self.alternatives:
            yield from (start + index for index in alternative.cover())
            start += alternative.size


@dataclass(frozen=True, slots=True)
class Template:
    """A text with choices; ``source`` is the text from which it was read."""

    parts: tuple[Text | Choice, ...]
    size: int
    source: str

    def pick(self, index: int, note: Note = lambda choice, value: None) -> str:
        """Return the text number ``index``, ``0 <= index < size``."""
        digits = []
        for part in reversed(self.parts):
            index, digit = divmod(index, part.size)
            digits.append(digit)
        assert index == 0, "an index is below the size"
        return "".join(part.pick(digit, note) for part, digit in zip(self.parts, reversed(digits), strict=True))

    def cover(self) -> Iterator[int]:
        """Yield few numbers whose texts show every alternative at least once: as many as there are alternatives."""
        weight = self.size
        yield 0
        for part in self.parts:
            weight //= part.size
            yield from (digit * weight for digit in part.cover() if digit)


def parse(text: str, span: Span) -> Template:
    """Return the template that ``text`` states; ``span`` is the place of the text and has its width.

    Raises ParseError at the brace or the item that is wrong.
    """
    return _Reader(text, span).template(0, len(text))


def label(alternative: Template | Range, index: int) -> str | int:
    """Return the label of an alternative: its number, or its text with the choices in it."""
    match alternative:
        case Range():
            return alternative.first + index * alternative.step
        case Template(source=source):
            return int(source) if _NUMBER.fullmatch(source) else source


def _directive(lead: str) -> str:
    """Return the directive whose argument follows ``lead``.

    >>> [_directive(lead) for lead in ("unroll 4, ", "tile k:", "{ jam | unroll {1..8}, ", "grid blocksize ", "{ ")]
    ['unroll', 'tile', 'unroll', 'blocksize', '']
    """
    while _CLOSED.search(lead):
        lead = _CLOSED.sub("0", lead)
    inner = re.split(r"[{|]", lead)[-1].lstrip()
    words = _WORDS.fullmatch(inner)
    first = words if words is not None else re.match(r"([A-Za-z]\w*)", inner)
    return first[1] if first is not None else ""


@dataclass(frozen=True, slots=True)
class _Reader:
    text: str
    span: Span

    def template(self, start: int, stop: int) -> Template:
        """Return the template in ``text[start:stop]``."""
        parts: list[Text | Choice] = []
        at = start
        while at < stop:
            brace = self._find(at, stop)
            if brace > at:
                parts.append(Text(self.text[at:brace]))
            if brace == stop:
                break
            end = self._closing(brace, stop)
            parts.append(self._choice(brace, end))
            at = end + 1
        size = prod(part.size for part in parts)
        return Template(tuple(parts), size, " ".join(self.text[start:stop].split()))

    def _find(self, at: int, stop: int) -> int:
        for i in range(at, stop):
            if self.text[i] == "}":
                raise ParseError("this } closes no {", subspan(self.span, i, 1))
            if self.text[i] == "|":
                raise ParseError("alternatives stand in braces: { … | … }", subspan(self.span, i, 1))
            if self.text[i] == "{":
                return i
        return stop

    def _closing(self, brace: int, stop: int) -> int:
        depth = 0
        for i in range(brace, stop):
            depth += (self.text[i] == "{") - (self.text[i] == "}")
            if depth == 0:
                return i
            if depth > _DEEPEST:
                raise ParseError(f"braces nest deeper than {_DEEPEST}", subspan(self.span, i, 1))
        raise ParseError("this { is not closed", subspan(self.span, brace, 1))

    def _choice(self, brace: int, end: int) -> Choice:
        bars, commas = self._split(brace + 1, end, "|"), self._split(brace + 1, end, ",")
        directive = _directive(self.text[:brace])
        listed = len(bars) == 1 and (directive or all(self._opens_directive(a, b) for a, b in commas))
        items = commas if listed else bars
        alternatives = tuple(self._alternative(a, b, optional=len(bars) > 1) for a, b in items)
        return Choice(alternatives, sum(x.size for x in alternatives), directive)

    def _opens_directive(self, start: int, stop: int) -> bool:
        """Tell whether what a comma separates are whole directives, and not one directive's arguments.

        ``{unroll 2, jam}``.
        """
        word = re.match(r"\s*(\w*)", self.text[start:stop])
        return word is not None and directives.current_name(word[1].lower()) in directives.names()

    def _split(self, start: int, stop: int, mark: str) -> list[tuple[int, int]]:
        """Return the pieces of ``text[start:stop]`` between marks outside brackets."""
        depth, at, pieces = 0, start, []
        for i in range(start, stop):
            depth += (self.text[i] in _OPEN) - (self.text[i] in _CLOSE)
            if self.text[i] == mark and depth == 0:
                pieces.append((at, i))
                at = i + 1
        return [*pieces, (at, stop)]

    def _alternative(self, start: int, stop: int, *, optional: bool) -> Template | Range:
        item = self.text[start:stop].strip()
        here = subspan(self.span, start, stop - start)
        if not item and not optional:
            raise ParseError("an empty item in a choice; an optional part is written { … | }", here)
        if ".." not in item or "{" in item:
            lead = len(self.text[start:stop]) - len(self.text[start:stop].lstrip())
            return self.template(start + lead, start + lead + len(item))
        found = _RANGE.fullmatch(item)
        if found is None:
            raise ParseError(f"invalid range `{item}`: write 1..8 or 2..16 by 2", here)
        first, last, step = int(found[1]), int(found[2]), int(found[3] or 1)
        if step == 0 or last < first:
            raise ParseError(f"the range {item} is empty" if step else f"the range {item} has step 0", here)
        return Range(first, last, step)
