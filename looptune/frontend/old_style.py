"""Definitions as before C89, whose parameters have their types after the parentheses, and the ``int`` that C89 implies.

f(a, n)                  first, name ─▶ f
double *a;
int n;
{ … }                    brace
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from looptune.frontend.preprocess import Token

_WORD = re.compile(r"[A-Za-z_]\w*")
_TYPELESS = frozenset({"const", "extern", "register", "static", "volatile"})
_DECLARATORS = re.compile(r"[\w*,;()\[\]]+")


@dataclass(frozen=True, slots=True)
class OldDefinition:
    """A definition of a function: the indices of its first token, of its name and of its opening brace."""

    first: int
    name: int
    brace: int


def old_definitions(tokens: Sequence[Token]) -> Iterator[OldDefinition]:
    """Yield the definitions with declarations between the parentheses and the brace, in textual order.

    >>> from looptune.frontend.preprocess import preprocess
    >>> read = preprocess("int g(int);\\nf(a, n) double *a; int n; { }", "a.c", {}, ())
    >>> [(d.first, d.name, d.brace) for d in old_definitions(read.tokens)]
    [(6, 6, 19)]
    """
    depth = first = 0
    for k, token in enumerate(tokens):
        if depth == 0 and _WORD.fullmatch(token.text) and k + 2 < len(tokens) and tokens[k + 1].text == "(":
            brace = _brace(tokens, k + 2)
            if brace is not None:
                yield OldDefinition(first, k, brace)
        depth += (token.text in "({[") - (token.text in ")}]")
        if depth == 0 and token.text in (";", "}"):
            first = k + 1


def implied_ints(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the indices of the names that are an ``int``, or functions that return one, because no type is given.

    >>> from looptune.frontend.preprocess import preprocess
    >>> read = preprocess("static z, w[3];\\nf(a) double *a; { register i; }", "a.c", {}, ())
    >>> [read.tokens[k].text for k in sorted(implied_ints(read.tokens))]
    ['z', 'f', 'i']
    """
    untyped = {d.name for d in old_definitions(tokens) if d.first == d.name}
    words = [t.text for t in tokens]
    for k in range(1, len(words) - 1):
        if words[k + 1] in (";", "=", ",", "[") and words[k - 1] in _TYPELESS and _WORD.fullmatch(words[k]):
            begin = k
            while begin and words[begin - 1] in _TYPELESS:
                begin -= 1
            if words[k] not in _TYPELESS and (not begin or words[begin - 1] in (";", "{", "}", ")")):
                untyped.add(k)
    return frozenset(untyped)


def _brace(tokens: Sequence[Token], k: int) -> int | None:
    """Return the brace after a list of names, which begins at ``k``, and their declarations; None if that is no such.

    A list of names that are types is that of a prototype, which no declaration and brace follow.
    """
    words = [t.text for t in tokens[k : k + 2]]
    while len(words) == 2 and _WORD.fullmatch(words[0]) and words[1] == ",":
        k += 2
        words = [t.text for t in tokens[k : k + 2]]
    if len(words) < 2 or words[1] != ")" or _WORD.fullmatch(words[0]) is None:
        return None
    k += 2
    if k >= len(tokens) or _WORD.fullmatch(tokens[k].text) is None:
        return None
    while k < len(tokens) and _DECLARATORS.fullmatch(tokens[k].text):
        k += 1
    return k if k < len(tokens) and tokens[k].text == "{" and tokens[k - 1].text == ";" else None
