"""The CSV of ``looptune export``: one line for each row of the database; versions that have ended are the searches.

It does not have single runs: a version has only its median.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import Any, TextIO

from looptune.core.errors import UsageError
from looptune.runtime.outcome import Timed
from looptune.schedule.directive_lines import current_text
from looptune.tune.formats.records import Point, recording
from looptune.tune.space.space import Configuration
from looptune.tune.store.searches import VERSIONS, Measurement, Recording, names, seconds
from looptune.tune.store.store import Context, Row, iso_time

CONTEXT = tuple(f.name for f in fields(Context))
COLUMNS = (
    "key", "kernel", "target", "device", "capability", "dtype", "sizes", "options", "role", "status", "median_us",
    "q1_us", "q3_us", "cost_us", "seconds", "directives", "message", "emitted", "same_as", "sweep", "started",
    "finished", "lowering", "toolchain", "source_hash",
)  # fmt: skip
NEEDED = (*CONTEXT, "key", "role", "status", "directives", "cost_us", "seconds", "emitted", "same_as")
"""What is read of them."""


def write(rows: Iterable[Row], out: TextIO) -> None:
    """Write one CSV line per row, with the fields of COLUMNS. Times are UTC, and texts of several lines are quoted.

    ``cost_us`` is what a search is told, of a version that was cut off as well; ``seconds`` compiling and measuring.
    """
    plain = csv.writer(out, lineterminator="\n")
    quoted = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    plain.writerow(COLUMNS)
    for flat in map(cells, rows):
        values = ["" if flat[name] is None else flat[name] for name in COLUMNS]
        # The writer quotes no carriage return by itself, and every reader takes one for the end of a line.
        (quoted if any("\r" in str(value) for value in values) else plain).writerow(values)


def cells(row: Row) -> dict[str, Any]:
    """Return the fields of a row by the names in COLUMNS; None where it has none."""
    quartiles: tuple[float | None, float | None] = (None, None)
    message: str | None = None
    match row.outcome:
        case Timed(q1_us=q1, q3_us=q3):
            quartiles = q1, q3
        case None:
            pass
        case failed:
            message = failed.message
    return {
        **asdict(row.context), "key": row.key, "role": row.role, "status": row.status, "median_us": row.median_us,
        "q1_us": quartiles[0], "q3_us": quartiles[1], "cost_us": row.cost_us, "seconds": seconds(row),
        "directives": row.directives, "message": message,
        "emitted": row.emitted, "same_as": row.same_as, "sweep": row.sweep, "started": iso_time(row.started),
        "finished": None if row.finished is None else iso_time(row.finished),
    }  # fmt: skip


def is_header(line: str) -> bool:
    """Return whether a file that opens with this line is such a CSV, or part of one."""
    return {"kernel", "directives", "status"} <= set(line.strip().lstrip("\ufeff").split(","))


def read(file: Path, text: str) -> list[Recording]:
    """Return the searches by name. Raises UsageError, which names the line that cannot be read."""
    contexts: dict[Context, list[tuple[Mapping[str, str], Measurement]]] = {}
    keys: dict[str, Measurement] = {}
    for place, record in _records(file, text.lstrip("\ufeff")):
        if record["role"] not in VERSIONS or record["status"] == "running":
            continue
        measured = _measured(place, record)
        keys[record["key"]] = measured
        context = Context(**{name: record[name] for name in CONTEXT})
        contexts.setdefault(context, []).append((record, measured))
    called = names(contexts)
    found = [
        recording(called[c], c.kernel, c.device, (_point(r, keys.get(r["same_as"], m)) for r, m in rows))
        for c, rows in contexts.items()
    ]
    return sorted(found, key=lambda r: r.name)


def _point(record: Mapping[str, str], measured: Measurement) -> Point:
    return Configuration(tuple(current_text(record["directives"]).splitlines())), measured


def _records(file: Path, text: str) -> Iterator[tuple[str, dict[str, str]]]:
    lines = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        header = next(lines)
        missing = [name for name in NEEDED if name not in header]
        if missing:
            raise UsageError(f"{file}: the columns {', '.join(missing)} are missing: export it again")
        for values in lines:
            place = f"{file}: line {lines.line_num}"
            if len(values) != len(header):
                raise UsageError(f"{place}: expected {len(header)} fields, found {len(values)}")
            yield place, dict(zip(header, values, strict=True))
    except csv.Error as error:
        raise UsageError(f"{file}: line {lines.line_num}: {error}") from error


def _measured(place: str, record: Mapping[str, str]) -> Measurement:
    cost_us, seconds = _number(place, record, "cost_us"), _number(place, record, "seconds")
    if cost_us is not None and cost_us <= 0:
        raise UsageError(f"{place}: cost_us: expected a number above 0, found {record['cost_us']}")
    source = record["emitted"] if record["emitted"] else record["key"]
    runs_us = () if cost_us is None else (cost_us,)
    return Measurement(cost_us, runs_us, seconds, source, is_complete=record["status"] != "cut_off")


def _number(place: str, record: Mapping[str, str], name: str) -> float | None:
    try:
        value = float(record[name]) if record[name] else None
    except ValueError:
        value = float("nan")
    if value is not None and not isfinite(value):
        raise UsageError(f"{place}: {name}: expected a finite number, found {record[name]!r}")
    return value
