"""Which sums a directive reorders: those and no others, by name and place."""

from __future__ import annotations

import json

import numpy as np
import pytest

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.ir import interpreter
from looptune.ir.nodes import Codelet
from looptune.report.check import json as loops_json
from looptune.report.check import text as loops
from looptune.report.check.explanation import explain
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines

ROWS = """\
void f(int n, int m, double A[n][m], double x[m], double y[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      y[i] += A[i][j] * x[j];
}
"""
LOCAL = """\
void f(int n, int m, double A[n][m], double y[n]) {
  for (int i = 0; i < n; i++) {
    double s = 0;
    for (int j = 0; j < m; j++)
      s += A[i][j];
    y[i] = s;
  }
}
"""
TWO = """\
void f(int n, double A[n], double *s, int *k, double *most) {
  for (int i = 0; i < n; i++) {
    *s += A[i];
    *k += i;
    *most = *most > A[i] ? *most : A[i];
  }
}
"""
TURNED = """\
void f(int n, double A[n][n], double C[n][n], double *s) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      C[i][j] = A[i][j];
      *s *= A[j][i];
    }
}
"""

SAID = {
    "another order of the loops keeps each row's": (ROWS, ("nest i: permute j, i",), ""),
    "rows apart": (ROWS, ("loop i: unroll 4, split, jam",), ""),
    "neighbours one after the other": (ROWS, ("loop j: unroll 4",), ""),
    "distant ones in turn": (ROWS, ("loop j: unroll 4, split",), "+:y (4:7)"),
    "blocks of rows and columns": (ROWS, ("nest i: tile i:2, j:2",), ""),
    "threads": (ROWS, ("loop j: parallel",), "+:y (4:7)"),
    "threads for rows": (ROWS, ("loop i: parallel",), ""),
    "one directive of two": (ROWS, ("nest i: permute j, i", "loop j: unroll 2, split"), "+:y (4:7)"),
    "each row's own local": (LOCAL, ("loop i: unroll 2, split, jam",), ""),
    "the local's terms": (LOCAL, ("loop j: unroll 2, split",), "+:s (5:7)"),
    "not what is exact": (TWO, ("loop i: parallel",), "+:s (3:5), max:most (5:5)"),
    "a product through a pointer": (TURNED, ("nest i: permute j, i",), "*:s (5:7)"),
    "pieces": (TURNED, ("loop i: distribute",), ""),
}  # fmt: skip


@pytest.mark.parametrize(("text", "lines", "sums"), SAID.values(), ids=SAID)
def test_a_directive_says_which_sums_it_reorders(text: str, lines: tuple[str, ...], sums: str) -> None:
    """By op, variable and place; without any of them it is legal where sums keep their order, too."""
    unit = load(text)
    done = schedule(Analysis(unit.codelet), parse_lines(lines, "lines"), sums=True)
    assert ", ".join(map(str, done.sums)) == sums
    strict = schedule(Analysis(unit.codelet, reassociate=False), parse_lines(lines, "lines"), keep_going=True)
    assert any(s.refusal is not None for s in strict.steps) == bool(sums)


def test_only_the_directive_that_reorders_a_sum_is_said_to() -> None:
    """A later directive is not blamed for what an earlier one did, and where nobody asks nothing is said."""
    lines = parse_lines(("nest i: permute j, i", "loop j: unroll 2, split", "loop i: unroll 2, split"), "lines")
    unit = load(TURNED)
    done = schedule(Analysis(unit.codelet), lines, sums=True)
    assert [(s.text, [x.clause for x in s.sums]) for s in done.steps] == [
        ("permute j, i", ["*:s"]), ("unroll 2, split", ["*:s"]), ("unroll 2, split", ["*:s"]),
    ]  # fmt: skip
    first = schedule(Analysis(unit.codelet), lines[:1], sums=True)
    noop = schedule(Analysis(unit.codelet), [*lines[:1], *parse_lines(("loop i: unroll 2",), "lines")], sums=True)
    assert first.sums == noop.sums
    assert noop.steps[-1].sums == ()
    assert schedule(Analysis(unit.codelet), lines).sums == ()


def test_check_says_it_in_words_and_fields() -> None:
    """``proved, reordering +:y (4:7)`` in the text, op, variable and place in the JSON."""
    unit = load(ROWS)
    found = explain(unit, parse_lines(("loop j: unroll 2, split", "loop i: noParallel"), "lines"))
    said = loops.text(found).splitlines()
    assert "  loop 2  unroll 2, split  proved, reordering +:y (4:7)" in said
    assert "  loop 1  noparallel       proved" in said
    record = json.loads(json.dumps(loops_json.record(found)))
    place = {"file": "<source>", "line": 4, "column": 7}
    assert [d["reorders"] for d in record["directives"]] == [[{"op": "+", "variable": "y[i]", **place}], []]
    strict = explain(unit, parse_lines(("nest i: permute j, i",), "lines"), reassociate=False)
    assert "permute j, i  proved\n" in loops.text(strict)


TARGETS = ("s[0]", "y[i]", "y[j]", "y[i + j]", "y[i / 2]", "y[n - 1 - j]", "C[i][j]", "C[j][0]", "t")
BESIDE = ("", "D[i][j] = A[j][i];", "y[j] += D[j][i];", "if (j > i) s[1] += A[i][j];")
CHANGES = (
    "nest i: permute j, i", "nest i: tile i:2, j:2", "loop i: tile i:2", "loop j: unroll 2", "loop j: unroll 2, split",
    "loop i: unroll 2, jam", "loop i: unroll 3, split, jam, guarded", "loop i: parallel", "loop j: parallel",
    "nest i: gridify(i, j)",
)  # fmt: skip


@pytest.mark.sampled(5, "wide")
@pytest.mark.parametrize("target", TARGETS)
def test_a_directive_reorders_sums_where_and_only_where_their_order_would_forbid_it(target: str) -> None:
    """It says so exactly where --no-reassociate refuses it; where it does not, random floats keep their last bit."""
    for beside in BESIDE:
        codelet = load(
            "void f(int n, double A[n][n], double C[n][n], double D[n][n], double y[n + n], double s[2],"
            " double x[n]) {\n  for (int i = 0; i < n; i++) {\n    double t = 0;\n    for (int j = 0; j < n; j++) {\n"
            f"      {target} += A[i][j] * A[j][i];\n      {beside}\n    }}\n    x[i] = t;\n  }}\n}}\n"
        ).codelet
        before = left_by(codelet)
        loose, strict = Analysis(codelet), Analysis(codelet, reassociate=False)
        for line in CHANGES:
            placed = parse_lines((line,), "lines")
            try:
                done = schedule(loose, placed, sums=True)
            except LooptuneError:
                continue
            kept = all(s.refusal is None for s in schedule(strict, placed, keep_going=True).steps)
            assert kept == (not done.sums), (line, beside)
            after = left_by(done.codelet)
            assert done.sums or all(np.array_equal(before[a], after[a]) for a in before), (line, beside)


def left_by(codelet: Codelet) -> dict[str, np.ndarray]:
    """What the codelet leaves in its arrays, filled alike each time, for n = 5."""
    draw = np.random.default_rng(3).uniform
    arrays = {a: draw(0.1, 1, size=shape) for a, shape in
              {"A": (5, 5), "C": (5, 5), "D": (5, 5), "y": (10,), "s": (2,), "x": (5,)}.items()}  # fmt: skip
    interpreter.run(codelet, arrays, {"n": 5})
    return arrays
