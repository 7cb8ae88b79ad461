"""A result as the record that the database keeps of it, and back: what a report needs and rows do not say.

    Result, Sources ──record──▶ JSON object ──restored──▶ Result, Sources

The screening times of the versions are in their rows and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from looptune.core.record_check import check, from_json, to_json
from looptune.tune.results.result import Result

_LEFT_OUT = ("times_us", "interrupted", "transfers")
"""Fields of a result that are in rows, or of one run alone."""

_KEYS = {"directive_gains": "earned", "occupancy": "held"}
"""Keys of the fields whose name in a record, which databases hold, is not the field's."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Texts of a winner: the C file as given, the C that its directives make of the loops, the kernels as emitted."""

    original: str
    transformed: str
    emitted: str


def record(result: Result, sources: Sources) -> dict[str, Any]:
    """Return the result as a JSON object."""
    stored = (f.name for f in fields(result) if f.name not in _LEFT_OUT)
    return {_KEYS.get(name, name): to_json(getattr(result, name)) for name in stored} | {"sources": to_json(sources)}


def from_record(stored: Mapping[str, Any]) -> tuple[Result, Sources]:
    """Read a record back.

    KeyError, TypeError, AttributeError or ValueError where ``stored`` is none. Earlier versions of looptune kept no
    ablation, no kernels and no disturbance.
    """
    names = {f.name: _KEYS.get(f.name, f.name) for f in fields(Result) if f.name not in _LEFT_OUT}
    result = from_json({name: stored[key] for name, key in names.items() if key in stored}, Result)
    sources = from_json(stored["sources"], Sources)
    check(result, Result, "the result")
    check(sources, Sources, "the sources")
    return result, sources
