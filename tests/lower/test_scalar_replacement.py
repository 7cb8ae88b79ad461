"""Accumulators in registers: which elements are kept in a local, which must not be, and that nothing changes."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.nodes import Binary, Codelet, Const, Expr, Load, Loop, Var
from looptune.ir.rewrite import walk
from looptune.ir.verify import verify
from looptune.lower.passes.scalar_replacement import (
    affine_terms,
    never_alias,
    replace_team_scalars,
    replace_with_scalars,
)
from looptune.lower.pipeline import lower
from looptune.lower.plan_check import prove_plan
from looptune.runtime import targets
from looptune.runtime.targets import CACHE
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check
from tests.helpers.paths import ROOT

PARAMS = "int n, int m, double A[n][m], double B[n][m], double x[n], double y[n], double *s"


def promoted(body: str) -> tuple[Codelet, Codelet]:
    """The codelet before and after, as one thread would run it."""
    before = load(f"void f({PARAMS})\n{{ int i, j, k; {body} }}\n").codelet
    taken = {p.name for p in before.params} | {f.var for f in walk(before.body) if isinstance(f, Loop)}
    changed, made = replace_with_scalars(before.body, taken)
    return before, verify(replace(before, body=changed, locals=before.locals + made))


def kept(body: str) -> list[str]:
    """The elements that live in a register, as C text; the results are checked on the way."""
    before, after = promoted(body)
    for n, m in ((5, 5), (3, 3), (7, 7)):
        given = cross_check.arguments(before, {"n": n, "m": m})
        assert cross_check.off(cross_check.interpreted(before, given), cross_check.interpreted(after, given)) is None
    own = {v.name for v in after.locals} - {v.name for v in before.locals}
    loads = [a for a in walk(after.body) if getattr(getattr(a, "target", None), "name", None) in own]
    found = [c_printer.expression_text(a.value) for a in loads if isinstance(a.value, Load)]
    return sorted(set(found))


def test_a_loop_beside_an_access_says_nothing_of_it() -> None:
    """Where i is 0, the loop over k has no iteration, and A[i + i][1] is an element that is written."""
    body = """
  for (i = 0; i < 2; i++)
    for (j = 0; j < m - 1; j++) {
      for (k = 1 - i; k < 1; k++) x[k] = 1;
      A[i][j + 1] = A[i + i][1] + j;
    }"""
    assert kept(body) == []
    assert kept(body.replace("A[i + i][1]", "A[i + 1][1]")) == ["A[i + 1][1]"]


@pytest.mark.parametrize("first", ["outer_x", "outer_j", "x"])
def test_no_name_says_that_a_variable_is_not_negative(first: str) -> None:
    """A loop from a parameter of any name may begin below 0, and then what it stays below may be 0."""
    body = f"for (int j = {first}; j < m; j++) for (int k = 0; k < n; k++) {{ a[3] += k; a[m + 3] *= 2; }}"
    before = load(f"void f(int n, int m, int {first}, long a[9])\n{{ {body} }}\n").codelet
    changed, made = replace_with_scalars(before.body, {"n", "m", first, "a", "j", "k"})
    after = verify(replace(before, body=changed, locals=before.locals + made))
    for m, start in ((0, -2), (2, 0), (2, -1)):
        given: cross_check.Arguments = {"n": 3, "m": m, first: start, "a": np.arange(9)}
        assert cross_check.off(cross_check.interpreted(before, given), cross_check.interpreted(after, given)) is None


@pytest.mark.parametrize(
    ("body", "elements"),
    [
        ("for (j = 0; j < m; j++) x[0] += A[0][j];", ["x[0]"]),
        ("for (i = 0; i < n; i++) for (j = 0; j < i; j++) x[i] -= A[i][j] * x[j];", ["x[i]"]),
        ("for (i = 0; i < n; i++) for (j = 0; j < m; j++) x[i] += A[i][j] * y[j];", ["x[i]"]),
        ("for (i = 0; i < n; i++) for (j = 0; j < m; j++) { x[i] += A[i][j]; y[i] = x[i]; }", ["x[i]", "y[i]"]),
        (
            "for (i = 0; i < n; i++) for (j = 0; j < m; j++) for (k = 0; k < n; k++) B[i][j] += A[i][k] * x[k];",
            ["B[i][j]"],
        ),
        ("for (i = 0; i < n; i++) for (j = 0; j < m; j++) if (j > 0) x[i] += 1; else x[i] -= A[i][0];", ["x[i]"]),
        ("for (j = 0; j < m; j++) { *s += x[0]; *s *= 2; }", ["s[0]", "x[0]"]),
        ("for (j = 0; j < m; j++) { A[0][2] += x[j]; A[0][1] -= 1; }", ["A[0][1]", "A[0][2]"]),
        ("for (i = 0; i < n; i++) for (j = 0; j < m; j++) if (i > 2) x[i] += A[i][j];", ["x[i]"]),
        (
            "for (i = 0; i < n; i++) for (j = 0; j < m; j++) for (k = 0; k < n; k++) if (i >= j) B[i][j] += A[i][k];",
            ["B[i][j]"],
        ),
    ],
)  # fmt: skip
def test_what_every_iteration_uses_is_kept(body: str, elements: list[str]) -> None:
    """An element that a loop keeps using and nothing else can touch is loaded once before it."""
    assert kept(body) == elements


@pytest.mark.parametrize(
    "body",
    [
        "for (i = 0; i < n; i++) for (j = 0; j <= i; j++) x[i] -= A[i][j] * x[j];",
        "for (j = 0; j < n; j++) { x[0] += 1; x[j] *= 2; }",
        "for (j = 0; j < m; j++) if (A[0][j] > 0) x[0] += 1;",
        "for (i = 0; i < n; i++) for (j = 0; j < m; j++) { if (i > 2) x[i] += A[i][j]; if (i > 1) x[i] -= 1; }",
        "for (i = 0; i < n; i++) for (j = 0; j < m; j++) if (j > 2 && j * j < i) x[i] += A[i][j];",
        "for (i = 0; i < n; i++) for (j = 0; j < m; j++) if (j % 2 > 0) x[i] += A[i][j];",
        "for (i = 0; i < n; i++) { k = i; for (j = 0; j < m; j++) { if (k > 2) x[i] += A[i][j]; k = j; } }",
        "for (j = 0; j < m; j++) A[0][j] += 1;",
        "for (j = 0; j < m; j++) y[0] = j > 0 && j < n ? x[0] : 1;",
        "k = 0; for (j = 0; j < n; j++) { x[k] += 1; k = j; }",
        "for (i = 0; i < n; i++) for (j = 0; j < n; j++) { x[i] += 1; x[n - 1 - i] += j; }",
    ],
    ids=[
        "another-index",
        "the-loop's-own",
        "condition",
        "two-conditions",
        "loop's-two-conditions",
        "loop's-odd-iterations",
        "changing-condition",
        "moving",
        "lazy",
        "index-changes",
        "mirrored",
    ],
)
def test_what_something_else_may_touch_stays_in_memory(body: str) -> None:
    """No register for an element that another access may be, that is used only sometimes, or whose index changes."""
    assert [e for e in kept(body) if e.startswith(("x", "A"))] == []


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        ("j > 2", "3 < m"),
        ("j < i && i > 3", "0 < i && i > 3"),
        ("j < i && n / i > 3", "0 < i && n / i > 3"),
        ("i > 3 && 2 * j + 1 <= i", "i > 3 && 0 < i"),
        ("j > 2 && j < i", "3 < m && 3 < i && 0 < i"),
        ("j > 2 && 2 * j < i", "3 < m && 2 < (i - 1) / 2 && 0 < i"),
    ],
)
def test_a_condition_that_changes_in_one_direction(condition: str, met: str) -> None:
    """Loads and stores stand under what holds if some iteration has the condition, in its order: no division by 0."""
    body = f"for (i = 0; i < n; i++) for (j = 0; j < m; j++) if ({condition}) x[i] += A[i][j];"
    assert kept(body) == ["x[i]"]
    _, made = promoted(body)
    assert c_printer.body(made).count(f"if ({met}) {{") == 2


def test_a_condition_that_is_decided_in_the_last_iteration() -> None:
    """One that holds there is not asked for; where it does not hold, there is no use, and no register."""
    body = "for (i = 0; i < n; i++) for (j = i + 1; j < i + 3; j++) if (j > i + {}) x[i] += A[i][0];"
    assert (kept(body.format(1)), kept(body.format(2))) == (["A[i][0]", "x[i]"], [])
    _, made = promoted(body.format(1))
    assert c_printer.body(made).count("if (") == 1


def test_a_loop_that_may_not_run_touches_nothing() -> None:
    """Loads and stores stand under the loop's own condition, which is left out where it is known."""
    _, maybe = promoted("for (j = 3; j < m; j++) x[0] += 1;")
    assert "if (3 < m) {" in c_printer.body(maybe)
    _, surely = promoted("for (j = 0; j < 4; j++) x[0] += 1;")
    assert "if" not in c_printer.body(surely)


def test_what_is_only_read_is_not_stored() -> None:
    """A register of an input is loaded and never written back."""
    _, after = promoted("for (i = 0; i < n; i++) for (j = 0; j < m; j++) A[i][j] = x[i];")
    text = c_printer.body(after)
    assert "x_r = x[i];" in text
    assert "x[i] = " not in text


X, Y, N = Var("i"), Var("j"), Var("n")


@pytest.mark.parametrize(
    ("a", "b", "positive", "expected"),
    [
        (X, Binary("+", X, Const(1)), (), True),
        (X, Y, (), False),
        (X, Binary("+", X, N), (N,), True),
        (X, Binary("+", X, N), (), False),
        (Binary("-", X, N), Binary("+", X, Const(1)), (N,), True),
        (Binary("+", X, N), Binary("+", X, Const(1)), (N,), False),
        (Binary("*", Const(2), X), Binary("*", Const(2), X), (), False),
        (Binary("*", Const(2), X), Binary("+", Binary("*", X, Const(2)), Const(1)), (), True),
    ],
)
def test_distinct_indices(a: Expr, b: Expr, positive: tuple[Expr, ...], expected: bool) -> None:
    """Indices are distinct where they differ by a constant, or by a positive multiple of what is positive."""
    assert never_alias((a,), (b,), frozenset(positive)) is expected
    assert never_alias((b,), (a,), frozenset(positive)) is expected


def test_linear_collects_terms() -> None:
    """3 (i + 2) - i - n is 2 i - n + 6."""
    e = Binary("-", Binary("-", Binary("*", Const(3), Binary("+", X, Const(2))), X), N)
    assert affine_terms(e) == ({X: 2, N: -1}, 6)


def test_a_store_is_no_load_of_the_next_loop() -> None:
    """What a local in memory gets back from a register stands right before the next loop, and is not for that one."""
    text = """
void f(int n, double x[n], double y[n], double z[n]) {
  double t = 1;
  for (int k = 0; k < n; k++) {
    for (int i = 0; i < n; i++) z[i] = 2 * x[k];
    for (int j = 0; j < 4; j++) t += y[j];
    for (int i = 1; i < n; i++) y[i] = y[i - 1] + z[i];
    x[k] = t + 1;
  }
}
"""
    codelet = load(text).codelet
    proof = prove_plan(codelet, lower(schedule(Analysis(codelet)).codelet))
    assert proof.verdict == "proved", proof.reason


@pytest.mark.parametrize(
    ("body", "elements"),
    [
        ("x[1] = 0; for (j = 0; j < m; j++) x[1] += A[1][j]; for (j = 0; j < m; j++) y[j] = 2 * x[1];", ["x[1]"]),
        ("x[1] = 0; x[2] = 1; for (j = 0; j < m; j++) x[1] += A[1][j] * x[2];", ["x[1]", "x[2]"]),
        ("x[1] = y[0]; if (n > 3) { for (j = 0; j < m; j++) x[1] += 2; }", ["x[1]"]),
        ("y[0] = x[1]; x[1] = 0; for (j = 0; j < m; j++) x[1] += A[1][j];", []),
        ("x[1] = x[1] / 2; for (j = 0; j < m; j++) y[j] = x[1];", []),
        ("x[1] = 0; for (j = 0; j < m; j++) x[j] += x[1];", []),
        ("k = 1; x[k] = 0; for (j = 0; j < m; j++) { x[k] += A[1][j]; k = 2; }", []),
        ("x[1] = 1; x[1] += y[0]; for (j = 0; j < m; j++) s[0] += 1;", []),
    ],
)
def test_what_a_team_is_told(body: str, elements: list[str]) -> None:
    """An element that is one and the same, assigned before it is used, and used by what the team shares."""
    before = load(f"void f({PARAMS})\n{{ int i, j, k; {body} }}\n").codelet
    changed, made = replace_team_scalars(before.body, {p.name for p in before.params} | {"i", "j", "k"})
    after = verify(replace(before, body=changed, locals=before.locals + made))
    given = cross_check.arguments(before, {"n": 5, "m": 4})
    assert cross_check.off(cross_check.interpreted(before, given), cross_check.interpreted(after, given)) is None
    own = {v.name for v in made}
    stores = [a for a in walk(after.body) if getattr(getattr(a, "value", None), "name", None) in own]
    assert sorted(c_printer.expression_text(a.target) for a in stores if isinstance(a.target, Load)) == elements


def test_a_block_of_unknown_width_is_kept() -> None:
    """Fours of columns that lie a grid apart, the sizes being arguments: every element of a thread is in a register."""
    product = load(ROOT / "gatlas" / "product.c").codelet
    lines = ("loop i: unroll 2, jam", "loop j: unroll 8, split, vector 4, jam")
    emitted = targets.backend("cuda-c", CACHE).emit(lower(schedule(Analysis(product), parse_lines(lines)).codelet))
    (first, *_) = re.findall(r"for \(.*?k\b.*?\{(.*?)\n *\}", emitted, re.DOTALL)
    assert "B[" in first
    assert "C[" not in first


def test_a_block_stays_from_strip_to_strip() -> None:
    """Staged strips of unknown number and length: no strip is empty, so that nothing of C is stored between them; and
    those that are whole are known to be."""
    product = load(ROOT / "gatlas" / "product.c").codelet
    lines = ("loop i: unroll 2, jam", "loop k: tile k:16", "loop k: stage A, B")
    done = schedule(Analysis(product), parse_lines(lines)).codelet
    emitted = targets.backend("cuda-c", CACHE).emit(lower(done))
    strips = emitted[emitted.index("for (unsigned int outer_k") : emitted.index("= C_r;")]
    assert strips.count("C[") == 1, "the store after all of them"
    assert strips.count("for (") == 3
    assert "k < 16;" in strips
