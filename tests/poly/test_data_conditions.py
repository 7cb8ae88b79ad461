"""Conditions on data: what decides whether a statement runs is compared like what it computes, and kept in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import islpy as isl
import pytest

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.ir.nodes import Assign, Codelet, If, Loop, Node, Stmt, Unary
from looptune.ir.rewrite import rewrite, walk
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan_check import prove_plan
from looptune.poly import dataflow as flow
from looptune.poly.data_conditions import conjuncts
from looptune.poly.translation_validation import Proof, prove
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.directive_lines import parse_lines

HEAD = "void f(int n, float A[n][n], float x[n], float y[n], float z[n], int at[n]) {\n"


def codelet(body: str) -> Codelet:
    return load(f"{HEAD}{body}\n}}\n").codelet


def scheduled(body: str, *lines: str) -> tuple[Codelet, Codelet]:
    original = codelet(body)
    return original, schedule(Analysis(original), parse_lines(lines)).codelet


def as_copies(original: Codelet, body: str, *names: str) -> Codelet:
    """Another body whose assignments are, in textual order, copies of those called ``names``, in their iterations."""
    left = iter(names)

    def rule(n: Node) -> Node | None:
        return replace(n, name=next(left)) if isinstance(n, Assign) else None

    return replace(original, body=rewrite(rule, codelet(body).body))


BOTH = "for (int i = 0; i < n; i++) if (x[i] > 1) { %s }"


def test_one_condition_asked_twice_gives_two_answers_where_it_is_changed_between() -> None:
    """An ``if`` split into two loops: right where the first leaves what is asked alone, wrong where it writes it."""
    two = "for (int i = 0; i < n; i++) if (x[i] > 1) %s for (int i = 0; i < n; i++) if (x[i] > 1) %s"
    kept, changed = ("z[i] = 0;", "y[i] = 1;"), ("x[i] = 0;", "y[i] = 1;")
    for statements, verdict in ((kept, "proved"), (changed, "unknown")):
        before = codelet(BOTH % " ".join(statements))
        assert prove(before, as_copies(before, two % statements, "S0", "S1")).verdict == verdict


def test_distribute_looks_twice_only_at_what_stays() -> None:
    """The ``if`` falls into two where its condition stays, and not where a branch changes it; both are proved."""
    for first, loops in (("z[i] = A[i][0];", 2), ("x[i] = 0;", 1)):
        before, after = scheduled(BOTH % f"{first} y[i] = 1;", "loop 1: distribute")
        assert sum(isinstance(n, Loop) for n in walk(after.body)) == loops
        assert prove(before, after).verdict == "proved"


def test_a_condition_is_read_before_what_it_decides_writes_it() -> None:
    """x[i] > 1 decides on both, though the first writes x[i]: proved as it stands, not with a second look."""
    before = codelet(BOTH % "x[i] = 0; y[i] = 1;")
    assert prove(before, before).verdict == "proved"
    again = "for (int i = 0; i < n; i++) { if (x[i] > 1) x[i] = 0; if (x[i] > 1) y[i] = 1; }"
    assert prove(before, as_copies(before, again, "S0", "S1")).verdict != "proved"
    early = "for (int i = 0; i < n; i++) { if (x[i] > 1) y[i] = 1; if (x[i] > 1) x[i] = 0; }"
    assert prove(before, as_copies(before, early, "S1", "S0")).verdict == "proved"


def changed(tree: Codelet, rule: Callable[[If], Stmt | tuple[Stmt, ...]]) -> Codelet:
    return replace(tree, body=rewrite(lambda n: rule(n) if isinstance(n, If) else None, tree.body))


@pytest.mark.parametrize(
    "rule",
    [lambda n: n.then, lambda n: replace(n, cond=Unary("!", n.cond)), lambda n: replace(n, then=n.other, other=n.then),
     lambda n: replace(n, cond=n.cond.lhs), lambda n: replace(n, cond=replace(n.cond, op="||"))],
    ids=["dropped", "negated", "branches swapped", "half of it", "or for and"],
)  # fmt: skip
def test_another_condition_fails(rule: Callable[[If], Stmt | tuple[Stmt, ...]]) -> None:
    """What is asked must be what the original asks, and the answer what it wants."""
    before = codelet("for (int i = 0; i < n; i++) if (x[i] > 1 && y[i] < 2) z[i] = 0; else z[i] = x[i];")
    assert prove(before, changed(before, rule)).verdict == "failed"


def test_another_element_or_constant_in_a_condition_fails() -> None:
    """x[i] > 1 is neither x[0] > 1 nor x[i] > 2 nor x[i] >= 1."""
    before = codelet(BOTH % "z[i] = 0;")
    for cond in ("x[0] > 1", "x[i] > 2", "x[i] >= 1", "y[i] > 1"):
        text = f"for (int i = 0; i < n; i++) if ({cond}) z[i] = 0;"
        found = prove(before, as_copies(before, text, "S0"))
        assert (found.verdict, "under another condition" in found.reason) == ("failed", True)


def test_a_condition_written_in_another_way_is_the_same() -> None:
    """Nested or with &&, negated or in the other branch: the same questions, the same answers."""
    before = codelet("for (int i = 0; i < n; i++) if (x[i] > 1 && i > 2 && y[i] < 2) z[i] = 0;")
    for text in (
        "for (int i = 0; i < n; i++) if (x[i] > 1) if (y[i] < 2 && i > 2) z[i] = 0;",
        "for (int i = 3; i < n; i++) if (!(x[i] > 1)) ; else if (y[i] < 2) z[i] = 0;",
        "for (int i = 3; i < n; i++) if (!(!(x[i] > 1) || !(y[i] < 2))) z[i] = 0;",
    ):
        assert prove(before, as_copies(before, text, "S0")).verdict == "proved"


LAST = "for (int i = 0; i < n; i++) { float t = 0; if (x[i] > 1) t = 1; if (y[i] > 1) t = 2; z[i] = t; }"


def test_of_two_writes_that_may_run_the_later_one_stays_later() -> None:
    """Either may be what z[i] reads; in the other order another one is."""
    before = codelet(LAST)
    assert prove(before, before).verdict == "proved"
    turned = "for (int i = 0; i < n; i++) { float t = 0; if (y[i] > 1) t = 2; if (x[i] > 1) t = 1; z[i] = t; }"
    found = prove(before, as_copies(before, turned, "S0", "S2", "S1", "S3"))
    assert (found.verdict, "assigned again" in found.reason) == ("unknown", True)


def test_a_write_under_the_same_condition_hides_earlier_ones() -> None:
    """t is written where it is read, after a loop that may write it too: no other write reaches."""
    text = """for (int i = 0; i < n; i++) if (x[i] > 1) {
      for (int j = 0; j < i; j++) if (A[i][j] > t) t = A[i][j];
      t = x[i]; y[i] = t; }"""
    before = codelet(f"float t = 0;\n{text}")
    found = [flow for flow in Analysis(before).model.flows("t").flows if flow.read == "S3"]
    assert [flow.write for flow in found] == ["S2"]


def test_a_condition_reads_a_scalar_before_its_branch_writes_it() -> None:
    """t > 1 looks at the t of the loop before, so that the loops cannot be one."""
    body = """float t = 1;
    for (int i = 0; i < n; i++) { t = y[i]; z[i] = t; }
    for (int i = 0; i < n; i++) if (t > 1) t = x[i];"""
    before = codelet(body)
    found = {flow.write for flow in Analysis(before).model.flows("t").flows if flow.read == "S3"}
    assert found == {"S1", "S3"}
    with pytest.raises(LooptuneError, match="fuse is illegal"):
        scheduled(body, "loop 1: fuse")


def test_locals_that_change_places_fail() -> None:
    """t - u is not u - t, though both read the same two writes."""
    before = codelet("for (int i = 0; i < n; i++) { float t = x[i], u = y[i]; z[i] = t - u; }")
    after = as_copies(
        before, "for (int i = 0; i < n; i++) { float t = x[i], u = y[i]; z[i] = u - t; }", "S0", "S1", "S2"
    )
    assert (prove(before, before).verdict, prove(before, after).verdict) == ("proved", "failed")


def test_a_register_is_compared_with_what_is_read_in_its_loop() -> None:
    """z[0] is asked before the loop that keeps z[0] in a register: no access besides the register."""
    before, after = scheduled(
        "for (int i = 0; i < n; i++) if (z[0] > 1) for (int j = 0; j < n; j++) z[0] += A[i][j];", "loop 1: noParallel"
    )
    assert prove_plan(before, lower(after)).verdict == "proved"


@pytest.mark.parametrize("lines", [(), ("loop 1: unroll 2",), ("loop 1: tile i:4",), ("loop 1: parallel",)])
@pytest.mark.parametrize(
    "loop",
    ["if (x[i] > y[0]) z[0] += x[i];", "if (x[i] > z[0]) z[0] = x[i];", "if (i % 2 && x[i] < z[0]) z[0] = x[i];"],
)
def test_reductions_under_conditions_are_proved(loop: str, lines: tuple[str, ...]) -> None:
    """Sums of what data choose, and maxima: the loops and what is launched, for all sizes and one."""
    before, after = scheduled(f"for (int i = 0; i < n; i++) {loop}", *lines)
    for sizes in ({}, {"n": 37}):
        assert prove(before, after, sizes).verdict == "proved"
        assert prove_plan(before, lower(specialize(after, sizes)), sizes).verdict == "proved"
    strict = prove(before, after, reassociate=False).verdict
    assert strict == ("failed" if "+=" in loop and "parallel" in str(lines) else "proved")


BOUNDS = {
    "y[i] = i > 0 ? x[i - 1] : 0;": "proved",
    "y[i] = i > 0 ? x[i] : x[i - 1];": "failed",
    "if (i > 0 && x[i - 1] > 1) y[i] = 0;": "proved",
    "if (x[i - 1] > 1 && i > 0) y[i] = 0;": "failed",
    "if (i == 0 || x[i - 1] > 1) y[i] = 0;": "proved",
    "if (x[i] > 1) y[i + 1] = 0;": "unknown",
    "if (at[i] < n) y[at[i]] = 0;": "unknown",
    "y[i] = x[i] > 1 ? x[i + 1] : 0;": "unknown",
}


@pytest.mark.parametrize("statement", BOUNDS)
def test_an_access_is_inside_its_array_where_it_is_made(statement: str) -> None:
    """C evaluates one side of ?:, and of && and || no more than it must; what data guard is unknown, not wrong."""
    tree = codelet(f"for (int i = 0; i < n; i++) {statement}")
    found: Proof = prove(tree, tree, {"n": 5})
    assert found.verdict == BOUNDS[statement], found.reason
    assert found.verdict != "unknown" or "is inside its array cannot be analysed" in found.reason


def test_what_constants_decide_need_not_be_asked() -> None:
    """Unrolled fully, some iterations of a mixed condition are decided and some still ask."""
    body = "for (int i = 0; i < 4; i++) if (!(x[i] > 1) || i < 2) { if (i < 2 && y[i] > 1) z[i] = 0; else z[i] = 1; }"
    before, after = scheduled(body, "loop 1: fullunroll")
    assert prove(before, after).verdict == "proved"


def test_what_is_no_data_and_not_affine_is_not_called_wrong() -> None:
    """i * j < n is affine once j is a number: unknown, not a missing iteration."""
    body = "for (int i = 0; i < n; i++) for (int j = 0; j < 3; j++) if (i * j < n) A[i][j] = 0;"
    before, after = scheduled(body, "loop 2: fullunroll")
    assert prove(before, before).verdict == "proved"
    assert prove(before, after).verdict != "failed"


def test_threads_share_what_data_may_write() -> None:
    """x[0] under a condition, run by threads: not proved, and not called wrong, for data may let one of them do it."""
    before = codelet("for (int i = 0; i < n; i++) if (y[i] > 1) x[0] = i;")
    with pytest.raises(LooptuneError, match="condition y\\[i\\] > 1 cannot be analysed"):
        schedule(Analysis(before), parse_lines(["loop 1: parallel"]))
    done: ScheduleResult = schedule(Analysis(before), parse_lines(["loop 1: parallel, assume"]))
    found = prove(before, done.codelet)
    assert (found.verdict, "condition y[i] > 1" in found.reason) == ("unknown", True)


def test_parts_are_in_the_order_in_which_they_are_asked() -> None:
    """a && !(b || c): a true, then b false, then c false."""
    (branch,) = (
        n
        for n in walk(codelet("for (int i = 0; i < n; i++) if (x[i] > 1 && !(y[i] > 2 || z[i] > 3)) y[i] = 0;").body)
        if isinstance(n, If)
    )
    assert [wanted for _, wanted in conjuncts(branch.cond, True)] == [True, False, False]
    assert [wanted for _, wanted in conjuncts(branch.cond, False)] == [False]


def test_a_copy_of_a_guarded_maximum_may_compare_an_element_with_itself() -> None:
    """``if (y[9] > y[9]) y[9] = y[9]`` is the copy at j = 3 of the maximum that its original is."""
    loops = "for (int i = 0; i < n; i++) for (int j = 0; j < 4; j++)"
    for cond in ("x[9] > x[j + 6]", "x[9] < x[j + 6]", "!(x[j + 6] >= x[9])", "i > 2 && x[j + 6] > x[9]"):
        for line in ("loop j: fullunroll", "loop j: unroll 2", "loop j: unroll 4, jam"):
            before, after = scheduled(f"{loops} if ({cond}) x[j + 6] = x[9];", line)
            assert prove(before, after).verdict == "proved"


def test_a_write_hides_earlier_ones_where_data_are_not_asked() -> None:
    """t is surely written where j is 2 or more, as it is in the copies that ask nothing."""
    nest = "double t = 1; for (int i = 0; i < n; i++) for (int j = 0; j < 6; j += 2) if (j < 2 && t > 1) x[i] = z[j];"
    before, after = scheduled(f"{nest} else t = z[j];", "loop j: fullunroll")
    assert prove(before, after).verdict == "proved"
    (flow,) = (f for f in Analysis(before).model.flows("t").flows if (f.write, f.read) == ("S2", "S1"))
    assert flow.map.domain().is_subset(isl.Set("[n, m] -> { S2[i, 4] }"))
    before, after = scheduled(f"{nest.replace('j < 2', 'j < 4')} else t = z[j];", "loop j: fullunroll")
    assert prove(before, after).verdict == "proved"


def test_the_last_of_every_second_iteration_is_the_last_write() -> None:
    """A k that counts by two up to m, copied with the loop around it: where there are two of them, it is k = 2."""
    text = """
void f(int n, int m, double y[24], double z[24]) {
  double t = 1;
  for (int i = 1; i < n; i++) {
    if (t > 1) z[i] = 2;
    for (int k = 0; k < m; k += 2) for (int j = k; j < 4; j++) t = y[k + 6];
  }
}
"""
    before = load(text).codelet
    done: ScheduleResult = schedule(Analysis(before), parse_lines(["loop i: unroll 2, noJam"]))
    assert prove(before, done.codelet).verdict == "proved"
    reads = isl.UnionMap("[n, m] -> { R[i] -> [] : 0 <= i < n; R[i] -> B[i] : 0 <= i < n }")
    writes = "[n, m] -> { W[i, k, j] -> [] : 0 <= i < n and 0 <= k < m and k <= j <= 3 and k mod 2 = 0 }"
    when = {"R": "{ R[i] -> [i, 1, 0, 0] }", "W": "{ W[i, k, j] -> [i, 0, k, j] }"}
    times = {name: isl.Map(f"[n, m] -> {text}") for name, text in when.items()}
    space = SimpleNamespace(prefix="[n, m] -> ", before=lambda first, then: times[first].lex_lt_map(times[then]))
    found, unwritten = flow._last(space, reads, isl.UnionMap(writes), isl.UnionMap(writes))
    last = "W[i, 0, 3] -> R[i] : 0 <= i < n and 0 < m < 3; W[i, 2, 3] -> R[i] : 0 <= i < n and m > 2"
    assert found.is_equal(isl.UnionMap(f"[n, m] -> {{ {last} }}"))
    never = "R[i] -> [] : 0 <= i < n and m <= 0; R[i] -> B[i] : 0 <= i < n"
    assert unwritten.is_equal(isl.UnionMap(f"[n, m] -> {{ {never} }}"))


def test_a_write_hides_earlier_ones_in_the_branch_it_shares_with_a_read() -> None:
    """Data decide on the branch, for both; whether t is written in it they do not decide where j is 2 or more."""
    inner = "{ x[i + 9] = t + 1; if (j < 2 && z[j] > i) y[0] = z[j]; else t = z[9]; }"
    nest = f"double t = 1; for (int i = 0; i < n; i++) if (y[i + 7] > 2) for (int j = 2; j < 4; j++) {inner} x[0] = t;"
    before, after = scheduled(nest, "loop j: fullunroll")
    assert prove(before, after).verdict == "proved"
    (flow,) = (f for f in Analysis(before).model.flows("t").flows if (f.write, f.read) == ("S3", "S1"))
    assert flow.map.is_subset(isl.Map("[n, m] -> { S3[i, 3] -> S1[i', 2] : i < i'; S3[i, 2] -> S1[i, 3] }"))


def test_a_write_hides_earlier_ones_in_a_branch_that_fell_into_two() -> None:
    """What t was before is never read where both halves ask the same; it is where the write moved in front of it."""
    before = codelet("float t; for (int i = 0; i < n; i++) { t = A[i][0]; if (x[i] > 1) { t = y[i]; z[i] = t; } }")
    loop = "float t; for (int i = 0; i < n; i++) { %s %s if (x[i] > 1) z[i] = t; }"
    first, write = ("t = A[i][0];", "S0"), ("if (x[i] > 1) t = y[i];", "S1")
    for (a, one), (b, other), verdict in ((first, write, "proved"), (write, first, "failed")):
        assert prove(before, as_copies(before, loop % (a, b), one, other, "S2")).verdict == verdict
