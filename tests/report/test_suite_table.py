"""The page of a suite: the ratios and means are those of the times, and what was not measured is left out."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.report import suite_table
from looptune.report.figures import style
from looptune.report.figures.summary import speedups, versions
from looptune.runtime.device import DeviceInfo
from looptune.runtime.timing import Summary
from looptune.tune.results.result import Entry, Result

FACTS = DeviceInfo("Some GPU 9", "numba-cuda", "sm_90", 100, 2**30, 2**20, "13000")


def result(kernel: str, default: float, by_hand: float | None, tuned: float, **sizes: int) -> Result:
    """A result with these medians, in microseconds."""
    times = {"default": default, "hand-written": by_hand, "tuned": tuned}
    entries = tuple(Entry(n, Summary(t, t, t, 9), None, "") for n, t in times.items() if t is not None)
    return Result(
        kernel, FACTS, "numba-cuda", "float32", sizes, entries, f"loop i: unroll {len(kernel)}", (), "proved",
        {"space": 40, "timed": 30, "wrong": int(kernel == "b")}, None, "looptune run a.c b.c --sweep",
    )  # fmt: skip


SUITE = (
    result("a", 100, 50, 25, n=64, m=64),
    result("b", 900, 100, 100, n=64, m=32),
    result("c", 10, None, 20, n=5),
)


def test_means_are_geometric_over_what_was_measured() -> None:
    """By hand: sqrt(2 * 9); tuned: the cube root of 4 * 9 * 1/2; tuned over hand: sqrt(2 * 1)."""
    assert suite_table.mean(SUITE, "default", "hand-written") == pytest.approx(18**0.5)
    assert suite_table.mean(SUITE, "default", "tuned") == pytest.approx(18 ** (1 / 3))
    assert suite_table.mean(SUITE, "hand-written", "tuned") == pytest.approx(2**0.5)
    assert suite_table.mean(SUITE[2:], "default", "hand-written") is None


def test_the_page_has_a_line_a_kernel_and_the_means() -> None:
    """Kernels in their order with a link each, one number for equal sizes, a dash for what is not there."""
    page = suite_table.markdown(SUITE, "looptune run a.c b.c").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page if line.startswith("| ")]
    assert [r[0] for r in rows[1:5]] == ["[a](a.md)", "[b](b.md)", "[c](c.md)", "**geometric mean**"]
    assert [r[1] for r in rows[1:4]] == ["64", "n=64 m=32", "5"]
    assert rows[1][2:8] == ["100 us", "50 us", "25 us", "2x", "4x", "2x"]
    assert rows[3][3] == rows[3][5] == rows[3][7] == "-"
    assert "`loop i: unroll 1`" in suite_table.markdown(SUITE, "looptune run a.c b.c")
    assert suite_table.failures(SUITE) == ["b: 40 in the space: 30 timed, 1 wrong"]


def test_files_and_picture(tmp_path: Path) -> None:
    """A page, a CSV with the ratios as numbers, and a picture, in the device's folder, named by the type."""
    page = suite_table.write(SUITE, tmp_path, "looptune run a.c b.c")
    assert page == tmp_path / "some-gpu-9" / "summary-float32.md"
    rows = list(csv.DictReader(page.with_suffix(".csv").open()))
    assert [r["kernel"] for r in rows] == ["a", "b", "c"]
    assert float(rows[0]["tuned_over_default"]) == 4
    assert (rows[2]["handwritten_over_default"], rows[2]["sizes"]) == ("", "n=5")
    pytest.importorskip("matplotlib")
    (drawn,) = style.save(lambda: speedups({"all": [(r.kernel, r) for r in SUITE]}), page.with_suffix(""), ("png",))
    assert drawn == page.with_suffix(".png")
    assert drawn.stat().st_size > 10_000


def test_the_picture_of_a_sweep_and_its_table_show_the_same_times() -> None:
    """The points of the finals end at the line of the tuned version, whatever the screening said of it."""
    pytest.importorskip("matplotlib")
    made = replace(SUITE[0], times_us=(90.0, 120.0), finals_us=(SUITE[0].median_us("tuned") or 0.0, 85.0))
    (axes,) = versions(made).axes
    points = [list(line.get_ydata()) for line in axes.lines if line.get_linestyle() == "None"]
    assert points == [sorted(made.finals_us), [90.0, 120.0]]
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts[:2] == ["2 versions, medians of the finals", "2 versions, medians of the screening"]
    tuned = next(line for line in axes.lines if str(line.get_label()).startswith("tuned, finals"))
    assert set(tuned.get_ydata()) == {min(made.finals_us)}


def test_time_of_all_is_the_time_that_passed() -> None:
    """What the device did adds up, though the sweeps ran at once; the rest is waiting."""
    seconds = {"launch": 1.0, "verify": 2.0, "measure": 3.0, "waiting": 50.0, "judge": 4.0, "compile": 5.0, "own": 0.5}
    timed = [replace(r, seconds=seconds | {"finals": n}) for n, r in enumerate(SUITE)]
    assert suite_table.time_spent(timed, 30.0) == (
        "time of all: 30.0 s: launch 3.0, verify 6.0, measure 9.0, waiting 9.0, finals 3.0; "
        "meanwhile, of all processes: judge 12.0, compile 15.0; looptune itself 1.5"
    )
    assert suite_table.time_spent((*timed, SUITE[0]), 30.0) == ""
