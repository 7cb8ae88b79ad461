"""The names of the text in what is said of a codelet, whose locals may have others.

A scalar ``s`` that leaves a nest is an array ``s`` of one element, and the local is ``s_2``: messages name ``s``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from looptune.core.errors import LooptuneError
from looptune.core.source import Span
from looptune.schedule.suggest import Suggestion

T = TypeVar("T")


def in_text_names(found: T, names: Mapping[str, str]) -> T:
    """Return findings with the text's ``names`` of variables. Suggestions keep the names that directives use."""
    other = {own: text for own, text in names.items() if own != text}
    return _Renamer(other).value(found) if other else found


class _Renamer:
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")

    def text(self, text: str) -> str:
        return self.pattern.sub(lambda m: self.names[m[0]], text)

    def value(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case LooptuneError():
                notes = tuple(map(self.text, value.notes))
                return type(value)(self.text(value.message), value.span, notes)
            case Suggestion() | Span():
                return value
            case tuple() if type(value) is tuple:
                return tuple(map(self.value, value))
            case list():
                return [self.value(v) for v in value]
            case dict():
                return {self.value(k): self.value(v) for k, v in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            known = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
            made = {name: new for name, old in known.items() if (new := self.value(old)) is not old and new != old}
            return replace(value, **made) if made else value
        return value
