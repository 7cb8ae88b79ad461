"""A result as the record that the database keeps of it, and back: what a report needs and rows do not say.

    Result, Sources ──record──▶ JSON object ──restored──▶ Result, Sources

The screening times of the versions are in their rows and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from looptune.core.record_check import check
from looptune.runtime.device import DeviceInfo
from looptune.runtime.roofline import MinimumWork, Peaks, Roofline
from looptune.runtime.timing import Speedup, Summary
from looptune.tune.results.result import DirectiveGain, Entry, KernelOccupancy, Result

_PLAIN = (
    "kernel", "target", "dtype", "directives", "proof", "flops", "command", "devices", "status",
)  # fmt: skip
"""Fields of a result that JSON has as they are."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Texts of a winner: the C file as given, the C that its directives make of the loops, the kernels as emitted."""

    original: str
    transformed: str
    emitted: str


def record(result: Result, sources: Sources) -> dict[str, Any]:
    """Return the result as a JSON object."""
    return {
        **{name: getattr(result, name) for name in _PLAIN},
        "facts": asdict(result.facts), "sizes": dict(result.sizes), "ties": list(result.ties),
        "sums": list(result.sums), "versions": dict(result.versions), "seconds": dict(result.seconds),
        "entries": [asdict(e) for e in result.entries],
        "earned": [asdict(e) for e in result.earned], "held": [asdict(h) for h in result.held],
        "over_hand": None if result.over_hand is None else asdict(result.over_hand),
        "ceiling": None if result.ceiling is None else _ceiling(result.ceiling), "sources": asdict(sources),
        "disturbed": result.disturbed,
    }  # fmt: skip


def from_record(held: Mapping[str, Any]) -> tuple[Result, Sources]:
    """KeyError, TypeError, AttributeError or ValueError where ``held`` is no such record."""
    ceiling, over = held["ceiling"], held["over_hand"]
    # Earlier versions of looptune kept no ablation, no kernels and no disturbance.
    earned = tuple(_earned(e) for e in held.get("earned", ()))
    kernels = tuple(KernelOccupancy(**h) for h in held.get("held", ()))
    result = Result(
        **{name: held[name] for name in _PLAIN},
        facts=DeviceInfo(**held["facts"]), sizes=held["sizes"], ties=tuple(held["ties"]), sums=tuple(held["sums"]),
        versions=held["versions"], seconds=held["seconds"], entries=tuple(map(_entry, held["entries"])),
        over_hand=None if over is None else Speedup(**over), ceiling=None if ceiling is None else _held(ceiling),
        earned=earned, held=kernels, disturbed=held.get("disturbed", ""),
    )  # fmt: skip
    sources = Sources(**held["sources"])
    check(result, Result, "the result")
    check(sources, Sources, "the sources")
    return result, sources


def _entry(held: Mapping[str, Any]) -> Entry:
    times, speedup = held["times"], held["speedup"]
    return Entry(
        held["name"],
        None if times is None else Summary(**times),
        None if speedup is None else Speedup(**speedup),
        held["verified"],
        held["asserted"],
    )


def _earned(held: Mapping[str, Any]) -> DirectiveGain:
    speedup = held["speedup"]
    return DirectiveGain(held["line"], None if speedup is None else Speedup(**speedup), held["why"])


def _ceiling(ceiling: Roofline) -> dict[str, Any]:
    return {
        "work": asdict(ceiling.work),
        "peaks": ceiling.peaks.record(),
        "cache_bytes": ceiling.cache_bytes,
        "cold": ceiling.cold,
    }


def _held(held: Mapping[str, Any]) -> Roofline:
    return Roofline(MinimumWork(**held["work"]), Peaks.of(held["peaks"]), held["cache_bytes"], held["cold"])
