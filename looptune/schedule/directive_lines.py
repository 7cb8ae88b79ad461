"""Directives written outside the C file: ``loop k: unroll 4, jam`` is the directive text after the loop it belongs to.

    line  ::=  place ':' directive        place  ::=  'loop' LOOP | 'nest' LOOP | 'codelet'
    LOOP  ::=  (NAME | NUMBER) ['.' NUMBER]

``loop`` addresses a loop by its variable if that is unique, else by its number in the text; the number after a point is
that of a piece that ``distribute`` makes. ``nest`` addresses the nest whose outermost loop it names, ``codelet`` the
whole codelet. ``#`` begins a comment. Words of the release before are replaced by the present ones. ParseError points
at the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from looptune.core.errors import ParseError
from looptune.core.source import Span
from looptune.frontend import directive_parser as directive
from looptune.ir.nodes import Codelet, Directive
from looptune.ir.rewrite import walk
from looptune.schedule import directives

Where = Literal["loop", "nest", "codelet"]

_LOOP = r"(?:[A-Za-z_]\w*|\d+)(?:\.\d+)?"
_PLACE = re.compile(rf"(?:(?P<where>loop|nest)\s+(?P<loop>{_LOOP})|(?P<codelet>codelet))\s*:\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Address:
    """The place of a directive: a loop, a nest or the codelet.

    ``loop`` is a variable or a number as text, ``2.1`` for a piece that ``distribute`` makes; it is empty for the
    codelet.

    >>> str(Address("loop", "3")), str(Address("codelet"))
    ('loop 3', 'codelet')
    """

    where: Where
    loop: str = ""

    def __str__(self) -> str:
        return f"{self.where} {self.loop}".rstrip()


@dataclass(frozen=True, slots=True)
class DirectiveLine:
    """A directive and the loop it belongs to."""

    where: Where
    loop: str
    directive: Directive


def parse_lines(lines: Iterable[str], file: str = "--directive") -> tuple[DirectiveLine, ...]:
    """Return the directives of ``lines``, each of which may hold several lines.

    Blank lines and comments are skipped.
    """
    texts = (text for line in lines for text in (line.splitlines() if line else [""]))
    return tuple(_parse_line(text, span) for text, span in split_lines(texts, file))


def canonical_text(text: str, file: str) -> str:
    """Return directives without comments, blank lines and needless space; ParseError where a line is no directive."""
    placed = ((line, span, _parse_line(line, span)) for line, span in split_lines(text.splitlines(), file))
    lines = []
    for line, span, _ in placed:
        address, rest, _ = parse_address(line, span)
        lines.append(f"{address}: {current_words(' '.join(rest.split()))}")
    return "\n".join(lines)


def current_text(text: str) -> str:
    """Return lines of directives in present words; a line that is no directive stays as it is.

    >>> current_text("loop k: split 8\\ncodelet: raster 4")
    'loop k: rfactor 8\\ncodelet: swizzle 4'
    """
    return "\n".join(_current_line(line) for line in text.split("\n"))


def _current_line(line: str) -> str:
    address, said, comment = _parts(line)
    return address + current_words(said) + comment


def _parts(line: str) -> tuple[str, str, str]:
    """Return the address, the directive and the comment of a line, which has no directive if it lacks an address."""
    found = _PLACE.match(line.lstrip())
    if found is None:
        return line, "", ""
    start = len(line) - len(line.lstrip()) + found.end()
    said, mark, comment = line[start:].partition("#")
    return line[:start], said, mark + comment


def _parsed(text: str) -> Directive | None:
    try:
        return directive.parse(text, Span("", 1, 1, len(text), text))
    except ParseError:
        return None


@lru_cache(maxsize=16384)
def current_words(text: str) -> str:
    """Return the text of one directive in present words; text that is no directive stays as it is.

    >>> current_words("unroll 8, split, runs 4, jam")
    'unroll 8, split, vector 4, jam'
    """
    said = _parsed(text)
    if said is None:
        return text
    now = directives.current(said)
    pairs = [(said.span, said.name, now.name)]
    pairs += [(old.span, old.key, new.key) for old, new in zip(said.args, now.args, strict=True)]
    for span, old, new in reversed(pairs):
        if old != new:
            text = text[: span.col - 1] + new + text[span.col - 1 + len(old) :]
    return text


def renamed_words(codelet: Codelet, lines: Iterable[str] = ()) -> tuple[str, ...]:
    """Return one sentence for each word of the release before in the pragmas of ``codelet`` or in ``lines``."""
    written = [d for n in (codelet, *walk(codelet.body)) for d in getattr(n, "directives", ())]
    parsed = [_parsed(_parts(text)[1]) for line in lines for text in line.splitlines()]
    written += [d for d in parsed if d is not None]
    return tuple(dict.fromkeys(sentence for d in written for sentence in directives.renamed_words(d)))


def split_lines(texts: Iterable[str], file: str) -> Iterator[tuple[str, Span]]:
    """Yield each line that is not blank, without its comment, and the span of its text."""
    for line, whole in enumerate(texts, start=1):
        text = whole.split("#", 1)[0].rstrip()
        start = len(text) - len(text.lstrip())
        if text.strip():
            yield text[start:], Span(file, line, start + 1, len(text) - start, whole)


def parse_address(text: str, span: Span) -> tuple[Address, str, Span]:
    """Return the place at the beginning of a line, the text after the colon, and the span of that text."""
    found = _PLACE.match(text)
    if found is None:
        raise ParseError("expected `loop NAME: …`, `nest NAME: …` or `codelet: …`", span)
    rest = text[found.end() :]
    after = subspan(span, found.end(), len(rest))
    if found["codelet"]:
        return Address("codelet"), rest, after
    where: Where = "loop" if found["where"].lower() == "loop" else "nest"
    return Address(where, found["loop"]), rest, after


def subspan(span: Span, start: int, width: int) -> Span:
    """Return the span that begins ``start`` characters into ``span``."""
    return Span(span.file, span.line, span.col + start, max(1, width), span.text)


@lru_cache(maxsize=16384)  # a space says the same lines again and again
def _parse_line(text: str, span: Span) -> DirectiveLine:
    address, rest, after = parse_address(text, span)
    if not rest:
        raise ParseError(f"a directive is missing after `{address}:`", span)
    return DirectiveLine(address.where, address.loop, directives.current(directive.parse(rest, after)))
