"""`looptune report`: databases as studies, the numbers of every table, and the files that are written."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.backends.base import Resources
from looptune.core.errors import StoreError, UsageError
from looptune.report import best_table
from looptune.report import result_table as tables
from looptune.report.figures import style
from looptune.report.site import folder
from looptune.report.table import Column, Table
from looptune.tune.results import studies
from looptune.tune.results.result import from_record, to_record
from looptune.tune.results.studies import names_of
from looptune.tune.session import conclude as conclusion
from looptune.tune.store import maintenance
from looptune.tune.store.store import Row, Store
from tests.helpers.command_line import GEMM, SMALL, looptune
from tests.helpers.report_database import BEST, FINALS, GPU, OTHER, SOURCES, database, fill, one, result, timed

HOSTILE = 'a_b & 50% #1 {x} $y$ ~^ \\input{f} <b>|*`\n"q" \'é ⇒ --'


# -- what is kept ---------------------------------------------------------------------------------------------------


def test_a_result_survives_the_database() -> None:
    """What is recorded is restored whole, through JSON, but for the times of the versions, which are in their rows."""
    for made in (result(), result(ceiling=None, over_hand=None, entries=())):
        held = json.loads(json.dumps(to_record(replace(made, times_us=(1.0, 2.0)), SOURCES)))
        assert from_record(held) == (made, SOURCES)


@pytest.mark.long
def test_a_real_sweep_keeps_what_it_came_to(tmp_path: Path) -> None:
    """Sweeping a file on the CPU leaves a result with its sources; a run without a sweep leaves it as it is."""
    shutil.copy(GEMM, tmp_path / "gemm.c")
    (tmp_path / "s.pragmas").write_text("loop k: unroll {2, 4}\n")
    place = ("--db", "db", "--reports", "rep")
    swept = looptune(
        "run", "gemm.c", *SMALL, "--sweep", "--finals-timeout", "0.3", "--space", "s.pragmas", *place, cwd=tmp_path
    )
    assert swept.code == 0, swept.err
    assert "looptune report --db db --reports rep" in swept.out
    with Store.read(tmp_path / "db") as store:
        before = store.conclusions()
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
        assert store.conclusions() == before


def test_merging_takes_the_newer_conclusion(tmp_path: Path) -> None:
    """Either way round, and of contexts that only one database has."""
    for name, kernel, finished in (("a", "old", 1.0), ("b", "new", 2.0)):
        with Store.open(tmp_path / name) as store:
            fill(store)
            store.save_conclusion(GPU, "s", to_record(result(kernel=kernel), SOURCES))
            store.connection.execute("UPDATE results SET finished = ?", (finished,))
            store.save_conclusion(replace(GPU, kernel=name), "s", to_record(result(), SOURCES))
    for into, other in (("a", "b"), ("b", "a")):
        with Store.open(tmp_path / f"{into}{other}") as store, Store.read(tmp_path / into) as first:
            with Store.read(tmp_path / other) as second:
                maintenance.merge(store, first)
                maintenance.merge(store, second)
            found = store.conclusions()
        assert found[GPU.hash].record["kernel"] == "new"
        assert len(found) == 3


def test_a_conclusion_goes_with_the_last_row_of_its_context(tmp_path: Path) -> None:
    """Failures may be pruned without it; a kernel may not."""
    with Store.change(database(tmp_path / "db", (GPU, OTHER), concluded=True)) as store:
        maintenance.prune(store, maintenance.PruneFilter(classes=("wrong",)))
        assert set(store.conclusions()) == {GPU.hash, OTHER.hash}
        maintenance.prune(store, maintenance.PruneFilter(device="NVIDIA A100"))
        assert set(store.conclusions()) == {GPU.hash}


def test_without_what_was_screened_tables_and_builds_are_the_same(tmp_path: Path) -> None:
    """What finals compared stays, on this device or another, and the counts are the sweep's; where no sweep has a
    result, everything stays."""
    path, counts = tmp_path / "db", {"timed": 11, "cut_off": 1, "illegal": 1, "wrong": 1, "duplicate": 1, "space": 40}
    elsewhere = {"": 100.0, "nest i: permute j, i, k": 45.0}
    with Store.open(path) as store:
        fill(store)
        store.save_conclusion(GPU, "s1", to_record(result(versions=counts), SOURCES))
        fill(store, OTHER, finals=elsewhere, sweep="s2")
        store.record(Row(GPU, "codelet: grid blocksize 16x16", "ablation", "s1"), timed(31.0))
    before = studies.read([path])
    with Store.change(path) as store:
        there = len(list(store.rows(device=OTHER.device)))
        removed = maintenance.prune(store, maintenance.PruneFilter(screened=True))
        left = {row.directives for row in store.rows(device=GPU.device) if row.role in ("version", "default")}
        assert len(list(store.rows(device=OTHER.device))) == there
    assert left == {*FINALS, *elsewhere} - {"hand-written abc"}
    assert removed == {("gemm_", "timed"): 9, ("gemm_", "cut_off"): 1, ("gemm_", "illegal"): 1, ("gemm_", "wrong"): 1,
                       ("gemm_", "duplicate"): 1}  # fmt: skip
    after = studies.read([path])
    assert best_table.best(after) == best_table.best(before)
    assert best_table.times(after) == best_table.times(before)


def test_json_lines_carry_the_conclusion(tmp_path: Path) -> None:
    """After the rows, one object with the role `result`; CSV has the rows alone."""
    path = database(tmp_path / "db", concluded=True)
    lines = looptune("db", "dump", "--db", path, "--format", "jsonl", cwd=tmp_path).out.splitlines()
    last = json.loads(lines[-1])
    assert (last["role"], last["context"], last["record"]["directives"]) == ("result", GPU.hash, BEST)
    rows = looptune("db", "dump", "--db", path, cwd=tmp_path).out
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
    assert (best_table.proof(r), study.sources) == ("not recorded", None)
    assert r.versions == {"timed": 11, "cut_off": 1, "illegal": 1, "wrong": 1, "duplicate": 1, "space": 15}
    assert study.screened()["loop k: tile k:2"] == 100.0


def test_a_sweep_that_was_stopped_has_screening_times(tmp_path: Path) -> None:
    """Without finals the fastest version counts, with a ratio and no verdict."""
    with Store.open(tmp_path / "db") as store:
        fill(store, finals={})
    study = one(tmp_path / "db")
    assert study.result.directives == BEST
    (row,) = best_table.best([study]).rows
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
        maintenance.merge(store, other)
    together = studies.read([tmp_path / "a"])
    assert [s.device for s in apart] == [s.device for s in together] == ["NVIDIA A100", "NVIDIA H200"]
    assert [s.result for s in apart] == [s.result for s in together]


def test_what_cannot_be_reported_is_said(tmp_path: Path) -> None:
    """An empty database, one that is not there, an unknown kernel, a record that is none: one line, exit code 2."""
    Store.open(tmp_path / "empty").close()
    with pytest.raises(UsageError, match=r"nothing was measured in .*: measure with `looptune run FILE --sweep`"):
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
    (row,) = best_table.best([one(database(tmp_path / "db", concluded=True))]).rows
    assert row == (
        "gemm", "512", "float32", BEST, "25 us", "25 us .. 25 us", "4x FAST", "0.8x SLOW",
        "proved, reordering +:C (8:7)",
    )  # fmt: skip
    (row,) = best_table.times([one(tmp_path / "db")]).rows
    assert row[3:] == ("-", "100 us", "20 us", "25 us", "15", "11", "40")


def test_the_json_has_them_as_numbers(tmp_path: Path) -> None:
    """Microseconds and ratios with their intervals, and the directives line by line."""
    best_table.write([one(database(tmp_path / "db", concluded=True))], tmp_path)
    (record,) = json.loads((tmp_path / "table-best.json").read_text())
    assert record["tuned_us"] == {"median": 25.0, "q1": 24.975, "q3": pytest.approx(25.025), "n": 31}
    assert record["over_default"] == {"ratio": 4.0, "low": 3.96, "high": 4.04, "verdict": "FAST"}
    assert (record["directives"], record["status"], record["sizes"]) == (BEST, "proved", {"N": 512})


def test_several_devices_have_a_column(tmp_path: Path) -> None:
    """Of one device there is none, for its name stands above the table."""
    found = studies.read([database(tmp_path / "db", (GPU, OTHER))])
    assert [c.key for c in best_table.best(found).columns][3] == "device"
    assert [r[3] for r in best_table.best(found).rows] == ["NVIDIA A100", "NVIDIA H200"]
    assert "device" not in [c.key for c in best_table.best(found[:1]).columns]


def test_options_that_are_not_usual_are_part_of_the_type(tmp_path: Path) -> None:
    """A sweep with a warm cache is not taken for one without."""
    with Store.open(tmp_path / "db") as store:
        fill(store)
        fill(store, replace(GPU, options='{"reassociate": false, "seed": 0, "warm": true}'))
    kinds = {s.kind for s in studies.read([tmp_path / "db"])}
    assert kinds == {"float32", "float32, strict float, warm L2"}


COLUMNS = (Column("a", "A & B"), Column("b", "b_c", "number"), Column("c", "c", "code"), Column("d", "d", "prose"))
HARD = Table("hard", HOSTILE, COLUMNS, ((HOSTILE, "1", HOSTILE, HOSTILE), ("", "-", "", "")))


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
    best_table.write([one(database(tmp_path / "db"))], tmp_path)
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


# -- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.wide
def test_a_folder_for_each_device_and_one_across(tmp_path: Path) -> None:
    """Tables, figures and a page in each; the one of the other's best is across only."""
    pytest.importorskip("matplotlib")
    written = folder.write(studies.read([database(tmp_path / "db", (GPU, OTHER), concluded=True)]), tmp_path / "r")
    assert [w.page.parent.name for w in written] == ["nvidia-a100", "nvidia-h200", "across"]
    for w in written:
        tables = {p.name for p in w.page.parent.glob("table-*")}
        assert tables == {f"table-{t}.{s}" for t in ("best", "times") for s in ("md", "csv", "tex")} | {
            "table-best.json"
        }
        drawn = {p.name.partition(".")[0] for p in (w.page.parent / "figures").iterdir()}
        own = {"speedups", "times", "roofline", "factors", "orders", "sensitivity"}
        assert drawn == ({"speedups", "transfer"} if w.page.parent.name == "across" else own)
        assert {p.name for p in w.page.parent.glob("transfer.*")} == (
            {"transfer.md", "transfer.csv"} if w.page.parent.name == "across" else set()
        )


def test_a_page_needs_no_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it there is no figure, and one line says so."""
    monkeypatch.setattr(style, "available", lambda: False)
    (written,) = folder.write(studies.read([database(tmp_path / "db")]), tmp_path)
    assert written.notes == ("no figures: matplotlib is not installed; install it with: pip install 'looptune[plot]'",)
    assert not (tmp_path / "nvidia-h200" / "figures").exists()
    assert "<svg" not in written.page.read_text()


@pytest.mark.wide
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


def test_the_winners_kernels_are_kept_and_shown() -> None:
    """Registers, shared memory and occupancy of each: in the database's record, in JSON, on the page. What limits a
    multiprocessor of sm_90 (64 warps, 65536 registers) is said; of an architecture that nobody knows nothing is."""
    used = (Resources("f_0", 96, 0, 1024, 128), Resources("f_1", 32, 8, 0, 1024))
    held = conclusion.occupancy_of(used, "sm_90")
    assert [(h.warps, h.most, h.by) for h in held] == [(20, 64, "registers"), (64, 64, "threads")]
    assert [h.warps for h in conclusion.occupancy_of(used, "sm_999")] == [None, None]
    made = result(occupancy=held, seconds={})
    back, _ = from_record(to_record(made, SOURCES))
    assert back.occupancy == held
    assert made.record()["kernels"][0]["registers"] == 96
    shown = "| f_0 | 128 | 96 | 1,024 B | 0 B | 31%, 20 of 64 warps, limited by registers |"
    assert shown in tables.markdown(made)
    assert "| 100%, 64 of 64 warps, limited by threads |" in tables.markdown(made)
    assert "limited by" not in tables.markdown(result(occupancy=conclusion.occupancy_of(used, "sm_999"), seconds={}))


def test_a_title_has_the_sizes_there_are() -> None:
    """A file whose sizes are constants has none, and no space before the comma."""
    with_sizes = result()
    assert tables.title(replace(with_sizes, sizes={"n": 8, "m": 9})).startswith(
        f"{with_sizes.kernel} {with_sizes.dtype} n=8 m=9, "
    )
    assert tables.title(replace(with_sizes, sizes={})).startswith(f"{with_sizes.kernel} {with_sizes.dtype}, ")
