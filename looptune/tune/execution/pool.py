"""A pool of workers with a backlog: the order in which workers run tasks.

    urgent        first, by any idle worker
    of a group    before the usual ones, by a worker that has had a task of the group and remembers what it computed;
                  if there is no such worker, by any idle one
    usual         by any idle worker, those with the least ``order`` first
    of a group    by one of the first workers for it, of which a large pool has several
    of a group    by a worker that is new to it, if its tasks would wait longer than that worker's first one takes
    LAST          by an idle worker, of which some are left to tasks that are still to come

A group is the versions of one kernel: judging the first one needs the dependences, which take seconds, and each further
one takes milliseconds.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from looptune.runtime.device import cores
from looptune.tune.execution.lab import FIRST, LAST, Order
from looptune.tune.execution.worker import Reply, Worker
from looptune.tune.execution.worker_loop import TaskResult

if TYPE_CHECKING:
    from looptune.tune.execution.process import ProcessCache, Setup

URGENT, USUAL = range(2)
FOUNDING = 4
"""Of so many workers one judges the versions of a kernel from its beginning, before it is known how long that takes."""

_Waiting = tuple[Any, Hashable | None]
"""A task and its group."""


@dataclass(slots=True)
class _Group:
    """``members``: the workers that have had a task of the group, and whether the first is done.

    ``first_s``: seconds of a member's first task; ``more_s``: seconds of the ``more`` tasks that followed, together.
    """

    waiting: deque[_Waiting] = field(default_factory=deque)
    members: dict[int, bool] = field(default_factory=dict)
    first_s: float = math.inf
    more_s: float = 0.0
    more: int = 0

    @property
    def each_waits_s(self) -> float:
        return len(self.waiting) * self.more_s / max(1, self.more) / max(1, len(self.members))


class Backlog:
    """The tasks that wait, each kind in the order in which they came; workers are denoted by numbers.

    ``founders``: so many workers may begin with a group before the first task of one is done.
    """

    def __init__(self, founders: int = 1) -> None:
        self._founders = founders
        self._urgent: deque[_Waiting] = deque()
        self._usual: list[tuple[Order, int, _Waiting]] = []
        self._last: deque[_Waiting] = deque()
        self._added = 0
        self._groups: dict[Hashable, _Group] = {}

    def __bool__(self) -> bool:
        return len(self) > 0

    def __len__(self) -> int:
        return (
            len(self._urgent) + len(self._usual) + len(self._last) + sum(len(g.waiting) for g in self._groups.values())
        )

    def add(self, task: Any, rank: int = USUAL, group: Hashable | None = None, order: Order = FIRST) -> None:
        waiting = (task, group)
        if group is not None:
            self._groups.setdefault(group, _Group()).waiting.append(waiting)
        elif rank == URGENT:
            self._urgent.append(waiting)
        elif order == LAST:
            self._last.append(waiting)
        else:
            self._added += 1
            heapq.heappush(self._usual, (order, self._added, waiting))

    def take(self, worker: int, *, last: bool = True) -> _Waiting | None:
        """Return a task for an idle worker and its group, or None if there is none for it.

        ``last``: it may be one of those that come after all others.
        """
        own = [g for g in self._groups.values() if g.waiting and worker in g.members]
        if self._urgent:
            return self._urgent.popleft()
        if own:
            return max(own, key=lambda g: len(g.waiting)).waiting.popleft()
        waiting = [g for g in self._groups.values() if g.waiting]
        unknown = next((g for g in waiting if not g.members), None)
        if self._usual and unknown is None:
            return heapq.heappop(self._usual)[2]
        few = next((g for g in waiting if len(g.members) < self._founders), None)
        late = (g for g in waiting if g.each_waits_s > g.first_s)
        joined = unknown or few or max(late, key=lambda g: g.each_waits_s, default=None)
        if joined is None:
            return self._last.popleft() if last and self._last else None
        joined.members[worker] = False
        return joined.waiting.popleft()

    def withdraw(self, key: Any) -> int:
        """Drop the usual tasks ``(key, ...)``, and return how many there were."""
        left = [item for item in self._usual if item[2][0][0] != key]
        dropped = len(self._usual) - len(left)
        self._usual = left
        heapq.heapify(self._usual)
        return dropped

    def record_time(self, worker: int, group: Hashable, seconds: float) -> None:
        """Record the seconds that a worker spent on a task of the group."""
        known = self._groups[group]
        if known.members[worker]:
            known.more_s, known.more = known.more_s + seconds, known.more + 1
        else:
            known.members[worker], known.first_s = True, min(seconds, known.first_s)

    def clear(self) -> None:
        self._usual.clear()
        for queue in (self._urgent, self._last, *(g.waiting for g in self._groups.values())):
            queue.clear()


class Pool:
    """A pool of ``size`` workers with one backlog.

    At most ``limit`` of them get tasks at the same time; it may be changed at any time.
    """

    def __init__(self, setup: Setup, size: int, limit_s: float, spares: ProcessCache | None = None) -> None:
        self.workers = tuple(Worker(setup, limit_s, spares=spares) for _ in range(size))
        self.limit = size
        self._backlog = Backlog(max(1, size // FOUNDING))
        self._groups: dict[int, Hashable] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def load(self) -> int:
        """Return the number of submitted tasks without a reply."""
        return len(self._backlog) + sum(not worker.idle for worker in self.workers)

    def submit(
        self, key: Any, *task: Any, rank: int = USUAL, group: Hashable | None = None, order: Order = FIRST
    ) -> None:
        self._backlog.add((key, task), rank, group, order)
        self.dispatch()

    def withdraw(self, key: Any) -> int:
        """Drop what is usual, of no group and not begun of the tasks of a key, and return how many tasks that is."""
        return self._backlog.withdraw(key)

    def dispatch(self) -> None:
        """Give tasks to idle workers; call it after each wait."""
        busy = sum(not worker.idle for worker in self.workers)
        left = max(1, len(self.workers) // FOUNDING)
        # Workers are taken in order, so that a short queue starts few processes.
        for number, worker in enumerate(self.workers):
            if busy >= self.limit:
                return
            if not worker.idle or not self._backlog:
                continue
            taken = self._backlog.take(number, last=busy + left < self.limit)
            if taken is None:
                # It may join a group when the first task of the group is done.
                worker.start()
                continue
            (key, task), group = taken
            if group is not None:
                self._groups[number] = group
            worker.submit(key, *task)
            busy += 1

    def collect(self, worker: Worker) -> tuple[Any, Reply] | None:
        """Return what the worker's own method returns, and record how long a task of a group took."""
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


def default_jobs() -> int:
    """Return the number of processes that compile by default: one core is left for what is measured."""
    return max(1, cores() - 1)
