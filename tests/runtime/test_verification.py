"""Verification: rounding passes, bugs do not, and writes outside an array show."""

from __future__ import annotations

import numpy as np
import pytest

from looptune.core.errors import UsageError
from looptune.frontend import load
from looptune.ir import interpreter
from looptune.ir.nodes import Array, Binary, Codelet, Const, Scalar, Var
from looptune.ir.rewrite import walk
from looptune.runtime.tolerance import RoundingEstimate, compare, perturb_by_ulp
from looptune.runtime.verification import ReferenceComparison, extents, in_double, inputs, with_canaries

RNG = np.random.default_rng(1)


def products(dtype: str, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """C = A B with k terms a sum: first to last, last to first, and without the last term."""
    a, b = (RNG.uniform(0.5, 1.5, size=s).astype(dtype) for s in ((24, k), (k, 24)))
    found = []
    for order in (range(k), reversed(range(k)), range(k - 1)):
        c = np.zeros((24, 24), dtype)
        for n in order:
            c += np.outer(a[:, n], b[n])
        found.append(c)
    return found[0], found[1], found[2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [2, 64, 1000, 4000])
def test_reordering_passes_and_a_missing_term_does_not(dtype: str, k: int):
    """The tolerance grows with sqrt(K): above what another order of the sum changes, below one term of it."""
    forward, backward, short = products(dtype, k)
    assert compare({"C": forward}, {"C": backward}, terms=k) is None
    off = compare({"C": forward}, {"C": short}, terms=k)
    assert off is not None
    assert off.startswith("C[")
    assert "of 576 elements" in off


def test_one_wrong_element_is_found_and_named():
    """A single element off by a thousandth, in a large array, is reported with index, values and tolerance."""
    want = RNG.uniform(0.5, 1.5, size=(300, 200)).astype("float32")
    got = want.copy()
    got[17, 4] *= 1.001
    off = compare({"B": want}, {"B": got}, terms=1)
    assert off is not None
    assert off.startswith("B[17][4]: got ")
    assert "error" in off
    assert "tolerance" in off
    assert "(1 of 60000 elements)" in off


def test_a_huge_element_hides_nothing():
    """The scale is the median: one value of 1e30 does not make the others' errors tolerable."""
    want = np.ones(100, "float32")
    want[0] = 1e30
    got = want.copy()
    got[50] = 1.01
    assert compare({"x": want}, {"x": got}, terms=1) is not None


def test_integers_are_exact():
    """One off is wrong."""
    want = np.arange(12, dtype="int32").reshape(3, 4)
    got = want.copy()
    assert compare({"n": want}, {"n": got}, terms=1000) is None
    got[1, 2] += 1
    assert compare({"n": want}, {"n": got}, terms=1000) == "n[1][2]: got 7, expected 6 (1 of 12 elements)"


@pytest.mark.parametrize(
    ("want", "got", "passes"),
    [
        (1.0, np.nan, False),
        (1.0, np.inf, False),
        (np.nan, np.nan, True),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (np.inf, np.nan, False),
        (np.nan, 1.0, False),
        (np.inf, 1.0, False),
    ],
)
def test_nan_and_inf_stand_where_the_original_has_them(want: float, got: float, passes: bool):
    """Neither is ever within a tolerance, and an infinite expectation does not excuse a finite result."""
    off = compare({"x": np.array([1.0, want])}, {"x": np.array([1.0, got])}, terms=10)
    assert (off is None) == passes


def test_an_ill_conditioned_problem_is_tolerated_as_far_as_a_rounding_moves_it():
    """Data moved by one rounding shift one element by 0.001: anywhere in the array four times that is allowed."""
    want = np.array([1.0, 1.0], "float32")
    doubt = RoundingEstimate({"x": np.array([1.001, 1.0], "float32")}, {})
    near, far = np.array([1.0, 1.003], "float32"), np.array([1.0, 1.005], "float32")
    assert compare({"x": want}, {"x": near}, terms=1) is not None
    assert compare({"x": want}, {"x": near}, terms=1, doubt=doubt) is None
    assert compare({"x": want}, {"x": far}, terms=1, doubt=doubt) is not None


def test_the_originals_own_rounding_is_tolerated_in_proportion():
    """A large element is off by 0.001 of its value against float64: four times that is allowed, but nowhere more."""
    want = np.linspace(1, 2, 1000, dtype="float32")
    wide = want.astype("float64")
    wide[900] *= 1.001
    doubt = RoundingEstimate({}, {"x": wide})
    for at, by, passes in ((900, 0.003, True), (900, 0.005, False), (3, 0.003, True), (3, 0.005, False)):
        got = want.copy()
        got[at] *= 1 + by
        assert compare({"x": want}, {"x": got}, terms=1) is not None
        assert (compare({"x": want}, {"x": got}, terms=1, doubt=doubt) is None) == passes


def test_a_small_element_that_cancelled_excuses_no_large_one():
    """What is left of a cancellation is all error; only the larger half says how well the original sums."""
    want = np.linspace(1, 2, 1000, dtype="float32")
    wide = want.astype("float64")
    want[0], wide[0] = 1e-6, 3e-6
    got = want.copy()
    got[900] *= 1.01
    assert compare({"x": want}, {"x": got}, terms=1, doubt=RoundingEstimate({}, {"x": wide})) is not None


def test_lost_additions_are_not_a_versions_fault():
    """A sum that starts at 2**25 loses every 1 added in order; a version that adds those first is right, and passes."""
    text = "void f(int n, float s[1], float x[n]) { for (int i = 0; i < n; i++) s[0] += x[i]; }"
    codelet = load(text + "\n").codelet
    arrays = {"s": np.array([2.0**25], "float32"), "x": np.ones(20_000, "float32")}
    want, wide = ({n: a.copy() for n, a in arrays.items()} for _ in range(2))
    interpreter.run(codelet, want, {"n": 20_000})
    wide = {n: a.astype("float64") for n, a in arrays.items()}
    interpreter.run(in_double(codelet), wide, {"n": 20_000})
    assert (want["s"][0], wide["s"][0]) == (2.0**25, 2.0**25 + 20_000)
    right = {"s": wide["s"].astype("float32"), "x": arrays["x"]}
    assert compare(want, right, terms=100) is not None
    assert compare(want, right, terms=100, doubt=RoundingEstimate({}, wide)) is None
    assert {n.dtype for n in (*in_double(codelet).params, *walk(in_double(codelet).body)) if hasattr(n, "dtype")} == {
        "int32",
        "float64",
    }


@pytest.mark.parametrize("got", [{}, {"x": np.ones(3)}, {"x": np.ones(2, "float32")}])
def test_a_missing_or_different_array_is_wrong(got: dict[str, np.ndarray]):
    """Name, shape and dtype belong to the result."""
    assert compare({"x": np.ones(2)}, got, terms=1) is not None


def test_arrays_without_elements_and_of_zeros():
    """Nothing to compare is equal; around zero only zero is right."""
    assert compare({"x": np.ones((0, 3))}, {"x": np.ones((0, 3))}, terms=1) is None
    assert compare({"x": np.zeros(3)}, {"x": np.zeros(3)}, terms=1) is None
    assert compare({"x": np.zeros(3)}, {"x": np.full(3, 1e-300)}, terms=1) is not None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "uint8"])
def test_canaries(dtype: str):
    """Writes inside are free; one element before or after is reported with its distance."""
    array = np.arange(12).astype(dtype).reshape(3, 4)
    guarded = with_canaries(array, pad=8)
    assert (guarded.view == array).all()
    guarded.view[...] = 0
    assert guarded.check() is None
    guarded.buffer[8 + 12 + 2] = 0
    assert guarded.check() == "1 elements written after the array, the nearest 3 outside of it"
    copy = with_canaries(array, pad=8)
    brought = copy.buffer.copy()
    brought[7] = 1
    assert copy.check() is None
    assert copy.check(brought) == "1 elements written before the array, the nearest 1 outside of it"


def test_reading_a_float_canary_spoils_the_result():
    """A canary is NaN, so an out-of-bounds read cannot verify."""
    assert np.isnan(with_canaries(np.ones(4, "float32"), pad=2).buffer[[0, 1, 6, 7]]).all()


N, M = Var("n"), Var("m")
CODELET = Codelet(
    "f",
    (
        Scalar("n", "int32"),
        Scalar("m", "int32"),
        Array("A", "float32", (N, N)),
        Array("B", "float32", (N, Binary("+", M, Const(1))), "out"),
        Array("k", "int32", (Const(50),)),
    ),
    (),
    (),
)


def test_inputs_are_reproducible_by_name():
    """The same seed gives an array the same contents whatever the others are; another seed, others."""
    values = {"n": 40, "m": 6}
    both = inputs(CODELET, values, 3)
    alone = inputs(Codelet("g", CODELET.params[:3], (), ()), values, 3)
    assert set(both) == {"A", "B", "k"}
    assert both["B"].shape == (40, 7)
    np.testing.assert_array_equal(both["A"], alone["A"])
    assert (both["A"] != inputs(CODELET, values, 4)["A"]).any()


def test_inputs_are_well_conditioned():
    """No zeros, not constant, a dominant diagonal on square matrices; small positive integers."""
    arrays = inputs(CODELET, {"n": 40, "m": 6}, 3)
    assert arrays["A"].dtype == np.float32
    assert ((arrays["B"] >= 0.5) & (arrays["B"] <= 1.5)).all()
    assert np.unique(arrays["B"]).size > 100
    assert np.linalg.cond(arrays["A"].astype("float64")) < 10
    assert set(np.unique(arrays["k"])) <= set(range(1, 10))


def test_extents_without_a_value_are_refused():
    """An undeclared extent, an unknown size and a negative one are the user's mistakes; a given shape helps."""
    undeclared = Codelet("f", (Array("x", "float64", (None, N)),), (), ())
    with pytest.raises(UsageError, match="not declared"):
        inputs(undeclared, {"n": 3}, 0)
    assert inputs(undeclared, {"n": 3}, 0, {"x": (2, 3)})["x"].shape == (2, 3)
    with pytest.raises(UsageError, match="has no value"):
        inputs(CODELET, {"n": 3}, 0)
    with pytest.raises(UsageError, match="is -1"):
        extents(Array("x", "float64", (Binary("-", N, Const(4)),)), {"n": 3})


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("change", [None, 1e-9, 1e-2, np.nan, np.inf, "shape", "missing"])
def test_a_judge_says_what_compare_says(dtype: str, change: float | str | None) -> None:
    """The quick pass lets nothing through that the comparison would refuse, and refuses nothing else."""
    want = {"A": np.arange(1, 41, dtype=dtype).reshape(5, 8), "B": np.ones(3, dtype)}
    got = {name: a.copy() for name, a in want.items()}
    match change:
        case "shape":
            got["A"] = got["A"].T
        case "missing":
            del got["B"]
        case float() if dtype != "int32":
            got["A"][3, 2] += change
        case float():
            got["A"][3, 2] += 1
    said = compare(want, got, terms=10)
    assert ReferenceComparison(want, 10, lambda: RoundingEstimate({}, {})).wrong(got) == said
    assert (said is None) == (change is None or (dtype == "float32" and change == 1e-9))


def test_a_judge_asks_once_and_only_in_doubt() -> None:
    """The original loops are run again when a result first fails, never before and never twice."""
    asked = []

    def doubt() -> RoundingEstimate:
        asked.append(1)
        return RoundingEstimate({"x": np.full(9, 1.01, "float32")}, {})

    want = {"x": np.ones(9, "float32")}
    judge = ReferenceComparison(want, 1, doubt)
    assert judge.wrong({"x": np.ones(9, "float32")}) is None
    assert asked == []
    for by, passes in ((0.02, True), (0.1, False), (0.03, True)):
        assert (judge.wrong({"x": want["x"] + np.float32(by)}) is None) == passes
    assert asked == [1]


def test_a_judge_asks_first_for_less() -> None:
    """What it allows suffices for most results; the rest is asked for when one is beyond it."""
    asked = []

    def estimate(name: str, by: float) -> RoundingEstimate:
        asked.append(name)
        return RoundingEstimate({"x": np.full(9, 1 + by, "float32")}, {"x": np.full(9, 1 + by / 2)})

    want = {"x": np.ones(9, "float32")}
    judge = ReferenceComparison(want, 1, lambda: estimate("all", 0.1), "", lambda: estimate("first", 0.01))
    for by, passes, known in (
        (0.02, True, ["first"]), (0.03, True, ["first"]), (0.2, True, ["first", "all"]), (0.9, False, ["first", "all"]),
    ):  # fmt: skip
        assert (judge.wrong({"x": want["x"] + np.float32(by)}) is None) == passes
        assert asked == known
    other = ReferenceComparison(want, 1, lambda: estimate("all", 0.1), "", lambda: estimate("first", 0.01))
    assert other.errors(want) is not None
    assert asked == ["first", "all", "all"]
    assert other.wrong({"x": want["x"] + np.float32(0.9)}) is not None
    assert asked == ["first", "all", "all"]


def test_errors_are_measured_from_the_loops_in_double() -> None:
    """Of a result and of the loops with fused multiply-adds, relative to an element and the median; floats only."""
    exact = np.array([1.0, 2.0, 3.0])
    want = {"x": np.array([1, 2, 3 + 4e-6], np.float32), "n": np.array([1, 2])}
    doubt = RoundingEstimate({}, {"x": exact}, {"x": np.array([1, 2 + 3e-6, 3])})
    judge = ReferenceComparison(want, 10, lambda: doubt)
    assert judge.errors({"x": np.array([1 + 1.5e-6, 2, 3]), "n": want["n"]}) == pytest.approx((5e-7, 7.5e-7), rel=1e-6)
    assert ReferenceComparison(want, 10, lambda: RoundingEstimate({}, {})).errors(want) is None


def halves(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of float16 products in float, in two orders, and without the last term, stored as float16."""
    a, b = (RNG.uniform(0.5, 1.5, size=s).astype(np.float16).astype(np.float32) for s in ((24, k), (k, 24)))
    return (a @ b).astype(np.float16), (a[:, ::-1] @ b[::-1]).astype(np.float16), (a[:, 1:] @ b[1:]).astype(np.float16)


@pytest.mark.parametrize("k", [2, 16, 100])
def test_halves_are_floats_that_are_rounded_once_more(k: int) -> None:
    """Another order passes; a missing term does not, up to the few hundred terms that 11 bits tell."""
    forward, backward, short = halves(k)
    assert compare({"C": forward}, {"C": backward}, terms=k) is None
    assert compare({"C": forward}, {"C": short}, terms=k) is not None
    assert compare({"C": forward}, {"C": np.nextafter(forward, np.float16(np.inf))}, terms=1) is None


def test_inputs_of_halves_stay_far_from_the_largest_one() -> None:
    """No diagonal whose products exceed 65504, and data that the search for a tolerance leaves as they are."""
    text = "void f(int n, _Float16 a[n][n], float b[n][n]) {\nfor (int i = 0; i < n; i++) b[i][i] = a[i][i]; }"
    given = inputs(load(text).codelet, {"n": 40}, 0)
    assert given["a"].dtype == np.float16
    assert given["a"].max() < 1.51
    assert given["b"].max() > 80
    moved = perturb_by_ulp(given, 0)
    assert (moved["a"] == given["a"]).all()
    assert (moved["b"] != given["b"]).all()
