"""Results of KTT (the Kernel Tuning Toolkit) in its own JSON, as its ``JsonSerializer`` writes them.

``Metadata.TimeUnit`` is the unit of all durations. The cost of a configuration is ``TotalDuration``, the time of its
kernels and of the launcher; ``TotalOverhead`` is compiling and all else. A ``Status`` other than ``Ok`` is a failure:

{"Metadata": {"Device": …, "TimeUnit": "Microseconds"},
 "Results": [{"KernelName": "mm", "Status": "Ok", "TotalDuration": 2.0, "TotalOverhead": 90.0,
              "Configuration": [{"Name": "MWG", "Value": 16}], …}]}

Source: HiPerCoRe/KTT, Source/Output/JsonConverters.cpp.
"""

from __future__ import annotations

from dataclasses import dataclass

from looptune.tune.formats.json_cursor import Amount, JsonCursor, Raw
from looptune.tune.formats.records import Point, foreign_configuration, recording, unit_us
from looptune.tune.store.searches import Measurement, Recording


@dataclass(frozen=True, slots=True)
class _Result:
    """One configuration; the names are those of the file."""

    KernelName: str
    Status: str
    TotalDuration: Amount
    Configuration: Raw
    TotalOverhead: Amount = 0.0


def read(file: JsonCursor) -> Recording:
    """Return the search of a file. Raises UsageError, which names the result that cannot be read."""
    about = file.at("Metadata")
    device, unit = about.get("Device"), about.get("TimeUnit")
    scale = 1.0 if unit is None else unit_us(unit)
    results: list[tuple[JsonCursor, _Result]] = [(r, r.read(_Result)) for r in file.at("Results").items()]
    kernel = results[0][1].KernelName if results else file.file.stem
    points = [_point(cursor, result, kernel, scale) for cursor, result in results]
    return recording(kernel, kernel, "" if device is None else device.text(), points)


def _point(cursor: JsonCursor, result: _Result, kernel: str, scale: float) -> Point:
    """Return the measurement in microseconds; ``scale`` is the unit of the file in microseconds."""
    if result.KernelName != kernel:
        raise cursor.at("KernelName").error(f"the kernel {kernel!r}, as in the results before it")
    pairs = [(pair.at("Name").text(), pair.at("Value").value) for pair in result.Configuration.items()]
    if len(dict(pairs)) < len(pairs):
        raise cursor.at("Configuration").error("one value for each name")
    duration_us = scale * result.TotalDuration
    seconds = (duration_us + scale * result.TotalOverhead) / 1e6
    if result.Status != "Ok" or duration_us <= 0:
        return foreign_configuration(dict(pairs)), Measurement(None, (), None if result.Status != "Ok" else seconds)
    return foreign_configuration(dict(pairs)), Measurement(duration_us, (duration_us,), seconds)
