"""Processes that may be killed: a task that crashes or hangs costs its process, never the coordinator.

    coordinator                                     worker (spawned)
      submit(key, *task) ── pipe ──▶ run(*task)
      wait([worker, …])  ◀─ pipe ── Returned(value) | Raised(message)      or, seen from outside: Crashed | TimedOut

``setup`` is a picklable callable without arguments; called once in the process, it returns ``run``. One thread of
the coordinator waits for all workers at once. Limits are seconds in which a process runs or waits for a device, see
``allowance``; setting up does not count as running, nor does what a task says is its own work. Workers ignore Ctrl-C,
which is the coordinator's to handle, and die with it even when it is killed. The process of a worker that is closed may
serve another one, where both have the same Spares.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import select
import signal
import time
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self

from looptune.core.errors import TargetError
from looptune.runtime.outcome import Crashed, TimedOut
from looptune.tune.execution.process import Setup, WorkerProcess, spawn
from looptune.tune.execution.process_cache import COMPILING, ProcessCache
from looptune.tune.execution.task_queue import USUAL, Backlog
from looptune.tune.execution.worker_loop import BROKEN, OWN_WORK, READY, RESUMED, TaskError, TaskResult

Reply = TaskResult | TaskError | Crashed | TimedOut

LOST_S = 2.0
"""The coordinator wakes no later than this after it wanted to, on a machine that runs."""
RESTARTS = 2
"""So often a process is started again that was killed while it set up: by the system, short of memory, or by a user."""


class Worker:
    """One process, started when first needed and again after its death; one task at a time.

    With ``spares`` it takes an idle process of its ``kind`` where there is one, and leaves its own to them when closed.
    """

    def __init__(
        self,
        setup: Setup,
        limit_s: float,
        start_limit_s: float = 300.0,
        *,
        spares: ProcessCache | None = None,
        kind: str = COMPILING,
    ) -> None:
        self.limit_s = limit_s
        self.start_limit_s = start_limit_s
        self._setup = setup
        self._spares, self._kind = spares, kind
        self._life: WorkerProcess | None = None
        self._task: tuple[Any, bytes] | None = None
        self._killed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def idle(self) -> bool:
        return self._task is None

    @property
    def setting_up(self) -> bool:
        return self._life is not None and not self._life.ready

    @property
    def ready(self) -> bool:
        """Set up, and without a task."""
        return self.idle and self._life is not None and self._life.ready

    @property
    def waiting_for(self) -> WorkerProcess | None:
        """The process something is expected from: its readiness or its reply."""
        life = self._life
        return life if life is not None and (self._task is not None or not life.ready) else None

    def start(self) -> None:
        """Begin setting up, so that it is done when the first task comes."""
        if self._life is None:
            spare = None if self._spares is None else self._spares.take(self._kind, pickle.dumps(self._setup))
            if spare is None:
                self._began(spawn(self._setup))
            else:
                spare.begin(self._setup)
                self._began(spare)

    def submit(self, key: Any, *task: Any) -> None:
        """Run the task; its reply will bear ``key``."""
        assert self._task is None, "a worker runs one task at a time"
        if self.ready and self._life is not None and self._life.link.poll():
            # All that one without a task can have to say is that it died.
            self.end()
        self.start()
        self._task = (key, pickle.dumps(task))
        if self._life is not None and self._life.ready:
            self._send(self._life)

    def collect(self) -> tuple[Any, Reply] | None:
        """Return the reply of the process, or a TimedOut if its limit is used up.

        Raises TargetError if it cannot be set up.
        """
        life = self._life
        assert life is not None, "only a started worker is waited for"
        said = life.link.poll()
        if not said and not life.expired():
            return None
        message = self._receive(life) if said else TimedOut(life.limit_s)
        if message in ((OWN_WORK, ""), (RESUMED, "")):
            if life.ready:  # setting up is own work anyway
                life.allow(self.limit_s if message[0] == RESUMED else self.start_limit_s)
            return None
        if not life.ready:
            self._set_up(life, message)
            return None
        assert self._task is not None, "a reply follows a task"
        key = self._task[0]
        self._task = None
        if isinstance(message, Crashed | TimedOut):
            self.end()
        return key, message

    def close(self) -> None:
        """Be rid of the process: left to the spares where it is sound and idle, else killed.

        The worker may be used again.
        """
        life = self._life
        if self._spares is None or life is None or not (life.ready and self.idle and life.process.is_alive()):
            self.end()
            return
        self._life = None
        self._spares.keep(self._kind, life)

    def end(self) -> None:
        """Kill the process, and with it whatever it runs. The worker may be used again."""
        life, self._life, self._task = self._life, None, None
        if life is not None:
            life.end()

    def kill(self) -> None:
        """End the process, from any thread; whoever waits for its reply gets a crash."""
        life = self._life
        if life is not None:
            with contextlib.suppress(ValueError):
                life.process.kill()

    def _set_up(self, life: WorkerProcess, message: Any) -> None:
        """Record the reply of the process to its set-up."""
        match message:
            case (code, _) if code == READY:
                life.ready, self._killed = True, 0
                if self._task is not None:
                    self._send(life)
            case _ if life.used:
                # The fault may be in what it did before: for a new process this is its own.
                self._again()
            case Crashed() if self._killed < RESTARTS and life.process.exitcode == -signal.SIGKILL:
                self._killed += 1
                self._again()
            case (code, text) if code == BROKEN:
                self.end()
                raise TargetError(f"a worker process cannot start: {text}")
            case Crashed() | TimedOut():
                self.end()
                raise TargetError(f"a worker process cannot start: {message.message}")
            case _:
                raise AssertionError(f"before it is ready a process says so, and not {message!r}")

    def _again(self) -> None:
        """Set up in a new process; the task is kept."""
        task = self._task
        self.end()
        self._task = task
        self._began(spawn(self._setup))

    def _began(self, life: WorkerProcess) -> None:
        life.allow(self.start_limit_s)
        self._life = life

    def _send(self, life: WorkerProcess) -> None:
        assert self._task is not None, "there is a task to send"
        life.allow(self.limit_s)
        life.run(self._task[1])

    def _receive(self, life: WorkerProcess) -> Any:
        try:
            return pickle.loads(life.link.recv_bytes())
        except (EOFError, ConnectionResetError):
            life.process.join(timeout=5.0)
            life.process.kill()
            life.process.join()
            return Crashed(life.exit_report())


class Pool:
    """``size`` workers and a backlog of tasks before them.

    ``limit``: how many of them may have tasks at once from now on.
    """

    def __init__(self, setup: Setup, size: int, limit_s: float, spares: ProcessCache | None = None) -> None:
        self.workers = tuple(Worker(setup, limit_s, spares=spares) for _ in range(size))
        self.limit = size
        self._backlog = Backlog()
        self._groups: dict[int, Hashable] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def load(self) -> int:
        """Return the number of submitted tasks without a reply."""
        return len(self._backlog) + sum(not worker.idle for worker in self.workers)

    def submit(self, key: Any, *task: Any, rank: int = USUAL, group: Hashable | None = None) -> None:
        self._backlog.add((key, task), rank, group)
        self.dispatch()

    def dispatch(self) -> None:
        """Hand tasks to idle workers; to be called after each wait."""
        busy = sum(not worker.idle for worker in self.workers)
        # Workers are taken in order, so that a short queue starts few processes.
        for number, worker in enumerate(self.workers):
            if busy >= self.limit:
                return
            if not worker.idle or not self._backlog:
                continue
            taken = self._backlog.take(number)
            if taken is None:
                # There will be something for it when the first of a group is done.
                worker.start()
                continue
            (key, task), group = taken
            if group is not None:
                self._groups[number] = group
            worker.submit(key, *task)
            busy += 1

    def collect(self, worker: Worker) -> tuple[Any, Reply] | None:
        """As the worker's own; what tasks of a group take is noted."""
        said = worker.collect()
        if said is not None:
            number = self.workers.index(worker)
            group = self._groups.pop(number, None)
            if group is not None and isinstance(said[1], TaskResult):
                self._backlog.record_time(number, group, said[1].seconds)
        return said

    def close(self) -> None:
        self._backlog.clear()
        for worker in self.workers:
            worker.close()


def wait(workers: Iterable[Worker], timeout_s: float | None = None) -> list[tuple[Worker, Any, Reply]]:
    """Return the replies that arrive within ``timeout_s``, or none at once if no worker is busy."""
    heard = sleep(workers, timeout_s)
    collected = [(worker, worker.collect()) for worker in heard]
    return [(worker, *reply) for worker, reply in collected if reply is not None]


def run_one(worker: Worker, *task: Any) -> Reply:
    """Return the reply to one task, after waiting for it."""
    worker.submit(None, *task)
    while True:
        for _, _, reply in wait((worker,)):
            return reply


def get_ready(workers: Iterable[Worker]) -> None:
    """Set them all up, side by side."""
    those = tuple(workers)
    for worker in those:
        worker.start()
    while any(worker.setting_up for worker in those):
        wait(those)


def run_all(pool: Pool, tasks: Sequence[tuple[Any, ...]]) -> list[Reply]:
    """Return the replies to all tasks, in their order."""
    for number, task in enumerate(tasks):
        pool.submit(number, *task)
    found: dict[int, Reply] = {}
    while len(found) < len(tasks):
        found |= {number: reply for _, number, reply in wait(pool.workers)}
        pool.dispatch()
    return [found[number] for number in range(len(tasks))]


def sleep(workers: Iterable[Worker], timeout_s: float | None = None) -> list[Worker]:
    """Those that have something to say or are past their deadline, when there are some or after ``timeout_s``.

    It takes nothing, so that an exception in the middle of it loses nothing.
    """
    expected = [(worker, life) for worker in workers if (life := worker.waiting_for) is not None]
    start = time.monotonic()
    until = [life.deadline - start for _, life in expected]
    until += [] if timeout_s is None else [timeout_s]
    nap_s = max(0.0, min(until, default=0.0))
    if not expected:
        time.sleep(nap_s)
        return []
    # What connection.wait does, without an object for each of them.
    links = select.poll()
    for _, life in expected:
        links.register(life.link.fileno(), select.POLLIN)
    spoken = {descriptor for descriptor, _ in links.poll(math.ceil(nap_s * 1e3))}
    now = time.monotonic()
    lost_s = now - start - nap_s
    if lost_s > LOST_S:
        # Who waits wakes late where the machine was suspended, or stopped with all that runs on it.
        for _, life in expected:
            life.extend(lost_s)
    return [worker for worker, life in expected if life.link.fileno() in spoken or now >= life.deadline]


def cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0))


def default_jobs() -> int:
    """Return the number of cores less one, which the coordinator and the measured program need."""
    return max(1, cores() - 1)
