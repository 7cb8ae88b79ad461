"""Batches in processes that are forked from this one, which has imported everything; what kills one names its case."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.differential.batch import LIMIT_S, Batch
from tests.differential.cases import Case
from tests.differential.outcomes import Failure, Report

Of = Callable[[int], Sequence[str]]
INTERPRETED = "interpreter"
"""A loop over all values of a short, legal and useless, takes it minutes. ``transform`` runs the same tree compiled,
which shows whether it ends."""


@dataclass(frozen=True, slots=True)
class Work:
    """Cases for one process; ``given``: with the directives they have, else with random ones."""

    seed: int
    cases: tuple[Case, ...]
    of: Of
    skip: frozenset[tuple[int, str]] = frozenset()
    given: bool = False
    limit_s: int = LIMIT_S


@dataclass(slots=True)
class _Child:
    work: Work
    folder: Path


def run(works: Iterator[Work], processes: int) -> Iterator[Report]:
    """What comes of each, as they end."""
    sys.stdout.flush()
    children: dict[int, _Child] = {}
    waiting: list[Work] = []
    try:
        while True:
            while len(children) < processes:
                work = waiting.pop() if waiting else next(works, None)
                if work is None:
                    break
                pid, child = _start(work)
                children[pid] = child
            if not children:
                return
            pid, status = os.waitpid(-1, 0)
            if pid not in children:
                continue
            child = children.pop(pid)
            done = child.folder / "report"
            if status == 0 and done.exists():
                yield pickle.loads(done.read_bytes())
            else:
                report, again = _died(child, status)
                waiting += again
                yield report
            shutil.rmtree(child.folder, ignore_errors=True)
    finally:
        for pid, child in children.items():
            with suppress(ProcessLookupError, ChildProcessError):  # one that has ended has been waited for
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            shutil.rmtree(child.folder, ignore_errors=True)


def _start(work: Work) -> tuple[int, _Child]:
    folder = Path(tempfile.mkdtemp(prefix="differential-"))
    pid = os.fork()
    if pid:
        return pid, _Child(work, folder)
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 2)
        os.dup2(said, 1)
        at = folder / "at"

        def announce(index: int, target: str) -> None:
            at.write_text(f"{index} {target}")

        batch = Batch(work.seed, work.cases, work.of, folder, announce, work.skip, work.given, work.limit_s)
        (folder / "report.part").write_bytes(pickle.dumps(batch.run()))
        (folder / "report.part").rename(folder / "report")
        status = 0
    except BaseException:
        traceback.print_exc(limit=-6)
    finally:
        os._exit(status)


def _died(child: _Child, status: int) -> tuple[Report, list[Work]]:
    """What the process was at when it died is a failure, and the rest is done again without it."""
    work = child.work
    at = child.folder / "at"
    index, _, target = at.read_text().partition(" ") if at.exists() else ("-1", "", "start")
    said = (child.folder / "said").read_text(errors="replace")[-2000:] if (child.folder / "said").exists() else ""
    number = int(index)
    report = Report()
    hung = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM)
    if number < 0:
        report.failures.append(Failure(-1, target, "crash", f"status {status}\n{said}"))
        return report, []
    if hung and work.limit_s == LIMIT_S:
        report.counts[f"tried again alone, as it took long: {target}"] += 1
        alone = tuple(c for c in work.cases if c.index == number)
        again = [Work(work.seed, alone, lambda _: (target,), work.skip, work.given, 5 * LIMIT_S)]
    else:
        kind = "hang" if hung else "crash"
        what = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {status}"
        if hung and target == INTERPRETED:
            report.counts[f"given up, as it took long: {target}"] += 1
        else:
            report.failures.append(Failure(number, target, kind, f"{what}\n{said[-500:]}"))
        again = []
    if len(work.cases) > 1 or not hung:
        skipped = work.skip | {(number, target)}
        again.append(Work(work.seed, work.cases, work.of, skipped, work.given, work.limit_s))
    return report, again
