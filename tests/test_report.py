"""`looptune report`: databases as studies, the numbers of every table and figure, and the files that are written."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from stored import BEST, FINALS, GPU, OTHER, SOURCES, TIMES, database, fill, result, timed
from test_cli import GEMM, SMALL, looptune

from looptune import studies
from looptune.errors import StoreError, UsageError
from looptune.report import best, kept, site
from looptune.report.figures import every, style
from looptune.report.figures.draw import spread_labels
from looptune.report.figures.families import Curve, factors, orders
from looptune.report.figures.roofline import roofs
from looptune.report.figures.sensitivity import sensitivity
from looptune.report.figures.transfer import transfers
from looptune.report.grid import Column, Grid
from looptune.report.inline import Picture, inlined
from looptune.report.study import Study, alike, names_of
from looptune.tune import upkeep
from looptune.tune.concluded import conclude, conclusions
from looptune.tune.store import Row, Store

HOSTILE = 'a_b & 50% #1 {x} $y$ ~^ \\input{f} <b>|*`\n"q" \'é ⇒ --'


def one(path: Path) -> Study:
    (found,) = studies.read([path])
    return found


# -- what is kept ---------------------------------------------------------------------------------------------------


def test_a_result_survives_the_database() -> None:
    """What is recorded is restored whole, through JSON, but for the times of the versions, which are in their rows."""
    for made in (result(), result(ceiling=None, over_hand=None, entries=())):
        held = json.loads(json.dumps(kept.record(replace(made, times_us=(1.0, 2.0)), SOURCES)))
        assert kept.restored(held) == (made, SOURCES)


def test_a_real_sweep_keeps_what_it_came_to(tmp_path: Path) -> None:
    """Sweeping a file on the CPU leaves a result with its sources; a run without a sweep leaves it as it is."""
    shutil.copy(GEMM, tmp_path / "gemm.c")
    (tmp_path / "s.pragmas").write_text("loop k: unroll {2, 4}\n")
    place = ("--db", "db", "--reports", "rep")
    swept = looptune("run", "gemm.c", *SMALL, "--sweep", "--space", "s.pragmas", *place, cwd=tmp_path)
    assert swept.code == 0, swept.err
    assert "looptune report --db db --reports rep" in swept.out
    with Store.read(tmp_path / "db") as store:
        before = conclusions(store)
    study = one(tmp_path / "db")
    assert study.sources is not None
    assert study.sources.original.startswith("#pragma hmpp gemm codelet")
    assert study.sources.original.endswith("}\n")
    assert "void gemm(int ni" in study.sources.transformed
    assert "def gemm" in study.sources.emitted
    assert (study.kernel, study.result.sizes, study.result.status) == ("gemm", {"NI": 24, "NJ": 20, "NK": 17}, "proved")
    assert study.result.entry("tuned") is not None
    assert looptune("run", "gemm.c", *SMALL, *place, cwd=tmp_path).code == 0
    with Store.read(tmp_path / "db") as store:
        assert conclusions(store) == before


def test_merging_takes_the_newer_conclusion(tmp_path: Path) -> None:
    """Either way round, and of contexts that only one database has."""
    for name, kernel, finished in (("a", "old", 1.0), ("b", "new", 2.0)):
        with Store.open(tmp_path / name) as store:
            fill(store)
            conclude(store, GPU, "s", kept.record(result(kernel=kernel), SOURCES))
            store.connection.execute("UPDATE results SET finished = ?", (finished,))
            conclude(store, replace(GPU, kernel=name), "s", kept.record(result(), SOURCES))
    for into, other in (("a", "b"), ("b", "a")):
        with Store.open(tmp_path / f"{into}{other}") as store, Store.read(tmp_path / into) as first:
            with Store.read(tmp_path / other) as second:
                upkeep.merge(store, first)
                upkeep.merge(store, second)
            found = conclusions(store)
        assert found[GPU.hash].record["kernel"] == "new"
        assert len(found) == 3


def test_a_conclusion_goes_with_the_last_row_of_its_context(tmp_path: Path) -> None:
    """Failures may be pruned without it; a kernel may not."""
    with Store.change(database(tmp_path / "db", (GPU, OTHER), concluded=True)) as store:
        upkeep.prune(store, upkeep.Condition(classes=("wrong",)))
        assert set(conclusions(store)) == {GPU.hash, OTHER.hash}
        upkeep.prune(store, upkeep.Condition(device="NVIDIA A100"))
        assert set(conclusions(store)) == {GPU.hash}


def test_json_lines_carry_the_conclusion(tmp_path: Path) -> None:
    """After the rows, one object with the role `result`; CSV has the rows alone."""
    path = database(tmp_path / "db", concluded=True)
    lines = looptune("db", "export", "--db", path, "--format", "jsonl", cwd=tmp_path).out.splitlines()
    last = json.loads(lines[-1])
    assert (last["role"], last["context"], last["record"]["directives"]) == ("result", GPU.hash, BEST)
    rows = looptune("db", "export", "--db", path, cwd=tmp_path).out
    assert "result" not in {r["role"] for r in csv.DictReader(rows.splitlines())}


# -- studies --------------------------------------------------------------------------------------------------------


def test_an_old_database_is_read_from_its_rows(tmp_path: Path) -> None:
    """Without conclusions the finals decide; the file's name is the command's; proof and sources are not known."""
    study = one(database(tmp_path / "db"))
    r = study.result
    assert (study.kernel, study.sizes, study.kind, r.directives) == ("gemm", "512", "float32", BEST)
    assert {e.name: e.times.median_us for e in r.entries if e.times is not None} == {
        "sequential": 100_000.0, "default": 100.0, "hand-written": 20.0, "tuned": 25.0,
    }  # fmt: skip
    tuned = r.entry("tuned")
    assert tuned is not None
    assert tuned.speedup is not None
    assert tuned.speedup.ratio == pytest.approx(4.0)
    assert (tuned.speedup.verdict, r.over_hand and r.over_hand.verdict) == ("FAST", "SLOW")
    assert (best.proof(r), study.sources) == ("not recorded", None)
    assert r.versions == {"timed": 11, "cut_off": 1, "illegal": 1, "wrong": 1, "duplicate": 1, "space": 15}
    assert study.screened()["loop k: tile k:2"] == 100.0


def test_a_sweep_that_was_stopped_has_screening_times(tmp_path: Path) -> None:
    """Without finals the fastest version counts, with a ratio and no verdict."""
    with Store.open(tmp_path / "db") as store:
        fill(store, finals={})
    study = one(tmp_path / "db")
    assert study.result.directives == BEST
    (row,) = best.best([study]).rows
    assert row[4] == "30 us"
    assert row[6] == "3.33x"


def test_a_conclusion_is_preferred_to_the_rows(tmp_path: Path) -> None:
    """The sweep's own words are taken; the counts are of all rows there are."""
    study = one(database(tmp_path / "db", concluded=True))
    assert (study.result.proof, study.sources) == (result().proof, SOURCES)
    assert (study.result.versions["timed"], study.result.versions["space"]) == (11, 40)


def test_the_newest_finals_count(tmp_path: Path) -> None:
    """Times of two finals are not mixed."""
    with Store.open(tmp_path / "db") as store:
        fill(store)
        for text, us in FINALS.items():
            store.record(Row(GPU, text, "final", "s2"), timed(us * 2))
    assert one(tmp_path / "db").finals == {"": 200.0, BEST: 50.0, "hand-written": 40.0}


def test_of_contexts_that_replace_each_other_the_newest_is_shown(tmp_path: Path) -> None:
    """Another lowering is the same study measured anew; another type is another study."""
    with Store.open(tmp_path / "db") as store:
        fill(store)
        fill(store, replace(GPU, lowering="8"), times={"": 70.0}, finals={})
        fill(store, replace(GPU, dtype="float64"))
    found = studies.read([tmp_path / "db"])
    assert [(s.context.lowering, s.result.dtype) for s in found] == [("8", "float32"), ("7", "float64")]
    assert names_of(found) == ["gemm float32", "gemm float64"]


def test_databases_of_two_devices_are_read_together(tmp_path: Path) -> None:
    """Each device has its studies, whether the files were merged or not."""
    database(tmp_path / "a")
    database(tmp_path / "b", (OTHER,))
    apart = studies.read([tmp_path / "a", tmp_path / "b"])
    with Store.change(tmp_path / "a") as store, Store.read(tmp_path / "b") as other:
        upkeep.merge(store, other)
    together = studies.read([tmp_path / "a"])
    assert [s.device for s in apart] == [s.device for s in together] == ["NVIDIA A100", "NVIDIA H200"]
    assert [s.result for s in apart] == [s.result for s in together]


def test_what_cannot_be_reported_is_said(tmp_path: Path) -> None:
    """An empty database, one that is not there, an unknown kernel, a record that is none: one line, exit code 2."""
    Store.open(tmp_path / "empty").close()
    with pytest.raises(UsageError, match=r"nothing was measured in .*: `looptune run FILE --sweep` measures"):
        studies.read([tmp_path / "empty"])
    with pytest.raises(StoreError, match="no database"):
        studies.read([tmp_path / "absent"])
    path = database(tmp_path / "db", concluded=True)
    with pytest.raises(UsageError, match=r"no kernel syrk in .*: there are gemm"):
        studies.read([path], ["syrk"])
    assert len(studies.read([path], ["gemm_"])) == 1
    with closing(sqlite3.connect(path)) as held, held:
        held.execute("""UPDATE results SET record = '{"kernel": 3}'""")
    ran = looptune("report", "--db", path, cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: the result of gemm_ cannot be read")
    assert "Traceback" not in ran.err


# -- tables ---------------------------------------------------------------------------------------------------------


def test_the_best_table_has_the_numbers(tmp_path: Path) -> None:
    """Kernel, size, type, directives, time with quartiles, both speed-ups with their verdicts, the proof."""
    (row,) = best.best([one(database(tmp_path / "db", concluded=True))]).rows
    assert row == (
        "gemm", "512", "float32", BEST, "25 us", "25 us .. 25 us", "4x FAST", "0.8x SLOW",
        "proved, reordering +:C (8:7)",
    )  # fmt: skip
    (row,) = best.times([one(tmp_path / "db")]).rows
    assert row[3:] == ("-", "100 us", "20 us", "25 us", "15", "11", "40")


def test_the_json_has_them_as_numbers(tmp_path: Path) -> None:
    """Microseconds and ratios with their intervals, and the directives line by line."""
    best.write([one(database(tmp_path / "db", concluded=True))], tmp_path)
    (record,) = json.loads((tmp_path / "table-best.json").read_text())
    assert record["tuned_us"] == {"median": 25.0, "q1": 24.975, "q3": pytest.approx(25.025), "n": 31}
    assert record["over_default"] == {"ratio": 4.0, "low": 3.96, "high": 4.04, "verdict": "FAST"}
    assert (record["directives"], record["status"], record["sizes"]) == (BEST, "proved", {"N": 512})


def test_several_devices_have_a_column(tmp_path: Path) -> None:
    """Of one device there is none, for its name stands above the table."""
    found = studies.read([database(tmp_path / "db", (GPU, OTHER))])
    assert [c.key for c in best.best(found).columns][3] == "device"
    assert [r[3] for r in best.best(found).rows] == ["NVIDIA A100", "NVIDIA H200"]
    assert "device" not in [c.key for c in best.best(found[:1]).columns]


def test_options_that_are_not_usual_are_part_of_the_type(tmp_path: Path) -> None:
    """A sweep with a warm cache is not taken for one without."""
    with Store.open(tmp_path / "db") as store:
        fill(store)
        fill(store, replace(GPU, options='{"reassociate": false, "seed": 0, "warm": true}'))
    kinds = {s.kind for s in studies.read([tmp_path / "db"])}
    assert kinds == {"float32", "float32, strict float, warm L2"}


COLUMNS = (Column("a", "A & B"), Column("b", "b_c", "number"), Column("c", "c", "code"), Column("d", "d", "prose"))
HARD = Grid("hard", HOSTILE, COLUMNS, ((HOSTILE, "1", HOSTILE, HOSTILE), ("", "-", "", "")))


def test_latex_is_escaped() -> None:
    """Every special character is a command or escaped, and nothing is left that is not ASCII."""
    text = HARD.latex()
    assert text.isascii()
    assert r"\textbackslash{}input\{f\}" in text
    assert r"a\_b \& 50\% \#1 \{x\} \$y\$ \textasciitilde{}\textasciicircum{}" in text
    assert text.count("&") - text.count(r"\&") == 3 * 3
    assert "{-}{-}" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(tmp_path: Path) -> None:
    """With array and booktabs alone, of hostile texts as of a real table."""
    (tmp_path / "hard.tex").write_text(HARD.latex())
    best.write([one(database(tmp_path / "db"))], tmp_path)
    inputs = "".join(rf"\input{{{name}}}" for name in ("hard", "table-best", "table-times"))
    (tmp_path / "all.tex").write_text(
        rf"\documentclass{{article}}\usepackage{{array,booktabs}}\begin{{document}}{inputs}\end{{document}}"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]


def test_markdown_and_csv_are_escaped() -> None:
    """In Markdown no cell ends early and no HTML passes; CSV gives the very texts back."""
    lines = HARD.markdown().splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert {line.count("|") for line in rows} == {len(COLUMNS) + 1}
    assert "<b>" not in HARD.markdown().replace("<br>", "")
    assert list(csv.reader(HARD.csv().splitlines(keepends=True)))[1] == [HOSTILE, "1", HOSTILE, HOSTILE]


# -- figures --------------------------------------------------------------------------------------------------------


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


def test_a_transfer_costs_the_time_there_over_that_of_the_best_there(tmp_path: Path) -> None:
    """From the finals where both ran there, else from the screening; nothing where it was not measured."""
    with Store.open(tmp_path / "db") as store:
        fill(store)
        slower = TIMES | {BEST: 90.0}
        fill(store, OTHER, times=slower, finals={"": 100.0, "loop k: unroll 4, split, guarded": 40.0})
    found = studies.read([tmp_path / "db"])
    costs = {(t.source, t.target): dict(t.cost) for t in transfers(found)}
    assert costs[("NVIDIA H200", "NVIDIA A100")] == {"gemm": 90.0 / 40.0}
    assert costs[("NVIDIA A100", "NVIDIA H200")] == {"gemm": 40.0 / 30.0}
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
    assert roofs([one(database(tmp_path / "old"))]) == []


def test_devices_and_types_have_means_of_their_own(tmp_path: Path) -> None:
    """No mean is over kernels of two devices or of two types."""
    found = studies.read([database(tmp_path / "db", (GPU, OTHER, replace(GPU, dtype="float64")))])
    assert {name: len(same) for name, same in alike(found).items()} == {
        "float32, NVIDIA A100": 1, "float32, NVIDIA H200": 1, "float64, NVIDIA H200": 1,
    }  # fmt: skip
    assert list(alike(found[1:])) == ["float32", "float64"]


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
    found = every.figures([one(tmp_path / "db")])
    assert {f.name for f in found if f.draw is not None} == {"speedups"}
    assert {f.name for f in found} == {"speedups", "factors", "orders", "sensitivity", "roofline"}
    assert all((f.draw is None) == bool(f.missing) for f in found)


# -- files ----------------------------------------------------------------------------------------------------------


def test_a_folder_for_each_device_and_one_across(tmp_path: Path) -> None:
    """Tables, figures and a page in each; the one of the other's best is across only."""
    pytest.importorskip("matplotlib")
    written = site.write(studies.read([database(tmp_path / "db", (GPU, OTHER), concluded=True)]), tmp_path / "r")
    assert [w.page.parent.name for w in written] == ["nvidia-a100", "nvidia-h200", "across"]
    for w in written:
        tables = {p.name for p in w.page.parent.glob("table-*")}
        assert tables == {f"table-{t}.{s}" for t in ("best", "times") for s in ("md", "csv", "tex")} | {
            "table-best.json"
        }
        drawn = {p.name.partition(".")[0] for p in (w.page.parent / "figures").iterdir()}
        own = {"speedups", "roofline", "factors", "orders", "sensitivity"}
        assert drawn == ({"speedups", "transfer"} if w.page.parent.name == "across" else own)


def test_a_page_needs_no_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it there is no figure, and one line says so."""
    monkeypatch.setattr(style, "available", lambda: False)
    (written,) = site.write(studies.read([database(tmp_path / "db")]), tmp_path)
    assert written.notes == ("no figures: matplotlib is not installed; install it with: pip install 'looptune[plot]'",)
    assert not (tmp_path / "nvidia-h200" / "figures").exists()
    assert "<svg" not in written.page.read_text()


def test_figures_of_searches_are_taken_as_they_are(tmp_path: Path) -> None:
    """What `looptune simulate --output` drew into the folder is on the page."""
    (tmp_path / "nvidia-h200").mkdir()
    (tmp_path / "nvidia-h200" / "searches.svg").write_text('<svg width="72pt" height="36pt"><g id="x"/></svg>')
    (written,) = site.write(studies.read([database(tmp_path / "db")]), tmp_path)
    assert '<g id="searches-x"/>' in written.page.read_text()
    assert not any("searches" in note for note in written.notes)


def test_the_command(tmp_path: Path) -> None:
    """Several databases, a folder, a kernel; it names each page, and what is not on it."""
    database(tmp_path / "a", concluded=True)
    database(tmp_path / "b", (OTHER,))
    ran = looptune("report", "--db", "a", "--db", "b", "--reports", "r", "--kernel", "gemm", cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    pages = [line for line in ran.out.splitlines() if line.startswith("report: ")]
    assert pages == [f"report: {Path('r') / name / 'index.html'}" for name in ("nvidia-a100", "nvidia-h200", "across")]
    assert "no figure of roofline" in ran.out
    (tmp_path / "file").write_text("")
    ran = looptune("report", "--db", "a", "--reports", "file", cwd=tmp_path)
    assert ran.code == 2
    assert "cannot write reports to file" in ran.err


def test_an_svg_becomes_a_part_of_a_page() -> None:
    """Its names are its own, its black is the page's ink, and nothing in it runs or loads."""
    text = (
        '<?xml version="1.0"?><!DOCTYPE svg><svg height="36pt" viewBox="0 0 72 36" width="72pt"><metadata>x</metadata>'
        '<script>alert(1)</script><g id="a" style="fill: #222222"/><use href="#a" clip-path="url(#a)"/></svg>'
    )
    made = inlined(Picture("of x", 'a "title"', "", text))
    assert made.startswith("<svg")
    assert 'id="ofx-a"' in made
    assert 'href="#ofx-a"' in made
    assert "url(#ofx-a)" in made
    assert "currentColor" in made
    assert 'aria-label="a &quot;title&quot;"' in made
    assert "max-width: 96px" in made
    assert "script" not in made
    assert "metadata" not in made
