"""The figures of `looptune report`: what each shows, what leaves it out, and how it becomes a part of a page."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from looptune.report.figures import index, style
from looptune.report.figures.blocks import Blocks, Column, register_blocks
from looptune.report.figures.entries import bars, entries
from looptune.report.figures.families import Curve, factors, orders
from looptune.report.figures.roofline import rooflines, roofs, spread_labels
from looptune.report.figures.sensitivity import sensitivity
from looptune.report.site import folder, html
from looptune.report.site.html import Picture, inline_svg
from looptune.report.transfer_table import transfers
from looptune.runtime.timing import Summary
from looptune.tune.results import studies
from looptune.tune.results.result import Entry
from looptune.tune.results.studies import KernelStudy, comparable_groups
from looptune.tune.store.store import Row, Store
from tests.helpers.report_database import BEST, GPU, OTHER, TIMES, database, fill, one, result


def test_factors_are_of_versions_that_differ_in_one_directive(tmp_path: Path) -> None:
    """Each scheme is a curve from factor 1, the version without the directive; what differs in more is not in it."""
    found = factors(one(database(tmp_path / "db")))
    assert found is not None
    assert (found.place, found.rest) == ("loop k", ())
    assert {c.scheme: [(x, round(y, 6)) for x, y in c.points] for c in found.curves} == {
        "contiguous, remainder": [(1, 1.0), (2, 1.25), (4, 1.666667)],
        "split, remainder": [(1, 1.0), (2, 1.111111)],
        "split, guarded": [(1, 1.0), (4, 2.5)],
        "tile": [(1, 1.0), (2, 1.0), (4, 0.8)],
    }


def test_factors_need_three_values(tmp_path: Path) -> None:
    """Two are no curve."""
    with Store.open(tmp_path / "db") as store:
        fill(store, times={"": 100.0, "loop k: unroll 4": 60.0, "loop j: unroll 2": 60.0}, finals={})
    assert factors(one(tmp_path / "db")) is None


def test_lines_that_say_the_same_of_several_loops_are_one_directive(tmp_path: Path) -> None:
    """A space that unrolls three loops alike has a curve of the three."""
    each = {f"loop 1: unroll {u}\nloop 4: unroll {u}": 100.0 / u for u in (2, 4, 8)}
    with Store.open(tmp_path / "db") as store:
        fill(store, times={"": 100.0} | each, finals={})
    found = factors(one(tmp_path / "db"))
    assert found is not None
    assert found.place == "loop 1, 4"
    assert found.curves == (Curve("contiguous, remainder", ((1, 1.0), (2, 2.0), (4, 4.0), (8, 8.0))),)


def test_orders_are_compared_with_the_file_as_written(tmp_path: Path) -> None:
    """What was cut off has no number, what was refused is not there; an order with equal source is the file's."""
    with Store.open(tmp_path / "db") as store:
        fill(store)
        same = Row(GPU, "nest i: permute i, j, k", sweep="s1", emitted="source of ")
        store.record_duplicate(same, Row(GPU, "").key)
    found = orders(one(tmp_path / "db"))
    assert found is not None
    assert dict(found.orders) == {"i, j, k (as written)": 1.0, "k, i, j": 0.5, "j, i, k": 2.0, "k, j, i": None}


def test_sensitivity_is_the_best_with_each_value_over_the_best(tmp_path: Path) -> None:
    """All others free; no unrolling is a factor of 1; what matters most comes first."""
    found = sensitivity(one(database(tmp_path / "db")))
    assert found is not None
    curves = {name: {v: round(y, 4) for v, y in curve.items()} for name, curve in found.axes.items()}
    assert next(iter(curves)) == "tile(k)"
    assert curves["unroll(k)"] == {1: round(50 / 30, 4), 2: round(80 / 30, 4), 4: 1.0}
    assert curves["blocksize x"] == {16: round(110 / 30, 4), 32: 1.0}
    assert curves["tile(k)"] == {2: round(100 / 30, 4), 4: round(125 / 30, 4)}
    assert found.left_out == 0


def test_times_are_bars_over_the_default(tmp_path: Path) -> None:
    """Those that were timed, in their order; a sequential program that would leave the others no room is broken."""
    (panel,) = entries([one(database(tmp_path / "db"))])
    assert (panel.kernel, panel.about) == ("gemm", "512, float32")
    assert [(bar.name, bar.time_us) for bar in panel.bars] == [
        ("sequential", 100_000.0), ("default", 100.0), ("hand-written", 20.0), ("tuned", 25.0),
    ]  # fmt: skip
    assert [bar.ratio for bar in panel.bars] == [0.001, 1.0, 5.0, 4.0]
    assert [bar.broken for bar in panel.bars] == [True, False, False, False]
    assert all(bar.low < bar.ratio < bar.high for bar in panel.bars)
    assert panel.bars[0].drawn_ratio == pytest.approx(5**-0.5)


@pytest.mark.parametrize(("alone_us", "broken"), [(299.0, False), (301.0, True), (10.1, False), (6.6, True)])
def test_a_bar_is_broken_where_it_is_far_from_the_others(alone_us: float, broken: bool) -> None:
    """Three times slower than all of them, or faster; it is still the longest."""
    times = {"sequential": alone_us, "default": 100.0, "hand-written": 20.0, "tuned": 25.0}
    made = tuple(Entry(name, Summary(us, us, us, 31), None, "") for name, us in times.items())
    (panel,) = entries([KernelStudy(GPU, result(entries=made), ())])
    bar, *others = panel.bars
    assert bar.broken == broken
    assert bar.drawn_ratio < min(o.ratio for o in others) or bar.drawn_ratio > max(o.ratio for o in others)


def test_a_kernel_without_a_default_has_no_bars() -> None:
    """Nor has one of which only the default was timed."""
    default, _, tuned = result().entries
    for some in ((), (default,), (tuned,)):
        assert entries([KernelStudy(GPU, result(entries=some), ())]) == []


def test_a_panel_says_names_times_and_ratios(tmp_path: Path) -> None:
    """Each bar its name and its time below, its ratio at the end."""
    pytest.importorskip("matplotlib")
    (axes,) = bars(entries([one(database(tmp_path / "db"))])).axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["sequential\n100 ms", "default\n100 us", "hand-written\n20 us", "tuned\n25 us"]
    assert {text.get_text() for text in axes.texts} == {"512, float32", "0.001", "1", "5", "4"}


def test_a_transfer_costs_the_time_there_over_that_of_the_best_there(tmp_path: Path) -> None:
    """From the finals where both ran there, else from the screening; nothing where it was not measured."""
    with Store.open(tmp_path / "db") as store:
        fill(store)
        slower = TIMES | {BEST: 90.0}
        fill(store, OTHER, times=slower, finals={"": 100.0, "loop k: unroll 4, split, guarded": 40.0})
    found = studies.read([tmp_path / "db"])
    costs = {(t.own.device, t.there.device): (t.there.kernel, t.cost, t.speedup) for t in transfers(found)}
    assert costs[("NVIDIA H200", "NVIDIA A100")] == ("gemm", 90.0 / 40.0, None)
    assert costs[("NVIDIA A100", "NVIDIA H200")] == ("gemm", 40.0 / 30.0, None)
    other = replace(found[0], context=replace(found[0].context, source_hash="other"))
    assert transfers([other, found[1]]) == []


def test_the_roof_is_what_was_measured(tmp_path: Path) -> None:
    """Operations over bytes, operations over time, and the peaks of the type; none on a database without them."""
    (roof,) = roofs([one(database(tmp_path / "db", concluded=True))])
    assert (roof.copy, roof.fma) == (4000.0, 60_000.0)
    (point,) = roof.points
    assert point.intensity == 2 * 512**3 / (16 * 512**2)
    assert point.gflops["tuned"] == pytest.approx(2 * 512**3 / 25e3)
    assert set(point.gflops) == {"default", "hand-written", "tuned"}
    for known in (roof, replace(roof, fma=None)):
        (axes,) = rooflines([known]).axes
        assert ("FMA peak, float32" in str([t.get_text() for t in axes.texts])) == (known.fma is not None)
        assert axes.lines[0].get_ydata()[-1] == (known.fma or axes.get_xlim()[1] * roof.copy)
    assert roofs([one(database(tmp_path / "old"))]) == []


def test_devices_and_types_have_means_of_their_own(tmp_path: Path) -> None:
    """No mean is over kernels of two devices or of two types."""
    found = studies.read([database(tmp_path / "db", (GPU, OTHER, replace(GPU, dtype="float64")))])
    assert {name: len(same) for name, same in comparable_groups(found).items()} == {
        "float32, NVIDIA A100": 1, "float32, NVIDIA H200": 1, "float64, NVIDIA H200": 1,
    }  # fmt: skip
    assert list(comparable_groups(found[1:])) == ["float32", "float64"]


def test_panels_of_two_types_say_which(tmp_path: Path) -> None:
    """Of a kernel in float and in double, in each figure that has a panel of either."""
    pytest.importorskip("matplotlib")
    found = studies.read([database(tmp_path / "db", (GPU, replace(GPU, dtype="float64")))])
    drawn = {f.name: f.draw() for f in index.figures(found) if f.draw is not None}
    for name in ("factors", "orders", "sensitivity", "times"):
        titles = [axes.get_title(loc="left") for axes in drawn[name].axes if axes.get_title(loc="left")]
        assert titles == ["gemm float32", "gemm float64"], name


def test_labels_are_spread_in_their_order() -> None:
    """No two are nearer than they may be, whatever falls together, and what stands alone stays."""
    at = {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.62, "e": 0.1}
    placed = spread_labels(at, 0.1)
    ordered = sorted(placed.values())
    assert all(y - x >= 0.1 - 1e-6 for x, y in pairwise(ordered))
    assert sorted(at, key=lambda n: at[n]) == sorted(placed, key=lambda n: placed[n])
    assert placed["e"] == 0.1


def test_a_figure_without_data_is_named_with_the_reason(tmp_path: Path) -> None:
    """None is drawn empty."""
    with Store.open(tmp_path / "db") as store:
        fill(store, times={"": 100.0}, finals={})
    found = index.figures([one(tmp_path / "db")])
    assert {f.name for f in found if f.draw is not None} == {"speedups", "times"}
    assert {f.name for f in found} == {"speedups", "times", "factors", "orders", "sensitivity", "blocks", "roofline"}
    assert all((f.draw is None) == bool(f.missing) for f in found)


@pytest.mark.wide
def test_figures_of_searches_are_taken_as_they_are(tmp_path: Path) -> None:
    """What `looptune replay --output` drew into the folder is on the page."""
    (tmp_path / "nvidia-h200").mkdir()
    (tmp_path / "nvidia-h200" / "searches.svg").write_text('<svg width="72pt" height="36pt"><g id="x"/></svg>')
    (written,) = folder.write(studies.read([database(tmp_path / "db")]), tmp_path)
    assert '<g id="searches-x"/>' in written.page.read_text()
    assert not any("searches" in note for note in written.notes)


def test_an_svg_becomes_a_part_of_a_page() -> None:
    """Its names are its own, its black is the page's ink, and nothing in it runs or loads."""
    text = (
        '<?xml version="1.0"?><!DOCTYPE svg><svg height="36pt" viewBox="0 0 72 36" width="72pt"><metadata>x</metadata>'
        '<script>alert(1)</script><g id="a" style="fill: #222222"/><use href="#a" clip-path="url(#a)"/></svg>'
    )
    made = inline_svg(Picture("of x", 'a "title"', "", text))
    assert made.startswith("<svg")
    assert 'id="ofx-a"' in made
    assert 'href="#ofx-a"' in made
    assert "url(#ofx-a)" in made
    assert "currentColor" in made
    assert 'aria-label="a &quot;title&quot;"' in made
    assert "max-width: 96px" in made
    assert "script" not in made
    assert "metadata" not in made


@pytest.mark.parametrize(("low", "high"), [(1e-3, 1e6), (15.0, 45.0), (0.9, 1.1), (3.0, 900.0)])
def test_ticks_of_a_logarithmic_axis_are_numbers(tmp_path: Path, low: float, high: float) -> None:
    """No formula, two of them at least, and none over another."""
    drawn: list[Any] = []

    def draw() -> Any:
        figure, axes = style.panels(1)
        axes[0].set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
        drawn.append(figure)
        return figure

    _, svg = style.save(draw, tmp_path / "f")
    (axes,) = drawn[0].axes
    for axis, span in ((axes.xaxis, "x"), (axes.yaxis, "y")):
        labels = [t for t in axis.get_ticklabels(which="both") if t.get_text()]
        inside = [t for t in labels if low <= float(t.get_text().replace(",", "")) <= high]
        assert len(inside) >= 1 if high < 2 * low else len(inside) >= 2, span
    assert "mathdefault" not in svg.read_text()


def test_numbers_of_register_blocks_are_seen(tmp_path: Path) -> None:
    """White ones in dark cells stay white on the page, where white areas become transparent."""
    found = register_blocks([Blocks("gemm", "loop i", "loop j", {
        (4, Column("split", 4)): 1.0, (8, Column("split", 4)): 2.5, (4, Column("split", 8)): 9.0,
        (8, Column("split", 8)): 1.2,
    })])  # fmt: skip
    inks = [text.get_color() for text in found.axes[0].texts if text.get_text() in ("1.00", "2.50", "9.00", "1.20")]
    assert inks == ["#fdfdfd", "#15181c", style.INK, "#fdfdfd"]
    (path,) = style.save(lambda: found, tmp_path / "blocks", ("svg",))
    page = inline_svg(Picture("blocks", "Register blocks", "", path.read_text()))
    assert "#fdfdfd" in page
    assert "#15181c" in page


def test_small_pictures_stand_beside_each_other(tmp_path: Path) -> None:
    """A picture that was drawn wide takes the whole row; the parts of a page have the right number."""
    svg = '<svg width="{0}pt" height="10pt" viewBox="0 0 {0} 10"></svg>'
    pictures = [Picture(str(width), "t", "", svg.format(width)) for width in (300, 900)]
    made = html.page([one(database(tmp_path / "db"))], pictures, ())
    assert '<figure id="figure-300"><h3>' in made
    assert '<figure id="figure-900" class="whole">' in made
    assert "<strong>1</strong> kernel<" in made
