"""Run a plan so that it can be stopped between two launches, and record its progress at checkpoints.

    on a GPU   1, 2, 4, … launches ──▶ as many as take an eighth of the limit, repeatedly, ending at each checkpoint
    on a CPU   the driver counts its launches and tests whether to go on; another thread watches the count

After each batch the host waits for the device, so there are few batches.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from looptune.backends.base import PartialRun, Progress, TimeLimit

if TYPE_CHECKING:
    from looptune.lower.checkpoints import Checkpoints

LOOKS = 8
"""So often it is looked at, about, until the limit is reached."""
WATCH_S = 1e-3
"""How often the thread looks: a hundredth of a core, and a fifth of the shortest time that is compared."""

Batch = Callable[[int], tuple[int, float, float]]
"""Makes at most so many launches: how many it made, and the microseconds they took, at least and at most."""


def run_in_batches(
    batch: Batch, limit: TimeLimit, launches: int | None, course: Checkpoints | None = None
) -> PartialRun:
    """Run the launches of a plan in batches until they are complete or a limit is exceeded.

    ``launches``: their number, None if data decide on it.
    """
    loop, marks = ("", ()) if course is None else (course.loop, course.after)
    done, us, most_us, size = 0, 0.0, 0.0, 1
    by: list[float] = []
    while launches is None or done < launches:
        ahead = next((mark for mark in marks if mark > done), launches)
        wanted = size if ahead is None else min(size, ahead - done)
        made, least, most = batch(wanted)
        done, us, most_us = done + made, us + least, most_us + most
        if launches is None and made < wanted:
            return PartialRun(us, done, done)
        assert made == wanted, "a plan makes the launches that were counted"
        allowed_us = limit.by(loop, len(by))
        by += [most_us] * (sum(mark <= done for mark in marks) - len(by))
        if us > allowed_us:
            break
        # Later launches of a triangular nest take longer than the average of all so far.
        each_us = max(us / done, least / made if made else 0.0)
        size = min(2 * size, _batch(limit.by(loop, len(by)), each_us))
    of = done + 1 if launches is None else launches
    return PartialRun(us, done, of, None if course is None else Progress(loop, tuple(by)))


def _batch(limit_us: float, each_us: float) -> int:
    """Return launches that take an eighth of the limit."""
    return max(1, int(min(limit_us / LOOKS / each_us, 2.0**31))) if each_us > 0 else 2**31


def run_watched(
    call: Callable[[np.ndarray], None], limit: TimeLimit, launches: int | None, course: Checkpoints | None
) -> PartialRun:
    """Run a plan on a CPU, and stop it when the limit is reached.

    ``call(told)`` runs the plan: it counts its launches in ``told[1]`` and returns early once ``told[0]`` is set.
    ``launches``: their number, None if data decide on it: a run that was told to stop is then one that was stopped.
    """
    told, ended = np.zeros(2, np.int64), threading.Event()
    loop, marks = ("", ()) if course is None else (course.loop, course.after)
    by: list[float] = []
    start = time.perf_counter_ns()

    def elapsed_us() -> float:
        return (time.perf_counter_ns() - start) / 1e3

    def pause_s() -> float | None:
        """As long as a mark is ahead it has to be looked for; then there is only an end to wait for."""
        if len(by) < len(marks):
            return WATCH_S
        return None if math.isinf(limit.us) else max(0.0, (limit.us - elapsed_us()) / 1e6)

    def watch() -> None:
        while not ended.wait(pause_s()):
            # The time first: a mark that is not reached after it was not reached before.
            us = elapsed_us()
            by.extend([us] * (sum(mark <= told[1] for mark in marks) - len(by)))
            if us > limit.by(loop, len(by)):
                told[0] = 1
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        call(told)
        us = elapsed_us()
    finally:
        ended.set()
        watcher.join()
    by.extend([us] * (sum(mark <= told[1] for mark in marks) - len(by)))
    # The thread may have looked once more after the end.
    pace = None if course is None else Progress(loop, tuple(min(mark_us, us) for mark_us in by))
    made = int(told[1])
    return PartialRun(us, made, made + int(told[0]) if launches is None else launches, pace)
