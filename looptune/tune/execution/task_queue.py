"""What a pool of processes has still to do, and which of them does what.

    urgent        first, by whoever is idle
    of a group    before the usual, by those who have had one of the group: they remember what they found out for it;
                  where nobody has, by whoever is idle
    usual         by whoever is idle
    of a group    by others where they wait longer than a newcomer needs to find out

To judge the first version of a kernel takes its dependences, seconds; each further one milliseconds.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

URGENT, USUAL = range(2)

_Waiting = tuple[Any, Hashable | None]
"""A task and its group."""


@dataclass(slots=True)
class _Group:
    """``members``: who has had one, and whether it is done.

    ``first_s``: what the first one took a member; ``more_s``: what the ``more`` that followed took together.
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
    """Tasks in the order in which they came, for workers by their numbers."""

    def __init__(self) -> None:
        self._queues: tuple[deque[_Waiting], deque[_Waiting]] = (deque(), deque())
        self._groups: dict[Hashable, _Group] = {}

    def __bool__(self) -> bool:
        return any(self._queues) or any(g.waiting for g in self._groups.values())

    def __len__(self) -> int:
        return sum(map(len, self._queues)) + sum(len(g.waiting) for g in self._groups.values())

    def add(self, task: Any, rank: int = USUAL, group: Hashable | None = None) -> None:
        queue = self._queues[rank] if group is None else self._groups.setdefault(group, _Group()).waiting
        queue.append((task, group))

    def take(self, worker: int) -> _Waiting | None:
        """Return a task for an idle worker and its group, or None if there is none for it."""
        urgent, usual = self._queues
        own = [g for g in self._groups.values() if g.waiting and worker in g.members]
        if urgent:
            return urgent.popleft()
        if own:
            return max(own, key=lambda g: len(g.waiting)).waiting.popleft()
        waiting = [g for g in self._groups.values() if g.waiting]
        unknown = next((g for g in waiting if not g.members), None)
        if usual and unknown is None:
            return usual.popleft()
        late = (g for g in waiting if g.each_waits_s > g.first_s)
        joined = unknown or max(late, key=lambda g: g.each_waits_s, default=None)
        if joined is None:
            return None
        joined.members[worker] = False
        return joined.waiting.popleft()

    def record_time(self, worker: int, group: Hashable, seconds: float) -> None:
        """Record the seconds that a worker spent on a task of the group."""
        known = self._groups[group]
        if known.members[worker]:
            known.more_s, known.more = known.more_s + seconds, known.more + 1
        else:
            known.members[worker], known.first_s = True, min(seconds, known.first_s)

    def clear(self) -> None:
        for queue in (*self._queues, *(g.waiting for g in self._groups.values())):
            queue.clear()
