"""A process that serves one set-up after the other: how it is started, set up again and ended, and how it died.

    spawn(setup) ─▶ ready ── run ─▶ reply ── run ─▶ reply … ── begin(setup) ─▶ ready …

    a worker is closed ── keep(kind) ──▶ ProcessCache ── take(kind) ──▶ a worker of the next kernel, or of the finals

A process needs seconds before its first task, for its imports and a context on its device; the cache therefore keeps
idle processes for the next kernel. Processes of one ``kind`` may replace each other: those that compile, or those that
measure on one device. A process keeps its set-up until another one is requested.

A process is a new interpreter, or a copy of one that has already imported what all need (``preload``): that takes
milliseconds. What is copied has used no device and has no threads of its own.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import connection, forkserver, get_context, resource_tracker
from multiprocessing.context import ForkServerProcess, SpawnProcess
from pathlib import Path
from typing import Any, Self

from looptune.core import cache_folder
from looptune.tune.execution.time_allowance import Allowance
from looptune.tune.execution.worker_loop import GO_ON, LET_GO, serve

Setup = Callable[[], Callable[..., Any]]

COMPILING = "compiling"
"""The kind of processes that use no device."""
_LAST_LINES = 24
_LAST_BYTES = 8192


@dataclass(slots=True)
class WorkerProcess:
    """One process from spawn to death. ``log`` has what it wrote on stdout and stderr in its last task or set-up.

    ``setup``: its set-up, pickled; ``allowance``: the time until its next message; ``ready``: it is set up; ``used``:
    it has had another set-up before; ``superseded``: set-ups under way of which its message is still to come.
    """

    process: SpawnProcess | ForkServerProcess
    link: connection.Connection
    log: int
    log_path: Path
    setup: bytes
    allowance: Allowance
    ready: bool = False
    used: bool = False
    superseded: int = 0

    def allow(self, limit_s: float) -> None:
        """Allow ``limit_s`` seconds, from now, for its next message."""
        self.allowance = Allowance.begin(self.allowance.pid, limit_s)

    def begin(self, setup: Setup, limit_s: float) -> None:
        """Drop the set-up with all it holds, such as memory on a device, and set up anew, unless both are equal."""
        self.allow(limit_s)
        pickled = pickle.dumps(setup)
        if pickled != self.setup:
            self.superseded += not self.ready
            self.setup, self.ready, self.used = pickled, False, True
            self._send(LET_GO)
            self._send(pickled)

    def run(self, task: bytes) -> None:
        """Run a pickled task on what is set up."""
        self._send(task)

    def go_on(self) -> None:
        """Answer a process that has done work of its own."""
        self._send(GO_ON)

    def end(self) -> None:
        """Kill the process, and with it whatever it runs."""
        self.link.close()
        self.process.kill()
        self.process.join()
        self.process.close()
        os.close(self.log)
        self.log_path.unlink(missing_ok=True)

    def exit_report(self) -> str:
        """Return how a joined process ended, such as ``SIGSEGV`` or ``exit code 3``, and the last lines of its log."""
        code = self.process.exitcode
        assert code is not None, "the process was waited for"
        size = os.fstat(self.log).st_size
        written = os.pread(self.log, _LAST_BYTES, max(0, size - _LAST_BYTES)).decode(errors="replace")
        lines: Sequence[str] = [line for line in written.splitlines() if line.strip()][-_LAST_LINES:]
        return "\n".join((_signal(-code) if code < 0 else f"exit code {code}", *lines))

    def _send(self, message: bytes) -> None:
        # A process that died since it was last heard of shows as the end of its pipe when its reply is read.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.link.send_bytes(message)


def preload(modules: Sequence[str]) -> None:
    """Start the process of which others are copies, and let it import these modules; return at once.

    What cannot be imported is left out. The copies have the environment of this moment.
    """
    _set_environment()
    get_context("forkserver").set_forkserver_preload(list(modules))
    forkserver.ensure_running()


def _set_environment() -> None:
    # Else its threads keep their cores for a tenth of a second after each product, which others are timed in.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "10")


def spawn(setup: Setup, limit_s: float, *, copied: bool = False) -> WorkerProcess:
    """Return a new process that is set up by ``setup``, in ``limit_s`` seconds.

    ``copied``: it is a copy of the process that ``preload`` has started.
    """
    _set_environment()
    context = get_context("forkserver") if copied else get_context("spawn")
    ours, theirs = context.Pipe()
    log, path = tempfile.mkstemp(prefix=f"{cache_folder.process_prefix()}worker-")
    process = context.Process(target=serve, args=(theirs, setup, path), daemon=True)
    resource_tracker.ensure_running()  # its own start, else within the worker's, lets SIGINT through again
    # The mask is inherited: a Ctrl-C while the interpreter starts is no traceback of the worker's.
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)
        theirs.close()
    assert process.pid is not None, "the process was started"
    return WorkerProcess(process, ours, log, Path(path), pickle.dumps(setup), Allowance.begin(process.pid, limit_s))


class ProcessCache:
    """Idle processes by kind, which the next set-up of that kind reuses.

    ``copied``: new processes are copies of a preloaded one.
    """

    def __init__(self, *, copied: bool = False) -> None:
        self.copied = copied
        self._idle: dict[str, list[WorkerProcess]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def take(self, kind: str, setup: bytes = b"") -> WorkerProcess | None:
        """Return an idle process that is alive, if possible with this set-up; it belongs to the caller."""
        idle = self._idle.get(kind, [])
        idle.sort(key=lambda life: life.setup == setup)
        while idle:
            life = idle.pop()
            if life.process.is_alive():
                return life
            life.end()
        return None

    def start(self, kind: str, count: int, setup: Setup, limit_s: float) -> None:
        """Start processes until there are ``count`` idle ones of the kind; the imports of ``setup`` take seconds."""
        for _ in range(count - len(self._idle.get(kind, []))):
            self.keep(kind, spawn(setup, limit_s, copied=self.copied))

    def keep(self, kind: str, life: WorkerProcess) -> None:
        """Keep a process without a task; it belongs to the cache from now on."""
        self._idle.setdefault(kind, []).append(life)

    def close(self) -> None:
        """End all processes. More may be kept afterwards."""
        kept, self._idle = self._idle, {}
        for life in (life for idle in kept.values() for life in idle):
            life.end()


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
