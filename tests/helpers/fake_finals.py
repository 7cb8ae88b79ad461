"""Finals of a matrix-vector product whose times are made up."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from looptune.backends.base import Binary
from looptune.tune.execution.local_executor import LocalExecutor
from looptune.tune.execution.worker_loop import TaskResult, pickle_value
from looptune.tune.measure.build_steps import Finalist, VersionSources
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.measure.finals_rounds import FinalsRequest, Times
from looptune.tune.session.finals import KernelFinals
from looptune.tune.session.prepare import PreparedRun, TuningRequest, prepare
from looptune.tune.session.proof import ProofSummary
from looptune.tune.store.store import Store
from tests.helpers.fake_workers import FakeWorkers

KERNEL = """
void f(int n, int m, float A[n][m], float x[m], float y[n]) {
  for (int i = 0; i < n; i++)
    for (int k = 0; k < m; k++)
      y[i] += A[i][k] * x[k];
}
"""


def at(folder: Path, m: int) -> PreparedRun:
    (folder / "f.c").write_text(KERNEL)
    return prepare(
        TuningRequest(folder / "f.c", defines={"n": "30", "m": str(m)}, target="numba-cpu", accept_disturbed=True)
    )


@dataclass(frozen=True)
class Asked(LocalExecutor):
    """An executor where finals are not run: every version takes an array of made-up times, and ``wrong`` ones are
    proved to be so. ``proved``: the versions before and after each finals."""

    rounds: int = 5000
    wrong: tuple[str, ...] = ()
    lineups: list[FinalsRequest] = field(default_factory=list)
    proved: list[list[str]] = field(default_factory=list)
    built: list[str] = field(default_factory=list)

    def open(self, labs: Any, models: Any, jobs: int, timeout_s: float, **options: Any) -> FakeWorkers:  # type: ignore[override]
        self.proved.append([])
        return FakeWorkers(self.compiled, self.measured)

    def compiled(self, lab: int, step: str, text: str) -> TaskResult:
        match step:
            case "build":
                self.built.append(text)
                return TaskResult(pickle_value(Finalist(_sources(text), Binary("numba-cpu", None, "", {}, (), 0.0))))  # type: ignore[arg-type]
            case "write":
                return TaskResult(_sources(text))
        self.proved[-1].append(text)
        return TaskResult(ProofSummary("no", "no" if text in self.wrong else ""))

    def measured(self, lab: int, lineup: FinalsRequest) -> Any:
        self.lineups.append(lineup)
        self.proved.append([])
        times = {t: tuple(10.0 + len(t) + k % 7 / 3 for k in range(self.rounds)) for t in lineup.finalists}
        return TaskResult(Times(times))


def _sources(text: str) -> VersionSources:
    return VersionSources(f"C of {text}", f"kernels of {text}", ())


def match(prepared: PreparedRun, store: Store, *texts: str, **more: Any) -> KernelFinals:
    return KernelFinals(KernelBuilder(prepared.job, prepared.context), store, "s", prepared.model, texts, "", **more)
