"""A made-up laboratory whose kernels sleep, crash, hang or lie as their directives say."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from looptune.runtime.outcome import Crashed, Illegal, Outcome, OverLimit, Timed, WrongResult
from looptune.tune.execution.lab import NextStep, PreparedVersion, SweepResult
from looptune.tune.execution.process import Setup
from looptune.tune.incumbent import Incumbent
from looptune.tune.session.budget import Budget
from looptune.tune.session.statistics import SweepStatistics
from looptune.tune.space.space import Configuration, parse
from looptune.tune.store.store import Context, Store
from looptune.tune.strategies.exhaustive import Exhaustive
from tests.helpers.local_sweep import sweep

CONTEXT = Context("gemm", "c0ffee", "1", "numba", "9.0", "H100", "cuda", "{}", "float32")


def timed(median_us: float) -> Timed:
    return Timed((median_us,), median_us, median_us, median_us, "original")


@dataclass(frozen=True)
class FakeLab:
    """`unroll U` takes 100 / U us; what the first loop's `parallel` says happens instead. `again X` takes 50 us, then X
    is built, `later X` is not timed before. ``journal`` logs what ran."""

    journal: Path
    compile_s: float = 0.0
    measure_s: float = 0.0
    context: Context = CONTEXT

    @property
    def compile_setup(self) -> Setup:
        return partial(compiler, self.journal, self.compile_s)

    @property
    def measure_setups(self) -> tuple[Setup, ...]:
        return (partial(measurer, self.journal, self.measure_s),)


def prepare(configuration: Configuration) -> PreparedVersion | Outcome:
    if "illegal" in configuration.text:
        return Illegal("iteration (i=1) must run before (i=2)")
    # `unroll 1` changes nothing: the same source as without it.
    return PreparedVersion(f"source {configuration.text.replace('loop k: unroll 1', '')}", configuration.text)


def write(journal: Path, text: str) -> None:
    with journal.open("a") as file:
        file.write(f"{text}\n")


def compiler(journal: Path, seconds: float) -> Callable[[str, Any], Any]:
    def work(step: str, given: Any) -> Any:
        return prepare(given) if step == "prepare" else build(given)

    def build(text: str) -> Any:
        write(journal, f"compile {text!r}")
        time.sleep(seconds)
        match text:
            case "loop k: nobuild":
                raise RuntimeError("ptxas said no")
            case "loop k: overlimit":
                return OverLimit("needs 2048 threads per block, the limit is 1024")
            case "loop k: killcompiler":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "loop k: hangcompiler":
                time.sleep(60)
            case "slowly":
                time.sleep(60)
        return ("built", text)

    return work


def measurer(journal: Path, seconds: float) -> Callable[[Any, Incumbent | None], Outcome | NextStep]:
    lost = []

    def measure(built: Any, best: Incumbent | None) -> Outcome | NextStep:
        _, text = built
        write(journal, f"measure {text!r} pid={os.getpid()} best={None if best is None else best.us}")
        time.sleep(seconds)
        if lost:
            return Crashed("the device context was lost before this")
        match text:
            case "loop k: segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "loop k: forever":
                while True:
                    pass
            case "loop k: wrong":
                return WrongResult("C[0][0]: got 1, expected 2")
            case "loop k: lostcontext":
                lost.append(text)
                raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
        first, _, more = text.removeprefix("loop k: ").partition(" ")
        if first in ("again", "later"):
            return NextStep(more if more == "slowly" else f"loop k: {more}", timed(50.0) if first == "again" else None)
        found = re.search(r"unroll (\d+)", text)
        return timed(100.0 / int(found[1]) if found else 100.0)

    return measure


BAD = "nobuild | overlimit | killcompiler | hangcompiler | segfault | forever | wrong | lostcontext | illegal"
SPACE = parse(f"loop k: {{ unroll {{1..4}} | {BAD} | unroll 8 }}", "s")


def run(lab: FakeLab, tmp_path: Path, source: Any = SPACE, count: int | None = None, **options: Any) -> SweepResult:
    given: dict[str, Any] = {"budget": Budget(count), "jobs": 1, "timeout_s": 1.0, "progress": lambda p: None}
    strategy = options.pop("strategy", None) or Exhaustive(source)
    with Store.open(tmp_path / "store") as store:
        return sweep(lab, strategy, store, **{**given, **options})


def end_budget_after(patch: pytest.MonkeyPatch, lab: FakeLab, measurements: int) -> None:
    """Let the seconds of a budget be over when so many measurements have begun, however long they take."""
    patch.setattr(SweepStatistics, "left_s", lambda tally: 0.0 if len(ran(lab, "measure")) >= measurements else 0.02)


def ran(lab: FakeLab, what: str) -> list[str]:
    lines = lab.journal.read_text().splitlines() if lab.journal.exists() else []
    return [line for line in lines if line.startswith(what)]
