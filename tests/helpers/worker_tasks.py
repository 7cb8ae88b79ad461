"""Tasks that a worker process may be given: to compute, to sleep, to crash, to hang."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from looptune.tune.execution.worker import Reply, Worker, wait
from looptune.tune.execution.worker_loop import excluded_from_limit


def setup(base: int = 0) -> Callable[..., Any]:
    return partial(act, base)


def act(base: int, what: str, *values: Any) -> Any:
    match what:
        case "add":
            return base + sum(values)
        case "pid":
            return os.getpid()
        case "kill":
            print("before the end", file=sys.stderr, flush=True)
            os.kill(os.getpid(), values[0])
        case "segfault":
            ctypes.string_at(0)
        case "exit":
            os._exit(3)
        case "raise":
            raise ValueError("no such thing")
        case "unpicklable":
            return lambda: None
        case "sleep":
            time.sleep(values[0])
        case "own":
            with excluded_from_limit():
                time.sleep(values[0])
            time.sleep(values[1])
        case "own until":
            # Another task makes the file ``values[0]``; what follows is with the device again.
            with excluded_from_limit():
                there = _appears(values[0])
            with values[1].open("a") as journal:
                journal.write("on again\n")
            return there
        case "meanwhile":
            values[0].touch()
            time.sleep(0.2)
            with values[1].open("a") as journal:
                journal.write("done\n")
        case "spin":
            # Native code that keeps the interpreter lock.
            ctypes.PyDLL(None).sleep(values[0])
        case "large":
            return bytes(values[0])
    return what


def _appears(path: Path) -> bool:
    """Wait for a file, 20 seconds at most, and tell whether it is there."""
    until = time.monotonic() + 20.0
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.01)
    return path.exists()


def broken_setup() -> Callable[..., Any]:
    raise RuntimeError("no device here")


def one(worker: Worker, *task: Any) -> Reply:
    worker.submit("key", *task)
    while not (replies := wait([worker])):
        pass
    ((who, key, reply),) = replies
    assert (who, key) == (worker, "key")
    return reply


def slow_setup(seconds: float) -> Callable[..., Any]:
    time.sleep(seconds)
    return setup()


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
