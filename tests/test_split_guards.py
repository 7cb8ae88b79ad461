"""Parts of sums are zeroed and added up under the conditions of the sums: nothing is touched outside an array."""

from __future__ import annotations

from pathlib import Path

import everywhere
import numpy as np
import oracle
import pytest
from everywhere import Case

from looptune import interp
from looptune.analysis import Analysis
from looptune.dealt import dealt
from looptune.frontend import load
from looptune.frontend.placed import parse_lines
from looptune.schedule import schedule

UPPER = """
void f(int n, int m, long C[m][m], long A[n][m]) {
  for (int i = 0; i < m; i++) for (int j = i; j < m; j++) for (int k = 0; k < n; k++) C[i][j] += A[k][i] * A[k][j];
}
"""
LOWER = UPPER.replace("int j = i; j < m", "int j = 0; j <= i")
STEPS = UPPER.replace("j++", "j += 3")
BEHIND = """
void f(int n, int m, long C[m][m], long A[n][m]) {
  for (int i = 0; i < 2 * m; i++) if (i < m) for (int k = 0; k < n; k++) C[i][0] += A[k][i];
}
"""
CASES = {
    "upper": (UPPER, ("loop 1: unroll 2, jam", "loop 2: unroll 2, jam", "loop 3: split 3")),
    "upper, split": (UPPER, ("loop 1: unroll 2, jam, split", "loop 2: unroll 5, jam", "loop 3: split 3")),
    "upper, columns": (UPPER, ("loop 1: unroll 4, jam", "loop 2: unroll 3", "loop 3: split 20")),
    "lower": (LOWER, ("loop 1: unroll 2, jam", "loop 2: unroll 3, jam, guarded", "loop 3: split 4")),
    "steps": (STEPS, ("loop 1: unroll 3, jam", "loop 3: split 2")),
    "behind": (BEHIND, ("loop 2: split 3",)),
}


def _given(n: int, m: int) -> oracle.Arguments:
    return {"n": n, "m": m, "C": np.zeros((m, m), np.int64), "A": np.arange(n * m, dtype=np.int64).reshape(n, m) + 1}


@pytest.mark.sampled(10, "wide")
@pytest.mark.parametrize("name", CASES)
def test_parts_stay_inside_their_arrays(name: str) -> None:
    """The interpreter asserts that every element is there, at sizes that copies divide and do not."""
    text, lines = CASES[name]
    codelet = load(text).codelet
    done = schedule(Analysis(codelet), parse_lines(lines)).codelet
    for rows in (False, True):
        made = dealt(done, rows=rows).codelet
        assert made != done
        for n, m in ((5, 1), (5, 2), (4, 5), (1, 7), (7, 8)):
            given = _given(n, m)
            want, got = oracle.interpreted(codelet, given), oracle.copied(given)
            interp.run(made, oracle.arrays(got), oracle.scalars(got))
            assert oracle.off(want, oracle.arrays(got)) is None, (rows, n, m)


@pytest.mark.long
def test_parts_are_added_up_in_every_target(tmp_path: Path) -> None:
    """The same in machine code and in kernels of blocks."""
    cases = [
        Case(
            name, text, [_given(5, m) for m in (1, 3, 8)], lines, ("cpu", "cuda-c") if name == "behind" else ("cuda-c",)
        )
        for name, (text, lines) in CASES.items()
    ]
    assert not everywhere.wrong(cases, tmp_path)
