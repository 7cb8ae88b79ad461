"""The executor of a Dask cluster: tasks compile on any worker, and measure on those that declare a device.

    compile ─▶ queue ─▶ a free thread of a worker              measure ─▶ a free device of the lab's model
                        (one reserved for each of its devices)            (with its Dask resource, so that no other
                                                                           task runs on it at the same time)

Tasks are placed here and not by Dask, which would run the tasks of a worker that died again without limit: here they
are run again once, and a task whose second worker dies too is Crashed, with both named. A task's limit is counted in
the worker, from its start there.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from distributed import KilledWorker

from looptune.core.errors import TargetError, UsageError
from looptune.runtime import targets
from looptune.runtime.device import on_gpu
from looptune.runtime.outcome import Crashed
from looptune.runtime.targets import Model
from looptune.tune.execution.dask_cluster import LOST, Cluster
from looptune.tune.execution.dask_members import ClusterWorker, models, resource
from looptune.tune.execution.dask_worker import perform
from looptune.tune.execution.executor import NICE, TaskReply, compile_setup
from looptune.tune.execution.lab import FIRST, Order

if TYPE_CHECKING:
    from pathlib import Path

    from looptune.core.floating_point import Floats
    from looptune.runtime.device import DeviceInfo
    from looptune.tune.execution.lab import Lab
    from looptune.tune.execution.process import Setup
    from looptune.tune.execution.worker import Reply

LOOK_S = 1.0
"""The seconds between two looks at which workers there are."""
DESERTED_S = 120.0
"""The seconds that a sweep waits for a new worker when the last one has gone."""
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class DaskExecutor:
    """The executor of a cluster. Its devices are those of the workers, each with one process for each lab."""

    cluster: Cluster

    def models(self, target: str, cache: Path, *, floats: Floats, warm: bool) -> tuple[Model, ...]:
        targets.check_own(target, "a cluster measures on")
        if target == "opencl":
            raise UsageError("the target opencl is measured on this machine: leave out --cluster")
        chosen = self.cluster.wait_for(target)
        return tuple(
            Model(targets.target(chosen, facts, range(count), cache, floats=floats, warm=warm), facts)
            for facts, count in models(tuple(self.cluster.members.values()), chosen)
        )

    def open(
        self,
        labs: Sequence[Lab],
        models: Sequence[Model],
        jobs: int,
        timeout_s: float,
        *,
        exclusive: bool = False,
        baselines: int = 0,
    ) -> DaskWorkers:
        name, facts = models[0].target.name, tuple(model.facts for model in models)
        apart = name == "numba-cpu" and not exclusive and self.cluster.has_spare_hosts(name)
        return DaskWorkers(labs, self.cluster, name, facts, timeout_s, apart)

    def start_processes(self, models: Sequence[Model], jobs: int, setup: Callable[..., Any]) -> None:
        """Do nothing: the workers of a cluster have been started."""

    def overlaps_compilation(self, target: str) -> bool:
        """Return whether a GPU measures, or some machine compiles that measures nothing."""
        return on_gpu(target) or self.cluster.has_spare_hosts(target)

    def concurrency(self, models: Sequence[Model]) -> int:
        return 1

    def machine(self, model: Model) -> Any:
        """Return None: the devices are those of other machines."""
        return None

    def require(self, paths: Sequence[Path], target: str) -> None:
        self.cluster.require(paths, target)


@dataclass(slots=True, eq=False)
class _Task:
    """A task. ``at``: the worker and the slot where it runs; ``lost_workers``: those that went away while it ran."""

    lab: int
    key: Any
    measured: bool
    argument: tuple[Any, ...]
    at: tuple[ClusterWorker, int] | None = None
    future: Any = None
    lost_workers: list[str] = field(default_factory=list)


class DaskWorkers:
    """The workers of a cluster that serve some labs, all for one ``target``.

    ``models``: the device of each lab; ``apart``: a machine that measures does not compile.
    """

    def __init__(
        self,
        labs: Sequence[Lab],
        cluster: Cluster,
        target: str,
        models: Sequence[DeviceInfo],
        timeout_s: float,
        apart: bool = False,
    ) -> None:
        self._cluster, self._target, self._models, self._apart = cluster, target, tuple(models), apart
        self._each_has = tuple(len(lab.measure_setups) for lab in labs)
        setups: dict[str, Setup] = {"compile": compile_setup(labs, NICE)}
        for number, lab in enumerate(labs):
            setups |= {f"measure {number} {k}": setup for k, setup in enumerate(lab.measure_setups)}
        self._setups, self._timeout_s = setups, timeout_s
        self._stack = ExitStack()
        self._queue: deque[_Task] = deque()
        self._running: set[_Task] = set()
        self._said: deque[_Task] = deque()
        self._crashed: list[TaskReply] = []
        self._news = threading.Event()
        self._broken: TargetError | None = None
        self._look_at = self._peopled = time.monotonic()

    def __enter__(self) -> Self:
        self._name = self._stack.enter_context(self._cluster.bench(self._setups, self._timeout_s))
        return self

    def __exit__(self, *exception: object) -> None:
        with suppress(*LOST):
            if self._cluster.client.status == "running":
                self._cluster.client.cancel([task.future for task in self._running])
        self._stack.close()

    @property
    def compilers(self) -> int:
        return max(1, sum(self._threads(member) for member in self._members()))

    @property
    def compiling(self) -> int:
        return sum(not task.measured for task in self._tasks())

    @property
    def measuring(self) -> int:
        return sum(task.measured for task in self._tasks())

    def load(self, lab: int) -> int:
        return sum(not task.measured and task.lab == lab for task in self._tasks())

    def devices(self, lab: int) -> int:
        return max(1, len(self._slots(lab)))

    def free(self, lab: int) -> bool:
        waits = any(task.measured and task.lab == lab for task in self._queue)
        return not waits and self._free_slot(lab) is not None

    def compile(self, lab: int, key: Any, step: str, given: Any, urgent: bool = False, order: Order = FIRST) -> None:
        (self._queue.appendleft if urgent else self._queue.append)(_Task(lab, key, False, (lab, step, given)))
        self._place()

    def withdraw(self, lab: int, key: Any) -> bool:
        queued = [task for task in self._queue if task.key is key and task.lab == lab and not task.measured]
        for task in queued:
            self._queue.remove(task)
        return bool(queued)

    def warm(self, lab: int, count: int) -> None:
        """Do nothing: a device is set up with its first task."""

    def get_ready(self, labs: Sequence[int]) -> Sequence[int]:
        """Return no lab: a device is set up with its first task."""
        return ()

    def measure(self, lab: int, key: Any, *task: Any) -> None:
        self._queue.append(_Task(lab, key, True, task))
        self._place()

    def sleep(self, timeout_s: float | None) -> None:
        self._news.wait(LOOK_S if timeout_s is None else max(0.0, min(timeout_s, LOOK_S)))

    def replies(self) -> list[TaskReply]:
        if self._broken is not None:
            raise self._broken
        self._news.clear()
        found: list[TaskReply] = []
        while self._said:
            task = self._said.popleft()
            reply = self._reply(task)
            if reply is not None:
                self._running.discard(task)
                found.append(TaskReply(task.lab, task.key, reply, task.measured))
        try:
            self._look()
            self._place()
        except TargetError as error:
            self._broken = error
        found += self._crashed
        self._crashed = []
        if self._broken is not None and not found:
            raise self._broken
        return found

    def _reply(self, task: _Task) -> Reply | None:
        """Return the reply to a finished task; None if the task is lost, or no longer belongs here."""
        if task not in self._running:
            return None
        if task.future.status == "error":
            self._fail(task, task.future.exception())
            return None
        try:
            reply: Reply = task.future.result(timeout=LOOK_S)
        except LOST:
            # The worker is gone, with what it had found; or else the scheduler is.
            self._look_at = 0.0
            return None
        return reply

    def _fail(self, task: _Task, error: BaseException) -> None:
        """Reply with the failure of the worker, the scheduler or a set-up; a task's own failure is a reply already."""
        match error, task.at:
            case KilledWorker(), _:
                self._lose(task)
            case _, (member, _):
                first = str(error).partition("\n")[0]
                self._broken = TargetError(f"the worker {member.named} cannot run its tasks: {first}")

    def _look(self) -> None:
        """Queue again the tasks of workers that are gone.

        Raises TargetError if the scheduler is gone, or all workers for long.
        """
        self._cluster.check()
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_S
        gone = {member.address for member in self._cluster.refresh()}
        for task in [t for t in self._running if t.at is not None and t.at[0].address in gone]:
            self._lose(task)
        complete = all(self._slots(lab) for lab in range(len(self._models))) and any(
            map(self._threads, self._members())
        )
        if complete or self._running or gone:
            self._peopled = now
        elif now > self._peopled + DESERTED_S:
            raise TargetError(
                f"the workers left in the cluster cannot go on: for {DESERTED_S:.0f} s none declared the "
                f"{resource(self._target)} needed, or none could compile; "
                "the measurements are saved: run the same command again to continue"
            )

    def _lose(self, task: _Task) -> None:
        assert task.at is not None, "a task is lost with the worker it runs on"
        self._running.discard(task)
        with suppress(*LOST):
            task.future.cancel()
        task.lost_workers.append(task.at[0].named)
        task.at = task.future = None
        if len(task.lost_workers) < ATTEMPTS:
            self._queue.appendleft(task)
            return
        first, second = task.lost_workers
        message = f"the worker {second} left the cluster while it ran this, and so did {first} before"
        self._crashed.append(TaskReply(task.lab, task.key, Crashed(message), task.measured))

    def _place(self) -> None:
        """Start the queued tasks for which a place is free, in their order."""
        left: deque[_Task] = deque()
        while self._queue:
            task = self._queue.popleft()
            at = self._free_slot(task.lab) if task.measured else self._free_thread()
            if at is None:
                left.append(task)
            else:
                self._start(task, at)
        self._queue = left

    def _start(self, task: _Task, at: tuple[ClusterWorker, int]) -> None:
        member, slot = at
        setup = f"measure {task.lab} {slot}" if task.measured else "compile"
        task.at = at
        task.future = self._cluster.client.submit(
            perform, self._name, setup, slot, task.argument, workers=[member.address], pure=False,
            resources={resource(self._target): 1} if task.measured else None, priority=int(task.measured),
        )  # fmt: skip
        self._running.add(task)
        task.future.add_done_callback(partial(self._heard, task))

    def _heard(self, task: _Task, future: Any) -> None:
        """Record a finished task; Dask calls this in a thread of its own."""
        if task.future is future:
            self._said.append(task)
            self._news.set()

    def _tasks(self) -> Iterator[_Task]:
        yield from self._queue
        yield from self._running

    def _members(self) -> list[ClusterWorker]:
        return sorted(self._cluster.members.values(), key=lambda m: m.address)

    def _threads(self, member: ClusterWorker) -> int:
        """Return how many tasks a worker compiles at once; a thread is reserved for each device that it measures on."""
        if self._apart and member.host in self._cluster.measuring_hosts(self._target):
            return 0
        return max(1, member.threads - len(member.measured(self._target)))

    def _slots(self, lab: int) -> list[tuple[ClusterWorker, int]]:
        """Return the devices of the lab's model, each a worker and a number there for which the lab has a set-up."""
        model = self._models[lab].model
        return [
            (member, k)
            for member in self._members()
            for k, facts in enumerate(member.measured(self._target)[: self._each_has[lab]])
            if facts.model == model
        ]

    def _free_slot(self, lab: int) -> tuple[ClusterWorker, int] | None:
        taken = {(t.at[0].address, t.at[1]) for t in self._running if t.measured and t.at is not None}
        return next((at for at in self._slots(lab) if (at[0].address, at[1]) not in taken), None)

    def _free_thread(self) -> tuple[ClusterWorker, int] | None:
        """Return a worker with the fewest tasks for its threads, and the first slot that is free on it."""
        taken = {(t.at[0].address, t.at[1]) for t in self._running if not t.measured and t.at is not None}
        busy = Counter(address for address, _ in taken)
        free = [m for m in self._members() if busy[m.address] < self._threads(m)]
        if not free:
            return None
        member = min(free, key=lambda m: (busy[m.address] / self._threads(m), m.address))
        slots = range(self._threads(member))
        return member, next(k for k in slots if (member.address, k) not in taken)
