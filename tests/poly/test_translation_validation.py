"""Translation validation: correct rewritings are proved, each kind of broken one is caught."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from looptune.core.errors import IllegalTransform
from looptune.frontend import load
from looptune.ir.nodes import Assign, Codelet, Const, Loop, Node
from looptune.ir.rewrite import rewrite, walk
from looptune.lower.pipeline import lower
from looptune.lower.plan_check import plan_as_loops
from looptune.poly.translation_validation import TOO_INVOLVED, Proof, prove
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers.python_nests import _Reader, nest

SHAPES = {"A": ("n", "n"), "B": ("n",), "x": (1,)}


def codelet(code: str, locals_: str = "") -> Codelet:
    return nest(code, SHAPES, dict.fromkeys(locals_.split(), ()), {"idx": "int32"})


def made(code: str, *instances: str, locals_: str = "", threads: str = "") -> Codelet:
    """``code`` as a finished tree: its assignments are, in textual order, ``instances`` such as "S0 2 * i, j"."""
    tree = nest(code, SHAPES, dict.fromkeys(locals_.split(), ()))
    loops = tuple({n.var: None for n in _loops(tree)})
    left = iter(instances)

    def rule(n: Node) -> Node | None:
        match n:
            case Assign():
                name, _, at = next(left).partition(" ")
                parsed = ast.parse(f"({at},)" if at else "()", mode="eval").body
                return replace(n, name=name, instance=tuple(_Reader([], {}, set()).expr(e, loops) for e in parsed.elts))
            case Loop(var) if var in threads.split():
                return replace(n, mode="parallel")
        return None

    return replace(tree, body=rewrite(rule, tree.body))


def _loops(tree: Codelet) -> list[Loop]:
    found: list[Loop] = []
    rewrite(lambda n: found.append(n) if isinstance(n, Loop) else None, tree.body)
    return found


def proof(before: Codelet, after: Codelet, **sizes: int) -> Proof:
    params = {p.name: p for p in before.params}
    assert all(params.get(p.name, p) == p for p in after.params)
    return prove(before, replace(after, params=before.params), sizes)


COPY = codelet("for i in range(n):\n    B[i] = B[i] + 1.0")
HALVES = """
for i in range(n // 2):
    B[2 * i] = B[2 * i] + 1.0
    B[2 * i + 1] = B[2 * i + 1] + 1.0
for i in range(n - n % 2, n):
    B[i] = B[i] + 1.0
"""


def test_unrolling_with_its_remainder_is_proved() -> None:
    """Two copies and the rest run every iteration once, for all sizes and for one."""
    after = made(HALVES, "S0 2 * i", "S0 2 * i + 1", "S0 i", threads="i")
    assert proof(COPY, after) == Proof("proved")
    assert proof(COPY, after, n=7) == Proof("proved")


@pytest.mark.parametrize(
    ("broken", "reason"),
    [(HALVES.replace("n - n % 2, n", "n, n"), "iteration (i=0) of nest.c:2:5 does not run when n=1"),
     (HALVES.replace("n - n % 2, n", "0, n % 2"), "runs twice"),
     (HALVES.replace("n - n % 2, n", "n - 2 + n % 2, n"), "iteration (i=-2) of nest.c:2:5 runs, and must not when n=0"),
     (HALVES.replace("n - n % 2, n", "n - n % 2, n + 1"), "runs, and must not"),
     (HALVES.replace("B[2 * i + 1] + 1.0", "B[2 * i] + 1.0"), "computes something else"),
     (HALVES.replace("B[2 * i + 1] + 1.0", "B[2 * i + 1] + 2.0"), "computes something else"),
     (HALVES.replace("B[2 * i + 1] + 1.0", "B[2 * i + 1] - 1.0"), "computes something else")],
)  # fmt: skip
def test_iterations_lost_repeated_or_changed_are_caught(broken: str, reason: str) -> None:
    """A remainder that is missing, too long or overlapping, and a copy with the wrong element, constant or operator."""
    found = proof(COPY, made(broken, "S0 2 * i", "S0 2 * i + 1", "S0 i"))
    assert found.verdict == "failed"
    assert reason in found.reason


def test_one_copy_that_runs_an_iteration_twice_is_caught() -> None:
    """Two trips that stand for one iteration."""
    found = proof(COPY, made("for i in range(2 * n):\n    B[i // 2] = B[i // 2] + 1.0", "S0 i // 2"))
    assert (found.verdict, "may run twice" in found.reason) == ("failed", True)


CHAIN = codelet("for i in range(1, n):\n    B[i] = B[i - 1]")


def test_reversed_dependences_are_caught_with_a_witness() -> None:
    """A chain run backward, and a chain given to threads."""
    backward = "for i in range(1, n):\n    B[n - i] = B[n - i - 1]"
    found = proof(CHAIN, made(backward, "S0 n - i"))
    assert (found.verdict, str(found.witness)) == ("failed", "iteration (i=1) must run before (i=2) when n=3")
    forward = "for i in range(1, n):\n    B[i] = B[i - 1]"
    assert proof(CHAIN, made(forward, "S0 i")).verdict == "proved"
    torn = proof(CHAIN, made(forward, "S0 i", threads="i"))
    assert (torn.verdict, str(torn.witness)) == ("failed", "iteration (i=1) must run before (i=2) when n=3")


def test_sums_may_be_reordered_but_not_run_by_threads() -> None:
    """x += A[i]: any order with reassociation, one order without, never at once."""
    total = codelet("for i in range(n):\n    x[0] += B[i]")
    backward = made("for i in range(n):\n    x[0] += B[n - 1 - i]", "S0 n - 1 - i")
    backward = replace(backward, params=total.params)
    assert prove(total, backward).verdict == "proved"
    assert prove(total, backward, reassociate=False).verdict == "failed"
    assert proof(total, made("for i in range(n):\n    x[0] += B[i]", "S0 i", threads="i")).verdict == "failed"


LOCAL = codelet("for i in range(n):\n    t = B[i]\n    for j in range(n):\n        A[i, j] = t", "t")
JAMMED = """
for i in range(n // 2):
    t = B[2 * i]
    u = B[2 * i + 1]
    for j in range(n):
        A[2 * i, j] = t
        A[2 * i + 1, j] = u
for i in range(n - n % 2, n):
    t = B[i]
    for j in range(n):
        A[i, j] = t
"""
NAMES = ("S0 2 * i", "S0 2 * i + 1", "S1 2 * i, j", "S1 2 * i + 1, j", "S0 i", "S1 i, j")


def test_renamed_locals_are_followed() -> None:
    """Each copy with its own local is proved, with one local for both it is caught."""
    assert proof(LOCAL, made(JAMMED, *NAMES, locals_="t u", threads="i")).verdict == "proved"
    shared = made(JAMMED.replace("u", "t"), *NAMES, locals_="t")
    assert (proof(LOCAL, shared).verdict, "another value" in proof(LOCAL, shared).reason) == ("failed", True)


def test_a_local_sunk_into_a_permuted_nest_is_caught() -> None:
    """t set in the first trip of another loop is overwritten before it is used."""
    sunk = "for j in range(n):\n    for i in range(n):\n        if j == 0:\n            t = B[i]\n        A[i, j] = t"
    assert proof(LOCAL, made(sunk, "S0 i", "S1 i, j", locals_="t")).verdict == "failed"


def test_a_local_of_another_thread_is_caught() -> None:
    """A value written by one thread cannot be read after the threads have ended."""
    last = codelet("for i in range(n):\n    t = 2.0\nB[0] = t", "t")
    text = "for i in range(n):\n    t = 2.0\nB[0] = t"
    assert proof(last, made(text, "S0 i", "S1", locals_="t")).verdict == "proved"
    found = proof(last, made(text, "S0 i", "S1", locals_="t", threads="i"))
    assert (found.verdict, "another thread" in found.reason) == ("failed", True)


def test_accesses_outside_an_array_fail_at_sizes_and_are_assumed_without() -> None:
    """B[i + 1] for the last i."""
    over = codelet("for i in range(n):\n    A[i, 0] = B[i + 1]")
    same = made("for i in range(n):\n    A[i, 0] = B[i + 1]", "S0 i")
    assert proof(over, same).assumed == ("B[i + 1] at nest.c:2:15",)
    found = proof(over, same, n=4)
    assert (found.verdict, found.reason) == ("failed", "B[i + 1] at nest.c:2:15 is outside its array")


@pytest.mark.parametrize("most", [1, 100, 500, 1000, 1500, 2000, 2500])
def test_a_proof_ends(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where isl would go on for ever it is unknown, whatever it was doing, and the next proof is as before."""
    original = codelet("for i in range(n):\n    for k in range(n):\n        A[i, k] = A[i, k] + B[k]")
    done = schedule(Analysis(original), parse_lines(["nest i: permute k, i", "loop i: unroll 4"])).codelet
    with monkeypatch.context() as patched:
        patched.setattr("looptune.poly.translation_validation.MOST", most)
        assert prove(original, done) == Proof("unknown", TOO_INVOLVED)
    assert prove(original, done).verdict == "proved"


def test_what_cannot_be_compared_is_unknown() -> None:
    """How often a loop runs that data bound or end is never called proved."""
    loops = "for (int i = 0; i < n; i++) for (int j = 0; j < last[i]; j++) x[j] = 1;"
    bounded = load(f"void f(int n, int last[n], float x[n]) {{ {loops} }}\n").codelet
    ended = codelet("for i in range(n):\n    while B[i] > 1.0:\n        B[i] = B[i] / 2.0")
    assert [prove(tree, tree).verdict for tree in (bounded, ended)] == ["unknown", "unknown"]


def test_a_parameter_is_no_local() -> None:
    """A copy that uses a local where the original used a parameter computes something else."""
    before = nest("for i in range(n):\n    B[i] = alpha", SHAPES, None, {"alpha": "float64"})
    after = made("for i in range(n):\n    B[i] = t", "S0 i", locals_="t")
    assert "something else" in proof(before, after).reason


def test_strange_assignments_are_unknown() -> None:
    """An assignment that is no copy of an original one, such as a load into a register."""
    after = made("for i in range(n):\n    t = B[i]\n    B[i] = t + 1.0", "", "S0 i", locals_="t")
    assert proof(COPY, after).verdict == "unknown"


GATHER = "void f(int n, int at[n], float x[n], float y[n]) {{ for (int i = 0; i < n; i++) {statement}; }}\n"


@pytest.mark.parametrize(
    ("statement", "threads", "reason"),
    [
        ("y[i] = x[at[i]]", False, "whether x[at[i]] at <source>:1:87 is inside its array cannot be analysed"),
        ("y[i] = x[at[i]]", True, "whether x[at[i]] at <source>:1:87 is inside its array cannot be analysed"),
        ("y[at[i]] = x[i]", False, "whether y[at[i]] at <source>:1:80 is inside its array cannot be analysed"),
        ("y[at[i]] = x[i]", True, "subscript at[i] of y at <source>:1:82 cannot be analysed"),
    ],
)
def test_what_data_decide_is_unknown_and_not_wrong(statement: str, threads: bool, reason: str) -> None:
    """Neither a subscript that cannot be analysed nor a dependence that is only assumed is called a failure."""
    before = load(GATHER.format(statement=statement)).codelet
    loop = before.body[0]
    assert isinstance(loop, Loop)
    after = replace(before, body=(replace(loop, mode="parallel" if threads else "sequential"),))
    found = proof(before, after, n=9)
    assert (found.verdict, found.reason) == ("unknown", reason)


def test_a_failure_is_found_behind_what_is_unknown() -> None:
    """An assignment that runs too rarely fails the proof, whatever else of it cannot be analysed."""
    before = load(GATHER.format(statement="y[at[i]] = x[i]")).codelet
    loop = before.body[0]
    assert isinstance(loop, Loop)
    after = replace(before, body=(replace(loop, mode="parallel", lo=Const(1)),))
    found = proof(before, after, n=9)
    assert (found.verdict, "does not run" in found.reason) == ("failed", True)


RELATIVE = """
void f(int n, double x[24], double z[40]) {
  for (int i = 1; i < n; i += 2)
    for (int j = i; j < n; j++) {
      z[i + 8] = z[i + 7] + 1;
      z[j + 9] = 2 * x[12 - j];
    }
}
"""
ABSOLUTE = """
void f(int n, double C[n][n], double A[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = i; j < n; j++)
      for (int k = 0; k < n; k++) C[i][j] += A[i][k];
}
"""


@pytest.mark.parametrize("inner", ["tile j:2", "unroll 2", "unroll 2, guarded"])
def test_strips_from_where_an_outer_loop_says_are_jammed_by_their_number(inner: str) -> None:
    """So iterations change places that would not by their values: refused where that counts, and proved elsewhere."""
    lines = parse_lines([f"loop 2: {inner}", "loop 1: unroll 2, jam"])
    with pytest.raises(IllegalTransform, match=r"iteration \(i=1, j=3\) must run before \(i=3, j=3\) when n=4"):
        schedule(Analysis(load(RELATIVE).codelet), lines)
    codelet = load(ABSOLUTE).codelet
    assert prove(codelet, schedule(Analysis(codelet), lines).codelet).verdict == "proved"


@pytest.mark.long
def test_jammed_copies_of_a_loop_in_pieces_are_proved() -> None:
    """Where each piece of a triangle has eight copies, isl finds before its limit that all of it runs."""
    codelet = load("""
    void f(int n, int m, double A[24], double B[24][24]) {
      for (int i = 0; i < n; i++)
        for (int k = i; k < m; k++)
          for (int j = k; j < n - k; j++)
            B[j][k] += A[i];
    }""").codelet
    lines = parse_lines(["loop 2: unroll 4, contiguous, remainder, jam", "loop 1: box 4", "loop 1: unroll 2, jam"])
    assert prove(codelet, schedule(Analysis(codelet), lines).codelet).verdict == "proved"


def test_the_parts_of_a_sum_may_be_of_no_loop() -> None:
    """Where m is 1 the loop of j has no iteration, the array of parts no element; what stands beside it still runs."""
    text = """
void f(int n, int m, double A[24][24], double x[24], double z[24]) {
  for (int i = 0; i < m; i++) {
    x[i] = 1;
    for (int j = m - 1; j >= 2; j -= 2) for (int l = 1; l < 4; l += 2) A[j][9] += z[i];
  }
}
"""
    before = load(text).codelet
    made = lower(schedule(Analysis(before), parse_lines(["loop 3: rfactor 2"])).codelet)
    assert any(v.shape for v in made.device_locals)
    assert prove(before, plan_as_loops(made), shared=frozenset()).verdict == "proved"


def test_a_write_that_is_repeated_in_a_branch_hides_itself_where_the_branch_is_taken_apart() -> None:
    """Jammed, each trip of l asks for itself; the last one still is the one that is read."""
    text = """void f(int n, double A[9][9], double x[9], double y[9], double z[9])
{
  double t = 1;
  for (int i = 0; i < n; i++)
    if (i % 2 == 0)
      for (int k = 1; k < i + 1; k += 2)
        if (A[i][i] > k)
          for (int l = 0; l < 4; l++) { t = y[i]; z[l] = t; }
  x[0] = t;
}
"""
    analysis = Analysis(load(text).codelet)
    done = schedule(analysis, parse_lines(["loop i: unroll 2, contiguous, jam"]))
    assert prove(analysis.codelet, done.codelet).verdict == "proved"
    first_only = rewrite(
        lambda n: replace(n, hi=Const(1, "int32")) if isinstance(n, Loop) and n.var == "l" else None, done.codelet
    )
    assert prove(analysis.codelet, first_only).verdict == "failed"


def test_an_element_that_is_assigned_to_itself_is_assigned() -> None:
    """Unrolled, x[j + 9] is x[9] in the first copy; a register for other elements does not take it away."""
    text = """void f(int n, double x[24], double z[24])
{
  for (int k = 0; k < 4; k++) {
    for (int l = 0; l < k + 1; l++) z[10] += x[10];
    for (int j = 0; j < n; j += 2) if (x[9] > x[j + 9]) x[j + 9] = x[9];
  }
}
"""
    analysis = Analysis(load(text).codelet)
    done = schedule(analysis, parse_lines(["loop 3: fullunroll", "loop 2: noParallel"]), {"n": 4})
    launched = plan_as_loops(lower(done.codelet))
    assert any(isinstance(n, Assign) and n.target == n.value for n in walk(launched.body))
    assert prove(analysis.codelet, launched, shared=frozenset()).verdict == "proved"
