"""Domains, dependences and the one rule, on nests whose dependences are known."""

from __future__ import annotations

import itertools

import islpy as isl
import pytest

from looptune.ir.interpreter import Interpreter
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import Binary, Cast, Const, Expr, Load, Loop, Unary, Var
from looptune.ir.rewrite import walk
from looptune.ir.simplify import wrap
from looptune.lower.passes.scalar_replacement import never_alias
from looptune.poly.isl_limits import isl_operation_limit
from looptune.poly.legality import Reduction, check_schedule, parallel
from looptune.poly.reversal import reversed_pairs
from looptune.poly.scop import SchedulePiece, Scop, build, to_isl
from tests.helpers.explanations import explained
from tests.helpers.python_nests import nest
from tests.helpers.scop_models import WAVE, model_of, order, verdict

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
        value = Interpreter({}, {"i": i, "n": n}, None).value(e)
        point = type(touched)(f"[n] -> {{ S0[{i}] -> [{value}] : n = {n} }}")
        assert point.is_subset(touched), (written, i, n)


@pytest.mark.parametrize("casts", [("uint8",), ("int8",), ("int8", "uint8"), ("int16", "int64"), ("uint8", "int8")])
def test_a_cast_to_fewer_bits_is_the_remainder(casts: tuple[str, ...]) -> None:
    """And of what is stored in them no place is taken for another: 256 * i + 9 is 9 whatever i is."""
    e: Expr = Binary("-", Binary("*", Const(100), Var("i")), Const(30))
    for dtype in casts:
        e = Cast(dtype, e)
    said = to_isl(e)
    assert said is not None
    for i in range(-700, 700, 7):
        want = 100 * i - 30
        for dtype in casts:
            want = wrap(want, dtype)
        assert not isl.Set(f"[i] -> {{ : i = {i} and {said} = {want} }}").is_empty(), (i, want)


def test_a_place_that_wraps_is_one_place() -> None:
    """As no model of the subscript without its cast would show; nor is it the place beside it in a register."""
    loop = "for (int i = 0; i < n; i++) C[(unsigned char)i] = C[(unsigned char)i] * 2 + 1;"
    (found,) = explained(f"void f(int n, float C[256]) {{\n{loop}\n}}").loops
    assert found.kind == "sequential"
    assert found.reason is not None
    assert "when n=257" in str(found.reason.dependence)
    one, other = (Cast("uint8", Binary("+", Var("i"), Const(k))) for k in (1, 257))
    assert affine_terms(one) == ({one: 1}, 0)
    assert not never_alias((one,), (other,), frozenset())


def test_text_refuses_what_is_not_affine() -> None:
    """Products of variables, loads and floats have no isl text."""
    i, n = Var("i"), Var("n")
    assert to_isl(Binary("*", i, n)) is None
    assert to_isl(Load("A", (i,), "int32")) is None
    assert to_isl(Var("x", "float64")) is None
    assert to_isl(Binary("/", i, n)) is None


def test_isl_words_are_usable_as_variables() -> None:
    """A loop called mod and a size called max are analysed like any other."""
    model = model_of("for mod in range(0, max):\n    A[mod] = A[mod] + 1.0", "A max")
    assert not model.unknown
    assert verdict(model, 1) == "parallel"
    refused = check_schedule(
        model_of("for mod in range(1, max):\n    A[mod] = A[mod - 1]", "A max"), order(S0="0, -mod_")
    )
    assert str(refused) == "iteration (mod=1) must run before (mod=2) when max=3"
    assert to_isl(Unary("-", Var("floor"))) == "(-floor_)"


# --- judge ----------------------------------------------------------------------------------------------------------


def test_permute_of_a_wavefront_is_refused_with_the_smallest_witness() -> None:
    """A[i][j] = A[i-1][j+1] does not permute, and the example shown is the smallest."""
    model = model_of(WAVE, "A n n")
    refused = check_schedule(model, order(S0="0, j, 0, i, 0"))
    assert str(refused) == "iteration (i=1, j=1) must run before (i=2, j=0) when n=3"
    assert (
        refused.detail() == "flow dependence on A: A[i][j] written at nest.c:3:9, A[i - 1][j + 1] read at nest.c:3:19"
    )
    assert (refused.kind, refused.because) == ("flow", None)
    assert check_schedule(model, order(S0="0, i, 0, j, 0")) is None
    assert check_schedule(model, order(S0="0, i, 0, -j, 0")) is None
    assert check_schedule(model, order(S0="0, i + j, 0, i, 0")) is None


GEMM = """
for i in range(n):
    for j in range(m):
        C[i, j] *= beta
        for k in range(p):
            C[i, j] += alpha * A[i, k] * B[k, j]
"""


def gemm() -> Scop:
    return model_of(GEMM, "C n m, A n p, B p m", alpha="float64", beta="float64")


def test_gemm_permutes_and_its_reduction_needs_reassociation_to_reverse() -> None:
    """All six orders of gemm keep C's k in order; running k backward is legal only as a reduction."""
    model = gemm()
    for loops in itertools.permutations("ijk"):
        a, b, c = loops
        first = {"k": "-1", "i": "i", "j": "j"}
        new = order(S0=f"0, {first[a]}, 0, {first[b]}, 0, {first[c]}, 0", S1=f"0, {a}, 0, {b}, 0, {c}, 1")
        assert check_schedule(model, new, reassociate=False) is None, loops
    backward = order(S0="0, i, 0, j, 0, 0, 0", S1="0, i, 0, j, 1, -k, 0")
    assert check_schedule(model, backward) is None
    assert str(check_schedule(model, backward, reassociate=False)) == (
        "iteration (i=0, j=0, k=0) must run before (i=0, j=0, k=1) when n=1, m=1, p=2"
    )
    early = check_schedule(model, order(S0="0, i, 0, j, 0, 0, 0", S1="0, i, 0, j, -1, k, 0"))
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
    assert check_schedule(model, order(S0="0, i")) is None
    assert check_schedule(model, order(S0="0")) is None
    assert check_schedule(model, order(S0="0, j")) is not None


def test_pieces_are_judged_together() -> None:
    """A loop split in two halves that interleave breaks a chain, run one after the other they do not."""
    model = model_of("for i in range(1, n):\n    A[i] = A[i - 1]", "A n")
    halves = {"S0": (SchedulePiece(("0", "i"), "i < 3"), SchedulePiece(("1", "i"), "i >= 3"))}
    assert check_schedule(model, halves) is None
    woven = {"S0": (SchedulePiece(("i", "0"), "i < 3"), SchedulePiece(("i - 3", "1"), "i >= 3"))}
    assert str(check_schedule(model, woven)) == "iteration (i=2) must run before (i=3) when n=4"


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


# --- what cannot be analysed ----------------------------------------------------------------------------------------


def test_an_indirect_subscript_may_touch_anything() -> None:
    """A[idx[i]] = ... is refused, with the subscript as the reason; as a read of another array it is harmless."""
    model = model_of("for i in range(n):\n    A[idx[i]] = B[i]", "A n, B n, idx n", idx="int32")
    assert [u.what for u in model.unknown] == ["subscript idx[i] of A"]
    refused = check_schedule(model, order(S0="0, -i"))
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


@pytest.mark.parametrize(
    ("body", "kinds"),
    [("for i in range(n):\n        e = max(e, A[i])", "r"),
     ("e = 0.0\n    for i in range(n):\n        e = max(e, A[i])\n    for i in range(n):\n        A[i] = B[i]", "rp"),
     ("for i in range(n):\n        e = A[i]\n        B[i] = e", "s"),
     ("for i in range(n):\n        t = A[i]\n        B[i] = t\n    e = t", "s"),
     ("for i in range(n):\n        e = max(e, A[i])\n        if e > 1.0:\n            B[i] = 1.0", "s"),
     ("for i in range(n):\n        while A[i] > e:\n            A[i] = A[i] / 2.0", "p"),
     ("for i in range(n):\n        while A[i] > e:\n            A[i] = A[i] / 2.0\n        e = A[i]", "s")],
)  # fmt: skip
def test_a_while_reads_its_condition_before_its_pass(body: str, kinds: str) -> None:
    """Loops in a pass depend on what its condition reads only by their own accesses."""
    model = model_of(f"while e > B[0]:\n    {body}", "A n, B n", "e t")
    loops = {f: s for s in model.statements.values() for f in s.loops[1:2] if isinstance(f, Loop)}
    inside = [[n for n, s in model.statements.items() if s.loops[1:2] == (f,)] for f in loops]
    assert "".join(parallel(model, names, 3).kind[0] for names in inside) == kinds


@pytest.mark.parametrize(
    ("code", "kind"),
    [("t = A[k]\n    while t > 1.0:\n        t = t / 2.0\n        B[k] += 1.0", "parallel"),
     ("while t > 1.0:\n        t = t / 2.0\n        B[k] += 1.0", "sequential"),
     ("while A[0] > B[k]:\n        for i in range(n):\n            A[i] -= 1.0", "sequential"),
     ("while B[k] > 0.0:\n        for i in range(n):\n            B[k] -= A[i]", "parallel"),
     ("while B[0] > 0.0:\n        B[k] = 1.0", "sequential")],
)  # fmt: skip
def test_a_loop_around_a_while_carries_what_its_condition_reads(code: str, kind: str) -> None:
    assert verdict(model_of(f"for k in range(n):\n    {code}", "A n, B n", "t"), 1) == kind


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


@pytest.mark.parametrize("write", ["i * m + j", "i * j", "i * m + idx[j]"])
def test_flat_arrays_without_rows_may_touch_anything(write: str) -> None:
    """A column that leaves its row at all sizes, or no size at all, is over-approximated."""
    lo = "0 - 1" if write == "i * m + j" else "0"
    code = FLAT.format(lo=lo, w=write, r="0")
    model = build(nest(code, {"A": (None,), "idx": ("m",)}, None, {"idx": "int32"}))
    assert f"subscript {model.space.accesses['S0'][0].text[2:-1]} of A" in [u.what for u in model.unknown]
    assert verdict(model, 1) == "sequential"


# --- always_runs ----------------------------------------------------------------------------------------------------


def test_a_loop_that_always_runs() -> None:
    """Extents may be 0, but are not negative; n - 1 and triangular or unrelated bounds may be empty."""
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
        for k in range(m + 1):
            A[i, 0] += 1.0
        for k in range(p):
            A[i, 0] += 1.0
    """
    model = model_of(code, "A n m")
    loops = sorted((f for f in walk(model.codelet.body) if isinstance(f, Loop)), key=lambda f: f.number)
    assert [model.always_runs(f) for f in loops] == [False, False, False, True, False, True, False]


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


MOST_OF_A_STENCIL = 100_000


def test_a_kernel_is_analysed_in_time() -> None:
    """Dependences of a nest of nine accesses and a judgement take well under a second, counted in isl's operations."""
    code = (
        "for t in range(T):\n    for i in range(1, n - 1):\n        for j in range(1, n - 1):\n            A[i, j] = "
        + " + ".join(f"A[i {a}, j {b}]" for a in ("- 1", "+ 0", "+ 1") for b in ("- 1", "+ 0", "+ 1"))
    )
    with isl_operation_limit(MOST_OF_A_STENCIL):
        model = model_of(code, "A n n")
        assert check_schedule(model, order(S0="0, t, 0, 2 * t + i, 0, i + j + 4 * t")) is None


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ([("i", "j")], [("i", "j")]),
        ([("j", "i")], [("j", "i")]),
        ([("i + j", "0 - i")], [("i + j", "0 - i")]),
        ([("0", "j", "i")], [("1", "i")]),
        ([("1", "j")], [("0", "i", "j")]),
        ([("floor(i/2)", "0", "i mod 2")], [("floor(i/2)", "1")]),
        ([("i", "0"), ("n - i", "j")], [("n - i", "0"), ("i", "j", "1")]),
        ([("0", "i"), ("1", "0 - i")], [("0", "j"), ("1", "j")]),
        ([("1", "i"), ("0", "i")], [("1", "i"), ("0", "i")]),
    ],
)
def test_reversed_pairs_are_those_of_whole_times(first: list[tuple[str, ...]], then: list[tuple[str, ...]]) -> None:
    """Entry by entry, the same pairs are found as where whole times are compared, whatever pieces there are."""
    whens = ["2*j < n", "2*j >= n"]
    model = model_of(
        "for i in range(1, n):\n    for j in range(1, n):\n        A[i][j] = A[i - 1][j] + A[i][j - 1] + A[j][i]",
        "A n n",
    )
    for d in model.dependences:
        one, other = (
            tuple(SchedulePiece(time, when) for time, when in zip(times, whens if times[1:] else [""], strict=True))
            for times in (first, then)
        )
        whole = d.map.intersect(model.space.later(d.source, d.sink, one, other))
        found = reversed_pairs(model.space, d, one, other)
        assert whole.is_empty() if found is None else found.is_equal(whole) and not found.is_empty()
