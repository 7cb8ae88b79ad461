"""Launches that may run at the same time, in a CUDA graph that is being captured: of sweeps and of built modules.

launch(a) · launch(b)                          b waits for a
start · launch(a) · wait(end)                  a and b begin together, and what follows waits for both
  other stream: wait(start) · launch(b) · end

``looptune build`` copies this file into its modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cuda.bindings import driver

from looptune.backends.cuda.driver import SUCCESS, check

NON_BLOCKING, WITHOUT_TIMES = 1, 2
CAPTURED = 1
"""CU_STREAM_CAPTURE_STATUS_ACTIVE."""


class Fork:
    """A second stream beside one that is being captured; it records what waits for what, and runs nothing.

    It belongs to one capture at a time, until that ends, and to one context.
    """

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.side = check(driver.cuStreamCreate(NON_BLOCKING))
        for _ in range(2):
            self.events.append(check(driver.cuEventCreate(WITHOUT_TIMES)))

    def serves(self, stream: Any) -> bool:
        """Return whether ``stream`` is captured, while the second one is not a part of another capture."""
        capture = _capture(stream)
        return capture is not None and _capture(self.side) in (None, capture)

    def run(self, stream: Any, work: Sequence[Callable[[Any], None]]) -> None:
        """Put the first of ``work`` on the stream, and the others, where there are any, beside it.

        What comes next on the stream waits for all of it, also where some of it fails: a capture whose streams are not
        joined could not be ended.
        """
        first, *others = work
        start, end = self.events
        if not others:
            first(stream)
            return
        check(driver.cuEventRecord(start, stream))
        first(stream)
        check(driver.cuStreamWaitEvent(self.side, start, 0))
        try:
            for other in others:
                other(self.side)
        except BaseException:
            if driver.cuEventRecord(end, self.side)[0] == SUCCESS:
                driver.cuStreamWaitEvent(stream, end, 0)
            raise
        check(driver.cuEventRecord(end, self.side))
        check(driver.cuStreamWaitEvent(stream, end, 0))

    def __del__(self) -> None:
        if driver is not None and hasattr(self, "side"):
            # A stream that is a part of a capture of the caller's stays: to destroy it would end that.
            error, status = driver.cuStreamIsCapturing(self.side)
            if error == SUCCESS and int(status) == 0:
                driver.cuStreamDestroy(self.side)
            for event in self.events:
                driver.cuEventDestroy(event)


def _capture(stream: Any) -> int | None:
    """Return the number of the capture that a stream is a part of, or None."""
    status, number, *_ = check(driver.cuStreamGetCaptureInfo(stream))
    return int(number) if int(status) == CAPTURED else None
