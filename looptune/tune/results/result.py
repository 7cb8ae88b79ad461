"""The result of one kernel at one size: sequential, default, hand-written and tuned times, and their evidence.

``Result.record`` is the machine-readable form: the same names in ``--json``, in the CSV's columns and in the JSON file.
``to_record`` makes the JSON object of a result in a database: all that a report needs and the rows do not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from looptune.core.record_check import check, from_json, to_json
from looptune.core.settings import Objective
from looptune.runtime.device import DeviceInfo
from looptune.runtime.energy import Energy
from looptune.runtime.objective import Cost, cost, saving
from looptune.runtime.roofline import Roofline
from looptune.runtime.timing import Speedup, Summary

VERSIONS = ("space", "timed", "cut_off", "illegal", "not_built", "over_limit", "wrong", "crashed", "timed_out")

_LEFT_OUT = ("times_us", "interrupted", "transfers")
"""Fields of a result that are in rows, or of one run alone, and not in its record."""

_KEYS = {"directive_gains": "earned", "occupancy": "held"}
"""Keys of the fields whose name in a record, which databases hold, is not the field's."""

SHARES = tuple(f"{row}_{of}_percent" for row in ("default", "handwritten", "tuned") for of in ("copy", "fma"))


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the table; ``speedup`` is over the default, None if there is nothing to compare.

    ``asserted``: its legality was asserted by the user (``assume``), not proved. ``energy``: that of one run, None
    where it was not measured.
    """

    name: str
    times: Summary | None
    speedup: Speedup | None
    verified: str
    asserted: bool = False
    energy: Energy | None = None

    @property
    def display_name(self) -> str:
        """Return the name, marked if the user asserted the legality of the version."""
        return f"{self.name} (asserted)" if self.asserted else self.name


@dataclass(frozen=True, slots=True)
class KernelOccupancy:
    """The resources and the occupancy of one kernel of the tuned version on a GPU.

    Threads per block, registers and spill bytes per thread, shared bytes per block; ``warps`` of ``most`` that a
    multiprocessor holds at once, limited by ``by``. None: not known.
    """

    kernel: str
    threads: int
    registers: int
    shared_bytes: int
    local_bytes: int
    warps: int | None = None
    most: int | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class DirectiveGain:
    """The speed-up of the tuned version over itself without the directive ``line``; None: ``why`` says the reason."""

    line: str
    speedup: Speedup | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class TransferResult:
    """The best configuration ``of`` another device, target or size, with its speed-up over the winner.

    None: it was not in the finals, and ``why`` gives the reason.
    """

    of: str
    directives: str
    speedup: Speedup | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Sources:
    """The texts of a winner: the C file as given, the C with its directives applied, and the emitted kernels."""

    original: str
    transformed: str
    emitted: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one kernel at one size on one device.

    ``flops`` are the floating-point operations of one run; ``proof`` is the evidence of legality, ``status`` the same
    in a word or two, and ``sums`` the reductions whose reordering it relies on. ``finals_us`` are the medians of the
    versions that the finals timed, ``times_us`` the screening medians of all other versions, both fastest first;
    ``seconds`` says where the sweep's time went, by the names of ``TimeBreakdown``, and the time of the finals;
    ``devices``: the number of devices that measured at once. ``ceiling``: the peaks of the device and the least work of
    any version, None if they were not measured. ``over_hand``: the tuned version's speed-up over the hand-written
    kernel; ``directive_gains``: the gain of each directive, if it was measured; ``occupancy``: that of the winner's
    kernels on a GPU; ``transfers``: the results of the transferred configurations; ``disturbed``: what disturbed the
    machine during the finals, "" for nothing; ``objective``: what chose the tuned version.
    """

    kernel: str
    facts: DeviceInfo
    target: str
    dtype: str
    sizes: Mapping[str, int]
    entries: tuple[Entry, ...]
    directives: str
    ties: tuple[str, ...]
    proof: str
    versions: Mapping[str, int]
    flops: int | None
    command: str
    times_us: tuple[float, ...] = ()
    finals_us: tuple[float, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    interrupted: bool = False
    ceiling: Roofline | None = None
    devices: int = 1
    over_hand: Speedup | None = None
    status: str = ""
    sums: tuple[str, ...] = ()
    directive_gains: tuple[DirectiveGain, ...] = ()
    transfers: tuple[TransferResult, ...] = ()
    occupancy: tuple[KernelOccupancy, ...] = ()
    disturbed: str = ""
    objective: Objective = "time"

    def entry(self, name: str) -> Entry | None:
        return next((e for e in self.entries if e.name == name), None)

    def median_us(self, name: str) -> float | None:
        found = self.entry(name)
        return None if found is None or found.times is None else found.times.median_us

    @property
    def tried(self) -> int:
        """Return how many versions were evaluated, whatever their outcome."""
        return sum(count for name, count in self.versions.items() if name != "space")

    def gflops(self, entry: Entry) -> float | None:
        """Return 10^9 floating-point operations per second."""
        if self.flops is None or entry.times is None or not entry.times.median_us:
            return None
        return self.flops / entry.times.median_us / 1e3

    def copy_share(self, entry: Entry) -> float | None:
        """Return the compulsory bytes divided by copy bandwidth and time.

        The ratio exceeds 1 if a cache held some of the data.
        """
        if self.ceiling is None or not self.ceiling.work.bytes or not _on_device(entry) or entry.times is None:
            return None
        return self.ceiling.work.bytes / entry.times.median_us / 1e3 / self.ceiling.peaks.copy.best

    def fma_share(self, entry: Entry) -> float | None:
        """Return the GFLOP/s divided by the FMA peak of the type of the arrays."""
        rate = self.gflops(entry)
        peak = None if self.ceiling is None else self.ceiling.peaks.fma(self.dtype)
        return None if peak is None or not _on_device(entry) or rate is None else rate / peak.best

    def cost(self, entry: Entry | None) -> Cost | None:
        """Return the energy of one run, or its EDP, by which the tuned version was chosen; None if the time decided."""
        if self.objective == "time" or entry is None or entry.times is None:
            return None
        return cost(self.objective, entry.times.median_us, entry.energy)

    def saving(self, entry: Entry) -> Speedup | None:
        """Return how many times less energy, or EDP, a version has than the default; None where that is not known."""
        base, own = self.cost(self.entry("default")), self.cost(entry)
        return None if base is None or own is None or entry.name == "default" else saving(base, own)

    def record(self) -> dict[str, Any]:
        tuned = self.entry("tuned")
        spread = None if tuned is None else tuned.times
        return {
            "kernel": self.kernel,
            "device": self.facts.name,
            "target": self.target,
            "dtype": self.dtype,
            "sizes": dict(self.sizes),
            "sequential_us": _rounded(self.median_us("sequential")),
            "default_us": _rounded(self.median_us("default")),
            "handwritten_us": _rounded(self.median_us("hand-written")),
            "tuned_us": _rounded(self.median_us("tuned")),
            "tuned_q1_us": None if spread is None else _rounded(spread.q1_us),
            "tuned_q3_us": None if spread is None else _rounded(spread.q3_us),
            **self._shares(),
            "directives": self.directives,
            "asserted": [e.name for e in self.entries if e.asserted],
            "versions": {name: self.versions.get(name, 0) for name in VERSIONS},
            "seconds": {name: round(s, 3) for name, s in self.seconds.items()},
            "earned": {e.line: None if e.speedup is None else _rounded(e.speedup.ratio) for e in self.directive_gains},
            "guests": [
                {
                    "of": g.of,
                    "directives": g.directives,
                    "over_tuned": None if g.speedup is None else _rounded(g.speedup.ratio),
                    "why": g.why,
                }
                for g in self.transfers
            ],
            "kernels": [asdict(h) for h in self.occupancy],
            "disturbed": self.disturbed,
            "energy": {e.name: asdict(e.energy) for e in self.entries if e.energy is not None},
            "objective": self.objective,
            "saving": {e.name: _interval(one) for e in self.entries if (one := self.saving(e)) is not None},
        }

    def _shares(self) -> dict[str, float | None]:
        """Percentages of the copy bandwidth and of the FMA peak, by the names in SHARES."""
        found: dict[str, float | None] = {}
        for key, name in (("default", "default"), ("handwritten", "hand-written"), ("tuned", "tuned")):
            entry = self.entry(name)
            found[f"{key}_copy_percent"] = None if entry is None else _percent(self.copy_share(entry))
            found[f"{key}_fma_percent"] = None if entry is None else _percent(self.fma_share(entry))
        assert tuple(found) == SHARES, "what is listed is what there is"
        return found


def to_record(result: Result, sources: Sources) -> dict[str, Any]:
    """Return the JSON object that a database holds of a result."""
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


def _on_device(entry: Entry) -> bool:
    """Tell whether the sequential loops run on one core of the host, of which nothing is known."""
    return entry.name != "sequential" and entry.times is not None and entry.times.median_us > 0


def _interval(saving: Speedup) -> dict[str, float]:
    return {"ratio": round(saving.ratio, 4), "low": round(saving.low, 4), "high": round(saving.high, 4)}


def _percent(share: float | None) -> float | None:
    """Round to four digits, so that a small share is not zero."""
    return None if share is None else float(f"{100 * share:.4g}")


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
