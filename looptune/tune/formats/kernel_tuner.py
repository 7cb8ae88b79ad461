"""A Kernel Tuner cache file, which its simulation mode and its dashboard read.

The key ``restrictions``, which Kernel Tuner ignores, holds the conditions that define the searched space:

    kernel_tuner.tune_cache("gemm.json", restrictions=json.load(open("gemm.json"))["restrictions"])

Times are milliseconds, or the name of an error if the configuration failed:

{"device_name": …, "kernel_name": …, "tune_params_keys": ["x", "y"], "cache": {"16,1": {"x": 16, "y": 1, "time": 2.0}}}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from looptune.tune.formats import records
from looptune.tune.formats.json_cursor import Amount, JsonCursor, Raw, dump
from looptune.tune.formats.records import Point, foreign_configuration, own_measurement, recording, search_names
from looptune.tune.store.searches import Measurement, Recording

if TYPE_CHECKING:
    from looptune.tune.store.searches import Entry, Search

_FAILED_MS = 1e20
"""What old caches hold for a configuration that failed."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A configuration besides its parameters; durations are milliseconds."""

    time: Raw
    times: tuple[Amount, ...] | None
    compile_time: float | None
    verification_time: float | None
    benchmark_time: float | None
    strategy_time: Any
    framework_time: Any
    timestamp: Any


def text(search: Search) -> str:
    """Return the cache file, one line per configuration.

    Kernel Tuner recognises a complete file by its last characters.
    """
    own = records.search_parameters(search)
    head = {
        "device_name": search.context.device,
        "kernel_name": search.context.kernel,
        "problem_size": records.lengths(search),
        "tune_params_keys": list(own.names),
        "tune_params": {parameter.name: list(parameter.values) for parameter in own.parameters},
        "objective": "time",
        "restrictions": [condition.expression for condition in own.conditions()],
        "looptune": records.metadata(search, own),
    }
    lines = [
        json.dumps({",".join(map(str, own.rows[k])): records.configuration(own, k) | _entry(entry)})[1:-1]
        for k, entry in enumerate(records.ranked_entries(search))
    ]
    return json.dumps(head, indent=1)[:-2] + ',\n "cache": {\n' + ",\n".join(lines) + "\n}\n}\n"


def _entry(entry: Entry) -> dict[str, Any]:
    spent, median_ms = records.spent_ms(entry), records.median_ms(entry)
    made = _Entry(
        records.error(entry) if median_ms is None else median_ms, tuple(records.runs_ms(entry)), spent["compile"],
        spent["verify"], spent["rest"], 0.0, 0.0, records.timestamp(entry),
    )  # fmt: skip
    return {**dump(made), **records.extras(entry)}


def read(file: JsonCursor) -> Recording:
    """Return the search of a file. Raises UsageError, which names the entry that cannot be read."""
    keys: tuple[str, ...] = file.at("tune_params_keys").read(tuple[str, ...])
    kernel, device = file.get("kernel_name"), file.get("device_name")
    name, own_kernel = search_names(file, file.file.stem if kernel is None else kernel.text())
    points = [_point(entry, keys) for entry in file.at("cache").members().values()]
    return recording(name, own_kernel, "" if device is None else device.text(), points)


def _point(cursor: JsonCursor, keys: tuple[str, ...]) -> Point:
    entry: _Entry = cursor.read(_Entry)
    cost_us = _cost_us(entry.time)
    runs_us = () if entry.times is None else tuple(1e3 * run for run in entry.times)
    if cursor.get("directives") is not None and cursor.get("outcome") is not None:
        return own_measurement(cursor, cost_us, runs_us)
    parts = (entry.compile_time, entry.benchmark_time, entry.verification_time)
    spent = [part for part in parts if part is not None]
    seconds = sum(spent) / 1e3 if spent else None
    given = {key: cursor.at(key).value for key in keys}
    if cost_us is None:
        return foreign_configuration(given), Measurement(None, (), seconds)
    return foreign_configuration(given), Measurement(cost_us, (cost_us,) if entry.times is None else runs_us, seconds)


def _cost_us(time: JsonCursor) -> float | None:
    match time.value:
        case str():
            return None
        case int() | float() if not isinstance(time.value, bool) and time.number() >= _FAILED_MS:
            return None
        case bool() | dict() | list() | None:
            raise time.error("a number of milliseconds or the name of an error")
    return 1e3 * time.positive()
