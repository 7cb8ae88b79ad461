"""Local arrays of which each iteration of a loop has its own: found, mapped to threads, copied with the loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.backends import openmp
from looptune.core.errors import IllegalTransform
from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.nodes import Codelet, Loop
from looptune.ir.rewrite import walk
from looptune.lower.passes.openmp_scalars import accumulate_in_scalars
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.lower.plan_check import prove_plan
from looptune.poly.translation_validation import prove
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check

SMOOTHED = """
void f(int n, float A[n][6], float B[n][6]) {
  for (int i = 0; i < n; i++) {
    float h[6];
    for (int d = 0; d < 6; d++) h[d] = A[i][d];
    for (int d = 1; d < 6; d++) if (h[d - 1] + 1 < h[d]) h[d] = h[d - 1] + 1;
    for (int d = 0; d < 6; d++) B[i][d] = h[d];
  }
}
"""
AT_THE_TOP = SMOOTHED.replace("    float h[6];\n", "").replace("{\n  for", "{\n  float h[6];\n  for", 1)
CARRIED = SMOOTHED.replace("    float h[6];\n", "").replace(
    "{\n  for", "{\n  float h[6];\n  for (int d = 0; d < 6; d++) h[d] = 0;\n  for", 1
).replace("h[d] = A[i][d];", "h[d] += A[i][d];")  # fmt: skip
ON_DATA = """
void f(int n, float x[n], float y[n]) {
  for (int i = 0; i < n; i++) {
    float h[2];
    if (x[i] > 0) h[0] = x[i];
    if (x[i] > 0) y[i] = h[0];
  }
}
"""


def scheduled(text: str, *lines: str) -> Codelet:
    return schedule(Analysis(load(text).codelet), parse_lines(list(lines))).codelet


def planned(text: str, *lines: str) -> Plan:
    return lower(scheduled(text, *lines))


@pytest.mark.parametrize("text", [SMOOTHED, AT_THE_TOP])
def test_wherever_it_is_declared_each_thread_has_its_own(text: str) -> None:
    """What counts is that no value goes from one iteration to another, not where the declaration stands."""
    made = planned(text)
    (kernel,) = made.kernels
    assert [axis.var for axis in kernel.axes] == ["i"]
    assert [v.name for v in kernel.locals] == ["h"]
    assert made.device_locals == ()
    assert prove_plan(load(text).codelet, made).verdict == "proved"


def test_one_that_carries_values_stays_in_memory() -> None:
    """Iterations that use what others left in it run in order."""
    made = planned(CARRIED)
    assert [v.name for v in made.device_locals] == ["h"]
    assert next(f for f in walk(made.codelet.body) if isinstance(f, Loop) and f.var == "i").mode == "sequential"
    assert prove_plan(load(CARRIED).codelet, made).verdict == "proved"


def test_a_declaration_in_a_loop_says_that_nothing_is_left_over() -> None:
    """Where data decide on all writes, only the place of the declaration tells that no other iteration's are read."""
    assert scheduled(ON_DATA).body[0].mode == "parallel"
    outside = ON_DATA.replace("    float h[2];\n", "").replace("{\n  for", "{\n  float h[2];\n  for", 1)
    assert scheduled(outside).body[0].mode == "sequential"
    for text in (ON_DATA, outside):
        assert prove_plan(load(text).codelet, planned(text)).verdict == "proved"


def test_it_is_declared_in_the_loop_again() -> None:
    """The C that is printed has the declaration where an iteration's own stands, and reads as the same codelet."""
    done = scheduled(AT_THE_TOP)
    text = c_printer.function(done)
    assert "i++) {\n    float h[6];\n" in text
    again = load(text).codelet
    assert [f.private_arrays for f in walk(again.body) if isinstance(f, Loop)] == [("h",), (), (), ()]
    assert "#pragma omp parallel for\n  for (int i = 0; i < n; i++) {\n    float h[6];\n" in openmp.text(
        accumulate_in_scalars(done)
    )


def test_copies_that_interleave_have_one_each() -> None:
    """Jammed copies of an iteration, and copies of these, compute in arrays and scalars of their own."""
    nested = """
    void f(int n, double A[n][n], double B[n][n], double C[n][n][n]) {
      for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
          for (int k = 0; k < n; k++) {
            double t = A[i][k], h[2];
            for (int p = 0; p < 2; p++) h[p] = t + p * C[i][j][k];
            B[i][j] += h[0] * h[1];
          }
    }"""
    codelet = load(nested).codelet
    done = scheduled(nested, "loop i: unroll 2, jam", "loop j: unroll 2, jam")
    assert sorted(v.name for v in done.locals) == ["h", "h_1", "h_1_1", "h_1_2", "t", "t_1", "t_1_1", "t_1_2"]
    given = cross_check.arguments(codelet, {"n": 5})
    assert cross_check.off(cross_check.interpreted(codelet, given), cross_check.interpreted(done, given)) is None
    assert prove(codelet, done, {"n": 4}).verdict == "proved"
    (first, *_) = lower(done).kernels
    assert len([v for v in first.locals if v.shape]) == 4


def test_loops_side_by_side_share_no_thread() -> None:
    """One array used by two nests is each nest's own; one that the first leaves for the second is in memory."""
    again = "  for (int i = 0; i < n; i++) {\n    h[0] = i;\n    B[i][0] += h[0];\n  }\n"
    apart = AT_THE_TOP.replace("}\n}\n", f"}}\n{again}}}\n")
    made = planned(apart)
    assert [[v.name for v in k.locals] for k in made.kernels] == [["h"], ["h"]]
    assert made.device_locals == ()
    left = AT_THE_TOP.replace("}\n}\n", "}\n  for (int i = 0; i < n; i++) B[i][0] += h[0];\n}\n")
    assert [v.name for v in planned(left).device_locals] == ["h"]


def test_an_order_refused_for_passes_over_it_has_a_witness() -> None:
    """Minima in place are accumulations to the analysis: that two of them change places is shown all the same. Rows
    whose passes stay as they are may change places, those whose passes were jammed before too."""
    passes = """
    void f(int n, float A[n][4][6]) {
      for (int i = 0; i < n; i++)
        for (int m = 0; m < 4; m++) {
          float h[6];
          for (int d = 0; d < 6; d++) h[d] = A[i][m][d];
          for (int d = 1; d < 6; d++) h[d] = h[d - 1] + 1 < h[d] ? h[d - 1] + 1 : h[d];
          for (int d = 4; d >= 0; d--) h[d] = h[d + 1] + 1 < h[d] ? h[d + 1] + 1 : h[d];
          for (int d = 0; d < 6; d++) A[i][m][d] = h[d];
        }
    }"""
    assert lower(scheduled(passes, "loop m: unroll 4, jam")).device_locals == ()
    with pytest.raises(IllegalTransform, match=r"unroll 2, split is illegal: iteration .* must run before"):
        scheduled(passes, "loop 4: unroll 2, split")
    rows = scheduled(passes, "loop m: unroll 4, jam", "loop i: unroll 2, split")
    assert prove(load(passes).codelet, rows).verdict == "proved"


@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
@pytest.mark.parametrize("lines", [(), ("loop i: unroll 2, jam",), ("loop 2: unroll 6", "loop 3: unroll 5")])
def test_on_a_gpu_it_is_in_registers(lines: tuple[str, ...], tmp_path: Path) -> None:
    """Loops of constant length leave no subscript that is not, so that nothing is left in local memory."""
    binary = targets.backend("numba-cuda", tmp_path).build(planned(SMOOTHED, *lines))
    assert "h = cuda.local.array(6, float32)" in binary.source
    assert [r.local_bytes for r in binary.resources] == [0] * len(binary.resources)


@pytest.mark.parametrize("line", ["loop 2: tile j:1, p:3", "loop 2: tile j:1, p:4"])
def test_what_is_left_beside_inner_loops_lives_as_long_as_they_run(line: str) -> None:
    """In strips of one iteration nothing changes places, and yet the loop in the strip is come to in every block of the
    inner one: what it left for that one is still there."""
    text = """
void f(int n, double x[24], double z[24]) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < n; j++) {
      double h[4];
      h[0] = z[9]; h[1] = j; h[2] = h[0]; h[3] = 2;
      for (int p = 0; p < 4; p++) x[p + 8] += h[p];
    }
}
"""
    done = scheduled(text, line)
    assert prove(load(text).codelet, done).verdict == "proved"
    strip = next(n for n in walk(done.body) if isinstance(n, Loop) and n.var == "outer_j")
    point = next(n for n in walk(done.body) if isinstance(n, Loop) and n.var == "j")
    assert (strip.private_arrays, point.private_arrays) == (("h",), ())


def test_points_of_a_tile_that_share_an_array_are_sequential() -> None:
    """Between the loop that declares the array and the points of its tile stands the loop over the other's tiles."""
    text = """
    void f(int n, double A[4][n], double x[n]) {
      for (int i = 0; i < n; i++) {
        double h[4];
        for (int p = 0; p < 4; p++) h[p] = A[p][i];
        x[i] = h[1];
      }
    }
    """
    original, tiled = load(text).codelet, scheduled(text, "loop 1: tile i:3, p:4")
    modes = {f.var: f.mode for f in walk(tiled.body) if isinstance(f, Loop)}
    assert modes["outer_i"] == "parallel"
    assert modes["i"] == "sequential"
    proof = prove(original, tiled)
    assert proof.verdict == "proved", proof.reason
