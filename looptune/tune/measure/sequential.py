"""The original loops on one core, one iteration after the other: the row "sequential" of a report.

It is the program's own text, compiled by the C compiler, if that is possible, else the loops as looptune compiles them.
The latter are also a version of every sweep for a CPU, which may win and be built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.ir.nodes import Codelet, Loop, Node
from looptune.ir.rewrite import rewrite, walk_stmts
from looptune.lower.pipeline import lower
from looptune.runtime.c_reference import NoReference
from looptune.runtime.device import Cpu
from looptune.runtime.disturbance import Watch
from looptune.schedule.apply import schedule
from looptune.schedule.binding import loop_label
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.measure.pruning import LONG_US
from looptune.tune.measure.reference import outputs
from looptune.tune.space.space import Configuration

if TYPE_CHECKING:
    from looptune.schedule.analysis import Analysis
    from looptune.tune.job import Job

RUNS = 6
"""The first of them is not counted."""


@dataclass(frozen=True, slots=True)
class SequentialTimes:
    """The microseconds of each run of the original loops, and what disturbed the machine meanwhile, "" for nothing."""

    us: tuple[float, ...]
    disturbed: str = ""


def description(job: Job) -> str:
    """Return a description of what is timed."""
    return "looptune's own, on one core" if job.text is None else f"{job.text.description} -O3, on one core"


def version(analysis: Analysis, given: Sequence[str], values: Mapping[str, int | float]) -> tuple[Configuration, ...]:
    """Return the version in which threads run no loop, with the ``given`` lines.

    None if it cannot be expressed, or if it is the default.
    """
    try:
        usual = schedule(analysis, parse_lines(given, "configuration"), values).codelet
        if not any(loop.mode == "parallel" for loop in _loops(usual)):
            return ()
        lines = (*given, *(f"loop {loop_label(loop)}: noParallel" for loop in _loops(analysis.codelet)))
        made = schedule(analysis, parse_lines(lines, "configuration"), values).codelet
    except (DirectiveError, IllegalTransform):
        return ()
    return () if any(loop.mode == "parallel" for loop in _loops(made)) else (Configuration(lines),)


def _loops(codelet: Codelet) -> list[Loop]:
    return [n for n in walk_stmts(codelet.body) if isinstance(n, Loop)]


def sequential_timer(job: Job) -> Callable[[], SequentialTimes]:
    """Return the set-up of a worker that times the original loops on one core.

    Up to five runs after a first one, fewer if they take long.
    """
    text = _of_text(job)
    own = _own(job) if text is None else None

    def times_us() -> tuple[float, ...]:
        nonlocal own
        if text is not None and own is None:
            try:
                return taken(text)
            except NoReference:  # it crashes at these sizes
                own = _own(job)
        assert own is not None, "one of the two can be run"
        return taken(own)

    def taken(sample: Callable[[], float]) -> tuple[float, ...]:
        times = [sample()]
        while len(times) < RUNS and sum(times) <= LONG_US:
            times.append(sample())
        return tuple(times[1:] if len(times) > 1 else times)

    def watched() -> SequentialTimes:
        if job.accept_disturbed:
            return SequentialTimes(times_us())
        watch = Watch(in_child=own is None)
        return SequentialTimes(times_us(), watch.disturbance())

    return watched


def _of_text(job: Job) -> Callable[[], float] | None:
    """Return the time of the text, or None if it does not run at these sizes."""
    text = job.text
    if text is None:
        return None
    arrays = job.problem.arrays(job.codelet, job.seed)
    written = sorted(outputs(job.codelet))
    try:
        text.program(job.cache)
    except NoReference:
        return None

    def sample() -> float:
        # the first of two is for the caches, where it does not take long
        first = text.time_runs(job.cache, arrays, job.problem.values, written, 1)[0]
        return first if first > LONG_US / RUNS else text.time_runs(job.cache, arrays, job.problem.values, written, 2)[1]

    return sample


def _own(job: Job) -> Callable[[], float]:
    backend = job.target.reference()

    def rule(n: Node) -> Node | None:
        match n:
            case Loop():
                return replace(n, mode="sequential")
        return None

    program = backend.load(backend.build(lower(rewrite(rule, job.codelet), "one core, every loop sequential")))
    arrays = job.problem.arrays(job.codelet, job.seed)
    originals = {name: arrays[name].copy() for name in outputs(job.codelet)}
    pairs = {name: (arrays[name], original) for name, original in originals.items()}
    return Cpu().sampler(lambda stream: program.run(arrays, job.problem.values, stream), pairs)
