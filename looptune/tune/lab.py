"""What goes into a sweep and what comes out: the laboratory that knows kernels, progress, and the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from looptune.runtime.outcome import Outcome
from looptune.tune.space import DEFAULT, Configuration
from looptune.tune.store import Context, Row
from looptune.tune.workers import Setup


@dataclass(frozen=True, slots=True)
class Prepared:
    """``source_key``: hash of the emitted source, equal keys are one version. ``task``: what compiling needs."""

    source_key: str
    task: Any


class Lab(Protocol):
    """What the coordinator needs to know of kernels. The set-ups are called in worker processes, hence picklable.

    ``compile_setup()`` gives ``compile(task) -> built | Outcome``, ``measure_setup()`` gives
    ``measure(built, best_us) -> Outcome``. An exception in compile is NotBuilt, one in measure is Crashed.
    """

    @property
    def context(self) -> Context: ...

    @property
    def compile_setup(self) -> Setup: ...

    @property
    def measure_setup(self) -> Setup: ...

    def prepare(self, configuration: Configuration) -> Prepared | Outcome:
        """Schedule, map and emit, in the coordinator; an Outcome (Illegal, OverLimit) where it is refused."""


@dataclass(frozen=True, slots=True)
class Progress:
    """``done`` of at most ``total`` configurations, ``resumed`` of them from the store. ``last`` is the newest row."""

    done: int
    total: int
    resumed: int
    counts: Mapping[str, int]
    last: Row
    best: Row | None
    elapsed_s: float
    eta_s: float | None


@dataclass(frozen=True, slots=True)
class SweepResult:
    """``counts`` by outcome class, besides ``space`` (its size) and ``duplicate``; ``timed`` is fastest first."""

    sweep: str
    counts: Mapping[str, int]
    timed: tuple[Row, ...]
    resumed: int
    interrupted: bool
    elapsed_s: float

    @property
    def best(self) -> Row | None:
        return self.timed[0] if self.timed else None

    @property
    def default(self) -> Row | None:
        """The row without directives, where it was timed."""
        return next((row for row in self.timed if row.directives == DEFAULT.text), None)
