"""The results database: one SQLite file, one row a configuration, written before it runs and after.

    key = hash(context, directives, role)       a row:  running ──▶ timed | illegal | … | crashed | duplicate

A row left ``running`` by a process that is gone reads as Crashed: it names the configuration that took the process or
the machine down, and a resumed sweep does not run it again. Several processes may share the file (WAL, BEGIN
IMMEDIATE). A damaged file is moved aside, never deleted, and ``warnings`` says so; a newer schema is refused, an older
one migrated. StoreError says what cannot be read or written; rows committed earlier stay.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, Self

from looptune.runtime.outcome import Crashed, Outcome, Timed, from_json, to_json
from looptune.tune import owner
from looptune.tune.database import connect, refusals

Role = Literal["default", "version", "handwritten", "sequential", "library", "final"]


@dataclass(frozen=True, slots=True)
class Context:
    """All that a time depends on besides the directives. ``sizes`` and ``options`` are JSON objects, see ``packed``."""

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
        return _digest(json.dumps(asdict(self), sort_keys=True))


@dataclass(frozen=True, slots=True)
class Row:
    """One configuration's record. ``outcome`` is None while it runs and for a duplicate of the row ``same_as``.

    ``emitted`` is the hash of the source its directives led to; ``started`` and ``finished`` are seconds since 1970.
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


def key(context: Context, directives: str, role: Role = "version") -> str:
    """A default run is the version without directives: both have one key."""
    kind = "version" if role == "default" else role
    return _digest(json.dumps([context.hash, directives, kind]))


def packed(values: Mapping[str, Any]) -> str:
    """The canonical text of sizes and options.

    >>> packed({"n": 8, "m": 4})
    '{"m": 4, "n": 8}'
    """
    return json.dumps(dict(values), sort_keys=True)


class Store:
    """An open database; a context manager."""

    def __init__(self, connection: sqlite3.Connection, path: Path, warnings: tuple[str, ...] = ()) -> None:
        self.path = path
        self.warnings = warnings
        self._db = connection
        self._owner = owner.token()

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """The store at ``path``, made where there is none."""
        path = Path(path)
        connection, warnings = connect(path)
        return cls(connection, path, warnings)

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def begin(self, row: Row) -> str:
        """Write ``row`` as running, to the disk itself: it has to survive the crash it may be about to cause."""
        self._write(
            replace(row, status="running", outcome=None, same_as=None, started=time.time(), finished=None), sync=True
        )
        return row.key

    def finish(self, key: str, outcome: Outcome) -> None:
        """The outcome of a row that was begun."""
        median_us = outcome.median_us if isinstance(outcome, Timed) else None
        with self._transaction():
            self._db.execute(
                "UPDATE runs SET status = ?, outcome = ?, median_us = ?, finished = ? WHERE key = ?",
                (outcome.status, to_json(outcome), median_us, time.time(), key),
            )

    def record(self, row: Row, outcome: Outcome) -> None:
        """A row and its outcome at once, for what never ran on the device."""
        now = time.time()
        self._write(replace(row, status=outcome.status, outcome=outcome, started=now, finished=now), sync=False)

    def record_duplicate(self, row: Row, first: str) -> None:
        """``row`` leads to the same source as the row with key ``first``."""
        now = time.time()
        self._write(
            replace(row, status="duplicate", outcome=None, same_as=first, started=now, finished=now), sync=False
        )

    def abandon(self, key: str) -> None:
        """Forget a row that was begun and stopped on purpose: it is no crash."""
        with self._transaction():
            self._db.execute("DELETE FROM runs WHERE key = ? AND status = 'running'", (key,))

    def lookup(self, keys: Iterable[str]) -> dict[str, Row]:
        """The rows there are for ``keys``; those that another living process is running are not answers yet."""
        found = (self._select("key = ?", (one,)) for one in keys)
        return {row.key: row for rows in found for row in rows if row.status != "running"}

    def versions(self, context: Context, emitted: str) -> list[Row]:
        """The finished rows whose directives led to this source, duplicates left out, earliest first."""
        where = "context = ? AND emitted = ? AND status <> 'duplicate' ORDER BY started, key"
        return [row for row in self._select(where, (context.hash, emitted)) if row.status != "running"]

    def rows(self, **equal: str) -> Iterator[Row]:
        """The rows whose columns equal these (``kernel="gemm", status="timed"``), in the order they were started."""
        unknown = (
            equal.keys() - {f.name for f in fields(Context)} - {"directives", "role", "sweep", "emitted", "status"}
        )
        assert not unknown, f"no columns {unknown}"
        where = " AND ".join(f"{name} = ?" for name in equal)
        return self._select(
            f"{where} ORDER BY started, key" if where else "1 ORDER BY started, key", tuple(equal.values())
        )

    def best(self, kernel: str, device: str, **equal: str) -> Row | None:
        """The fastest timed default or version of this kernel on this device; further columns narrow it."""
        allowed = equal.keys() <= {f.name for f in fields(Context)}
        assert allowed, f"no columns of a context: {sorted(equal)}"
        narrowed = "".join(f" AND {name} = ?" for name in equal)
        where = (
            "kernel = ? AND device = ? AND median_us IS NOT NULL AND role IN ('default', 'version')"
            f"{narrowed} ORDER BY median_us, key LIMIT 1"
        )
        return next(self._select(where, (kernel, device, *equal.values())), None)

    def _select(self, where: str, values: tuple[Any, ...]) -> Iterator[Row]:
        with refusals(self.path):
            for record in self._db.execute(f"SELECT * FROM runs WHERE {where}", values):
                yield _row(dict(record))

    def _write(self, row: Row, *, sync: bool) -> None:
        record = asdict(row.context) | {
            "key": row.key,
            "context": row.context.hash,
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
        with self._transaction(sync=sync):
            self._db.execute(f"INSERT OR REPLACE INTO runs ({', '.join(record)}) VALUES ({marks})", record)

    @contextmanager
    def _transaction(self, *, sync: bool = False) -> Iterator[None]:
        with refusals(self.path):
            if sync:
                self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if sync:
                    self._db.execute("PRAGMA synchronous = NORMAL")


def _row(record: dict[str, Any]) -> Row:
    context = Context(**{f.name: record[f.name] for f in fields(Context)})
    outcome = None if record["outcome"] is None else from_json(record["outcome"])
    status = record["status"]
    if status == "running" and not owner.alive(record["owner"]):
        outcome = Crashed("the process died while this ran")
        status = outcome.status
    names = ("directives", "role", "sweep", "emitted", "same_as", "started", "finished")
    return Row(context, **{name: record[name] for name in names}, status=status, outcome=outcome)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()
