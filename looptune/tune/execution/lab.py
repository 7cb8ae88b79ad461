"""The input and the output of a sweep: the laboratory that knows the kernel, the progress, and the result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from looptune.runtime.outcome import Outcome
from looptune.tune.execution.process import Setup
from looptune.tune.space.space import DEFAULT
from looptune.tune.store.store import Context, Row

Order = tuple[bool, float]
"""The place of a build among those that wait, the least first: whether it comes after all others, a predicted time."""
FIRST: Order = (False, 0.0)
LAST: Order = (True, math.inf)
"""That of what only processes do that have nothing else to do."""
FINALS = "finals"
"""The step of work for finals to come; its argument is one of their steps, and a version."""


@dataclass(frozen=True, slots=True)
class PreparedVersion:
    """A version that is mapped and emitted, and can be built.

    ``source_key``: a hash of the emitted source; versions with equal keys are one version. ``task``: what the build
    needs, pickled if it is large, since the coordinator only passes it on. ``predicted_us``: its predicted time at the
    user's sizes, None if nothing is predicted. ``ahead``: what idle processes can do for its builds, most useful first.
    ``compile_s``: how long its compilation takes, by the length of its source.
    """

    source_key: str
    task: Any
    predicted_us: float | None = None
    ahead: tuple[Any, ...] = ()
    compile_s: float = 0.0


@dataclass(frozen=True, slots=True)
class NextStep:
    """The next step of a version that has been run: ``task`` is to be built and measured as well.

    ``previous``: the outcome of the version if the step fails; None if there is none yet. ``reduced_us``: its time at
    reduced sizes, None if it did not run there.
    """

    task: Any
    previous: Outcome | None = None
    reduced_us: float | None = None


class Lab(Protocol):
    """The set-ups of the processes that work for one kernel. They are called in those processes, hence picklable.

    ``compile_setup()`` gives ``work(step, given)``, and each of ``measure_setups``, one for each device of the model,
    gives ``measure(*task)``.
    """

    @property
    def compile_setup(self) -> Setup: ...

    @property
    def measure_setups(self) -> tuple[Setup, ...]: ...


@dataclass(frozen=True, slots=True)
class PlainLab:
    """A laboratory made of its set-ups."""

    compile_setup: Setup
    measure_setups: tuple[Setup, ...]


class VersionBuilder(Lab, Protocol):
    """The interface between the coordinator and a kernel whose versions are searched.

        work("prepare", configuration) -> PreparedVersion | Outcome  schedule, map and emit; Illegal if it is refused
        work("build", task)            -> built | Outcome
        work("ahead", one of ahead)    -> None                       kernels of a build to come, for the cache
        work(FINALS, (step, version))  -> what the finals' own processes return of it
        measure(built, best)           -> Outcome | NextStep

    An exception in work is NotBuilt, one in measure is Crashed. Of the facts of a Timed or a CutOff, ``verify_s`` and
    ``measure_s`` say where its time went. ``best`` is None if the version is to be measured whole, however slow it is.
    """

    @property
    def context(self) -> Context: ...


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a sweep: ``done`` of at most ``total`` configurations, ``resumed`` of them from the store.

    ``last`` is the newest row.
    """

    done: int
    total: int
    resumed: int
    counts: Mapping[str, int]
    last: Row
    best: Row | None
    elapsed_s: float
    eta_s: float | None


@dataclass(frozen=True, slots=True)
class TimeBreakdown:
    """Seconds of a sweep.

    ``launch`` (getting a version to the device), ``verify``, ``measure``, ``failed`` (versions that crashed or were
    killed) and ``waiting`` (nothing to measure) are the measuring worker's and make up the whole; of several
    ``devices`` they are the mean. ``judge`` and ``compile`` are of all compiling processes together, ``own`` is the
    coordinator's CPU time, an equal share of what it took for all that was swept at once.
    """

    judge: float
    compile: float
    launch: float
    verify: float
    measure: float
    failed: float
    waiting: float
    own: float = 0.0
    devices: int = 1


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The result of a sweep. ``counts``: by outcome class, and ``space`` (its size) and ``duplicate``.

    ``timed``: the fastest thousand versions and those that were evaluated first, fastest first; ``times_us``: all
    medians; ``finals``: what was done for its finals while others were searched, by task.
    """

    sweep: str
    counts: Mapping[str, int]
    timed: tuple[Row, ...]
    times_us: tuple[float, ...]
    resumed: int
    interrupted: bool
    elapsed_s: float
    spent: TimeBreakdown
    finals: Mapping[Any, Any] = field(default_factory=dict)

    @property
    def best(self) -> Row | None:
        return self.timed[0] if self.timed else None

    @property
    def default(self) -> Row | None:
        """Return the row without directives, if it was timed."""
        return next((row for row in self.timed if row.directives == DEFAULT.text), None)
