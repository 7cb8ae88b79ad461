"""The processes of looptune inside a Dask worker, which run its tasks and may be killed.

    Dask task perform(name, setup, slot, task) ─▶ thread of the Dask worker ─▶ process (worker.py) ─▶ Reply

A version that crashes or hangs ends its process and never the Dask worker; Dask always gets a Reply. A process serves
one set-up and slot, and is reused from task to task. It is ended when it has been idle for long, since the sweep that
started it may have been killed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing import current_process
from threading import Lock
from typing import TYPE_CHECKING, Any

from distributed import WorkerPlugin, get_worker
from tornado.ioloop import PeriodicCallback

from looptune.runtime.outcome import Crashed
from looptune.tune.execution.executor import invalidates_device
from looptune.tune.execution.worker import Reply, Worker, run_one

if TYPE_CHECKING:
    from looptune.tune.execution.process import Setup

IDLE_S = 300.0


@dataclass(slots=True)
class _Lane:
    worker: Worker
    lock: Lock = field(default_factory=Lock)
    used: float = field(default_factory=time.monotonic)


class DaskWorkerPool(WorkerPlugin):
    """The processes of one sweep in a Dask worker. ``limit_s`` limits each task, without its set-up."""

    def __init__(self, name: str, setups: Mapping[str, Setup], limit_s: float) -> None:
        self.name, self.setups, self.limit_s = name, dict(setups), limit_s

    def setup(self, worker: Any) -> None:
        self.lanes: dict[tuple[str, int], _Lane] = {}
        self.lock, self.closed = Lock(), False
        # A nanny starts its worker as a daemon, which may have no children; it ends with its nanny all the same.
        current_process().daemon = False
        self.reaper = PeriodicCallback(self.reap, IDLE_S / 5 * 1e3)
        self.reaper.start()

    def teardown(self, worker: Any) -> None:
        self.reaper.stop()
        with self.lock:
            self.closed = True
            lanes = list(self.lanes.values())
        for lane in lanes:
            lane.worker.kill()
            self._close(lane)

    def reap(self) -> None:
        """End the processes that have been idle for IDLE_S."""
        with self.lock:
            lanes = list(self.lanes.values())
        for lane in lanes:
            if time.monotonic() - lane.used > IDLE_S:
                self._close(lane)

    def perform(self, setup: str, slot: int, task: tuple[Any, ...]) -> Reply:
        """Return the reply to a task. Raises TargetError if its process cannot be set up."""
        with self.lock:
            if (setup, slot) not in self.lanes:
                self.lanes[setup, slot] = _Lane(Worker(self.setups[setup], self.limit_s))
            lane = self.lanes[setup, slot]
        with lane.lock:
            if self.closed:
                return Crashed("the sweep was stopped")
            reply = run_one(lane.worker, *task)
            lane.used = time.monotonic()
            if self.closed or invalidates_device(reply):
                lane.worker.close()
            if not self.closed:
                # After a death it sets up again before the next task comes.
                lane.worker.start()
            return reply

    def _close(self, lane: _Lane) -> None:
        """Close the process unless it is busy; then its task closes it."""
        if lane.lock.acquire(blocking=False):
            lane.worker.close()
            lane.lock.release()


def perform(name: str, setup: str, slot: int, task: tuple[Any, ...]) -> Reply:
    """Return the reply to the task; Dask runs this function. ``name``: the name of the plugin."""
    bench = get_worker().plugins[name]
    assert isinstance(bench, DaskWorkerPool), f"the plugin {name} is a sweep's"
    return bench.perform(setup, slot, task)
