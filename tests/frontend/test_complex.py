"""Complex numbers: the same results as gcc, from the parts of which their arithmetic consists."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import looptune
from looptune.frontend import load
from looptune.frontend.normalize import complex_arithmetic
from looptune.ir.c_printer import declaration
from looptune.ir.nodes import Array
from tests.helpers.against_gcc import difference, verdicts
from tests.helpers.gcc_programs import Program, programs
from tests.helpers.paths import ROOT, TESTS

GEMV = """#include <complex.h>
double complex f(int n, double complex a, const double complex x[n], float complex *y) {
  double complex s = 0;
  for (int i = 0; i < n; i++) { y[i] += a * x[i]; s += conj(x[i]) * y[i]; }
  return s;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("program", programs(TESTS / "data" / "complex.c"), ids=lambda p: p.name)
def test_complex_numbers_compute_what_gcc_computes(program: Program, tmp_path: Path) -> None:
    assert difference(program.text, program.sizes, tmp_path, program.shapes) is None
    assert [*verdicts(load(program.text).codelet).values()] == program.loops


def test_parts_are_the_last_dimension_of_arrays_and_parameters_of_scalars() -> None:
    found = load(GEMV).codelet.params
    assert [declaration(p) if isinstance(p, Array) else p.name for p in found] == [
        "n", "double x[n][2]", "float y[][2]", "a_re", "a_im", "double result[1][2]",
    ]  # fmt: skip


def test_python_passes_complex_arrays() -> None:
    x, y = np.arange(4) + 1j, np.ones(4, np.complex64)
    result = np.zeros(1, np.complex128)
    looptune.compile(GEMV, target="numba-cpu")(4, x, y, 2.0, 1.0, result)
    want = np.ones(4) + (2 + 1j) * x
    assert np.allclose(y, want)
    assert np.allclose(result, np.vdot(x, want))


def test_every_supported_function_is_in_the_docs() -> None:
    text = (ROOT / "docs" / "c.md").read_text()
    assert [name for name in complex_arithmetic.SUPPORTED if f"`{name}`" not in text] == []
