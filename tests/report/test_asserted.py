"""A version that rests on the user's word is marked as asserted wherever it is shown; others are not."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import looptune
from looptune.deploy import source_to_source
from looptune.frontend import load
from looptune.report import result_table, suite_table
from looptune.report.check import json as loops_json
from looptune.report.check import text as loops
from looptune.report.check.explanation import explain
from looptune.runtime.device import DeviceInfo
from looptune.runtime.timing import Summary
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.results.result import Entry, Result

SCATTER = """\
void scatter(int n, float x[n], float y[n]) {
  #pragma hmppcg parallel, assume
  for (int i = 0; i < n; i++)
    y[i * i % n] = x[i] - x[i] + 1;
}
"""
PLAIN = """\
void plain(int n, float x[n], float y[n]) {
  #pragma hmppcg parallel, assume
  for (int i = 0; i < n; i++)
    y[i] = x[i];
}
"""
LINE = "loop 1: parallel assume"
SAID = f"asserted by the user, not proved: {LINE}"


@dataclass(frozen=True)
class Swept:
    """``here`` is where the reports are, ``said`` what the command wrote."""

    here: Path
    said: str

    @property
    def tuned(self) -> str:
        """The name of the winner's row: the loops on one core, which assert nothing, are faster on some machines."""
        (found,) = json.loads((self.here / "scatter.json").read_text())
        return "tuned" if found["directives"] == "loop 1: noParallel" else "tuned (asserted)"

    @property
    def asserted(self) -> list[str]:
        return ["default", *(["tuned"] if "asserted" in self.tuned else [])]


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """The file that trusts, with a space of one version."""
    folder = tmp_path_factory.mktemp("asserted")
    (folder / "scatter.c").write_text(SCATTER)
    (folder / "scatter.pragmas").write_text("loop i: unroll 1\n")
    command = [sys.executable, "-m", "looptune", "run", "scatter.c", "--sweep", "--finals-timeout", "0.3",
               "--target", "numba-cpu", "-D", "n=64", "--db", "db.sqlite", "--reports", "r", "--jobs", "1"]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return Swept(next((folder / "r").iterdir()), done.stdout)


@pytest.mark.long
def test_the_table_of_a_run_marks_its_rows(swept: Swept) -> None:
    """The default and the tuned version of the file that trusts; the original loops rest on nothing."""
    rows = [line.split("  ")[0] for line in swept.said.splitlines()]
    assert {"default (asserted)", swept.tuned, "sequential"} <= set(rows)
    unknown = "neither the finished loops nor the kernels as launched could be compared (subscript "
    assert (f"legality: {SAID}; {unknown}" in swept.said) == ("tuned" in swept.asserted)
    assert "WRONG" not in swept.said


@pytest.mark.long
def test_the_reports_mark_them(swept: Swept) -> None:
    """The page, the CSV and the JSON of the kernel, in its rows, its legality and fields of their own."""
    page = (swept.here / "scatter.md").read_text()
    assert "| default (asserted) |" in page
    assert f"| {swept.tuned} |" in page
    assert (f"Legality: {SAID}; " in page) == ("tuned" in swept.asserted)
    with (swept.here / "scatter.csv").open(newline="") as file:
        assert [r["asserted"] for r in csv.DictReader(file)] == [" ".join(swept.asserted)]
    assert [r["asserted"] for r in json.loads((swept.here / "scatter.json").read_text())] == [swept.asserted]


def result(kernel: str, asserted: bool, n: int = 1) -> Result:
    """Two versions of which the tuned one is as said."""
    took = Summary(1, 1, 1, 9)
    entries = (Entry("default", took, None, ""), Entry("tuned", took, None, "", asserted=asserted))
    facts = DeviceInfo("Some GPU 9", "numba-cuda", "sm_90", 100, 2**30, 2**20, "13000")
    return Result(kernel, facts, "numba-cuda", "float32", {"n": n}, entries, "loop i: unroll 2", (), "", {}, None, "")


def test_the_summary_of_a_suite_marks_them(tmp_path: Path) -> None:
    """In the table on the terminal, on the page with its winners and in the CSV, on the kernel's own lines only."""
    both = [result("a", True), result("b", False)]
    rows = [line for line in suite_table.plain(both).splitlines() if line.startswith(("a ", "b "))]
    assert [row.count("1 us (asserted)") for row in rows] == [1, 0]
    page = suite_table.write(both, tmp_path, "looptune run a.c b.c")
    marked = [line for line in page.read_text().splitlines() if "(asserted)" in line]
    assert [line.split("|")[1].strip() for line in marked] == ["[a](a.md)", "a (asserted)"]
    with page.with_suffix(".csv").open(newline="") as file:
        assert [r["asserted"] for r in csv.DictReader(file)] == ["tuned", ""]


def test_check_says_it() -> None:
    """The verdict of the directive is "asserted", as text and as JSON."""
    found = explain(load(SCATTER))
    assert "  loop 1  parallel assume  asserted\n" in loops.text(found)
    assert [d["verdict"] for d in loops_json.record(found)["directives"]] == ["asserted"]
    assert "asserted" not in loops.text(explain(load(PLAIN)))


@pytest.mark.parametrize("given", [False, True], ids=["in the file", "given with --directive"])
def test_source_that_was_made_says_it(tmp_path: Path, given: bool) -> None:
    """The C of transform, which has it in its own pragma or opens with it, and the module of emit."""
    file = tmp_path / "scatter.c"
    file.write_text(SCATTER.replace("  #pragma hmppcg parallel, assume\n", "") if given else SCATTER)
    lines = ["loop i: parallel, assume"] if given else []
    text = source_to_source.transform(file, lines)
    assert text.startswith("/* looptune transform\n") and f"   {SAID}\n*/" in text if given else text == SCATTER
    assert load(text).codelet.name == "scatter"
    for target in ("numba-cpu", "numba-cuda"):
        head = source_to_source.emit(file, lines, target=target).split('"""')[1]
        assert head.endswith(f"Asserted by the user, not proved:\n\n    {LINE}\n")
    file.write_text(PLAIN)
    assert "sserted" not in source_to_source.transform(file) + source_to_source.emit(file, target="numba-cpu")


def test_a_compiled_kernel_says_it() -> None:
    """As lines, which say which loop and can be given again; none where all is proved."""
    assert looptune.compile(SCATTER, target="numba-cpu").asserted == (LINE,)
    assert looptune.compile(PLAIN, target="numba-cpu").asserted == ()
    assert looptune.compile(SCATTER, target="numba-cpu", directives=[LINE]).asserted == (LINE,)


def test_a_piece_of_a_loop_is_named_as_one() -> None:
    """``loop 1.2`` where the loop was distributed."""
    text = "void f(int n, int p[n], float x[n], float y[n]) {\n  for (int i = 0; i < n; i++) {\n" \
           "    x[i] = 1;\n    y[p[i]] = 2;\n  }\n}\n"  # fmt: skip
    lines = parse_lines(("loop 1: distribute", "loop 1.2: parallel, assume"), "lines")
    assert schedule(Analysis(load(text).codelet), lines).asserted == ("loop 1.2: parallel assume",)


def test_reports_of_earlier_versions_are_kept(tmp_path: Path) -> None:
    """A CSV without the column keeps its rows, with nothing asserted in them."""
    result_table.write(result("f", True, n=1), tmp_path)
    (path,) = tmp_path.glob("*/f.csv")
    held = list(csv.DictReader(path.open(newline="")))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [c for c in result_table.COLUMNS if c != "asserted"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(held)
    result_table.write(result("f", True, n=2), tmp_path)
    assert [(r["sizes"], r["asserted"]) for r in csv.DictReader(path.open(newline=""))] == [
        ("n=1", ""), ("n=2", "tuned"),
    ]  # fmt: skip
