"""A short budget of time is spent on versions: the peaks of a device are those that are known, or none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from looptune.runtime import peak_rates
from looptune.runtime.device import Cpu
from looptune.runtime.roofline import Peaks, Rate
from looptune.tune.execution.local_executor import HERE
from looptune.tune.session import experiment
from looptune.tune.session.prepare import TuningRequest, prepare

TEXT = "void f(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] += 1; }\n"
PEAKS = Peaks(Rate(10.0, 0.0), Rate(20.0, 0.0), Rate(100.0, 0.0), Rate(50.0, 0.0))


def test_a_short_budget_measures_no_peaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without stored ones there is no ceiling; a longer budget, and a run without a sweep, measures them."""
    measured: list[str] = []
    monkeypatch.setattr(peak_rates, "measure", lambda machine, backend: measured.append("peaks") or PEAKS)
    (tmp_path / "f.c").write_text(TEXT)

    def ceiling(seconds: float | None, cache: Path, *, sweep: bool = True) -> object:
        request = TuningRequest(
            tmp_path / "f.c", defines={"n": "24"}, target="numba-cpu", sweep=sweep, db=tmp_path / "db"
        )
        made = prepare(request)
        made = replace(
            made, job=replace(made.job, cache=cache), budget=replace(made.budget, count=None, seconds=seconds)
        )
        return experiment._with_ceiling(made, HERE).job.ceiling

    assert ceiling(experiment.PEAKS_S - 1, tmp_path / "a") is None
    assert measured == []
    for n, (seconds, sweep) in enumerate(((experiment.PEAKS_S, True), (None, True), (1.0, False))):
        assert ceiling(seconds, tmp_path / f"b{n}", sweep=sweep) is not None
        assert len(measured) == n + 1
    peak_rates.cache_rates(Cpu().facts, tmp_path / "c", PEAKS)
    assert ceiling(1.0, tmp_path / "c") is not None
    assert len(measured) == 3
