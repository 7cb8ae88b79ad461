"""The hand-written kernels: right at sizes that fit no tile, on the CPU and in the CUDA simulator."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numba
import numpy as np
import pytest
from numba import cuda

HANDWRITTEN = Path(__file__).parent.parent / "polybench" / "handwritten"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"handwritten_{name}", HANDWRITTEN / f"{name}.py")
    assert spec is not None, f"{name}.py is a Python file"
    assert spec.loader is not None, f"{name}.py is loaded from a file"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def gemm_inputs(dtype: str, ni: int, nj: int, nk: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """C, A, B and the expected C, computed in double."""
    rng = np.random.default_rng(7)
    c, a, b = (rng.uniform(-1, 1, shape).astype(dtype) for shape in ((ni, nj), (ni, nk), (nk, nj)))
    return c, a, b, 1.5 * a.astype("float64") @ b + 0.75 * c.astype("float64")


def assert_gemm(c: np.ndarray, expected: np.ndarray, nk: int) -> None:
    atol = 8 * np.sqrt(max(nk, 1)) * np.finfo(c.dtype).eps
    np.testing.assert_allclose(c, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gemm_on_the_cpu(dtype: str) -> None:
    """C = alpha A B + beta C for sizes below, at and above the block sizes, multiples of none of them."""
    gemm = load("gemm").cpu(dtype)
    for ni, nj, nk in ((1, 1, 1), (33, 7, 5), (31, 1029, 67), (97, 64, 130), (3, 2, 0), (0, 4, 4)):
        c, a, b, expected = gemm_inputs(dtype, ni, nj, nk)
        gemm(ni, nj, nk, 1.5, 0.75, c, a, b)
        assert_gemm(c, expected, nk)


SIMULATED = """
from test_handwritten import assert_gemm, gemm_inputs, load
from numba import cuda
gemm = load("gemm").cuda("{dtype}")
for ni, nj, nk in ((1, 1, 1), (33, 35, 37), (5, 34, 0), (0, 3, 3)):
    c, a, b, expected = gemm_inputs("{dtype}", ni, nj, nk)
    device = cuda.to_device(c)
    gemm(ni, nj, nk, 1.5, 0.75, device, cuda.to_device(a), cuda.to_device(b), stream=0)
    assert_gemm(device.copy_to_host(), expected, nk)
"""


@pytest.mark.simulator
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gemm_in_the_cuda_simulator(dtype: str) -> None:
    """The CUDA kernel gives C = alpha A B + beta C where tiles overhang in all three directions."""
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(Path(__file__).parent)}
    ran = subprocess.run(
        [sys.executable, "-c", SIMULATED.format(dtype=dtype)], env=env, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr


def test_gemm_compiles_to_ptx() -> None:
    """Without a GPU, the CUDA kernel compiles for sm_90 with its sums in registers: no local memory."""
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    kernel = load("gemm").tiled("float32")
    size, matrix = numba.uint32, numba.float32[:, ::1]
    signature = (size, size, size, numba.float32, numba.float32, matrix, matrix, matrix)
    ptx, _ = cuda.compile_ptx(kernel.py_func, signature, cc=(9, 0))
    assert ptx.count("fma.rn.f32") >= 4
    assert ".local" not in ptx
