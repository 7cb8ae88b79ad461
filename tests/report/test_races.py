"""Loops that pragmas of OpenMP and OpenACC run in parallel are judged like directives."""

from __future__ import annotations

import pytest

from looptune.frontend import load
from looptune.report.check.explanation import explain
from looptune.report.check.text import text

HEAD = "void f(int n, double *restrict x, const double *restrict y, double A[n][n], double B[n][n])\n"


def found(body: str, pragma: str = "omp parallel for") -> list[str]:
    unit = load(f"{HEAD}{{ int i, j; double t, s = 0;\n#pragma {pragma}\n{body}\nx[0] = s; }}")
    return [race.what for race in explain(unit).races]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("for (i = 1; i < n; i++) x[i] = x[i - 1] + y[i];", "two iterations access x, of which one writes"),
        ("for (i = 0; i < n; i++) { t = 2 * y[i]; x[i] = t; }", "all threads share t: add private(t)"),
        ("for (i = 0; i < n; i++) s += y[i];", "all iterations add to s: add reduction(+: s)"),
        (
            "for (i = 0; i < n; i++) for (j = 0; j < n; j++) A[i][j] = B[i][j];",
            "all threads share the loop variable j: add private(j)",
        ),
    ],
)
def test_a_race_says_what_is_shared(body: str, what: str) -> None:
    assert found(body) == [what]


@pytest.mark.parametrize(
    ("body", "pragma"),
    [
        ("for (i = 0; i < n; i++) x[i] = y[i];", "omp parallel for schedule(static)"),
        ("for (i = 1; i < n; i++) x[i] = x[i - 1];", "omp simd"),
        ("for (i = 1; i < n; i++) x[i] = x[i - 1];", "acc loop seq"),
        ("for (i = 0; i < n; i++) { t = 2 * y[i]; x[i] = t; }", "omp parallel for private(i, t)"),
        ("for (i = 0; i < n; i++) { t = 2 * y[i]; x[i] = t; }", "omp parallel for lastprivate(t)"),
        ("for (i = 0; i < n; i++) { double u = 2 * y[i]; x[i] = u; }", "omp parallel for"),
        ("for (i = 0; i < n; i++) s += y[i];", "omp parallel for reduction(+ : s)"),
        ("for (i = 0; i < n; i++) {\n#pragma omp atomic\ns += y[i]; }", "omp parallel for"),
        ("for (i = 0; i < n; i++) for (j = 0; j < n; j++) A[i][j] = B[i][j];", "omp parallel for collapse(2)"),
        ("for (i = 0; i < n; i++) for (j = 0; j < n; j++) A[i][j] = B[i][j];", "acc parallel loop"),
        ("for (i = 0; i < n; i++) x[(int)y[i]] = x[i];", "omp parallel for"),
    ],
)
def test_what_is_right_or_unknown_is_no_race(body: str, pragma: str) -> None:
    assert found(body, pragma) == []


def test_collapsed_loops_are_judged_too() -> None:
    body = "for (i = 0; i < n; i++) for (j = 1; j < n; j++) A[i][j] = A[i][j - 1];"
    assert found(body, "omp parallel for private(j)") == []
    assert found(body, "omp parallel for collapse(2)") == ["two iterations access A, of which one writes"]


def test_what_a_parallel_region_declares_is_private() -> None:
    body = "{ double u;\n#pragma omp for\nfor (i = 0; i < n; i++) { u = 2 * y[i]; x[i] = u; } }"
    assert found(body, "omp parallel") == []


def test_the_text_shows_the_two_iterations() -> None:
    unit = load(f"{HEAD}{{\n#pragma omp parallel for\nfor (int i = 1; i < n; i++) x[i] = x[i - 1] + y[i]; }}")
    shown = text(explain(unit))
    assert (
        "  omp parallel for (3:9)  data race: two iterations access x, of which one writes\n    (i=1) writes" in shown
    )
    assert explain(unit).refused
