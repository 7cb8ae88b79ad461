"""``_Float16`` is computed in float and rounded where it is stored, as in gcc: types, constants, sums, messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from looptune.core.errors import UnsupportedError
from looptune.frontend import load
from looptune.ir import c_printer
from tests.helpers import all_targets, cross_check
from tests.helpers.explanations import explained

EXPRESSIONS = (
    "a[i] * b[i]", "a[i] * b[i] + a[i]", "(_Float16)(a[i] * b[i]) + a[i]", "a[i] + 2049", "a[i] * 70000",
    "a[i] == k[i]", "(_Float16)k[i] == k[i]", "a[i] < k[i] + 1", "-a[i] * 3", "+a[i] / b[i]", "!a[i]", "a[i] && b[i]",
    "a[i] ? b[i] : k[i]", "k[i] ? a[i] * b[i] : 0.1f16", "1.1f16", "(double)1.1F16 * a[i]", "0x1.5p-3f16 + a[i]",
    "a[i] + 0.1f", "a[i] + 0.1", "(_Float16)0.1 * a[i]",
    "(int)(a[i] < 7e4f ? a[i] * 2 : 0)", "(_Bool)a[i]", "(_Float16)d[i]",
    "(_Float16)k[i]", "(_Float16)(float)d[i]", "sqrtf(a[i] * a[i])", "fabs(a[i])", "fmaxf(a[i], b[i] * b[i])",
    "isinf(a[i] * a[i])", "isinf(a[i] * 1.0f * a[i])", "isfinite(a[i] + a[i])", "isnormal(a[i])",
    "isnormal((float)a[i])", "isnan(a[i] - a[i])", "!signbit(-a[i])", "square(a[i])", "square(a[i] * b[i]) * 3",
    "isgreater(a[i] * b[i], a[i])", "sizeof(_Float16) + sizeof(a[i])",
)  # fmt: skip
STATEMENTS = (
    "h[i] = d[i];", "h[i] += a[i] * b[i];", "h[i] += d[i] * 3;", "h[i] *= k[i];", "h[i]++;", "h[i] = k[i];",
    "h[i] -= 0.0004; h[i] += 0.0004;", "_Float16 t = a[i] * b[i]; h[i] = t - b[i];", "h[i] = third;",
    "float s = 0; for (int j = 0; j < n; j++) s += a[j] * b[j]; h[i] = s;",
    "_Float16 s = 0; for (int j = 0; j < n; j++) s += a[j] * b[j]; h[i] = s;", "h[i] = alpha * a[i];",
    "struct { _Float16 re, im; } z; z.re = a[i]; z.im = b[i] * 3; h[i] = z.re * z.im;",
)  # fmt: skip
LEADING = """\
#include <math.h>
static const _Float16 third = 1.0 / 3;
static inline _Float16 square(_Float16 x) { return x * x; }
"""
PARAMETERS = "int n, _Float16 alpha, _Float16 a[n], _Float16 b[n], double d[n], int k[n]"


def text_of_all() -> str:
    """A function with a loop over the expressions, and one over the statements."""
    values = "\n".join(f"    r[{j}][i] = {e};" for j, e in enumerate(EXPRESSIONS))
    stored = "\n".join(f"    {{ {s.replace('h[i]', f'h[{j}][i]')} }}" for j, s in enumerate(STATEMENTS))
    params = f"{PARAMETERS}, double r[{len(EXPRESSIONS)}][n], _Float16 h[{len(STATEMENTS)}][n]"
    return f"{LEADING}void f({params})\n{{\n  for (int i = 0; i < n; i++) {{\n{values}\n{stored}\n  }}\n}}\n"


def arguments() -> cross_check.Arguments:
    a = np.array([0, -0.0, 1.5, 0.1, 2049, 60000, -65504, 6e-8, 1e-5, np.inf, 1.001, -3.25], np.float16)
    n = len(a)
    d = np.array([1 + 2**-11 + 2**-40, 65519.99, 65520, -1e300, 1e-8, 2**-25, 2**-25 * 1.0001, 0.1, 1e5, -0.0, 3, 7])
    k = np.array([0, 1, -1, 2048, 2049, 4097, 65519, 65520, 100000, -2147483647, 3, 12345], np.int32)
    return {
        "n": n, "alpha": 0.1, "a": a, "b": a[::-1].copy(), "d": d, "k": k,
        "r": np.zeros((len(EXPRESSIONS), n)), "h": np.ones((len(STATEMENTS), n), np.float16),
    }  # fmt: skip


def test_every_expression_has_the_value_and_the_type_of_gcc(tmp_path: Path) -> None:
    """The interpreter, and the C that is printed, leave gcc's bits: also where a macro asks for the type."""
    text, given = text_of_all(), arguments()
    given["alpha"] = float(np.float16(0.1))
    codelet = load(text).codelet
    want = cross_check.by_gcc(text, codelet, given, tmp_path)
    printed = LEADING + c_printer.function(codelet)
    folder = tmp_path / "printed"
    folder.mkdir()
    for got in (cross_check.interpreted(codelet, given), cross_check.by_gcc(printed, codelet, given, folder)):
        for name, rows in (("r", EXPRESSIONS), ("h", STATEMENTS)):
            for row, expected, have in zip(rows, want[name], got[name], strict=True):
                np.testing.assert_array_equal(have, expected, err_msg=row)


def test_the_c_that_is_printed_does_not_depend_on_the_compiler(tmp_path: Path) -> None:
    """A product of two halves is printed with a cast, so that a compiler that rounds each operation computes it too."""
    codelet = load(
        "void f(int n, _Float16 a[n], float c[n])\n{ for (int i = 0; i < n; i++) c[i] += a[i] * a[i] + 2049; }"
    ).codelet
    assert "c[i] += a[i] * (float)a[i] + 2049;" in c_printer.function(codelet)
    codelet = load("void f(int n, _Float16 a[n])\n{ for (int i = 0; i < n; i++) a[i] += a[i] + 1; }").codelet
    assert "a[i] += a[i] + (float)1;" in c_printer.function(codelet)


DOT = "void f(int n, _Float16 x[n], _Float16 y[n], {0} s[1])\n{{ for (int i = 0; i < n; i++) s[0] += x[i] * y[i]; }}"


def test_a_sum_of_halves_keeps_its_order() -> None:
    """A float that halves are added to is a sum; a half is rounded after every term, and its order is its meaning."""
    (sum_,), (rounded,) = (explained(DOT.format(kind)).loops for kind in ("float", "_Float16"))
    assert [r.op for r in sum_.reductions] == ["+"]
    assert (rounded.kind, rounded.reductions) == ("sequential", ())


@pytest.mark.parametrize(
    ("statement", "op"),
    [
        ("s = (_Float16)(s + x[i]);", None),
        ("s = (_Float16)s * x[i];", None),
        ("if ((_Float16)y[i] > s) s = y[i];", None),
        ("s = (_Float16)y[i] > s ? y[i] : s;", None),
        ("s += (_Float16)(x[i] * y[i]);", "+"),
        ("if ((_Float16)y[i] > x[i]) s += y[i];", "+"),
        ("if (x[i] > s) s = x[i];", "max"),
        ("s = fmaxf(s, (_Float16)y[i]);", "max"),
    ],
)
def test_what_is_rounded_to_a_half_on_its_way_is_no_sum(statement: str, op: str | None) -> None:
    """A float that is rounded after each term is as good as a half; a term may be rounded."""
    text = "void f(int n, _Float16 x[n], float y[n], float r[1])\n{ float s = 0;\nfor (int i = 0; i < n; i++) "
    (loop,) = explained(f"{text}{statement}\nr[0] = s; }}").loops
    assert [r.op for r in loop.reductions] == ([op] if op else [])


def test_complex_numbers_of_16_bits_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="_Float16 _Complex"):
        load("void f(int n, _Float16 _Complex *x, float y[n])\n{ for (int i = 0; i < n; i++) y[i] = x[i]; }")


def test_dtype_replaces_float_and_double_alone() -> None:
    codelet = load(DOT.format("float"), dtype="float64").codelet
    assert [getattr(p, "dtype", "") for p in codelet.params] == ["int32", "float16", "float16", "float64"]


PROGRAMS = {
    "cleared and copied": """#include <string.h>
void f(int n, _Float16 a[n], _Float16 b[n]) {
  memset(a, 0, n * sizeof(_Float16));
  for (int i = 0; i < n; i++) a[i] += b[i];
  memcpy(b, a, n * sizeof *a);
}""",
    "a table": """
static const _Float16 w[3] = {0.1f16, 0.2, 1.0f / 3};
void f(int n, _Float16 a[n], float c[n]) {
  for (int i = 1; i < n - 1; i++) c[i] = w[0] * a[i - 1] + w[1] * a[i] + w[2] * a[i + 1];
}""",
    "local arrays": """
void f(int n, _Float16 a[n], float c[n]) {
  for (int i = 0; i < n; i++) {
    _Float16 t[4];
    float s = 0;
    for (int k = 0; k < 4; k++) t[k] = a[i] * (k + 0.3);
    for (int k = 0; k < 4; k++) s += t[k] * t[3 - k];
    c[i] = s;
  }
}""",
    "helper functions": """
static _Float16 mul(_Float16 x, float y) { return x * y; }
static void put(_Float16 *p, double v) { *p = v; }
void f(int n, _Float16 a[n], float c[n]) {
  for (int i = 0; i < n; i++) { put(&a[i], mul(a[i], c[i]) * 1.0001); c[i] = mul(a[i], 0.3333); }
}""",
    "assignments in a row": """
void f(int n, _Float16 a[n], float c[n], double d[n]) {
  for (int i = 0; i < n; i++) {
    _Float16 x;
    double q = d[i] = c[i] = x = a[i] * 0.33333;
    d[i] += q; x++; c[i] -= x;
    _Bool b = x;
    a[i] = b ? x : -x;
  }
}""",
    "a while loop": """
void f(int n, _Float16 a[n], int c[n]) {
  for (int i = 0; i < n; i++) {
    _Float16 x = a[i];
    int k = 0;
    while (x > 0.01f16 && k < 50) { x *= 0.5; x -= (_Float16)1e-3; k++; }
    c[i] = k; a[i] = x;
  }
}""",
    "extremes": """#include <math.h>
void f(int n, _Float16 a[n], _Float16 r[3], float s[2]) {
  _Float16 m = a[0];
  float q = -1e9f;
  for (int i = 0; i < n; i++) if (a[i] > m) m = a[i];
  for (int i = 0; i < n; i++) q = fmaxf(q, a[i] * a[i]);
  for (int i = 0; i < n; i++) r[2] = a[i] < r[2] ? a[i] : r[2];
  r[0] = m; s[0] = q; r[1] = q;
}""",
    "backwards": """
void f(int n, _Float16 a[n], _Float16 b[n]) {
  for (int i = n - 1; i >= 1; i--) a[i] = b[i - 1] * a[i] - b[i];
  for (unsigned char k = 0; k < 5; k++) b[k % n] += k;
}""",
    "integers": """
void f(int n, _Float16 a[n], long c[n], unsigned u[n], signed char s[n]) {
  for (int i = 0; i < n; i++) {
    c[i] += a[i]; u[i] = a[i] < 0 ? 0 : a[i] * 3; s[i] *= a[i] / 4;
    a[i] = c[i]; a[i] += u[i]; a[i] -= s[i];
  }
}""",
}  # fmt: skip


@pytest.mark.wide
def test_programs_compute_what_gcc_computes_on_every_target(tmp_path: Path) -> None:
    """Statements, locals, functions and loops, to the bit."""
    sizes = {"n": 9, "a": 9, "b": 9, "c": 9, "d": 9, "u": 9, "s": 9, "r": 3}
    cases = []
    for name, text in PROGRAMS.items():
        codelet = load(f"{text}\n").codelet
        given = cross_check.arguments(codelet, {p.name: sizes[p.name] for p in codelet.params})
        cases.append(all_targets.Case(name, f"{text}\n", [given]))
    assert all_targets.wrong(cases, tmp_path) == []
