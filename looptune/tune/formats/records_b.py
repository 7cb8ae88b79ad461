"""What all readers share: a configuration from its parameters, and what looptune adds to a measurement of its own.

"directives"   the configuration; parameters alone would not give its lines back
"outcome"      timed, cut_off, illegal, …; of a version that was cut off "cost_us" is what a search is told
"source"       equal ones are one version
"seconds"      compiling and measuring, null where not known
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from looptune.core.errors import UsageError
from looptune.tune.formats.json_cursor import Located
from looptune.tune.space.axes import Scalar
from looptune.tune.space.space import Configuration
from looptune.tune.space.table_view import Table
from looptune.tune.store.recording import Measured, Recording

Point = tuple[Configuration, Measured]

_MOST = 2**53
"""Up to there a number is told from the next one; what is greater is a word."""


def foreign(given: Mapping[str, Any]) -> Configuration:
    """The configuration of another tool: its parameters are its slots.

    >>> foreign({"x": 16, "pad": True}).text
    'x=16\\npad=1'
    """
    slots = tuple((str(name), _scalar(value)) for name, value in given.items())
    return Configuration(tuple(f"{name}={value}" for name, value in slots), slots)


def own(extras: Located, cost_us: float | None, runs_us: tuple[float, ...]) -> Point:
    """A measurement that looptune wrote; UsageError where a part of it is missing."""
    text, outcome = extras.at("directives").text(), extras.at("outcome").text()
    took = extras.get("seconds")
    seconds = None if took is None else took.amount()
    cut = outcome == "cut_off"
    if cut:
        cost_us, runs_us = extras.at("cost_us").positive(), tuple(r.amount() for r in extras.at("runs_us").items())
    source = extras.at("source").text()
    return Configuration(tuple(text.splitlines())), Measured(cost_us, runs_us, seconds, source, whole=not cut)


def recording(name: str, kernel: str, device: str, points: Iterable[Point]) -> Recording:
    """Of equal configurations the last one counts; a version without a source is one of its own."""
    unique = dict(points)
    measured = tuple(m if m.source else replace(m, source=c.text) for c, m in unique.items())
    return Recording(name, kernel, device, Table(unique), measured)


def called(file: Located, default: str) -> tuple[str, str]:
    """The name of a search and its kernel, as looptune wrote them; else the default for both."""
    about = file.get("looptune")
    return (default, default) if about is None else (about.at("name").text(), about.at("kernel").text())


def check_version(file: Located, key: str, first: str) -> None:
    """UsageError unless the version is absent or begins with ``first``."""
    version = file.get(key)
    if version is not None and not version.text().startswith(first):
        raise UsageError(f"{file.file}: {key}: version {version.held!r} is none that looptune reads: {first}…")


def _scalar(value: Any) -> Scalar:
    match value:
        case bool():
            return int(value)
        case str():
            return value
        case int() | float() if -_MOST <= value <= _MOST:
            return int(value) if isinstance(value, float) and value.is_integer() else value
        case _:
            return json.dumps(value)
