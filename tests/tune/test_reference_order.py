"""The order in which the original loops are run: along the rows, and every element as the loops as written leave it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings

from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.nodes import Assign, Codelet, If, Loop, Scalar
from looptune.ir.rewrite import walk_stmts
from looptune.tune.measure.reference_order import interchange_for_locality, transpose_for_locality
from tests.helpers import cross_check, random_nests
from tests.helpers.paths import POLYBENCH

GATLAS = POLYBENCH.parent / "gatlas"


def orders(text: str) -> list[str]:
    """The variables of each loop after those around it."""
    done = interchange_for_locality(cross_check.codelet_of(f"{text}\n"))
    return ["".join(f.var for f in around) for around in nests(done)]


def nests(codelet: Codelet) -> list[tuple[Loop, ...]]:
    def inside(body: object, around: tuple[Loop, ...]) -> list[tuple[Loop, ...]]:
        loops = [n for n in body if isinstance(n, Loop)] if isinstance(body, tuple) else []
        return [nest for f in loops for nest in (inside(f.body, (*around, f)) or [(*around, f)])]

    return inside(codelet.body, ())


PRODUCT = """void f(int n, float A[n][n], float B[n][n], float C[n][n]) {
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) { %s for (int k = 0; k < n; k++) %s }
}"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (PRODUCT % ("", "C[i][j] += A[i][k] * B[k][j];"), ["ikj"]),
        (PRODUCT % ("C[i][j] = 0;", "C[i][j] += A[i][k] * B[k][j];"), ["ij", "ikj"]),
        (PRODUCT % ("", "C[i][j] += A[i][k] * B[j][k];"), ["ijk"]),
        (PRODUCT % ("", "C[i][j] += A[k][i] * B[k][j];"), ["ikj"]),
        (PRODUCT % ("", "C[j][i] += A[k][i] * B[k][j];"), ["jki"]),
        # Flat arrays have rows, too.
        ("void f(int n, float x[n * n]) { for (int j = 0; j < n; j++) for (int i = 0; i < n; i++) x[n * i + j] = 1; }",
         ["ij"]),
        # What the loops as written leave depends on their order.
        ("void f(int n, float x[n]) { float t = 0; for (int j = 0; j < n; j++) for (int i = 0; i < n; i++) "
         "{ t = 0.5f * t + i; x[j] += t; } }", ["ji"]),
        ("void f(int n, float A[n][n]) { for (int j = 0; j < n - 1; j++) for (int i = 1; i < n; i++) "
         "A[i][j] = A[i - 1][j + 1]; }", ["ji"]),
    ],
)  # fmt: skip
def test_the_innermost_loop_goes_along_the_rows(text: str, found: list[str]) -> None:
    """Where each sum keeps its order; other loops keep theirs, too."""
    assert orders(text) == found


@pytest.mark.parametrize(
    ("text", "turned", "order"),
    [
        (PRODUCT % ("", "C[i][j] += A[i][k] * B[k][j];"), "", "ikj"),
        (PRODUCT % ("", "C[i][j] += A[i][k] * B[j][k];"), "B", "ikj"),
        (PRODUCT % ("", "C[i][j] += A[i][k] * A[j][k];"), "A", "ikj"),
        # Where two elements of a row are asked for at once it stays one.
        (PRODUCT % ("", "C[i][j] += A[i][k] * B[j][k / 2];"), "", "ijk"),
        # Two loops read a matrix once: to turn it would take as long.
        ("void f(int n, float A[n][n], float x[n], float y[n]) { for (int i = 0; i < n; i++) "
         "for (int j = 0; j < n; j++) y[i] += A[i][j] * x[j]; }", "", "ij"),
    ],
)  # fmt: skip
def test_matrices_that_lie_across_are_given_transposed(text: str, turned: str, order: str) -> None:
    """Where that makes vectors of the innermost of three loops."""
    codelet, names = transpose_for_locality(cross_check.codelet_of(f"{text}\n"))
    assert names == {*turned}
    assert ["".join(f.var for f in around) for around in nests(codelet)] == [order]


@pytest.mark.sampled(9, "wide")
@pytest.mark.parametrize(
    "path",
    [*sorted(POLYBENCH.glob("*.c")), GATLAS / "nt", GATLAS / "tt"],
    ids=lambda p: p.stem,
)
def test_what_is_left_is_the_same_to_the_bit(path: Path) -> None:
    """Of every kernel, in float: rounding shows each change of a sum's order."""
    macros = {"nt": ("TRANS_B",), "tt": ("TRANS_A", "TRANS_B")}.get(path.stem, ())
    file = path if path.exists() else GATLAS / "product.c"
    codelet = load(file, defines=dict.fromkeys(macros)).codelet
    sizes = {p.name: 5 + n for n, p in enumerate(p for p in codelet.params if isinstance(p, Scalar))}
    given = cross_check.arguments(codelet, sizes)
    made, turned = transpose_for_locality(codelet)
    other = {name: value.T.copy() if name in turned else value for name, value in given.items()}
    want, got = cross_check.interpreted(codelet, given), cross_check.interpreted(made, other)
    for name in {*want} - turned:
        np.testing.assert_array_equal(got[name].view(np.uint8), want[name].view(np.uint8), name)


@pytest.mark.wide
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(random_nests.program())
def test_any_loops_do_the_same(text: str) -> None:
    """Whatever they are, every iteration runs once; of a maximum that an `if` takes, others may take it."""
    codelet = load(text).codelet
    done = interchange_for_locality(codelet)
    asked = {
        s.name for f in walk_stmts(codelet.body) if isinstance(f, If) for s in walk_stmts(f) if isinstance(s, Assign)
    }
    note(c_printer.function(done))
    for n, m in random_nests.SIZES:
        (want, before), (got, after) = (random_nests.outcome(c, n, m) for c in (codelet, done))
        assert all(np.array_equal(want[name], got[name]) for name in want)
        ran = [sorted(at for at in trace if at[0] not in asked) for trace in (before, after)]
        assert ran[0] == ran[1]


def test_loops_that_never_run() -> None:
    """No iteration fulfils both conditions, so that the loops have no bounds of their own."""
    text = (
        "void f(int n, int m, double A[24][24], double B[24][24], double x[24], double y[24], double z[24]) {"
        " for (int i = n - 1; i >= 1; i -= 1) if (i < 2) if (i % 2 == 0)"
        " for (int j = n - 1; j >= 0; j -= 1) for (int k = 0; k < j + 1; k += 1) x[i + 8] = A[k + 8][i + 8] + k; }\n"
    )
    codelet = load(text).codelet
    for n, m in random_nests.SIZES:
        (want, before), (got, after) = (
            random_nests.outcome(c, n, m) for c in (codelet, interchange_for_locality(codelet))
        )
        assert all(np.array_equal(want[name], got[name]) for name in want)
        assert before == after == []
