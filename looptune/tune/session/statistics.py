"""The state of a sweep: counts by outcome, the fastest versions, the progress, and where the time went.

Rows are kept of the KEPT fastest versions and of those evaluated first; every other version leaves one number, so that
a million versions take a few megabytes.
"""

from __future__ import annotations

import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from looptune.runtime.outcome import CLASSES, Crashed, CutOff, Outcome, Timed, TimedOut
from looptune.tune.execution.lab import Progress, SweepResult, TimeBreakdown
from looptune.tune.session.budget import Budget
from looptune.tune.store.store import Row

KEPT = 1000


@dataclass(slots=True)
class SweepStatistics:
    """The counts and times of a sweep; ``versions`` is the size of the space.

    ``first``: directive texts whose rows are kept whatever their time; ``devices``: the number of devices that measure.
    """

    versions: int
    first: Collection[str]
    budget: Budget
    start: float = field(default_factory=time.monotonic)
    counts: Counter[str] = field(default_factory=Counter)
    resumed: int = 0
    best: Row | None = None
    devices: int = 1
    judge_s: float = 0.0
    compile_s: float = 0.0
    _rows: list[Row] = field(default_factory=list)
    _times_us: array[float] = field(default_factory=lambda: array("d"))
    _measured: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def done(self) -> int:
        return sum(self.counts[status] for status in CLASSES)

    @property
    def total(self) -> int:
        """Return the number of versions that will be done at the end, at most."""
        total = self.versions + len(self.first) - self.counts["duplicate"]
        return total if self.budget.count is None else min(total, self.budget.count)

    @property
    def out_of_time(self) -> bool:
        return self.budget.seconds is not None and self.left_s() <= 0

    def left_s(self) -> float:
        assert self.budget.seconds is not None, "asked only of a budget in seconds"
        return self.start + self.budget.seconds - time.monotonic()

    def add(self, row: Row) -> None:
        self.counts[row.status] += 1
        if row.median_us is None:
            return
        self._times_us.append(row.median_us)
        self._rows.append(row)
        if self.best is None or self.best.median_us is None or row.median_us < self.best.median_us:
            self.best = row
        if len(self._rows) > 2 * KEPT:
            self._rows = self._kept()

    def _kept(self) -> list[Row]:
        """Return the kept versions, fastest first."""
        ordered = sorted(self._rows, key=lambda row: (row.median_us, row.directives))
        return ordered[:KEPT] + [row for row in ordered[KEPT:] if row.directives in self.first]

    def measured(self, outcome: Outcome, took_s: float) -> None:
        """Add the time that a version took in a measuring worker, ``took_s``, by what it was spent on.

        The facts of the outcome say how long verification and measurement took; the rest counts as launching.
        """
        match outcome:
            case Timed(facts=facts) | CutOff(facts=facts):
                said = {str(name): float(value) for name, value in facts if name in ("verify_s", "measure_s")}
                self._measured["verify"] += said.get("verify_s", 0.0)
                self._measured["measure"] += said.get("measure_s", 0.0)
                self._measured["launch"] += max(0.0, took_s - sum(said.values()))
            case Crashed() | TimedOut():
                self._measured["failed"] += took_s
            case _:
                self._measured["verify"] += took_s

    def progress(self, last: Row) -> Progress:
        done, total, elapsed_s = self.done, self.total, time.monotonic() - self.start
        ran = done - self.resumed
        eta_s = elapsed_s / ran * (total - done) if ran > 0 else None
        if self.budget.seconds is not None:
            left_s = max(0.0, self.left_s())
            eta_s = left_s if eta_s is None else min(eta_s, left_s)
        return Progress(done, total, self.resumed, dict(self.counts), last, self.best, elapsed_s, eta_s)

    def spent(self, elapsed_s: float) -> TimeBreakdown:
        busy: Counter[str] = Counter({name: s / self.devices for name, s in self._measured.items()})
        return TimeBreakdown(
            judge=self.judge_s, compile=self.compile_s, launch=busy["launch"], verify=busy["verify"],
            measure=busy["measure"], failed=busy["failed"], waiting=max(0.0, elapsed_s - sum(busy.values())),
            devices=self.devices,
        )  # fmt: skip

    def result(self, sweep: str, interrupted: bool) -> SweepResult:
        counts = {status: self.counts[status] for status in (*CLASSES, "duplicate")} | {"space": self.versions}
        elapsed_s = time.monotonic() - self.start
        times_us = tuple(sorted(self._times_us))
        return SweepResult(
            sweep, counts, tuple(self._kept()), times_us, self.resumed, interrupted, elapsed_s, self.spent(elapsed_s)
        )
