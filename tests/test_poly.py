"""Domains, dependences and the one rule: known nests by name, random nests against brute force."""

from __future__ import annotations

import ast
import itertools
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nests import nest

from looptune.interp import _Machine
from looptune.ir import Assign, Bin, Codelet, Const, If, Load, Loop, Un, Var
from looptune.poly.legality import Reduction, judge, parallel
from looptune.poly.model import Model, Piece, build, text
from looptune.rewrite import walk

WAVE = "for i in range(1, n):\n    for j in range(0, n - 1):\n        A[i, j] = A[i - 1, j + 1]"


def model_of(code: str, arrays: str = "", locals_: str = "", **dtypes: str) -> Model:
    """``arrays``: "A n m, B n"."""
    shapes = {words[0]: tuple(words[1:]) for words in (a.split() for a in arrays.split(",")) if words}
    return build(nest(code, shapes, dict.fromkeys(locals_.split(), ()), dtypes))


def order(**times: str) -> dict[str, tuple[Piece, ...]]:
    return {s: (Piece(tuple(t.split(", "))),) for s, t in times.items()}


def verdict(model: Model, depth: int, *statements: str) -> str:
    return parallel(model, statements if statements else list(model.statements), depth).kind


# --- text -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    ["n - 1 - i", "2 * i + 1", "i // 2", "i % 3", "(i - 4) // 3", "(i - 4) % 3", "-i // 2", "min(i, n) - max(i, 2)",
     "i // -2", "i << 2", "i >> 1", "i & 7", "(0 - i) >> 1", "i * (2 + 1)"],
)  # fmt: skip
def test_text_means_what_c_means(written: str) -> None:
    """isl evaluates the text of an integer expression to what the interpreter makes of it."""
    codelet = nest(f"for i in range(0, n):\n    x[0] = {written}", {"x": (1,)}, None, {"x": "int32"})
    e = codelet.body[0].body[0].value
    model = model_of(f"for i in range(0 - 20, n):\n    x[{written}] = 1.0", "x n")
    (access,) = (a for a in model.space.accesses["S0"] if a.write)
    assert access.index[0] is not None
    touched = model.space.touched(access)
    for i, n in itertools.product(range(-9, 10), (10, 12)):
        value = _Machine({}, {"i": i, "n": n}, None).value(e)
        point = type(touched)(f"[n] -> {{ S0[{i}] -> [{value}] : n = {n} }}")
        assert point.is_subset(touched), (written, i, n)


def test_text_refuses_what_is_not_affine() -> None:
    """Products of variables, loads and floats have no isl text."""
    i, n = Var("i"), Var("n")
    assert text(Bin("*", i, n)) is None
    assert text(Load("A", (i,), "int32")) is None
    assert text(Var("x", "float64")) is None
    assert text(Bin("/", i, n)) is None


def test_isl_words_are_usable_as_variables() -> None:
    """A loop called mod and a size called max are analysed like any other."""
    model = model_of("for mod in range(0, max):\n    A[mod] = A[mod] + 1.0", "A max")
    assert not model.unknown
    assert verdict(model, 1) == "parallel"
    refused = judge(model_of("for mod in range(1, max):\n    A[mod] = A[mod - 1]", "A max"), order(S0="0, -mod_"))
    assert str(refused) == "iteration (mod=1) must run before (mod=2) when max=3"
    assert text(Un("-", Var("floor"))) == "(-floor_)"


# --- judge ----------------------------------------------------------------------------------------------------------


def test_permute_of_a_wavefront_is_refused_with_the_smallest_witness() -> None:
    """A[i][j] = A[i-1][j+1] does not permute, and the example shown is the smallest."""
    model = model_of(WAVE, "A n n")
    refused = judge(model, order(S0="0, j, 0, i, 0"))
    assert str(refused) == "iteration (i=1, j=1) must run before (i=2, j=0) when n=3"
    assert (
        refused.detail() == "flow dependence on A: A[i][j] written at nest.c:3:9, A[i - 1][j + 1] read at nest.c:3:19"
    )
    assert (refused.kind, refused.because) == ("flow", None)
    assert judge(model, order(S0="0, i, 0, j, 0")) is None
    assert judge(model, order(S0="0, i, 0, -j, 0")) is None
    assert judge(model, order(S0="0, i + j, 0, i, 0")) is None


GEMM = """
for i in range(n):
    for j in range(m):
        C[i, j] *= beta
        for k in range(p):
            C[i, j] += alpha * A[i, k] * B[k, j]
"""


def gemm() -> Model:
    return model_of(GEMM, "C n m, A n p, B p m", alpha="float64", beta="float64")


def test_gemm_permutes_and_its_reduction_needs_reassociation_to_reverse() -> None:
    """All six orders of gemm keep C's k in order; running k backward is legal only as a reduction."""
    model = gemm()
    for loops in itertools.permutations("ijk"):
        a, b, c = loops
        first = {"k": "-1", "i": "i", "j": "j"}
        new = order(S0=f"0, {first[a]}, 0, {first[b]}, 0, {first[c]}, 0", S1=f"0, {a}, 0, {b}, 0, {c}, 1")
        assert judge(model, new, reassociate=False) is None, loops
    backward = order(S0="0, i, 0, j, 0, 0, 0", S1="0, i, 0, j, 1, -k, 0")
    assert judge(model, backward) is None
    assert str(judge(model, backward, reassociate=False)) == (
        "iteration (i=0, j=0, k=0) must run before (i=0, j=0, k=1) when n=1, m=1, p=2"
    )
    early = judge(model, order(S0="0, i, 0, j, 0, 0, 0", S1="0, i, 0, j, -1, k, 0"))
    assert (early.first_statement, early.then_statement) == ("S0", "S1")
    assert str(early) == "iteration (i=0, j=0) must run before (i=0, j=0, k=0) when n=1, m=1, p=1"


def test_gemm_loops() -> None:
    """i and j carry nothing, k carries the sum into C."""
    model = gemm()
    assert [verdict(model, d) for d in (1, 3)] == ["parallel", "parallel"]
    k = parallel(model, ["S1"], 5)
    assert (k.kind, k.reductions) == ("reduction", (Reduction("+", "C[i][j]", "S1"),))
    assert k.witness is not None


def test_partial_times_tie_as_before() -> None:
    """Times that stop early leave the rest of the order as it was."""
    model = model_of(WAVE, "A n n")
    assert judge(model, order(S0="0, i")) is None
    assert judge(model, order(S0="0")) is None
    assert judge(model, order(S0="0, j")) is not None


def test_pieces_are_judged_together() -> None:
    """A loop split in two halves that interleave breaks a chain, run one after the other they do not."""
    model = model_of("for i in range(1, n):\n    A[i] = A[i - 1]", "A n")
    halves = {"S0": (Piece(("0", "i"), "i < 3"), Piece(("1", "i"), "i >= 3"))}
    assert judge(model, halves) is None
    woven = {"S0": (Piece(("i", "0"), "i < 3"), Piece(("i - 3", "1"), "i >= 3"))}
    assert str(judge(model, woven)) == "iteration (i=2) must run before (i=3) when n=4"


def test_triangular_bounds_are_exact() -> None:
    """j < i keeps a write of A[j] from ever meeting the read of A[i] of an earlier row."""
    below = model_of("for i in range(n):\n    for j in range(i):\n        A[i, j] = A[j, i]", "A n n")
    assert verdict(below, 1) == verdict(below, 3) == "parallel"
    full = model_of("for i in range(n):\n    for j in range(n):\n        A[i, j] = A[j, i]", "A n n")
    assert verdict(full, 1) == "sequential"


def test_steps_and_parity() -> None:
    """Writing even elements and reading odd ones carries nothing; a step of one does."""
    code = "for i in range({}, n, {}):\n    A[i] = A[i - 1] + A[i + 1]"
    assert verdict(model_of(code.format(2, 2), "A n"), 1) == "parallel"
    assert verdict(model_of(code.format(2, 1), "A n"), 1) == "sequential"
    assert verdict(model_of("for i in range(n):\n    A[2 * i + 1] = A[2 * i]", "A n"), 1) == "parallel"
    assert verdict(model_of("for i in range(n):\n    A[i // 2] = 1.0", "A n"), 1) == "sequential"


def test_conditions_are_exact_where_affine() -> None:
    """then and else of an affine condition never meet."""
    code = """
    for i in range(n):
        if i < m:
            A[i] = 1.0
        else:
            A[i] = A[i - m]
    """
    assert verdict(model_of(code, "A n"), 1) == "sequential"
    code = code.replace("A[i - m]", "A[i]").replace("1.0", "2.0")
    assert verdict(model_of(code, "A n"), 1) == "parallel"


def test_a_local_index_stands_for_its_value() -> None:
    """int m = n - 1 and int k = 2 * i are seen through; a local assigned twice is not."""
    code = "m = n - 1\nfor i in range(1, m):\n    k = m - i\n    A[k] = A[k] + 1.0"
    model = model_of(code, "A n", "m k", m="int32", k="int32")
    assert not model.unknown
    assert verdict(model, 1, "S1", "S2") == "parallel"
    model = model_of("k = 0\nfor i in range(n):\n    A[k] = 1.0\n    k = k + 1", "A n", "k", k="int32")
    assert [u.what for u in model.unknown] == ["subscript k of A"]


# --- locals ---------------------------------------------------------------------------------------------------------

TEMPORARY = "for i in range(n):\n    for j in range(m):\n        t = A[i, j]\n        B[i, j] = t * t"


def test_a_temporary_is_private_and_does_not_stop_reordering() -> None:
    """t is written and read in one iteration: iterations are free, its two statements are not to be torn apart."""
    model = model_of(TEMPORARY, "A n m, B n m", "t")
    assert parallel(model, ["S0", "S1"], 1).private == {"t"}
    assert [verdict(model, d) for d in (1, 3)] == ["parallel", "parallel"]
    assert judge(model, order(S0="0, j, 0, i, 0", S1="0, j, 0, i, 1")) is None
    torn = order(S0="0, i, 0, j, 0", S1="1, i, 0, j, 0")
    refused = judge(model, torn)
    assert (refused.array, refused.kind) == ("t", "anti")
    assert str(refused) == "iteration (i=0, j=0) of line 4 must run before (i=0, j=1) of line 3 when n=1, m=2" or (
        str(refused) == "iteration (i=0, j=0) must run before (i=0, j=1) when n=1, m=2"
    )
    assert judge(model, torn, expanded=frozenset({"t"})) is None
    swapped = order(S0="0, i, 0, j, 1", S1="0, i, 0, j, 0")
    assert judge(model, swapped, expanded=frozenset({"t"})).kind == "flow"


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


# --- reductions -----------------------------------------------------------------------------------------------------


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
    assert judge(model, order(S1="0, -i")) is None
    exact = statement.replace(":\n        ", ": ") in EXACT
    assert (judge(model, order(S1="0, -i"), reassociate=False) is None) == exact
    assert parallel(model, ["S1"], 1, reassociate=False).kind == ("reduction" if exact else "sequential")


@pytest.mark.parametrize("statement", ["s = s + A[i]", "s = A[i] * s", "s = s if s > A[i] else A[i]"])
def test_integer_reductions_are_exact(statement: str) -> None:
    """Integers wrap, so that their sums and products do not depend on the order either."""
    code = f"for i in range(n):\n    {statement}\nB[0] = s"
    model = model_of(code, "A n, B 1", "s", s="int32", A="int32", B="int32")
    assert judge(model, order(S0="0, -i"), reassociate=False) is None


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
    assert judge(model, {s: (Piece(("0", "-i")),) for s in inside}) is not None


def test_an_integer_sum_of_floats_is_no_reduction() -> None:
    """int x += 0.5 truncates at every step."""
    model = model_of("for i in range(n):\n    x[0] += A[i]", "A n, x 1", x="int32")
    assert verdict(model, 1) == "sequential"


def test_two_statements_into_one_sum_commute() -> None:
    """s += a and s += b reorder freely, s += a and s *= b do not."""
    code = "for i in range(n):\n    s[0] += A[i]\n    s[0] {} B[i]"
    swapped = order(S0="0, i, 1", S1="0, i, 0")
    plus, times = (model_of(code.format(op), "A n, B n, s 1") for op in ("+=", "*="))
    assert judge(plus, swapped) is None
    assert verdict(plus, 1) == "reduction"
    assert judge(times, swapped) is not None
    assert verdict(times, 1) == "sequential"


def test_a_sum_stays_between_its_start_and_its_use() -> None:
    """Reassociation lets the terms move, not the initialisation or the final read."""
    code = "for i in range(n):\n    s = 0.0\n    for k in range(n):\n        s += A[i, k]\n    B[i] = s"
    model = model_of(code, "A n n, B n", "s")
    assert judge(model, order(S0="0, i, 0, 0", S1="0, i, 1, -k", S2="0, i, 2, 0")) is None
    assert judge(model, order(S0="0, -i, 0, 0", S1="0, -i, 1, k", S2="0, -i, 2, 0")) is None
    assert judge(model, order(S0="0, i, 1, 0", S1="0, i, 0, k", S2="0, i, 2, 0")).array == "s"
    assert judge(model, order(S0="0, 0, i, 0", S1="1, k, i, 0", S2="2, 0, i, 0")).array == "s"
    assert judge(model, order(S0="0, 0, i", S1="1, k, i", S2="2, 0, i"), expanded=frozenset({"s"})) is None
    late = order(S0="0, i, 0", S1="0, i, 1", S2="0, i, 2")
    late["S1"] = (Piece(("0", "i", "3"), "k < n - 1"), Piece(("0", "i", "1"), "k = n - 1"))
    assert (judge(model, late).first_statement, judge(model, late).then_statement) == ("S1", "S2")


def test_an_overwritten_value_must_not_come_back() -> None:
    """t = 1; t = 2; use t: the dead write may vanish in time before, not slip in front of the use."""
    model = model_of("for i in range(n):\n    t = 1.0\n    t = 2.0\n    B[i] = t", "B n", "t")
    refused = judge(model, order(S0="0, i, 1", S1="0, i, 0", S2="0, i, 2"))
    assert (refused.kind, refused.first_statement, refused.then_statement) == ("output", "S0", "S1")
    assert judge(model, order(S0="0, i, 2", S1="0, i, 0", S2="0, i, 1")) is None


# --- what cannot be analysed ----------------------------------------------------------------------------------------


def test_an_indirect_subscript_may_touch_anything() -> None:
    """A[idx[i]] = ... is refused, with the subscript as the reason; as a read of another array it is harmless."""
    model = model_of("for i in range(n):\n    A[idx[i]] = B[i]", "A n, B n, idx n", idx="int32")
    assert [u.what for u in model.unknown] == ["subscript idx[i] of A"]
    refused = judge(model, order(S0="0, -i"))
    assert refused.because == model.unknown[0]
    assert "assumed: subscript idx[i] of A cannot be analysed" in refused.detail()
    assert (
        verdict(model_of("for i in range(n):\n    B[i] = A[idx[i]]", "A n, B n, idx n", idx="int32"), 1) == "parallel"
    )


def test_data_dependent_bounds_and_conditions_are_assumed_to_run() -> None:
    """What may run conflicts, but hides nothing; each unknown is reported once with its statements."""
    code = "for i in range(n):\n    for j in range(cnt[i]):\n        A[i] += B[j]\n        C[j] = 1.0"
    model = model_of(code, "A n, B n, C n, cnt n", cnt="int32")
    assert [(u.what, u.statements) for u in model.unknown] == [("the bound cnt[i] of loop j", {"S0", "S1"})]
    assert verdict(model, 1) == "sequential"
    assert verdict(model, 1, "S0") == "parallel"
    assert verdict(model, 3, "S0") == "reduction"
    assert parallel(model, ["S1"], 1).witness.because.what == "the bound cnt[i] of loop j"


def test_while_is_a_loop_without_end() -> None:
    """The passes of a while stay in order; the loop around one that only touches its own row is parallel."""
    code = "for i in range(n):\n    while A[i] > 1.0:\n        A[i] = A[i] / 2.0"
    model = model_of(code, "A n")
    assert verdict(model, 1) == "parallel"
    found = parallel(model, ["S0"], 3)
    assert (found.kind, str(found.witness)) == (
        "sequential",
        "iteration (i=0, pass=0) must run before (i=0, pass=1) when n=1",
    )


def test_a_condition_reads_what_it_tests() -> None:
    """The statements under an if depend on the writes of its condition."""
    code = "for i in range(1, n):\n    if A[i - 1] > 0.0:\n        B[i] = 1.0\n    A[i] = 2.0"
    assert verdict(model_of(code, "A n, B n"), 1) == "sequential"
    assert verdict(model_of(code.replace("A[i - 1]", "A[i]"), "A n, B n"), 1) == "parallel"


FLAT = "for i in range(1, n):\n    for j in range({lo}, m):\n        for k in range(p):\n            A[{w}] = A[{r}]"


@pytest.mark.parametrize(
    ("write", "read", "kinds"),
    [("i * m + j", "i * m + j", "ppx"), ("i * m + j", "(i - 1) * m + j", "spx"), ("i * m + j", "i * m + j - 1", "psx"),
     ("m * i + (m - 1 - j)", "m * i", "psx"), ("(i * m + j) * p + k", "(i * m + j) * p + p - 1 - k", "pps"),
     ("i * m * p + j * p + k", "(i - 1) * m * p + j * p + k", "spp"), ("(i + 1) * m + j", "i * m + j", "spx")],
)  # fmt: skip
def test_flat_arrays_have_rows(write: str, read: str, kinds: str) -> None:
    """A[i * m + j] is as exact as A[i][j] where j stays below m: (p)arallel, (s)equential, x any."""
    model = build(nest(FLAT.format(lo=1, w=write, r=read), {"A": (None,)}))
    assert not model.unknown
    for depth, kind in zip((1, 3, 5), kinds, strict=True):
        assert kind == "x" or verdict(model, depth)[0] == kind, depth


@pytest.mark.parametrize("write", ["i * m + j", "i * n + j", "i * j", "i * m + idx[j]", "(i * m + j) * m + k"])
def test_flat_arrays_without_rows_may_touch_anything(write: str) -> None:
    """A column that can leave its row, or no size at all, is over-approximated."""
    lo = "0 - 1" if write == "i * m + j" else "0"
    code = FLAT.format(lo=lo, w=write, r="0")
    model = build(nest(code, {"A": (None,), "idx": ("m",)}, None, {"idx": "int32"}))
    assert f"subscript {model.space.accesses['S0'][0].text[2:-1]} of A" in [u.what for u in model.unknown]
    assert verdict(model, 1) == "sequential"


# --- always_runs ----------------------------------------------------------------------------------------------------


def test_a_loop_over_an_extent_always_runs() -> None:
    """Extents are positive; n - 1, triangular or unrelated bounds may be empty."""
    code = """
    for i in range(n):
        for j in range(m):
            A[i, j] = 1.0
        for k in range(i):
            A[i, 0] += 1.0
        for k in range(i, n):
            A[i, 0] += 1.0
        for k in range(n - 1):
            A[i, 0] += 1.0
        for k in range(p):
            A[i, 0] += 1.0
    """
    model = model_of(code, "A n m")
    loops = sorted((f for f in walk(model.codelet.body) if isinstance(f, Loop)), key=lambda f: f.number)
    assert [model.always_runs(f) for f in loops] == [True, True, False, True, False, False]


def test_order_is_static_and_loop_by_turns() -> None:
    """time = (static, loop, static, ..., static), one length for all; an if adds no dimension."""
    code = """
    for i in range(n):
        A[i] = 1.0
        if i > 2:
            A[0] = 1.0
        else:
            A[1] = 1.0
        for j in range(n):
            A[j] = 1.0
    """
    times = [p.time for (p,) in model_of(code, "A n").order().values()]
    assert times == [
        ("0", "i", "0", "0", "0"), ("0", "i", "1", "0", "0"), ("0", "i", "2", "0", "0"), ("0", "i", "3", "j", "0"),
    ]  # fmt: skip


def test_only_poly_knows_isl() -> None:
    """No other module of the package imports islpy, and poly stays in its layer."""
    root = Path(__file__).parent.parent / "looptune"
    below = {"source", "errors", "ir", "simplify", "rewrite", "pretty", "scope", "poly"}
    for path in root.rglob("*.py"):
        imported = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Import | ast.ImportFrom)]
        modules = [a.name for n in imported if isinstance(n, ast.Import) for a in n.names]
        modules += [n.module or "" for n in imported if isinstance(n, ast.ImportFrom)]
        if path.parent.name == "poly":
            assert {m.split(".")[1] for m in modules if m.startswith("looptune.")} <= below, path
        else:
            assert "islpy" not in modules, path


# --- against brute force --------------------------------------------------------------------------------------------

Instance = tuple[str, tuple[int, ...]]


def instances(codelet: Codelet, sizes: Mapping[str, int]) -> Iterator[tuple[Instance, dict[str, int], Assign]]:
    """Every instance in the original order, with its variables. Conditions must not read arrays."""
    machine = _Machine({}, dict(sizes), None)

    def visit(body: tuple, env: dict[str, int]) -> Iterator[tuple[Instance, dict[str, int], Assign]]:
        machine.scalars.update(env)
        for stmt in body:
            machine.scalars.update(env)
            match stmt:
                case Assign(name=statement, at=at):
                    yield (statement, tuple(machine.value(e) for e in at)), dict(env), stmt
                case Loop(var, lo, hi, inner, step):
                    for i in range(machine.value(lo), machine.value(hi), step):
                        yield from visit(inner, {**env, var: i})
                case If(cond, then, other):
                    yield from visit(then if machine.value(cond) else other, env)

    yield from visit(codelet.body, dict(sizes))


def elements(stmt: Assign, env: Mapping[str, int], locals_: set[str]) -> list[tuple[str, tuple[int, ...], bool]]:
    """(array, element, written) for all that the instance touches, reads first."""
    machine = _Machine({}, dict(env), None)

    def place(node: Load | Var) -> tuple[str, tuple[int, ...]]:
        return (node.array, tuple(machine.value(e) for e in node.index)) if isinstance(node, Load) else (node.name, ())

    reads = [n for n in walk(stmt.value) if isinstance(n, Load) or (isinstance(n, Var) and n.name in locals_)]
    return [(*place(n), False) for n in reads] + [(*place(stmt.target), True)]


def time_of(pieces: tuple[Piece, ...], env: Mapping[str, int]) -> tuple[int, ...]:
    (held,) = (p for p in pieces if not p.when or eval(p.when.replace(" mod ", " % "), {}, dict(env)))
    return tuple(eval(e, {}, dict(env)) for e in held.time)


def conflicts(codelet: Codelet, run: list, shared: bool = False) -> Iterator[tuple[int, int]]:
    """Positions of instances that touch one array element, one of them writing; ``shared``: locals too."""
    locals_ = {v.name for v in codelet.locals}
    touched = [elements(s, env, locals_) for _, env, s in run]
    for (p, a), (q, b) in itertools.combinations(enumerate(touched), 2):
        if any(x[:2] == y[:2] and (x[2] or y[2]) and (shared or x[0] not in locals_) for x in a for y in b):
            yield p, q


def writers(codelet: Codelet, run: list) -> dict[tuple[Instance, str], Instance | None]:
    """Who wrote the value each instance reads of each local."""
    locals_ = {v.name for v in codelet.locals}
    last: dict[str, Instance] = {}
    found = {}
    for instance, env, stmt in run:
        for array, _, written in elements(stmt, env, locals_):
            if array not in locals_:
                continue
            if written:
                last[array] = instance
            else:
                found[instance, array] = last.get(array)
    return found


SUBSCRIPTS = ("i", "j", "i - 1", "j + 1", "n - 1 - i", "2 * i + 1", "i // 2", "i + j", "j % 2", "n - 1 - j", "0", "2")
BOUNDS = (("0", "n"), ("1", "n"), ("0", "n - 1"), ("i", "n"), ("0", "i + 1"), ("n - 1 - i", "n"), ("0", "min(n, 3)"))
VALUES = ("A[{0}, {1}] + 1.0", "B[{0}]", "B[{1}] + t", "t", "1.0", "A[{1}, {0}] * B[{0}]")
CONDITIONS = ("i < j", "i + j == n", "(i + j) % 2 == 0", "j < 2", "not (i > 1 and j > 1)")


@st.composite
def codes(draw: st.DrawFn) -> str:
    """for i { statements; for j { statements }; statements }, some under affine conditions."""
    lo, hi = draw(st.sampled_from(BOUNDS[:3]))
    jlo, jhi = draw(st.sampled_from(BOUNDS))
    steps = draw(st.tuples(st.sampled_from([1, 1, 2]), st.sampled_from([1, 1, 2, 3])))

    def statement(outer: bool) -> str:
        pool = [s for s in SUBSCRIPTS if not (outer and "j" in s)]
        a, b, c, d = (draw(st.sampled_from(pool)) for _ in range(4))
        target = draw(st.sampled_from([f"A[{a}, {b}]", f"A[{a}, {b}]", f"B[{a}]", "t"]))
        line = f"{target} = {draw(st.sampled_from(VALUES)).format(c, d)}"
        if not outer and draw(st.integers(0, 3)) == 0:
            line = f"if {draw(st.sampled_from(CONDITIONS))}: {line}"
        return line

    lines = [f"for i in range({lo}, {hi}, {steps[0]}):"]
    lines += ["    " + statement(True) for _ in range(draw(st.integers(0, 1)))]
    lines += [f"    for j in range({jlo}, {jhi}, {steps[1]}):"]
    lines += ["        " + statement(False) for _ in range(draw(st.integers(1, 2)))]
    lines += ["    " + statement(True) for _ in range(draw(st.integers(0, 1)))]
    return "\n".join(lines)


def random_nest(code: str) -> Codelet:
    return nest(code, {"A": ("n", "n"), "B": ("n",)}, {"t": ()})


TIMES = ("i", "j", "-i", "-j", "i + j", "j - i", "0", "i // 2", "i % 2", "n - i")


@st.composite
def orders(draw: st.DrawFn, model: Model) -> dict[str, tuple[Piece, ...]]:
    """A few random dimensions for all statements, with a random place in the text between them."""
    dims = draw(st.lists(st.sampled_from(TIMES), min_size=1, max_size=3))
    statics = {s: [draw(st.integers(-1, 1)) for _ in dims] for s in model.statements}

    def of(name: str) -> tuple[Piece, ...]:
        own = model.statements[name].dims
        entries = [e if "j" not in e or "j" in own else e.replace("j", "0") for e in dims]
        time_ = tuple(x for e, k in zip(entries, statics[name], strict=True) for x in (str(k), e))
        return (Piece(tuple(e.replace("//", "/").replace("i / 2", "floor(i/2)").replace("%", "mod") for e in time_)),)

    return {s: of(s) for s in model.statements}


def at(pieces: tuple[Piece, ...], env: Mapping[str, int]) -> tuple[int, ...]:
    plain = tuple(Piece(tuple(e.replace("floor(i/2)", "i // 2").replace("mod", "%") for e in p.time)) for p in pieces)
    return time_of(plain, env)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_judge_is_exact(data: st.DataObject) -> None:
    """Legal: no conflict is reversed, every local read keeps its writer, at all small sizes. Else: a true witness."""
    codelet = random_nest(data.draw(codes()))
    model = build(codelet)
    new = data.draw(orders(model))
    refused = judge(model, new, reassociate=False)
    for n in range(1, 5) if refused is None else [refused.sizes.get("n", 4)]:
        run = list(instances(codelet, {"n": n}))
        times = [(at(new[i[0]], env), k) for k, (i, env, _) in enumerate(run)]
        reversed_ = [(run[p][0], run[q][0]) for p, q in conflicts(codelet, run) if times[p][0] > times[q][0]]
        moved = [run[k] for _, k in sorted(times)]
        before, after = writers(codelet, run), writers(codelet, moved)
        changed = [r for r, w in before.items() if w is not None and after[r] != w]
        if refused is None:
            assert not reversed_
            assert not changed
        elif refused.array != "t":
            pair = tuple((s, tuple(v.values())) for s, v in ((refused.first_statement, refused.first),
                                                             (refused.then_statement, refused.then)))  # fmt: skip
            assert pair in reversed_
        else:
            assert changed


@settings(max_examples=120, deadline=None)
@given(codes(), st.sampled_from([1, 3]))
def test_parallel_is_exact(code: str, depth: int) -> None:
    """Parallel: no conflict between different iterations of the loop, at all small sizes. Else: the witness is true."""
    codelet = random_nest(code)
    model = build(codelet)
    inside = [n for n, s in model.statements.items() if depth == 1 or "j" in s.dims]
    found = parallel(model, inside, depth)
    sizes = range(1, 5) if found.witness is None else [found.witness.sizes.get("n", 4)]
    loop = depth // 2
    for n in sizes:
        run = [r for r in instances(codelet, {"n": n}) if r[0][0] in inside]
        pairs = {(run[p][0], run[q][0]) for p, q in conflicts(codelet, run, shared="t" not in found.private)}
        carried = {(a, b) for a, b in pairs if a[1][:loop] == b[1][:loop] and a[1][loop] != b[1][loop]}
        if found.witness is None:
            assert not carried
        else:
            w = found.witness
            assert ((w.first_statement, tuple(w.first.values())), (w.then_statement, tuple(w.then.values()))) in carried
        if "t" in found.private:
            whole = list(instances(codelet, {"n": n}))
            for (r, _), w in writers(codelet, whole).items():
                if w is not None and (r[0] in inside or w[0] in inside):
                    assert {r[0], w[0]} <= set(inside)
                    assert r[1][: loop + 1] == w[1][: loop + 1]


def test_a_kernel_is_analysed_in_time() -> None:
    """Dependences of a nest of nine accesses take well under a second, a judgement milliseconds."""
    code = (
        "for t in range(T):\n    for i in range(1, n - 1):\n        for j in range(1, n - 1):\n            A[i, j] = "
        + " + ".join(f"A[i {a}, j {b}]" for a in ("- 1", "+ 0", "+ 1") for b in ("- 1", "+ 0", "+ 1"))
    )
    start = time.perf_counter()
    model = model_of(code, "A n n")
    assert judge(model, order(S0="0, t, 0, 2 * t + i, 0, i + j + 4 * t")) is None
    assert time.perf_counter() - start < 1


INDIRECT = ("i", "j", "idx[i]", "idx[j]", "i * j", "n - 1 - i")
UPDATES = (
    "{t} = {v}",
    "{t} = {v}",
    "{t} = {t} + {v}",
    "{t} = max({t}, {v})",
    "if {v} > {t}: {t} = {v}",
    "if {t} > {v}: {t} = {v}",
    "{t} = {v} - {t}",
    "s = s + {v}",
    "s = {v}",
    "{t} = s",
)
GUARDS = ("", "", "if B[i] > 2.0: ", "if i < j and A[i, j] < 1.0: ", "if idx[j] == i: ")


@st.composite
def wild(draw: st.DrawFn) -> str:
    """Two or three statements with indirect subscripts, data-dependent conditions, accumulations and a local."""
    lines = ["for i in range(0, n):", "    for j in range(0, n):"]
    for _ in range(draw(st.integers(2, 3))):
        a, b, c, d = (draw(st.sampled_from(INDIRECT)) for _ in range(4))
        target = draw(st.sampled_from([f"A[{a}, {b}]", f"B[{a}]"]))
        value = draw(st.sampled_from([f"A[{c}, {d}]", f"B[{c}]", "3.0"]))
        update = draw(st.sampled_from(UPDATES)).format(t=target, v=value)
        guard = "" if update.startswith("if") else draw(st.sampled_from(GUARDS))
        lines.append(f"        {guard}{update}")
    return "\n".join(lines)


def execute(codelet: Codelet, n: int, times: Mapping[str, tuple[Piece, ...]] | None) -> dict[str, list]:
    """Run instance by instance in the order of ``times``, asking each one's conditions when its turn comes."""
    shape = n * n + 1
    rng = np.random.default_rng(n)
    arrays = {"A": rng.integers(0, 5, (shape, shape)) * 1.0, "B": rng.integers(0, 5, shape) * 1.0,
              "idx": rng.integers(0, n, shape)}  # fmt: skip
    machine = _Machine(arrays, {"n": n, "s": 1.0}, None)
    todo = []
    for i, j in itertools.product(range(n), range(n)):
        for stmt in codelet.body[0].body[0].body:
            guard, assign = (stmt.cond, stmt.then[0]) if isinstance(stmt, If) else (Const(1), stmt)
            env = {"i": i, "j": j, "n": n}
            todo.append(((*(() if times is None else at(times[assign.name], env)), len(todo)), env, guard, assign))
    for _, env, guard, assign in sorted(todo, key=lambda x: x[0]):
        machine.scalars.update(env)
        if machine.value(guard):
            machine.store(assign.target, machine.value(assign.value))
    return {a: arrays[a].tolist() for a in "AB"}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_judge_is_sound_for_code_it_cannot_analyse(data: st.DataObject) -> None:
    """Whatever is accepted computes the same, accumulations included: on integers they are exact."""
    code = data.draw(wild())
    codelet = nest(code, {"A": (None, "m"), "B": ("m",), "idx": ("m",)}, {"s": ()}, {"idx": "int32"})
    model = build(codelet)
    new = data.draw(orders(model))
    if judge(model, new) is None:
        for n in (2, 3):
            assert execute(codelet, n, None) == execute(codelet, n, new)
