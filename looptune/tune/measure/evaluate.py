"""The evaluation of one configuration, from its directives to an Outcome, in steps that run in different processes.

    compiling worker    schedule, map, emit                                 Illegal | its first BuildStep
    compiling worker    the step's plan                                     NotBuilt | OverLimit | Built
    measuring worker    run at the user's sizes, compare, time              WrongResult | CutOff | Timed | NextStep
                        run at prime sizes between canaries, compare        WrongResult | CutOff | Timed | NextStep
                        run at sizes 0 and 1, compare                       WrongResult | Timed

Results are compared with the reference (``reference``). If sizes are constants of the kernel, these are three steps,
each with a plan of its own, the last with one for any sizes. The run at the user's sizes comes first, and promising
versions are checked at prime sizes; if slow versions take long, the order is reversed for those that are not predicted
to be short, and hopeless versions go no further. A version that is far slower than the best is not measured to its end
(``pruning``).
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from looptune.backends.base import Backend
from looptune.core.errors import DirectiveError, IllegalTransform, ParseError, ResourceError
from looptune.lower.plan import Plan
from looptune.runtime.outcome import Illegal, Outcome, OverLimit
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.execution.lab import NextStep, PreparedVersion
from looptune.tune.execution.worker_loop import PickledValue, pickle_value
from looptune.tune.job import Job
from looptune.tune.measure.build_steps import BuildStep, Built, first_step, plans_of
from looptune.tune.measure.device_limits import exceeded
from looptune.tune.measure.finals_rounds import Finals, FinalsRequest, Times
from looptune.tune.measure.measuring_device import MeasuringDevice
from looptune.tune.store.store import Context

if TYPE_CHECKING:
    from looptune.ir.nodes import Codelet
    from looptune.runtime.targets import Target
    from looptune.tune.execution.process import Setup
    from looptune.tune.incumbent import Incumbent
    from looptune.tune.space.space import Configuration


PARTS = 3
"""So many processes compile the kernels of one plan, if they have nothing else to do."""
KERNELS = 16
"""Of so many kernels a process keeps the dependences, which take seconds, also beyond the set-up that needed them."""


@lru_cache(KERNELS)
def analysis_of(codelet: Codelet, reassociate: bool) -> Analysis:
    """Return the analysis of a codelet: that of a search serves its finals in the same process."""
    return Analysis(codelet, reassociate)


@dataclass(slots=True)
class KernelBuilder:
    """The versions of a job, as a sweep needs them; see ``execution.lab.VersionBuilder``.

    ``predict``: returns the predicted microseconds of a plan; None: nothing is predicted. ``unstoppable``: returns for
    how many of them a run cannot be stopped, where only that is needed. Both can be pickled.
    ``backend``: the target's own; ``searching``: what compiles the versions of the search, which may be another.
    """

    job: Job
    context: Context
    predict: Callable[[Plan], float] | None = None
    unstoppable: Callable[[Plan], float] | None = None
    analysis: Analysis = field(init=False)
    backend: Backend = field(init=False)
    searching: Backend = field(init=False)

    def __post_init__(self) -> None:
        self.analysis = analysis_of(self.job.codelet, self.job.reassociate)
        self.backend = self.job.target.backend()
        search = self.job.target.search_backend
        self.searching = self.backend if search is None else search()

    @property
    def compile_setup(self) -> Setup:
        return partial(compiler, self.job, self.context, self.predict, self.unstoppable)

    @property
    def measure_setups(self) -> tuple[Setup, ...]:
        target = self.job.target
        each = (replace(target, machine=machine, others=()) for machine in (target.machine, *target.others))
        return tuple(partial(measurer, replace(self.job, target=one)) for one in each)

    def scheduled(self, configuration: Configuration) -> ScheduleResult:
        placed = parse_lines(configuration.lines, "configuration")
        return schedule(self.analysis, placed, self.job.problem.values)

    def prepare(self, configuration: Configuration) -> PreparedVersion | Outcome:
        try:
            plans = plans_of(self.job, self.scheduled(configuration).codelet, configuration.text)
            finished = self.searching.finish(plans.timed)
            emitted = self.searching.emit(replace(finished, schedule_text=""))
        except (DirectiveError, IllegalTransform, ParseError) as error:
            return Illegal(error.message)
        key = hashlib.sha256(emitted.encode()).hexdigest()
        if self.predict is None:
            longest_us = None if self.unstoppable is None else self.unstoppable(plans.timed)
            step = replace(first_step(self.job, plans, longest_us), finished=pickle_value(finished))
            return PreparedVersion(key, pickle_value(step))
        predicted, compile_s = self.predict(plans.timed), emitted.count("\n") / self.searching.lines_a_second
        step = replace(first_step(self.job, plans, predicted), finished=pickle_value(finished))
        task = pickle_value(step)
        return PreparedVersion(key, task, predicted, tuple(_ahead(step, task)), compile_s)

    def predicted(self, configurations: Sequence[Configuration]) -> dict[str, float]:
        """Return the predicted microseconds of those of the versions that can be mapped, by their texts."""
        found: dict[str, float] = {}
        for configuration in configurations:
            with contextlib.suppress(DirectiveError, IllegalTransform, ParseError, ResourceError):
                plan = plans_of(self.job, self.scheduled(configuration).codelet, "").timed
                if self.predict is not None:
                    found[configuration.text] = self.predict(plan)
        return found

    def build_ahead(self, ahead: Ahead) -> None:
        """Compile kernels of a build to come."""
        step = replace(ahead.task.load(), at_prime_sizes=ahead.at_prime_sizes)
        self.searching.build_ahead(step.plan(self.job.prime_problem), ahead.first)

    def build(self, step: BuildStep) -> PickledValue | Outcome:
        """Return the binary for the measuring worker, or the resource that exceeds a limit of the device."""
        try:
            binary = self.searching.build(step.plan(self.job.prime_problem))
        except ResourceError as error:
            return OverLimit(error.message)
        except (DirectiveError, IllegalTransform) as error:
            return Illegal(error.message)
        over = exceeded(binary.resources)
        done = step if step.at_prime_sizes else replace(step, finished=None)
        return pickle_value(Built(done, binary)) if over is None else OverLimit(over)


@dataclass(frozen=True, slots=True)
class Ahead:
    """Kernels to compile before they are needed: of a step, at prime sizes or not, from number ``first`` on."""

    task: PickledValue
    at_prime_sizes: bool
    first: int


def _ahead(step: BuildStep, task: PickledValue) -> Iterator[Ahead]:
    """Yield the build that follows one at prime sizes, and parts of both for further processes."""
    sizes = (True, False) if step.at_prime_sizes else (False,)
    for first in range(min(PARTS, len(step.plans.timed.compiled_kernels))):
        yield from (Ahead(task, prime, first) for prime in sizes if first > 0 or prime != step.at_prime_sizes)


def idle(target: Target) -> Callable[..., None]:
    """Return the set-up of a process whose kernel is not known yet: it imports what either kind needs.

    ``target`` brings its own imports along when it is unpickled.
    """
    target.backend()
    return _no_task


def _no_task(*task: Any) -> None:
    raise AssertionError("a process without a kernel gets no task")


def compiler(
    job: Job,
    context: Context,
    predict: Callable[[Plan], float] | None = None,
    unstoppable: Callable[[Plan], float] | None = None,
) -> Callable[[str, Any], PreparedVersion | PickledValue | Outcome | dict[str, float] | None]:
    """Return the set-up of a compiling worker."""
    lab = KernelBuilder(job, context, predict, unstoppable)

    def work(step: str, given: Any) -> PreparedVersion | PickledValue | Outcome | dict[str, float] | None:
        match step:
            case "prepare":
                return lab.prepare(given)
            case "predict":
                return lab.predicted(given)
            case "ahead":
                lab.build_ahead(given)
                return None
        return lab.build(given)

    return work


def measurer(job: Job) -> Callable[..., Outcome | NextStep | Times]:
    """Return the set-up of the worker that measures on the job's first device, and runs the finals there."""
    bench = MeasuringDevice(job)

    def work(given: Built | FinalsRequest, best: Incumbent | None = None) -> Outcome | NextStep | Times:
        return Finals(bench).run(given) if isinstance(given, FinalsRequest) else bench.measure(given, best)

    return work
