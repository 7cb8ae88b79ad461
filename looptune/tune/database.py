"""Opening the results database: a sound SQLite file of ours with the present schema, in WAL mode.

          none     damaged                         older       newer, foreign
connect   made     moved aside, a new one made     migrated    refused
examine   refused  refused                         as if migrated, the file unchanged     refused
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from looptune.errors import StoreError

APPLICATION = 0x6C6F6F70
_BUSY_S = 30.0

# One script a schema version; number n brings a file of version n - 1 to version n.
MIGRATIONS = (
    """
    CREATE TABLE runs (
        key TEXT PRIMARY KEY, context TEXT NOT NULL,
        kernel TEXT NOT NULL, source_hash TEXT NOT NULL, lowering TEXT NOT NULL, toolchain TEXT NOT NULL,
        capability TEXT NOT NULL, device TEXT NOT NULL, target TEXT NOT NULL, sizes TEXT NOT NULL, dtype TEXT NOT NULL,
        options TEXT NOT NULL, directives TEXT NOT NULL, role TEXT NOT NULL, sweep TEXT NOT NULL, emitted TEXT NOT NULL,
        status TEXT NOT NULL, outcome TEXT, same_as TEXT, median_us REAL, owner TEXT NOT NULL,
        started REAL NOT NULL, finished REAL
    ) WITHOUT ROWID;
    """,
    """
    CREATE INDEX runs_emitted ON runs (context, emitted);
    CREATE INDEX runs_best ON runs (kernel, device, median_us);
    """,
    # Rows are in the order of their numbers: a clock may step back.
    """
    ALTER TABLE runs ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
    UPDATE runs SET number = placed.place
        FROM (SELECT key AS of, row_number() OVER (ORDER BY started, key) AS place FROM runs) AS placed
        WHERE runs.key = placed.of;
    CREATE INDEX runs_number ON runs (number);
    CREATE TABLE sweeps (sweep TEXT PRIMARY KEY, command TEXT NOT NULL, started REAL NOT NULL) WITHOUT ROWID;
    """,
    # Nothing changes but what rows may say: an earlier looptune knows no outcome cut_off, and has to refuse the file.
    "",
    # So does one that does not know where a version was cut off, and takes what it ran by then for its cost.
    "",
    # What a sweep came to, one record a context: the newest.
    """
    CREATE TABLE results (
        context TEXT PRIMARY KEY, sweep TEXT NOT NULL, record TEXT NOT NULL, finished REAL NOT NULL
    ) WITHOUT ROWID;
    """,
)


def connect(path: Path, *, create: bool = True, repair: bool = True) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """A connection to the database at ``path`` and what the user should know; StoreError where it cannot be.

    Without ``create`` there has to be one; without ``repair`` a damaged one is refused and left where it is.
    """
    with refusals(path):
        if not create:
            _check_there(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return _connect(path), ()
        except sqlite3.DatabaseError as error:
            if not _damaged(error):
                raise
            if not repair:
                raise StoreError(f"{path} is no database, or a damaged one: {error}") from error
            aside = _move_aside(path)
            warning = f"{path} was damaged ({error}); it is kept as {aside}, a new one was begun"
            return _connect(path), (warning,)


def examine(path: Path) -> sqlite3.Connection:
    """A connection for reading only; an older database is read as a copy in memory that is migrated."""
    with refusals(path):
        _check_there(path)
        try:
            connection = _reading(path)
        except sqlite3.DatabaseError as error:
            if not _damaged(error):
                raise
            raise StoreError(f"{path} is no database, or a damaged one: {error}") from error
        connection.row_factory = sqlite3.Row
        return connection


def version(connection: sqlite3.Connection) -> int:
    """The schema's."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """What SQLite or the file system refuses, as a StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    except sqlite3.Error as error:
        # SQLite knows a full disk by one of the errors it can have; quotas and limits are others.
        hint = " (is there room for it?)" if "disk I/O" in str(error) else ""
        raise StoreError(f"{path}: {error}{hint}") from error


def _check_there(path: Path) -> None:
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a database")
    if not path.exists():
        raise StoreError(f"no database {path}: `looptune run --sweep` makes one, --db names another")


def _reading(path: Path) -> sqlite3.Connection:
    """The file opened for reading or, where its schema is older, a migrated copy in memory."""
    # A database in WAL mode cannot be opened in a folder that cannot be written, unless it is said not to change.
    still = not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()
    uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if still else ''}"
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None)
    try:
        _check_ours(connection, path)
        if version(connection) == len(MIGRATIONS):
            return connection
        copied = sqlite3.connect(":memory:", isolation_level=None)
        with closing(connection):
            connection.backup(copied)
        _migrate(copied, path)
        return copied
    except BaseException:
        connection.close()
        raise


def _connect(path: Path) -> sqlite3.Connection:
    """An open connection to a file that is sound and has the present schema."""
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        # Files of another program must stay as they are, so whose file it is comes first.
        _migrate(connection, path)
        _use_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    _check_ours(connection, path)
    for script in MIGRATIONS[version(connection) :]:
        for statement in script.split(";"):
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    """StoreError for another program's file and for a later schema; sqlite3.DatabaseError for a damaged file."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise StoreError(f"{path} is a database of another program")
    if version(connection) > len(MIGRATIONS):
        raise StoreError(
            f"{path} has schema version {version(connection)}, this looptune reads up to {len(MIGRATIONS)}: update it"
        )
    sound = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if sound != "ok":
        raise sqlite3.DatabaseError(f"malformed: {sound}")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Changing the journal's mode needs the file for itself and does not wait for it: ask again until it is free."""
    give_up = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def _damaged(error: sqlite3.DatabaseError) -> bool:
    return "not a database" in str(error) or "malformed" in str(error)


def _move_aside(path: Path) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%S")
    aside = Path(f"{path}.corrupt-{stamp}")
    count = 1
    while aside.exists():
        count += 1
        aside = Path(f"{path}.corrupt-{stamp}-{count}")
    for suffix in ("", "-wal", "-shm"):
        file = Path(f"{path}{suffix}")
        if file.exists():
            file.rename(f"{aside}{suffix}")
    return aside
