"""Read JSON by the dataclasses that describe a format, and write it by the same ones.

    class Times:
        runtimes: tuple[Amount, ...]        t4.json: results[3].times.runtimes[0]: expected a finite number, found NaN

A ``JsonCursor`` is a value that knows where it stands in its file. A value that is not of the declared kind is a
UsageError with the file, the place, what was expected and what was found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from looptune.core.errors import UsageError

_SHOWN = 40
_MOST = 1e100
"""What is read in one unit is finite in every other."""

T = TypeVar("T")
Amount = Annotated[float, "amount"]
"""A number that is not negative."""
Positive = Annotated[float, "positive"]
Raw = Annotated[Any, "itself"]
"""A value that is read as its cursor, for the reader of the format to judge; it is written as it is."""
Several = Annotated[tuple[T, ...], "several"]
"""A list, or a single value that stands for a list of one."""


@dataclass(frozen=True, slots=True)
class JsonCursor:
    """A value in a JSON file, with its place in the file; ``path`` is "" for the whole file."""

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

    def itself(self) -> JsonCursor:
        return self

    def read(self, kind: Any) -> Any:
        """Return the value as a ``kind``.

        That is a dataclass, ``tuple[X, ...]``, ``dict[str, X]``, ``X | None``, str, float, Any, or one of the kinds
        above. A member that is missing or null has the default of its field, or None where the field may be None.
        Members that the dataclass lacks are passed over.
        """
        origin, parts = get_origin(kind), get_args(kind)
        if is_dataclass(kind):
            made: Any = kind
            return made(**{field.name: self._field(field, of) for field, of in _fields(made)})
        if origin in (Union, UnionType):
            return self.read(parts[0])
        if origin is Annotated and parts[1] == "several":
            return self.read(parts[0]) if isinstance(self.value, list) else (self.read(get_args(parts[0])[0]),)
        if origin is Annotated:
            return getattr(self, parts[1])()
        if origin is tuple:
            return self._amounts() if parts[0] is Amount else tuple(item.read(parts[0]) for item in self.items())
        if origin is dict:
            return {key: member.read(parts[1]) for key, member in self.members().items()}
        return self.value if kind is Any else self.text() if kind is str else self.number()

    def _amounts(self) -> tuple[float, ...]:
        """Return a list of numbers that are not negative; one at a time only where one of them is none."""
        items = self.value
        if isinstance(items, list) and all(type(v) in (float, int) and 0 <= v <= _MOST for v in items):
            return tuple(map(float, items))
        return tuple(item.amount() for item in self.items())

    def _field(self, field: Field[Any], kind: Any) -> Any:
        value = self.value.get(field.name) if isinstance(self.value, dict) else self.at(field.name).value
        if value is None:
            if field.default is not MISSING:
                return field.default
            if kind is Any or NoneType in get_args(kind):
                return None
            return self.at(field.name).read(kind)
        return JsonCursor(value, self.file, _member(self.path, field.name)).read(kind)


@cache
def _fields(kind: Any) -> tuple[tuple[Field[Any], Any], ...]:
    hints = get_type_hints(kind, include_extras=True)
    return tuple((field, hints[field.name]) for field in fields(kind))


def dump(value: Any) -> Any:
    """Return the JSON of what ``JsonCursor.read`` reads; a field that is None by default and is None is left out."""
    if is_dataclass(value):
        held = ((field, getattr(value, field.name)) for field in fields(value))
        return {field.name: dump(part) for field, part in held if part is not None or field.default is not None}
    if isinstance(value, dict):
        return {key: dump(part) for key, part in value.items()}
    return list(map(dump, value)) if isinstance(value, list | tuple) else value


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
