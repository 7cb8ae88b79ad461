"""What an array is initialised with: lists in braces, and strings for arrays of characters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from looptune.frontend import c_ast as s
from looptune.frontend.c_constants import character

if TYPE_CHECKING:
    from looptune.core.source import Span

_CHARACTERS = ("int8", "uint8")
_PART = re.compile(r"\\0(?![0-7])|\\[^0-7xuU]|[^\\]", re.DOTALL)
"""A character of a string. pycparser joins ``"\\x1" "2"`` to ``"\\x12"``: escapes of several digits are not known."""


def is_of_numbers(kind: s.ArrayOf) -> bool:
    """Tell whether the elements are numbers or rows of numbers."""
    return is_of_numbers(kind.of) if isinstance(kind.of, s.ArrayOf) else isinstance(kind.of, s.Basic)


DESIGNATED = "a designated initialiser"
"""What is said of one that stands for elements which are not counted."""


def has_each(init: s.Expr | s.InitializerList | None, kind: s.ArrayOf) -> bool:
    """Tell whether an array is initialised with a list that has a part for each element."""
    if not isinstance(init, s.InitializerList):
        return False
    if isinstance(kind.of, s.ArrayOf):
        return all(isinstance(part, s.InitializerList) for part in init.parts)
    return not any(isinstance(part, s.Unsupported) and part.what == DESIGNATED for part in init.parts)


def string_values(text: str, kind: s.Type | None, span: Span) -> s.InitializerList | None:
    """Return the bytes of a string as the list of an array of characters, with the zero at its end.

    The zero is left out where the array has no element for it, as in C. None for other types than ``char``, strings
    with a prefix, and escapes of several digits, of which it is not known where they end.
    """
    if not isinstance(kind, s.ArrayOf) or not isinstance(kind.of, s.Basic) or kind.of.dtype not in _CHARACTERS:
        return None
    if not text.startswith('"') or _PART.sub("", text[1:-1]):
        return None
    found: list[s.Expr | s.InitializerList] = []
    for part in _PART.findall(text[1:-1]):
        if part.startswith("\\"):
            found.append(s.Number(str(character(f"'{part}'", span).value % 256), span=span))
        else:
            found += [s.Number(str(byte), span=span) for byte in part.encode()]
    extent = kind.extent
    if not (isinstance(extent, s.Number) and extent.text == str(len(found))):
        found.append(s.Number("0", span=span))
    return s.InitializerList(tuple(found), span=span)
