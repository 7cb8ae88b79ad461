"""Integers that are set several times get a name for each use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from looptune.frontend import load
from looptune.poly.array_extent import required_extents
from tests.helpers.against_gcc import difference, verdicts

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "int k; void f(int n, int m, float *a, float *b, int *out) { int c = 3, w, x, y;"
FIRST = "for (y = 0; y < n; y++) for (x = 0; x < m; x++) { c = x + y * m; w = c; a[c] = b[w] + 1; }"
SECOND = "for (y = 0; y < n; y++) for (x = 0; x < m; x++) { c = x + y * m; b[c] = a[c] * 2; }"
BODIES = {
    "two nests": f"{FIRST} {SECOND} ",
    "both branches": f"for (w = 0; w < 3; w++) if (w % 2) {{ {FIRST} }} else {{ {SECOND} }} ",
    "read after": f"{FIRST} {SECOND} out[0] = c;",
    "read after the first": f"{FIRST} k = c; {SECOND} ",
    "zero iterations": "for (x = 5; x < n; x++) { c = x; a[c] = 1; } for (x = 0; x < c; x++) b[x] = c; out[0] = c;",
    "carried": "for (x = 0; x < n; x++) { a[x] = c; c = x; b[c] = c; c = c + 1; } ",
    "set again": "for (x = 0; x < n; x++) { c = x; a[c] = 1; c = c + n; b[c] = 2; c += 1; a[c] = 3; } out[0] = c;",
    "condition": "for (x = 0; x < n; x++) { if (b[x] > 0.5) c = x; a[x] = c; c = 2 * x; b[c] = 1; } ",
    "while": "c = 0; while (c < n) { w = c; a[w] = 1; w = w + n; b[w] = c; c++; } c = n; b[c] = 7; out[0] = w;",
    "shadowed": "for (x = 0; x < n; x++) c = x; { int c = 2; a[c] = 1; c = 4; b[c] = c; } a[c] = 2; c = 2; b[c] = c;",
    "global": "k = 1; a[k] = 1; for (x = 0; x < n; x++) k = n; b[k] = k; ",
    "passed": "n >>= 1; m -= 2; for (x = 0; x < n; x++) a[x] = m; n += 2; for (x = 0; x < n; x++) b[x] = n;",
    "changed at times": "if (m > 3) n--; m += n; for (x = 0; x < n; x++) a[x] = m; while (n) { b[n] = 1; n--; }",
    "parameter": "n = n - 1; for (x = 0; x < n; x++) a[x] = n; n = m; for (x = 0; x < n; x++) b[x] = n; out[0] = n;",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_result_is_that_of_gcc(body: str, tmp_path: Path) -> None:
    shapes = {"a": (99,), "b": (99,), "k": (1,), "out": (1,)}
    for n, m in ((6, 4), (0, 3)):
        assert difference(f"{HEAD} {body} }}\n", {"n": n, "m": m}, tmp_path, shapes) is None


def test_nests_that_share_an_index_variable_are_parallel() -> None:
    codelet = load(f"{HEAD} {BODIES['two nests']} }}\n").codelet
    assert set(verdicts(codelet).values()) == {"parallel"}


def test_a_changed_parameter_is_a_known_bound() -> None:
    """The loop then is a grid, and the extent of the array is known."""
    codelet = load("void f(double *x, int n) { n >>= 1; for (int i = 0; i < n; i++) x[i] *= 2; }\n").codelet
    assert required_extents(codelet) == {"x": ("(n >> 1)",)}


def test_a_part_of_a_function_keeps_what_is_read_after_it(tmp_path: Path) -> None:
    text = """int f(int n, int *a) {
      int k = 0, m = 0, c;
      for (int t = 0; t < n; t++) {
        m = 0; c = t; a[c] = 1; c = t + n;
        for (k = 1; k < n; k++) if (a[k] < a[m]) m = k;
      }
      return m * 100 + c; }
    """
    unit = load(text, kernel="f:3")
    assert {p.name for p in unit.codelet.params} == {"n", "a", "m", "c"}
    assert difference(text, {"n": 7}, tmp_path, {"a": (9,), "m": (1,), "c": (1,)}, "f:3") is None
