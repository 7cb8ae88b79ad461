"""Conversion of records to JSON and back, and a check that what was read has the declared types.

Anybody may have changed the file it comes from:

str        encodable, so that it can be shown and written
int        no more than 64 bits, and no bool
float      finite; a time in microseconds (``…_us``) and the ``best`` rate of something are above 0

>>> check((1.5, "a"), tuple[float, str], "pair")
>>> check(-1.5, float, "median_us")
Traceback (most recent call last):
ValueError: median_us is -1.5
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Check = Callable[[Any, str], None]


def to_json(value: Any) -> Any:
    """Make objects of dataclasses and mappings, lists of tuples; a class with ``of`` makes its own ``record``."""
    own: Any = value
    if is_dataclass(value):
        if callable(getattr(value, "of", None)):
            return own.record()
        return {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {name: to_json(part) for name, part in value.items()}
    return list(map(to_json, value)) if isinstance(value, tuple) else value


def from_json(held: Any, kind: Any) -> Any:
    """Read back what ``to_json`` made of a ``kind``; ``check`` sees whether its parts are what their types say.

    Fields that ``held`` lacks have their defaults, and fields that the kind lacks are left out. KeyError, TypeError,
    AttributeError or ValueError where it is none.
    """
    origin, parts, made = get_origin(kind), get_args(kind), kind
    if is_dataclass(kind):
        if callable(getattr(kind, "of", None)):
            return made.of(held)
        hints = get_type_hints(kind)
        return made(**{f.name: from_json(held[f.name], hints[f.name]) for f in fields(kind) if f.name in held})
    if origin in (Union, types.UnionType):
        return None if held is None else from_json(held, parts[0])
    return tuple(from_json(part, parts[0]) for part in held) if origin is tuple else held


def check(value: Any, kind: Any, name: str) -> None:
    """Raise ValueError, which calls the value ``name``, if the value or a part of it is not of ``kind``."""
    _checker(kind)(value, name)


@lru_cache(maxsize=256)
def _checker(kind: Any) -> Check:
    origin, parts = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _fields(kind)
    if origin in (Union, types.UnionType):
        return _either(parts)
    if origin is Literal:
        return _plain(lambda value: isinstance(value, str | int) and value in parts)
    if origin is tuple:
        return _items(_checker(parts[0])) if parts[1:] == (...,) else _tuple(tuple(map(_checker, parts)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(_checker(parts[0]), _checker(parts[1]))
    return _SCALARS[kind]


def _plain(fits: Callable[[Any], bool]) -> Check:
    def look(value: Any, name: str) -> None:
        if not fits(value):
            raise _misfit(value, name)

    return look


def _misfit(value: Any, name: str) -> ValueError:
    text = ascii(value) if not isinstance(value, int) or abs(value) < 2**64 else "a number of too many digits"
    return ValueError(f"{name} is {text if len(text) <= 60 else f'{text[:60]}...'}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**64


def _text(value: Any) -> bool:
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def _number(value: Any, name: str) -> None:
    finite = _whole(value) or (isinstance(value, float) and math.isfinite(value))
    if not finite or (name.endswith(("_us", "best")) and value <= 0):
        raise _misfit(value, name)


_SCALARS: dict[Any, Check] = {
    str: _plain(_text),
    int: _plain(_whole),
    float: _number,
    bool: _plain(lambda value: isinstance(value, bool)),
    object: _plain(lambda value: True),
    types.NoneType: _plain(lambda value: value is None),
}


def _fields(kind: Any) -> Check:
    hints = get_type_hints(kind)
    own = [(f.name, _checker(hints[f.name])) for f in fields(kind)]

    def look(value: Any, name: str) -> None:
        if type(value) is not kind:
            raise _misfit(value, name)
        for part, held in own:
            held(getattr(value, part), part)

    return look


def _either(kinds: tuple[Any, ...]) -> Check:
    checks = tuple(map(_checker, kinds))

    def look(value: Any, name: str) -> None:
        for k, one in enumerate(checks):
            try:
                one(value, name)
            except ValueError:
                if k == len(checks) - 1:
                    raise
            else:
                return

    return look


def _items(item: Check) -> Check:
    def look(value: Any, name: str) -> None:
        if not isinstance(value, tuple):
            raise _misfit(value, name)
        for part in value:
            item(part, name)

    return look


def _tuple(items: tuple[Check, ...]) -> Check:
    def look(value: Any, name: str) -> None:
        if not isinstance(value, tuple) or len(value) != len(items):
            raise _misfit(value, name)
        for part, item in zip(value, items, strict=True):
            item(part, name)

    return look


def _mapping(of_key: Check, of_value: Check) -> Check:
    def look(value: Any, name: str) -> None:
        if not isinstance(value, Mapping):
            raise _misfit(value, name)
        for key, held in value.items():
            of_key(key, name)
            of_value(held, str(key))

    return look
