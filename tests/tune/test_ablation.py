"""What each directive of a winner earns: which versions that takes, what is said of them, and that it is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from looptune.report import result_table
from looptune.runtime.timing import speedup
from looptune.tune.execution.local_executor import LocalExecutor
from looptune.tune.execution.worker_loop import PickledValue, TaskResult
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.measure.finals_rounds import FinalsRequest, Times
from looptune.tune.results.result import DirectiveGain, Sources, from_record, to_record
from looptune.tune.session import ablation
from looptune.tune.session.ablation import Winner
from looptune.tune.session.budget import Budget
from looptune.tune.session.finals import KernelFinals
from looptune.tune.session.prepare import PreparedRun, TuningRequest, prepare
from looptune.tune.space.space import parse
from looptune.tune.store.store import Store
from looptune.tune.strategies.exhaustive import Exhaustive
from tests.helpers import report_database
from tests.helpers.fake_workers import FakeWorkers
from tests.helpers.local_sweep import sweep

KERNEL = """
void f(int n, float A[n][n], float x[n], float y[n]) {
  for (int i = 0; i < n; i++) {
    y[i] = 0;
    for (int k = 0; k < n; k++)
      y[i] += A[i][k] * x[k];
  }
}
"""
LINES = ("loop i: distribute", "loop 1.2: unroll 2, jam", "loop k: unroll 4", "codelet: grid blocksize 32x4")


@dataclass(frozen=True)
class Faked(LocalExecutor):
    """Versions are screened as always; in the finals that of four lines takes 10 us, the others 20 until they leave."""

    lineups: list[FinalsRequest] = field(default_factory=list)
    labs: list[Any] = field(default_factory=list)

    def open(self, labs: Any, models: Any, jobs: int, timeout_s: float, **options: Any) -> Any:
        if options:
            return FakeWorkers(lambda lab, step, text: TaskResult(PickledValue(b"")), self.measured)
        self.labs.extend(labs)
        return LocalExecutor.open(self, labs, models, jobs, timeout_s)

    def measured(self, lab: int, lineup: FinalsRequest) -> TaskResult:
        self.lineups.append(lineup)
        return TaskResult(Times({t: (10.0,) * 40 if t.count("\n") == 3 else (20.0,) * 8 for t in lineup.finalists}))


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedRun:
    (tmp_path / "f.c").write_text(KERNEL)
    return prepare(TuningRequest(tmp_path / "f.c", defines={"n": "24"}, target="numba-cpu", sweep=True, ablation=True))


def winner(prepared: PreparedRun, store: Store, directives: str) -> Winner:
    match = KernelFinals(
        KernelBuilder(prepared.job, prepared.context), store, "s", prepared.model, (directives, ""), ""
    )
    return Winner(prepared, match, directives, "looptune run f.c")


@pytest.mark.long
def test_one_line_is_left_out_at_a_time(prepared: PreparedRun, tmp_path: Path) -> None:
    """What has a time is compared with the winner in finals of its own; of the others it is said why they have none."""
    place = Faked()
    with Store.open(tmp_path / "db") as store:
        one = winner(prepared, store, "\n".join(LINES))
        space = parse("\n".join(LINES), "winner")
        sweep(one.match.lab, Exhaustive(space, 0), store, budget=Budget(), jobs=1, timeout_s=60.0, progress=print)
        ((*earned,),), seconds = ablation.run([one], store, place)
        again, _ = ablation.run([one], store, place)
    assert seconds > 0
    assert again == (tuple(earned),), "looked up the second time"
    assert [lab.job.cuts for lab in place.labs] == [False, False], "slow versions are measured whole"
    assert [e.line for e in earned] == list(LINES)
    without = dict(zip(LINES, earned, strict=True))
    assert without[LINES[0]].why.startswith("illegal: "), "there is no loop 1.2 then"
    assert without[LINES[0]].speedup is None
    for line in LINES[1:3]:
        found = without[line].speedup
        assert found is not None
        assert (found.ratio, found.verdict) == (2.0, "FAST")
    assert without[LINES[3]].why == "makes the same kernels", "a CPU has no blocks"
    (lineup,) = place.lineups
    assert (lineup.default, len(lineup.finalists)) == ("\n".join(LINES), 3)


def test_of_no_directives_nothing_is_asked(prepared: PreparedRun, tmp_path: Path) -> None:
    """The file as annotated won."""
    with Store.open(tmp_path / "db") as store:
        assert ablation.run([winner(prepared, store, "")], store, Faked())[0] == ((),)


def test_it_is_kept_and_shown() -> None:
    """In the database's record, in JSON, on the page and in the terminal."""
    us = ((20.0,) * 40, (10.0,) * 40)
    earned = (
        DirectiveGain("loop k: unroll 4", speedup(*us, 0)),
        DirectiveGain("loop i: distribute", None, "illegal: no loop 1.2"),
    )
    result = report_database.result(directive_gains=earned, seconds={})
    back, _ = from_record(to_record(result, Sources("", "", "")))
    assert back.directive_gains == earned
    assert result.record()["earned"] == {"loop k: unroll 4": 2.0, "loop i: distribute": None}
    assert "| `loop k: unroll 4` | 2x FAST |" in result_table.markdown(result)
    assert result_table.directive_gain_lines(result).splitlines()[1].split("  ")[-1] == "illegal: no loop 1.2"
