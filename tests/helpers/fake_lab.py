"""A made-up laboratory whose kernels sleep, crash, hang or lie as their directives say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from looptune.tune.execution.lab import SweepResult
from looptune.tune.execution.process import Setup
from looptune.tune.session.budget import Budget
from looptune.tune.session.statistics import SweepStatistics
from looptune.tune.space.space import parse
from looptune.tune.store.store import Context, Store
from looptune.tune.strategies.exhaustive import Exhaustive
from tests.helpers.fake_tasks import compiler, measurer
from tests.helpers.local_sweep import sweep

CONTEXT = Context("gemm", "c0ffee", "1", "numba", "9.0", "H100", "cuda", "{}", "float32")


@dataclass(frozen=True)
class FakeLab:
    """`unroll U` takes 100 / U us; what the first loop's `parallel` says happens instead. `again X` takes 50 us, then X
    is built, `later X` is not timed before; `predicted T` says so of its time. ``journal`` logs what ran."""

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
