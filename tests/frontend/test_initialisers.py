"""Lists of local arrays: what C leaves out of braces and values, compared with gcc."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from tests.helpers.against_gcc import difference

LISTS = [
    "w[4][3] = {0}",
    "w[4][3] = {1, 2, 3, 4, 5}",
    "w[4][3] = {1, 2, 3, {4}, 5, 6, 7, {8, 9}}",
    "w[4][3] = {{1}, {2, 3}, [3] = {4, 5, 6}}",
    "w[4][3] = {{1}, [2] = {[1] = 7}}",
    "w[4][3] = {[1] = {3}, 4, 5}",
    "w[][3] = {{1, 2}, [2] = {3}, {4}}",
    "w[4][3] = {}",
    "w[4][3] = {'a', 1 + 2, n, {n}}",
]


@pytest.mark.parametrize("declared", LISTS)
def test_a_list_has_the_values_that_gcc_gives_it(declared: str, tmp_path: Path) -> None:
    text = f"""
void f(int n, int o[n]) {{
  int {declared};
  for (int i = 0; i < n; i++) o[i] = 100 * w[i % 4][i % 3] + w[3][1] + (int)sizeof w;
}}
"""
    assert difference(text, {"n": 13}, tmp_path) is None


def test_rows_without_braces_at_three_levels(tmp_path: Path) -> None:
    text = """
void f(int n, double o[n]) {
  double w[2][2][3] = {{1, 2, 3, 4}, {{5}, 6, 7}};
  for (int i = 0; i < n; i++) o[i] = w[i / 6 % 2][i / 3 % 2][i % 3];
}
"""
    assert difference(text, {"n": 12}, tmp_path) is None


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ("w[2][2] = {1, 2, 3, 4, 5}", "the list has 1 more than fit 4 elements"),
        ("w[2][2] = {{1, 2}, {3, 4}, {5, 6}}", "the list has 3 values for 2 elements"),
        ("w[2][3] = {{1, 2, 3, 4}}", "the list has 4 values for 3 elements"),
    ],
)
def test_what_does_not_fit_is_refused(declared: str, why: str) -> None:
    text = f"void f(int n, int o[n]) {{ int {declared}; for (int i = 0; i < n; i++) o[i] += w[0][0] + w[1][1]; }}\n"
    with pytest.raises(LooptuneError, match=why):
        load(text)
