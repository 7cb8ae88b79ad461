"""The text of a pragma, with the place of every character in the file.

#pragma hmppcg(CUDA) gridify(k, i), &      family "hmppcg", target "CUDA", one text of
#pragma hmppcg &     blocksize 32x8        two lines: "gridify(k, i), & blocksize 32x8"
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from looptune.core.errors import ParseError
from looptune.core.source import Span

LOOP_FAMILIES = ("hmppcg", "looptune")

_HEAD = re.compile(r"\s*(\w*)")
_TARGET = re.compile(r"\s*\(([^)]*)(\)?)")
_COMMENT = re.compile(r"/\*.*?(\*/|$)|//.*", re.DOTALL)


def span_over(first: Span, last: Span) -> Span:
    """Return the span from ``first`` to ``last``, both included, or ``first`` if they are on different lines."""
    if (first.file, first.line) != (last.file, last.line):
        return first
    start, end = min(first.col, last.col), max(first.col + first.width, last.col + last.width)
    return Span(first.file, first.line, start, end - start, first.text)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text with the place of each of its characters; ``macros`` has the macros that its words name."""

    text: str
    spans: tuple[Span, ...]
    macros: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def at(cls, text: str, span: Span) -> SourceText:
        """Return ``text`` as a part of one line of a file that begins at ``span``."""
        places = (Span(span.file, span.line, span.col + k, 1, span.text) for k in range(len(text)))
        return cls(text, tuple(places))

    def span(self, start: int, end: int) -> Span:
        """Return the span of ``text[start:end]``, or of what precedes it if that is empty."""
        if not self.spans:
            return Span("", 0, 0)
        start = min(start, len(self.spans) - 1)
        return span_over(self.spans[start], self.spans[max(start, min(end, len(self.spans)) - 1)])

    def since(self, start: int) -> SourceText:
        return SourceText(self.text[start:], self.spans[start:], self.macros)

    def stripped(self) -> SourceText:
        start, end = len(self.text) - len(self.text.lstrip()), len(self.text.rstrip())
        return SourceText(self.text[start:end], self.spans[start:end], self.macros) if start < end else self

    def __add__(self, other: SourceText) -> SourceText:
        return SourceText(self.text + other.text, self.spans + other.spans, {**self.macros, **other.macros})

    def expanded(self) -> SourceText:
        """Return the text with each word that names a macro replaced by the macro's text, at the word's place."""
        text, places = "", []
        done = 0
        for word in re.finditer(r"[A-Za-z_]\w*", self.text):
            if word[0] not in self.macros:
                continue
            new = self.macros[word[0]]
            text += self.text[done : word.start()] + new
            places += [*self.spans[done : word.start()], *[self.span(word.start(), word.end())] * len(new)]
            done = word.end()
        return SourceText(text + self.text[done:], (*places, *self.spans[done:]))


@dataclass(frozen=True, slots=True)
class Pragma:
    """A line ``#pragma FAMILY(TARGET) BODY``; ``content`` is everything after ``#pragma``."""

    family: str
    target: str | None
    body: SourceText
    content: SourceText

    @property
    def span(self) -> Span:
        whole = self.content.stripped()
        return whole.span(0, len(whole.text))


def read(lines: Sequence[Span], macros: Mapping[str, str]) -> Pragma:
    """Return the pragma of physical lines that backslashes join, without comments; each span is a whole line."""
    whole = SourceText("", ())
    for k, line in enumerate(lines):
        text = line.text.rstrip()
        if k < len(lines) - 1:
            text = text[:-1]
        whole += SourceText.at(text, Span(line.file, line.line, 1, 1, line.text))
    blank = _COMMENT.sub(lambda m: " " * len(m[0]), whole.text)
    body = re.search(r"#\s*pragma\b", blank)
    assert body is not None, f"no pragma in {whole.text!r}"
    return classify(SourceText(blank, whole.spans, macros).since(body.end()))


def classify(whole: SourceText) -> Pragma:
    """Return the parts that all families of pragmas share of the text after ``#pragma``."""
    head = _HEAD.match(whole.text)
    assert head is not None, "the pattern matches the empty text"
    family = head[1].lower()
    if family not in LOOP_FAMILIES:
        return Pragma(family, None, whole.since(head.end()), whole)
    target = _TARGET.match(whole.text, head.end())
    if target is None:
        return Pragma(family, None, whole.since(head.end()), whole)
    if not target[2]:
        raise ParseError("missing ')' after the target", whole.span(target.start(), target.end()))
    return Pragma(family, target[1].strip(), whole.since(target.end()), whole)


def join_continued(pragmas: Sequence[Pragma]) -> tuple[Pragma, ...]:
    """Join pragmas of one family if a line ends in ``&`` and the next begins with it.

    An ``hmpp`` line may lack either ``&``: it does not change what is computed, so that its reader only warns. Raises
    ParseError for a directive with one of the two missing.
    """
    done: list[Pragma] = []
    for pragma in pragmas:
        continues = pragma.body.text.lstrip().startswith("&")
        follows = done and done[-1].family == pragma.family
        if follows and (_is_open(done[-1]) or (continues and pragma.family == "hmpp")):
            last = done.pop()
            start = pragma.body.text.find("&") + 1 if continues and _is_open(last) else 0
            done.append(Pragma(last.family, last.target, last.body + pragma.body.since(start), last.content))
        elif continues and pragma.family in LOOP_FAMILIES:
            raise ParseError("a line that begins with & continues no line that ends in &", pragma.span)
        else:
            done.append(pragma)
    for pragma in done:
        if pragma.family in LOOP_FAMILIES and _is_open(pragma):
            raise ParseError("a line that ends in & is not continued", pragma.span)
    return tuple(done)


def _is_open(pragma: Pragma) -> bool:
    return pragma.body.text.rstrip().endswith("&")
