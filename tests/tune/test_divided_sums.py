"""Sections of derived spaces for sums of few iterations, rows of batches, and each nest of several."""

from __future__ import annotations

from looptune.frontend import load
from looptune.lower.pipeline import lower
from looptune.lower.plan import kernels_in
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.space import divided_sums, nest_combinations
from looptune.tune.space.derive import derive
from looptune.tune.space.patterns import Patterns
from looptune.tune.space.space import parse

CHANNELS = """void f(float x[64][128][28][28], float y[64][128][28][28], float mean[128]) {
  for (int c = 0; c < 128; c++) {
    float s = 0;
    for (int b = 0; b < 64; b++)
      for (int i = 0; i < 28; i++)
        for (int j = 0; j < 28; j++) s += x[b][c][i][j];
    mean[c] = s / 50176;
  }
  for (int b = 0; b < 64; b++)
    for (int c = 0; c < 128; c++)
      for (int i = 0; i < 28; i++)
        for (int j = 0; j < 28; j++) y[b][c][i][j] = x[b][c][i][j] - mean[c];
}
"""
COLUMNS = """void f(int n, int m, double x[n][m], double mean[m], double var[m]) {
  for (int j = 0; j < m; j++) {
    double s = 0;
    for (int i = 0; i < n; i++) s += x[i][j];
    mean[j] = s / n;
    double v = 0;
    for (int i = 0; i < n; i++) v += (x[i][j] - mean[j]) * (x[i][j] - mean[j]);
    var[j] = v / n;
  }
}
"""


def test_a_section_whose_conditions_exclude_all_versions_is_not_legal() -> None:
    codelet = load("void f(int n, float A[n]) { for (int i = 0; i < n; i++) A[i] = 1; }").codelet
    found = Patterns(Analysis(codelet))
    lines = ["codelet: grid blocksize {32x8}"]
    assert found.legal([*lines, "where blocksize(0) > 16"])
    assert not found.legal([*lines, "where blocksize(0) > 64"])


def test_rows_of_a_batch_have_blocks_as_teams() -> None:
    text = """void f(int n, int m, float A[n][m][m]) {
      for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
          float z = 0;
          for (int k = 0; k < m; k++) z += A[i][j][k];
          for (int k = 0; k < m; k++) A[i][j][k] /= z;
        }
    }"""
    first = next(iter(parse(derive(Analysis(load(text).codelet), device="gpu"), "<derived>")))
    assert first.text == "loop 3: parallel\ncodelet: grid blocksize 32x4"


def test_long_sums_of_few_iterations_are_in_parts() -> None:
    channels, columns = load(CHANNELS).codelet, load(COLUMNS).codelet
    rows = list(divided_sums.sections(Patterns(Analysis(channels))))
    assert rows[0].splitlines() == [
        "for gpu", "loop 1: expand s", "loop 2: rfactor {64}", "loop 3: parallel",
        "codelet: grid blocksize {32x8, 32x4, 32x2}",
    ]  # fmt: skip
    beside = list(divided_sums.sections(Patterns(Analysis(columns), sizes={"n": 100_000, "m": 64})))
    assert beside[0].splitlines()[1:5] == [
        "loop 1: expand s", "loop 1: expand v", "loop 1: distribute", "loop 2, 3: rfactor {256, 64, 1024}"
    ]  # fmt: skip
    for codelet, section in ((channels, rows[0]), (columns, beside[0])):
        first = next(iter(parse(section, "<derived>")))
        plan = lower(schedule(Analysis(codelet), parse_lines(first.lines)).codelet, blocks=True)
        assert any(kernel.makes_parts for kernel in kernels_in(plan.steps))
    assert not list(divided_sums.sections(Patterns(Analysis(columns), sizes={"n": 100, "m": 64})))
    assert not list(divided_sums.sections(Patterns(Analysis(columns), sizes={"n": 100_000, "m": 64_000})))


def test_each_nest_is_tried_with_what_is_likely_best_for_the_others() -> None:
    found = Patterns(Analysis(load(CHANNELS).codelet))
    sums = "# Sums.\nfor gpu\nloop 2: unroll {2, 4}\ncodelet: grid blocksize {32x4, 64x1}"
    rows = "# Rows.\nloop 5: permute {c, b, i, j | b, c, j, i}\nloop 6: unroll 2"
    other = "for cpu\nloop 5: unroll 2"
    launch = "codelet: maxregs 64"
    assert list(nest_combinations.with_others(found, [sums, rows, other, launch])) == [
        "# Sums.\nfor gpu\nloop 2: unroll {2, 4}\nloop 5: permute c, b, i, j\nloop 6: unroll 2\n"
        "codelet: grid blocksize {32x4, 64x1}", sums,
        "# Rows.\nloop 5: permute {c, b, i, j | b, c, j, i}\nloop 6: unroll 2\nloop 2: unroll 2\n"
        "loop 1: grid blocksize 32x4", rows, other, launch,
    ]  # fmt: skip
