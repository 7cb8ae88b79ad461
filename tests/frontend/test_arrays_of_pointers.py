"""Arrays of pointers: the same results as gcc, rows as long as loops need, and rows that do not overlap."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import looptune
from looptune.core.errors import UsageError
from looptune.deploy.source_to_source import transform
from looptune.frontend import load
from looptune.ir.c_printer import declaration
from looptune.ir.nodes import Array
from looptune.runtime.host_program import record
from looptune.schedule.assumptions import may_overlap, rows_may_overlap
from tests.helpers.against_gcc import difference, verdicts
from tests.helpers.built_modules import imported, written
from tests.helpers.gcc_programs import Program, programs
from tests.helpers.paths import TESTS

gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

DOUBLED = """void f(int n, int m, float **a, float **b)
{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) b[i][j] = 2 * a[i][j]; }
"""
ALLOCATED = """#include <stdlib.h>
#define N 5
void f(int n, double **a, double **b)
{
  for (int i = 1; i < n; i++) for (int j = 0; j < N; j++) b[i][j] = a[i - 1][j];
}
int main(void)
{
  double **a = malloc((N + 1) * sizeof *a), **b = malloc(N * sizeof *b);
  for (int i = 0; i < N; i++) {
    a[i] = malloc(N * sizeof **a);
    b[i] = malloc(N * sizeof **b);
    for (int j = 0; j < N; j++) b[i][j] = a[i][j] = 10 * i + j;
  }
  SETTING
  f(N, a, b);
  return 0;
}
"""


@pytest.mark.sampled(2)
@pytest.mark.sampled(4, "wide")
@gcc
@pytest.mark.parametrize("program", programs(TESTS / "data" / "arrays_of_pointers.c"), ids=lambda p: p.name)
def test_they_compute_what_gcc_computes(program: Program, tmp_path: Path) -> None:
    assert difference(program.text, program.sizes, tmp_path, program.shapes) is None
    assert [*verdicts(load(program.text).codelet).values()] == program.loops


@pytest.mark.parametrize(
    ("loops", "declared"),
    [
        ("for (int j = 0; j < m; j++) a[i][j] = a[i][0];", "double a[][m]"),
        ("for (int j = 1; j < m - 1; j++) a[i][j] = 1;", "double a[][(m - 1 > 0 ? m - 1 : 0)]"),
        ("for (int j = 0; j < m; j++) if (j + 2 < m) a[i][j] = a[i][j + 2];", "double a[][m]"),
        ("for (int j = 0; j < m; j++) a[i][2 * j] = a[i][n];", "double a[][(2 * m - 1 > n + 1 ? 2 * m - 1 : n + 1)]"),
        ("for (int j = 0; j < m; j++) a[i][j % 3] = 1;", "double a[][a_row]"),
    ],
)
def test_rows_are_as_long_as_the_loops_need(loops: str, declared: str) -> None:
    """A parameter of its own says so where it does not follow from the others."""
    codelet = load(f"void f(int n, int m, double **a) {{ for (int i = 0; i < n; i++) {loops} }}\n").codelet
    assert [declaration(p) for p in codelet.params if isinstance(p, Array)] == [declared]
    assert ("a_row" in declared) == ("a_row" in [p.name for p in codelet.params])


def test_rows_are_assumed_apart_if_they_are_written_and_not_allocated_here() -> None:
    assert rows_may_overlap(load(DOUBLED)) == ("b",)
    assert may_overlap(load(DOUBLED)) == (("a", "b"),)
    nest = "#pragma scop\nfor (int i = 0; i < n; i++) for (int j = 0; j < n; j++) a[i][j] = 1;\n#pragma endscop\n"
    rows = "double **a = malloc(n * sizeof *a); for (int i = 0; i < n; i++) a[i] = malloc(n * sizeof **a);"
    for more, found in (("", ()), ("a[1] = a[0];", ("a",)), ("g(a);", ("a",)), ("double **b = a;", ("a",))):
        assert rows_may_overlap(load(f"void f(int n) {{\n{rows} {more}\n{nest} }}\n")) == found


@pytest.mark.parametrize("how", ["compiled", "module"])
def test_python_passes_an_array_or_rows(how: str, tmp_path: Path) -> None:
    """Rows may be longer than needed and anywhere in memory, but where they are written they must not overlap."""
    kernel: Any = looptune.compile(DOUBLED, target="numba-cpu")
    wrong: tuple[type[Exception], ...] = (UsageError,)
    if how == "module":
        kernel, wrong = imported(written(tmp_path, DOUBLED, None, "numba-cpu", default=True)).f, (TypeError, ValueError)
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    memory = np.zeros((6, 9), np.float32)
    for b in (np.zeros_like(a), [*np.zeros_like(a)], memory[:3], [memory[5], memory[:4, 8], memory[4, 1:5]]):
        kernel(3, 4, [*a], b)
        assert [row[:4].tolist() for row in b] == (2 * a).tolist()
    line = np.zeros(30, np.float32)
    for b, said in (
        ([line[:4], line[3:7], line[9:13]], "two rows of b overlap"),
        ([line[:4], a[1], line[9:13]], "a overlaps b"),
        ([line[:4], line[4:7], line[9:13]], "b must have the shape"),
        ([line[:4]], "b is too short"),
        (line, "b must be an array or a list of its rows"),
    ):
        with pytest.raises(wrong, match=said):
            kernel(3, 4, a, b)


@gcc
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("", ""),
        ("b[2] = b[3] + 1;", "two rows of b overlap"),
        ("b[2] = a[3];", "b, which is written, overlaps a"),
    ],
)
def test_a_program_passes_its_rows(setting: str, said: str, tmp_path: Path) -> None:
    from looptune.tune.session.prepare import _check_passed

    file = tmp_path / "f.c"
    file.write_text(ALLOCATED.replace("SETTING", setting))
    unit = load(file, kernel="f")
    found = record(unit, ())
    if not said:
        assert found.arrays["a"].tolist() == [[10 * i + j for j in range(5)] for i in range(4)]
        _check_passed(unit.codelet, found)
        return
    with pytest.raises(UsageError, match=said):
        _check_passed(unit.codelet, found)


def test_loops_are_written_back_in_the_terms_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "f.c"
    file.write_text(DOUBLED)
    said: list[str] = []
    assert "b[i][2 * j + 1] = 2 * a[i][2 * j + 1];" in transform(file, ["loop j: unroll 2"], note=said.append)
    assert said[0].endswith("these do not overlap: a and b, the rows of b")


def test_c_that_is_built_does_not_take_rows_of_pointers() -> None:
    three = "void f(int n, float ***a) { for (int i = 0; i < n; i++) a[i][i][i] = 1; }\n"
    assert load(three).head == (
        "f takes a, whose rows consist of pointers, which C that is built here does not check: pass one array"
    )
