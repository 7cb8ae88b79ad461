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

_LEFT_OUT = ("times_us", "interrupted", "guests")
"""Fields of a result that are in rows, or of one run alone."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Texts of a winner: the C file as given, the C that its directives make of the loops, the kernels as emitted."""

    original: str
    transformed: str
    emitted: str


def record(result: Result, sources: Sources) -> dict[str, Any]:
    """Return the result as a JSON object."""
    held = {f.name: to_json(getattr(result, f.name)) for f in fields(result) if f.name not in _LEFT_OUT}
    return held | {"sources": to_json(sources)}


def from_record(held: Mapping[str, Any]) -> tuple[Result, Sources]:
    """Read a record back.

    KeyError, TypeError, AttributeError or ValueError where ``held`` is none. Earlier versions of looptune kept no
    ablation, no kernels and no disturbance.
    """
    result = from_json({name: part for name, part in held.items() if name not in _LEFT_OUT}, Result)
    sources = from_json(held["sources"], Sources)
    check(result, Result, "the result")
    check(sources, Sources, "the sources")
    return result, sources
