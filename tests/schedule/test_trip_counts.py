"""Iterations of what directives make of a loop, counted in generated code: as many as of the loop itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import all_targets, cross_check
from tests.helpers.all_targets import Case

LOOPS = {
    "step": "for (int i = 2; i < n; i += 2)",
    "from a quotient": "for (int i = (m - 7) / 2 + 3; i < n; i++)",
    "from a remainder": "for (int i = (m - 9) % 4 - 1; i < n; i += 3)",
    "from below zero": "for (int i = -3; i <= n - 4; i += 2)",
    "to a minimum": "for (int i = m - 3; i < (n < m ? n : m); i++)",
    "downward": "for (int i = n - 1; i > m - 5; i -= 2)",
    "unsigned": "for (unsigned long i = (unsigned long)m; i < (unsigned long)n; i += 3)",
}
LINES = (
    ("",), ("unroll 2",), ("unroll 3, split",), ("unroll 4, split, guarded",), ("unroll 2, guarded",), ("tile 3",),
    ("unroll 4, split, vector 2",), ("tile 4", "unroll 2"), ("unroll 2", "unroll 3, jam"),
)  # fmt: skip
SIZES = ((0, 0), (1, 9), (2, 1), (7, 3), (11, 9), (12, 0), (3, 12))


def _text(loop: str) -> str:
    body = "{ a[i + 8] += 1; for (int j = i > 3 ? 3 : 0; j < m; j += 2) b[i + 8][j] += 1; }"
    return f"void f(int n, int m, int a[32], int b[32][16])\n{{ {loop} {body} }}\n"


def _given() -> list[cross_check.Arguments]:
    arrays = {"a": np.zeros(32, np.int32), "b": np.zeros((32, 16), np.int32)}
    return [{"n": n, "m": m, **arrays} for n, m in SIZES]


@pytest.mark.wide
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LOOPS)
def test_directives_keep_the_number_of_iterations(name: str, tmp_path: Path) -> None:
    """Steps, quotients and extremes in bounds, loops that do not run, in the interpreter, gcc's and kernels' code."""
    text, cases = _text(LOOPS[name]), []
    for k, (first, *rest) in enumerate(LINES):
        lines = [f"loop 1: {first}"] if first else []
        lines += [f"loop 2: {line}" for line in rest]
        try:
            schedule(Analysis(load(text).codelet), parse_lines(lines))
        except LooptuneError:
            continue
        ways = (*all_targets.QUICK, "cpu") if k == 1 and name in ("step", "from a quotient") else all_targets.QUICK
        cases.append(Case(f"{name} {lines}", text, _given(), lines, ways))
    assert len(cases) >= 5
    assert not all_targets.wrong(cases, tmp_path)
