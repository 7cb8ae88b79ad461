"""The interface of executors: tasks run on this machine (local_executor.py) or on a cluster (dask_executor.py).

    Executor ── open(labs) ─▶ Workers
                 coordinator ── compile(lab, key, step, given) ─▶ queued, for any compiling process
                             ── measure(lab, key, *task) ───────▶ a free device of the lab's model
                             ◀─ replies() ─ TaskReply(lab, key, reply, measured)

An executor lives as long as a command and knows devices; its workers serve the laboratories of one sweep, or of the
finals of several kernels. ``lab`` is the number of a laboratory. Every task gets one reply, whatever happens to its
process. One thread makes the calls; only ``sleep`` may be interrupted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from looptune.runtime.outcome import Crashed, TimedOut
from looptune.tune.execution.lab import FIRST, Order
from looptune.tune.execution.worker import Reply
from looptune.tune.execution.worker_loop import TaskError, TaskResult

if TYPE_CHECKING:
    from pathlib import Path

    from looptune.core.floating_point import Floats
    from looptune.runtime.targets import Model
    from looptune.tune.execution.lab import Lab
    from looptune.tune.execution.process import Setup

NICE = 10
"""The niceness of processes that compile during a sweep; 0 is usual, 19 the least that a system gives."""


@dataclass(frozen=True, slots=True)
class TaskReply:
    """The reply to one task of a lab: ``key`` identifies the task, ``measured`` says whether it ran on a device."""

    lab: int
    key: Any
    reply: Reply
    measured: bool


class Workers(Protocol):
    """The processes that serve some labs. ``replies`` raises TargetError if a process cannot even start.

    Replies that arrived before such an error are returned first.
    """

    @property
    def compilers(self) -> int:
        """Return the number of tasks that compile at once."""

    @property
    def compiling(self) -> int:
        """Return the number of compiling tasks of all labs without a reply."""

    @property
    def measuring(self) -> int:
        """Return the number of measurements of all labs without a reply."""

    def load(self, lab: int) -> int:
        """Return the number of compiling tasks of one lab without a reply."""

    def devices(self, lab: int) -> int:
        """Return how many versions of this lab are measured at once."""

    def free(self, lab: int) -> bool:
        """Return whether a device of this lab is idle."""

    def compile(self, lab: int, key: Any, step: str, given: Any, urgent: bool = False, order: Order = FIRST) -> None:
        """Queue a task of the lab's ``compile_setup``.

        An urgent one is served before all others, and a "build" before a "prepare". Of several builds, that with the
        least ``order`` may be served first.
        """

    def withdraw(self, lab: int, key: Any) -> bool:
        """Take back the usual compiling tasks of the key that no process has begun; return whether there were any."""

    def warm(self, lab: int, count: int) -> None:
        """Begin to set up this number of the lab's devices, because as many tasks will come."""

    def get_ready(self, labs: Sequence[int]) -> Sequence[int]:
        """Set up one device of each lab, side by side, and return the labs whose tasks then start at once."""

    def measure(self, lab: int, key: Any, *task: Any) -> None:
        """Give a task of one of the lab's ``measure_setups`` to a free device."""

    def sleep(self, timeout_s: float | None) -> None:
        """Wait until there may be a reply, at most ``timeout_s``. An exception in it loses no reply."""

    def replies(self) -> Sequence[TaskReply]:
        """Return the replies that have arrived, after handing on queued tasks."""


class Executor(Protocol):
    """The devices that a command uses."""

    def models(self, target: str, cache: Path, *, floats: Floats, warm: bool) -> tuple[Model, ...]:
        """Return the models of device that ``target`` denotes here; every version is measured on each."""

    def open(
        self,
        labs: Sequence[Lab],
        models: Sequence[Model],
        jobs: int,
        timeout_s: float,
        *,
        exclusive: bool = False,
        baselines: int = 0,
    ) -> AbstractContextManager[Workers]:
        """Return the workers for the labs, each of which measures on the devices of its model.

        Leaving their context stops whatever runs.
        ``timeout_s`` limits each task. ``jobs`` processes compile, where they are processes of this machine. If
        ``exclusive``, no other process uses a device from the set-up of a task to its reply. The last ``baselines``
        labs need one core of the machine that has their model: one of their tasks runs at a time.
        """

    def start_processes(self, models: Sequence[Model], jobs: int, setup: Callable[..., Any]) -> None:
        """Start the processes of a sweep before its kernel is known, while the kernel is analysed.

        ``setup(target)`` is the set-up of ``jobs`` processes that compile and of one for each device.
        """

    def overlaps_compilation(self, target: str) -> bool:
        """Return whether versions may compile while others are measured."""

    def concurrency(self, models: Sequence[Model]) -> int:
        """Return how many kernels are swept at once, so that a device always has something to measure."""

    def machine(self, model: Model) -> Any:
        """Return the first device of the model, or None if this process may not measure on it."""

    def require(self, paths: Sequence[Path], target: str) -> None:
        """Raise TargetError if one of these files cannot be read where it is needed."""


def compile_setup(labs: Sequence[Lab], nice: int) -> Setup:
    """Return the set-up of a process that compiles for all of the labs."""
    return partial(_compilers, tuple(lab.compile_setup for lab in labs), nice)


def _compilers(setups: Sequence[Setup], nice: int) -> Callable[..., Any]:
    if nice:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    works = [setup() for setup in setups]

    def work(lab: int, step: str, given: Any) -> Any:
        return works[lab](step, given)

    return work


def compile_all(workers: Workers, tasks: Sequence[tuple[int, str, Any]]) -> list[Reply]:
    """Return the replies to compiling tasks, each a lab, a step and what is given to it, in their order."""
    for number, (lab, step, given) in enumerate(tasks):
        workers.compile(lab, number, step, given)
    found: dict[int, Reply] = {}
    while len(found) < len(tasks):
        workers.sleep(None)
        found |= {answer.key: answer.reply for answer in workers.replies()}
    return [found[number] for number in range(len(tasks))]


def measure_all(workers: Workers, tasks: Mapping[int, tuple[Any, ...]]) -> Iterator[tuple[int, Reply]]:
    """Yield the replies to one measuring task of each lab, as they arrive, with the number of the lab."""
    waiting = dict(tasks)
    while waiting or workers.measuring:
        for lab in tuple(waiting):
            if workers.free(lab):
                workers.measure(lab, None, *waiting.pop(lab))
        workers.sleep(None)
        yield from ((answer.lab, answer.reply) for answer in workers.replies())


def invalidates_device(reply: Reply) -> bool:
    """Return whether the process must not measure again: after a device error every later call in it fails."""
    match reply:
        case TaskResult(Crashed() | TimedOut()) | TaskError() | Crashed() | TimedOut():
            return True
    return False
