"""Directive text to ``ir.Directive``: the grammar that all directives share; the meaning is that of each transform.

    directive = NAME [ "(" items ")" ] { [","] item }
    item      = value | WORD ":" value | WORD [value] | WORD "(" group { "," group } ")" | WORD "by" sum | sum
    group     = value | (WORD | OP) ":" value          a bare value after ``+:S`` belongs to the ``+`` too
    value     = INT | INT "x" INT | REAL | WORD | '"' value '"'
    sum       = ["-"] term { ("+" | "-") term }        term = INT | [INT "*"] WORD | WORD "*" INT

A sum is one value, its text, which ``sum_terms`` takes apart; so is a REAL, a number with a point or an exponent.
A name is lowercased, and so is each word of KEYWORDS; names of loops and variables keep their case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from looptune.core.errors import ParseError
from looptune.core.source import Span
from looptune.frontend.pragma import Pragma, SourceText, span_over
from looptune.frontend.unit import CHOICE
from looptune.ir.nodes import Arg, Directive

KEYWORDS = frozenset({
    "contiguous", "split", "remainder", "noremainder", "guarded", "jam", "nojam", "fullunroll", "blocksize", "private",
    "reduce", "assume", "sizes", "inline", "min", "max", "parallel", "noparallel", "cut", "team", "off",
})  # fmt: skip

_DIGITS = 18
"""Of a number: what 64 bits hold."""
_TOKEN = re.compile(
    r"\s*(?:(?P<size>\d+(?:\s*[xX]\s*\d+)+(?!\w))|(?P<real>(?:\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)(?![\w.]))"
    r"|(?P<int>-?\d+(?!\w))|(?P<word>[A-Za-z_]\w*)"
    r'|(?P<string>"[\w\s,.:+-]*")|(?P<op>[+*&|^](?=\s*:))|(?P<punct>[,():&])|(?P<sign>[-+*]))'
)


_CHOICES = ": choices in braces stand in a pragma of the file, or in a space file"


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    span: Span


def parse(text: str, span: Span, target: str | None = None) -> Directive:
    """Return the directive that ``text`` states, such as ``unroll 4, split``; ``span`` is the place of the text.

    >>> parse("Tile i:4, J:8", Span("a.c", 1, 1)).args
    (Arg(key='i', values=(4,)), Arg(key='J', values=(8,)))
    """
    return _parse(SourceText.at(text, span), target)


def parse_pragma(pragma: Pragma) -> Directive:
    """Return the directive of a ``#pragma hmppcg`` or ``#pragma looptune``.

    One with choices in braces keeps its text.
    """
    body = pragma.body.stripped()
    if not body.text.strip():
        raise ParseError(f"the directive's name is missing after {pragma.family}", pragma.span)
    if "{" in body.text:
        whole = body.expanded()
        text = " ".join(whole.text.replace("&", " ").split())
        return Directive(CHOICE, (Arg(text),), pragma.target, span=whole.span(0, len(whole.text)))
    name = re.match(r"\w*", body.text)
    assert name is not None, "the pattern matches the empty text"
    head, rest = body.text[: name.end()], body.since(name.end())
    expanded = rest.expanded()
    return _parse(SourceText(head + expanded.text, body.spans[: name.end()] + expanded.spans), pragma.target)


def is_cut(pragma: Pragma) -> bool:
    """Tell whether the pragma is a ``cut``, which stands before a statement of any kind.

    Other directives stand before a loop.
    """
    return re.match(r"\s*cut\b", pragma.body.text, re.IGNORECASE) is not None


def _parse(source: SourceText, target: str | None) -> Directive:
    return _Parser(source).directive(target)


def _tokens(source: SourceText) -> tuple[_Token, ...]:
    found: list[_Token] = []
    at = 0
    end = len(source.text.rstrip())
    while at < end:
        match = _TOKEN.match(source.text, at)
        if match is None:
            start = at + len(source.text[at:]) - len(source.text[at:].lstrip())
            at_brace = source.text[start] in "{}"
            raise ParseError(
                f"unexpected {source.text[start]!r} in a directive{_CHOICES if at_brace else ''}",
                source.span(start, start + 1),
            )
        kind = match.lastgroup
        assert kind is not None, "every alternative is named"
        found.append(_Token(kind, match[kind], source.span(*match.span(kind))))
        at = match.end()
    return tuple(found)


class _Parser:
    """Recursive descent over the tokens of one directive."""

    def __init__(self, source: SourceText) -> None:
        self.tokens = _tokens(source)
        self.next = 0
        stripped = source.stripped()
        self.whole = stripped.span(0, len(stripped.text))

    def directive(self, target: str | None) -> Directive:
        name = self.take("word")
        if name is None:
            raise self.error("a directive begins with its name, such as unroll")
        args: list[Arg] = []
        if self.take("punct", "("):
            args += self.items(closing=True)
        self.separator()
        args += self.items(closing=False)
        return Directive(name.text.lower(), tuple(args), target, span=self.whole)

    def items(self, closing: bool) -> list[Arg]:
        """Items up to the end of the text, or to the ``)`` that closes them."""
        found: list[Arg] = []
        while self.peek() is not None:
            if closing and self.take("punct", ")"):
                return found
            found.append(self.item())
            separated = self.separator()
            token = self.peek()
            if token is None and separated:
                raise self.error("an argument is missing after ','", self.tokens[-1].span)
            if token is not None and not separated and not (closing and token.text == ")"):
                raise self.error(f"expected ',' before {token.text!r}", token.span)
        if closing:
            raise self.error("missing ')'", self.tokens[-1].span)
        return found

    def item(self) -> Arg:
        token = self.advance()
        if self.is_sum(token):
            text, last = self.sum(token)
            return Arg("", (text,), span=span_over(token.span, last.span))
        if token.kind not in ("word", "op"):
            return Arg("", self.values_of(token), span=token.span)
        key = _keyword(token.text)
        if self.take("punct", ":"):
            value = self.advance()
            return Arg(key, self.values_of(value), span=span_over(token.span, value.span))
        if self.take("punct", "("):
            values = self.group()
            return Arg(key, values, span=span_over(token.span, self.tokens[self.next - 1].span))
        value_token = self.peek()
        if value_token is not None and value_token.text.lower() == "by":
            self.next += 1
            text, last = self.sum(self.advance())
            return Arg(token.text, (Arg("by", (text,)),), span=span_over(token.span, last.span))
        if value_token is not None and value_token.kind in ("int", "size", "real", "string"):
            return Arg(key, self.values_of(self.advance()), span=span_over(token.span, value_token.span))
        return Arg(key, span=token.span)

    def is_sum(self, token: _Token) -> bool:
        """Tell whether a sum of more than one number or name begins with this token, the last one taken."""
        following = self.peek()
        if following is None or token.kind not in ("word", "int", "sign"):
            return False
        joined = following.kind == "int" and following.text.startswith("-") and _keyword(token.text) not in KEYWORDS
        return token.kind == "sign" or following.kind == "sign" or (joined and token.kind == "word")

    def sum(self, token: _Token) -> tuple[str, _Token]:
        """Return the text of the sum that begins with ``token``, and its last token."""
        sign, text = "", ""
        if token.kind == "sign" and token.text == "-":
            sign, token = "-", self.advance()
        while True:
            term, token = self.term(token)
            text += sign + term
            following = self.peek()
            if following is not None and following.kind == "sign" and following.text != "*":
                sign, token = f" {self.advance().text} ", self.advance()
            elif following is not None and following.kind == "int" and following.text.startswith("-"):
                sign, token = " - ", replace(self.advance(), text=following.text[1:])
            else:
                return text, token

    def term(self, token: _Token) -> tuple[str, _Token]:
        """Return a number, a name, or a number times a name, with its last token."""
        following = self.peek()
        if token.kind not in ("int", "word"):
            raise self.error(f"expected a number or a name before {token.text!r}", token.span)
        if following is None or following.text != "*":
            return token.text, token
        self.next += 1
        other = self.advance()
        if {token.kind, other.kind} != {"int", "word"}:
            raise self.error("a product in a directive is a number times a name, such as 2*i", other.span)
        number, named = (token, other) if token.kind == "int" else (other, token)
        return f"{number.text}*{named.text}", other

    def group(self) -> tuple[int | str | Arg, ...]:
        """Return what stands in an item's parentheses: values, each under the operator before it."""
        found: list[int | str | Arg] = []
        for item in self.items(closing=True):
            bare = not item.values
            if found and isinstance(found[-1], Arg) and bare:
                last = found.pop()
                assert isinstance(last, Arg), "just looked at"
                found.append(Arg(last.key, (*last.values, item.key), span=last.span))
            elif bare:
                found.append(item.key)
            elif item.key:
                found.append(item)
            else:
                found += item.values
        return tuple(found)

    def values_of(self, token: _Token) -> tuple[int | str, ...]:
        if token.kind == "sign":
            raise self.error(f"unexpected {token.text!r} in a directive", token.span)
        if any(len(number) > _DIGITS for number in re.findall(r"\d+", token.text)):
            raise self.error(f"a number in a directive has at most {_DIGITS} digits", token.span)
        match token.kind:
            case "int":
                return (int(token.text),)
            case "size":
                return tuple(int(n) for n in re.split(r"\s*[xX]\s*", token.text))
            case "word" | "real":
                return (token.text,)
            case "string":
                inner = token.text[1:-1].strip()
                match = re.fullmatch(r"\d+(\s*[xX]\s*\d+)*", inner)
                return tuple(int(n) for n in re.split(r"\s*[xX]\s*", inner)) if match else (inner,)
        raise self.error(f"expected an argument before {token.text!r}", token.span)

    def separator(self) -> bool:
        """Commas, and the ``&`` of a continuation, which stands for one where the file leaves it out."""
        commas = 0
        joins = 0
        while (token := self.peek()) is not None and token.text in (",", "&") and token.kind == "punct":
            commas += token.text == ","
            joins += token.text == "&"
            self.next += 1
        if commas > 1:
            raise self.error("an argument is missing between two commas", self.tokens[self.next - 1].span)
        return bool(commas or joins)

    def peek(self) -> _Token | None:
        return self.tokens[self.next] if self.next < len(self.tokens) else None

    def advance(self) -> _Token:
        token = self.peek()
        if token is None:
            raise self.error(f"an argument is missing after {self.tokens[-1].text!r}", self.tokens[-1].span)
        self.next += 1
        return token

    def take(self, kind: str, text: str | None = None) -> _Token | None:
        token = self.peek()
        if token is None or token.kind != kind or (text is not None and token.text != text):
            return None
        self.next += 1
        return token

    def error(self, message: str, span: Span | None = None) -> ParseError:
        return ParseError(message, self.whole if span is None else span)


def sum_terms(text: str) -> dict[str, int]:
    """Return the factors of a sum's names, and its constant by the name "".

    >>> sum_terms("2*i - j + 1"), sum_terms("-n")
    ({'i': 2, 'j': -1, '': 1}, {'n': -1})
    """
    found: dict[str, int] = {}
    for sign, factor, name in re.findall(r"(-?)\s*(?:(-?\d+)\*?)?([A-Za-z_]\w*)?(?:\s\+\s|\s(?=-)|$)", text):
        value = int(factor or 1) * (-1 if sign else 1)
        if factor or name:
            found[name] = found.get(name, 0) + value
    return found


def _keyword(word: str) -> str:
    return word.lower() if word.lower() in KEYWORDS else word
