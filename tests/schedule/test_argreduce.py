"""Loops that keep the best of their terms, divided into blocks: the result is that of gcc on every target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.frontend import load
from looptune.report.check.loop_facts import loop_facts
from looptune.report.check.text import because
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.suggest import alternatives
from tests.helpers import all_targets, cross_check
from tests.helpers.all_targets import Case

HEAD = """#include <math.h>
#define EACH for (int i = 0; i < n; i++)
void f(int n, int m, const double a[n], const int b[n][m], const short c[n], int o[8], double v[4])"""
FOUND = {
    "argmin of best, at": "double best = 3; int at = -1;"
    " EACH if (a[i] < best) { best = a[i]; at = i; } o[0] = at; v[0] = best;",
    "argmin of best, at: the last": "double best = 1 / (0.0 * n); int at = -1;"
    " EACH if (a[i] <= best) { best = a[i]; at = i; } o[0] = at; v[0] = best;",
    "argmin of best, at: of nothing": "double best = 0.0 / (0.0 * n); int at = -1;"
    " EACH if (a[i] <= best) { best = a[i]; at = i; } o[0] = at;",
    "argmax of best, row, column": "int best = -9, row = -1, column = 7; EACH"
    " for (int j = 0; j < m; j++) if (best <= b[i][j]) { best = b[i][j]; row = i; column = j; }"
    " o[0] = row; o[1] = column;",
    "argmax of at": "int at = 0; for (int i = 1; i < n; i++) if (c[i] > c[at]) at = i; o[0] = at;",
    "argmin of row, column": "int row = 0, column = 0; EACH for (int j = i % 2; j < m; j++)"
    " if (b[i][j] < b[row][column]) { row = i; column = j; } o[0] = row; o[1] = column;",
    "last of at": "int at = -1; EACH if (c[i] == 3 || c[i] > 7) at = i; o[0] = at;",
    "first of found, at": "int at = -1, found = 0; EACH"
    " if (!found && c[i] > 4) { found = 1; at = i; } o[0] = at; o[1] = found;",
    "first of at": "int at = o[3]; EACH if (at < 0 && c[i] > 4) at = i; o[0] = at;",
    "argmin of lo, l, argmax of hi, h": "double lo = 9, hi = -9; int l = -1, h = -1; for (int i = 1; i < n; i++)"
    " { if (a[i] < lo) { lo = a[i]; l = i; } if (fabs(a[i]) >= hi) { hi = fabs(a[i]); h = 2 * i; } }"
    " o[0] = l; o[1] = h;",
    "argmin of v[1], o[2]": "EACH if (a[i] < v[1]) { v[1] = a[i]; o[2] = i; }",
    "argmin of best, at: of sums": "int best = 99, at = -1; for (int i = n - 1; i >= 0; i -= 2) {"
    " int d = 0; for (int k = 0; k < m; k++) d += b[i][k]; if (c[i] < 0) continue; if (d <= best)"
    " { best = d; at = i; } } o[0] = at;",
    "+ of s, argmin of best, at, o[3]": "int best = 99, at = -1, s = 0; EACH"
    " { s += c[i]; if (c[i] != 4 && c[i] < best && a[i] < 3) { best = c[i]; at = 2 * i; o[3] = 0; } }"
    " o[0] = at; o[1] = s;",
}  # fmt: skip
KEPT = {
    "rounded": "float best = 9; int at = -1; EACH if (a[i] < best) { best = a[i]; at = i; } o[0] = at;",
    "cut": "signed char best = 9; int at = 0; EACH if (90 * c[i] < best) { best = 90 * c[i]; at = i; }"
    " o[0] = at;",
    "negated": "double best = 9; int at = 0; EACH if (!(a[i] >= best)) { best = a[i]; at = i; }"
    " o[0] = at;",
    "another value": "double best = 9; int at = 0; EACH if (a[i] < best) { best = a[i] / 2; at = i; }"
    " o[0] = at;",
    "read beside": "double best = 9; int at = 0; EACH { if (a[i] < best) { best = a[i]; at = i; }"
    " if (a[i] > 0) v[0] += best; } o[0] = at;",
    "second": "double best = 9, second = 9; EACH"
    " { if (a[i] < best) { second = best; best = a[i]; } else if (a[i] < second) second = a[i]; } v[0] = second;",
    "a key that changes": "int at = 0; EACH { o[i & 7] += c[i]; if (o[i & 7] < o[at]) at = i & 7; }"
    " o[0] = at;",
    "a jump": "int best = 9, at = 0; EACH { if (c[i] == 7) break; if (c[i] < best) { best = c[i]; at = i; } }"
    " o[0] = at;",
}  # fmt: skip
LINES = ("loop 1: parallel", "loop 1: argreduce 3")


def text_of(body: str) -> str:
    return f"{HEAD} {{ {body} }}\n"


def given(text: str) -> list[cross_check.Arguments]:
    """Return arguments with equal terms and NaNs, and loops of no iteration."""
    codelet = load(text).codelet
    made = []
    for k, n in enumerate((41, 40, 1, 0)):
        at = cross_check.arguments(codelet, {"n": n, "m": 5}, k + 1)
        if isinstance(at.get("a"), np.ndarray):
            at["a"] = np.where((np.arange(n) % 3 == 0) & (k == 1), np.nan, np.round(at["a"]))
        made.append(at)
    return made


@pytest.mark.parametrize("said", FOUND)
def test_such_a_loop_is_a_reduction_with_the_directive_that_divides_it(said: str) -> None:
    analysis = Analysis(load(text_of(FOUND[said])).codelet)
    first = next(loop_facts(analysis))
    assert (first.kind, because(first)) == ("reduction", said.partition(":")[0])


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_any_other_loop_is_sequential(body: str) -> None:
    analysis = Analysis(load(text_of(body)).codelet)
    assert next(loop_facts(analysis)).kind == "sequential"
    with pytest.raises((DirectiveError, IllegalTransform)):
        schedule(analysis, parse_lines(LINES))


def test_blocks_find_what_the_loop_finds(tmp_path: Path) -> None:
    """The C that is printed, CUDA C on a processor and the interpreter."""
    texts = {name: text_of(FOUND[name]) for name in (*FOUND,)[1:12:6]}
    assert all_targets.wrong([Case(n, t, given(t), LINES, all_targets.QUICK) for n, t in texts.items()], tmp_path) == []


@pytest.mark.wide
def test_blocks_find_it_on_every_target(tmp_path: Path) -> None:
    texts = {name: text_of(body) for name, body in FOUND.items()}
    assert all_targets.wrong([Case(n, t, given(t)[:2], LINES) for n, t in texts.items()], tmp_path) == []


def test_parallel_alone_is_refused_with_the_directive() -> None:
    analysis = Analysis(load(text_of(FOUND["argmax of at"])).codelet)
    placed = parse_lines(("loop 1: parallel",))
    (step,) = schedule(analysis, placed, keep_going=True).steps
    assert alternatives(analysis, placed, step, {})[0].lines == ("loop 1: parallel", "loop 1: argreduce 1024")
