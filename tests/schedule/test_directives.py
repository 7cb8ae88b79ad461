"""Every directive does what its own examples show, and the result means what the original means."""

from __future__ import annotations

import numpy as np
import pytest

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.nodes import Loop
from looptune.ir.rewrite import walk
from looptune.ir.verify import verify
from looptune.lower.pipeline import lower
from looptune.lower.plan_check import prove_plan
from looptune.poly.translation_validation import prove
from looptune.schedule import directives
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.base import Example
from tests.helpers import cross_check
from tests.helpers.directive_examples import EXAMPLES, transformed

pytestmark = pytest.mark.sampled(2)


@pytest.mark.parametrize(("directive", "example"), EXAMPLES)
def test_an_example_becomes_what_it_shows(directive: str, example: Example) -> None:
    """``after`` is the body printed, with pragmas where it shows any; ``refused`` is part of a one-line message."""
    codelet = load(example.program(directive)).codelet
    if example.refused:
        with pytest.raises(LooptuneError) as refused:
            transformed(codelet)
        assert example.refused in refused.value.message
        assert "\n" not in refused.value.message
        assert refused.value.span.line > 0
        return
    assert c_printer.body(transformed(codelet), indent="", pragmas="#pragma" in example.after) == example.after


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize(("directive", "example"), EXAMPLES)
@pytest.mark.parametrize("sizes", [(7, 5), (8, 4), (1, 1), (2, 3), (16, 17)], ids=lambda s: f"n={s[0]},m={s[1]}")
def test_an_example_keeps_its_meaning(directive: str, example: Example, sizes: tuple[int, int]) -> None:
    """Original and result leave the same bits, at sizes the factors divide and at sizes they do not."""
    if example.refused:
        pytest.skip("refused")
    codelet = load(example.program(directive)).codelet
    changed = verify(transformed(codelet))
    given = cross_check.arguments(codelet, {"n": sizes[0], "m": sizes[1]})
    if "noremainder" in directive and sizes[0] % 2:
        pytest.skip("the user asserts that nothing is left over")
    assert cross_check.off(cross_check.interpreted(codelet, given), cross_check.interpreted(changed, given)) is None


@pytest.mark.parametrize("cls", directives.ALL, ids=lambda c: c.name)
def test_every_directive_has_examples(cls: type[directives.Transform]) -> None:
    """At least one that is accepted, and a syntax line that opens with the directive's word."""
    assert any(e.after for e in cls.examples.values())
    assert cls.syntax.lower().startswith(cls.name)


FIGURE_1 = {
    "unroll 2": """\
for (int i = 0; i < n / 2; i++) {
  B[2 * i] = A[2 * i];
  B[2 * i + 1] = A[2 * i + 1];
}
for (int i = n - n % 2; i < n; i++) {
  B[i] = A[i];
}""",
    "unroll 2, split": """\
for (int i = 0; i < n / 2; i++) {
  B[i] = A[i];
  B[i + n / 2] = A[i + n / 2];
}
for (int i = n - n % 2; i < n; i++) {
  B[i] = A[i];
}""",
    "tile i:2": """\
for (int outer_i = 0; outer_i < (n + 1) / 2; outer_i++) {
  for (int i = 2 * outer_i; i < (2 * outer_i + 2 < n ? 2 * outer_i + 2 : n); i++) {
    B[i] = A[i];
  }
}""",
}


@pytest.mark.parametrize("directive", FIGURE_1)
def test_figure_1_of_the_paper(directive: str) -> None:
    """Contiguous and split unrolling and tiling of ``B[i] = A[i]``, as Grauer-Gray et al. (InPar 2012) draw them."""
    text = Example("for (int i = 0; i < n; i++)\n    B[i] = A[i];").program(directive)
    assert c_printer.body(transformed(load(text).codelet), indent="") == FIGURE_1[directive]


def test_known_sizes_give_known_bounds() -> None:
    """A constant trip count leaves no remainder loop where the factor divides it, and one with constants where not."""
    text = "void f(float A[12]) {\n#pragma hmppcg unroll U\nfor (int i = 0; i < 12; i++) A[i] += 1;\n}\n"
    exact = c_printer.body(transformed(load(text, defines={"U": 4}).codelet), indent="")
    assert exact.count("for") == 1
    assert "i < 3" in exact
    left = c_printer.body(transformed(load(text, defines={"U": 5}).codelet), indent="")
    assert "for (int i = 0; i < 2; i++)" in left
    assert "for (int i = 10; i < 12; i++)" in left
    assert np.array_equal(*(_run(text, u) for u in (4, 5)))


def _run(text: str, factor: int) -> np.ndarray:
    codelet = transformed(load(text, defines={"U": factor}).codelet)
    return cross_check.interpreted(codelet, cross_check.arguments(codelet, {}))["A"]


WAVE = """
void f(int n, int m, double A[n][m], double B[m])
{ for (int k = 1; k < n; k++) for (int j = 1; j < m; j++) { A[k][j] = A[k - 1][j - 1] + 1; B[j] = A[k][j]; } }
"""
APART = WAVE.replace("A[k - 1][j - 1]", "A[k - 1][j]")


def modes(*lines: str, text: str = WAVE) -> dict[str, str]:
    codelet = load(text).codelet
    done = schedule(Analysis(codelet), parse_lines(lines)).codelet
    assert prove(codelet, done).verdict == "proved"
    assert prove_plan(codelet, lower(done)).verdict == "proved"
    return {n.var: n.mode for n in walk(done.body) if isinstance(n, Loop)}


def test_copies_of_a_loop_in_order_may_bind_the_loops_inside() -> None:
    """Jammed iterations of a loop that carries a dependence meet in those of a parallel loop inside, which runs in
    order then, but where one needs the other in the same iteration only; ``parallel`` on it is refused."""
    assert modes()["j"] == modes("loop k: unroll 2")["j"] == "parallel"
    assert modes("loop k: unroll 2, jam")["j"] == "sequential"
    assert modes("loop k: unroll 2, jam", text=APART)["j"] == "parallel"
    assert modes("loop k: unroll 2, jam", "loop j: unroll 2, split", text=APART)["k"] == "sequential"
    tiled = modes("loop k: unroll 2, jam", "loop j: tile 2")
    assert (tiled["outer_j"], tiled["j"]) == ("sequential", "sequential")
    with pytest.raises(LooptuneError, match="loop j, which is to be parallel, would carry a dependence: iteration"):
        modes("loop k: unroll 2, jam", "loop j: parallel")


_SUNK = """
void f(int n, float A[n][n], float x[n], float y[n]) {
  for (int i = 0; i < n; i++) {
    if (i > 1) {
      for (int j = 0; j < n; j++) y[j] = x[j] + i;
      x[0] = 1;
      x[1] = x[0];
    }
    for (int k = 0; k < n; k++)
      for (int j = 0; j < n; j++) A[j][k] += y[i];
  }
}
"""


def test_what_is_sunk_into_a_loop_of_the_same_name_is_renamed_and_stays_in_order() -> None:
    """An ``if`` with a loop j beside loops k and j: it computes the same, and each of its statements has its time."""
    original = load(_SUNK).codelet
    done = schedule(Analysis(original), parse_lines(["loop 1: permute i, j, k"]))
    assert prove(original, done.codelet).verdict == "proved"
    times = [piece.time for name in ("S1", "S2") for piece in done.order[name]]
    assert len(set(times)) == 2


_APART = """
void f(int n, int m, float D[n][m], float F[m][n], float B[n], float E[m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      D[i][j] = 0;
      for (int k = 0; k < n; k++) {
        float t = B[i] - E[j];
        for (int l = 0; l < m; l++) {
          float s = t * F[l][k];
          D[i][j] += s * s;
        }
      }
    }
}
"""


@pytest.mark.sampled(40, "wide")
@pytest.mark.parametrize(
    ("words", "loops"),
    [*((words, loops) for words in ("jam", "split, jam", "guarded, jam") for loops in ("ij", "jk")), ("jam", "ijk")],
)
def test_copies_of_copies_have_locals_of_their_own(loops: str, words: str) -> None:
    """Several loops jammed around a temporary: each of the copies has its own, and what is left is the same."""
    original = load(_APART).codelet
    done = schedule(Analysis(original), parse_lines([f"loop {v}: unroll 2, {words}" for v in loops])).codelet
    assert prove(original, done).verdict == "proved"
    assert prove_plan(original, lower(done)).verdict == "proved"
    given = cross_check.arguments(original, {"n": 5, "m": 3})
    assert cross_check.off(cross_check.interpreted(original, given), cross_check.interpreted(done, given), 1e-5) is None
