"""Replay a search on recorded measurements: every answer is read, so that strategies are compared without a GPU.

    strategy ──▶ configuration ──▶ recording ──▶ cost, seconds ──▶ strategy

The incumbent is the configuration with the least cost told, among those timed with the most trials; its true cost,
after each evaluation, is the trace. A configuration whose source is that of an earlier one costs no evaluation, as in a
sweep. A strategy that chooses its number of trials is told the median of as many runs, drawn from those recorded, and
pays for them.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from statistics import median
from typing import Self

from looptune.core.errors import UsageError
from looptune.tune.space.space import Configuration
from looptune.tune.store.searches import Recording
from looptune.tune.strategies import Strategy, named, names

LEVELS = (1.05, 1.01)
"""Within 5 % and within 1 % of the best."""
LARGE, SHARE = 20_000, 0.05
"""Of a space with more versions than that, this share is evaluated at most, if no other limit is set."""


@dataclass(frozen=True, slots=True)
class IncumbentChange:
    """An improvement: after ``evaluations`` evaluations and ``seconds``, the incumbent costs ``cost_us``."""

    evaluations: int
    seconds: float
    cost_us: float


@dataclass(frozen=True, slots=True)
class Trace:
    """One search: its improvements, and how many evaluations it made in all."""

    steps: tuple[IncumbentChange, ...]
    evaluations: int

    def reached(self, cost_us: float) -> IncumbentChange | None:
        """Return the first step at which the incumbent reached this quality."""
        return next((step for step in self.steps if step.cost_us <= cost_us), None)


@dataclass(frozen=True, slots=True)
class Quartiles:
    """Median and quartiles over searches; ``inf`` where that many searches did not reach the level."""

    median: float
    q1: float
    q3: float


@dataclass(frozen=True, slots=True)
class Score:
    """How soon a strategy came within a level on one recording; ``found`` is the share of searches that did."""

    strategy: str
    level: float
    evaluations: Quartiles
    seconds: Quartiles
    found: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """All strategies on one recording; ``traces`` has for each strategy one trace for each seed."""

    recording: Recording
    traces: dict[str, tuple[Trace, ...]]

    def score(self, strategy: str, level: float) -> Score:
        limit = self.recording.best_us * level
        steps = [trace.reached(limit) for trace in self.traces[strategy]]
        return Score(
            strategy, level,
            quartiles([inf if step is None else step.evaluations for step in steps]),
            quartiles([inf if step is None else step.seconds for step in steps]),
            sum(step is not None for step in steps) / len(steps),
        )  # fmt: skip


def quartiles(values: Sequence[float]) -> Quartiles:
    """Return the median and quartiles; each is one of the values, the lower of two.

    >>> quartiles([1, 2, 3, inf])
    Quartiles(median=2, q1=1, q3=3)
    """
    ordered = sorted(values)
    quarter, half, three = (ordered[max(0, ceil(share * len(ordered)) - 1)] for share in (0.25, 0.5, 0.75))
    return Quartiles(half, quarter, three)


def select_strategies(asked: Sequence[str]) -> tuple[list[type[Strategy]], list[str]]:
    """Return the strategies of these names, and notes on those left out of ``all`` because a package is missing."""
    wanted = [part.strip() for name in asked for part in name.split(",")]
    if wanted != ["all"]:
        found = [named(name) for name in dict.fromkeys(wanted)]
        for kind in found:
            kind.check()
        return found, []
    kinds, notes = [], []
    for kind in map(named, names()):
        try:
            kind.check()
            kinds.append(kind)
        except UsageError as error:
            notes.append(f"left out: {error.message}")
    return kinds, notes


def evaluations_at_most(recording: Recording, budget: int | None) -> int | None:
    """Return the limit of evaluations: ``budget``, or where it is None a SHARE of a space of more than LARGE versions.

    A learning strategy that has to find the very best of 100,000 noisy versions may ask for all of them.
    """
    return ceil(SHARE * recording.versions) if budget is None and recording.versions > LARGE else budget


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known before a search: versions that are fast elsewhere, best first, and predicted costs by text."""

    fast: tuple[Configuration, ...] = ()
    predicted_us: Mapping[str, float] = field(default_factory=dict)

    def informed(self, strategy: Strategy) -> Strategy:
        """Return the strategy with what is known."""
        strategy = strategy.with_predictions(self.predicted_us) if self.predicted_us else strategy
        return strategy.begin_with(self.fast) if self.fast else strategy


NOTHING = Knowledge()


def compare(
    recording: Recording,
    strategies: Sequence[type[Strategy]],
    repeats: int,
    seed: int,
    budget: int | None,
    known: Knowledge = NOTHING,
    enough: float = 1.0,
) -> Comparison:
    """Replay each strategy with the seeds ``seed .. seed + repeats - 1``, or once if it does not use a seed.

    ``budget`` limits the evaluations of each search; see ``evaluations_at_most``. ``known``: of versions of the
    recording. A search ends when its best is within ``enough`` times the best of all.
    """
    book = RecordingIndex.of(recording)
    budget = evaluations_at_most(recording, budget)
    traces = {
        s.name: tuple(search(book, s, seed + k, budget, known, enough) for k in range(repeats if s.seeded else 1))
        for s in strategies
    }
    return Comparison(recording, traces)


@dataclass(frozen=True, slots=True)
class RecordingIndex:
    """A recording indexed by directive text, with the seconds of each row and the best cost of all."""

    recording: Recording
    numbers: dict[str, int]
    seconds: tuple[float, ...]
    best_us: float

    @classmethod
    def of(cls, recording: Recording) -> Self:
        numbers = {row.text: k for k, row in enumerate(recording.table.rows)}
        return cls(recording, numbers, tuple(recording.seconds()), recording.best_us)


def search(
    book: RecordingIndex,
    kind: type[Strategy],
    seed: int,
    budget: int | None,
    known: Knowledge = NOTHING,
    enough: float = 1.0,
) -> Trace:
    """Run one search until it ends, has made ``budget`` evaluations, or is within ``enough`` times the best."""
    account = _Account(book, random.Random(seed), enough)
    table = book.recording.table
    strategy = known.informed(kind(table, seed))
    opened: deque[tuple[int, float | None]] = deque()
    while (budget is None or account.evaluations < budget) and not account.done:
        configuration = strategy.ask()
        if configuration is None:
            break
        opened.append(account.answer(book.numbers[configuration.text], strategy.trials))
        while len(opened) >= strategy.window:
            number, cost = opened.popleft()
            strategy.tell(table[number], cost)
    return Trace(tuple(account.steps), account.evaluations)


class _Account:
    """The answers, and what they would have cost."""

    def __init__(self, book: RecordingIndex, rng: random.Random, enough: float) -> None:
        self._book, self._rng, self._enough_us = book, rng, enough * book.best_us
        self._seen: set[str] = set()
        self._told: dict[int, tuple[int, float]] = {}
        self._incumbent: int | None = None
        self._noisy = False
        self._spent = 0.0
        self.evaluations = 0
        self.steps: list[IncumbentChange] = []

    @property
    def done(self) -> bool:
        """Return whether nothing can be gained; with noise the incumbent may still be displaced."""
        return not self._noisy and bool(self.steps) and self.steps[-1].cost_us <= self._enough_us

    def answer(self, number: int, trials: int | None) -> tuple[int, float | None]:
        """Return the row and the cost told."""
        measured = self._book.recording.measured[number]
        known = measured.source in self._seen
        self._seen.add(measured.source)
        cost = measured.cost_us
        if cost is not None and trials is not None:
            runs = self._rng.choices(measured.runs_us if measured.runs_us else (cost,), k=trials)
            cost, self._noisy = median(runs), True
            besides = 0.0 if known else max(0.0, self._book.seconds[number] - sum(measured.runs_us) / 1e6)
            self._spent += besides + sum(runs) / 1e6
            self.evaluations += 1
        elif not known:
            self._spent += self._book.seconds[number]
            self.evaluations += 1
        if cost is not None:
            self._tell(number, (0 if trials is None else -trials, cost))
        return number, cost

    def _tell(self, number: int, cost: tuple[int, float]) -> None:
        self._told[number] = cost
        if self._incumbent is None or cost < self._told[self._incumbent]:
            self._incumbent = number
        elif number == self._incumbent:
            self._incumbent = min(self._told, key=lambda k: self._told[k])
        true = self._book.recording.measured[self._incumbent].cost_us
        assert true is not None, "what was told a cost has one"
        if not self.steps or self.steps[-1].cost_us != true:
            self.steps.append(IncumbentChange(self.evaluations, self._spent, true))
