"""Group the rows of databases by context, and find the best version of each search: the one way from rows to the best.

rows ──▶ Search(gemm float32): "" 40 us · "loop k: unroll 2" 30 us · "loop k: unroll 3" illegal · …
     ──▶ entries, finals, best ──▶ reports, built modules, exported files, replays, predictions
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from looptune.runtime.energy import Energy, from_facts
from looptune.runtime.outcome import CutOff, Fact, Timed, WrongResult
from looptune.tune.space.space import Configuration
from looptune.tune.space.table_view import Table
from looptune.tune.store.store import FINAL_ROLES, Context, Row
from looptune.tune.store.winners import simplest, winner_by

if TYPE_CHECKING:
    from looptune.core.settings import Objective

VERSIONS = ("default", "version")
"""Roles of the versions of a sweep; the other roles are finals and references."""
DISTURBED = "disturbed"
"""The fact of a row of the finals that says what disturbed the machine."""
OTHERS = ("hand-written", "library")
"""What runs in finals beside versions; the directives of their rows are the name and the hash of a file."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurement of one configuration, as a search is told it.

    ``cost_us`` is None if the version was refused or failed. ``seconds`` of compiling and measuring are None if the
    file does not state them. Measurements of equal ``source`` are of one version, measured once. A version that is not
    ``is_complete`` was cut off and cannot be the best.
    """

    cost_us: float | None
    runs_us: tuple[float, ...] = ()
    seconds: float | None = None
    source: str = ""
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class Recording:
    """A finished search as it is replayed and exported; ``measured[k]`` is of ``table[k]``."""

    name: str
    kernel: str
    device: str
    table: Table
    measured: tuple[Measurement, ...]

    @property
    def best_us(self) -> float:
        return min(m.cost_us for m in self.measured if m.cost_us is not None and m.is_complete)

    @property
    def versions(self) -> int:
        """Return the number of different sources, which is what an exhaustive search has to measure."""
        return len({m.source for m in self.measured})

    @property
    def estimated(self) -> int:
        """Return how many configurations have no duration in the file."""
        return sum(m.seconds is None for m in self.measured)

    def seconds(self) -> list[float]:
        """Return the duration of each; where it is not known, the median of those known, or of its runs alone."""
        known = [m.seconds for m in self.measured if m.seconds is not None]
        usual = median(known) if known else None
        return [
            m.seconds if m.seconds is not None else usual if usual is not None else sum(m.runs_us) / 1e6
            for m in self.measured
        ]


@dataclass(frozen=True, slots=True)
class Entry:
    """One configuration: the row of its own, and the row with its outcome.

    The two differ where the configuration is a duplicate: ``row`` is then that of the first one with the same source.
    """

    own: Row
    row: Row

    @property
    def configuration(self) -> Configuration:
        return Configuration(tuple(self.own.directives.splitlines()))

    @property
    def facts(self) -> dict[str, int | float | str]:
        """Return the other evidence: registers, seconds of compiling."""
        return dict(_facts(self.row))

    @property
    def measured(self) -> Measurement:
        row = self.row
        source = row.emitted if row.emitted else row.key
        match row.outcome:
            case Timed(times_us, median_us):
                return Measurement(median_us, times_us, seconds(row), source)
            case CutOff(elapsed_us) as cut:
                return Measurement(cut.cost_us, (elapsed_us,), seconds(row), source, is_complete=False)
        return Measurement(None, (), seconds(row), source)


@dataclass(frozen=True, slots=True)
class Best:
    """The version that won, and those that are the SAME as it.

    ``rows`` and ``times`` are those among which it was chosen, by directives: the newest finals, with the kernels in
    OTHERS, or else the screening. ``disturbed``: why the newest finals do not count, "" where they do.
    """

    directives: str
    ties: tuple[str, ...]
    rows: Mapping[str, Row]
    times: Mapping[str, Timed]
    is_final: bool
    disturbed: str = ""


@dataclass(frozen=True, slots=True)
class Search:
    """All rows of one context, in the order in which they were begun.

    ``name`` is the kernel, its type, and what else distinguishes it from other searches; "" before ``searches`` names
    it.
    """

    context: Context
    rows: tuple[Row, ...]
    name: str = ""

    @property
    def versions(self) -> tuple[Row, ...]:
        """Return the rows of the default and the versions that have ended."""
        return tuple(row for row in self.rows if row.role in VERSIONS and row.status != "running")

    @property
    def entries(self) -> tuple[Entry, ...]:
        return entries(self.versions)

    @property
    def recording(self) -> Recording:
        tried = self.entries
        table = Table(entry.configuration for entry in tried)
        return Recording(self.name, self.context.kernel, self.context.device, table, tuple(e.measured for e in tried))

    @property
    def started(self) -> float:
        """Return when the newest row was begun, in seconds since 1970."""
        return max(row.started for row in self.rows)

    @property
    def finals(self) -> dict[str, Row]:
        """Return the rows of the newest finals by directives, of other kernels by their name in OTHERS."""
        return self.finals_by("time")

    def finals_by(self, objective: Objective) -> dict[str, Row]:
        """Return the rows of the newest finals that decide by this objective, those that were not disturbed first.

        Finals by energy have the fastest versions as well, and times like any: they also say which is the fastest.
        """
        made = [rows for role in FINAL_ROLES[objective] if (rows := self._newest(role))]
        sound = [rows for rows in made if not disturbance(rows.values())]
        return max(sound or made, key=lambda rows: max(row.started for row in rows.values()), default={})

    def _newest(self, role: str) -> dict[str, Row]:
        rows = [row for row in self.rows if row.role == role]
        newest = max(rows, key=lambda row: row.started).sweep if rows else ""
        return {
            _final_name(row.directives): row
            for row in rows
            if row.sweep == newest and isinstance(row.outcome, Timed | WrongResult)
        }

    @property
    def sequential(self) -> Timed | None:
        """Return the times of the original loops on one core, if nothing disturbed them."""
        rows = [row for row in self.rows if row.role == "sequential" and not disturbance((row,))]
        found = [row.outcome for row in rows if isinstance(row.outcome, Timed)]
        return found[-1] if found else None

    @property
    def fastest(self) -> Row | None:
        """Return the fastest version of the screening, the first of those that are equally fast."""
        timed = [(row.median_us, row) for row in self.versions if row.median_us is not None]
        return min(timed, key=lambda one: one[0])[1] if timed else None

    @property
    def best(self) -> Best | None:
        """Return the winner of the newest finals or, without finals, the fastest of the screening.

        Finals that were disturbed do not count, except that what they found to be wrong is out.
        """
        return self.best_by("time")

    def best_by(self, objective: Objective) -> Best | None:
        """Return the winner by this objective, None where nothing decides.

        By time, the screening decides where there are no finals; it knows no energy, so that there is no winner by
        energy or EDP without finals of this objective.
        """
        rows = self.finals_by(objective)
        disturbed = disturbance(rows.values())
        wrong = {text for text, row in rows.items() if isinstance(row.outcome, WrongResult)}
        times = timed_outcomes(rows)
        candidates = [text for text in times if text not in OTHERS]
        runs = {text: times[text].times_us for text in candidates}
        won = None if disturbed else winner_by(objective, runs, energies(rows), candidates)
        if won is not None:
            return Best(*won, rows, times, is_final=True)
        if objective != "time":
            return None
        rows = {row.directives: row for row in self.versions if row.directives not in wrong}
        times = timed_outcomes(rows)
        if not times:
            return None
        least_us = min(time.median_us for time in times.values())
        text = simplest(text for text, time in times.items() if time.median_us == least_us)
        return Best(text, (), rows, times, is_final=False, disturbed=disturbed)


def by_context(rows: Iterable[Row]) -> list[Search]:
    """Return the rows of one or several databases by context; of two rows with one key the one that ended last."""
    unique: dict[str, Row] = {}
    for row in rows:
        other = unique.get(row.key)
        if other is None or _ended(row) > _ended(other):
            unique[row.key] = row
    groups: dict[Context, list[Row]] = {}
    for row in unique.values():
        groups.setdefault(row.context, []).append(row)
    return [Search(context, tuple(own)) for context, own in groups.items()]


def searches(rows: Iterable[Row]) -> list[Search]:
    """Return the searches, which are the contexts with a version that has ended, by name."""
    found = [search for search in by_context(rows) if search.versions]
    called = names(search.context for search in found)
    return sorted((replace(s, name=called[s.context]) for s in found), key=lambda search: search.name)


def newest(found: Iterable[Search]) -> list[Search]:
    """Leave out the searches that differ from a newer one only in the source or the versions of the tools."""
    kept: dict[tuple[str, ...], Search] = {}
    for search in sorted((s for s in found if s.versions), key=lambda s: s.started):
        c = search.context
        kept[c.kernel, c.device, c.target, c.sizes, c.dtype, c.options] = search
    return list(kept.values())


def entries(rows: Sequence[Row]) -> tuple[Entry, ...]:
    """Return the versions of one context with their outcomes: a duplicate has that of the row it repeats."""
    keys = {row.key: row for row in rows}
    return tuple(Entry(row, keys.get(row.same_as, row) if row.same_as else row) for row in rows)


def timed_outcomes(rows: Mapping[str, Row]) -> dict[str, Timed]:
    """Return the outcomes of the rows that were timed."""
    return {text: row.outcome for text, row in rows.items() if isinstance(row.outcome, Timed)}


def energies(rows: Mapping[str, Row]) -> dict[str, Energy]:
    """Return the energy of one run of each of the rows that state it."""
    found = {name: from_facts(one.facts) for name, one in timed_outcomes(rows).items()}
    return {name: energy for name, energy in found.items() if energy is not None}


def disturbance(rows: Iterable[Row]) -> str:
    """Return what disturbed the machine while these rows of finals were timed, "" for nothing."""
    return next((str(value) for row in rows for name, value in _facts(row) if name == DISTURBED), "")


def seconds(row: Row) -> float | None:
    """Return the seconds of compiling and measuring, or None if the row does not say both."""
    took = None if row.finished is None else max(0.0, row.finished - row.started)
    match row.outcome:
        case Timed() | CutOff():
            compiled = dict(_facts(row)).get("compile_s")
            return None if took is None or compiled is None else took + float(compiled)
    return took


def names(contexts: Iterable[Context]) -> dict[Context, str]:
    """Return ``gemm float32`` for each context, with the parts of the context that are needed to distinguish them."""
    contexts = list(contexts)
    more: Sequence[Callable[[Context], str]] = (
        lambda c: c.device, lambda c: c.target, lambda c: c.sizes, lambda c: c.options, lambda c: c.hash[:8],
    )  # fmt: skip
    found = {c: f"{c.kernel} {c.dtype}" for c in contexts}
    for part in more:
        twice = {n for n in found.values() if sum(n == other for other in found.values()) > 1}
        for name in twice:
            alike = [c for c in contexts if found[c] == name]
            if len({part(c) for c in alike}) > 1:
                found |= {c: f"{name} {part(c)}" for c in alike}
    return found


def _facts(row: Row) -> tuple[Fact, ...]:
    match row.outcome:
        case Timed(facts=facts) | CutOff(facts=facts):
            return facts
    return ()


def _final_name(directives: str) -> str:
    name = directives.partition(" ")[0]
    return name if name in OTHERS else directives


def _ended(row: Row) -> float:
    return -1.0 if row.finished is None else row.finished
