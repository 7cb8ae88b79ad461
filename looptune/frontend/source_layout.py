"""The places of statements in the text of a file, which ``transform`` replaces; everything else is left as it is.

The tokens of a function's body, after macro expansion, are grouped into statements. Each end of a statement is a place
in the file if its token stands in the file, or if the macro that the token comes from does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from looptune.frontend.preprocess import Token

if TYPE_CHECKING:
    from looptune.core.source import Span

_BLANK = re.compile(r"""\s+|\\\n|//(?:\\\n|[^\n])*|/\*.*?\*/|\#(?:\\\n|/\*.*?\*/|[^\n])*""", re.DOTALL)
_QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_LINE = re.compile(r"""/\*.*?\*/|//(?:\\\n|[^\n])*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|
                       (?P<line>\#(?P<text>(?:\\\n|/\*.*?\*/|[^\n])*))""", re.DOTALL | re.VERBOSE)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceStatement:
    """A statement: its first and last token, and the statements inside it."""

    first_token: int
    last_token: int
    blocks: tuple[StatementList, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementList:
    """The statements between two braces, or a single statement without braces."""

    statements: tuple[SourceStatement, ...]
    braced: bool


@dataclass(frozen=True, slots=True)
class StatementRange:
    """Consecutive statements of a block, from the first to the last."""

    block: StatementList
    first: int
    last: int

    @property
    def statements(self) -> tuple[SourceStatement, ...]:
        return self.block.statements[self.first : self.last + 1]

    @property
    def tokens(self) -> tuple[int, int]:
        return self.statements[0].first_token, self.statements[-1].last_token


@dataclass(frozen=True, slots=True)
class Line:
    """A preprocessor line: ``text[start:end]``, its first word and the rest."""

    start: int
    end: int
    word: str
    rest: str


@dataclass(frozen=True, slots=True)
class Layout:
    """A function's body: ``lines`` are the preprocessor lines of the file, ``places`` maps places to tokens."""

    path: str
    text: str
    tokens: tuple[Token, ...]
    body: StatementList
    lines: tuple[Line, ...]
    places: Mapping[tuple[str, int, int], Sequence[int]]

    def real(self, k: int) -> bool:
        """Tell whether the token is in the file itself and not from a macro."""
        token = self.tokens[k]
        return token.macro is None and token.place is not None and token.span.file == self.path

    def start(self, k: int) -> int | None:
        """Return the offset at which the text of token k begins, or None inside the expansion of a macro."""
        token = self.tokens[k]
        if self.real(k) and token.place is not None:
            return token.place[0]
        if k == 0 or not self.real(k - 1):
            return None
        before = self.tokens[k - 1].place
        assert before is not None, "a token that stands in the file has a place"
        at = before[1]
        while (blank := _BLANK.match(self.text, at)) is not None:
            at = blank.end()
        return at

    def end(self, k: int) -> int | None:
        """Return the offset at which the text of token k ends, or None inside the expansion of a macro."""
        token = self.tokens[k]
        if self.real(k) and token.place is not None:
            return token.place[1]
        if k + 1 >= len(self.tokens) or not self.real(k + 1):
            return None
        back = k
        while back > 0 and not self.real(back):
            back -= 1
        before, after = self.tokens[back].place, self.tokens[k + 1].place
        assert after is not None, "a token that stands in the file has a place"
        at = last = before[1] if before is not None else 0
        while at < after[0]:
            blank = _BLANK.match(self.text, at)
            quoted = None if blank is not None else _QUOTED.match(self.text, at)
            at = blank.end() if blank is not None else quoted.end() if quoted is not None else at + 1
            last = last if blank is not None else at
        return last

    def find(self, span: Span, words: Sequence[str]) -> int | None:
        """Return the token of the body at the position (one of ``words``, if given), or None if it is ambiguous."""
        low, high = self.body.statements[0].first_token, self.body.statements[-1].last_token
        at = self.places.get((span.file, span.line, span.col), ())
        found = [k for k in at if low <= k <= high and (not words or self.tokens[k].text in words)]
        certain = len(found) == 1 or (found and not words and self.tokens[found[0]].macro is None)
        return found[0] if certain else None

    def macro(self, span: Span) -> str:
        """Return the macro that is used at the position, or its name."""
        named = [t.macro for t in self.tokens if t.macro is not None and t.span == span]
        return f"the macro {named[0]}" if named else "a macro"

    def run(self, first: int, last: int) -> StatementRange | None:
        """Return the statements of the innermost block to which the tokens ``first`` to ``last`` belong."""
        block = self.body
        while True:
            ends = [_holds(block.statements, k) for k in (first, last)]
            if ends[0] is None or ends[1] is None:
                return None
            if ends[0] == ends[1]:
                inner = next((b for b in block.statements[ends[0]].blocks if _within(b, first, last)), None)
                if inner is not None:
                    block = inner
                    continue
            return StatementRange(block, ends[0], ends[1])


def _holds(pieces: Sequence[SourceStatement], token: int) -> int | None:
    return next((k for k, p in enumerate(pieces) if p.first_token <= token <= p.last_token), None)


def _within(block: StatementList, first: int, last: int) -> bool:
    return (
        bool(block.statements) and block.statements[0].first_token <= first and last <= block.statements[-1].last_token
    )


def layout(
    path: str, text: str, tokens: tuple[Token, ...], brace: Span, within: tuple[int, int] | None = None
) -> Layout | None:
    """Return the layout of the statements of a body, or None if they cannot be separated.

    The opening brace is at ``brace``; ``within`` restricts it to ``text[within[0]:within[1]]``.
    """
    opens = [k for k, t in enumerate(tokens) if t.text == "{" and t.span == brace]
    if len(opens) != 1:
        return None
    try:
        body, _ = _Statements(tokens).block(opens[0])
    except IndexError:
        return None
    places: dict[tuple[str, int, int], list[int]] = {}
    for k, token in enumerate(tokens):
        places.setdefault((token.span.file, token.span.line, token.span.col), []).append(k)
    whole = Layout(path, text, tokens, body, tuple(lines_of(text)), places)
    part = body if within is None else _part(whole, body, within)
    return replace(whole, body=part) if part is not None and part.statements else None


def _part(whole: Layout, block: StatementList, within: tuple[int, int]) -> StatementList | None:
    """Return the statements of the block, or of one inside it, that the text between two places is."""
    pieces = (_after_labels(whole, p, within[0]) for p in block.statements)
    inside = tuple(p for p in pieces if within[0] <= _start(whole, p) < within[1])
    if inside:
        return StatementList(inside, block.braced)
    found = (_part(whole, inner, within) for piece in block.statements for inner in piece.blocks)
    return next((part for part in found if part is not None), None)


def _after_labels(whole: Layout, piece: SourceStatement, place: int) -> SourceStatement:
    """Return the statement after the labels that end before a place of the text."""
    while (
        piece.blocks
        and not piece.blocks[0].braced
        and whole.tokens[piece.blocks[0].statements[0].first_token - 1].text == ":"
    ):
        inner = piece.blocks[0].statements[0]
        if _start(whole, piece) >= place or _start(whole, inner) < place:
            return piece
        piece = inner
    return piece


def _start(whole: Layout, piece: SourceStatement) -> int:
    start = whole.start(piece.first_token)
    return -1 if start is None else start


def lines_of(text: str) -> Iterator[Line]:
    """Yield the preprocessor lines of a file, with continued lines."""
    for found in _LINE.finditer(text):
        if found["line"] is None or text[text.rfind("\n", 0, found.start()) + 1 : found.start()].strip():
            continue
        said = re.match(r"(?:\\\n|\s)*(\w*)(.*)", found["text"], re.DOTALL)
        assert said is not None, "the pattern matches any text"
        yield Line(found.start(), found.end(), said[1], said[2].replace("\\\n", ""))


class _Statements:
    """Takes the tokens of a body apart. IndexError where they end too early."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens

    def block(self, k: int) -> tuple[StatementList, int]:
        """Return the block that opens at k, and the token after it."""
        found: list[SourceStatement] = []
        k += 1
        while self.tokens[k].text != "}":
            piece, k = self.statement(k)
            found.append(piece)
        return StatementList(tuple(found), True), k + 1

    def body(self, k: int) -> tuple[StatementList, int]:
        if self.tokens[k].text == "{":
            return self.block(k)
        piece, after = self.statement(k)
        return StatementList((piece,), False), after

    def statement(self, k: int) -> tuple[SourceStatement, int]:
        word, following = self.tokens[k].text, self.tokens[k + 1].text
        if word == "{":
            block, after = self.block(k)
            return SourceStatement(k, after - 1, (block,)), after
        if word in ("for", "while", "switch"):
            block, after = self.body(self.closed(k + 1))
            return SourceStatement(k, after - 1, (block,)), after
        if word == "_Pragma":
            after = self.closed(k + 1)
            return SourceStatement(k, after - 1), after
        if word == "do":
            block, after = self.body(k + 1)
            after = self.closed(after + 1) + 1
            return SourceStatement(k, after - 1, (block,)), after
        if word == "if":
            block, after = self.body(self.closed(k + 1))
            if self.tokens[after].text != "else":
                return SourceStatement(k, after - 1, (block,)), after
            other, after = self.body(after + 1)
            return SourceStatement(k, after - 1, (block, other)), after
        if word in ("case", "default") or (following == ":" and re.fullmatch(r"\w+", word)):
            while self.tokens[k].text != ":":
                k += 1
            if self.tokens[k + 1].text == "}":
                return SourceStatement(k, k), k + 1
            block, after = self.body(k + 1)
            return SourceStatement(k, after - 1, (block,)), after
        return self.plain(k)

    def plain(self, k: int) -> tuple[SourceStatement, int]:
        first, depth = k, 0
        while depth or self.tokens[k].text != ";":
            depth += (self.tokens[k].text in "([{") - (self.tokens[k].text in ")]}")
            k += 1
        return SourceStatement(first, k), k + 1

    def closed(self, k: int) -> int:
        """Return the token after the parenthesis that closes the one at k."""
        depth = 0
        while True:
            depth += (self.tokens[k].text == "(") - (self.tokens[k].text == ")")
            k += 1
            if depth == 0:
                return k
