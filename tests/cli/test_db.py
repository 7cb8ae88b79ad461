"""`looptune db failures` and `looptune db`: what they say of a database, and what they change."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.core.errors import StoreError, UsageError
from looptune.report import failure_table
from looptune.runtime.outcome import Crashed, Illegal, NotBuilt, Outcome, TimedOut, WrongResult
from looptune.tune.formats.csv import COLUMNS
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.session.budget import Budget
from looptune.tune.session.prepare import TuningRequest, prepare, single_version_command
from looptune.tune.space.space import parse
from looptune.tune.store import maintenance
from looptune.tune.store.connection import MIGRATIONS
from looptune.tune.store.maintenance import PruneFilter
from looptune.tune.store.store import Row, Store
from looptune.tune.strategies.exhaustive import Exhaustive
from tests.helpers.command_line import Ran, looptune
from tests.helpers.local_sweep import sweep
from tests.helpers.store_rows import CONTEXT, row, runner, timed

SYRK = replace(CONTEXT, kernel="syrk")
REFUSED = "unroll {}, jam is illegal: iteration (i=0, j={}) must run before (i=1, j=0) when n=3"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """One sweep of GEMM with failures of every kind, many alike, and one good version of SYRK."""
    path = tmp_path / "db"
    with Store.open(path) as store:
        store.register_command("s1", "looptune run 'my gemm.c' -D NI=24 --target numba-cpu")
        for n in range(2, 40):
            store.record(row(f"loop i: unroll {n}, jam"), Illegal(REFUSED.format(n, 2 * n)))
        store.record(row("loop j: unroll 2"), WrongResult("C[3][0]: got nan, expected 2 (1 of 9 elements)"))
        store.record(row("loop j: unroll 3"), WrongResult("C[0][7]: got 1.5, expected 2 (9 of 9 elements)"))
        store.record(row("loop k: unroll 2"), TimedOut(60.0))
        store.record(row("loop k: unroll 3\nnest i: permute k, i, j"), Crashed("SIGSEGV\nFatal Python error\n in f"))
        store.record(row("loop k: unroll 4"), NotBuilt("ptxas said no"))
        store.record(row("", role="default"), timed(4.0))
        store.record_duplicate(row("loop k: unroll 1"), row("").key)
        store.record(row("loop k: unroll 5"), timed(2.0))
        store.record(row("loop k: unroll 5", role="final"), timed(1.0))
        store.record(replace(row("", sweep="s2"), context=SYRK), timed(3.0))
    return path


def db(*arguments: str | Path, cwd: Path) -> Ran:
    return looptune("db", *arguments, cwd=cwd)


def keys(path: Path, **equal: str) -> set[str]:
    with Store.read(path) as store:
        return {r.directives for r in store.rows(**equal)}


# -- failures -------------------------------------------------------------------------------------------------------


def test_failures_of_one_reason_are_one_line(path: Path, tmp_path: Path) -> None:
    """Messages that differ in numbers alone are together, with a count and the shortest example; others are apart."""
    ran = looptune("db", "failures", "--db", path, "--json", cwd=tmp_path)
    found = json.loads(ran.out)
    assert [(f["class"], f["configurations"]) for f in found] == [
        ("illegal", 38),
        ("not_built", 1),
        ("wrong", 1),
        ("wrong", 1),
        ("crashed", 1),
        ("timed_out", 1),
    ]
    assert found[0]["directives"] == "loop i: unroll 2, jam"
    assert found[0]["evidence"] == REFUSED.format(2, 4)
    assert found[4]["evidence"] == "SIGSEGV\nFatal Python error\n in f"
    plain = looptune("db", "failures", "--db", path, cwd=tmp_path)
    assert (plain.code, plain.err) == (0, "")
    lines = plain.out.splitlines()
    assert lines[0] == "gemm float32 n=512, H100 (cuda)"
    assert f"  illegal        38 x  {REFUSED.format(2, 4)}" in lines
    each = json.loads(looptune("db", "failures", "--db", path, "--no-group", "--json", cwd=tmp_path).out)
    assert len(each) == 43


def test_failures_show_what_reproduces_them(path: Path, tmp_path: Path) -> None:
    """The sweep's own command, anew, each line of the directives quoted for a shell."""
    found = json.loads(looptune("db", "failures", "--db", path, "--status", "crashed", "--json", cwd=tmp_path).out)
    words = shlex.split(found[0]["command"])
    assert words[:8] == ["looptune", "run", "my gemm.c", "-D", "NI=24", "--target", "numba-cpu", "--fresh"]
    assert words[8:] == ["--directive", "loop k: unroll 3", "--directive", "nest i: permute k, i, j", "--db", str(path)]


def test_no_failures_is_said(path: Path, tmp_path: Path) -> None:
    """None at all, or none of a class: one line, exit code 0; --json gives an empty list."""
    ran = looptune("db", "failures", "--db", path, "--kernel", "syrk", cwd=tmp_path)
    assert (ran.code, ran.out) == (0, f"no failures among 1 rows of syrk in {path}\n")
    ran = looptune("db", "failures", "--db", path, "--status", "over_limit", cwd=tmp_path)
    assert (ran.code, ran.out) == (0, f"no failures of status over_limit among 48 rows in {path}\n")
    assert looptune("db", "failures", "--db", path, "--kernel", "syrk", "--json", cwd=tmp_path).out == "[]\n"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("x[3]: got 1e-9, expected 2", "x[-17]: got -1.25E+3, expected 0.5".replace("E+", "e+"), True),
        ("unroll 2, jam is illegal", "unroll 2, split is illegal", False),
        ("x[3]: got nan, expected 2", "x[3]: got 1, expected 2", False),
        ("f_2 needs 70000 registers", "f_2 needs 80000 registers", True),
        ("S1 depends on x2", "S2 depends on x2", False),
        ("SIGSEGV\nin a", "SIGSEGV\nin b", True),
    ],
)
def test_one_reason(one: str, other: str, same: bool) -> None:
    """Numbers make no reason, names with digits do; of several lines the first is the reason."""
    assert (failure_table.reason(one) == failure_table.reason(other)) == same


@pytest.mark.wide
def test_the_command_of_a_real_sweep_reproduces(tmp_path: Path) -> None:
    """What a sweep keeps with its rows makes a command that gives the same refusal again, at the sweep's sizes."""
    text = (
        "void f(int n, float x[n][n]) {\n  for (int i = 1; i < n; i++)\n    for (int j = 0; j < n - 1; j++)\n"
        "      x[i][j] += x[i - 1][j + 1];\n}\n"
    )
    (tmp_path / "a b.c").write_text(text)
    request = TuningRequest(tmp_path / "a b.c", defines={"n": "20"}, target="numba-cpu", seed=3, sweep=True)
    prepared = prepare(request)
    with Store.open(tmp_path / "d") as store:
        found = sweep(
            KernelBuilder(prepared.job, prepared.context),
            Exhaustive(parse("nest i: permute j, i", "s")),
            store,
            budget=Budget(),
            jobs=1,
            timeout_s=60.0,
            progress=lambda progress: None,
            first=(),
            command=single_version_command(prepared),
        )
    assert found.counts["illegal"] == 1
    assert found.spent.judge > 0
    (failed,) = json.loads(looptune("db", "failures", "--db", "d", "--json", cwd=tmp_path).out)
    words = shlex.split(failed["command"])
    assert words[2:] == [str(request.file), "-D", "n=20", "--target", "numba-cpu", "--seed", "3", "--fresh",
                         "--directive", "nest i: permute j, i", "--db", "d"]  # fmt: skip
    again = looptune(*words[1:], cwd=tmp_path)
    assert again.code == 2
    assert failed["evidence"] in again.err


# -- show and export ------------------------------------------------------------------------------------------------


def test_show(path: Path, tmp_path: Path) -> None:
    """Kernels with counts by class, the best version, the schema and the size on disk; finals are not versions."""
    plain, made = (
        db("show", "--db", path, cwd=tmp_path),
        json.loads(db("show", "--db", path, "--json", cwd=tmp_path).out),
    )
    gemm, syrk = made["contents"]
    assert gemm["counts"] == {
        "illegal": 38, "wrong": 2, "timed_out": 1, "crashed": 1, "not_built": 1, "timed": 2, "duplicate": 1,
    }  # fmt: skip
    assert (gemm["best_us"], gemm["directives"], gemm["sizes"]) == (2.0, "loop k: unroll 5", {"n": 512})
    assert (syrk["kernel"], syrk["best_us"]) == ("syrk", 3.0)
    assert (made["rows"], made["sweeps"], made["schema"]) == (48, 1, len(MIGRATIONS))
    assert made["bytes"] == path.stat().st_size
    assert "2 timed, 38 illegal, 1 not built, 2 wrong, 1 crashed, 1 timed out, 1 duplicate" in plain.out
    assert "best 2 us: loop k: unroll 5" in plain.out


def test_export(path: Path, tmp_path: Path) -> None:
    """Every row, in CSV and in JSON lines, with the outcome's evidence; -o writes what is printed otherwise."""
    lines = db("dump", "--db", path, cwd=tmp_path).out
    table = list(csv.DictReader(io.StringIO(lines)))
    assert tuple(table[0]) == COLUMNS
    assert len(table) == 48
    assert {r["message"] for r in table if r["status"] == "timed_out"} == {"killed after 60 s"}
    assert "loop k: unroll 3\nnest i: permute k, i, j" in {r["directives"] for r in table}
    records = [json.loads(x) for x in db("dump", "--db", path, "--format", "jsonl", cwd=tmp_path).out.splitlines()]
    assert [r["key"] for r in records] == [r["key"] for r in table]
    (best,) = [r for r in records if r["directives"] == "loop k: unroll 5" and r["role"] == "version"]
    assert best["outcome"]["times_us"] == [2.0, 2.0, 2.0]
    assert best["sizes"] == {"n": 512}
    assert db("dump", "--db", path, "-o", "out.csv", "--kernel", "gemm", cwd=tmp_path).out == ""
    assert len(list(csv.DictReader((tmp_path / "out.csv").open(newline="")))) == 47


# -- merge ----------------------------------------------------------------------------------------------------------


def finished_at(store: Store, what: Row, outcome: Outcome, moment: float) -> None:
    store.record(what, outcome)
    store.connection.execute("UPDATE runs SET finished = ? WHERE key = ?", (moment, what.key))


def test_merge_takes_the_finished_and_the_newer(tmp_path: Path) -> None:
    """New rows are added; of two with one key the finished one stays, then the newer; commands come along."""
    with Store.open(tmp_path / "a") as a, Store.open(tmp_path / "b") as b:
        b.register_command("s1", "looptune run gemm.c")
        for name, in_a, in_b in (("older", 10.0, 20.0), ("newer", 20.0, 10.0), ("equal", 10.0, 10.0)):
            finished_at(a, row(name), timed(1.0), in_a)
            finished_at(b, row(name), timed(2.0), in_b)
        finished_at(b, row("new"), timed(2.0), 5.0)
        for store in (a, b):
            store.begin(row("crashed here" if store is a else "crashed there"))
            store.connection.execute("UPDATE runs SET owner = 'gone 1 1' WHERE status = 'running'")
        finished_at(b, row("crashed here"), timed(2.0), 5.0)
        finished_at(a, row("crashed there"), timed(1.0), 5.0)
    ran = db("merge", "b", "--db", "a", cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert ran.out == "b: 1 rows new, 2 in place of older ones, 3 not newer than those in a\n"
    with Store.read(tmp_path / "a") as a:
        medians = {r.directives: r.median_us for r in a.rows()}
        assert a.commands() == {"s1": "looptune run gemm.c"}
    assert medians == {"older": 2, "newer": 1, "equal": 1, "new": 2, "crashed here": 2, "crashed there": 1}
    assert db("merge", "b", "--db", "a", cwd=tmp_path).out.startswith("b: 0 rows new, 0 in place")


def test_merge_leaves_out_what_is_running(tmp_path: Path) -> None:
    """A row that a living process is running is neither taken nor replaced."""
    with runner(tmp_path / "b", "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        with Store.open(tmp_path / "c") as c:
            c.record(row("culprit"), timed(1.0))
        assert "1 left out because they are running" in db("merge", "b", "--db", "a", cwd=tmp_path).out
        assert "1 left out because they are running" in db("merge", "c", "--db", "b", cwd=tmp_path).out
        assert keys(tmp_path / "a") == set()
        assert keys(tmp_path / "b", status="running") == {"culprit"}
        process.communicate()


def test_merge_reads_older_schemas(path: Path, tmp_path: Path) -> None:
    """A file of version 1 is merged and shown as it is, and stays of version 1."""
    old = tmp_path / "old"
    with closing(sqlite3.connect(old)) as made, made:
        made.execute(f"PRAGMA application_id = {0x6C6F6F70}")
        for statement in MIGRATIONS[0].split(";"):
            made.execute(statement)
        made.execute("PRAGMA user_version = 1")
        with Store.read(path) as store:
            columns = [r[1] for r in made.execute("PRAGMA table_info(runs)")]
            for record in store.connection.execute(f"SELECT {', '.join(columns)} FROM runs"):
                made.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(columns))})", tuple(record))
    before = old.read_bytes()
    assert f"schema version 1 (present: {len(MIGRATIONS)}" in db("show", "--db", old, cwd=tmp_path).out
    assert db("merge", old, "--db", "new", cwd=tmp_path).out.startswith(f"{old}: 48 rows new")
    assert old.read_bytes() == before
    assert keys(tmp_path / "new") == keys(path)


# -- prune ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said", "left"),
    [
        (["--status", "crashed", "--status", "timed_out"], "gemm: 1 crashed, 1 timed out", 46),
        (["--failed"], "gemm: 38 illegal, 1 not built, 2 wrong, 1 crashed, 1 timed out", 5),
        (["--kernel", "syrk"], "syrk: 1 timed", 47),
        (["--device", "H100", "--kernel", "gemm", "--failed"], "gemm: 38 illegal", 5),
        (["--device", "A100"], "", 48),
        (["--lowering", "1"], "syrk: 1 timed", 0),
        (["--older-than", "1d"], "", 48),
        (["--older-than", "1d", "--failed"], "", 48),
    ],
)
def test_prune_removes_what_meets_every_condition(
    path: Path, tmp_path: Path, options: list[str], said: str, left: int
) -> None:
    """It says what it removed, and --dry-run the same without removing."""
    dry = db("prune", "--db", path, *options, "--dry-run", cwd=tmp_path)
    assert said in dry.out
    assert len(list(csv.DictReader(io.StringIO(db("dump", "--db", path, cwd=tmp_path).out)))) == 48
    ran = db("prune", "--db", path, *options, cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert said in ran.out
    assert f"{48 - left} rows removed from {path}" in ran.out
    with Store.read(path) as store:
        assert len(list(store.rows())) == left


def test_prune_by_age_and_the_duplicates_of_what_goes(path: Path) -> None:
    """Begun before the moment; a duplicate goes with the row that it is the same as."""
    with Store.change(path) as store:
        store.connection.execute("UPDATE runs SET started = started - 90000 WHERE directives = '' AND kernel = 'gemm'")
        removed = maintenance.prune(store, PruneFilter(before=time.time() - maintenance.age_s("1d")))
        assert removed == {("gemm", "timed"): 1, ("gemm", "duplicate"): 1}


def test_prune_forgets_the_commands_of_sweeps_without_rows(path: Path) -> None:
    """Those whose last rows went; one that has just begun and has none yet keeps its own."""
    with Store.change(path) as store:
        store.register_command("s9", "looptune run new.c")
        maintenance.prune(store, PruneFilter(kernel="syrk"))
        assert store.commands().keys() == {"s1", "s9"}
        maintenance.prune(store, PruneFilter(kernel="gemm"))
        assert store.commands().keys() == {"s9"}


def test_prune_never_touches_what_is_running(tmp_path: Path) -> None:
    """Rows of a living process stay, whatever the condition; of one that is gone they are crashes."""
    with runner(tmp_path / "a", "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        assert db("prune", "--db", "a", "--lowering", "1", cwd=tmp_path).out.startswith("0 rows removed")
        process.kill()
        process.communicate()
    assert "gemm: 1 crashed" in db("prune", "--db", "a", "--status", "crashed", cwd=tmp_path).out


@pytest.mark.parametrize("text", ["", "30", "d", "3 years", "-1d", "1e3d", "nan"])
def test_nonsense_is_no_age(text: str) -> None:
    """A UsageError that quotes it."""
    with pytest.raises(UsageError, match="invalid age"):
        maintenance.age_s(text)


def test_a_folder_that_cannot_be_written(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading needs no file beside the database where none can be made."""
    monkeypatch.setattr(os, "access", lambda where, mode: False)
    before = sorted(p.name for p in tmp_path.iterdir())
    with Store.read(path) as store:
        assert len(list(store.rows())) == 48
        assert sorted(p.name for p in tmp_path.iterdir()) == before == ["db"]
        with pytest.raises(StoreError, match="readonly"):
            store.record(row("x"), timed(1.0))
