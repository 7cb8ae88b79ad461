"""What the formats have in common: how an outcome is called there, and what looptune adds so that nothing is lost.

outcome      T4 invalidity   T4 correctness   Kernel Tuner
timed        correct         1
cut_off      timeout         1                RuntimeFailedConfig
illegal      constraints     1                InvalidConfig
not_built    compile         1                CompilationFailedConfig
over_limit   constraints     1                InvalidConfig
wrong        correctness     0                RuntimeFailedConfig
crashed      runtime         1                RuntimeFailedConfig
timed_out    timeout         1                RuntimeFailedConfig

``Own`` is what looptune adds to a measurement of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from looptune.core.errors import UsageError
from looptune.core.version import __version__
from looptune.runtime.outcome import Timed, WrongResult
from looptune.schedule.directive_lines import current_text
from looptune.tune.formats.json_cursor import Amount, JsonCursor, Positive, dump
from looptune.tune.space.parameters import ParameterTable, parameter_table
from looptune.tune.space.space import Configuration
from looptune.tune.space.table_view import Table
from looptune.tune.store.searches import Measurement, Recording
from looptune.tune.store.store import iso_time

if TYPE_CHECKING:
    from looptune.tune.space.axes import Scalar
    from looptune.tune.store.searches import Entry, Search
    from looptune.tune.store.store import Row

INVALIDITY: Mapping[str, str] = MappingProxyType(
    {"timed": "correct", "cut_off": "timeout", "illegal": "constraints", "not_built": "compile",
     "over_limit": "constraints", "wrong": "correctness", "crashed": "runtime", "timed_out": "timeout",
     "duplicate": "constraints"}
)  # fmt: skip
"""By status; a duplicate here is one whose original is no longer in the database."""
ERRORS: Mapping[str, str] = MappingProxyType(
    {"correct": "", "constraints": "InvalidConfig", "compile": "CompilationFailedConfig"}
    | dict.fromkeys(("runtime", "correctness", "timeout"), "RuntimeFailedConfig")
)
"""By invalidity."""


@dataclass(frozen=True, slots=True)
class Own:
    """The additional members of a configuration that looptune measured.

    ``directives`` are the configuration, whose lines the parameters alone would not give back; ``outcome`` is timed,
    cut_off, illegal, …; equal ``source`` is one version; ``seconds`` of compiling and measuring are None where they
    are not known.
    """

    directives: str
    outcome: str
    source: str
    seconds: Amount | None


@dataclass(frozen=True, slots=True)
class OwnCutOff:
    """The further members where the version was cut off: what a search is told, and how long it ran."""

    cost_us: Positive
    runs_us: tuple[Amount, ...]


def metadata(search: Search, own: ParameterTable) -> dict[str, Any]:
    """Return the block ``looptune`` of a file: the search, and the meaning of each parameter."""
    context = asdict(search.context)
    unpacked = {name: json.loads(context[name]) for name in ("sizes", "options")}
    return {
        "version": __version__, "name": search.name, **context, **unpacked,
        "parameters": {parameter.name: parameter.axis for parameter in own.parameters},
    }  # fmt: skip


def ranked_entries(search: Search) -> tuple[Entry, ...]:
    """Return the versions of a search with the times of its finals, where a version ran in them.

    The finals decide which version is the best. The times of the screening stay where the finals were disturbed, and
    where they were so much slower that a version which did not reach them would come before the winner. Versions
    that the finals found to be wrong are wrong in any case.
    """
    finals, best = search.finals, search.best
    ranked = tuple(_ranked(entry, finals.get(entry.row.directives)) for entry in search.entries)
    if best is not None and best.is_final:
        first_ms = best.times[best.directives].median_us / 1e3
        others = [ms for e in ranked if e.row.directives not in finals and (ms := median_ms(e)) is not None]
        if min(others, default=first_ms) >= first_ms:
            return ranked
    wrong = {text: row for text, row in finals.items() if isinstance(row.outcome, WrongResult)}
    return tuple(_ranked(entry, wrong.get(entry.row.directives)) for entry in search.entries)


def _ranked(entry: Entry, final: Row | None) -> Entry:
    match entry.row.outcome, None if final is None else final.outcome:
        case Timed(facts=facts), Timed() as outcome:
            return replace(entry, row=replace(entry.row, outcome=replace(outcome, facts=facts)))
        case Timed(), WrongResult() as outcome:
            return replace(entry, row=replace(entry.row, outcome=outcome, status=outcome.status))
    return entry


def search_parameters(search: Search) -> ParameterTable:
    """Return the configurations of a search as rows of parameters."""
    return parameter_table([entry.configuration for entry in search.entries])


def configuration(own: ParameterTable, number: int) -> dict[str, Scalar]:
    """Return configuration ``number`` by the names of its parameters."""
    return dict(zip(own.names, own.rows[number], strict=True))


def extras(entry: Entry) -> dict[str, Any]:
    """Return the additional members of a configuration, ``Own``."""
    measured = entry.measured
    own = Own(entry.configuration.text, entry.row.status, measured.source, measured.seconds)
    if measured.is_complete or measured.cost_us is None:
        return {**dump(own)}
    return {**dump(own), **dump(OwnCutOff(measured.cost_us, measured.runs_us))}


def spent_ms(entry: Entry) -> dict[str, float]:
    """Return the milliseconds of compiling, of verifying and of all else; empty where the row does not know."""
    compiled, verified = (1e3 * float(entry.facts.get(name, 0.0)) for name in ("compile_s", "verify_s"))
    total = entry.measured.seconds
    rest = 0.0 if total is None else max(0.0, 1e3 * total - compiled - verified)
    return {"compile": compiled, "verify": verified, "rest": rest}


def error(entry: Entry) -> str:
    """Return Kernel Tuner's name for the failure, empty if there was none."""
    return ERRORS[INVALIDITY[entry.row.status]]


def median_ms(entry: Entry) -> float | None:
    """Return the median time of a version that was timed."""
    match entry.row.outcome:
        case Timed(median_us=median_us):
            return median_us / 1e3
    return None


def runs_ms(entry: Entry) -> list[float]:
    """Return the single runs of a version, none if it was cut off, since a reader would take them for whole runs."""
    return [run / 1e3 for run in entry.measured.runs_us] if entry.measured.is_complete else []


def lengths(search: Search) -> list[int]:
    """Return the sizes that are integers, in the order of their names."""
    sizes = json.loads(search.context.sizes)
    return [value for _, value in sorted(sizes.items()) if isinstance(value, int) and not isinstance(value, bool)]


def timestamp(entry: Entry) -> str:
    """Return when the version was measured, in UTC."""
    return iso_time(entry.row.started)


MILLISECOND_US = 1e3
UNITS_US: Mapping[str, float] = MappingProxyType(
    {"nanoseconds": 1e-3, "microseconds": 1.0, "milliseconds": MILLISECOND_US, "miliseconds": MILLISECOND_US,
     "seconds": 1e6, "ns": 1e-3, "us": 1.0, "ms": MILLISECOND_US, "s": 1e6}
)  # fmt: skip
"""By name in lower case; "miliseconds" is how the benchmark hub spells it, and the methodology reads it."""


def unit_us(unit: JsonCursor) -> float:
    """Return the microseconds of a unit of time. Raises UsageError, which lists the units, if it is none."""
    known = UNITS_US.get(unit.text().lower())
    if known is None:
        raise unit.error(f"one of {', '.join(UNITS_US)}")
    return known


Point = tuple[Configuration, Measurement]

_MOST = 2**53
"""Up to there a number is told from the next one; what is greater is a word."""


def foreign_configuration(given: Mapping[str, Any]) -> Configuration:
    """Return the configuration of another tool, whose parameters are its slots.

    >>> foreign_configuration({"x": 16, "pad": True}).text
    'x=16\\npad=1'
    """
    slots = tuple((str(name), _scalar(value)) for name, value in given.items())
    return Configuration(tuple(f"{name}={value}" for name, value in slots), slots)


def own_measurement(extras: JsonCursor, cost_us: float | None, runs_us: tuple[float, ...]) -> Point:
    """Return a measurement that looptune wrote. Raises UsageError if a part of it is missing."""
    own: Own = extras.read(Own)
    cut = own.outcome == "cut_off"
    if cut:
        told: OwnCutOff = extras.read(OwnCutOff)
        cost_us, runs_us = told.cost_us, told.runs_us
    chosen = Configuration(tuple(current_text(own.directives).splitlines()))
    return chosen, Measurement(cost_us, runs_us, own.seconds, own.source, is_complete=not cut)


def recording(name: str, kernel: str, device: str, points: Iterable[Point]) -> Recording:
    """Return a recording; of equal configurations the last one counts, and one without a source is its own version."""
    unique = dict(points)
    measured = tuple(m if m.source else replace(m, source=c.text) for c, m in unique.items())
    return Recording(name, kernel, device, Table(unique), measured)


def search_names(file: JsonCursor, default: str) -> tuple[str, str]:
    """Return the names of a search and its kernel as looptune wrote them, or else the default for both."""
    about = file.get("looptune")
    return (default, default) if about is None else (about.at("name").text(), about.at("kernel").text())


def check_version(file: JsonCursor, key: str, first: str) -> None:
    """Raise UsageError unless the version is absent or begins with ``first``."""
    version = file.get(key)
    if version is not None and not version.text().startswith(first):
        raise UsageError(f"{file.file}: {key}: unsupported version {version.value!r}: looptune reads {first}…")


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
