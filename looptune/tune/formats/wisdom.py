"""Kernel Launcher wisdom 1.0: for a kernel and its type, the best few versions of each device and size.

Kernel Launcher looks for a key in the file of that name: ``gemm_float32`` in ``gemm_float32.wisdom``. The file has a
header line, then one line for each configuration, with its time in milliseconds.

    {"version": "1.0", "objective": "time", "tunable_parameters": ["x", "y"], "key": "gemm_float32"}
    {"config": [16, 1], "problem_size": [512, 512], "time": 0.0257, "environment": {"device_name": "NVIDIA H200"}}

Each device and size is read as a search of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from looptune.core.errors import UsageError
from looptune.core.version import __version__
from looptune.tune.formats import json_cursor
from looptune.tune.formats import records as entries
from looptune.tune.formats.json_cursor import JsonCursor, Positive, Raw, dump
from looptune.tune.formats.records import (
    Point,
    check_version,
    foreign_configuration,
    own_measurement,
    recording,
    search_names,
)
from looptune.tune.space.parameters import Values, parameter_table
from looptune.tune.store.searches import Entry, Measurement, Recording, Search

BEST = 5


@dataclass(frozen=True, slots=True)
class _Environment:
    date: Any = None
    device_name: str | None = None
    looptune_version: Any = None
    compute_capability: Any = None


@dataclass(frozen=True, slots=True)
class _Line:
    """One configuration: the values of its parameters, and its time."""

    config: Raw
    problem_size: tuple[float, ...]
    time: Positive
    environment: _Environment
    looptune: Raw | None


def key(search: Search) -> str:
    """Return the name that Kernel Launcher uses: the kernel and its type, in characters that a file name may have."""
    return re.sub(r"[^\w.-]", "_", f"{search.context.kernel}_{search.context.dtype}", flags=re.ASCII)


def text(searches: Sequence[Search]) -> str:
    """Return the wisdom file; all searches have one key."""
    own = parameter_table([entry.configuration for search in searches for entry in search.entries])
    first = searches[0].context
    about = {
        "version": __version__, "name": f"{first.kernel} {first.dtype}", "kernel": first.kernel,
        "parameters": {parameter.name: parameter.axis for parameter in own.parameters},
    }  # fmt: skip
    header = {
        "version": "1.0", "objective": "time", "tunable_parameters": list(own.names), "key": key(searches[0]),
        "looptune": about,
    }  # fmt: skip
    rows = iter(own.rows)
    groups: dict[tuple[str, tuple[int, ...]], list[_Timed]] = {}
    for search in searches:
        group = groups.setdefault((search.context.device, tuple(entries.lengths(search))), [])
        group += [t for e in entries.ranked_entries(search) if (t := _timed(search, e, next(rows))) is not None]
    records = [_record(timed) for group in groups.values() for timed in _best(group)]
    return "".join(json.dumps(dump(line)) + "\n" for line in (header, *records))


@dataclass(frozen=True, slots=True)
class _Timed:
    search: Search
    entry: Entry
    values: Values
    median_ms: float


def _timed(search: Search, entry: Entry, values: Values) -> _Timed | None:
    median_ms = entries.median_ms(entry)
    return None if median_ms is None else _Timed(search, entry, values, median_ms)


def _best(group: Sequence[_Timed]) -> list[_Timed]:
    """Return the fastest versions; the first of the configurations with the same source stands for the version."""
    unique: dict[str, _Timed] = {}
    for timed in group:
        unique.setdefault(timed.entry.measured.source, timed)
    return sorted(unique.values(), key=lambda timed: timed.median_ms)[:BEST]


def _record(timed: _Timed) -> _Line:
    context = timed.search.context
    capability = re.sub(r"\D", "", context.capability, flags=re.ASCII)
    environment = _Environment(
        entries.timestamp(timed.entry), context.device, __version__, int(capability) if capability else None
    )
    extras = entries.extras(timed.entry) | {"sizes": json.loads(context.sizes), "target": context.target}
    return _Line(timed.values, tuple(entries.lengths(timed.search)), timed.median_ms, environment, extras)


_Group = tuple[str, str]
"""Device and size."""


def is_header(file: JsonCursor) -> bool:
    """Return whether this line opens a wisdom file."""
    return isinstance(file.value, dict) and "tunable_parameters" in file.value


def read(header: JsonCursor, text: str) -> list[Recording]:
    """Return the searches of the whole file ``text``. Raises UsageError, which names the line that cannot be read."""
    check_version(header, "version", "1.")
    objective = header.get("objective")
    if objective is not None and objective.text() != "time":
        raise objective.error('the objective "time"')
    names: tuple[str, ...] = header.at("tunable_parameters").read(tuple[str, ...])
    name, kernel = search_names(header, header.at("key").text())
    groups: dict[_Group, list[Point]] = {}
    for number, line in enumerate(text.split("\n")[1:], start=2):
        # Kernel Launcher passes over these, too.
        if line.strip() and not line.lstrip().startswith(("#", "//")):
            group, point = _line(header, number, line, names)
            groups.setdefault(group, []).append(point)
    several = len(groups) > 1
    return [
        recording(f"{name} {device} {size}" if several else name, kernel, device, points)
        for (device, size), points in groups.items()
    ]


def _line(header: JsonCursor, number: int, line: str, names: tuple[str, ...]) -> tuple[_Group, Point]:
    try:
        held = json_cursor.parse(header.file, line).value
    except UsageError as error:
        raise UsageError(f"{header.file}: line {number}: it is not JSON") from error
    record: _Line = JsonCursor(held, header.file, f"line {number}").read(_Line)
    values = [value.value for value in record.config.items()]
    if len(values) != len(names):
        raise record.config.error(f"{len(names)} values, one for each parameter, not {len(values)}")
    device, sizes = record.environment.device_name, (f"{size:.17g}" for size in record.problem_size)
    group = ("" if device is None else device, "x".join(sizes))
    cost_us = 1e3 * record.time
    if record.looptune is not None:
        return group, own_measurement(record.looptune, cost_us, (cost_us,))
    given = dict(zip(names, values, strict=True))
    return group, (foreign_configuration(given), Measurement(cost_us, (cost_us,)))
