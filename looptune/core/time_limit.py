"""Time limits: for what runs as Python, and for calls into libraries that cannot be interrupted."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

_T = TypeVar("_T")


class OutOfTime(Exception):
    """The seconds of ``time_limit`` are over."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise OutOfTime after so many seconds, as soon as Python runs again; in other threads nothing is limited."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def call_within(seconds: float, call: Callable[[], _T]) -> _T | None:
    """Return the result of ``call`` from a copy of this process, or None if it does not end in time.

    The copy is ended by its alarm clock, also inside a library. What it changes stays there, and its result has to be
    picklable. What it raises is raised here. None, too, if it crashes. Where processes cannot be copied, the call is
    made here, without a limit.

    >>> call_within(10, lambda: 6 * 7)
    42
    """
    if not hasattr(os, "fork"):
        return call()
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(seconds, call, sending)
    os.close(sending)
    with os.fdopen(receiving, "rb") as answer:
        sent = answer.read()
    os.waitpid(child, 0)
    if not sent:
        return None
    result: _T
    result, error = pickle.loads(sent)
    if error is not None:
        raise error
    return result


def _answer(seconds: float, call: Callable[[], _T], sending: int) -> None:
    """Send the result and end this process, which is the copy."""
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            sent = pickle.dumps((call(), None))
        except Exception as error:
            sent = pickle.dumps((None, error))
        with os.fdopen(sending, "wb") as answer:
            answer.write(sent)
    finally:
        os._exit(0)
