"""The results database: nothing measured is lost, nothing foreign is touched, a crash names its culprit."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.core.errors import StoreError
from looptune.runtime.outcome import Crashed, Illegal, Outcome, TimedOut
from looptune.tune.store import owner
from looptune.tune.store.connection import APPLICATION, MIGRATIONS
from looptune.tune.store.searches import by_context
from looptune.tune.store.store import Context, Store, canonical_json, key
from tests.helpers.paths import ROOT
from tests.helpers.store_rows import CONTEXT, row, runner, timed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "store.sqlite"


@pytest.mark.parametrize("outcome", [timed(3.5), Illegal("no"), TimedOut(2.0), Crashed("SIGSEGV")])
def test_rows_survive_closing(path: Path, outcome: Outcome):
    """What was begun and finished is read back whole by another connection."""
    with Store.open(path) as store:
        one = store.begin(row("loop k: unroll 2", emitted="e"))
        store.finish(one, outcome)
        store.record(row("loop k: unroll 3"), outcome)
    with Store.open(path) as store:
        found = store.lookup([one, row("loop k: unroll 3").key, "absent"])
    assert len(found) == 2
    assert found[one].outcome == outcome
    assert (found[one].context, found[one].emitted, found[one].status) == (CONTEXT, "e", outcome.status)
    assert found[one].finished is not None
    assert found[one].finished >= found[one].started > 1.7e9


@pytest.mark.parametrize("name", [f for f in Context.__slots__ if f != "options"])
def test_everything_a_time_depends_on_is_in_the_key(name: str):
    """Changing any part of the context changes the key, as do the directives and the role; default is a version."""
    assert key(replace(CONTEXT, **{name: "other"}), "x") != key(CONTEXT, "x") != key(CONTEXT, "y")
    assert key(CONTEXT, "", "default") == key(CONTEXT, "", "version") != key(CONTEXT, "", "final")


def test_a_row_left_running_by_a_dead_process_is_its_crash(path: Path):
    """kill -9 between begin and finish: the row reads as Crashed, for look-up, listing and versions alike."""
    with runner(path, "die") as process:
        process.communicate()
    with Store.open(path) as store:
        found = store.lookup([row("culprit").key])[row("culprit").key]
        assert found.outcome == Crashed("the process died while this ran")
        assert found.status == "crashed"
        assert [r.status for r in store.rows()] == ["crashed"]
        assert [r.status for r in store.versions(CONTEXT, "")] == ["crashed"]


def test_a_row_another_process_is_running_is_no_answer(path: Path):
    """While its process lives the row is neither a crash nor a result."""
    with runner(path, "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        with Store.open(path) as store:
            assert store.lookup([row("culprit").key]) == {}
            assert store.versions(CONTEXT, "") == []
            assert [r.status for r in store.rows()] == ["running"]
        process.communicate()


def test_owner_tokens():
    """This process is alive; a reused number, another boot and nonsense are not."""
    boot, pid, started = owner.process_token().split()
    assert owner.is_alive(owner.process_token())
    assert not owner.is_alive(f"{boot} {pid} {int(started) + 1}")
    assert not owner.is_alive(f"other {pid} {started}")
    assert not owner.is_alive(f"? {pid} ?")
    assert not owner.is_alive("")


def test_abandoning_forgets_a_running_row_only(path: Path):
    """An interrupted measurement leaves no trace; a finished one cannot be abandoned."""
    with Store.open(path) as store:
        store.abandon(store.begin(row("a")))
        done = store.begin(row("b"))
        store.finish(done, timed(1.0))
        store.abandon(done)
        assert [r.directives for r in store.rows()] == ["b"]


def test_best_is_the_fastest_timed_version(path: Path):
    """Failures, duplicates, finals, other devices and other sizes do not count; columns narrow the rows."""
    with Store.open(path) as store:
        store.record(row("slow"), timed(9.0))
        store.record(row("fast"), timed(4.0))
        store.record(row("failed"), Illegal("no"))
        store.record(row("fast", role="final"), timed(1.0))
        store.record(replace(row("x"), context=replace(CONTEXT, device="A100")), timed(2.0))
        store.record(replace(row("x"), context=replace(CONTEXT, sizes=canonical_json({"n": 8}))), timed(0.5))
        store.record_duplicate(row("same"), row("fast").key)
        found = {s.context: s.fastest for s in by_context(store.rows())}
        best, smaller = found[CONTEXT], found[replace(CONTEXT, sizes=canonical_json({"n": 8}))]
        assert best is not None
        assert (best.directives, best.median_us) == ("fast", 4.0)
        assert smaller is not None
        assert smaller.median_us == 0.5
        assert [r.directives for r in store.rows(device="H100", status="timed", sizes=CONTEXT.sizes)] == [
            "slow",
            "fast",
            "fast",
        ]
        assert store.lookup([row("same").key])[row("same").key].same_as == row("fast").key


@pytest.mark.parametrize("damage", ["page", "truncated"])
def test_a_damaged_file_is_moved_aside(path: Path, damage: str):
    """Whatever the damage, its bytes are kept under another name, a warning says where, and the store works."""
    with Store.open(path) as store:
        for n in range(400):
            store.record(row(f"loop k: unroll {n}"), timed(1.0))
    whole = path.read_bytes()
    match damage:
        case "page":
            path.write_bytes(whole[:8192] + b"\xee" * 8192 + whole[16384:])
        case "truncated":
            path.write_bytes(whole[: len(whole) // 2])
    damaged = path.read_bytes()
    with Store.open(path) as store:
        assert list(store.rows()) == []
        store.record(row("a"), timed(1.0))
    (aside,) = path.parent.glob("store.sqlite.corrupt-*")
    assert aside.read_bytes() == damaged
    assert len(store.warnings) == 1
    assert str(aside) in store.warnings[0]


def test_another_programs_database_is_left_alone(path: Path):
    """A sound SQLite file that is not ours is refused and not changed."""
    path.parent.mkdir()
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE accounts (name)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        Store.open(path)
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused(path: Path):
    """A file of a later looptune is neither read nor changed."""
    Store.open(path).close()
    newer = len(MIGRATIONS) + 1
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {newer}")
    with pytest.raises(StoreError, match=f"schema version {newer}"):
        Store.open(path)


def test_an_older_schema_is_migrated(path: Path):
    """A file of version 1 opens with all its rows and the present version."""
    with Store.open(path) as store:
        store.record(row("old"), timed(2.0))
    with sqlite3.connect(path) as db:
        db.execute("DROP INDEX runs_emitted")
        db.execute("DROP INDEX runs_best")
        db.execute("DROP INDEX runs_number")
        db.execute("ALTER TABLE runs DROP COLUMN number")
        db.execute("DROP TABLE sweeps")
        db.execute("DROP TABLE results")
        db.execute("PRAGMA user_version = 1")
    with Store.open(path) as store:
        assert [r.directives for r in store.rows()] == ["old"]
        assert store.warnings == ()
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
        assert db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE type = 'index'").fetchone()[0] == 3


@pytest.mark.parametrize("where", ["directory", "under a file", "unwritable"])
def test_an_impossible_path_is_one_message(tmp_path: Path, where: str):
    """No traceback of SQLite's: a StoreError that names the path."""
    (tmp_path / "file").write_text("")
    path = {"directory": tmp_path, "under a file": tmp_path / "file" / "s", "unwritable": Path("/proc/looptune/s")}[
        where
    ]
    with pytest.raises(StoreError) as refused:
        Store.open(path)
    assert str(path) in str(refused.value)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_is_one_message(path: Path):
    """Opening what cannot be written says so at once."""
    Store.open(path).close()
    path.chmod(0o444)
    with pytest.raises(StoreError, match="readonly"):
        Store.open(path)


def fill(store: Store) -> None:
    for n in range(10_000):
        store.record(row(f"loop k: unroll {n}"), timed(1.0))


def test_a_full_disk_keeps_what_was_there(path: Path):
    """SQLITE_FULL is a StoreError; the rows before it are intact, and the store goes on once there is room."""
    with Store.open(path) as store:
        pages = store.connection.execute("PRAGMA page_count").fetchone()[0]
        store.connection.execute(f"PRAGMA max_page_count = {pages + 20}")
        with pytest.raises(StoreError, match="full"):
            fill(store)
        stored = len(list(store.rows()))
        assert stored > 10
        assert all(r.outcome == timed(1.0) for r in store.rows())
        store.connection.execute("PRAGMA max_page_count = 100000")
        store.record(row("after"), timed(1.0))
    with Store.open(path) as store:
        assert len(list(store.rows())) == stored + 1
        assert store.warnings == ()


WRITES = """
import sys
sys.path.insert(0, sys.argv[2])
from looptune.tune.store.store import Store
from tests.helpers.store_rows import row, timed
with Store.open(sys.argv[1]) as store:
    for n in range(150):
        store.finish(store.begin(row(f"{sys.argv[3]} {n}")), timed(1.0))
"""


@pytest.mark.wide
def test_two_processes_write_at_once(path: Path):
    """Opened and written at the same moment by three processes, every row of each is there."""
    command = [sys.executable, "-c", WRITES, str(path), str(ROOT)]
    processes = [subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in "abc"]
    assert [p.communicate()[1] for p in processes] == [b""] * 3
    with Store.open(path) as store:
        assert len([r for r in store.rows() if r.status == "timed"]) == 450
