"""Parts of sums are zeroed and added up under the conditions of the sums: nothing is touched outside an array."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from looptune.core.errors import DirectiveError
from looptune.frontend import load
from looptune.ir import interpreter
from looptune.lower.passes.split_reduction import expand_split_reductions
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import all_targets, cross_check
from tests.helpers.all_targets import Case

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
    "upper": (UPPER, ("loop 1: unroll 2, jam", "loop 2: unroll 2, jam", "loop 3: rfactor 3")),
    "upper, split": (UPPER, ("loop 1: unroll 2, jam, split", "loop 2: unroll 5, jam", "loop 3: rfactor 3")),
    "upper, columns": (UPPER, ("loop 1: unroll 4, jam", "loop 2: unroll 3", "loop 3: rfactor 20")),
    "lower": (LOWER, ("loop 1: unroll 2, jam", "loop 2: unroll 3, jam, guarded", "loop 3: rfactor 4")),
    "steps": (STEPS, ("loop 1: unroll 3, jam", "loop 3: rfactor 2")),
    "behind": (BEHIND, ("loop 2: rfactor 3",)),
}


def _given(n: int, m: int) -> cross_check.Arguments:
    return {"n": n, "m": m, "C": np.zeros((m, m), np.int64), "A": np.arange(n * m, dtype=np.int64).reshape(n, m) + 1}


@pytest.mark.sampled(10, "wide")
@pytest.mark.parametrize("name", CASES)
def test_parts_stay_inside_their_arrays(name: str) -> None:
    """The interpreter asserts that every element is there, at sizes that copies divide and do not."""
    text, lines = CASES[name]
    codelet = load(text).codelet
    done = schedule(Analysis(codelet), parse_lines(lines)).codelet
    for blocks in (False, True):
        made = expand_split_reductions(done, blocks=blocks).codelet
        assert made != done
        for n, m in ((5, 1), (5, 2), (4, 5), (1, 7), (7, 8)):
            given = _given(n, m)
            want, got = cross_check.interpreted(codelet, given), cross_check.copied(given)
            interpreter.run(made, cross_check.arrays(got), cross_check.scalars(got))
            assert cross_check.off(want, cross_check.arrays(got)) is None, (blocks, n, m)


HEAD = "void f(int n, int m, long a[n], long b[n], long t[n], long out[m]) {"
WIDE = "for (int j = 0; j < 2 * m; j++) for (int i = 0; i < n; i++)"
BICG = "for (int i = 0; i < n; i++) { for (int j = 0; j < m; j++) t[i] += b[i] * j; for (int j = 0; j < 2 * m; j++)"
SPLIT = ("loop 2: rfactor 3",)
TEAMS = ("loop 1: rfactor 20", "loop 2: parallel", "loop 3: parallel")
SOMETIMES = {
    "data and size": (f"{WIDE} if (a[i] > 0 && j < m) out[j] += a[i];", SPLIT),
    "size and data": (f"{WIDE} if (j < m && a[i] > 0) out[j] += a[i];", SPLIT),
    "data alone": (f"{WIDE} if (j < b[0]) out[j] += a[i];", SPLIT),
    "its own variable": (f"{WIDE} if (i + j < m && j < m + i) out[j] += a[i];", SPLIT),
    "either of two": (f"{WIDE} {{ if (j < m - 1) out[j] += a[i]; if (j == m - 1) out[j] -= b[i]; }}", SPLIT),
    "no iteration inside": (f"{WIDE} for (int k = j; k < m; k++) out[j] += a[i];", SPLIT),
    "another's element": (f"{WIDE} for (int k = 0; k < 1 - j % 2; k++) out[j / 2 + j % 2 * m] += a[i] * k;", SPLIT),
    "a while inside": (f"{WIDE} {{ int k = j; while (k < m) {{ out[j] += a[i]; k++; }} }}", SPLIT),
    "greatest": (f"{WIDE} if (j < m && b[i] > 0) if (a[i] > out[j]) out[j] = a[i];", SPLIT),
    "rows": (f"{WIDE} if (a[i] > 0 && j < m) out[j] += a[i];", ("loop 1: unroll 2, jam", "loop 2: rfactor 2")),
    "teams": (f"{BICG} if (a[i] > 0 && j < m) out[j] += a[i] * t[i]; }}", TEAMS),
    "teams, its own variable": (f"{BICG} if ((i + j) % 3 == 0 && j < m) out[j] += a[i] * t[i]; }}", TEAMS),
    "a quotient": (
        "for (int j = -m; j < m; j++) for (int i = 0; i < n; i++) if (i < j) if (n / j > 1) out[j] += a[i];", SPLIT
    ),
    "factor": ("for (int j = 0; j < 2 * m; j++) for (int i = j; i < m; i++) out[j] += a[0] * t[i & 3];",
               (*SPLIT, "loop 2: factor")),
}  # fmt: skip


def _sometimes(n: int, m: int) -> cross_check.Arguments:
    a, t, out = (np.random.default_rng(n).integers(-9, 10, size) for size in (n, n, m))
    return {"n": n, "m": m, "a": a, "b": np.full(n, m), "t": t, "out": out}


@pytest.mark.parametrize("name", SOMETIMES)
def test_a_sum_that_gets_nothing_is_not_touched(name: str) -> None:
    """Data, inner loops and the loop itself may decide that an iteration adds to no element, or where it divides."""
    body, lines = SOMETIMES[name]
    codelet = load(f"{HEAD} {body} }}\n").codelet
    done = schedule(Analysis(codelet), parse_lines(lines)).codelet
    for blocks in (False, True):
        made = expand_split_reductions(done, blocks=blocks).codelet
        for n, m in ((5, 1), (4, 2), (7, 5)):
            given = _sometimes(n, m)
            want, got = cross_check.interpreted(codelet, given), cross_check.copied(given)
            interpreter.run(made, cross_check.arrays(got), cross_check.scalars(got))
            assert cross_check.off(want, cross_check.arrays(got)) is None, (blocks, n, m)


def test_parts_by_element_are_refused_where_it_may_get_nothing() -> None:
    """Two iterations may share such an element, of which one adds to it: it would begin the other one's part."""
    nest = "for (int h = 0; h < m; h++) for (int j = h; j < m; j++) for (int i = 0; i < n; i++)"
    text = f"{HEAD} {nest} if (a[i] > j) out[j] += a[i]; }}\n"
    with pytest.raises(DirectiveError, match=r"data or loops inside of it decide whether it adds to out\[j\]"):
        schedule(Analysis(load(text).codelet), parse_lines(("loop 3: rfactor 2",)))


@pytest.mark.long
def test_parts_are_added_up_in_every_target(tmp_path: Path) -> None:
    """The same in machine code and in kernels of blocks."""
    cases = [
        Case(
            name, text, [_given(5, m) for m in (1, 3, 8)], lines, ("cpu", "cuda-c") if name == "behind" else ("cuda-c",)
        )
        for name, (text, lines) in CASES.items()
    ]
    ways = ("cpu", "cuda-c", "simulator")
    cases += [
        Case(name, f"{HEAD} {body} }}\n", [_sometimes(7, 5)], lines, ways) for name, (body, lines) in SOMETIMES.items()
    ]
    assert not all_targets.wrong(cases, tmp_path)


def test_a_divisor_of_an_extent_may_be_0() -> None:
    """Arrays of parts are made where no condition of the loops holds."""
    text = """
void f(int n, int m, int q, const long *x, long s[n]) {
  if (m != 0) for (int j = 0; j < n / m; j++) for (int i = 0; i < q; i++) s[j] += x[i + j];
}
"""
    done = schedule(Analysis(load(text).codelet), parse_lines(("loop 2: rfactor 4",))).codelet
    made = expand_split_reductions(done).codelet
    assert made != done
    for m in (0, 1, 2):
        given: cross_check.Arguments = {"n": 6, "m": m, "q": 5, "x": np.arange(12), "s": np.zeros(6, np.int64)}
        want, got = cross_check.interpreted(load(text).codelet, given), cross_check.copied(given)
        interpreter.run(made, cross_check.arrays(got), cross_check.scalars(got))
        np.testing.assert_array_equal(cross_check.arrays(got)["s"], cross_check.arrays(want)["s"])
