"""pycparser's lexer, with the constants of GNU C that it lacks, and other tokens in place of some."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from copy import copy
from typing import Any

from pycparser.c_lexer import CLexer

Place = tuple[int, int]
"""A line and a column, which count from 1."""


class Lexer(CLexer):  # type: ignore[misc]  # pycparser has no types
    """pycparser's lexer, which remembers its last token: some complaints come without their place.

    An imaginary constant of GNU C (``2.0i``) is one token, and so is one of ``_Float16`` (``2.0f16``). At the places
    ``implied_ints`` an ``int`` comes first, and the tokens at those of ``replaced`` are those of another text. The
    token that was read too early is ``pending``.
    """

    last: Any = None
    pending: Any = None

    def __init__(
        self, *given: Any, implied_ints: Collection[Place] = (), replaced: Mapping[Place, str] | None = None,
        **named: Any,
    ) -> None:  # fmt: skip
        super().__init__(*given, **named)
        self.implied_ints = implied_ints
        self.replaced = {} if replaced is None else replaced
        self.waiting: list[Any] = []

    def token(self) -> Any:
        token, self.pending = self.next_token() if self.pending is None else self.pending, None
        if token is not None and (token.lineno, token.column) in self.implied_ints and not _is_int(self.last, token):
            self.pending, token = token, copy(token)
            token.type, token.value = "INT", "int"
        if token is not None and token.type in ("INT_CONST_DEC", "FLOAT_CONST", "HEX_FLOAT_CONST"):
            self.pending = self.next_token()
            if self.pending is not None and _ends_imaginary(token, self.pending):
                token.type = "FLOAT_CONST"
                token.value += self.pending.value.lower().replace("j", "i").replace("if", "fi")
                self.pending = None
            elif self.pending is not None and _ends_half(token, self.pending):
                token.value += self.pending.value
                self.pending = None
        self.last = token
        return token

    def next_token(self) -> Any:
        """Return the next token of the text, or of what replaces one."""
        while not self.waiting:
            token = super().token()
            other = None if token is None else self.replaced.get((token.lineno, token.column))
            if other is None:
                return token
            self.waiting = self.tokens_of(other, token)
        return self.waiting.pop(0)

    def tokens_of(self, text: str, at: Any) -> list[Any]:
        """Return the tokens of a text, at the place of another."""
        lexer = CLexer(self.error_func)
        lexer.input(text, at.filename)
        found = list(iter(lexer.token, None))
        for token in found:
            token.lineno, token.column = at.lineno, at.column
        return found


def _is_int(last: Any, token: Any) -> bool:
    """Tell whether the last token is the ``int`` that is implied before this one."""
    return last is not None and (last.lineno, last.column) == (token.lineno, token.column)


def _is_beside(number: Any, after: Any) -> bool:
    return bool((after.lineno, after.column) == (number.lineno, number.column + len(number.value)))


def _ends_half(number: Any, after: Any) -> bool:
    """Tell whether the token after a number is the rest of its suffix ``f16``."""
    return _is_beside(number, after) and number.value[-1] in "fF" and after.value == "16"


def _ends_imaginary(number: Any, after: Any) -> bool:
    """Tell whether the token after a number is its suffix, as in ``2.0i`` and ``1if``."""
    return _is_beside(number, after) and re.fullmatch(r"[fF]?[ijIJ]|[ijIJ][fF]", after.value) is not None
