"""Floats are C's on a CPU unless a flag says otherwise: the same bits as gcc's, sums apart, and these are named."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import looptune
from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.core import floating_point
from looptune.core.errors import UsageError
from looptune.core.floating_point import STRICT, Floats
from tests.helpers.paths import ROOT

gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

ELEMENTWISE = """\
#include <math.h>
void f(int n, float x[n], float y[n], float z[n], float r[12][n], double d[4][n]) {
  for (int i = 0; i < n; i++) {
    r[0][i] = (x[i] + 12582912.0f) - 12582912.0f;
    float t = x[i] + y[i], v = t - x[i];
    r[1][i] = (x[i] - (t - v)) + (y[i] - v);
    r[2][i] = x[i] / 3.0f;
    r[3][i] = (x[i] / y[i]) * y[i];
    r[4][i] = 0.0f - x[i] * 0.0f;
    r[5][i] = x[i] * y[i] + z[i];
    r[6][i] = fmaf(x[i], y[i], z[i]);
    r[7][i] = x[i] * z[i] + y[i] * z[i];
    r[8][i] = (x[i] * y[i]) * z[i] / y[i];
    r[9][i] = -(x[i] - x[i]) + x[i] * -0.0f;
    r[10][i] = 1.0f / x[i] * y[i];
    r[11][i] = x[i] - (int)(x[i] * y[i] + z[i]);
    d[0][i] = (double)x[i] * y[i] - z[i];
    d[1][i] = fma(x[i], (double)y[i] / 3, z[i] / 7.0);
    d[2][i] = (x[i] + 6755399441055744.0) - 6755399441055744.0;
    d[3][i] = ((double)x[i] + y[i] / 3.0) - (double)x[i];
  }
}
"""
MAIN = """\
#include <stdio.h>
{codelet}
#define N {n}
int main(void) {{
  static float x[N], y[N], z[N], r[12][N];
  static double d[4][N];
  fread(x, 4, N, stdin); fread(y, 4, N, stdin); fread(z, 4, N, stdin);
  f(N, x, y, z, r, d);
  fwrite(r, 4, 12 * N, stdout); fwrite(d, 8, 4 * N, stdout);
}}
"""
KAHAN = """\
void f(int n, float x[n], float s[2]) {
  float sum = 0, c = 0;
  for (int i = 0; i < n; i++) {
    float y = x[i] - c, t = sum + y;
    c = (t - sum) - y;
    sum = t;
  }
  s[0] = sum;
  float total = 0, lost = 0, before;
  for (int i = 0; i < n; i++) {
    float y = x[i] - lost;
    before = total;
    total += y;
    lost = (total - before) - y;
  }
  s[1] = total;
}
"""
ROWS = """\
void f(int n, int m, float A[n][m], float x[m], float y[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      y[i] += A[i][j] * x[j];
}
"""
PRODUCT = """\
void f(int n, double a[n], double *p) {
  for (int i = 0; i < n; i++) {
    *p = *p * a[i];
  }
}
"""
STENCIL = """\
void f(int n, double a[n], double b[n]) {
  for (int i = 1; i < n - 1; i++)
    b[i] = (a[i - 1] + a[i] + a[i + 1]) / 3.0 + a[i] * 0.5;
}
"""


CHILD = """\
import json, sys
from pathlib import Path
import numpy as np
import looptune
from looptune.backends.numba_cpu.backend import _import
from tests.core import test_floating_point as texts
from tests.helpers.codelets import MANDELBROT

folder = Path(sys.argv[1])
given = np.load(folder / "given.npy")
n, made = given.shape[1], {}
for contract in ("cc", "off", "fast"):
    r, d = np.zeros((12, n), np.float32), np.zeros((4, n))
    looptune.compile(texts.ELEMENTWISE, target="numba-cpu", fp_contract=contract)(n, *given, r, d)
    made |= {f"{contract} r": r, f"{contract} d": d}
x, s = np.full(1_000_000, 0.1, np.float32), np.zeros(2, np.float32)
kahan = looptune.compile(texts.KAHAN, target="numba-cpu")
kahan(x.size, x, s)
out = np.zeros((120, 160), np.int32)
looptune.compile(MANDELBROT, target="numba-cpu", fp_contract="off")(120, 160, 100, out)
np.savez(folder / "made.npz", kahan=s, mandelbrot=out, **made)
said = {"kahan": kahan.reordered}
for name in ("ROWS", "PRODUCT", "STENCIL"):
    for strict in (False, True):
        kernel = looptune.compile(getattr(texts, name), target="numba-cpu", reassociate=not strict)
        own = _import(kernel.source.replace("@kept(", "@njit("), folder)
        text = "".join(own.f_0.inspect_llvm(s) for s in own.f_0.signatures)
        said[f"{name} {strict}"] = [kernel.reordered, text]
(folder / "said.json").write_text(json.dumps(said))
"""
"""Other tests have Numba compile without optimisation, where no flag matters."""


@dataclass(frozen=True)
class Ran:
    given: np.ndarray
    arrays: dict[str, np.ndarray]
    said: dict[str, Any]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """What code compiled with full optimisation leaves, and is."""
    folder, rng, n = tmp_path_factory.mktemp("floats"), np.random.default_rng(5), 4096
    given = (rng.standard_normal((3, n)) * 10.0 ** rng.integers(-3, 4, (3, n))).astype(np.float32)
    np.save(folder / "given.npy", given)
    env = {name: value for name, value in os.environ.items() if name not in ("NUMBA_OPT", "CFLAGS")}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder)], cwd=ROOT, env=env, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with np.load(folder / "made.npz") as held:
        arrays = {name: held[name] for name in held.files}
    return Ran(given, arrays, json.loads((folder / "said.json").read_text()))


@pytest.mark.wide
@gcc
@pytest.mark.parametrize(("contract", "flags"), [("off", ("-ffp-contract=off",)), ("cc", ())])
def test_elementwise_floats_have_the_bits_of_gcc(
    ran: Ran, contract: str, flags: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounding by a constant, two-sum, quotients, signed zeros, fma and a * b + c, in float and double."""
    n = ran.given.shape[1]
    (tmp_path / "f.c").write_text(MAIN.format(codelet=ELEMENTWISE, n=n))
    subprocess.run(["gcc", "-O2", *flags, "f.c", "-o", "f", "-lm"], cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "f"], input=ran.given.tobytes(), capture_output=True, check=True).stdout
    theirs = (np.frombuffer(out[: 48 * n], np.uint32), np.frombuffer(out[48 * n :], np.uint64))
    own = (ran.arrays[f"{contract} r"].view(np.uint32), ran.arrays[f"{contract} d"].view(np.uint64))
    for mine, c_s in zip(own, theirs, strict=True):
        wrong = np.argwhere(mine != c_s.reshape(mine.shape))
        assert wrong.tolist() == []


@pytest.mark.wide
def test_contraction_that_is_asked_for_changes_nothing_else(ran: Ran) -> None:
    """Under ``fp_contract="fast"`` rounding by a constant and quotients stay C's."""
    x, r = ran.given[0], ran.arrays["fast r"]
    np.testing.assert_array_equal(r[2], x / np.float32(3))
    np.testing.assert_array_equal(r[0], np.rint(x))
    assert "fastmath={'contract'}" in looptune.compile(ROWS, target="numba-cpu", fp_contract="fast").source


@pytest.mark.wide
def test_a_compensated_sum_is_compensated(ran: Ran) -> None:
    """Kahan's sum, with a copy and in place, is far nearer than a plain one, and no sum of it may be reordered."""
    np.testing.assert_allclose(ran.arrays["kahan"], float(np.float32(0.1)) * 1_000_000, rtol=1e-7)
    assert ran.said["kahan"] == []


@pytest.mark.wide
@pytest.mark.parametrize(
    ("codelet", "name", "op"), [("ROWS", "+:y (4:7)", "fadd"), ("PRODUCT", "*:p (3:5)", "fmul"), ("STENCIL", "", "")]
)
def test_a_recognised_sum_becomes_vectors_and_is_named(ran: Ran, codelet: str, name: str, op: str) -> None:
    """LLVM makes vectors of it, by operations that it alone may reorder; under strict_float it stays in its order."""
    reordered, text = ran.said[f"{codelet} False"]
    assert reordered == ([name] if name else [])
    assert bool(re.findall(rf"{op} reassoc <\d+ x (?:float|double)>", text)) == bool(name)
    kept, strict = ran.said[f"{codelet} True"]
    assert (kept, "reassoc" in strict) == ([], False)
    for own in (text, strict):
        assert not re.search(r"\bf(add|sub|mul|div|cmp)[a-z ]* (nsz|arcp|nnan|fast|contract)\b", own)


@pytest.mark.wide
def test_iterations_that_floats_decide_are_c_s(ran: Ran) -> None:
    """Mandelbrot's counts sum up to what gcc's do."""
    assert ran.arrays["mandelbrot"].sum() == 407069


@gcc
def test_the_c_compiler_is_asked_how_it_contracts(monkeypatch: pytest.MonkeyPatch) -> None:
    """CC and CFLAGS count; a compiler that is not there contracts nothing."""
    monkeypatch.setenv("CC", "gcc")
    for flags, contracts in (("-ffp-contract=off", False), ("-ffp-contract=off -O3 'x", False)):
        monkeypatch.setenv("CFLAGS", flags)
        assert floating_point.c_compiler_contracts() == contracts
    monkeypatch.setenv("CC", "/nowhere/cc")
    assert not floating_point.c_compiler_contracts()


def test_what_flags_say_together() -> None:
    """--no-reassociate forbids contraction and reordering; what contradicts it is refused."""
    assert floating_point.floats_of_options() == Floats(reorder=True, contract="cc")
    assert (
        floating_point.floats_of_options(strict=True)
        == STRICT
        == floating_point.floats_of_options(strict=True, contract="off")
    )
    assert floating_point.floats_of_options(contract="fast") == Floats(contract="fast")
    with pytest.raises(UsageError, match="leave out --fp-contract fast"):
        floating_point.floats_of_options(strict=True, contract="fast")
    with pytest.raises(UsageError, match="choose one of cc, fast, off"):
        looptune.compile(ROWS, fp_contract="on")


def test_a_database_keeps_what_differs_apart() -> None:
    """Times with contraction and without are never taken for each other; what is usual needs no word."""
    assert Floats(contract="off").options("numba-cpu") == {"reassociate": True}
    assert Floats(contract="fast").options("numba-cpu") == {"reassociate": True, "contract": "fast"}
    assert Floats().options("numba-cuda") == {"reassociate": True}
    assert Floats(contract="off").options("numba-cuda") == {"reassociate": True, "contract": "off"}
    assert STRICT.options("numba-cuda") == {"reassociate": False}
    assert NumbaCpu(Path(), STRICT).floats == STRICT
