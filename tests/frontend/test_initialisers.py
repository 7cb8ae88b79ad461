"""Lists of local arrays: what C leaves out of braces and values, compared with gcc."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.ir.nodes import Const
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
    "w[][3] = {[0 ... 1] = {1, [1 ... 2] = 5 + 2}, {3}, [LAST] = {[0 ... LAST - 1] = 4}}",
]


@pytest.mark.parametrize("declared", LISTS)
def test_a_list_has_the_values_that_gcc_gives_it(declared: str, tmp_path: Path) -> None:
    text = f"""
void f(int n, int o[n]) {{
  enum {{ LAST = 3 }};
  int {declared};
  for (int i = 0; i < n; i++) o[i] = 100 * w[i % 4][i % 3] + w[3][1] + (int)sizeof w;
}}
"""
    assert difference(text, {"n": 13}, tmp_path) is None


@pytest.mark.parametrize(
    ("values", "extent"), [("[LAST] = 1", 10), ("1, [3 ... 5] = 2", 6), ("[2] = 7, [1] = 2", None)]
)
def test_an_array_without_extent_is_as_long_as_its_list(values: str, extent: int | None) -> None:
    """It is passed with this extent, or with none where the list is not read."""
    text = f"""void g(double *); enum {{ LAST = 9 }};
    void f(int n, double *x) {{ double t[] = {{{values}}}; g(t);
      for (int i = 0; i < n; i++) x[i] = t[i]; }}"""
    (t,) = (p for p in load(text, kernel="f:3").codelet.params if p.name == "t")
    assert t.shape == ((None if extent is None else Const(extent)),)


def test_rows_without_braces_at_three_levels(tmp_path: Path) -> None:
    text = """
void f(int n, double o[n]) {
  double w[2][2][3] = {{1, 2, 3, 4}, {{5}, 6, 7}};
  for (int i = 0; i < n; i++) o[i] = w[i / 6 % 2][i / 3 % 2][i % 3];
}
"""
    assert difference(text, {"n": 12}, tmp_path) is None


STRINGS = [
    r'const char w[] = "0123456789abcdef"',
    r'char w[8] = "a\\b\"\n\0c\'"',
    r'char w[4] = "abcd"',
    r'signed char w[] = "\u00e9\xff"',
    r'unsigned char w[9] = "h\xc3\xa9" "z"',
    r'unsigned char w[] = "é\?"',
    r"""char w[3][5] = {"ab", {'c'}, "defgh"}""",
]


@pytest.mark.parametrize("declared", STRINGS)
@pytest.mark.parametrize("place", ["local", "global"])
def test_a_string_has_the_bytes_that_gcc_gives_it(declared: str, place: str, tmp_path: Path) -> None:
    """Where it is not known how the text was written, it is refused."""
    element = "w[i / 5 % 3][i % 5]" if "][" in declared else "w[i % (int)sizeof w]"
    out, inside = (f"static {declared};", "") if place == "global" else ("", f"{declared};")
    text = f"""
{out}
void f(int n, int o[n]) {{
  {inside}
  for (int i = 0; i < n; i++) o[i] = 3 * {element} + (int)sizeof w;
}}
"""
    if "\\x" in declared and (place == "local" or "[]" in declared):
        with pytest.raises(LooptuneError, match=r"write (a list in braces|the number)"):
            load(text)
    else:
        assert difference(text, {"n": 31}, tmp_path) is None


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ("w[2][2] = {1, 2, 3, 4, 5}", "the list fills all 4 elements and has 1 more"),
        ("w[2][2] = {{1, 2}, {3, 4}, {5, 6}}", "the list has 3 values for 2 elements"),
        ("w[2][3] = {{1, 2, 3, 4}}", "the list has 4 values for 3 elements"),
    ],
)
def test_what_does_not_fit_is_refused(declared: str, why: str) -> None:
    text = f"void f(int n, int o[n]) {{ int {declared}; for (int i = 0; i < n; i++) o[i] += w[0][0] + w[1][1]; }}\n"
    with pytest.raises(LooptuneError, match=why):
        load(text)
