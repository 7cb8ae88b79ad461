"""What the best of one device costs on another: which pairs count, what of the finals, and their table and figure."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.report import transfer_table
from looptune.report.figures.transfer import transfer_figure as drawn
from looptune.report.transfer_table import Transfer, mean, transfers
from looptune.runtime.outcome import Illegal, Outcome, WrongResult
from looptune.tune.results import studies
from looptune.tune.store.store import Context, Row, Store, canonical_json
from tests.helpers.report_database import BEST, FINALS, GPU, OTHER, TIMES, fill, timed

CPU = replace(
    GPU, device="AMD EPYC", capability="zen", target="numba-cpu", sizes=canonical_json({"n": 64, "alpha": 1.5}),
    options=canonical_json({"cores": 2, "reassociate": True, "seed": 0}),
)  # fmt: skip
OWN = "loop i: unroll 16"
"""The best on the CPU."""


def measured(path: Path, *there: tuple[str, Outcome, str], finals: Mapping[str, float], at: Context = CPU) -> Path:
    """A GPU's sweep, and one ``at`` another place that has besides some rows: directives, outcome, source."""
    with Store.open(path) as store:
        fill(store)
        times = {"": 100.0, OWN: 50.0}
        fill(store, at, times=times, finals=dict(finals), sweep="s2")
        for text, outcome, source in there:
            store.record(Row(at, text, sweep="s2", emitted=source), outcome)
    return path


def taken(path: Path, device: str = CPU.device) -> list[Transfer]:
    return [t for t in transfers(studies.read([path])) if t.there.device == device]


def test_other_targets_and_sizes_count_where_both_were_measured(tmp_path: Path) -> None:
    """From the finals, with an interval; the other way nothing was tried, and of other sizes that is not listed."""
    path = measured(tmp_path / "db", (BEST, timed(81.0), "b"), finals={"": 100.0, OWN: 40.0, BEST: 80.0})
    (one,) = taken(path)
    assert (one.own.place, one.there.place) == ("NVIDIA H200 (numba-cuda), 512", "AMD EPYC (numba-cpu), 64")
    assert one.cost == pytest.approx(2.0)
    assert one.speedup is not None
    assert one.speedup.verdict == "SLOW"
    assert one.interval is not None
    assert one.interval[0] <= 2.0 <= one.interval[1] < 2.1
    assert taken(path, GPU.device) == []


def test_what_left_early_is_compared_by_the_rounds_it_has(tmp_path: Path) -> None:
    """The cost lies within its interval, whatever the others did later."""
    path = measured(tmp_path / "db", (BEST, timed(81.0), "b"), finals={"": 100.0})
    with Store.open(path) as store:
        late = replace(timed(50.0), times_us=(40.0,) * 10 + (60.0,) * 90)
        store.record(Row(CPU, OWN, "final", "s2"), late)
        store.record(Row(CPU, BEST, "final", "s2"), timed(80.0, 10))
    (one,) = taken(path)
    assert one.times_us == pytest.approx((80.0, 40.0), rel=0.01)
    assert one.interval is not None
    assert one.cost is not None
    assert one.interval[0] <= one.cost <= one.interval[1]


def test_kernels_are_the_same_whatever_the_directives(tmp_path: Path) -> None:
    """A CPU has no blocks: the best without its blocks was in the finals, and the best itself was not."""
    plain = "loop k: unroll 4"
    same = [(text, timed(81.0), "same") for text in (BEST, plain)]
    (one,) = taken(measured(tmp_path / "db", *same, finals={"": 100.0, OWN: 40.0, plain: 80.0}))
    assert one.directives == BEST
    assert one.cost == pytest.approx(2.0)
    assert one.speedup is not None


@pytest.mark.parametrize(
    ("there", "finals", "why"),
    [
        (Illegal("no loop 1.2"), {}, "illegal: no loop 1.2"),
        (timed(81.0), {BEST: WrongResult("C[0][0]")}, "wrong: C[0][0]"),
    ],
)
def test_what_cannot_be_run_is_listed_with_its_reason(
    tmp_path: Path, there: Outcome, finals: Mapping[str, Outcome], why: str
) -> None:
    """What the finals found to be wrong has no time of the screening either; it counts in no mean."""
    path = measured(tmp_path / "db", (BEST, there, "b"), finals={"": 100.0, OWN: 40.0})
    with Store.open(path) as store:
        for text, outcome in finals.items():
            store.record(Row(CPU, text, "final", "s2"), outcome)
    (one,) = taken(path)
    assert (one.cost, one.why, one.is_measured) == (None, why, True)
    assert mean([one]) is None
    (row,) = transfer_table.grid([one]).rows
    assert row[-1] == why
    (row,) = transfer_table.means([one]).rows
    assert row[3:] == ("0", "-", "-", "0", "1", "0")


def test_one_that_is_as_fast_stands_for_a_best_that_was_not_tried(tmp_path: Path) -> None:
    """A repeated sweep may call another of its ties the best."""
    path = measured(tmp_path / "db", ("loop k: unroll 2", timed(81.0), "b"),
                    finals={"": 100.0, OWN: 40.0, "loop k: unroll 2": 80.0})  # fmt: skip
    (gpu,) = [s for s in studies.read([path]) if s.device == GPU.device]
    (cpu,) = [s for s in studies.read([path]) if s.device == CPU.device]
    tied = replace(gpu, result=replace(gpu.result, ties=("loop j: unroll 7", "loop k: unroll 2")))
    (one,) = transfers([tied, cpu])
    assert (one.directives, one.cost) == ("loop k: unroll 2", pytest.approx(2.0))


def test_of_equal_sizes_what_was_not_tried_is_listed(tmp_path: Path) -> None:
    """As that; a sweep of other sizes on the same device is left alone where there is one of these."""
    with Store.open(tmp_path / "db") as store:
        fill(store)
        fill(store, replace(GPU, sizes=canonical_json({"n": 64, "alpha": 1.5})), sweep="s3")
        fill(store, OTHER, times={"": 100.0, OWN: 50.0}, finals={"": 100.0, OWN: 50.0}, sweep="s2")
    (one,) = taken(tmp_path / "db", OTHER.device)
    assert (one.own.sizes, one.cost, one.why, one.is_measured) == ("512", None, "not measured", False)


@pytest.fixture
def three(tmp_path: Path) -> list[Transfer]:
    """All ordered pairs of two GPUs, and those of either to a CPU, where one of them is refused."""
    other = "loop k: unroll 2"
    path = measured(tmp_path / "db", (BEST, timed(81.0), "b"), (other, Illegal("no"), "o"),
                    finals={"": 100.0, OWN: 40.0, BEST: 80.0})  # fmt: skip
    with Store.open(path) as store:
        for at, best in ((GPU, BEST), (OTHER, other)):
            finals = FINALS | {BEST: 30.0, other: 30.0} | {best: 24.0}
            fill(store, at, times=TIMES, finals=finals, sweep=f"of {at.device}")
    return transfers(studies.read([path]))


def test_the_table_has_every_pair(three: list[Transfer], tmp_path: Path) -> None:
    """Means first, then each; every number in CSV."""
    page = transfer_table.write(three, tmp_path)
    text = page.read_text()
    assert "| NVIDIA A100 (numba-cuda) | NVIDIA H200 (numba-cuda) | float32 | 1 | 1.25x | 1.25x | 0 | 0 | 0 |" in text
    with (tmp_path / "transfer.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    pairs = {(r["from_device"], r["to_device"]): (r["cost"], r["verdict"], r["measured"], r["why"]) for r in rows}
    assert pairs == {
        ("NVIDIA H200", "AMD EPYC"): ("2.0", "SLOW", "finals", ""),
        ("NVIDIA A100", "AMD EPYC"): ("", "", "", "illegal: no"),
        ("NVIDIA H200", "NVIDIA A100"): ("1.25", "SLOW", "finals", ""),
        ("NVIDIA A100", "NVIDIA H200"): ("1.25", "SLOW", "finals", ""),
    }
    assert {r["from_sizes"] for r in rows} == {"512"}
    assert {r["to_sizes"] for r in rows if r["to_device"] == "AMD EPYC"} == {"64"}


def test_the_figure_has_a_panel_for_each_place(three: list[Transfer]) -> None:
    """It names device, target and sizes; a cross is what cannot be run."""
    pytest.importorskip("matplotlib")
    figure = drawn(three)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [f"on {d}, float32" for d in
                      ("AMD EPYC (numba-cpu)", "NVIDIA A100 (numba-cuda)", "NVIDIA H200 (numba-cuda)")]  # fmt: skip
    cpu, a100, _ = figure.axes
    assert [t.get_text() for t in cpu.get_xticklabels()] == ["gemm\n64", "geometric\nmean"]
    assert [t.get_text() for t in a100.get_xticklabels()] == ["gemm\n512", "geometric\nmean"]
    assert [t.get_text() for t in cpu.texts] == ["2", "2"]
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == [
        "best of NVIDIA A100", "best of NVIDIA H200", "fails there"
    ]  # fmt: skip
