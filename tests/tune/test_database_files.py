"""Which files a database may be: only ours is ever moved, what vanishes is kept, a medium may be read-only."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from looptune.core.errors import StoreError
from looptune.tune.store import connection
from looptune.tune.store.store import Store
from tests.helpers.command_line import looptune
from tests.helpers.store_rows import row, timed

FOREIGN = {
    "source": b"void f(int n, float x[n]) { for (int i = 0; i < n; i++) x[i] += 1; }\n" * 40,
    "short": b"x",
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(200),
    "nearly": b"SQLite format 3" + bytes(200),
    "other": b"SQLite format 3\0" + bytes(52) + (7).to_bytes(4, "big") + b"\xee" * 4000,
    "nobody": b"SQLite format 3\0" + b"\0" * 84 + b"\xee" * 4000,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_not_ours_stays(tmp_path: Path, name: str) -> None:
    """A run refuses it before anything is measured; not a byte, a name or a neighbour changes."""
    (tmp_path / "f.c").write_bytes(FOREIGN["source"].partition(b"\n")[0])
    (tmp_path / name).write_bytes(FOREIGN[name])
    ran = looptune("run", "f.c", "-D", "n=8", "--target", "numba-cpu", "--db", name, "--reports", "r", cwd=tmp_path)
    assert (ran.code, ran.err.count("error: "), name in ran.err) == (2, 1, True)
    assert (tmp_path / name).read_bytes() == FOREIGN[name]
    assert sorted(os.listdir(tmp_path)) == sorted({"f.c", name})


def test_a_database_of_another_program_stays(tmp_path: Path) -> None:
    """A damaged one too."""
    with closing(sqlite3.connect(tmp_path / "db")) as other:
        other.execute("CREATE TABLE accounts (name)")
        other.execute("PRAGMA application_id = 99")
    for held in ((tmp_path / "db").read_bytes(), (tmp_path / "db").read_bytes()[:4096]):
        (tmp_path / "db").write_bytes(held)
        for opened in (Store.open, Store.read, Store.change):
            with pytest.raises(StoreError, match="another program"):
                opened(tmp_path / "db")
        assert (tmp_path / "db").read_bytes() == held
        assert os.listdir(tmp_path) == ["db"]


def test_a_pipe_is_no_database(tmp_path: Path) -> None:
    """Nobody waits for what it may hold."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="not a database"):
        Store.open(tmp_path / "pipe")


@pytest.mark.parametrize("how", ["deleted", "replaced", "moved", "folder"])
@pytest.mark.parametrize("noticed", ["writing", "closing"])
def test_a_database_that_vanishes_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, noticed: str
) -> None:
    """What was measured is in a new file, which the error names and `db merge` takes in; the other file stays."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sub" / "db"
    store = Store.open(path)
    store.record(row("a"), timed(1.0))
    match how:
        case "deleted":
            path.unlink()
        case "replaced":
            path.unlink()
            path.write_text("mine")
        case "moved":
            path.rename(tmp_path / "elsewhere")
        case "folder":
            shutil.rmtree(path.parent)
    use = (lambda: store.record(row("b"), timed(1.0))) if noticed == "writing" else store.close
    with pytest.raises(StoreError, match="deleted or replaced") as gone:
        use()
    kept = re.search(r"the measurements are saved in (\S+);", str(gone.value))
    assert kept is not None
    store.close()
    with Store.read(kept[1]) as found:
        assert [r.directives for r in found.rows()] == ["a"]
    if how == "replaced":
        assert path.read_text() == "mine"


def test_a_finished_database_is_read_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By all commands, and with what its log holds that is not yet in it; no file is made."""
    path = tmp_path / "db"
    writing = Store.open(path)
    writing.register_command("s", "looptune run gemm.c")
    writing.record(row("a", sweep="s"), timed(1.0))
    medium = tmp_path / "medium"
    medium.mkdir()
    for name in ("db", "db-wal"):
        shutil.copy(tmp_path / name, medium / name)
    assert (medium / "db-wal").stat().st_size
    writing.close()
    (tmp_path / "closed").mkdir()
    shutil.copy(path, tmp_path / "closed" / "db")
    barred = (medium, tmp_path / "closed")
    real = os.access
    monkeypatch.setattr(connection.os, "access", lambda p, mode: Path(p) not in barred and real(p, mode))
    connect = sqlite3.connect

    def careful(name: object, *more: object, **named: object) -> sqlite3.Connection:
        """Where nothing can be written SQLite opens only what is said not to change."""
        assert not any(str(b) in str(name) for b in barred) or "immutable" in str(name), name
        return connect(name, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(connection.sqlite3, "connect", careful)
    for folder in barred:
        before = sorted(os.listdir(folder))
        for command in (["db", "show"], ["db", "dump"], ["db", "failures"], ["export", "--format", "t4"]):
            ran = looptune(*command, "--db", folder / "db", cwd=tmp_path)
            assert ran.code == 0, ran.err
        assert looptune("db", "merge", folder / "db", "--db", f"into-{folder.name}", cwd=tmp_path).code == 0
        assert sorted(os.listdir(folder)) == before


def test_a_file_with_other_tables_is_refused(tmp_path: Path) -> None:
    """Views, triggers and further columns would run, or be pasted into statements."""
    for number, made in enumerate((
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END", "CREATE VIEW v AS SELECT 1",
        'ALTER TABLE runs ADD COLUMN "x) VALUES (1) --" TEXT', "DROP TABLE sweeps",
    )):  # fmt: skip
        path = tmp_path / str(number)
        Store.open(path).close()
        with closing(sqlite3.connect(path)) as db:
            db.execute(made)
        for opened in (Store.open, Store.read, Store.change):
            with pytest.raises(StoreError, match="has not the tables"):
                opened(path)


def test_any_name_of_a_file_can_be_a_database(tmp_path: Path) -> None:
    """Bytes that are no UTF-8, and what a URI gives a meaning."""
    for name in (os.fsdecode(b"a\xff"), "a?mode=ro", "a#b", "a%41", "a b"):
        with Store.open(tmp_path / name) as store:
            store.record(row("a"), timed(1.0))
        with Store.read(tmp_path / name) as store:
            assert len(list(store.rows())) == 1
        assert (tmp_path / name).exists()
