"""What `looptune db failures` and `looptune db` refuse: files that are no database, and mistakes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from looptune.tune.store.connection import MIGRATIONS
from looptune.tune.store.store import Store
from tests.helpers.command_line import looptune

COMMANDS = {
    "failures": ["db", "failures", "--db", "FILE"],
    "show": ["db", "show", "--db", "FILE"],
    "export": ["db", "dump", "--db", "FILE"],
    "merge from": ["db", "merge", "FILE", "--db", "target"],
    "merge into": ["db", "merge", "good", "--db", "FILE"],
    "prune": ["db", "prune", "--failed", "--db", "FILE"],
}
BAD = {
    "absent": "no database absent",
    "folder": "folder is a folder, not a database",
    "text": "text is not a database, or is damaged; it stays as it is",
    "foreign": "foreign is a database of another program",
    "newer": f"newer has schema version {len(MIGRATIONS) + 1}, this looptune reads up to {len(MIGRATIONS)}: update it",
}


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "folder").mkdir()
    (folder / "text").write_text("my notes, not a database at all\n" * 40)
    for name in ("good", "newer"):
        Store.open(folder / name).close()
    # Closed, so that nothing of them is left in a journal for whoever opens them next.
    with closing(sqlite3.connect(folder / "newer")) as newer:
        newer.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with closing(sqlite3.connect(folder / "foreign")) as foreign:
        foreign.execute("CREATE TABLE accounts (name)")
    return folder


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_database_of_ours(bad: Path, command: str, kind: str) -> None:
    """One message that says what it is, exit code 2, no traceback; the file stays, and none is made."""
    if (command, kind) == ("merge into", "absent"):
        pytest.skip("merging makes the database")
    file = bad / kind
    before = file.read_bytes() if file.is_file() else None
    ran = looptune(*(kind if a == "FILE" else a for a in COMMANDS[command]), cwd=bad)
    assert (ran.code, ran.out) == (2, "")
    message = BAD[kind] if (command, kind) != ("merge into", "folder") else "folder"
    assert ran.err.startswith(f"error: {message}")
    assert "Traceback" not in ran.err
    assert (file.read_bytes() if file.is_file() else None) == before
    assert not (bad / "absent").exists()
    assert not (bad / "target").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["db", "failures", "--db", "good", "--kernel", "gemm"], "no kernel gemm in good: it has no rows"),
        (["db", "dump", "--db", "good", "-o", "folder"], "cannot write folder: Is a directory"),
        (["db", "prune", "--db", "good"], "say what to remove: --kernel, "),
        (["db", "prune", "--db", "good", "--older-than", "soon"], "invalid age `soon`: write 30d, 2w, 12h or 90m"),
        (["db", "merge", "good", "--db", "./good"], "good cannot be merged into itself"),
    ],
)
def test_other_mistakes(bad: Path, arguments: list[str], message: str) -> None:
    """One message, exit code 2."""
    ran = looptune(*arguments, cwd=bad)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {message}")
