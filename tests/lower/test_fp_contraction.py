"""Products that floats decide by are not contracted with sums on a GPU: those, through arrays too, and no others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from looptune.backends.cuda.cuda_c_writer import file_text
from looptune.backends.opencl.writer import device_text
from looptune.core.floating_point import DEFAULT, STRICT, Floats
from looptune.deploy import python_module
from looptune.frontend import load
from looptune.lower.fp_contraction import forbid_contraction
from looptune.runtime import targets
from tests.helpers import cross_check, cuda_c_on_cpu
from tests.helpers.codelets import MANDELBROT
from tests.helpers.kernel_cases import Case, planned, wrong_in_numba

cuda = pytest.mark.skipif(not targets.cuda_installed(), reason="needs the package numba-cuda")

NEST = """\
#include <math.h>
void f(int n, float a[n], float b[n], float c[n], int k[n]) {{
  for (int i = 0; i < n; i++) {{ {} }}
}}
"""
PRODUCT = """\
void f(int n, float A[n][n], float B[n][n], float C[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < n; k++)
        C[i][j] += A[i][k] * B[k][j];
}
"""
THROUGH = """\
void f(int n, float a[n], float b[n], float c[n], float d[n]) {
  for (int i = 0; i < n; i++) b[i] = a[i] * a[i] + c[i];
  for (int i = 0; i < n; i++) d[i] = d[i] * c[i] + a[i];
  for (int i = 0; i < n; i++) c[i] = 2.0f * b[i] + 1.0f;
  for (int i = 0; i < n; i++) if (c[i] > 0.5f) a[i] = 1.0f;
}
"""
DECIDES = {
    "what an if compares": "if (a[i] * b[i] + c[i] < 1.0f) k[i] = 1;",
    "one comparison of several": "if (i > 2 && !(a[i] * b[i] + c[i] < 1.0f)) k[i] = 1;",
    "a float that is a condition": "if (a[i] * b[i] - c[i]) k[i] = 1;",
    "what a while compares": "float t = a[i]; while (t < 9.0f) { t = t * b[i] + 1.0f; } c[i] = t;",
    "what becomes an integer": "k[i] = a[i] * b[i] + c[i];",
    "what becomes an integer and a float again": "c[i] = (int)(a[i] * b[i] + c[i]);",
    "a comparison that is kept": "k[i] = a[i] * b[i] + c[i] > 0.0f;",
    "a choice by another number": "c[i] = a[i] * b[i] + c[i] > 0.0f ? 1.0f : 2.0f;",
    "a place": "c[(int)(a[i] * 2.0f + 0.5f) % 4] = 1.0f;",
    "a place that is read": "c[i] = b[(int)(a[i] * 2.0f + 0.5f) % 4];",
    "a step": "c[i] = floorf(a[i] * b[i] + c[i]);",
    "a product of before": "float t = a[i] * b[i]; float u = t + c[i]; k[i] = u < 1.0f;",
}
FREE = {
    "a sum": "c[i] = a[i] * b[i] + c[i];",
    "a maximum": "float t = a[i] * b[i] + 1.0f; c[i] = t > c[i] ? t : c[i];",
    "a maximum by if": "float t = a[i] * b[i] + 1.0f; if (t > c[i]) c[i] = t;",
    "a condition on integers": "if (k[i] * 2 < 7) c[i] = a[i] * b[i] + c[i];",
    "integers that become floats": "c[i] = a[i] * (float)(k[i] * 3) + b[i];",
}


def marked(text: str) -> list[bool]:
    return [k.no_contraction for k in forbid_contraction(planned(text, ()), "cc").kernels]


@pytest.mark.parametrize("what", DECIDES)
def test_products_that_floats_decide_by_are_apart(what: str) -> None:
    """In every way in which a float may decide."""
    text = NEST.format(DECIDES[what])
    assert any(marked(text))
    assert re.search("__fmul_rn|__dmul_rn", file_text(forbid_contraction(planned(text, ()), "cc")))


@pytest.mark.parametrize("what", FREE)
def test_others_are_contracted(what: str) -> None:
    """What decides nothing, or only which of two numbers is the larger; "off" keeps apart all, "fast" none."""
    text, decides = NEST.format(FREE[what]), NEST.format(DECIDES["what an if compares"])
    assert not any(marked(text))
    assert any(k.no_contraction for k in forbid_contraction(planned(text, ()), "off").kernels)
    assert not any(k.no_contraction for k in forbid_contraction(planned(decides, ()), "fast").kernels)


def test_a_decision_reaches_back_through_arrays() -> None:
    """Kernels that make what another kernel decides by are marked, and one beside them is not."""
    assert marked(THROUGH) == [True, False, True, False]


def test_opencl_keeps_kernels_apart() -> None:
    """By a pragma in the kernels that are marked."""
    first, second, third, _ = re.split(r"(?=__kernel )", device_text(forbid_contraction(planned(THROUGH, ()), "cc")))[
        1:
    ]
    assert ["FP_CONTRACT OFF" in text for text in (first, second, third)] == [True, False, True]


@cuda
@pytest.mark.parametrize("target", ["numba-cuda", "cuda-c"])
def test_ptx_contracts_a_product_and_not_a_decision(target: str) -> None:
    """Fused operations are in a matrix product, not in Mandelbrot's loop, and under "off" in neither."""

    def fused(text: str, floats: Floats = DEFAULT) -> bool:
        return "fma.rn" in targets.ptx(target, planned(text, ()), "sm_90", floats)

    assert fused(PRODUCT)
    assert not fused(MANDELBROT)
    assert fused(MANDELBROT, Floats(contract="fast"))
    assert not fused(PRODUCT, STRICT)


@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="g++ is not installed")
def test_marked_kernels_compute_what_the_loops_do(tmp_path: Path) -> None:
    """In CUDA C, where products are calls."""
    codelet = load(MANDELBROT).codelet
    given = cross_check.arguments(codelet, {"h": 9, "w": 11, "most": 50})
    done = forbid_contraction(planned(MANDELBROT, ()), "cc")
    (found,) = cuda_c_on_cpu.run([cuda_c_on_cpu.Case("mandel", done, codelet, given)], tmp_path).values()
    np.testing.assert_array_equal(found["out"], cross_check.interpreted(codelet, given)["out"])


@pytest.mark.wide
@cuda
@pytest.mark.simulator
def test_a_built_module_computes_decisions_and_fma_as_the_loops_do(tmp_path: Path) -> None:
    """The original loops that a module for a GPU carries run on the CPU, and call C's fma."""
    text = NEST.format("k[i] = a[i] * b[i] + fmaf(b[i], c[i], 3.0f);")
    made = python_module.text(python_module.ModuleRequest(load(text), "numba-cuda", (), "looptune build"))
    (tmp_path / "made.py").write_text(made)
    program = (
        "import numpy as np, made; x = np.linspace(1, 9, 13, dtype='float32'); k = np.zeros(13, 'int32'); "
        "made.f(13, x, x.copy(), x.copy(), k, check=True); print(k.sum())"
    )
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    x = np.linspace(1, 9, 13, dtype="float32")
    assert done.stdout.strip() == str((x * x + (x * x + 3)).astype(int).sum()), done.stderr


@pytest.mark.wide
@cuda
@pytest.mark.simulator
def test_marked_kernels_run_in_the_simulator(tmp_path: Path) -> None:
    """A product that is apart is any product there."""
    case = Case(NEST.format(DECIDES["what becomes an integer"]), (), ({"n": 13},))
    assert wrong_in_numba({"cast": case}, tmp_path, False, 0.0) == {}
