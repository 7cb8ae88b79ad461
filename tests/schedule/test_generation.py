"""Nests that are generated in a new order: their loops, the names of these, and which of them run in parallel."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from looptune.frontend import load
from looptune.ir.nodes import Codelet, Loop
from looptune.ir.rewrite import walk
from looptune.poly.translation_validation import prove
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines

LU = """
void lu(int n, double A[n][n]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      for (int k = 0; k < j; k++) A[i][j] -= A[i][k] * A[k][j];
      A[i][j] /= A[j][j];
    }
    for (int j = i; j < n; j++)
      for (int k = 0; k < i; k++) A[i][j] -= A[i][k] * A[k][j];
  }
}
"""
SYMM = """
void symm(int m, int n, double C[m][n], double A[m][m], double B[m][n]) {
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double t = 0;
      for (int k = 0; k < i; k++) {
        C[k][j] += B[i][j] * A[i][k];
        t += B[k][j] * A[i][k];
      }
      C[i][j] = C[i][j] + B[i][j] * A[i][i] + t;
    }
}
"""
SEIDEL = """
void seidel(int t, int n, double A[n][n]) {
  for (int s = 0; s < t; s++)
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        A[i][j] = (A[i - 1][j] + A[i][j - 1] + A[i][j] + A[i + 1][j] + A[i][j + 1]) / 5;
}
"""


def scheduled(text: str, *lines: str) -> Codelet:
    original = load(text).codelet
    done = schedule(Analysis(original), parse_lines(lines)).codelet
    proof = prove(original, done, {"n": 7, "m": 6, "t": 3})
    assert proof.verdict == "proved", proof.reason
    return done


def loops(codelet: Codelet) -> Sequence[Loop]:
    return [f for f in walk(codelet.body) if isinstance(f, Loop)]


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize(
    ("text", "modes"),
    [
        (LU, ["k sequential", "i parallel", "j parallel", "j parallel"]),
        (SEIDEL, ["j sequential", "s parallel", "i parallel"]),
        (SYMM, ["i parallel", "j parallel", "k sequential", "c3 sequential"]),
    ],
    ids=["lu", "seidel", "symm"],
)
def test_loops_become_parallel(text: str, modes: Sequence[str]) -> None:
    """Where the text has no parallel loop, or only an inner one; a new loop has the name of one that it stands for."""
    assert [f"{f.var} {f.mode}" for f in loops(scheduled(text, "loop 1: schedule"))] == modes


def test_each_new_loop_can_be_named() -> None:
    """Two that have no counterpart in the text are told apart, and a directive goes to the one that it names."""
    numbers = [f.number for f in loops(scheduled(SYMM, "loop 1: schedule"))]
    assert 0 not in numbers
    assert len(set(numbers)) == len(numbers)
    unrolled = loops(scheduled(SYMM, "loop 1: schedule", "loop c3: unroll 2, guarded"))
    plain = loops(scheduled(SYMM, "loop 1: schedule"))
    assert [f.body == g.body for f, g in zip(unrolled[2:], plain[2:], strict=True)] == [True, False]


def test_a_skewed_nest_is_tiled() -> None:
    """Blocks of time and space, which the dependences of the nest as it is written forbid."""
    tiled = loops(scheduled(SEIDEL, "loop 1: skew i by s, j by 2*s + i", "loop 1: tile s:2, i:3, j:4"))
    assert [f.var for f in tiled] == ["outer_s", "outer_i", "outer_j", "s", "i", "j"]


WAVE = """
void f(int steps, float u[{n}][{n}], float v[{n}][{n}]) {{
  for (int t = 0; t < steps; t++) {{
    for (int i = 1; i < {n} - 1; i++)
      for (int j = 1; j < {n} - 1; j++)
        v[i][j] = 2 * u[i][j] - v[i][j] + u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1];
    for (int i = 1; i < {n} - 1; i++)
      for (int j = 1; j < {n} - 1; j++) {{ float s = u[i][j]; u[i][j] = v[i][j]; v[i][j] = s; }}
  }}
}}
"""


def test_sizes_that_are_constants_have_the_schedule_of_sizes_that_are_parameters() -> None:
    lines = ["loop 1: expand s", "loop 1: schedule parallel:outer"]
    found = []
    for text in (WAVE.format(n=320), WAVE.replace("int steps,", "int steps, int N,").format(n="N")):
        result = schedule(Analysis(load(text).codelet), parse_lines(lines))
        found.append([(f.var, f.mode) for f in walk(result.codelet.body) if isinstance(f, Loop)])
        proof = prove(load(text).codelet, result.codelet, {"steps": 3, "N": 320})
        assert proof.verdict == "proved", proof.reason
    assert found[0] == found[1]
