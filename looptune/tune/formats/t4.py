"""T4 results JSON: schema 1.1.0 is written, which adds metadata to 1.0.0; both are read.

Times are milliseconds, and the median is the objective ``time``. A version that was not timed has no runtimes and no
measurement; its ``invalidity`` says why. Each result also has a block ``looptune`` with the directives and the message.
Common additions of other tools to the schema are read.

{"schema_version": "1.1.0", "metadata": {"timeunit": "milliseconds", "device": …},
 "results": [{"configuration": {"x": 16}, "invalidity": "correct", "correctness": 1, "times": {"runtimes": [2.0]}}]}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from looptune.core.version import __version__
from looptune.runtime.outcome import Timed
from looptune.tune.formats import records
from looptune.tune.formats.json_cursor import Amount, JsonCursor, Raw, Several, dump
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
    from looptune.tune.store.searches import Entry, Search

_APIS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "numba-cuda": ("CUDA", "NVIDIA CUDA"), "cuda-c": ("CUDA", "NVIDIA CUDA"), "opencl": ("OpenCL", "OpenCL"),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Times:
    """Durations in the unit of the file, which is milliseconds where it says none, or in ``timeunit``.

    ``compilation`` is the name that Kernel Tuner and the benchmarking methodology go by.
    """

    compilation_time: float | None = None
    compilation: float | None = None
    validation: float | None = None
    framework: Any = None
    search_algorithm: Any = None
    runtimes: Several[Amount] = ()
    timeunit: Raw | None = None

    @property
    def spent(self) -> list[float]:
        """Return the durations of compiling and of verifying, as far as they are known."""
        compiled = self.compilation if self.compilation_time is None else self.compilation_time
        return [part for part in (compiled, self.validation) if part is not None]


@dataclass(frozen=True, slots=True)
class _Measurement:
    name: Any = None
    value: Raw | None = None
    unit: Raw | None = None
    type: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """One configuration; ``objectives`` names the measurement that is its cost."""

    timestamp: Any
    configuration: dict[str, Any]
    objectives: Several[Any] = ()
    times: _Times
    invalidity: str | None
    correctness: Any
    measurements: Several[_Measurement] = ()
    looptune: Raw | None = None


def text(search: Search) -> str:
    """Return the T4 file."""
    own = records.search_parameters(search)
    entries = records.ranked_entries(search)
    # The schema has no word for the API of a CPU.
    api, platform = _APIS.get(search.context.target, (None, search.context.target))
    newest = max((entry.row.started for entry in entries), default=0.0)
    whole = {
        "schema_version": "1.1.0",
        "metadata": {
            **({} if api is None else {"compute_api": api}), "platform": platform, "device": search.context.device,
            "autotuner": "looptune", "autotuner_version": __version__, "timestamp": iso_time(newest),
            "timeunit": "milliseconds",
        },
        "looptune": records.metadata(search, own),
        "results": [dump(_result(e, records.configuration(own, k))) for k, e in enumerate(entries)],
    }  # fmt: skip
    return json.dumps(whole, indent=1) + "\n"


def _result(entry: Entry, configuration: dict[str, Any]) -> _Result:
    spent, median_ms = records.spent_ms(entry), records.median_ms(entry)
    invalidity = records.INVALIDITY[entry.row.status]
    return _Result(
        timestamp=records.timestamp(entry),
        configuration=configuration,
        objectives=("time",),
        times=_Times(
            spent["compile"], spent["compile"], spent["verify"], spent["rest"], 0.0, tuple(records.runs_ms(entry))
        ),
        invalidity=invalidity,
        correctness=int(invalidity != "correctness"),
        measurements=() if median_ms is None else (_Measurement("time", median_ms, "ms", "Double"),),
        looptune=records.extras(entry) | {"message": _message(entry), "facts": entry.facts},
    )


def _message(entry: Entry) -> str:
    match entry.row.outcome:
        case None | Timed():
            return ""
        case outcome:
            return outcome.message


def read(file: JsonCursor) -> Recording:
    """Return the search of a file. Raises UsageError, which names the result that cannot be read."""
    check_version(file, "schema_version", "1.")
    about = file.get("metadata")
    device, unit = (None, None) if about is None else (about.get("device"), about.get("timeunit"))
    name, kernel = search_names(file, file.file.stem)
    points = [_point(result.read(_Result), unit) for result in file.at("results").items()]
    return recording(name, kernel, _device(None if device is None else device.value), points)


def _device(device: Any) -> str:
    match device:
        case {"name": str(name)} | str(name):
            return name
    return ""


def _point(result: _Result, unit: JsonCursor | None) -> Point:
    times = result.times
    stated = unit if times.timeunit is None else times.timeunit
    scale = records.MILLISECOND_US if stated is None else records.unit_us(stated)
    runs_us = tuple(scale * run for run in times.runtimes)
    is_valid = result.invalidity in (None, "correct") and (result.correctness is None or result.correctness != 0)
    cost_us = _cost_us(result, runs_us, scale) if is_valid else None
    if result.looptune is not None:
        return own_measurement(result.looptune, cost_us, runs_us)
    seconds = (scale * sum(times.spent) + sum(runs_us)) / 1e6 if times.spent or runs_us else None
    measured = Measurement(cost_us, runs_us if cost_us is not None else (), seconds)
    return foreign_configuration(result.configuration), measured


def _cost_us(result: _Result, runs_us: tuple[float, ...], scale: float) -> float | None:
    """Return the first objective where that is a time, else the median of the runs.

    The objective ``time`` without a unit is in that of the file, ``scale`` microseconds, as the hub's files have it.
    """
    for measurement in result.measurements:
        if measurement.name is None or measurement.name not in result.objectives[:1] or measurement.value is None:
            continue
        unit = "" if measurement.unit is None else measurement.unit.text().lower()
        factor = scale if not unit and measurement.name == "time" else records.UNITS_US.get(unit)
        if factor is not None:
            return float(factor * measurement.value.positive())
    cost = median(runs_us) if runs_us else None
    return cost if cost is not None and cost > 0 else None
