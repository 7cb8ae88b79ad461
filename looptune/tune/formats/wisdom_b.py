"""A Kernel Launcher wisdom file, version 1.0: a header line, then one line a configuration, milliseconds.

    {"version": "1.0", "objective": "time", "tunable_parameters": ["x", "y"], "key": "gemm_float32"}
    {"config": [16, 1], "problem_size": [512, 512], "time": 0.0257, "environment": {"device_name": "NVIDIA H200"}}

The best of each device and size are all it holds, so each of these is a search of a few.
"""

from __future__ import annotations

from looptune.core.errors import UsageError
from looptune.tune.formats import json_cursor
from looptune.tune.formats.json_cursor import Located
from looptune.tune.formats.records_b import Point, called, check_version, foreign, own, recording
from looptune.tune.store.recording import Measured, Recording

_Group = tuple[str, str]
"""Device and size."""


def is_header(file: Located) -> bool:
    """Whether this is what a wisdom file opens with."""
    return isinstance(file.held, dict) and "tunable_parameters" in file.held


def read(header: Located, text: str) -> list[Recording]:
    """``text``: the whole file. UsageError names the line that cannot be read."""
    check_version(header, "version", "1.")
    objective = header.get("objective")
    if objective is not None and objective.text() != "time":
        raise objective.refused('the objective "time"')
    names = [name.text() for name in header.at("tunable_parameters").items()]
    key = header.at("key").text()
    name, kernel = called(header, key)
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


def _line(header: Located, number: int, line: str, names: list[str]) -> tuple[_Group, Point]:
    try:
        held = json_cursor.parse(header.file, line).held
    except UsageError as error:
        raise UsageError(f"{header.file}: line {number}: it is no JSON") from error
    record = Located(held, header.file, f"line {number}")
    values = list(record.at("config").items())
    if len(values) != len(names):
        raise record.at("config").refused(f"{len(names)} values, one for each parameter, not {len(values)}")
    device = record.at("environment").get("device_name")
    sizes = [f"{size.number():.17g}" for size in record.at("problem_size").items()]
    group = ("" if device is None else device.text(), "x".join(sizes))
    cost_us = 1e3 * record.at("time").positive()
    extras = record.get("looptune")
    if extras is not None:
        return group, own(extras, cost_us, (cost_us,))
    given = {name: value.held for name, value in zip(names, values, strict=True)}
    return group, (foreign(given), Measured(cost_us, (cost_us,)))
