"""Orders for a CPU's vectors: loops along rows become innermost, in spaces derived from any loops."""

from __future__ import annotations

import pytest

from looptune.frontend import load
from looptune.schedule.analysis import Analysis
from looptune.tune.session.find_space import without_blocks
from looptune.tune.space import core_parts, vector_order
from looptune.tune.space.derive import derive
from looptune.tune.space.patterns import Patterns

ROWS_AT_ONCE = """
void f(int n, int m, float x[n][m], float y[n][m], float C[m][m], float t[m]) {
  for (int a = 0; a < n; a++) {
    for (int b = 0; b < m; b++) {
      t[b] = 1;
      for (int c = 0; c < m; c++) t[b] += x[a][c] * C[c][b];
    }
    for (int b = 0; b < m; b++) y[a][b] = t[b];
  }
}
"""
TURNED = """
void f(int n, float A[n][n], float B[n][n]) {
  for (int t = 0; t < n; t++)
    for (int i = 1; i < n; i++)
      for (int j = 0; j < n; j++) A[j][i] = 2 * A[j][i];
}
"""
ONLY_CORES = """
void f(int n, float A[n][n], float s[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) s[i] += A[j][i];
}
"""
ALONG_ROWS = """
void f(int n, float A[n][n], float s[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) s[i] += A[i][j];
}
"""


def sections(text: str) -> list[list[str]]:
    found = vector_order.sections(Patterns(Analysis(load(text).codelet)))
    return [section.splitlines() for section in found]


def test_a_sum_of_columns_gets_a_loop_of_its_own_inside() -> None:
    """What begins it stands in another loop, and each iteration of the outermost loop has a copy of the scratch row.

    The sums of four rows and four steps are computed at once.
    """
    assert sections(ROWS_AT_ONCE) == [
        ["for cpu", "loop 1: expand t", "loop 2: distribute", "loop 2.2: permute c, b",
         "loop 1: { unroll {4, 2}, jam | }", "loop 3: { unroll {4, 8}, jam | }"],
    ]  # fmt: skip


def test_a_loop_along_rows_becomes_the_innermost_one() -> None:
    """Whatever loops stand around, as another one is left to the cores."""
    assert sections(TURNED) == [["for cpu", "loop 2: permute j, i", "loop 3: { | unroll {2, 4, 8}, jam }"]]


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        (ONLY_CORES, "unroll {8, 4, 16}, jam | permute j, i | "),
        (ALONG_ROWS.replace("s[i] += A[i][j]", "A[i][j + 1] = 2 * A[i][j] + s[i]"), "unroll {8, 4, 16}, jam | "),
    ],
)
def test_iterations_of_the_cores_loop_run_side_by_side(text: str, choices: str) -> None:
    """Where it is the only loop along rows, or each step of its inner loop waits for the one before."""
    assert sections(text) == [["for cpu", f"loop 1: {{ {choices}}}"]]


def test_a_sum_along_a_row_stays_as_it_is() -> None:
    """It is made of vectors already."""
    assert sections(ALONG_ROWS) == []


PRODUCT = """
void f(int n, float A[n][n], float B[n][n], float C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++)
      for (int j = 0; j < n; j++) C[i][j] += A[i][k] * B[k][j];
}
"""


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        (PRODUCT, []),
        (PRODUCT.replace("B[k][j]", "B[j][k]"), ["loop 2: permute j, k"]),
    ],
)
def test_products_are_computed_in_tiles_of_registers(text: str, turned: list[str]) -> None:
    """Rows of the loop for the cores, and steps of the loop around the innermost one, whichever that becomes."""
    label = "loop 3" if turned else "loop 2"
    lines = ["loop 1: { unroll {4, 2}, jam | }", f"{label}: {{ unroll {{4, 8}}, jam | }}"]
    assert sections(text) == [["for cpu", *turned, *lines]]


BOTH = """
void f(int n, int m, float A[n][m], float s[m], float q[n], float p[m], float r[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      s[j] += r[i] * A[i][j];
      q[i] += A[i][j] * p[j];
    }
}
"""


def test_cores_have_parts_of_a_loop_that_only_adds_up() -> None:
    """The sum along a row and those beside each other come from one read; other dependences allow no parts."""
    assert [s.splitlines() for s in core_parts.sections(Patterns(Analysis(load(BOTH).codelet)))] == [
        ["for cpu", "loop 2: parallel", "loop 1: { | unroll 4, jam }", "loop 1: rfactor {8, 2, 4, 16, 64}"],
    ]
    ordered = BOTH.replace("q[i] +=", "q[i] = q[i / 2] +")
    assert not list(core_parts.sections(Patterns(Analysis(load(ordered).codelet))))


def test_a_derived_space_begins_with_it() -> None:
    """So that a short budget times it before the others."""
    assert derive(Analysis(load(ROWS_AT_ONCE).codelet)).splitlines()[1] == "for cpu"


def test_a_space_for_a_cpu_has_no_shapes_of_blocks() -> None:
    """Versions that differ in nothing else would be judged again and again."""
    text = "# a\nloop 1: tile 8\ncodelet: grid blocksize {32x8, 32x4}\nor\nloop 1: tile 8\nor\nfor gpu\ncodelet: pack\n"
    assert without_blocks(text) == "loop 1: tile 8"
