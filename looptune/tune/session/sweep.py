"""A search from its start to its result; an earlier one that stopped is resumed from the store.

    strategy ──▶ compiling pool: prepare ──▶ compiling pool: build ──▶ measuring worker ──▶ store ──▶ strategy
                 Illegal, or the             (jobs processes)          (one a device)
                 same source again

A sweep never ends because of one configuration: every one ends as an Outcome, and Ctrl-C keeps all that was measured.
Two sweeps at once on one store share the work: neither runs what the other has run or is running. Several models of
device are searched at once, each by a strategy of its own, and share the compiling pool. Raises StoreError if the store
cannot be written, and TargetError if a worker process cannot start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from looptune.runtime.targets import Model
from looptune.tune.execution.interrupts import InterruptGate, defer_interrupts
from looptune.tune.execution.lab import FINALS, LAST, Progress, SweepResult, VersionBuilder
from looptune.tune.execution.worker_loop import TaskResult
from looptune.tune.session.coordinator import Coordinator
from looptune.tune.space.space import DEFAULT, Configuration
from looptune.tune.strategies.base import Strategy

if TYPE_CHECKING:
    from looptune.tune.execution.executor import Executor, Workers
    from looptune.tune.execution.worker import Reply
    from looptune.tune.session.budget import Budget
    from looptune.tune.store.store import Store


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a sweep for one model of device: what builds its versions, and its strategy.

    ``command`` is stored with the rows; with directives added, it measures one of them again. ``first``: configurations
    that are evaluated before the strategy is asked, in addition to those for all parts. ``guesses``: configurations
    that are evaluated before all of these, which are cut off where they are far slower. ``finals``: returns what
    idle processes do for the finals of the result while the searches of others go on, as arguments of the step FINALS.
    """

    lab: VersionBuilder
    strategy: Strategy
    model: Model
    command: str = ""
    first: Sequence[Configuration] = ()
    guesses: Sequence[Configuration] = ()
    finals: Callable[[SweepResult], Sequence[Any]] | None = None


@dataclass(frozen=True, slots=True)
class ForFinals:
    """The key of a ``task`` that is done for finals to come."""

    task: Any


def sweeps(
    parts: Sequence[Part],
    store: Store,
    executor: Executor,
    *,
    jobs: int,
    timeout_s: float,
    budget: Budget,
    progress: Callable[[Progress], None],
    first: Sequence[Configuration] = (DEFAULT,),
    fresh: bool = False,
    cuts: bool = True,
) -> tuple[SweepResult, ...]:
    """Run the sweep of each part, and return the results in the order of the parts.

    Each part evaluates ``first`` and its own configurations, then those that its strategy requests, until the budget or
    the space is used up, or Ctrl-C.

    ``jobs`` processes compile, and ``timeout_s`` limits each task. ``fresh`` runs again what the store already has, and
    without ``cuts`` what was cut off is measured whole. The budget is each part's. A device that several parts wait for
    goes to the one that has most left, so that all end together and the compiling processes have something to do until
    then.
    """
    own_start = time.thread_time()
    begun = f"{time.strftime('%Y%m%dT%H%M%S')}-{time.monotonic_ns():x}"
    names = [begun if number == 0 else f"{begun}.{number}" for number in range(len(parts))]
    for name, part in zip(names, parts, strict=True):
        store.register_command(name, part.command)
    labs, models = [part.lab for part in parts], [part.model for part in parts]
    overlap = executor.overlaps_compilation(models[0].target.name)
    interrupted = False
    made: tuple[dict[Any, Reply], ...] = tuple({} for _ in parts)
    with defer_interrupts() as gate, executor.open(labs, models, jobs, timeout_s) as workers:
        coordinators = [
            Coordinator(
                part.lab, number, part.strategy, store, budget, workers, progress, name,
                overlap=overlap, fresh=fresh, cuts=cuts, first=(*first, *part.first), guesses=part.guesses,
            )
            for number, (name, part) in enumerate(zip(names, parts, strict=True))
        ]  # fmt: skip
        try:
            _drive(coordinators, parts, workers, made, gate)
        except KeyboardInterrupt:
            interrupted = True
            _receive(coordinators, workers, made)
        finally:
            for coordinator in coordinators:
                coordinator.abandon()
    results = [coordinator.result(interrupted) for coordinator in coordinators]
    own = (time.thread_time() - own_start) / len(parts)
    return tuple(replace(r, spent=replace(r.spent, own=own), finals=f) for r, f in zip(results, made, strict=True))


def _drive(
    coordinators: Sequence[Coordinator],
    parts: Sequence[Part],
    workers: Workers,
    made: Sequence[dict[Any, Reply]],
    gate: InterruptGate,
) -> None:
    running = list(coordinators)
    while True:
        running.sort(key=lambda coordinator: -coordinator.left)
        asked = [coordinator.advance() for coordinator in running]
        ended = [coordinator for coordinator in running if coordinator.ended()]
        running = [coordinator for coordinator in running if coordinator not in ended]
        if not running:
            return
        for number in map(coordinators.index, ended):
            _compile_finals(number, parts[number], coordinators[number], workers)
        naps = [nap for coordinator in running if (nap := coordinator.nap_s()) is not None]
        with gate.open():
            workers.sleep(0.0 if any(asked) else min(naps, default=None))
        _receive(coordinators, workers, made)
        for coordinator in running:
            coordinator.admit()


def _compile_finals(number: int, part: Part, ended: Coordinator, workers: Workers) -> None:
    """Let processes that have nothing else to do begin with the finals of a search that has ended."""
    if part.finals is not None:
        for task in part.finals(ended.result(interrupted=False)):
            workers.compile(number, ForFinals(task), FINALS, task, order=LAST)


def _receive(coordinators: Sequence[Coordinator], workers: Workers, made: Sequence[dict[Any, Reply]]) -> None:
    """Keep what has been said by now; a task for finals that has failed is done again there."""
    for answer in workers.replies():
        if not isinstance(answer.key, ForFinals):
            coordinators[answer.lab].receive(answer)
        elif isinstance(answer.reply, TaskResult):
            made[answer.lab][answer.key.task] = answer.reply
