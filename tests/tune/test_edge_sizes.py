"""Loops that do not run, or once: every version is right there too, and sizes at which the text means nothing are left
out."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import looptune
from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.core.floating_point import STRICT
from looptune.frontend import load
from looptune.runtime.device import Cpu
from looptune.runtime.outcome import Outcome, Timed, WrongResult
from looptune.runtime.problem_sizes import edge_sizes, problem
from looptune.runtime.targets import Target
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.execution.lab import NextStep
from looptune.tune.job import Job
from looptune.tune.measure.build_steps import Built, first_step, plans_of
from looptune.tune.measure.measuring_device import MeasuringDevice
from looptune.tune.measure.reference import text_of

ROWS = """void f(int n, int m, double A[n][m], double s[n]) {
  for (int i = 0; i < n; i++) { s[i] = 0; for (int j = 0; j < m; j++) s[i] += A[i][j]; }
}
"""


FLAT = """void f(int n, int m, double *A, double *s) {
  for (int i = 0; i < n; i++) { s[i] = 0; for (int j = 0; j < m; j++) s[i] += A[i * m + j]; }
}
"""


def found(text: str, **sizes: int) -> list[dict[str, int | float]]:
    codelet = load(text).codelet
    return [dict(at.values) for at in edge_sizes(codelet, problem(codelet, sizes))]


def test_sizes_of_0_and_1_and_in_either_order_are_among_them() -> None:
    """Each size is 0 alone as well, where the loops over the others run."""
    at = found(FLAT, n=40, m=30)
    assert {"n": 1, "m": 1} in at
    assert {"n": 0, "m": 0} in at
    assert any(e["n"] == 0 < e["m"] for e in at)
    assert any(e["m"] == 0 < e["n"] for e in at)
    assert any(e["n"] > e["m"] > 1 for e in at)
    assert any(e["n"] == 0 < e["m"] for e in found(ROWS, n=40, m=30))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("void f(int n, int x[n]) {\n  x[n - 1] = 0; for (int i = 0; i < n; i++) x[i] += 1; }", [1]),
        ("void f(int n, int *x) {\n  for (int i = 0; i < n; i++) x[i] = x[n - 2]; }", [0]),
        ("void f(int n, int x[8]) {\n  for (int i = 0; i < 8; i++) x[i] = x[i] % n; }", [1]),
        ("void f(int n, int x[n - 1]) {\n  for (int i = 0; i < n - 1; i++) x[i] = 1; }", [1]),
        ("void f(int n, int x[n]) {\n  for (int i = n - 1; i >= 0; i--) x[i] = i; }", [1, 0]),
        ("void f(int n, int *x) {\n  for (int i = n - 1; i >= 0; i--) x[i] = i; }", [1, 0]),
    ],
)
def test_sizes_at_which_the_text_means_nothing_are_left_out(text: str, left: list[int]) -> None:
    """An access outside an array, a division by zero, an extent that is negative."""
    assert [at["n"] for at in found(text, n=40) if at["n"] in (0, 1)] == left


def outcome(text: str, version: str, cache: Path, **sizes: int) -> Outcome | NextStep:
    """Of the loops of ``version``, compared with those of ``text``."""
    unit = load(text)
    size = problem(unit.codelet, sizes)
    target = Target(
        "numba-cpu", partial(NumbaCpu, cache), partial(NumbaCpu, cache, STRICT), Cpu, specializes_sizes=False
    )
    at = edge_sizes(unit.codelet, size)
    job = Job(unit.codelet, size, None, target, cache, text=text_of(unit, cache)[0], edge_problems=at)
    plans = plans_of(job, schedule(Analysis(load(version).codelet), parse_lines([])).codelet, "")
    bench = MeasuringDevice(job)
    return bench.measure(Built(first_step(job, plans), bench.backend.build(plans.timed)), None)


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_version_is_wrong_that_is_so_only_where_a_loop_does_not_run(tmp_path: Path) -> None:
    """Right at the sizes timed, it leaves something else where one of them is 0."""
    inner = "for (int j = 0; j < m; j++) x[i] = j;"
    text = f"void f(int n, int m, int x[n]) {{\n  for (int i = 0; i < n; i++) {{ x[i] = 7; {inner} }} }}"
    wrong = text.replace("x[i] = 7; ", "x[i] = 6; ")
    assert isinstance(outcome(text, text, tmp_path, n=30, m=20), Timed)
    match outcome(text, wrong, tmp_path, n=30, m=20):
        case WrongResult(message):
            assert "x[0]: got 6, expected 7" in message
            assert "m=0" in message
        case other:
            raise AssertionError(f"not wrong: {other}")


@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 3), (3, 0), (1, 1)])
def test_a_compiled_kernel_does_what_c_does_without_iterations(n: int, m: int) -> None:
    """Arrays without elements are taken, and what loops do not reach is as it was."""
    kernel = looptune.compile(ROWS, target="numba-cpu")
    rng = np.random.default_rng(0)
    a, s = rng.random((n, m)), rng.random(n)
    kernel(n, m, a, s)
    np.testing.assert_array_equal(s, a.sum(axis=1))
