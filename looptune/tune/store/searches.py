"""The rows of a results database as searches: of each context every version that was tried, with its outcome.

    rows ──▶ Search(gemm float32): "" 40 us · "loop k: unroll 2" 30 us · "loop k: unroll 3" illegal · …

Finals and references are no part of a search, and neither is what is running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from looptune.runtime.outcome import CutOff, Fact, Timed
from looptune.tune.space.space import Configuration
from looptune.tune.space.table_view import Table
from looptune.tune.store.recording import Measurement, Recording
from looptune.tune.store.store import Context, Row

VERSIONS = ("default", "version")
"""Roles that a sweep's versions have; the others are finals and references."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One configuration; ``row`` has the outcome: its own or, of a duplicate, that of the row with the same source."""

    configuration: Configuration
    row: Row

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
class Search:
    """``name``: the kernel, its type, and what else tells it from the others. ``entries`` in the order tried."""

    name: str
    context: Context
    entries: tuple[Entry, ...]

    @property
    def recording(self) -> Recording:
        table = Table(entry.configuration for entry in self.entries)
        return Recording(
            self.name, self.context.kernel, self.context.device, table, tuple(e.measured for e in self.entries)
        )


def searches(rows: Iterable[Row]) -> list[Search]:
    """Return the searches by name."""
    contexts: dict[Context, dict[str, Row]] = {}
    keys: dict[str, Row] = {}
    for row in rows:
        if row.role in VERSIONS and row.status != "running":
            contexts.setdefault(row.context, {}).setdefault(row.directives, row)
            keys[row.key] = row
    called = names(contexts)
    found = [
        Search(
            called[context], context,
            tuple(
                Entry(Configuration(tuple(text.splitlines())), keys.get(row.same_as, row) if row.same_as else row)
                for text, row in tried.items()
            ),
        )
        for context, tried in contexts.items()
    ]  # fmt: skip
    return sorted(found, key=lambda search: search.name)


def seconds(row: Row) -> float | None:
    """Return the seconds of compiling and measuring, or None if the row does not say both."""
    took = None if row.finished is None else max(0.0, row.finished - row.started)
    match row.outcome:
        case Timed() | CutOff():
            compiled = dict(_facts(row)).get("compile_s")
            return None if took is None or compiled is None else took + float(compiled)
    return took


def _facts(row: Row) -> tuple[Fact, ...]:
    match row.outcome:
        case Timed(facts=facts) | CutOff(facts=facts):
            return facts
    return ()


def names(contexts: Iterable[Context]) -> dict[Context, str]:
    """``gemm float32``, and of what makes contexts differ as much as tells them apart."""
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
