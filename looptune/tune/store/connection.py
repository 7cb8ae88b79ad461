"""Opening the results database: a sound SQLite file of ours with the present schema, in WAL mode.

          none     damaged                         older       newer, foreign, no database
connect   made     moved aside, a new one made     migrated    refused
examine   refused  refused                         as if migrated, the file unchanged     refused

Only a file that says itself that it is ours (SQLite's header with our application id) is ever moved, and a file that
does not is not even opened by SQLite. A file on a medium that cannot be written is read as one that does not change.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from looptune.core.errors import StoreError
from looptune.tune.store.row_key import current_cell, current_record, row_key

APPLICATION = 0x6C6F6F70
_MAGIC = b"SQLite format 3\0"
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
    # Directives have new words, see ``Transform.former``, and the key of a row is made of its directives.
    """
    UPDATE runs SET same_as = (
        SELECT row_key(o.context, current_cell(o.directives), o.role) FROM runs AS o WHERE o.key = runs.same_as
    ) WHERE same_as IN (SELECT key FROM runs WHERE directives <> current_cell(directives));
    UPDATE OR REPLACE runs SET key = row_key(context, current_cell(directives), role),
        directives = current_cell(directives) WHERE directives <> current_cell(directives);
    UPDATE results SET record = current_record(record);
    """,
    # Nothing changes but what rows may say: finals whose role is energy, and results by energy beside those by time.
    "",
)
_FUNCTIONS: Mapping[str, tuple[int, Callable[..., Any]]] = MappingProxyType(
    {"row_key": (3, row_key), "current_cell": (1, current_cell), "current_record": (1, current_record)}
)
"""What migrations call."""


def connect(path: Path, *, create: bool = True, repair: bool = True) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    """Return a connection to the database at ``path`` and a message for the user.

    Raises StoreError if it cannot be opened.

    Without ``create`` there has to be one; without ``repair`` a damaged one is refused and left where it is.
    """
    with refusals(path):
        if not create:
            _check_there(path)
        _check_own(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return _connect(path), ()
        except sqlite3.DatabaseError as error:
            if not _damaged(error):
                raise
            if not repair:
                raise StoreError(f"{path} is not a database, or is damaged: {error}") from error
            aside = _move_aside(path)
            warning = f"{path} was damaged ({error}); it is kept as {aside}, a new one was created"
            return _connect(path), (warning,)


def examine(path: Path) -> tuple[sqlite3.Connection, int]:
    """Return a read-only connection, and the schema version of the file.

    An older database is read as a copy in memory that is migrated.
    """
    with refusals(path):
        _check_there(path)
        _check_own(path)
        try:
            connection, schema = _reading(path)
        except sqlite3.DatabaseError as error:
            if not _damaged(error):
                raise
            raise StoreError(f"{path} is not a database, or is damaged: {error}") from error
        connection.row_factory = sqlite3.Row
        return connection, schema


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """The identity of the file that a path names."""

    device: int
    number: int

    @classmethod
    def of(cls, path: Path) -> Self:
        found = path.stat()
        return cls(found.st_dev, found.st_ino)

    def is_at(self, path: Path) -> bool:
        """Tell whether the place still denotes the same file."""
        try:
            return FileIdentity.of(path) == self
        except FileNotFoundError:
            return False
        except OSError:
            # Whether it is there cannot be said: writing to it will tell.
            return True


def keep_copy(connection: sqlite3.Connection, path: Path) -> Path:
    """Copy all that a connection holds to a new file, beside ``path`` or where a file can be made; return where."""
    stamp = time.strftime("%Y%m%dT%H%M%S")
    with refusals(path):
        folder = next(f for f in (path.parent, Path(), Path(tempfile.gettempdir())) if os.access(f, os.W_OK))
        kept = _free(folder / f"{path.name}.kept-{stamp}")
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with closing(sqlite3.connect(_uri(kept, "rwc"), uri=True)) as copy:
            connection.backup(copy)
    return kept


def version(connection: sqlite3.Connection) -> int:
    """Return the version of the schema."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Yield, with refusals of SQLite or the file system turned into StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    except (UnicodeError, OverflowError, ValueError) as error:
        # A name that SQLite cannot take, or a value that it cannot hold.
        raise StoreError(f"{path}: {error}") from error
    except sqlite3.Error as error:
        # SQLite knows a full disk by one of the errors it can have; quotas and limits are others.
        hint = " (is there room for it?)" if "disk I/O" in str(error) else ""
        raise StoreError(f"{path}: {error}{hint}") from error


def check_path(path: Path) -> None:
    """Raise StoreError if no database can be made at ``path`` because something else is there."""
    with refusals(path):
        _check_own(path)


def _check_there(path: Path) -> None:
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a database")
    if not path.exists():
        raise StoreError(f"no database {path}: `looptune run --sweep` creates it, --db names another")


def _uri(path: Path, mode: str) -> str:
    """Return what SQLite opens, whatever characters the name has."""
    return f"{path.absolute().as_uri()}?mode={mode}"


def _check_own(path: Path) -> None:
    """Raise StoreError if there is a file that is not a looptune database; an empty file is accepted."""
    if not path.exists():
        return
    if not stat.S_ISREG(path.stat().st_mode):
        raise StoreError(f"{path} is {'a folder' if path.is_dir() else 'no file'}, not a database")
    with path.open("rb") as file:
        head = file.read(100)
    if head and not head.startswith(_MAGIC):
        raise StoreError(f"{path} is not a database, or is damaged; it stays as it is, --db names another")
    if head and int.from_bytes(head[68:72], "big") != APPLICATION:
        raise StoreError(f"{path} is a database of another program")


def _reading(path: Path) -> tuple[sqlite3.Connection, int]:
    """Return the file opened for reading or, where its schema is older, a migrated copy in memory.

    The version in the file.
    """
    # A database in WAL mode cannot be opened in a folder that cannot be written, unless it is said not to change.
    still = not os.access(path.parent, os.W_OK)
    log = Path(f"{path}-wal")
    if still and log.exists() and log.stat().st_size:
        return _copied(path, log)
    uri = _uri(path, "ro") + "&immutable=1" * still
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None)
    try:
        _check_ours(connection, path)
        schema = version(connection)
        if schema == len(MIGRATIONS):
            _check_schema(connection, path)
            return connection, schema
        return _in_memory(connection, path), schema
    except BaseException:
        connection.close()
        raise


def _copied(path: Path, log: Path) -> tuple[sqlite3.Connection, int]:
    """Return what a file and its log hold together, read from copies of both: SQLite has to write beside them."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copyfile(path, copy)
        shutil.copyfile(log, f"{copy}-wal")
        connection = sqlite3.connect(copy, isolation_level=None)
        with closing(connection):
            _check_ours(connection, path)
            return _in_memory(connection, path), version(connection)


def _in_memory(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    """Return a copy with the present schema; the connection is closed."""
    copied = sqlite3.connect(":memory:", isolation_level=None)
    try:
        schema = version(connection)
        connection.backup(copied)
        copied.execute("PRAGMA trusted_schema = OFF")
        if schema < len(MIGRATIONS):
            _migrate(copied, path)
        _check_schema(copied, path)
    except BaseException:
        copied.close()
        raise
    return copied


def _connect(path: Path) -> sqlite3.Connection:
    """Return an open connection to a file that is sound and has the present schema."""
    connection = sqlite3.connect(_uri(path, "rwc"), uri=True, timeout=_BUSY_S, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        # Files of another program must stay as they are, so whose file it is comes first.
        _migrate(connection, path)
        _check_schema(connection, path)
        _use_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    _check_ours(connection, path)
    for name, (count, function) in _FUNCTIONS.items():
        connection.create_function(name, count, function, deterministic=True)
    for script in MIGRATIONS[version(connection) :]:
        for statement in script.split(";"):
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")


@cache
def _schema() -> frozenset[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        _migrate(connection, Path("memory"))
        return _found(connection)


def _found(connection: sqlite3.Connection) -> frozenset[tuple[str, ...]]:
    """Return the tables with their columns, the indexes, and all else that a file may define."""
    made = connection.execute("SELECT type, name, tbl_name FROM sqlite_master").fetchall()
    own = [tuple(map(str, m)) for m in made if not str(m[1]).startswith("sqlite_")]
    columns = (
        (*one, *(str(c[1]) for c in connection.execute("SELECT * FROM pragma_table_xinfo(?)", (one[1],)).fetchall()))
        for one in own
        if one[0] == "table"
    )
    return frozenset((*columns, *(one for one in own if one[0] != "table")))


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Raise StoreError if the file has other tables or columns, or defines views or triggers, which would run."""
    if _found(connection) != _schema():
        raise StoreError(f"{path} has not the tables of a database of looptune's: something else has changed it")


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Raise StoreError for another program's file or a later schema, sqlite3.DatabaseError for a damaged file."""
    connection.execute("PRAGMA trusted_schema = OFF")
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
    """Change the journal to WAL mode.

    This needs exclusive access to the file and does not wait for it, so it is tried again.
    """
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
    return any(said in str(error) for said in ("not a database", "malformed", "no such table", "no such column"))


def _move_aside(path: Path) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%S")
    aside = _free(Path(f"{path}.corrupt-{stamp}"))
    for suffix in ("", "-wal", "-shm"):
        file = Path(f"{path}{suffix}")
        if file.exists():
            file.rename(f"{aside}{suffix}")
    return aside


def _free(path: Path) -> Path:
    """Return a path like this one that names nothing yet."""
    found, count = path, 1
    while found.exists():
        count += 1
        found = Path(f"{path}-{count}")
    return found
