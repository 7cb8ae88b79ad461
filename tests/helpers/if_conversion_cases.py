"""Accumulations under conditions that if-conversion removes."""

from __future__ import annotations

from collections.abc import Sequence

from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines

HEAD = "void f(int n, int m, double S[n][n], double A[m][n], double x[m])\n"
TRIANGLE = "for (int p = 0; p < n; p++) for (int q = p; q < n; q++) for (int i = 0; i < m; i++) %s"
BOXED = ("loop q: box", "loop p: unroll 2, jam", "loop q: unroll 2, jam")
SUM = TRIANGLE % "S[p][q] += A[i][p] * A[i][q];"
DONE = {
    "triangle": (SUM, BOXED),
    "larger box": (SUM, ("loop p: box 4", "loop q: box 4", *BOXED[1:])),
    "condition": ("for (int p = 0; p < n; p++) for (int i = 0; i < m; i++) if (p > 2) S[p][0] += x[i];", ()),
    "two conditions": (
        "for (int p = 0; p < n; p++) for (int i = 0; i < m; i++)\n"
        "  { if (p > 2) S[p][0] += x[i]; if (p < n - 1) S[p][1] *= x[i]; }", ()),
    "constant divisor": ("for (int p = 0; p < n; p++) for (int i = 0; i < m; i++) if (p > 2) S[p][0] += i / 2;", ()),
}  # fmt: skip
SIZES = ({"n": 7, "m": 5}, {"n": 8, "m": 4}, {"n": 2, "m": 1})


def planned(text: str, lines: Sequence[str], sizes: dict[str, int]) -> Plan:
    return lower(
        specialize(schedule(Analysis(load(HEAD + "{" + text + "}\n").codelet), parse_lines(lines)).codelet, sizes)
    )
