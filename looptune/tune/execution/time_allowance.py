"""Time limits that count the time in which a process runs or waits for a device, and not its waits for a core.

    used = max(CPU time of its busiest thread, time passed - time in which tasks of the machine waited for a core)

On an idle machine this is the time that passed. On a busy one, a kernel that gets a tenth of a core may take ten times
as long. A process that rests, all of whose threads and children sleep, does not wait for a core, so that the time that
passed counts. A process is stopped after PATIENCE times its limit in any case.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from looptune.runtime.device import cores
from looptune.runtime.disturbance import waited_for_cores_s

PATIENCE = 20.0
"""A task is stopped when this many times its limit have passed, even if it got no core for most of that time."""

RESTS = 5
"""A process that rests in this many successive checks does rest; between two steps any process may."""
LOOK_S = 0.05
"""A process that is past its limit by the clock but was not given that time is checked again after at least this."""

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Allowance:
    """The limit of ``limit_s`` seconds on what the process ``pid`` does from ``start`` on, by the monotonic clock.

    ``deadline``: when to check whether they are used up; ``waited_s``: seconds until ``start`` in which tasks of this
    machine waited for a core, None if the system does not count them; ``threads``: CPU seconds until then of each
    thread of the process; ``resting``: the number of successive checks in which the process rested.
    """

    limit_s: float
    pid: int
    start: float
    deadline: float
    waited_s: float | None
    threads: Mapping[int, float]
    resting: int = 0

    @classmethod
    def begin(cls, pid: int, limit_s: float) -> Allowance:
        now = time.monotonic()
        return cls(limit_s, pid, now, now + limit_s, waited_for_cores_s(), thread_seconds(pid))

    def expired(self) -> bool:
        """Return whether the limit is used up; if it is not, ``deadline`` becomes the time of the next check."""
        now = time.monotonic()
        if now < self.deadline:
            return False
        left_s = self.left_s()
        self.resting = self.resting + 1 if rests(self.pid) else 0
        if left_s <= 0.0 or self.resting >= RESTS:
            return True
        self.deadline = now + (LOOK_S if self.resting else max(LOOK_S, left_s))
        return False

    def extend(self, seconds: float) -> None:
        """Extend the limit by seconds in which the whole machine did not run."""
        self.start += seconds
        self.deadline += seconds

    def left_s(self) -> float:
        """Return the seconds that are left of the limit; 0 or less if it is used up."""
        passed = time.monotonic() - self.start
        if passed >= PATIENCE * self.limit_s or passed < self.limit_s:
            return self.limit_s - passed
        busiest = max((s - self.threads.get(t, 0.0) for t, s in thread_seconds(self.pid).items()), default=passed)
        return self.limit_s - max(busiest, passed - self._waited_s(passed))

    def _waited_s(self, passed: float) -> float:
        now = waited_for_cores_s()
        if now is not None and self.waited_s is not None:
            return now - self.waited_s
        load = os.getloadavg()[0]
        return passed * max(0.0, 1.0 - cores() / load) if load > 0 else 0.0


def rests(pid: int) -> bool:
    """Return whether every thread of a process and of its children sleeps; False if the system does not tell."""
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            if Path(f"/proc/{pid}/task/{task}/stat").read_text().rpartition(")")[2].split()[0] != "S":
                return False
            children = Path(f"/proc/{pid}/task/{task}/children").read_text().split()
            if not all(rests(int(child)) for child in children):
                return False
    except (OSError, ValueError, IndexError):
        return False
    return True


def thread_seconds(pid: int) -> dict[int, float]:
    """Return the CPU seconds of each thread of a process, in user and system mode.

    It is empty if the process is gone or the system does not tell.
    """
    found = {}
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            # The name stands in parentheses and may hold anything; utime and stime are the 12th and 13th after it.
            fields = Path(f"/proc/{pid}/task/{task}/stat").read_text().rpartition(")")[2].split()
            found[int(task)] = (int(fields[11]) + int(fields[12])) / _TICKS
    except (OSError, ValueError, IndexError):
        return found
    return found
