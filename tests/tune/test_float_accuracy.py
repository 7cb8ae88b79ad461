"""Versions whose factors are rounded are judged by the error that the user allows, and tables say what it was."""

from __future__ import annotations

import numpy as np
import pytest

from looptune.deploy.runtime import function
from looptune.lower.plan import Plan
from looptune.runtime.tolerance import RoundingEstimate
from looptune.runtime.verification import ReferenceComparison
from looptune.tune.measure.float_accuracy import float_accuracy
from tests.helpers import kernel_cases
from tests.helpers.tensor_cases import CASES

WANT = np.linspace(1, 2, 1000, dtype=np.float32)


def plan(name: str) -> Plan:
    return kernel_cases.planned(CASES[name].text, CASES[name].lines)


def judge(wider: np.ndarray = WANT) -> ReferenceComparison:
    estimate = RoundingEstimate({"C": WANT}, {"C": wider.astype(np.float64)})
    return ReferenceComparison({"C": WANT}, 16, lambda: estimate)


def test_what_a_plan_allows() -> None:
    """The largest tolerance of its kernels; plans with other factors allow nothing, and rates follow the factors."""
    assert plan("rounded floats").rounded_factors == ("tf32", 1e-3)
    assert plan("rounded floats").inexact == {"C": 1e-3}
    assert plan("floats").inexact == {}
    assert plan("rounded floats in pairs").rounded_factors == ("bf16", 1e-2)
    assert plan("floats").rounded_factors == plan("a product").rounded_factors == ("", 0.0)
    assert [plan(name).matrix_rate for name in ("a product", "floats", "rounded floats")] == [3, 3, 8]


MORE = """
void f(int n, float A[n][n], float B[n][n], float C[n][n], float d[n], float e[n], int counts[n])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < n; k++)
                C[i][j] += A[i][k] * B[k][j];
    for (int i = 0; i < n; i++) {
        d[i] = 2 * C[i][i];
        e[i] = 2 * B[i][i];
        if (d[i] > 1)
            counts[i] = 1;
    }
}
"""


def test_only_what_depends_on_the_product_is_judged_by_its_tolerance() -> None:
    """Arrays computed from it, or where it decides; another nest of the codelet stays as exact as floats are."""
    lines = ("loop k: tensor tf32, tolerance 1e-3, block 64x64, warp 32x32",)
    found = kernel_cases.planned(MORE, lines).inexact
    assert found == {"C": 1e-3, "d": 1e-3, "counts": 1e-3}


@pytest.mark.parametrize(("error", "right"), [(9e-4, True), (1.3e-3, False)])
def test_a_version_is_judged_by_its_tolerance(error: float, right: bool) -> None:
    """Relative to an element and the median of its array; without a tolerance, rounding errors are all it may have."""
    got = WANT.copy()
    got[0] += np.float32(error * (WANT[0] + np.median(WANT)))
    assert (judge().wrong({"C": got}, {"C": 1e-3}) is None) == right
    assert judge().wrong({"C": got}) is not None
    missing = np.where(np.arange(WANT.size) == 7, np.float32(np.nan), WANT)
    assert "nan" in str(judge().wrong({"C": missing}, {"C": 1e-3}))


def test_what_tables_say() -> None:
    """The error measured and the one allowed; of an emulation that of the loops, which it may not exceed."""
    got = {"C": WANT * np.float32(1 + 4e-4)}
    said = float_accuracy(plan("rounded floats"), judge(), lambda: got)
    assert said == ("rounded to tf32: the largest error is 0.00023, allowed is 0.001", True)
    assert float_accuracy(plan("a product"), judge(), lambda: got) == ("", True)
    exact = WANT.astype(np.float64) * (1 + 1e-6)
    said, usable = float_accuracy(plan("floats"), judge(exact), lambda: {"C": WANT})
    assert (usable, said.partition(":")[0]) == (True, "emulated floats")
    assert not float_accuracy(plan("floats"), judge(exact), lambda: got)[1]


@pytest.mark.filterwarnings("ignore:f is not verified independently")
def test_a_built_module_checks_by_the_tolerance() -> None:
    """``check=True`` allows what the directive of its version allows."""

    def original(n: int, c: np.ndarray, _: int = 1) -> None:
        c[:] = WANT[:n]

    params = (function.Parameter("n", "int32"), function.Parameter("C", "float32", array=True, written=True))
    after = WANT * np.float32(1 + 4e-4)
    exact, rounded = (function.Tuned("f", params, lambda n: ((n,),), (), "", {}, {}, original, relative=relative)
                      for relative in ({}, {"C": 1e-3}))  # fmt: skip
    function.verify(rounded, (1000,), (), (np.zeros_like(WANT),), (after,))
    with pytest.raises(function.Mismatch):
        function.verify(exact, (1000,), (), (np.zeros_like(WANT),), (after,))
