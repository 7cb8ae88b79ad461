"""Where the tokens of the preprocessor stand in the files, which of them are left out, and which must stay apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from looptune.core.source import Span

_GLUE = re.compile(r"\w\w|\+\+|--|&&|\|\||<<|>>|->|[-+*/%&|^<>=!]=|//|/\*|\.\.|##")
_MEANING = re.compile(r"\b_*(?:vector_size|ext_vector_type|mode)_*\b")
"""Attributes that change what a type is."""
OTHER_TYPE = "=>"
"""What stands for such an attribute that is not kept with its ``typedef``: no C has these characters."""


class LeftOut:
    """GNU C's attributes, and assembler names of functions, which do not affect results.

    pycparser does not read them. ``texts`` has those that ended since it was last read.
    """

    def __init__(self) -> None:
        self.word = ""
        self.said: list[str] = []
        self.texts: list[str] = []
        self.parens = self.braces = 0

    def skips(self, token: Any, machine: Any, changed: Callable[[str, Span], None]) -> bool:
        """Whether the token is part of one.

        ``changed`` is given an attribute that makes the type another, with its place.
        """
        if not self.word:
            self.braces += (token.value == "{") - (token.value == "}")
            attribute = token.value in ("__attribute__", "__attribute")
            if not attribute and not (self.braces == 0 and token.value in ("__asm__", "__asm", "asm")):
                return False
            self.word = token.value
            return True
        self.parens += (token.value == "(") - (token.value == ")")
        self.said.append(token.value)
        if self.parens == 0 and token.value == ")":
            found = _MEANING.search(" ".join(self.said))
            where, _ = place_of(machine, token, Span("", 0, 0))
            of_system = re.search(r"\busr/(?:local/)?(?:include|lib)/", where.file)
            if found is not None and self.word.startswith("__attribute") and not of_system:
                changed("".join(self.said), where)
            self.texts.append(re.sub(r"(?<=\() | (?=[()])", "", " ".join((self.word, *self.said))))
            self.word, self.said = "", []
        return True


def would_glue(a: Any, b: Any) -> bool:
    """Two tokens that were not neighbours would be read as one."""
    if a.lexpos == b.lexpos or a.lexpos + len(a.value) == b.lexpos:
        return False
    return _GLUE.fullmatch(a.value[-1] + b.value[0]) is not None


def place_of(machine: Any, token: Any, cursor: Span) -> tuple[Span, str | None]:
    """Where the token stands, else where the macro it comes from is named, at or after ``cursor``.

    And the macro whose text it is.
    """
    expanded = getattr(token, "expanded_from", None)
    macro = expanded[0] if expanded else None
    origin = getattr(token, "origin", None)
    if origin is not None:
        line = machine.line_span(origin[0], origin[1])
        return Span(line.file, line.line, origin[2], len(token.value), line.text), macro
    file = token.source if token.source in machine.sources else machine.main
    line = machine.line_span(file, token.lineno)
    start = cursor.col - 1 if (cursor.file, cursor.line) == (line.file, line.line) else 0
    pattern = re.compile(rf"\b{re.escape(expanded[-1])}\b" if expanded else "(?!)")
    named = pattern.search(line.text, start) or pattern.search(line.text)
    return (line if named is None else Span(file, line.line, named.start() + 1, len(named[0]), line.text)), macro


def type_attribute(said: str) -> str:
    """Return the name of the attribute that makes a type another."""
    found = _MEANING.search(said)
    return said if found is None else found[0]
