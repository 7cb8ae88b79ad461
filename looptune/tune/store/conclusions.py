"""What sweeps came to, kept beside their rows: one record for each context, the newest sweep's.

    sweep ─▶ rows ─▶ finals ─▶ conclude(store, context, sweep, record) ─▶ conclusions(store)

A record is a JSON object; what is in it is for ``tune.results.record`` to know. A context's hash holds its device, so
that two devices have two records.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from looptune.core.escape import dump_json
from looptune.core.record_check import check
from looptune.tune.store.connection import refusals

if TYPE_CHECKING:
    from looptune.tune.store.store import Context, Store


@dataclass(frozen=True, slots=True)
class Conclusion:
    """``finished``: when, in seconds since 1970."""

    sweep: str
    record: Mapping[str, object]
    finished: float


def save_conclusion(store: Store, context: Context, sweep: str, record: Mapping[str, Any]) -> None:
    """Keep ``record`` as what this context came to, in place of an earlier one."""
    with store.transaction() as db:
        db.execute(
            "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)", (context.hash, sweep, dump_json(record), time.time())
        )


def conclusions(store: Store) -> dict[str, Conclusion]:
    """Return the conclusions of the store by the hash of the context."""
    with refusals(store.path):
        found = store.connection.execute("SELECT context, sweep, record, finished FROM results").fetchall()
    with store.reading("what a sweep came to"):
        made = {context: Conclusion(sweep, json.loads(record), finished) for context, sweep, record, finished in found}
        check(made, Mapping[str, Conclusion], "the record")
    return made


def copy_newer(db: sqlite3.Connection, other: sqlite3.Connection) -> None:
    """Copy the conclusions of another database that are newer than those here."""
    theirs = [tuple(r) for r in other.execute("SELECT context, sweep, record, finished FROM results")]
    db.executemany(
        "INSERT INTO results VALUES (?, ?, ?, ?) ON CONFLICT (context) DO UPDATE SET sweep = excluded.sweep, "
        "record = excluded.record, finished = excluded.finished WHERE excluded.finished > results.finished",
        theirs,
    )


def forget(db: sqlite3.Connection, contexts: Collection[str]) -> None:
    """Without the conclusions of those ``contexts`` that have no rows left: nothing would say what they were of."""
    db.executemany(
        "DELETE FROM results WHERE context = ?1 AND ?1 NOT IN (SELECT context FROM runs)", [(c,) for c in contexts]
    )
