"""The work of a launch on a CPU: a product of trip counts, the same for versions that do the same."""

from __future__ import annotations

import pytest

from looptune.backends.numba_cpu.functions import FunctionWriter, driver_function
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish
from tests.helpers.reduction_cases import planned

NEST = "void f(int n, int m, float A[n][m]) {{ for (int i = 0; i < n; i++) for (int j = {}; j < {}; j++) {} }}\n"
STEP = "A[i][j] = 2 * A[i][j];"


def told(text: str, *lines: str) -> list[list[str]]:
    """Return what the driver tells of each launch: its work, and whether it is uneven."""
    plan = finish(planned(text, *lines), Machine(blocks=False))
    calls = [line for line in driver_function(plan, FunctionWriter(plan), stops=False) if "__share(" in line]
    return [line.split(" cores, ")[-1].split(", (")[0].split(", ") for line in calls]


def works(text: str, *lines: str) -> list[str]:
    return [work for work, _ in told(text, *lines)]


@pytest.mark.parametrize(
    ("lo", "hi", "body", "work"),
    [
        ("0", "m", STEP, "1.0 * m * n"),
        ("i", "n", STEP, "0.5 * n * n"),
        ("0", "i", STEP, "0.5 * n * n"),
        ("0", "m", "A[i][j] = sqrtf(A[i][j]);", "9.0 * m * n"),
        ("0", "m", "if (i > j) A[i][j] = 0; else A[i][j] = 1;", "1.0 * m * n"),
        ("0", "7", STEP, "7.0 * n"),
        ("0", "m", "while (A[i][j] > 1) A[i][j] /= 2;", "math.inf"),
        ("0", "(int)A[i][0]", STEP, "math.inf"),
    ],
)
def test_work_is_the_product_of_trip_counts(lo: str, hi: str, body: str, work: str) -> None:
    """Of the middle iteration of a loop around; data have no estimate, and then cores share the launch."""
    text = NEST.format(lo, hi, body)
    assert works(text if "(int)" not in text else text.replace("float A[n][m]", "float A[n][m], int k[n]")
                 .replace("(int)A[i][0]", "k[i]")) == [work]  # fmt: skip


@pytest.mark.parametrize(
    "line", ["loop j: unroll 4", "loop j: unroll 8", "loop j: tile j:32", "loop j: unroll 4, split"]
)
def test_versions_that_do_the_same_have_one_estimate(line: str) -> None:
    """So that they share a driver: copies and strips of an inner loop do not show in it."""
    assert works(NEST.format("0", "m", "A[i][0] += A[i][j];"), line) == ["1.0 * m * n"]


def test_the_host_knows_its_loops() -> None:
    """A launch in a loop of the host has the work of its iteration."""
    text = """void f(int n, float A[n][n]) {
      for (int k = 0; k < n; k++) for (int i = k + 1; i < n; i++) A[i][k] = A[i - 1][k] * A[k][k];
      for (int k = 1; k < n; k++) for (int i = k + 1; i < n; i++) A[k][i] = 2 * A[k - 1][i];
    }"""
    assert "1.0 * (n - k)" in works(text)


@pytest.mark.parametrize(
    ("hi", "lines", "uneven"),
    [
        ("m", (), "False"),
        ("i", (), "True"),
        ("m", ("loop i: tile i:32",), "False"),
        ("i", ("loop i: tile i:8",), "True"),
    ],
)
def test_triangles_are_uneven(hi: str, lines: tuple[str, ...], uneven: str) -> None:
    """Strips of a rectangle are not, though their bounds name the strip."""
    assert [u for _, u in told(NEST.format("0", hi, "A[i][0] += A[i][j];"), *lines)] == [uneven]
