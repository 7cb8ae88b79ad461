"""Where a sweep's tasks run, as the coordinator sees it: processes here (local.py) or a cluster (distributed.py).

    coordinator ── compile(lab, key, step, given) ─▶ queued, for any compiling process
                ── measure(lab, key, built, best) ─▶ a free device of that lab's model
                ◀─ replies() ─ Answer(lab, key, reply, measured)

``lab`` is a number: a sweep of several models of device has a laboratory for each, and one executor for all. Every task
gets one reply, whatever happens to its process. One thread calls; ``sleep`` alone may be interrupted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from looptune.runtime.outcome import Crashed, TimedOut
from looptune.tune.execution.lab import VersionBuilder
from looptune.tune.execution.worker_loop import TaskError, TaskResult
from looptune.tune.execution.workers import Reply

if TYPE_CHECKING:
    from looptune.tune.execution.process import Setup
    from looptune.tune.incumbent import Incumbent

NICE = 10
"""Of compiling processes; 0 is usual, 19 the least that a system gives."""


@dataclass(frozen=True, slots=True)
class TaskReply:
    """The reply to one task of a lab: ``key`` identifies the task, ``measured`` says whether it ran on a device."""

    lab: int
    key: Any
    reply: Reply
    measured: bool


class Executor(Protocol):
    """TargetError from ``replies`` where a worker cannot even start; what was said before it is answered first."""

    @property
    def compilers(self) -> int:
        """Tasks that are compiled at once."""

    @property
    def compiling(self) -> int:
        """Return the number of compiling tasks of all labs without a reply."""

    @property
    def measuring(self) -> int:
        """Return the number of measurements of all labs without a reply."""

    def load(self, lab: int) -> int:
        """Compiling tasks of one lab that are not replied to."""

    def devices(self, lab: int) -> int:
        """Return how many versions of this lab are measured at once."""

    def free(self, lab: int) -> bool:
        """Return whether a device of this lab is idle."""

    def compile(self, lab: int, key: Any, step: str, given: Any, urgent: bool = False) -> None:
        """Queue a task of the lab's ``compile_setup``.

        An urgent one before all others, and a "build" before a "prepare".
        """

    def warm(self, lab: int, count: int) -> None:
        """Begin to set up so many devices: that many versions will come."""

    def measure(self, lab: int, key: Any, built: Any, best: Incumbent | None) -> None:
        """Hand a version to a free device."""

    def sleep(self, timeout_s: float | None) -> None:
        """Until there may be a reply, at most ``timeout_s``. It takes nothing: an exception in it loses nothing."""

    def replies(self) -> Sequence[TaskReply]:
        """Return the replies that have arrived, after handing on queued tasks."""


Opening = Callable[[Sequence[VersionBuilder]], AbstractContextManager[Executor]]
"""Makes the executor of a sweep's laboratories; leaving it stops whatever runs."""


def compilers(setups: Sequence[Setup]) -> Callable[..., Any]:
    """Return the set-up of a process that compiles for several labs. Measuring processes get cores first."""
    os.setpriority(os.PRIO_PROCESS, 0, NICE)
    works = [setup() for setup in setups]

    def work(lab: int, step: str, given: Any) -> Any:
        return works[lab](step, given)

    return work


def invalidates_device(reply: Reply) -> bool:
    """After a device error every later call in the same process fails: it must not measure again."""
    match reply:
        case TaskResult(Crashed() | TimedOut()) | TaskError() | Crashed() | TimedOut():
            return True
    return False
