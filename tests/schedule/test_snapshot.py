"""Snapshots: which reads take the copy, what becomes legal after it, and what the proof finds wrong.

What the arrays are left as, and what every target computes, is tested with ``expand_cases``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from looptune.frontend import load
from looptune.ir.nodes import Assign, Const, Load, Loop, Node
from looptune.ir.rewrite import rewrite, walk, walk_stmts
from looptune.ir.simplify import add
from looptune.poly.translation_validation import prove
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.suggest import alternatives
from tests.helpers.expand_cases import CASES, TRMM, expanded


def test_loops_become_parallel() -> None:
    """Both of trmm's, and all of OLD's but the one around them."""
    for text, lines in ((TRMM, ("loop i: snapshot B",)), CASES["old"]):
        _, done = expanded(text, lines)
        loops = [f for f in walk_stmts(done.codelet.body) if isinstance(f, Loop)]
        assert {f.var for f in loops if f.mode != "parallel"} == {"k"}


@pytest.mark.parametrize(
    ("body", "copies"),
    [
        ("x[i] = x[i] + x[i + 1]", ["x[i + 1]"]),
        ("x[i] = x[i - 1] + x[i + 1]", ["x[i + 1]"]),
        ("x[i] = x[i + 1] + x[i + 2]", ["x[i + 1]", "x[i + 2]"]),
        ("x[i] = x[i + 1] > 0 ? x[n + 3] : x[i]", ["x[i + 1]"]),
        ("if (y[i] > 0) x[i] = x[i + 1]", ["x[i + 1]"]),
        ("if (x[i + 1] > y[0]) y[0] = x[i + 1]; x[i] = 0", ["x[i + 1]", "x[i + 1]"]),
        ("x[c[i]] = y[x[i + 1] > 0]", []),
        ("y[c[i]] = x[i]; x[i + 1] = 0", []),
    ],
)
def test_reads_of_old_values_take_the_copy(body: str, copies: list[str]) -> None:
    """Not where the loop may have written the element before, data decide which it is, or none overwrites it."""
    text = f"void f(int n, float x[n + 4], float y[n + 4], int c[n]) {{\n for (int i = 1; i < n; i++) {{ {body}; }}\n}}"
    codelet = load(text).codelet
    done = schedule(Analysis(codelet), parse_lines(("loop i: snapshot x",)), keep_going=True)
    (step,) = done.steps
    assert (step.refusal is None) == bool(copies)
    reads = [n for n in walk(done.codelet.body) if isinstance(n, Load) and n.array == "x_old"][1:]
    assert [f"x[{n.span.text[n.span.col + 1 : n.span.col + n.span.width - 2]}]" for n in reads] == copies


def test_a_maximum_of_old_values_stays_one() -> None:
    text = """void f(int n, const float a[n], float x[n], float y[1]) {
      for (int i = 0; i < n - 1; i++) { if (x[i + 1] > y[0]) y[0] = x[i + 1]; x[i] = a[i]; } }"""
    analysis = Analysis(load(text).codelet)
    done = schedule(analysis, parse_lines(("loop i: snapshot x", "loop i: parallel, reduce(max: y)")))
    assert prove(analysis.codelet, done.codelet).verdict == "proved"


@pytest.mark.parametrize("guard", ["", "if (a[j] > 2) ", "if (x[k][j + 1] > y[j]) "])
def test_what_is_read_outside_of_the_array_is_not_compared(guard: str) -> None:
    """The copy has the rows of the array; the loop over k leaves it where n is large, which is undefined."""
    text = f"""void f(int n, double a[9], double x[9][9], double y[9]) {{ for (int k = 0; k < n; k++)
      for (int j = 0; j < n - 1; j++) {{ {guard}y[j] = x[k][j + 1]; x[j][j] = 2; }} }}"""
    analysis = Analysis(load(text).codelet)
    done = schedule(analysis, parse_lines(("loop j: snapshot x",)))
    assert prove(analysis.codelet, done.codelet).verdict == "proved"


def test_a_refused_parallel_proposes_it() -> None:
    lines = parse_lines(("loop i: parallel",))
    analysis = Analysis(load(TRMM).codelet)
    (step,) = schedule(analysis, lines, keep_going=True).steps
    assert ("loop 1: snapshot B", "loop 1: parallel") in [s.lines for s in alternatives(analysis, lines, step, {})]


def _reading(change: Callable[[Load], Load]) -> Callable[[Node], Node | None]:
    """Return a rule that changes what is read from the copy."""

    def within(n: Node) -> Node | None:
        return change(n) if isinstance(n, Load) and n.array == "B_old" else None

    def rule(n: Node) -> Node | None:
        if isinstance(n, Assign) and not n.name.startswith("copy_in"):
            return replace(n, value=rewrite(within, n.value))
        return None

    return rule


def _later(n: Node) -> Node | None:
    """The copy begins a row later."""
    match n:
        case Loop(var="e0"):
            return replace(n, lo=add(n.lo, Const(1)))
    return None


MUTANTS = {
    "another row is read": _reading(lambda a: replace(a, index=(add(a.index[0], Const(-1)), a.index[1]))),
    "a row is not copied": _later,
    "nothing is copied": lambda n: () if isinstance(n, Assign) and n.name.startswith("copy_in") else None,
    "the array itself is read": _reading(lambda a: replace(a, array="B")),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_proof_finds_a_wrong_copy(mutant: str) -> None:
    codelet, done = expanded(TRMM, ("loop i: snapshot B",))
    assert prove(codelet, done.codelet).verdict == "proved"
    wrong = rewrite(MUTANTS[mutant], done.codelet)
    assert wrong != done.codelet
    assert prove(codelet, wrong, {"n": 4, "m": 3}).verdict == "failed"
