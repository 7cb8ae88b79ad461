"""Stand-ins for several devices: laboratories whose measurements say where and when they ran.

A journal has a line ``begin NUMBER PID TIME`` and ``end NUMBER PID TIME`` for each measurement.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from looptune.runtime.outcome import Outcome, Timed
from looptune.tune.execution.lab import SweepResult
from looptune.tune.execution.local_executor import LocalWorkers
from looptune.tune.execution.process import Setup
from looptune.tune.incumbent import Incumbent
from looptune.tune.session.budget import Budget
from looptune.tune.space.space import Configuration, parse
from looptune.tune.store.store import Context, Store
from looptune.tune.strategies.exhaustive import Exhaustive
from tests.helpers import kill_resume, local_sweep
from tests.helpers.kill_resume import CONTEXT

SPACE = parse("loop k: unroll {1..12}", "s")


@dataclass(frozen=True)
class Lab:
    """`unroll U` takes U * ``factor`` us on each of ``devices``; ``fault`` is what U = 5 does there;
    ``meet``: 1 and 2 wait for each other, so that two devices are known to measure at once; ``after``: a
    journal with 11 ends, or 20 seconds, before it is set up."""

    journal: Path
    devices: int = 2
    measure_s: float = 0.05
    factor: float = 1.0
    fault: str = ""
    meet: bool = False
    after: Path | None = None
    context: Context = CONTEXT

    @property
    def compile_setup(self) -> Setup:
        return kill_resume.compiler

    @property
    def measure_setups(self) -> tuple[Setup, ...]:
        one = partial(measurer, self)
        return (one,) * self.devices


def measurer(lab: Lab) -> Callable[[Any, Incumbent | None], Outcome]:
    latest = time.monotonic() + 20.0
    while lab.after is not None and time.monotonic() < latest and ended(lab.after) < 11:
        time.sleep(0.01)

    def measure(number: int, best: Incumbent | None) -> Outcome:
        write(lab.journal, f"begin {number}")
        if number == 5:
            misbehave(lab.fault, lab.journal)
        deadline = time.monotonic() + 20.0
        while lab.meet and number in (1, 2) and time.monotonic() < deadline and not met(lab.journal):
            time.sleep(0.01)
        time.sleep(lab.measure_s)
        write(lab.journal, f"end {number}")
        us = number * lab.factor
        return Timed((us,), us, us, us, "not at all")

    return measure


def met(journal: Path) -> bool:
    return all(f"begin {number} " in journal.read_text() for number in (1, 2))


def ended(journal: Path) -> int:
    return journal.read_text().count("end ") if journal.exists() else 0


def misbehave(fault: str, journal: Path) -> None:
    match fault:
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raises":
            raise RuntimeError("the context is lost")
        case "hangs":
            time.sleep(60)
        case "machine dies":
            time.sleep(1.0)  # for what it measured before to arrive
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        case "machine dies once" if not journal.with_suffix(".died").exists():
            journal.with_suffix(".died").touch()
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)


def write(journal: Path, text: str) -> None:
    with journal.open("a") as file:
        file.write(f"{text} {os.getpid()} {time.monotonic()}\n")


@dataclass(frozen=True)
class Run:
    number: int
    pid: int
    begin: float
    end: float


def runs(journal: Path) -> list[Run]:
    """The measurements that ended, in the order they began."""
    begun: dict[tuple[int, int], float] = {}
    found = []
    for line in journal.read_text().splitlines():
        what, number, pid, moment = re.split(" ", line)
        key = int(number), int(pid)
        if what == "begin":
            begun[key] = float(moment)
        else:
            found.append(Run(*key, begun.pop(key), float(moment)))
    return sorted(found, key=lambda run: run.begin)


def together(done: list[Run]) -> int:
    """How many measurements ran while another one did."""
    return sum(any(a is not b and a.begin < b.end and b.begin < a.end for b in done) for a in done)


def on(lab: Lab, device: str, factor: float) -> Lab:
    """The same kernel on another model."""
    context = replace(lab.context, device=device)
    return replace(lab, context=context, factor=factor, journal=lab.journal.with_name(device))


class Learner(Exhaustive):
    """Remembers the order of questions and answers."""

    name: ClassVar[str] = "learner"
    window = 4

    def __init__(self, space: Any, seed: int = 0) -> None:
        super().__init__(space, seed)
        self.log: list[tuple[str, float | None]] = []

    def ask(self) -> Configuration | None:
        configuration = super().ask()
        self.log += [] if configuration is None else [(f"ask {configuration.text}", None)]
        return configuration

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        self.log.append((f"tell {configuration.text}", cost_us))


def swept(folder: Path, labs: Sequence[Lab], strategies: Sequence[Any] = (), **options: Any) -> tuple[SweepResult, ...]:
    chosen = strategies if strategies else [Exhaustive(SPACE) for _ in labs]
    parts = zip(labs, chosen, strict=True)
    given: dict[str, Any] = {"budget": Budget(), "progress": lambda progress: None, "first": ()}
    limit_s = options.pop("timeout_s", 5.0)
    with Store.open(folder / "store") as store:
        open_workers = options.pop("open_workers", partial(LocalWorkers, jobs=1, timeout_s=limit_s))
        return local_sweep.swept(parts, store, open_workers, **{**given, **options})


def rows(folder: Path) -> dict[tuple[str, int], Outcome | None]:
    with Store.open(folder / "store") as store:
        return {(row.context.device, int(row.directives.rpartition(" ")[2])): row.outcome for row in store.rows()}
