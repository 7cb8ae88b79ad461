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
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from looptune.core.version import __version__
from looptune.runtime.outcome import Timed
from looptune.tune.space.axes import Scalar
from looptune.tune.space.parameters import Sheet, sheet
from looptune.tune.store.searches import Entry, Search
from looptune.tune.store.store import moment

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


def about(search: Search, own: Sheet) -> dict[str, Any]:
    """The block ``looptune`` of a file: what was searched, and what each parameter is here."""
    context = asdict(search.context)
    unpacked = {name: json.loads(context[name]) for name in ("sizes", "options")}
    return {
        "version": __version__, "name": search.name, **context, **unpacked,
        "parameters": {parameter.name: parameter.axis for parameter in own.parameters},
    }  # fmt: skip


def of(search: Search) -> Sheet:
    """Its configurations as rows of parameters."""
    return sheet([entry.configuration for entry in search.entries])


def configuration(own: Sheet, number: int) -> dict[str, Scalar]:
    """Configuration ``number`` by the names of its parameters."""
    return dict(zip(own.names, own.rows[number], strict=True))


def extras(entry: Entry) -> dict[str, Any]:
    """What ``tune.formats.records`` describes."""
    measured = entry.measured
    cut = {} if measured.whole else {"cost_us": measured.cost_us, "runs_us": list(measured.runs_us)}
    return {
        "directives": entry.configuration.text, "outcome": entry.row.status, "source": measured.source,
        "seconds": measured.seconds, **cut,
    }  # fmt: skip


def spent_ms(entry: Entry) -> dict[str, float]:
    """Milliseconds of compiling, of verifying, and of all else; nothing where the row does not know."""
    compiled, verified = (1e3 * float(entry.facts.get(name, 0.0)) for name in ("compile_s", "verify_s"))
    total = entry.measured.seconds
    rest = 0.0 if total is None else max(0.0, 1e3 * total - compiled - verified)
    return {"compile": compiled, "verify": verified, "rest": rest}


def error(entry: Entry) -> str:
    """Kernel Tuner's name for what went wrong; empty where nothing did."""
    return ERRORS[INVALIDITY[entry.row.status]]


def median_ms(entry: Entry) -> float | None:
    """Of a version that was timed."""
    match entry.row.outcome:
        case Timed(median_us=median_us):
            return median_us / 1e3
    return None


def runs_ms(entry: Entry) -> list[float]:
    """Single runs. A version that was cut off has none: others would take what it ran for its time."""
    return [run / 1e3 for run in entry.measured.runs_us] if entry.measured.whole else []


def lengths(search: Search) -> list[int]:
    """The sizes that are whole numbers, in the order of their names."""
    sizes = json.loads(search.context.sizes)
    return [value for _, value in sorted(sizes.items()) if isinstance(value, int) and not isinstance(value, bool)]


def begun(entry: Entry) -> str:
    """When it was measured, in UTC."""
    return moment(entry.row.started)
