"""A value of a JSON file that knows where it stands, so that what is wrong with it can be said.

    t4.json: results[3].times.runtimes[0]: expected a finite number, found NaN

Every question that the value cannot answer is a UsageError with the file, the place and what was expected.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from looptune.core.errors import UsageError

_SHOWN = 40
_MOST = 1e100
"""What is read in one unit is finite in every other."""


@dataclass(frozen=True, slots=True)
class JsonCursor:
    """``path`` is empty for the whole file."""

    value: Any
    file: Path
    path: str = ""

    def error(self, expected: str) -> UsageError:
        """Return the exception to raise."""
        where = f"{self.file}: {self.path}" if self.path else str(self.file)
        return UsageError(f"{where}: expected {expected}, found {_shown(self.value)}")

    def members(self) -> dict[str, JsonCursor]:
        """Return the members of an object."""
        match self.value:
            case dict():
                return {key: JsonCursor(value, self.file, _member(self.path, key)) for key, value in self.value.items()}
        raise self.error("an object")

    def at(self, key: str) -> JsonCursor:
        """Return the member of an object. Raises UsageError if it is missing."""
        members = self.members()
        if key not in members:
            where = f"{self.file}: {self.path}" if self.path else str(self.file)
            raise UsageError(f"{where}: the key {key!r} is missing")
        return members[key]

    def get(self, key: str) -> JsonCursor | None:
        """Return the member of an object, or None if it is missing or null."""
        found = self.members().get(key)
        return None if found is None or found.value is None else found

    def items(self) -> Iterator[JsonCursor]:
        """Return the items of a list."""
        match self.value:
            case list():
                return (JsonCursor(v, self.file, f"{self.path}[{k}]") for k, v in enumerate(self.value))
        raise self.error("a list")

    def number(self) -> float:
        """Return a finite number that is not a truth value."""
        match self.value:
            case bool():
                raise self.error("a number")
            case int() | float() if -_MOST <= self.value <= _MOST:
                return float(self.value)
            case int() | float():
                raise self.error(f"a finite number, of at most {_MOST:g}")
        raise self.error("a number")

    def amount(self) -> float:
        """Return a number that is not negative."""
        if self.number() < 0:
            raise self.error("a number that is not negative")
        return self.number()

    def positive(self) -> float:
        """Return a positive number."""
        if self.number() <= 0:
            raise self.error("a number above 0")
        return self.number()

    def text(self) -> str:
        match self.value:
            case str():
                return self.value
        raise self.error("a text")


def parse(file: Path, text: str, endings: Sequence[str] = ("",)) -> JsonCursor:
    """Return the JSON of a file; ``endings`` may be missing at its end."""
    problem = ""
    for ending in endings:
        try:
            return JsonCursor(json.loads(text if not ending else text.rstrip().rstrip(",") + ending), file)
        except RecursionError as error:
            raise UsageError(f"{file} is JSON that nests too deeply") from error
        except ValueError as error:
            problem = problem if problem else str(error)
    raise UsageError(f"{file} is neither a results database nor JSON: {problem}")


def _member(place: str, key: str) -> str:
    if not key.isidentifier():
        return f"{place}[{_shown(key)}]"
    return f"{place}.{key}" if place else key


def _shown(value: Any) -> str:
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
