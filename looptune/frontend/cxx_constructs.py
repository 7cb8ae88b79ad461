"""What of C++ is no C: the construct at which the parser of C stops, and what to write in its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from looptune.frontend.preprocess import Token

_WORD = r"[A-Za-z_]\w*"
_NUMBERS = ("int", "float", "double", "char", "long", "short", "unsigned", "bool")
_WORDS = MappingProxyType({
    "template": ("a template", "write the function for one type"),
    "typename": ("a template", "write the function for one type"),
    "class": ("a class", "write the loops as a function with pointers"),
    "public": ("a class", "write the loops as a function with pointers"),
    "private": ("a class", "write the loops as a function with pointers"),
    "virtual": ("a class", "write the loops as a function with pointers"),
    "operator": ("an operator function", "write a function"),
    "new": ("new", "pass the array, or write malloc"),
    "delete": ("delete", "leave it outside of the loops, or write free"),
    "auto": ("auto", "write the type"),
    "try": ("an exception", "leave it outside of the loops"),
    "throw": ("an exception", "leave it outside of the loops"),
    "catch": ("an exception", "leave it outside of the loops"),
    "cout": ("a stream", "write printf, or leave it outside of the loops"),
    "cerr": ("a stream", "write printf, or leave it outside of the loops"),
    "mutable": ("mutable", "write the loops as a function with pointers"),
    "friend": ("a class", "write the loops as a function with pointers"),
})  # fmt: skip
_CONTAINERS = ("vector", "array", "valarray", "span", "unique_ptr", "shared_ptr", "deque", "mdspan")


def construct(tokens: Sequence[Token], first: int, at: int) -> tuple[str, Token] | None:
    """Return what of C++ stands between two tokens of a statement or near the second, and its first token."""
    end = min(at + 4, len(tokens))
    texts = [t.text for t in tokens[:end]]
    for k in range(first, end):
        if texts[k] == ":" and texts[k : k + 2] == [":", ":"]:
            return _scoped(tokens, texts, k)
        if texts[k] in _WORDS:
            what, instead = _WORDS[texts[k]]
            return _said(what, instead), tokens[k]
    for k in range(first, end):
        before = texts[k - 1] if k else ""
        if texts[k] == "&" and k + 1 < end and re.fullmatch(_WORD, texts[k + 1]) and _is_type(texts[first:k]):
            return _said("a reference", f"write a pointer, *{texts[k + 1]}"), tokens[k]
        if texts[k] == "[" and before in ("=", "(", ",") and k <= at:
            return _said("a lambda", "write a function"), tokens[k]
        if texts[k] == ":" and "for" in texts[first:k]:
            return _said("a loop over a range", "count its elements"), tokens[k]
        called = texts[k + 1 : k + 2] == ["("] and before in ("=", "*", "+", "-", "/", "return")
        if called and texts[k] in _NUMBERS:
            return _said(f"{texts[k]}(…)", f"write ({texts[k]})(…)"), tokens[k]
    return None


def _scoped(tokens: Sequence[Token], texts: Sequence[str], colon: int) -> tuple[str, Token]:
    start = colon - 1 if colon and re.fullmatch(_WORD, texts[colon - 1]) else colon
    member = texts[colon + 2] if colon + 2 < len(texts) else ""
    name = f"{texts[start] if start < colon else ''}::{member}"
    if member in _CONTAINERS:
        return _said(name, "pass a pointer to its elements, and their number"), tokens[start]
    return _said(name, "write it in C, or leave it outside of the loops"), tokens[start]


def _is_type(words: Sequence[str]) -> bool:
    """Tell whether a parameter's type, or the start of a declaration, ends the words."""
    return bool(words) and re.fullmatch(rf"{_WORD}|>", words[-1]) is not None and words[-1] not in ("return", "sizeof")


def _said(what: str, instead: str) -> str:
    return f"{what} is C++, of which looptune reads what is C as well: {instead}"
