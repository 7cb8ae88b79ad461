"""The main loop of a worker's process: set up, run tasks, drop the set-up, until the coordinator has ended."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import forkserver, parent_process
from multiprocessing.connection import Connection
from typing import Any

from looptune.core import recursion
from looptune.core.errors import TargetError

READY = "ready"
BROKEN = "broken"
OWN_WORK = "own work"
RESUMED = "resumed"
LET_GO = b""
"""The message, in place of a task, after which another set-up follows."""
GO_ON = b"go on"
"""The answer to RESUMED: the device is the task's again."""
GARBAGE = 100_000
"""The number of new objects before Python's garbage collector runs."""

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class PickledValue:
    """A pickled value on its way from worker to worker; the coordinator passes it on without unpickling it."""

    contents: bytes

    def load(self) -> Any:
        return pickle.loads(self.contents)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The value of a task; ``seconds``: the time that it took in the worker."""

    value: Any
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class TaskError:
    """An exception inside the task. ``message`` is its last line, ``trace`` all of it."""

    message: str
    trace: str


def pickle_value(value: Any) -> PickledValue:
    """Return the value as an argument for another task, whose worker unpickles it."""
    return PickledValue(pickle.dumps(value))


_links: list[Connection] = []
"""The pipe to the coordinator, if this process is a worker's."""
_under_way: list[bytes] = []
"""The task of this process, if it has one."""


@contextlib.contextmanager
def excluded_from_limit() -> Iterator[None]:
    """Yield while the time limit of a task is suspended, and its device may serve other kernels.

    The limit starts again afterwards, when the device is free.
    """
    for link in _links:
        link.send((OWN_WORK, ""))
    yield
    for link in _links:
        link.send((RESUMED, ""))
        if _under_way:  # a process that sets up has no device yet
            answer = link.recv_bytes()
            assert answer == GO_ON, "a process that waits for its device gets no task"


def serve(link: Connection, setup: Callable[[], Callable[..., Any]], log: str) -> None:
    """Run the main loop of a worker; the output of it and its libraries goes to the file ``log``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    recursion.raise_recursion_limit()
    _die_with_parent()
    _redirect(log)
    faulthandler.enable(all_threads=False)
    _links.append(link)
    # If the pipe has ended, the coordinator is gone.
    with contextlib.suppress(EOFError, OSError):
        while _served(link, setup):
            # Arrays on a device are often held in a circle with the programs that use them.
            gc.unfreeze()
            gc.collect()
            given = link.recv_bytes()
            os.ftruncate(2, 0)
            setup = pickle.loads(given)


def _served(link: Connection, setup: Callable[[], Callable[..., Any]]) -> bool:
    """Set up and run all tasks of the set-up; return whether another set-up may follow in this process."""
    try:
        run = setup()
    except TargetError as error:
        link.send((BROKEN, error.message))
        return False
    except Exception as error:
        link.send((BROKEN, _raised(error).message))
        return False
    # What is set up stays; what a task leaves behind is looked for seldom, for a compiler makes much and keeps little.
    gc.freeze()
    gc.set_threshold(GARBAGE)
    link.send((READY, ""))
    while (task := link.recv_bytes()) != LET_GO:
        # The last lines kept for a crash are then those of the task that crashed.
        os.ftruncate(2, 0)
        link.send_bytes(_answer(run, task))
    return True


def _answer(run: Callable[..., Any], task: bytes) -> bytes:
    """Return the pickled reply.

    This is the measuring boundary: whatever a task raises is kept, and the process lives on.
    """
    start = time.monotonic()
    _under_way.append(task)
    try:
        value = run(*(v.load() if isinstance(v, PickledValue) else v for v in pickle.loads(task)))
        return pickle.dumps(TaskResult(value, time.monotonic() - start))
    except Exception as error:
        return pickle.dumps(_raised(error))
    finally:
        _under_way.clear()


def _raised(error: Exception) -> TaskError:
    message = "".join(traceback.format_exception_only(error)).strip()
    return TaskError(message, "".join(traceback.format_exception(error)))


def _redirect(log: str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    # The coordinator holds the file open; without a name it cannot be left behind.
    os.unlink(log)


def _die_with_parent() -> None:
    # The process of which this one may be a copy is its parent, and lives as long as one of its copies says that it is
    # needed: without that, it ends with the coordinator.
    server = getattr(forkserver, "_forkserver", None)
    needed = getattr(server, "_forkserver_alive_fd", None)
    if server is not None and needed is not None:
        os.close(needed)
        server._forkserver_alive_fd = None
    # Two ways, for neither covers all: the signal reaches a process whose interpreter is stuck in native code, the
    # thread works on every system, and where the parent was gone before the signal was asked for.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_exit_after_parent, daemon=True).start()


def _exit_after_parent() -> None:
    parent = parent_process()
    assert parent is not None, "a worker is spawned"
    parent.join()
    os._exit(1)
