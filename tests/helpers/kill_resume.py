"""A laboratory without kernels, light to start, and a sweep of it that is stopped by signals at random moments.

    python -m tests.helpers.kill_resume FOLDER SEED ROUNDS SIGNAL

runs ``sweep_of`` in a process of its own, ROUNDS times; each is sent the signal at a moment the seed chooses. After
each, what the database says to be finished must still be there, as it was, and must not have run again; a violation is
printed and ends the program with 1. Then one more runs to its end, undisturbed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from looptune.runtime.outcome import Illegal, Outcome, Timed
from looptune.tune.execution.lab import PreparedVersion, SweepResult
from looptune.tune.execution.process import Setup
from looptune.tune.execution.worker_loop import pickle_value
from looptune.tune.incumbent import Incumbent
from looptune.tune.session.budget import Budget
from looptune.tune.space.space import Configuration, parse
from looptune.tune.store.store import Context, Row, Store
from looptune.tune.strategies.exhaustive import Exhaustive
from tests.helpers.local_sweep import sweep

CONTEXT = Context("stand-in", "c0ffee", "1", "none", "0", "nowhere", "numba-cpu", "{}", "float32")
VERSIONS = 600
SPACE = f"loop k: unroll {{1..{VERSIONS}}}"


@dataclass(frozen=True)
class Lab:
    """`unroll U` takes U us; every seventh is refused. ``journal`` has a line for each version that begins to run."""

    journal: Path
    measure_s: float = 0.004
    context: Context = CONTEXT

    @property
    def compile_setup(self) -> Setup:
        return compiler

    @property
    def measure_setups(self) -> tuple[Setup, ...]:
        return (partial(measurer, self.journal, self.measure_s),)


def compiler() -> Callable[[str, Any], Any]:
    def work(step: str, given: Any) -> Any:
        match step, given:
            case "prepare", Configuration(lines=(line,)):
                number = int(line.rpartition(" ")[2])
                return (
                    Illegal("iteration (i=1) must run before (i=2)")
                    if number % 7 == 0
                    else PreparedVersion(line, pickle_value(number))
                )
        return pickle_value(given)

    return work


def measurer(journal: Path, seconds: float) -> Callable[[Any, Incumbent | None], Outcome]:
    def measure(number: int, best: Incumbent | None) -> Outcome:
        with journal.open("a") as file:
            file.write(f"{number}\n")
        time.sleep(seconds)
        return Timed((float(number),), number, number, number, "not at all")

    return measure


def sweep_of(folder: Path, measure_s: float = 0.004, space: str = SPACE, **options: Any) -> SweepResult:
    lab = Lab(folder / "journal", measure_s)
    given: dict[str, Any] = {"budget": Budget(), "jobs": 1, "timeout_s": 30.0, "progress": lambda progress: None}
    with Store.open(folder / "store") as store:
        return sweep(lab, Exhaustive(parse(space, "s")), store, first=(), **{**given, **options})


def ran(folder: Path) -> list[int]:
    journal = folder / "journal"
    return [int(line) for line in journal.read_text().splitlines()] if journal.exists() else []


def finished(folder: Path) -> dict[int, Row]:
    """The rows with an outcome of their own, by factor; those of killed processes, which read as crashed, apart."""
    if not (folder / "store").exists():
        return {}
    with Store.open(folder / "store") as store:
        rows = [row for row in store.rows() if row.finished is not None]
    return {int(row.directives.rpartition(" ")[2]): row for row in rows}


def stopped(folder: Path, after_s: float, number: signal.Signals) -> None:
    child = os.fork()
    if child == 0:
        code = 0
        try:
            code = 130 if sweep_of(folder).interrupted else 0
        except KeyboardInterrupt:
            code = 130
        os._exit(code)
    time.sleep(after_s)
    os.kill(child, number)
    os.waitpid(child, 0)


def main(folder: Path, seed: int, rounds: int, number: signal.Signals) -> int:
    moments = random.Random(seed)
    for n in range(rounds):
        before, begun = finished(folder), len(ran(folder))
        moment = moments.uniform(0.0, 2.0)
        stopped(folder, moment, number)
        after, again = finished(folder), set(ran(folder)[begun:]) & before.keys()
        lost = [k for k, row in before.items() if after.get(k) != row]
        print(f"round {n}: {number.name} after {moment:.3f} s, {len(after)} rows", flush=True)
        if lost or again:
            print(f"lost {lost}, run again {sorted(again)}")
            return 1
    result = sweep_of(folder)
    return 0 if not result.interrupted else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), signal.Signals[sys.argv[4]]))
