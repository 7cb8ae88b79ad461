"""``run -D N=512,1000``: several sizes in one command, each with its own result, and one table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from looptune.cli.options import defines_of, each_size
from looptune.cli.run import _alone
from looptune.core.errors import UsageError
from tests.helpers.command_line import looptune

TEXT = """
void f(int n, int m, double A[n][m], double x[m], double y[n]) {
  for (int i = 0; i < n; i++)
    for (int k = 0; k < m; k++)
      y[i] += A[i][k] * x[k];
}
"""


def test_lists_of_sizes_are_taken_together() -> None:
    """Other values, also those with commas, stay as they are; lists of different lengths are refused."""
    assert each_size({"n": "8"}) == [{"n": "8"}]
    assert each_size({"F(x)": "g(x,1)", "D": None}) == [{"F(x)": "g(x,1)", "D": None}]
    assert each_size({"n": "8,9", "D": None}) == [{"n": "8", "D": None}, {"n": "9", "D": None}]
    with pytest.raises(UsageError, match=r"-D m=1,2,3: 3 sizes, and -D n=8,9 has 2: lists of sizes are taken together"):
        each_size({"n": "8,9", "m": "1,2,3"})
    with pytest.raises(UsageError, match="-D n=8,9,8: 8 is named twice"):
        each_size({"n": "8,9,8"})
    for broken in ("64,x", "64,", ",64", "64, 128", "64,-3", "64,1e3"):
        with pytest.raises(UsageError, match=f"-D n={broken}: a list of sizes has whole numbers between its commas"):
            each_size({"n": broken})


def test_other_commands_take_one_size() -> None:
    """As a macro a list would give the parameter no value, or a wrong one."""
    with pytest.raises(UsageError, match="-D n=8,9: run alone takes a list of sizes, give one"):
        defines_of(("n=8,9",), None)
    assert defines_of(("n=8,9", "F=g(x,1)"), None, lists=True) == {"n": "8,9", "F": "g(x,1)"}


def test_each_size_has_a_command_of_its_own() -> None:
    """Which measures that size again: the list is replaced, wherever it stands."""
    given = ["run", "f.c", "g.c", "-D", "n=8,9", "-Dm=1,2", "--budget", "3"]
    assert _alone(Path("f.c"), [Path("f.c"), Path("g.c")], given, {"n": "9", "m": "2"}) == (
        "looptune run f.c -D n=9 -Dm=2 --budget 3"
    )


@pytest.mark.wide
def test_several_sizes_are_tuned_in_one_command(tmp_path: Path) -> None:
    """One result, one report row and one table line for each; a repeated command finds all of them."""
    (tmp_path / "f.c").write_text(TEXT)
    call = ("run", "f.c", "-D", "n=24,40,24", "-D", "m=16,16,32", "--target", "numba-cpu")
    ran = looptune(*call, cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert "1 kernel, 3 sizes, float64" in ran.out
    lines = [line.split()[:3] for line in ran.out.splitlines() if line.startswith("f  ")]
    assert [line[1:] for line in lines] == [["n=24", "m=16"], ["n=40", "m=16"], ["n=24", "m=32"]]
    (report,) = (tmp_path / "reports").glob("*/f.json")
    assert [row["sizes"] for row in json.loads(report.read_text())] == [
        {"n": 24, "m": 16}, {"n": 40, "m": 16}, {"n": 24, "m": 32},
    ]  # fmt: skip
    again = json.loads(looptune(*call, "--json", cwd=tmp_path).out)
    assert [one["sizes"]["n"] for one in again] == [24, 40, 24]
    refused = looptune(*call, "--dump", "y=y.npy", cwd=tmp_path)
    assert (refused.code, "at one size" in refused.err) == (2, True)
