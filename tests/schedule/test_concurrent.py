"""``concurrent``: two kernels at the same time are legal where neither needs the other, and the proof covers it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from looptune.core.errors import DirectiveError
from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.concurrent_launches import has_concurrent, in_groups, is_concurrent
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan, launches, with_kernels
from looptune.lower.plan_check import plan_as_loops, prove_plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.concurrent import ConcurrentLaunch
from looptune.tune.cost_model.devices import DEFAULT
from looptune.tune.cost_model.estimate import estimate
from looptune.tune.space.derive import derive
from looptune.tune.space.space import parse
from tests.helpers.paths import POLYBENCH_C

STEPS = """
void f(int n, float A[n][n], float x[n], float y[n], int m, float z[m]) {
  for (int k = 0; k < n; k++) {
    for (int i = k + 1; i < n; i++) A[i][k] = A[i][k] * 2 + A[k][k];
    for (int j = k + 1; j < n; j++) A[k][j] = A[k][j] * 3 - A[k][k];
    for (int i = 0; i < n; i++) x[i] += A[k][i];
    for (int i = 0; i < n; i++) y[i] += x[i];
    for (int i = 0; i < m; i++) z[0] += i;
  }
}
"""
LINES = ("loop 1: noParallel", "loop 3: concurrent")


def planned(text: str, *lines: str, n: int = 9) -> Plan:
    done = schedule(Analysis(load(text).codelet), parse_lines(lines)).codelet
    return lower(specialize(done, {"n": n, "m": 5}), blocks=True)


def refusal(*lines: str) -> str:
    with pytest.raises(DirectiveError) as refused:
        schedule(Analysis(load(STEPS).codelet), parse_lines(lines))
    return str(refused.value)


def test_a_row_and_a_column_do_not_need_each_other() -> None:
    plan = planned(STEPS, *LINES)
    groups = [[kernel.name for kernel, _ in group] for group in in_groups(launches(plan.steps, {"n": 3, "m": 5}))]
    assert groups[:4] == [["f_0", "f_1"], ["f_2"], ["f_3"], ["f_4"]]
    assert has_concurrent(plan)
    assert not has_concurrent(planned(STEPS, *LINES[:1]))
    assert prove_plan(load(STEPS).codelet, plan, {"n": 9, "m": 5}).verdict == "proved"
    assert "kernel" in str(plan_as_loops(plan))


@pytest.mark.parametrize(("number", "why"), [
    (2, "no loop of the text stands directly before loop i"),
    (4, "loop j before it writes A[k][j] (line 5), and loop i reads A[k][i] (line 6)"),
    (5, "loop i before it writes x[i] (line 6), and loop i reads x[i] (line 7)"),
])  # fmt: skip
def test_what_one_needs_of_the_other_is_said(number: int, why: str) -> None:
    assert why in refusal("loop 1: noParallel", f"loop {number}: concurrent")


def test_sums_into_one_element_are_refused_though_they_may_be_reordered() -> None:
    text = """
void f(int n, float s[1], float A[n]) {
  for (int i = 0; i < n; i++) s[0] += A[i];
  for (int i = 0; i < n; i++) s[0] += 2 * A[i];
}
"""
    with pytest.raises(DirectiveError, match="may be the same element"):
        schedule(Analysis(load(text).codelet), parse_lines(("loop 2: concurrent",)))


def test_accesses_that_are_not_known_are_refused() -> None:
    text = """
void f(int n, int at[n], float A[n]) {
  for (int i = 0; i < n; i++) A[i] = 1;
  for (int i = 0; i < n; i++) A[at[i]] = 2;
}
"""
    with pytest.raises(DirectiveError, match=r"may be the same element|not known"):
        schedule(Analysis(load(text).codelet), parse_lines(("loop 2: concurrent",)))


def test_the_proof_finds_kernels_that_need_each_other() -> None:
    """The annotation where it is wrong: on the loop that reads what the one before it writes."""
    plan = planned(STEPS, LINES[0])
    first, then = plan.kernels[2:4]
    said = ConcurrentLaunch((5, 0), (4, 0))
    wrong = replace(then, annotations=(*then.annotations, said))
    assert is_concurrent(first, wrong)
    bad = replace(plan, steps=with_kernels(plan.steps, lambda k: wrong if k is then else k))
    assert prove_plan(load(STEPS).codelet, bad, {"n": 9, "m": 5}).verdict == "failed"


def test_kernels_of_several_loops_run_alone() -> None:
    """A block that shares the iterations of two loops is no kernel of one of them, nor are the launches of one loop."""
    plan = planned(STEPS, *LINES, "loop 2: parallel, team", "loop 3: parallel, team")
    assert not has_concurrent(plan)


def test_of_another_iteration_of_the_host_nothing_is_concurrent() -> None:
    plan = planned(STEPS, *LINES)
    first, then = plan.kernels[:2]
    assert [len(g) for g in in_groups([(first, {"k": 1}), (then, {"k": 2})])] == [1, 1]
    assert [len(g) for g in in_groups([(first, {"k": 1}), (then, {"k": 1}), (then, {"k": 1})])] == [2, 1]


def test_the_shorter_one_costs_nothing_where_there_is_room_for_both() -> None:
    small = [planned(STEPS, *lines, n=300) for lines in (LINES[:1], LINES)]
    alone, both = (estimate(plan, {"n": 300, "m": 5}, DEFAULT).time_us for plan in small)
    assert both < alone


@pytest.mark.wide
@pytest.mark.parametrize(("name", "lines"), [
    ("lu", {"loop 4.2: concurrent", "loop 1.7: concurrent"}), ("cholesky", {"loop 1.6: concurrent"}),
])  # fmt: skip
def test_derived_spaces_of_eliminations_have_two_pieces_at_a_time(name: str, lines: set[str]) -> None:
    analysis = Analysis(load(POLYBENCH_C / f"{name}.c").codelet)
    text = next(s for s in derive(analysis).split("\nor\n") if "concurrent" in s)
    assert {line for line in text.splitlines() if "concurrent" in line} == lines
    done = schedule(analysis, parse_lines(next(iter(parse(text, "<derived>"))).text.splitlines())).codelet
    plan = lower(specialize(done, {"n": 70}), blocks=True)
    assert has_concurrent(plan)
    assert prove_plan(analysis.codelet, plan, {"n": 70}).verdict == "proved"
