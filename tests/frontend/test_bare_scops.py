"""Scops that stand outside of every function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from looptune.core.errors import LooptuneError
from looptune.deploy.source_to_source import transform
from looptune.frontend import load
from looptune.ir.nodes import Array
from tests.helpers.against_gcc import difference

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
#include <math.h>
#define N 40
double A[N][N], B[N][N];
/* { a comment } */
#pragma scop
for (i = 0; i < N; i++)
  for (j = 0; j < M; j++) {
    A[i][j] = B[j][i] * alpha + x[i];
    if (A[i][j] > best) best = A[i][j];
  }
#pragma endscop
void g(void) { }
#pragma scop
for (t = 0; t < T; t++)
  for (i = 1; i < n - 1; i++) u[i] = (u[i - 1] + u[i + 1]) * 0.5;
#pragma endscop
"""


def test_what_is_not_declared_is_declared_by_its_use() -> None:
    first, second = (load(TEXT, kernel=k).codelet.params for k in ("scop_5", "scop_13"))
    assert {p.name: p.dtype for p in first} == {
        "M": "int32", "alpha": "float64", "x": "float64", "A": "float64", "B": "float64", "best": "float64",
    }  # fmt: skip
    assert [(p.name, p.dtype, isinstance(p, Array)) for p in second] == [
        ("T", "int32", False), ("n", "int32", False), ("u", "float64", True),
    ]  # fmt: skip
    assert [p.name for p in load(TEXT, kernel="scop_5").codelet.params if isinstance(p, Array)][-1] == "best"


def test_they_compute_what_gcc_computes(tmp_path: Path) -> None:
    assert difference(TEXT, {"M": 7, "alpha": 1.5}, tmp_path, {"x": (40,)}, "scop_5") is None
    assert difference(TEXT, {"T": 3, "n": 9}, tmp_path, {"u": (9,)}, "scop_13") is None


def test_places_are_those_of_the_file() -> None:
    unit = load(TEXT, kernel="scop_13")
    assert unit.codelet.body[0].span.line == 14
    assert unit.codelet.body[0].span.text == "for (t = 0; t < T; t++)"


FRAGMENT = """\
#pragma scop
for (i = max(1, n - 7); i <= min(n - 2, floord(m, 2)); i++)
  for (j = ceild(n - 9, 2); j < n; ++(j))
    if (!(i > 3 || j % 3 == 1) && j > 0) C[i][j] = C[i - 1][j - 1] + D[i][j][0];
#pragma endscop
"""
LOOPS = """\
int n;
/* for (x = 0; x < n; x++) ; */
for (i = 0; i < n; i++) { if (i > 2) v[i] = 1; else v[i] = w[i]; }
for (i = 0; i < n; i++)
  for (j = 0; j <= i; j++) v[i] += w[j]; /* the end */
void f(void) { for (int i = 0; i < 3; i++) ; }
"""


def test_a_matrix_has_its_extents_as_parameters(tmp_path: Path) -> None:
    """What generators of loops call is defined; each extent but the first is a parameter."""
    unit = load(FRAGMENT)
    shapes = {p.name: p.shape for p in unit.codelet.params if isinstance(p, Array)}
    assert {n: [None if e is None else e.name for e in s] for n, s in shapes.items()} == {
        "C": [None, "C_2"], "D": [None, "D_2", "D_3"],
    }  # fmt: skip
    for n, m in ((12, 20), (5, -3), (9, 30)):
        sizes = {"n": n, "m": m, "C_2": 13, "D_2": 14, "D_3": 2}
        assert difference(FRAGMENT, sizes, tmp_path, {"C": (12, 13), "D": (12, 14, 2)}) is None


def test_loops_without_pragmas_are_scops(tmp_path: Path) -> None:
    unit = load(LOOPS, kernel="scop_3")
    assert [s.span.line for s in unit.codelet.body] == [3, 4]
    assert difference(LOOPS, {"n": 7}, tmp_path, {"v": (7,), "w": (7,)}, "scop_3") is None


def test_their_file_is_not_transformed(tmp_path: Path) -> None:
    path = tmp_path / "nest.c"
    path.write_text("#pragma scop\nfor (i = 0; i < n; i++) a[i] = 1;\n#pragma endscop\n")
    with pytest.raises(LooptuneError, match="a scop outside of every function cannot be transformed"):
        transform(path, ["loop i: unroll 2"])


@pytest.mark.parametrize(("before", "after"), [("#if 0\n", "#endif\n"), ("/*\n", "*/\n")])
def test_one_that_is_not_compiled_is_none(before: str, after: str) -> None:
    scop = "#pragma scop\nfor (i = 0; i < n; i++) a[i] = 1;\n#pragma endscop\n"
    text = f"{before}{scop}{after}void f(int n, double *a) {{ for (int i = 0; i < n; i++) a[i] = 2; }}\n"
    assert load(text).codelet.name == "f"


@pytest.mark.parametrize(
    "function",
    ["void f(int n, double *a) BEGIN\n  double t;\nfor (int i = 0; i < n; i++) a[i] = 2;\nEND\n",
     "void f(n, a) int n; double *a;\n{\nfor (int i = 0; i < n; i++) a[i] = 2;\n}\n"],
)  # fmt: skip
def test_loops_of_functions_stay_there(function: str) -> None:
    """Also where macros stand for braces, or parameters are declared before them."""
    assert load(f"#define BEGIN {{\n#define END }}\n{function}").codelet.name == "f"
