"""A Kernel Tuner cache file: its simulation mode and dashboard read it.

The key ``restrictions``, which Kernel Tuner passes over, holds what makes its space the one that was searched:

    kernel_tuner.tune_cache("gemm.json", restrictions=json.load(open("gemm.json"))["restrictions"])

A Kernel Tuner cache file: milliseconds, or the name of an error where the time would be.

{"device_name": …, "kernel_name": …, "tune_params_keys": ["x", "y"], "cache": {"16,1": {"x": 16, "y": 1, "time": 2.0}}}
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from looptune.tune.formats import records
from looptune.tune.formats.records import Point, foreign_configuration, own_measurement, recording, search_names
from looptune.tune.store.searches import Measurement, Recording

if TYPE_CHECKING:
    from looptune.tune.formats.json_cursor import JsonCursor
    from looptune.tune.store.searches import Entry, Search


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
        for k, entry in enumerate(search.entries)
    ]
    return json.dumps(head, indent=1)[:-2] + ',\n "cache": {\n' + ",\n".join(lines) + "\n}\n}\n"


def _entry(entry: Entry) -> dict[str, Any]:
    spent, median_ms = records.spent_ms(entry), records.median_ms(entry)
    return {
        "time": records.error(entry) if median_ms is None else median_ms,
        "times": records.runs_ms(entry),
        "compile_time": spent["compile"], "verification_time": spent["verify"], "benchmark_time": spent["rest"],
        "strategy_time": 0.0, "framework_time": 0.0, "timestamp": records.timestamp(entry), **records.extras(entry),
    }  # fmt: skip


_FAILED_MS = 1e20
"""What old caches hold for a configuration that failed."""
_SPENT = ("compile_time", "benchmark_time", "verification_time")


def read(file: JsonCursor) -> Recording:
    """UsageError names the entry that cannot be read."""
    keys = [key.text() for key in file.at("tune_params_keys").items()]
    kernel, device = file.get("kernel_name"), file.get("device_name")
    name, own_kernel = search_names(file, file.file.stem if kernel is None else kernel.text())
    points = [_point(entry, keys) for entry in file.at("cache").members().values()]
    return recording(name, own_kernel, "" if device is None else device.text(), points)


def _point(entry: JsonCursor, keys: list[str]) -> Point:
    cost_us, times = _cost_us(entry.at("time")), entry.get("times")
    runs_us = () if times is None else tuple(1e3 * t.amount() for t in times.items())
    if entry.get("directives") is not None and entry.get("outcome") is not None:
        return own_measurement(entry, cost_us, runs_us)
    spent = [part.number() for part in map(entry.get, _SPENT) if part is not None]
    seconds = sum(spent) / 1e3 if spent else None
    given = {key: entry.at(key).value for key in keys}
    if cost_us is None:
        return foreign_configuration(given), Measurement(None, (), seconds)
    return foreign_configuration(given), Measurement(cost_us, (cost_us,) if times is None else runs_us, seconds)


def _cost_us(time: JsonCursor) -> float | None:
    match time.value:
        case str():
            return None
        case int() | float() if not isinstance(time.value, bool) and time.number() >= _FAILED_MS:
            return None
        case bool() | dict() | list() | None:
            raise time.error("a number of milliseconds or the name of an error")
    return 1e3 * time.positive()
