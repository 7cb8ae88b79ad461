"""Locals and reductions: what each iteration has its own of, and what may be accumulated in any order."""

from __future__ import annotations

import pytest

from looptune.poly.legality import Reduction, check_schedule, parallel
from looptune.poly.scop import SchedulePiece, build
from tests.helpers.python_nests import nest
from tests.helpers.scop_models import model_of, order, verdict

TEMPORARY = "for i in range(n):\n    for j in range(m):\n        t = A[i, j]\n        B[i, j] = t * t"


def test_a_temporary_is_private_and_does_not_stop_reordering() -> None:
    """t is written and read in one iteration: iterations are free, its two statements are not to be torn apart."""
    model = model_of(TEMPORARY, "A n m, B n m", "t")
    assert parallel(model, ["S0", "S1"], 1).private == {"t"}
    assert [verdict(model, d) for d in (1, 3)] == ["parallel", "parallel"]
    assert check_schedule(model, order(S0="0, j, 0, i, 0", S1="0, j, 0, i, 1")) is None
    torn = order(S0="0, i, 0, j, 0", S1="1, i, 0, j, 0")
    refused = check_schedule(model, torn)
    assert (refused.array, refused.kind) == ("t", "anti")
    assert str(refused) == "iteration (i=0, j=0) of line 4 must run before (i=0, j=1) of line 3 when n=1, m=2" or (
        str(refused) == "iteration (i=0, j=0) must run before (i=0, j=1) when n=1, m=2"
    )
    assert check_schedule(model, torn, expanded=frozenset({"t"})) is None
    swapped = order(S0="0, i, 0, j, 1", S1="0, i, 0, j, 0")
    assert check_schedule(model, swapped, expanded=frozenset({"t"})).kind == "flow"


def test_a_local_that_flows_between_iterations_is_not_private() -> None:
    """A value carried from one iteration to the next makes the loop sequential."""
    model = model_of("t = 0.0\nfor i in range(n):\n    B[i] = t\n    t = A[i]", "A n, B n", "t")
    found = parallel(model, ["S1", "S2"], 1)
    assert (found.kind, found.private, found.witness.array) == ("sequential", frozenset(), "t")
    read_only = model_of("t = 2.0\nfor i in range(n):\n    B[i] = t", "B n", "t")
    assert parallel(read_only, ["S1"], 1) == parallel(model_of("for i in range(n):\n    B[i] = 2.0", "B n"), ["S0"], 1)


def test_a_local_read_after_the_loop_is_not_private() -> None:
    """The last value is needed outside."""
    model = model_of("for i in range(n):\n    t = A[i]\n    B[i] = t\nC[0] = t", "A n, B n, C 1", "t")
    assert verdict(model, 1, "S0", "S1") == "sequential"


def test_a_local_written_on_both_sides_of_a_condition_is_private() -> None:
    """if (data) t = a; else t = b: t never comes from another iteration, though neither write is certain."""
    code = "for i in range(n):\n    if A[i] > 0.0:\n        t = 1.0\n    else:\n        t = 2.0\n    B[i] = t"
    found = parallel(model_of(code, "A n, B n", "t"), ["S0", "S1", "S2"], 1)
    assert (found.kind, found.private) == ("parallel", {"t"})
    code = "for i in range(n):\n    if A[i] > 0.0:\n        t = 1.0\n    B[i] = t"
    assert verdict(model_of(code, "A n, B n", "t"), 1) == "sequential"


def test_an_assigned_parameter_flows_in() -> None:
    """A parameter has a value before the loop that an iteration may read; a local that is not written has none."""
    code = "for i in range(n):\n    if i > 0:\n        s = A[i]\n    B[i] = s"
    arrays = {"A": ("n",), "B": ("n",)}
    assert verdict(build(nest(code, arrays, None, {"s": "float64"})), 1) == "sequential"
    assert verdict(build(nest(code, arrays, {"s": ()})), 1) == "parallel"


SUMS = {
    "s = s + A[i]": "+", "s = A[i] + s": "+", "s = s - A[i]": "+", "s = s * A[i]": "*", "s = min(s, A[i])": "min",
    "s = (s + A[i]) + 2.0": "+", "s = s if s > A[i] else A[i]": "max",
    "s = float(double(s) + double(A[i]))": "+", "s = A[i] if double(A[i]) > float(s) else s": "max",
    "if A[i] > 0.0: s += A[i]": "+", "if not s >= A[i]: s = A[i]": "max",
}  # fmt: skip
EXACT = {
    "s = A[i] if A[i] > s else s": "max", "s = A[i] if A[i] <= s else s": "min", "s = fmax(s, A[i])": "max",
    "s = A[i] if s > A[i] else s": "min", "s = fmin(fmin(A[i], s), 2.0)": "min", "if A[i] > s: s = A[i]": "max",
    "if s > A[i]: s = A[i]": "min", "if i > 3 and fabs(A[i]) >= s: s = fabs(A[i])": "max",
    "if A[i] > 0.0 and s < A[i]: s = A[i]": "max",
}  # fmt: skip
"""Those that any order leaves the same value of: a NaN never gets in."""


@pytest.mark.parametrize(("statement", "op"), [*SUMS.items(), *EXACT.items()])
def test_reductions_are_recognised(statement: str, op: str) -> None:
    """x = x op e in all its spellings, through casts, makes the loop a reduction; only exact ones move regardless."""
    dtypes = {"s": "float32", "A": "float32"} if "float(double" in statement else {}
    statement = statement.replace(": ", ":\n        ")
    model = model_of(f"s = 0.0\nfor i in range(n):\n    {statement}\nB[0] = s", "A n, B 1", "s", **dtypes)
    found = parallel(model, ["S1"], 1)
    assert (found.kind, found.reductions) == ("reduction", (Reduction(op, "s", "S1"),))
    assert check_schedule(model, order(S1="0, -i")) is None
    exact = statement.replace(":\n        ", ": ") in EXACT
    assert (check_schedule(model, order(S1="0, -i"), reassociate=False) is None) == exact
    assert parallel(model, ["S1"], 1, reassociate=False).kind == ("reduction" if exact else "sequential")


@pytest.mark.parametrize("statement", ["s = s + A[i]", "s = A[i] * s", "s = s if s > A[i] else A[i]"])
def test_integer_reductions_are_exact(statement: str) -> None:
    """Integers wrap, so that their sums and products do not depend on the order either."""
    code = f"for i in range(n):\n    {statement}\nB[0] = s"
    model = model_of(code, "A n, B 1", "s", s="int32", A="int32", B="int32")
    assert check_schedule(model, order(S0="0, -i"), reassociate=False) is None


@pytest.mark.parametrize(
    "statement",
    ["s = A[i] - s", "s = s + s", "s = s / A[i]", "s = (s + A[i]) * 2.0", "s = A[i] + s * s",
     "s = s if s > A[i] else B[i]", "s = A[i] if s > s else s", "if A[i] > s:\n        s = B[i]",
     "if A[i] > s:\n        s = s + A[i]", "if A[i] > s or i > 3:\n        s = A[i]", "if A[i] == s:\n        s = A[i]",
     "if A[i] > s and s > 0.0:\n        s = A[i]", "if A[i] > s:\n        A[i] = 1.0\n        s = A[i]"],
)  # fmt: skip
def test_what_only_looks_like_a_reduction_is_sequential(statement: str) -> None:
    """No accumulation: the order counts."""
    model = model_of(f"s = 0.0\nfor i in range(n):\n    {statement}\nB[0] = s", "A n, B 1", "s")
    inside = list(model.statements)[1:-1]
    assert verdict(model, 1, *inside) == "sequential"
    assert check_schedule(model, {s: (SchedulePiece(("0", "-i")),) for s in inside}) is not None


def test_an_integer_sum_of_floats_is_no_reduction() -> None:
    """int x += 0.5 truncates at every step."""
    model = model_of("for i in range(n):\n    x[0] += A[i]", "A n, x 1", x="int32")
    assert verdict(model, 1) == "sequential"


def test_two_statements_into_one_sum_commute() -> None:
    """s += a and s += b reorder freely, s += a and s *= b do not."""
    code = "for i in range(n):\n    s[0] += A[i]\n    s[0] {} B[i]"
    swapped = order(S0="0, i, 1", S1="0, i, 0")
    plus, times = (model_of(code.format(op), "A n, B n, s 1") for op in ("+=", "*="))
    assert check_schedule(plus, swapped) is None
    assert verdict(plus, 1) == "reduction"
    assert check_schedule(times, swapped) is not None
    assert verdict(times, 1) == "sequential"


def test_a_sum_stays_between_its_start_and_its_use() -> None:
    """Reassociation lets the terms move, not the initialisation or the final read."""
    code = "for i in range(n):\n    s = 0.0\n    for k in range(n):\n        s += A[i, k]\n    B[i] = s"
    model = model_of(code, "A n n, B n", "s")
    assert check_schedule(model, order(S0="0, i, 0, 0", S1="0, i, 1, -k", S2="0, i, 2, 0")) is None
    assert check_schedule(model, order(S0="0, -i, 0, 0", S1="0, -i, 1, k", S2="0, -i, 2, 0")) is None
    assert check_schedule(model, order(S0="0, i, 1, 0", S1="0, i, 0, k", S2="0, i, 2, 0")).array == "s"
    assert check_schedule(model, order(S0="0, 0, i, 0", S1="1, k, i, 0", S2="2, 0, i, 0")).array == "s"
    assert check_schedule(model, order(S0="0, 0, i", S1="1, k, i", S2="2, 0, i"), expanded=frozenset({"s"})) is None
    late = order(S0="0, i, 0", S1="0, i, 1", S2="0, i, 2")
    late["S1"] = (SchedulePiece(("0", "i", "3"), "k < n - 1"), SchedulePiece(("0", "i", "1"), "k = n - 1"))
    assert (check_schedule(model, late).first_statement, check_schedule(model, late).then_statement) == ("S1", "S2")


def test_an_overwritten_value_must_not_come_back() -> None:
    """t = 1; t = 2; use t: the dead write may vanish in time before, not slip in front of the use."""
    model = model_of("for i in range(n):\n    t = 1.0\n    t = 2.0\n    B[i] = t", "B n", "t")
    refused = check_schedule(model, order(S0="0, i, 1", S1="0, i, 0", S2="0, i, 2"))
    assert (refused.kind, refused.first_statement, refused.then_statement) == ("output", "S0", "S1")
    assert check_schedule(model, order(S0="0, i, 2", S1="0, i, 0", S2="0, i, 1")) is None


BRANCHES = "if A[i] > 0.0:\n        t = 1.0\n    else:\n        t = 2.0"


@pytest.mark.parametrize(
    ("code", "reaches"),
    [
        (f"{BRANCHES}", False),
        ("if A[i] > 0.0:\n        t = 1.0", True),
        ("if A[i] > 0.0:\n        t = 1.0\n    if C[i] > 0.0:\n        t = 2.0", True),
        ("if A[i] > 0.0:\n        if C[i] > 0.0:\n            t = 1.0\n        else:\n            t = 2.0\n"
         "    else:\n        t = 3.0", False),
        ("if A[i] > 0.0:\n        if C[i] > 0.0:\n            t = 1.0\n    else:\n        t = 3.0", True),
    ],
)  # fmt: skip
def test_what_both_branches_write_hides_what_was_there(code: str, reaches: bool) -> None:
    """Of the two writes of one ``if`` one runs, so that the first value does not arrive at the end."""
    model = model_of(f"for i in range(n):\n    t = 5.0\n    {code}\n    B[i] = t", "A n, B n, C n", "t")
    assert any(flow.write == "S0" for flow in model.flows("t").flows) == reaches


def test_a_read_in_the_other_branch_is_before_its_write() -> None:
    """if (data) t = 1; else { B = t; t = 2; }: the read gets what was there before the branches."""
    first = "for i in range(n):\n    t = 5.0\n    if A[i] > 0.0:\n        t = 1.0"
    code = f"{first}\n    else:\n        B[i] = t\n        t = 2.0\n    C[i] = t"
    model = model_of(code, "A n, B n, C n", "t")
    found = {(flow.write, flow.read) for flow in model.flows("t").flows}
    assert {("S0", "S2"), ("S1", "S4"), ("S3", "S4")} <= found
    assert ("S0", "S4") not in found
