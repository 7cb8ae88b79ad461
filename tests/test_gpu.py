"""The tier that needs a GPU: what the simulator cannot show. Skipped elsewhere, with the reason.

python -m pytest tests/test_gpu.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import oracle
import programs
import pytest
from click.testing import CliRunner
from programs import Program
from test_reductions import CASES, Case

import looptune
from looptune import targets
from looptune.cli import cli

MISSING = targets.gpu_missing()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(MISSING), reason=f"no GPU: {MISSING}")]
GEMM = Path(__file__).parent.parent / "polybench" / "gemm.c"
REASSOCIATED = 1e-4
"""NVVM contracts a * b + c, and libdevice's functions differ from the host's in the last bits of a float."""


@pytest.mark.parametrize("program", programs.ALL, ids=lambda p: p.name.replace(" ", "-"))
def test_a_kernel_computes_what_c_means(program: Program) -> None:
    """NumPy arrays in, the interpreter's results in the same arrays."""
    kernel = looptune.compile(program.text, target="numba-cuda")
    given = oracle.arguments(kernel.codelet, program.sizes)
    got = oracle.copied(given)
    kernel(*got.values())
    tolerance = max(program.tolerance, REASSOCIATED)
    off = oracle.off(oracle.interpreted(kernel.codelet, given), oracle.arrays(got), tolerance)
    assert off is None, f"{off}\n{kernel.source}"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_teams_compute_what_the_loops_do(case: Case) -> None:
    """Sums, products, minima and maxima shared out to a block's threads, for blocks of every shape."""
    kernel = looptune.compile(case.text, target="numba-cuda", directives=case.lines)
    for seed, sizes in enumerate(case.sizes):
        given = oracle.arguments(kernel.codelet, sizes, seed)
        got = oracle.copied(given)
        kernel(*got.values())
        off = oracle.off(oracle.interpreted(kernel.codelet, given), oracle.arrays(got), REASSOCIATED)
        assert off is None, f"{sizes}: {off}\n{kernel.source}"


def test_device_arrays_are_updated_where_they_are() -> None:
    """Arrays with the CUDA Array Interface are used in place, and NumPy arrays beside them are refused or copied."""
    cupy = pytest.importorskip("cupy")
    n = 45
    kernel = looptune.compile(GEMM, target="numba-cuda", dtype="float64", directives=["loop i: unroll 4, jam"])
    rng = np.random.default_rng(0)
    a, b, c = (rng.random((n, n)) for _ in range(3))
    held = cupy.asarray(c)
    kernel(n, n, n, 1.5, 0.5, held, cupy.asarray(a), cupy.asarray(b))
    np.testing.assert_allclose(cupy.asnumpy(held), 1.5 * a @ b + 0.5 * c, rtol=1e-12)


def test_a_sweep_verifies_and_reports(tmp_path: Path) -> None:
    """A few versions of GEMM at sizes no factor divides: all verified, none wrong or crashed, the record complete."""
    sizes = ["-D", "NI=61", "-D", "NJ=53", "-D", "NK=47"]
    where = ["--db", str(tmp_path / "db"), "--reports", str(tmp_path / "reports")]
    call = ["run", str(GEMM), "--sweep", "--strategy", "random", "--budget", "20", "--target", "numba-cuda", "--json"]
    outcome = CliRunner().invoke(cli, [*call, *sizes, *where], catch_exceptions=False, standalone_mode=False)
    record = json.loads(outcome.stdout)
    assert record["target"] == "numba-cuda"
    assert record["versions"]["timed"] == 20
    assert record["tuned_us"] <= 1.05 * record["default_us"]
