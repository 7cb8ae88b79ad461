"""Functions of math.h: each is what gcc makes of it, on every target that runs here, or is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import looptune
from looptune.core.errors import TargetError
from looptune.frontend import load, math_functions
from looptune.runtime import targets
from tests.helpers import all_targets, cross_check
from tests.helpers.all_targets import Case
from tests.helpers.paths import ROOT

SPECIAL = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.75, -7.25, 0.1, 100.7, 1e-3, 30.0, np.inf, -np.inf, np.nan,
)  # fmt: skip
PAIRED = (1.0, -0.0, 3.0, 0.5, 2.0, -1.5, 1.0, 5.0, 1.25, -2.0, 0.75, 4.0, 7.5, 1e-3, np.inf, 2.0, np.nan, 1.0)
UNARY = ("acosh", "asinh", "atanh", "erf", "erfc", "tgamma", "lgamma", "exp10", "rint", "nearbyint", "logb")
BINARY = ("remainder", "fdim", "nextafter")
WHOLE = ("lrint", "llrint", "lround", "llround", "ilogb")
GENERIC = ("isnan", "isinf", "isfinite", "isnormal", "__builtin_isinf")
COMPARED = ("isgreater", "isgreaterequal", "isless", "islessequal", "islessgreater", "isunordered")


def text(kind: str, suffix: str) -> str:
    lines = [f"r[{k}][i] = {name}{suffix}(x[i]);" for k, name in enumerate(UNARY)]
    lines += [f"r[{len(UNARY) + k}][i] = {name}{suffix}(x[i], y[i]);" for k, name in enumerate(BINARY)]
    lines += [f"r[14][i] = ldexp{suffix}(x[i], i); r[15][i] = scalbn{suffix}(x[i], -i);"]
    lines += [f"r[16][i] = scalbln{suffix}(x[i], 3l); r[17][i] = __builtin_fabs{suffix}(x[i]);"]
    lines += [f"c[{k}][i] = {name}(x[i]);" for k, name in enumerate(GENERIC)]
    lines += [f"c[{len(GENERIC) + k}][i] = {name}(x[i], y[i]);" for k, name in enumerate(COMPARED)]
    lines += ["c[11][i] = !!signbit(x[i]); c[12][i] = __builtin_expect(x[i] < y[i], 1);"]
    lines += [f"c[{13 + k}][i] = {name}{suffix}(z[i]);" for k, name in enumerate(WHOLE)]
    body = "\n    ".join(lines)
    return f"""#define _GNU_SOURCE
#include <math.h>
void f(int n, {kind} x[n], {kind} y[n], {kind} z[n], {kind} r[18][n], long c[18][n])
{{
  for (int i = 0; i < n; i++) {{
    {body}
  }}
}}
"""


def given(dtype: str) -> cross_check.Arguments:
    n = len(SPECIAL)
    z = [3.0 if not np.isfinite(v) or v == 0 else v for v in SPECIAL]
    made = {"x": SPECIAL, "y": PAIRED, "z": z}
    return {"n": n, **{name: np.array(v, dtype) for name, v in made.items()},
            "r": np.zeros((18, n), dtype), "c": np.zeros((18, n), np.int64)}  # fmt: skip


@pytest.mark.wide
@pytest.mark.parametrize(("kind", "dtype"), [("double", "float64"), ("float", "float32")])
def test_functions_are_those_of_gcc(kind: str, dtype: str, tmp_path: Path) -> None:
    """Values, NaNs, infinities and zeros of every function that the table added to the plain ones."""
    case = Case(kind, text(kind, "f" * (kind == "float")), [given(dtype)], tolerance=1e-13)
    assert all_targets.wrong([case], tmp_path) == []


def test_functions_in_opencl(tmp_path: Path) -> None:
    """OpenCL C has them under the same names."""
    try:
        targets.resolve("opencl", tmp_path)
    except TargetError as error:
        pytest.skip(str(error))
    source, arguments = text("double", ""), given("float64")
    codelet = load(source).codelet
    want = cross_check.by_gcc(source, codelet, arguments, tmp_path)
    kernel = looptune.compile(source, target="opencl")
    out = cross_check.copied(arguments)
    kernel(*(out[p.name] for p in codelet.params))
    assert cross_check.off(want, cross_check.arrays(out), 1e-12) is None


BITS = """
void f(int n, unsigned a[n], unsigned long b[n], int r[9][n])
{
  for (int i = 0; i < n; i++) {
    r[0][i] = __builtin_popcount(a[i]); r[1][i] = __builtin_popcountl(b[i]); r[2][i] = __builtin_clz(a[i]);
    r[3][i] = __builtin_clzll(b[i]); r[4][i] = __builtin_ctz(a[i]); r[5][i] = __builtin_ctzl(b[i]);
    r[6][i] = __builtin_ffs(a[i]); r[7][i] = __builtin_ffsl(b[i] - 1); r[8][i] = __builtin_parity(a[i]);
  }
}
"""


@pytest.mark.wide
def test_functions_of_bits(tmp_path: Path) -> None:
    """Numbers of ones and of zeros, in 32 and in 64 bits."""
    a = np.array([1, 2, 3, 255, 2**31, 2**32 - 1, 0xF0F0, 12345678], np.uint32)
    b = np.array([1, 2, 3, 2**40, 2**63, 2**64 - 1, 0xF0F0F0F0F0, 2**33 + 5], np.uint64)
    arguments: cross_check.Arguments = {"n": 8, "a": a, "b": b, "r": np.zeros((9, 8), np.int32)}
    assert all_targets.wrong([Case("bits", BITS, [arguments])], tmp_path) == []


def test_docs_list_every_function() -> None:
    """The table of docs/c.md is that of the code."""
    assert math_functions.docs_table() in (ROOT / "docs" / "c.md").read_text()
