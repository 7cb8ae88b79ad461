"""Workers: a task that crashes or hangs ends the process that runs it, never the coordinator.

    coordinator                                     process of the worker (spawned)
      submit(key, *task) ── pipe ──▶ run(*task)
      wait([worker, …])  ◀─ pipe ── TaskResult(value) | TaskError(message)  or, seen from outside: Crashed | TimedOut

``setup`` is a picklable callable without arguments; called once in the process, it returns ``run``. One thread of the
coordinator waits for all workers at once. Limits are seconds in which a process runs or waits for a device
(time_allowance.py). Setting up does not count as running, nor does work that a task excludes from its limit. Processes
ignore Ctrl-C, which the coordinator handles, and die with the coordinator even if it is killed. The process of a closed
worker may serve another one that has the same cache.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import select
import signal
import time
from collections.abc import Iterable
from typing import Any, Self

from looptune.core.errors import TargetError
from looptune.runtime.outcome import Crashed, TimedOut
from looptune.tune.execution.process import COMPILING, ProcessCache, Setup, WorkerProcess, spawn
from looptune.tune.execution.worker_loop import BROKEN, OWN_WORK, READY, RESUMED, TaskError, TaskResult

Reply = TaskResult | TaskError | Crashed | TimedOut

LOST_S = 2.0
"""If the coordinator wakes later than this after it wanted to, the machine was stopped meanwhile."""
START_LIMIT_S = 300.0
"""So long a process may take to be set up: it may run the original loops."""
RESTARTS = 2
"""A process that is killed while it sets up, by the system for lack of memory or by a user, is started again this
often."""


class Worker:
    """A process that runs one task at a time. It is started when first needed, and again after its death.

    With ``spares`` the worker takes an idle process of its ``kind`` if there is one, and leaves its own there when it
    is closed. ``off_device``: its task does work of its own, or waits for ``go_on`` after it; only a worker that shares
    its device waits.
    """

    def __init__(
        self,
        setup: Setup,
        limit_s: float,
        start_limit_s: float = START_LIMIT_S,
        *,
        spares: ProcessCache | None = None,
        kind: str = COMPILING,
        shares_device: bool = False,
    ) -> None:
        self.off_device = self.waits_for_device = False
        self._shares_device = shares_device
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
        """Return whether the process is set up and has no task."""
        return self.idle and self._life is not None and self._life.ready

    @property
    def waiting_for(self) -> WorkerProcess | None:
        """Return the process if it owes a message: that it is set up, or the reply to a task."""
        life = self._life
        return life if life is not None and (self._task is not None or not life.ready) else None

    def start(self) -> None:
        """Begin to set up, so that it is done when the first task comes."""
        if self._life is None:
            spare = None if self._spares is None else self._spares.take(self._kind, pickle.dumps(self._setup))
            if spare is not None:
                spare.begin(self._setup, self.start_limit_s)
            self._life = self._new() if spare is None else spare

    def submit(self, key: Any, *task: Any) -> None:
        """Run the task; ``key`` identifies its reply."""
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
        if not said and not life.allowance.expired():
            return None
        message = self._receive(life) if said else TimedOut(life.allowance.limit_s)
        if message in ((OWN_WORK, ""), (RESUMED, "")):
            self._own_work(life, message[0] == RESUMED)
            return None
        if not life.ready:
            self._set_up(life, message)
            return None
        assert self._task is not None, "a reply follows a task"
        key = self._task[0]
        self._task = None
        self.off_device = False
        if isinstance(message, Crashed | TimedOut):
            self.end()
        return key, message

    def _own_work(self, life: WorkerProcess, done: bool) -> None:
        """Record that a task begins with work of its own, or is ``done`` with it; setting up is own work anyway."""
        if not life.ready:
            return
        life.allow(self.start_limit_s)
        self.off_device, self.waits_for_device = True, done
        if done and not self._shares_device:
            self.go_on()

    def go_on(self) -> None:
        """Let a task that has done its own work go on, within its limit."""
        assert self._life is not None, "a task that waits has a process"
        self.off_device = self.waits_for_device = False
        self._life.allow(self.limit_s)
        self._life.go_on()

    def close(self) -> None:
        """Leave the process to the spares if it is set up, alive and idle; otherwise kill it.

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
        self.off_device = self.waits_for_device = False
        if life is not None:
            life.end()

    def kill(self) -> None:
        """Kill the process, from any thread; the reply to its task is then a crash."""
        life = self._life
        if life is not None:
            with contextlib.suppress(ValueError):
                life.process.kill()

    def _set_up(self, life: WorkerProcess, message: Any) -> None:
        """Record the reply of the process to its set-up."""
        match message:
            case (code, _) if code == READY and life.superseded:
                life.superseded -= 1
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
        """Set up in a new process, and keep the task."""
        task = self._task
        self.end()
        self._task = task
        self._life = self._new()

    def _new(self) -> WorkerProcess:
        return spawn(self._setup, self.start_limit_s, copied=self._spares is not None and self._spares.copied)

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


def wait(workers: Iterable[Worker], timeout_s: float | None = None) -> list[tuple[Worker, Any, Reply]]:
    """Return the replies that arrive within ``timeout_s``, or none at once if no worker is busy."""
    heard = sleep(workers, timeout_s)
    collected = [(worker, worker.collect()) for worker in heard]
    return [(worker, *reply) for worker, reply in collected if reply is not None]


def returned_value(reply: Reply, what: str) -> Any:
    """Return the value of a task that has to succeed; ``what`` is the subject of the error message.

    Raises AssertionError for an exception in the task, and TargetError if its process did not end it.
    """
    match reply:
        case TaskResult(value):
            return value
        case TaskError(message, trace):
            raise AssertionError(f"{what} failed: {message}\n{trace}")
        case other:
            raise TargetError(f"{what} did not end: {other.message}")


def run_one(worker: Worker, *task: Any) -> Reply:
    """Return the reply to one task, after waiting for it."""
    worker.submit(None, *task)
    while True:
        for _, _, reply in wait((worker,)):
            return reply


def sleep(workers: Iterable[Worker], timeout_s: float | None = None) -> list[Worker]:
    """Wait for a message or a deadline, at most ``timeout_s``, and return the workers that have one.

    No message is taken, so that an exception in the middle of it loses none.
    """
    expected = [(worker, life) for worker in workers if (life := worker.waiting_for) is not None]
    start = time.monotonic()
    until = [life.allowance.deadline - start for _, life in expected]
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
        # The machine was suspended, or stopped with all that runs on it.
        for _, life in expected:
            life.allowance.extend(lost_s)
    return [worker for worker, life in expected if life.link.fileno() in spoken or now >= life.allowance.deadline]
