"""Innermost loops on the CPU: what is moved out or held, what must not be, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from looptune.frontend import load
from looptune.ir.def_use import referenced_names
from looptune.ir.nodes import Assign, Codelet, If, Load, Local, Loop, Var
from looptune.ir.rewrite import walk
from looptune.lower.passes.unswitch import unswitch_innermost
from looptune.lower.pipeline import lower
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check

HEAD = "void f(int n, int m, float a, float A[n][m], float B[n][m], float x[n], int y[m])\n"
ROW = "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { %s }"
ASKING = {
    "not of the loop": (ROW % "if (i == 0) A[i][j] *= a; A[i][j] += B[i][j];", 0),
    "with an else": (ROW % "if (i < n - 1) A[i][j] += a; else A[i][j] = 0; A[i][j] *= 2;", 0),
    "two": (ROW % "if (i > 0) A[i][j] += a; A[i][j] *= 3; if (i < 2) A[i][j] -= B[i][j];", 0),
    "three, of which one stays": (
        ROW % "if (i > 0) A[i][j] += a; if (i < 2) A[i][j] *= a; if (n > i + 3) A[i][j] -= 1;", 4),
    "five: a loop in which all hold, and one that asks": (
        ROW % "if (i > 0) A[i][j] += a; if (i < 2) A[i][j] *= a; if (n > i + 3) A[i][j] -= 1; if (n > 3) A[i][j] += 2;"
              " if (m > 3) B[i][j] += 1; A[i][j] *= 2;", 5),
    "the same twice": (ROW % "if (i > 0) A[i][j] += a; A[i][j] *= 3; if (i > 0) A[i][j] -= 1;", 0),
    "of the loop": (ROW % "if (j > i) A[i][j] += a; A[i][j] *= 3;", 1),
    "reads an element": (ROW % "if (x[i] > 0) A[i][j] += a; A[i][j] *= 3;", 1),
    "divides": (ROW % "if (n % (i + 1) == 0) A[i][j] += a; A[i][j] *= 3;", 1),
    "is changed": ("int k = 0; for (int j = 0; j < m; j++) { if (k == 0) A[0][j] += a; k = k + 1; }", 1),
    "an empty loop": ("for (int j = m; j < m; j++) if (n > 2) A[0][j] = a;", 0),
}  # fmt: skip
HELD = {
    "several assignments": (ROW % "A[i][j] *= a; A[i][j] += B[i][j]; A[i][j] -= x[i];", 1),
    "two rows": ("for (int i = 0; i < n - 1; i++) for (int j = 0; j < m; j++)\n"
                 "  { A[i][j] += a; A[i + 1][j] += a; A[i][j] *= 2; A[i + 1][j] *= 2; }", 2),
    "first written": (ROW % "A[i][j] = a; B[i][j] = A[i][j] * 2; A[i][j] += B[i][j];", 2),
    "one assignment": (ROW % "A[i][j] += a;", 0),
    "only read": (ROW % "A[i][j] = B[i][j]; x[i] += B[i][j];", 0),
    "perhaps the same": ("for (int k = 0; k < m; k++) for (int j = 0; j < m; j++)\n"
                         "  { A[0][j] += a; A[0][k] += 1; A[0][j] *= 2; }", 0),
    "the one before": ("for (int j = 1; j < m; j++) { A[0][j] += A[0][j - 1]; A[0][j] *= a; B[0][j] = A[0][j]; }", 2),
    "indices that change": ("for (int j = 0; j < m; j++) { y[j] = j % 2; A[y[j]][j] += a; A[y[j]][j] *= 2; }", 1),
    "whole numbers": ("for (int j = 0; j < m; j++) { y[j] = 100000 * y[j]; y[j] = y[j] * 100000; y[j] += j; }", 1),
}  # fmt: skip
SIZES = ({"n": 5, "m": 7}, {"n": 2, "m": 1})


def made(text: str) -> tuple[Codelet, Codelet]:
    """The codelet and what becomes of it."""
    codelet = load(HEAD + "{" + text + "}\n").codelet
    body = unswitch_innermost(codelet.body, {*referenced_names(codelet.body), *(p.name for p in codelet.params)})
    own = {n.name: n.dtype for n in walk(body) if isinstance(n, Var) and n.name.startswith("held")}
    return codelet, replace(
        codelet, body=body, locals=(*codelet.locals, *(Local(name, dtype) for name, dtype in own.items()))
    )


def same(before: Codelet, after: Codelet) -> None:
    for size in SIZES:
        given = cross_check.arguments(before, {**size, "a": 1.5})
        assert cross_check.off(cross_check.interpreted(before, given), cross_check.interpreted(after, given)) is None


@pytest.mark.parametrize("name", ASKING)
def test_conditions_are_moved_out(name: str) -> None:
    """So many are left in loops; to the bit, the arrays are what they were."""
    text, left = ASKING[name]
    before, after = made(text)
    loops = [n for n in walk(after.body) if isinstance(n, Loop)]
    inner = [f for f in loops if not any(isinstance(n, Loop) for n in walk(f.body))]
    assert sum(isinstance(n, If) for f in inner for n in walk(f.body)) == left
    same(before, after)


@pytest.mark.parametrize("name", HELD)
def test_elements_are_held(name: str) -> None:
    """So many are; each is stored once, and loaded unless it is written first."""
    text, count = HELD[name]
    before, after = made(text)
    moves = [n for n in walk(after.body) if isinstance(n, Assign) and isinstance(n.target, Load)]
    stores = [n for n in moves if isinstance(n.value, Var) and n.value.name.startswith("held")]
    assert len(stores) == count
    same(before, after)


def test_names_in_use_are_left() -> None:
    """A variable of the user's that is called as ours would be."""
    codelet = load(
        "void f(int n, float held0, float A[n]) {for (int i = 0; i < n; i++) { A[i] += held0; A[i] *= held0; }}\n"
    ).codelet
    body = unswitch_innermost(codelet.body, {*referenced_names(codelet.body), "held1"})
    assert {n.name for n in walk(body) if isinstance(n, Var)} == {"n", "i", "held0", "held2"}


@pytest.mark.sampled(9, "wide")
@pytest.mark.sampled(30, "wide")
@pytest.mark.parametrize("name", ["with an else", "two", "two rows", "whole numbers"])
def test_compiled(name: str, tmp_path: Path) -> None:
    """On the CPU, with loops shared out, unrolled and jammed."""
    text = {**ASKING, **HELD}[name][0]
    codelet = load(HEAD + "{" + text + "}\n").codelet
    lines = ("loop i: unroll 2, jam",) if "int i = 0; i < n; i++" in text else ()
    made = lower(schedule(Analysis(codelet), parse_lines(lines)).codelet)
    backend = targets.backend("numba-cpu", tmp_path)
    program = backend.load(backend.build(made))
    for size in SIZES:
        given = cross_check.arguments(codelet, {**size, "a": 1.5})
        got = cross_check.copied(given)
        program.run(cross_check.arrays(got), cross_check.scalars(got))
        assert cross_check.off(cross_check.interpreted(codelet, given), cross_check.arrays(got), 1e-6) is None
