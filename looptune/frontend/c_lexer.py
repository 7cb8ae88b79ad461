"""pycparser's lexer, with the constants of GNU C that it lacks."""

from __future__ import annotations

import re
from typing import Any

from pycparser.c_lexer import CLexer


class Lexer(CLexer):  # type: ignore[misc]  # pycparser has no types
    """pycparser's lexer, which remembers its last token: some complaints come without their place.

    An imaginary constant of GNU C (``2.0i``) is one token; the one after a constant is ``pending``.
    """

    last: Any = None
    pending: Any = None

    def token(self) -> Any:
        token, self.pending = super().token() if self.pending is None else self.pending, None
        if token is not None and token.type.startswith(("INT_CONST_DEC", "FLOAT_CONST")):
            self.pending = super().token()
            if self.pending is not None and _ends_imaginary(token, self.pending):
                token.type = "FLOAT_CONST"
                token.value += self.pending.value.lower().replace("j", "i").replace("if", "fi")
                self.pending = None
        self.last = token
        return token


def _ends_imaginary(number: Any, after: Any) -> bool:
    """Tell whether the token after a number is its suffix, as in ``2.0i`` and ``1if``."""
    beside = (after.lineno, after.column) == (number.lineno, number.column + len(number.value))
    return beside and re.fullmatch(r"[fF]?[ijIJ]|[ijIJ][fF]", after.value) is not None
