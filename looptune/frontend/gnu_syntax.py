"""Statements of GNU C that pycparser does not read, as C that it does: what it reads in place of which tokens.

    case 1 ... 5:        case __looptune_range(1, 5):

The text and its tokens stay as they are. ``c_lexer`` gives pycparser the other tokens at the places of those that they
replace, and ``c_parser`` knows the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from looptune.frontend.preprocess import Token

RANGE = "__looptune_range"
"""The function whose arguments are the ends of a range of cases."""


def replaced_tokens(tokens: Sequence[Token]) -> Mapping[int, str]:
    """Return the texts that are read in place of tokens, by the indices of these.

    >>> from looptune.frontend.preprocess import preprocess
    >>> source = preprocess("int f(int c) { switch (c) { case 'a' ... 'z': return 1; } return 0; }", "a.c", {}, ())
    >>> {source.tokens[k].text: text for k, text in replaced_tokens(source.tokens).items()}
    {'case': 'case __looptune_range(', '.': ',', ':': '):'}
    """
    words = [token.text for token in tokens]
    return {k: text for first, word in enumerate(words) if word == "case" for k, text in _range(words, first)}


def _range(words: Sequence[str], first: int) -> Iterator[tuple[int, str]]:
    """Yield what replaces the tokens of ``case A ... B:``; pycparser reads the three dots as one token."""
    end = _colon(words, first)
    dots = next((k for k in range(first, end) if words[k : k + 3] == [".", ".", "."]), None)
    if dots is not None:
        yield from ((first, f"case {RANGE}("), (dots, ","), (end, "):"))


def _colon(words: Sequence[str], first: int) -> int:
    """Return the index of the ``:`` that ends a label, ``first`` where none does."""
    conditions = 0
    for k in range(first, len(words)):
        if words[k] in (";", "{", "}"):
            break
        if words[k] == ":" and conditions == 0:
            return k
        conditions += (words[k] == "?") - (words[k] == ":")
    return first
