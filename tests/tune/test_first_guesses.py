"""What is measured before the file as annotated: the first versions of the space, where the file may take long."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.session import experiment
from looptune.tune.session.prepare import TuningRequest, prepare

PRODUCT = """
void f(int n, float A[n][n], float B[n][n], float C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++) C[i][j] += A[i][k] * B[k][j];
}
"""


@pytest.mark.parametrize(
    ("n", "budget", "found"), [("2000", "40s", True), ("100", "40s", False), ("2000", "40", False)]
)
def test_a_heavy_kernel_begins_with_its_space_in_a_budget_of_time(
    tmp_path: Path, n: str, budget: str, found: bool
) -> None:
    """One run as annotated takes seconds on all cores of a CPU, and the first versions of the space a part of that."""
    (tmp_path / "f.c").write_text(PRODUCT)
    request = TuningRequest(tmp_path / "f.c", defines={"n": n}, target="numba-cpu", sweep=True, budget=budget)
    prepared = prepare(request)
    first = experiment.guesses(prepared, KernelBuilder(prepared.job, prepared.context), prepared.budget)
    assert [c.lines[0] for c in first[:1]] == (["loop 2: permute k, j"] if found else [])
