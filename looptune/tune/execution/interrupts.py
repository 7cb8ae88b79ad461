"""Interrupts that wait until the program has reached a consistent state.

    with defer_interrupts() as gate:
        …                       Ctrl-C is remembered
        gate.check()            KeyboardInterrupt, if there was one
        with gate.open(): …     Ctrl-C raises KeyboardInterrupt at once

A second Ctrl-C does not wait. Nothing is changed in other threads than the main one, which alone gets signals, or if
the program handles signals itself.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class InterruptGate:
    """A gate for Ctrl-C: interrupts are remembered, and raised only where the program opens the gate or checks it."""

    _open: bool = False
    _asked: bool = False

    def check(self) -> None:
        if self._asked:
            self._asked = False
            raise KeyboardInterrupt

    @contextmanager
    def open(self) -> Iterator[None]:
        """Raise an interrupt that was remembered, and until the context ends each later one at once."""
        self._open = True
        try:
            # Opened first: a signal after the check finds the gate open.
            self.check()
            yield
        finally:
            self._open = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self._open or self._asked:
            self._asked = False
            raise KeyboardInterrupt
        self._asked = True


@contextmanager
def defer_interrupts() -> Iterator[InterruptGate]:
    """Yield while interrupts are deferred: one that was remembered and not raised is raised at the end."""
    gate = InterruptGate()
    ours = threading.current_thread() is threading.main_thread()
    former = [n for n in SIGNALS if ours and signal.getsignal(n) is signal.default_int_handler]
    for number in former:
        signal.signal(number, gate.handle)
    try:
        yield gate
    finally:
        for number in former:
            signal.signal(number, signal.default_int_handler)
    gate.check()
