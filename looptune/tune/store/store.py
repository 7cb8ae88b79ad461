"""The results database: one SQLite file with one row for each configuration, written before it runs and after.

    key = hash(context, directives, role)       a row:  running ──▶ timed | cut_off | illegal | … | crashed | duplicate

A row left ``running`` by a process that has ended is read as Crashed: it names the configuration that crashed the
process or the machine, and a resumed sweep does not run it again. Several processes may share the file (WAL, BEGIN
IMMEDIATE): a row is claimed before it runs, so that no two processes run one configuration, and no process writes a row
that another is running. Rows are ordered by their numbers, whatever the clock says. A damaged file is moved aside,
never deleted, and ``warnings`` says so; a newer schema is refused, an older one migrated. StoreError says what cannot
be read or written; rows committed earlier remain. It is also raised for a cell that is not what looptune writes, when
its row is read: the contents are untrusted text, and shown as such.

If a file is deleted or replaced while a Store writes to it, the next write notices it: the contents of the Store are
copied to a new file, which the StoreError names.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

from looptune.core.errors import StoreError
from looptune.core.escape import dump_json, printable, utf8
from looptune.core.record_check import check
from looptune.runtime.outcome import CLASSES, Crashed, CutOff, Outcome, Timed, from_json, to_json
from looptune.tune.store import owner
from looptune.tune.store.connection import MIGRATIONS, FileIdentity, connect, examine, keep_copy, refusals
from looptune.tune.store.row_key import digest, row_key

if TYPE_CHECKING:
    from looptune.core.settings import Objective

Role = Literal["default", "version", "handwritten", "sequential", "library", "final", "energy", "ablation"]
FINAL_ROLES: Mapping[Objective, tuple[Role, ...]] = MappingProxyType(
    {"time": ("final", "energy"), "energy": ("energy",), "edp": ("energy",)}
)
"""The roles of the finals that decide by each objective; those by energy and by EDP are the same."""


@dataclass(frozen=True, slots=True)
class Context:
    """Everything on which a time depends except the directives.

    ``sizes`` and ``options`` are JSON objects, see ``canonical_json``.
    """

    kernel: str
    source_hash: str
    lowering: str
    toolchain: str
    capability: str
    device: str
    target: str
    sizes: str
    dtype: str
    options: str = "{}"

    @property
    def hash(self) -> str:
        return _hash(self)


@dataclass(frozen=True, slots=True)
class Row:
    """The record of one configuration; ``outcome`` is None while it runs, and for a duplicate of the row ``same_as``.

    ``emitted`` is the hash of the source that its directives led to; ``started`` and ``finished`` are seconds since
    1970.
    """

    context: Context
    directives: str
    role: Role = "version"
    sweep: str = ""
    emitted: str = ""
    status: str = "running"
    outcome: Outcome | None = None
    same_as: str | None = None
    started: float = 0.0
    finished: float | None = None

    @property
    def key(self) -> str:
        return key(self.context, self.directives, self.role)

    @property
    def median_us(self) -> float | None:
        match self.outcome:
            case Timed(median_us=median_us):
                return median_us
        return None

    @property
    def cost_us(self) -> float | None:
        """Return what a strategy is told, also of a version that was cut off; None where the version failed."""
        match self.outcome:
            case CutOff() as cut:
                return cut.cost_us
        return self.median_us


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The result of a sweep: a JSON object that ``tune.results.result`` reads; ``finished`` in seconds since 1970."""

    sweep: str
    record: Mapping[str, object]
    finished: float


_BY = "/"


def _result_key(context: str, objective: Objective) -> str:
    """Return what a result is stored under: the hash of the context, and the objective where that is not time."""
    return context if objective == "time" else f"{context}{_BY}{objective}"


# Every row of a sweep has one context.
@lru_cache(maxsize=64)
def _hash(context: Context) -> str:
    return digest(json.dumps(asdict(context), sort_keys=True))


@lru_cache(maxsize=64)
def _columns(context: Context) -> Mapping[str, str]:
    return MappingProxyType({**asdict(context), "context": context.hash})


def key(context: Context, directives: str, role: Role = "version") -> str:
    """Return the key of a row."""
    return row_key(context.hash, directives, role)


def canonical_json(values: Mapping[str, Any]) -> str:
    """Return the canonical text of sizes and options.

    >>> canonical_json({"n": 8, "m": 4})
    '{"m": 4, "n": 8}'
    """
    return json.dumps(dict(values), sort_keys=True)


class Store:
    """An open database, a context manager; ``schema`` is the version of the file, an older one if it is only read."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, schema: int, warnings: tuple[str, ...] = (),
        place: FileIdentity | None = None,
    ) -> None:  # fmt: skip
        self.path = path
        self.warnings = warnings
        self.connection = connection
        self.schema = schema
        self._owner = owner.process_token()
        self._place = place

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Return the store at ``path``, which is created if there is none."""
        path = Path(path)
        connection, warnings = connect(path)
        return cls(connection, path, len(MIGRATIONS), warnings, FileIdentity.of(path))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Return the existing store at ``path`` for reading only; the file does not change."""
        path = Path(path)
        connection, schema = examine(path)
        return cls(connection, path, schema)

    @classmethod
    def change(cls, path: str | Path, *, create: bool = False) -> Self:
        """Return the store at ``path`` for changes.

        Raises StoreError if it is damaged, or missing unless ``create``.
        """
        path = Path(path)
        connection, warnings = connect(path, create=create, repair=False)
        return cls(connection, path, len(MIGRATIONS), warnings, FileIdentity.of(path))

    def close(self) -> None:
        """Close the file. Raises StoreError where it is no longer there; what was in it is kept in another."""
        try:
            self._check_there()
        finally:
            self.connection.close()

    def _check_there(self) -> None:
        """Raise StoreError if the path no longer names the file that is open."""
        if self._place is None or self._place.is_at(self.path):
            return
        kept, self._place = keep_copy(self.connection, self.path), None
        raise StoreError(
            f"{self.path} was deleted or replaced while it was in use: the measurements are saved in {kept}; "
            f"`looptune db merge {kept} --db {self.path}` takes it in"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def register_command(self, sweep: str, command: str) -> None:
        """Keep the command that measures what a sweep measures, without directives: rows name their sweep."""
        with self.transaction() as db:
            db.execute("INSERT OR IGNORE INTO sweeps VALUES (?, ?, ?)", (sweep, utf8(command), time.time()))

    def commands(self) -> dict[str, str]:
        """Return the shell command of each sweep."""
        with refusals(self.path):
            found = dict(self.connection.execute("SELECT sweep, command FROM sweeps").fetchall())
        with self.reading("a sweep"):
            check(found, Mapping[str, str], "the command")
            for command in found.values():
                shlex.split(command)
        return found

    def save_conclusion(
        self, context: Context, sweep: str, record: Mapping[str, Any], objective: Objective = "time"
    ) -> None:
        """Store ``record`` as the result of the sweep of this context, in place of an earlier one of this objective.

        A context's hash includes its device, so that two devices have two records.
        """
        with self.transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)",
                (_result_key(context.hash, objective), sweep, dump_json(record), time.time()),
            )

    def conclusions(self, objective: Objective = "time") -> dict[str, Conclusion]:
        """Return the result of the newest sweep of each context by this objective, by the hash of the context."""
        with refusals(self.path):
            rows = self.connection.execute("SELECT context, sweep, record, finished FROM results").fetchall()
        with self.reading("what a sweep came to"):
            keys = {row[0]: row[0].partition(_BY)[0] for row in rows}
            found = {
                keys[key]: Conclusion(sweep, json.loads(record), finished)
                for key, sweep, record, finished in rows
                if key == _result_key(keys[key], objective)
            }
            check(found, Mapping[str, Conclusion], "the record")
        return found

    @contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Yield, with errors in a record turned into a StoreError that names ``what`` it is about."""
        try:
            yield
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            said = " ".join(str(error).split())
            raise StoreError(
                f"{self.path}: {what} is not as looptune writes it: {printable(said)[:200]}; it is damaged or was "
                "changed by something else"
            ) from error

    def begin(self, row: Row) -> str:
        """Write ``row`` as running, to the disk itself: it has to survive the crash it may be about to cause."""
        with self.transaction(sync=True):
            self._write(_running(row))
        return row.key

    def claim(self, row: Row, *, fresh: bool = False, whole: bool = False) -> Row | None:
        """Begin ``row``, or return the row of the same configuration or source that prevents it.

        A row prevents it if another living process is running it or, unless ``fresh``, if it has an outcome; but not if
        that is cut off and ``row`` is to be measured ``whole``.
        """
        where = "key = :key OR (context = :context AND emitted = :emitted AND emitted <> '')"
        values = {"key": row.key, "context": row.context.hash, "emitted": row.emitted}
        with self.transaction(sync=True) as db:
            for record in db.execute(f"SELECT * FROM runs WHERE {where} ORDER BY number", values).fetchall():
                other = self._row(dict(record))
                elsewhere = other.status == "running" and record["owner"] != self._owner
                stands = not whole or other.status != "cut_off"
                if elsewhere or (other.outcome is not None and not fresh and stands):
                    return other
            self._write(_running(row))
        return None

    def finish(self, key: str, outcome: Outcome) -> None:
        """Store the outcome of a row that was started."""
        median_us = outcome.median_us if isinstance(outcome, Timed) else None
        with self.transaction() as db:
            db.execute(
                "UPDATE runs SET status = ?, outcome = ?, median_us = ?, finished = ? WHERE key = ?",
                (outcome.status, to_json(outcome), median_us, time.time(), key),
            )

    def record(self, row: Row, outcome: Outcome) -> None:
        """Store a row and its outcome at once, for a version that never ran on the device."""
        now = time.time()
        self._keep(replace(row, status=outcome.status, outcome=outcome, started=now, finished=now))

    def record_duplicate(self, row: Row, first: str) -> None:
        """Store a row that leads to the same source as the row with key ``first``."""
        now = time.time()
        self._keep(replace(row, status="duplicate", outcome=None, same_as=first, started=now, finished=now))

    def abandon(self, key: str) -> None:
        """Forget a row that was begun and stopped on purpose: it is no crash."""
        with self.transaction() as db:
            db.execute("DELETE FROM runs WHERE key = ? AND status = 'running' AND owner = ?", (key, self._owner))

    def lookup(self, keys: Iterable[str]) -> dict[str, Row]:
        """Return the rows for ``keys``, except for those that another living process is running."""
        found = (self._select("key = ?", (one,)) for one in keys)
        return {row.key: row for rows in found for row in rows if row.status != "running"}

    def versions(self, context: Context, emitted: str) -> list[Row]:
        """Return the finished rows whose directives led to this source, without duplicates, earliest first."""
        where = "context = ? AND emitted = ? AND status <> 'duplicate' ORDER BY number"
        return [row for row in self._select(where, (context.hash, emitted)) if row.status != "running"]

    def rows(self, **equal: str) -> Iterator[Row]:
        """Yield the rows whose columns equal these, in the order started (``kernel="gemm", status="timed"``)."""
        unknown = (
            equal.keys() - {f.name for f in fields(Context)} - {"directives", "role", "sweep", "emitted", "status"}
        )
        assert not unknown, f"no columns {unknown}"
        where = " AND ".join(f"{name} = ?" for name in equal)
        return self._select(f"{where if where else '1'} ORDER BY number", tuple(equal.values()))

    def _select(self, where: str, values: tuple[Any, ...]) -> Iterator[Row]:
        with refusals(self.path):
            for record in self.connection.execute(f"SELECT * FROM runs WHERE {where}", values):
                yield self._row(dict(record))

    def _row(self, record: dict[str, Any]) -> Row:
        with self.reading(f"row {record.get('number')}"):
            return _row(record)

    def _keep(self, row: Row) -> None:
        """Write a row that never ran, unless another living process is running it: what that finds is the answer."""
        with self.transaction() as db:
            held = db.execute("SELECT owner FROM runs WHERE key = ? AND status = 'running'", (row.key,)).fetchone()
            if held is None or held["owner"] == self._owner or not owner.is_alive(held["owner"]):
                self._write(row)

    def _write(self, row: Row) -> None:
        record = {
            **_columns(row.context),
            "key": row.key,
            "directives": row.directives,
            "role": row.role,
            "sweep": row.sweep,
            "emitted": row.emitted,
            "status": row.status,
            "outcome": None if row.outcome is None else to_json(row.outcome),
            "same_as": row.same_as,
            "median_us": row.median_us,
            "owner": self._owner,
            "started": row.started,
            "finished": row.finished,
        }
        marks = ", ".join(f":{name}" for name in record)
        last = "(SELECT coalesce(max(number), 0) FROM runs)"
        self.connection.execute(
            f"INSERT OR REPLACE INTO runs ({', '.join(record)}, number) VALUES ({marks}, {last} + 1)", record
        )

    @contextmanager
    def transaction(self, *, sync: bool = False) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction; inside another transaction it is a part of that one.

        ``sync``: the data are on the disk itself when it ends, not merely with the system.
        """
        db = self.connection
        if db.in_transaction:
            assert not sync, "what has to reach the disk is a transaction of its own"
            yield db
            return
        self._check_there()
        with refusals(self.path):
            if sync:
                db.execute("PRAGMA synchronous = FULL")
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                if sync:
                    db.execute("PRAGMA synchronous = NORMAL")


def _running(row: Row) -> Row:
    return replace(row, status="running", outcome=None, same_as=None, started=time.time(), finished=None)


_LAST_S = 253402300799.0
"""The end of the year 9999, behind which there are no dates."""
_STATUSES = (*CLASSES, "running", "duplicate")
_NAMES = ("kernel", "source_hash", "lowering", "capability", "device", "target", "dtype")


def _row(record: dict[str, Any]) -> Row:
    """Return the row of a record. Raises ValueError, TypeError or KeyError for a record that looptune does not write.

    Raises ValueError, TypeError or KeyError for a record that looptune does not write.
    """
    context = _context(*(record[f.name] for f in fields(Context)))
    outcome = None if record["outcome"] is None else _outcome(record["outcome"])
    status = record["status"]
    check(record["owner"], str, "owner")
    check((record["started"], record["finished"]), tuple[float, float | None], "the time of the row")
    for name in ("started", "finished"):
        if record[name] is not None and not 0 <= record[name] <= _LAST_S:
            raise ValueError(f"{name} is {record[name]}")
    if status not in _STATUSES or (outcome is not None and status != outcome.status):
        raise ValueError(f"status is {status!r}")
    if (outcome is None) != (status in ("running", "duplicate")):
        raise ValueError(f"{status} without an outcome" if outcome is None else f"{status} with an outcome")
    if status == "running" and not owner.is_alive(record["owner"]):
        outcome = Crashed("the process died while this ran")
        status = outcome.status
    names = ("directives", "role", "sweep", "emitted", "same_as", "started", "finished")
    row = Row(context, **{name: record[name] for name in names}, status=status, outcome=outcome)
    check(row, Row, "the row")
    _check_shown(row.directives.replace("\n", " "), "directives")
    return row


# Of a sweep's rows nearly all have one context.
@lru_cache(maxsize=64)
def _context(*parts: str) -> Context:
    context = Context(*parts)
    check(context, Context, "the context")
    for name in _NAMES:
        _check_shown(getattr(context, name), name)
    sizes, options = json.loads(context.sizes), json.loads(context.options)
    check(sizes, Mapping[str, int | float], "sizes")
    check(options, Mapping[str, int | float | bool | str | None], "options")
    check(options.get("cores", 0), int, "cores")
    for text in (*sizes, *options, *(v for v in options.values() if isinstance(v, str))):
        _check_shown(text, "a name among sizes and options")
    return context


def _check_shown(text: str, name: str) -> None:
    """Raise ValueError if a text contains terminal escape sequences."""
    if not text.replace("\t", " ").isprintable():
        raise ValueError(f"{name} is {text!r}")


def _outcome(text: Any) -> Outcome:
    check(text, str, "outcome")
    outcome = from_json(text)
    check(outcome, type(outcome), "outcome")
    if isinstance(outcome, Timed) and not outcome.times_us:
        raise ValueError("timed without a time")
    return outcome


def iso_time(since_1970_s: float) -> str:
    """Return the time in ISO 8601, in UTC."""
    return datetime.fromtimestamp(since_1970_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
