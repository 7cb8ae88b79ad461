"""The times of a whole program: every version runs, and what they print is compared."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from looptune.cli.run import _programs
from looptune.core.errors import UsageError
from looptune.core.floating_point import DEFAULT
from looptune.deploy.program import whole
from looptune.deploy.program.whole import ProgramTimes, WholeProgram, time_program
from looptune.report.whole_table import notes, whole_table

TEXT = """#include <stdio.h>
#pragma hmpp f codelet
void f(int n, double *x) { for (int i = 0; i < n; i++) x[i] += i; }
int main(void) { static double x[N]; f(N, x); printf("%g\\n", x[N - 1]); return CODE; }
"""


def program(folder: Path, code: int) -> WholeProgram:
    path = folder / "f.c"
    path.write_text(TEXT)
    return WholeProgram(path, {"N": "50", "CODE": str(code)}, (), None, folder / "none", (), DEFAULT)


def test_every_version_runs(tmp_path: Path) -> None:
    """Without a GPU there are the program as it is and two that run on the cores; none is computed."""
    times = time_program(program(tmp_path, 0), 5.0, lambda said: None)
    assert [(t.label, len(t.runs), t.on_device, t.prints_the_same) for t in times] == [
        ("gcc -O3", 5, False, True), ("default", 5, False, True), ("tuned", 5, False, True)
    ]  # fmt: skip
    assert notes(times) == ("no codelet ran on a GPU: the programs run on the cores of this machine",)


@pytest.mark.wide
def test_a_program_that_fails(tmp_path: Path) -> None:
    """Its time would mean nothing."""
    with pytest.raises(UsageError, match="exit code 3"):
        time_program(program(tmp_path, 3), None, lambda said: None)


@pytest.mark.parametrize(
    ("defines", "measured", "timed"),
    [({"N": "50"}, {"N": 50}, True), ({"N": "50"}, {"N": 60}, False), ({"N": "50", "n": "8"}, {"n": 8, "N": 8}, False)],
)
def test_the_program_is_timed_at_the_sizes_measured(
    defines: dict[str, str], measured: dict[str, int], timed: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Whatever these are called; where nothing was measured at its own sizes, a warning says so."""
    path = tmp_path / "f.c"
    path.write_text(TEXT)
    monkeypatch.setattr(whole, "time_program", lambda *given: ("timed",))
    options = {"whole": True, "dtype": None, "fp_contract": None, "kernel": None, "include_dirs": (), "db": tmp_path,
               "objective": "time"}  # fmt: skip
    (program,) = _programs([path], options, [{**defines, "CODE": "0"}])
    result = SimpleNamespace(
        kernel="f", sizes={**measured, "CODE": 0}, facts=SimpleNamespace(arch="x86_64"), median_us=lambda name: None
    )
    assert program([result]) == (path, ("timed",) if timed else ())
    assert ("is not timed: it runs at N=50 CODE=0, and nothing was measured there" in capsys.readouterr().err) != timed


def test_the_table() -> None:
    """Speed-ups are over the program as it is, with the transfers and without; what is computed is marked."""
    times = (
        ProgramTimes("gcc -O3", (2.0, 2.0), 2.0),
        ProgramTimes("tuned", (0.5, 0.6), 0.5, 0.05, 0.2, 0.1, True, prints_the_same=False),
        ProgramTimes("by hand", (), 0.55, 0.1, 0.2, 0.1, True),
    )
    rows = whole_table(times).rows
    assert rows[1] == ("tuned", "500 ms", "500 ms .. 600 ms, n=2", "50 ms", "200 ms", "100 ms", "4x", "10x")
    assert rows[2][2] == "computed"
    assert [said.split(":")[0] for said in notes(times)] == [
        "tuned prints other text than gcc -O3", "by hand is computed"
    ]  # fmt: skip
