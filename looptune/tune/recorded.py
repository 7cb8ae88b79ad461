"""Finished searches read back: what each configuration cost, and how long finding out took.

    results.sqlite      ours: a recording for each kernel, size, type, target and device
    *.json              T4 results, schema 1.0.0 and 1.1.0
    *.json              a Kernel Tuner cache file, one whose writer did not close it too

Of a foreign file the space is what it holds: the product of its parameters less what its constraints forbade.
UsageError says which file is none of these, or what in it cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any

from looptune.errors import UsageError
from looptune.runtime.outcome import CutOff, Timed
from looptune.tune.axes import Scalar
from looptune.tune.space import Configuration
from looptune.tune.store import Context, Row, Store
from looptune.tune.table import Table

_UNITS_US = {"nanoseconds": 1e-3, "microseconds": 1.0, "milliseconds": 1e3, "seconds": 1e6,
             "ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}  # fmt: skip
_FAILED_MS = 1e20
"""What old Kernel Tuner caches hold for a configuration that failed."""


@dataclass(frozen=True, slots=True)
class Measured:
    """``cost_us`` None: refused or failed; of a version that was cut off, what a search is told. ``seconds``: compiling
    and measuring, None where the file does not say.

    ``source``: equal ones are one version, measured once. Not ``whole``: it was cut off, and cannot be the best.
    """

    cost_us: float | None
    runs_us: tuple[float, ...] = ()
    seconds: float | None = None
    source: str = ""
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Recording:
    """``measured[k]`` is of ``table[k]``; ``seconds[k]`` is known or, where ``estimated``, supposed."""

    name: str
    kernel: str
    device: str
    table: Table
    measured: tuple[Measured, ...]

    @property
    def best_us(self) -> float:
        return min(m.cost_us for m in self.measured if m.cost_us is not None and m.whole)

    @property
    def versions(self) -> int:
        """Different sources: what exhaustive search has to measure."""
        return len({m.source for m in self.measured})

    @property
    def estimated(self) -> int:
        """How many configurations the file has no duration for."""
        return sum(m.seconds is None for m in self.measured)

    def seconds(self) -> list[float]:
        """How long each took; where it is not known, the median of those known, or its runs alone."""
        known = [m.seconds for m in self.measured if m.seconds is not None]
        usual = median(known) if known else None
        return [
            m.seconds if m.seconds is not None else usual if usual is not None else sum(m.runs_us) / 1e6
            for m in self.measured
        ]


def read(path: Path) -> list[Recording]:
    """The recordings of a file that hold at least two different times, by name."""
    try:
        with path.open("rb") as file:
            ours = file.read(16) == b"SQLite format 3\0"
        text = "" if ours else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "it is neither a store nor JSON")
        raise UsageError(f"cannot read {path}: {reason}") from error
    found = _stored(path) if ours else [_foreign(path, _json(path, text))]
    return [r for r in found if len({m.cost_us for m in r.measured if m.whole} - {None}) > 1]


def select(paths: Sequence[Path], kernels: Sequence[str] = ()) -> list[Recording]:
    """The recordings of several files, those of ``kernels`` where names are given; UsageError where there are none."""
    found = [recording for path in paths for recording in read(path)]
    having = ", ".join(dict.fromkeys(r.kernel for r in found))
    unknown = [k for k in kernels if all(k not in (r.kernel, r.name) for r in found)]
    if unknown:
        raise UsageError(f"no search of {unknown[0]} was recorded; there are {having if having else 'none'}")
    if not found:
        raise UsageError(f"{', '.join(map(str, paths))}: no search that timed two versions is recorded there")
    return [r for r in found if not kernels or r.kernel in kernels or r.name in kernels]


def _stored(path: Path) -> list[Recording]:
    contexts: dict[Context, dict[str, Row]] = {}
    keys: dict[str, Row] = {}
    with Store.open(path) as store:
        for row in store.rows():
            if row.role in ("default", "version") and row.status != "running":
                contexts.setdefault(row.context, {}).setdefault(row.directives, row)
                keys[row.key] = row
    names = _names(contexts)
    found = []
    for context, rows in contexts.items():
        table = Table(Configuration(tuple(text.splitlines())) for text in rows)
        measured = tuple(_of_row(row, keys) for row in rows.values())
        found.append(Recording(names[context], context.kernel, context.device, table, measured))
    return sorted(found, key=lambda r: r.name)


def _of_row(row: Row, keys: Mapping[str, Row]) -> Measured:
    first = keys.get(row.same_as) if row.same_as is not None else None
    row = first if first is not None else row
    took = None if row.finished is None else max(0.0, row.finished - row.started)
    source = row.emitted if row.emitted else row.key
    match row.outcome:
        case Timed(times_us, median_us, facts=facts):
            compiled = dict(facts).get("compile_s")
            seconds = None if took is None or compiled is None else took + float(compiled)
            return Measured(median_us, times_us, seconds, source)
        case CutOff(ran_us, facts=facts) as cut:
            compiled = dict(facts).get("compile_s")
            seconds = None if took is None or compiled is None else took + float(compiled)
            return Measured(cut.cost_us, (ran_us,), seconds, source, whole=False)
    return Measured(None, (), took, source)


def _names(contexts: Iterable[Context]) -> dict[Context, str]:
    """``gemm float32``, and of what makes contexts differ as much as tells them apart."""
    contexts = list(contexts)
    more: Sequence[Callable[[Context], str]] = (
        lambda c: c.device, lambda c: c.target, lambda c: c.sizes, lambda c: c.options, lambda c: c.hash[:8],
    )  # fmt: skip
    names = {c: f"{c.kernel} {c.dtype}" for c in contexts}
    for part in more:
        twice = {n for n in names.values() if sum(n == other for other in names.values()) > 1}
        for name in twice:
            alike = [c for c in contexts if names[c] == name]
            if len({part(c) for c in alike}) > 1:
                names |= {c: f"{name} {part(c)}" for c in alike}
    return names


def _json(path: Path, text: str) -> Any:
    """A Kernel Tuner cache that is still being written lacks its last two braces."""
    for ending in ("", "}}", "}\n}"):
        try:
            return json.loads(text if not ending else text.rstrip().rstrip(",") + ending)
        except ValueError:
            continue
    raise UsageError(f"{path} is neither a results database nor JSON")


def _foreign(path: Path, held: Any) -> Recording:
    try:
        match held:
            case {"cache": dict(cache), "tune_params_keys": list(keys)}:
                name, device = str(held.get("kernel_name", path.stem)), str(held.get("device_name", ""))
                points = [({k: e[k] for k in keys}, _of_cache(e)) for e in cache.values()]
            case {"results": list(results)}:
                about = held.get("metadata", {})
                name, device = path.stem, _device(about)
                points = [(r["configuration"], _of_t4(r, about)) for r in results]
            case _:
                raise UsageError(f"{path} is neither T4 results nor a Kernel Tuner cache")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {type(error).__name__} {error}") from error
    unique = {_configuration(given): measured for given, measured in points}
    measured = tuple(Measured(m.cost_us, m.runs_us, m.seconds, c.text) for c, m in unique.items())
    return Recording(name, name, device, Table(unique), measured)


def _configuration(given: Mapping[str, Any]) -> Configuration:
    slots = tuple((str(name), _scalar(value)) for name, value in given.items())
    return Configuration(tuple(f"{name}={value}" for name, value in slots), slots)


def _scalar(value: Any) -> Scalar:
    match value:
        case bool():
            return int(value)
        case int() | str():
            return value
        case float() if isfinite(value):
            return int(value) if value.is_integer() else value
        case _:
            return json.dumps(value)


def _of_cache(entry: Mapping[str, Any]) -> Measured:
    """One entry of a Kernel Tuner cache: milliseconds, or the name of an error where the time would be."""
    parts = [entry.get(name) for name in ("compile_time", "benchmark_time", "verification_time")]
    spent = [float(p) for p in parts if isinstance(p, int | float)]
    seconds = sum(spent) / 1e3 if spent else None
    match entry["time"]:
        case bool():
            raise ValueError("a time is a number or the name of an error")
        case int() | float() as time if 0 < time < _FAILED_MS:
            runs = tuple(1e3 * float(t) for t in entry.get("times", [time]))
            return Measured(1e3 * float(time), runs, seconds)
    return Measured(None, (), seconds)


def _of_t4(result: Mapping[str, Any], about: Mapping[str, Any]) -> Measured:
    """One result of a T4 file; its time is the first objective where that is one, else the median of its runs."""
    times = result["times"]
    unit_us = _UNITS_US[str(times.get("timeunit", about.get("timeunit", "milliseconds"))).lower()]
    runs = tuple(unit_us * float(t) for t in _list(times.get("runtimes")))
    spent = [float(times[n]) for n in ("compilation_time", "validation") if isinstance(times.get(n), int | float)]
    seconds = (unit_us * sum(spent) + sum(runs)) / 1e6 if spent or runs else None
    if result.get("invalidity", "correct") != "correct" or result.get("correctness", 1) == 0:
        return Measured(None, (), seconds)
    wanted = [str(name) for name in _list(result.get("objectives"))][:1]
    named = [m for m in _list(result.get("measurements")) if m.get("name") in wanted]
    scales = [_UNITS_US.get(str(m.get("unit", "")).lower()) for m in named]
    stated = [float(m["value"]) * s for m, s in zip(named, scales, strict=True) if s is not None]
    cost = stated[0] if stated else median(runs) if runs else None
    return Measured(cost if cost is not None and isfinite(cost) and cost > 0 else None, runs, seconds)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _device(about: Mapping[str, Any]) -> str:
    match about.get("device"):
        case {"name": str(name)} | str(name):
            return name
    return ""
