"""Launches that may run at the same time, in a CUDA graph that is being captured.

launch(a) · launch(b)                          b waits for a
start · launch(a) · wait(end)                  a and b begin together, and what follows waits for both
  other stream: wait(start) · launch(b) · end
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cuda.bindings import driver

from looptune.backends.cuda.driver import check

NON_BLOCKING, WITHOUT_TIMES = 1, 2


class Fork:
    """A second stream beside one that is being captured; it records what waits for what, and runs nothing."""

    def __init__(self) -> None:
        self.side = check(driver.cuStreamCreate(NON_BLOCKING))
        self.events = [check(driver.cuEventCreate(WITHOUT_TIMES)) for _ in range(2)]

    def run(self, stream: Any, work: Sequence[Callable[[Any], None]]) -> None:
        """Put the first of ``work`` on the stream, and the others, where there are any, beside it.

        What comes next on the stream waits for all of it.
        """
        first, *others = work
        start, end = self.events
        if others:
            check(driver.cuEventRecord(start, stream))
        first(stream)
        if others:
            check(driver.cuStreamWaitEvent(self.side, start, 0))
            for other in others:
                other(self.side)
            check(driver.cuEventRecord(end, self.side))
            check(driver.cuStreamWaitEvent(stream, end, 0))

    def __del__(self) -> None:
        if driver is not None and hasattr(self, "events"):
            driver.cuStreamDestroy(self.side)
            for event in self.events:
                driver.cuEventDestroy(event)
