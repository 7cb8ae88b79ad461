"""The benchmark programs as plain C: they compile without warnings, and compute what they say."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

POLYBENCH = Path(__file__).parent.parent / "polybench"
STRICT = ("-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas")

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def run_c(source: Path, build: Path, *options: str) -> str:
    subprocess.run(["gcc", *STRICT, *options, source, "-lm", "-o", build / "a.out"], check=True, timeout=60)
    return subprocess.run([build / "a.out"], check=True, capture_output=True, text=True, timeout=60).stdout


def gemm_expected(ni: int, nj: int, nk: int, dtype: str) -> np.ndarray:
    """PolyBench's initial values and GEMM, in ``dtype`` up to the product."""

    def grid(rows: int, cols: int, plus: int, over: int) -> np.ndarray:
        i, j = np.indices((rows, cols))
        return ((i * j + plus).astype(dtype) / np.dtype(dtype).type(over)).astype("float64")

    return 32412 * grid(ni, nk, 0, ni) @ grid(nk, nj, 1, nj) + 2123 * grid(ni, nj, 2, nj)


@pytest.mark.parametrize("dtype", ["float", "double"])
@pytest.mark.parametrize("sizes", [(7, 13, 5), (20, 3, 33), (1, 1, 1)])
def test_gemm_computes_gemm(tmp_path: Path, dtype: str, sizes: tuple[int, int, int]) -> None:
    """Every element of C is alpha A B + beta C of PolyBench's initial values, for sizes that are not square."""
    ni, nj, nk = sizes
    options = (f"-DNI={ni}", f"-DNJ={nj}", f"-DNK={nk}", f"-DDATA_TYPE={dtype}", "-DDUMP")
    lines = run_c(POLYBENCH / "gemm.c", tmp_path, *options).splitlines()
    c = np.array([[float(x) for x in line.split()] for line in lines[:ni]])
    name = {"float": "float32", "double": "float64"}[dtype]
    # The dump has nine digits.
    np.testing.assert_allclose(c, gemm_expected(ni, nj, nk, name), rtol=max(1e-8, 4 * nk * np.finfo(name).eps))


@pytest.mark.parametrize(
    ("option", "size"), [("-DMINI_DATASET", 32), ("-DSMALL_DATASET", 128), ("-DPAPER_DATASET", 512)]
)
def test_gemm_prints_a_checksum_that_repeats(tmp_path: Path, option: str, size: int) -> None:
    """A data set gives its size, the paper's is the default, and two runs print the same."""
    source = POLYBENCH / "gemm.c"
    first, again = (run_c(source, tmp_path, option) for _ in range(2))
    assert first == again
    assert first.startswith(f"gemm ni={size} nj={size} nk={size} checksum=")
