"""Operations on a whole database: merge others into it, remove rows from it.

    merge   of two rows of one key, a finished one is preferred, then the newer one; the same holds for results
    prune   rows that meet every condition, and the duplicates of those; a result when its context has no row left

Rows that a living process is running are never changed. Each operation is one transaction.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from looptune.core.errors import UsageError
from looptune.tune.store import owner
from looptune.tune.store.connection import refusals
from looptune.tune.store.store import Store

_COLUMNS = "key, context, kernel, status, owner, sweep"
_OF = "substr(context, 1, 32)"
"""The context of a result: of what it is stored under, the hash, behind which an objective may stand."""
_SCREENED = f"""
    role IN ('version', 'ablation') AND context IN (SELECT {_OF} FROM results)
    AND (role = 'ablation' OR (kernel, directives) NOT IN (
        SELECT kernel, directives FROM runs WHERE role IN ('final', 'energy')
    ))
    AND key NOT IN (SELECT same_as FROM runs WHERE role = 'default' AND same_as IS NOT NULL)
"""
_DAY_S = 86400.0
_SECONDS = (("d", _DAY_S), ("w", 7 * _DAY_S), ("h", 3600.0), ("m", 60.0))


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """The numbers of rows of a merge.

    ``new``; ``replaced`` (here older or unfinished); ``existing`` (here equally new or newer); ``running`` (left out,
    since a process here or there is running them).
    """

    new: int
    replaced: int
    existing: int
    running: int


@dataclass(frozen=True, slots=True)
class PruneFilter:
    """The conditions on the rows to remove; a row has to meet all that are given.

    ``classes``: outcomes, none for any; ``before``: begun earlier, in seconds since 1970; ``screened``: if a sweep has
    a result, versions that took part in no finals of their kernel, on this or another device, and measurements for an
    ablation, which the result contains.
    """

    kernel: str | None = None
    device: str | None = None
    lowering: str | None = None
    classes: tuple[str, ...] = ()
    before: float | None = None
    screened: bool = False

    @property
    def empty(self) -> bool:
        return self == PruneFilter()


def merge(store: Store, other: Store) -> MergeCounts:
    """Take the rows of ``other`` into ``store``."""
    if store.path.resolve() == other.path.resolve():
        raise UsageError(f"{other.path} cannot be merged into itself")
    counts: Counter[str] = Counter()
    with refusals(other.path):
        sweeps = [tuple(record) for record in other.connection.execute("SELECT sweep, command, started FROM sweeps")]
    with store.transaction() as db, refusals(other.path):
        number = db.execute("SELECT coalesce(max(number), 0) FROM runs").fetchone()[0]
        for record in other.connection.execute("SELECT * FROM runs ORDER BY number"):
            theirs = dict(record)
            what = _taken(theirs, db.execute("SELECT * FROM runs WHERE key = ?", (theirs["key"],)).fetchone())
            counts[what] += 1
            if what in ("new", "replaced"):
                number += 1
                theirs["number"] = number
                marks = ", ".join(f":{name}" for name in theirs)
                db.execute(f"INSERT OR REPLACE INTO runs ({', '.join(theirs)}) VALUES ({marks})", theirs)
        db.executemany("INSERT OR IGNORE INTO sweeps VALUES (?, ?, ?)", sweeps)
        _merge_conclusions(db, other.connection)
    return MergeCounts(counts["new"], counts["replaced"], counts["kept"], counts["running"])


def _merge_conclusions(db: sqlite3.Connection, other: sqlite3.Connection) -> None:
    """Copy the conclusions of another database that are newer than those here."""
    theirs = [tuple(r) for r in other.execute("SELECT context, sweep, record, finished FROM results")]
    db.executemany(
        "INSERT INTO results VALUES (?, ?, ?, ?) ON CONFLICT (context) DO UPDATE SET sweep = excluded.sweep, "
        "record = excluded.record, finished = excluded.finished WHERE excluded.finished > results.finished",
        theirs,
    )


def _taken(theirs: dict[str, object], ours: sqlite3.Row | None) -> str:
    """Return what becomes of a row of another database: a field of Merged."""
    if _runs(theirs["status"], theirs["owner"]) or (ours is not None and _runs(ours["status"], ours["owner"])):
        return "running"
    if ours is None:
        return "new"
    return "replaced" if _rank(theirs["finished"]) > _rank(ours["finished"]) else "kept"


def _rank(finished: object) -> float:
    """Return the rank of a row in time; unfinished rows, the traces of crashes, come before all others."""
    return float(finished) if isinstance(finished, int | float) else -1.0


def _runs(status: object, token: object) -> bool:
    return status == "running" and owner.is_alive(str(token))


def prune(store: Store, condition: PruneFilter, *, dry_run: bool = False) -> dict[tuple[str, str], int]:
    """Remove the rows that meet the conditions, and return how many of each kernel and class there were.

    With ``dry_run`` nothing is removed.
    """
    assert not condition.empty, "a condition says what to remove"
    removed: Counter[tuple[str, str]] = Counter()
    with store.transaction() as db:
        going = {r["key"]: r for r in _meeting(db, condition)}
        same = db.execute(f"SELECT {_COLUMNS}, same_as FROM runs WHERE same_as IS NOT NULL").fetchall()
        going |= {r["key"]: r for r in same if r["same_as"] in going}
        removed.update((r["kernel"], _status(r)) for r in going.values())
        if not dry_run:
            db.executemany("DELETE FROM runs WHERE key = ?", [(key,) for key in going])
            # A sweep that has just begun has no rows yet: only those go that have lost theirs.
            emptied = [(sweep,) for sweep in sorted({r["sweep"] for r in going.values()})]
            db.executemany("DELETE FROM sweeps WHERE sweep = ?1 AND ?1 NOT IN (SELECT sweep FROM runs)", emptied)
            forgotten = [(context,) for context in {r["context"] for r in going.values()}]
            db.executemany(f"DELETE FROM results WHERE {_OF} = ?1 AND ?1 NOT IN (SELECT context FROM runs)", forgotten)
    if removed and not dry_run:
        _shrink(store)
    return dict(removed)


def _meeting(db: sqlite3.Connection, c: PruneFilter) -> list[sqlite3.Row]:
    equal = {"kernel": c.kernel, "device": c.device, "lowering": c.lowering}
    given = {name: value for name, value in equal.items() if value is not None}
    where = " AND ".join(
        [
            *(f"{name} = :{name}" for name in given),
            *(["started < :before"] if c.before is not None else []),
            *([_SCREENED] if c.screened else []),
        ]
    )
    found = db.execute(f"SELECT {_COLUMNS} FROM runs WHERE {where or '1'}", {**given, "before": c.before}).fetchall()
    return [r for r in found if not _runs(r["status"], r["owner"]) and (not c.classes or _status(r) in c.classes)]


def _status(record: sqlite3.Row) -> str:
    """Return a row left running by a process that is gone is that process's crash."""
    return "crashed" if record["status"] == "running" else str(record["status"])


def _shrink(store: Store) -> None:
    """Give the room back to the file system, unless another process has the file open for reading or writing."""
    db = store.connection
    db.execute("PRAGMA busy_timeout = 0")
    try:
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            with refusals(store.path):
                raise


def age_s(text: str) -> float:
    """Return the seconds of ``30d``, ``2w``, ``12h`` or ``90m``. Raises UsageError for anything else.

    >>> age_s("2w"), age_s("1.5h")
    (1209600.0, 5400.0)
    """
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)\s*([wdhm])", text.strip().lower(), re.ASCII)
    if found is None:
        raise UsageError(f"invalid age `{text}`: write 30d, 2w, 12h or 90m")
    return float(found[1]) * dict(_SECONDS)[found[2]]


def before(age: str | None) -> float | None:
    """Return the time ``age`` before now."""
    return None if age is None else time.time() - age_s(age)


def size_bytes(path: Path) -> int:
    """Return the bytes on the disk, with what is not yet in the main file."""
    return sum(p.stat().st_size for p in (path, Path(f"{path}-wal")) if p.exists())


def merge_all(store: Store, others: Sequence[Path]) -> list[tuple[Path, MergeCounts]]:
    """Merge each of ``others``, all of which are opened first, so that a mistake in one changes nothing."""
    opened = [Store.read(path) for path in others]
    try:
        return [(other.path, merge(store, other)) for other in opened]
    finally:
        for other in opened:
            other.close()
