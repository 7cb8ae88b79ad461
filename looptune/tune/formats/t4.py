"""T4 results JSON, schema 1.1.0, which adds to 1.0.0: milliseconds, the median as the objective ``time``.

A version that was not timed has no runtimes and no measurement; why is its ``invalidity``. Each result has a block
``looptune`` besides, with the directives and the message.

T4 results, schema 1.0.0 and 1.1.0; what other tools write besides the schema is read where it is usual.

{"schema_version": "1.1.0", "metadata": {"timeunit": "milliseconds", "device": …},
 "results": [{"configuration": {"x": 16}, "invalidity": "correct", "correctness": 1, "times": {"runtimes": [2.0]}}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from looptune.core.version import __version__
from looptune.runtime.outcome import Timed
from looptune.tune.formats import records
from looptune.tune.formats.records import (
    Point,
    check_version,
    foreign_configuration,
    own_measurement,
    recording,
    search_names,
)
from looptune.tune.store.searches import Measurement, Recording
from looptune.tune.store.store import iso_time

if TYPE_CHECKING:
    from looptune.tune.formats.json_cursor import JsonCursor
    from looptune.tune.store.searches import Entry, Search

_APIS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "numba-cuda": ("CUDA", "NVIDIA CUDA"), "cuda-c": ("CUDA", "NVIDIA CUDA"), "opencl": ("OpenCL", "OpenCL"),
})  # fmt: skip


def text(search: Search) -> str:
    """Return the T4 file."""
    own = records.search_parameters(search)
    api, platform = _APIS.get(search.context.target, ("CPU", search.context.target))
    newest = max((entry.row.started for entry in search.entries), default=0.0)
    whole = {
        "schema_version": "1.1.0",
        "metadata": {
            "compute_api": api, "platform": platform, "device": search.context.device, "autotuner": "looptune",
            "autotuner_version": __version__, "timestamp": iso_time(newest), "timeunit": "milliseconds",
        },
        "looptune": records.metadata(search, own),
        "results": [_result(e, records.configuration(own, k)) for k, e in enumerate(search.entries)],
    }  # fmt: skip
    return json.dumps(whole, indent=1) + "\n"


def _result(entry: Entry, configuration: dict[str, Any]) -> dict[str, Any]:
    spent, median_ms = records.spent_ms(entry), records.median_ms(entry)
    invalidity = records.INVALIDITY[entry.row.status]
    timed = [] if median_ms is None else [{"name": "time", "value": median_ms, "unit": "ms", "type": "double"}]
    return {
        "timestamp": records.timestamp(entry),
        "configuration": configuration,
        "objectives": ["time"],
        "times": {
            # The schema's name, and the one that Kernel Tuner and the benchmarking methodology go by.
            "compilation_time": spent["compile"], "compilation": spent["compile"], "validation": spent["verify"],
            "framework": spent["rest"], "search_algorithm": 0.0, "runtimes": records.runs_ms(entry),
        },
        "invalidity": invalidity,
        "correctness": int(invalidity != "correctness"),
        "measurements": timed,
        "looptune": records.extras(entry) | {"message": _message(entry), "facts": entry.facts},
    }  # fmt: skip


def _message(entry: Entry) -> str:
    match entry.row.outcome:
        case None | Timed():
            return ""
        case outcome:
            return outcome.message


_UNITS_US: Mapping[str, float] = MappingProxyType(
    {"nanoseconds": 1e-3, "microseconds": 1.0, "milliseconds": 1e3, "seconds": 1e6,
     "ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
)  # fmt: skip
_SPENT = (("compilation_time", "compilation"), ("validation",))
"""Of each duration the schema's name, and then what Kernel Tuner writes."""


def read(file: JsonCursor) -> Recording:
    """UsageError names the result that cannot be read."""
    check_version(file, "schema_version", "1.")
    about = file.get("metadata")
    device = None if about is None else about.get("device")
    unit = None if about is None else about.get("timeunit")
    name, kernel = search_names(file, file.file.stem)
    points = [_point(result, unit) for result in file.at("results").items()]
    return recording(name, kernel, "" if device is None else _device(device), points)


def _device(device: JsonCursor) -> str:
    match device.value:
        case {"name": str(name)} | str(name):
            return name
    return ""


def _point(result: JsonCursor, unit: JsonCursor | None) -> Point:
    times = result.at("times")
    own_unit = times.get("timeunit")
    unit_us = _unit_us(own_unit if own_unit is not None else unit)
    runs_us = tuple(unit_us * run.amount() for run in _list(times.get("runtimes")))
    cost_us = _cost_us(result, runs_us) if _valid(result) else None
    extras = result.get("looptune")
    if extras is not None:
        return own_measurement(extras, cost_us, runs_us)
    members = times.members()
    known = [next((members[n] for n in names if n in members), None) for names in _SPENT]
    spent = [part.number() for part in known if part is not None and part.value is not None]
    seconds = (unit_us * sum(spent) + sum(runs_us)) / 1e6 if spent or runs_us else None
    given = {key: value.value for key, value in result.at("configuration").members().items()}
    return foreign_configuration(given), Measurement(cost_us, runs_us if cost_us is not None else (), seconds)


def _unit_us(unit: JsonCursor | None) -> float:
    if unit is None:
        return _UNITS_US["milliseconds"]
    known = _UNITS_US.get(unit.text().lower())
    if known is None:
        raise unit.error(f"one of {', '.join(_UNITS_US)}")
    return known


def _valid(result: JsonCursor) -> bool:
    invalidity, correctness = result.get("invalidity"), result.get("correctness")
    return (invalidity is None or invalidity.text() == "correct") and (correctness is None or correctness.value != 0)


def _cost_us(result: JsonCursor, runs_us: tuple[float, ...]) -> float | None:
    """Return the first objective where that is a time, else the median of the runs."""
    wanted = [objective.value for objective in _list(result.get("objectives"))][:1]
    for measurement in _list(result.get("measurements")):
        name, unit = measurement.get("name"), measurement.get("unit")
        scale = None if unit is None else _UNITS_US.get(unit.text().lower())
        if name is not None and name.value in wanted and scale is not None:
            return scale * measurement.at("value").positive()
    cost = median(runs_us) if runs_us else None
    return cost if cost is not None and cost > 0 else None


def _list(value: JsonCursor | None) -> Iterator[JsonCursor]:
    """Return a list; a single value stands for a list of one."""
    if value is None:
        return iter(())
    return value.items() if isinstance(value.value, list) else iter((value,))
