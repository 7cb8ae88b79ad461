"""The contents of a results database: a summary, and every row as CSV or JSON lines."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO

from looptune.report.failure_table import heading
from looptune.report.result_table import time_text
from looptune.runtime.outcome import CLASSES, Timed
from looptune.tune.store.searches import VERSIONS, Search, by_context, seconds
from looptune.tune.store.store import Context, Row, iso_time

if TYPE_CHECKING:
    from looptune.tune.store.store import Conclusion

NOTHING: Mapping[str, Conclusion] = MappingProxyType({})


def parts(rows: Iterable[Row]) -> list[Search]:
    """Return the versions by context, with kernels in alphabetical order."""
    found = by_context(row for row in rows if row.role in VERSIONS)
    return sorted(found, key=lambda s: (s.context.kernel, s.context.device, s.context.sizes, s.started))


def text(part: Search) -> str:
    """Return three lines on a part of a database: what it is, the counts by outcome, the best."""
    found = Counter(row.status for row in part.rows)
    counts = ", ".join(f"{found[s]} {s.replace('_', ' ')}" for s in STATUSES if found[s])
    lines = [f"{heading(part.context)}, lowering {part.context.lowering}, {iso_time(part.started)}", f"  {counts}"]
    best = part.fastest
    if best is not None and best.median_us is not None:
        how = "; ".join(best.directives.splitlines())
        lines.append(f"  best {time_text(best.median_us)}: {how if how else '(default)'}")
    return "\n".join(lines)


def record(part: Search) -> dict[str, Any]:
    """Return a part of a database as a JSON object."""
    c, best = part.context, part.fastest
    return {
        "kernel": c.kernel, "device": c.device, "target": c.target, "dtype": c.dtype, "sizes": json.loads(c.sizes),
        "lowering": c.lowering, "counts": dict(Counter(row.status for row in part.rows)),
        "newest": iso_time(part.started), "best_us": None if best is None else best.median_us,
        "directives": None if best is None else best.directives,
    }  # fmt: skip


STATUSES = (*CLASSES, "duplicate", "running")
CONTEXT = tuple(f.name for f in fields(Context))
COLUMNS = (
    "key", "kernel", "target", "device", "capability", "dtype", "sizes", "options", "role", "status", "median_us",
    "q1_us", "q3_us", "cost_us", "seconds", "directives", "message", "emitted", "same_as", "sweep", "started",
    "finished", "lowering", "toolchain", "source_hash",
)  # fmt: skip


def write_csv(rows: Iterable[Row], out: TextIO) -> None:
    """Write one CSV line per row, with the fields of COLUMNS. Times are UTC, and texts of several lines are quoted.

    ``cost_us`` is what a search is told, of a version that was cut off as well; ``seconds`` compiling and measuring.
    """
    plain = csv.writer(out, lineterminator="\n")
    quoted = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    plain.writerow(COLUMNS)
    for flat in map(_flat, rows):
        values = ["" if flat[name] is None else flat[name] for name in COLUMNS]
        # The writer quotes no carriage return by itself, and every reader takes one for the end of a line.
        (quoted if any("\r" in str(value) for value in values) else plain).writerow(values)


def write_lines(rows: Iterable[Row], out: TextIO, concluded: Mapping[str, Conclusion] = NOTHING) -> None:
    """Write one JSON object per row, with the complete outcome: every run and all other evidence.

    Then one for each context of these rows that came to a conclusion, whose role is ``result``.
    """
    contexts: dict[str, None] = {}
    for row in rows:
        contexts[row.context.hash] = None
        within = ("q1_us", "q3_us", "cost_us", "seconds", "message")
        own = {name: value for name, value in _flat(row).items() if name not in within}
        whole = own | {name: json.loads(own[name]) for name in ("sizes", "options")}
        outcome = None if row.outcome is None else {"status": row.outcome.status, **asdict(row.outcome)}
        out.write(json.dumps(whole | {"outcome": outcome}) + "\n")
    for context, one in ((c, concluded[c]) for c in contexts if c in concluded):
        known = {"role": "result", "context": context, "sweep": one.sweep, "finished": iso_time(one.finished)}
        out.write(json.dumps(known | {"record": one.record}) + "\n")


def _flat(row: Row) -> dict[str, Any]:
    quartiles: tuple[float | None, float | None] = (None, None)
    message: str | None = None
    match row.outcome:
        case Timed(q1_us=q1, q3_us=q3):
            quartiles = q1, q3
        case None:
            pass
        case failed:
            message = failed.message
    return {
        **asdict(row.context), "key": row.key, "role": row.role, "status": row.status, "median_us": row.median_us,
        "q1_us": quartiles[0], "q3_us": quartiles[1], "cost_us": row.cost_us, "seconds": seconds(row),
        "directives": row.directives, "message": message,
        "emitted": row.emitted, "same_as": row.same_as, "sweep": row.sweep, "started": iso_time(row.started),
        "finished": None if row.finished is None else iso_time(row.finished),
    }  # fmt: skip


def sizes_text(size_bytes: int) -> str:
    """Return a size in bytes as text.

    >>> sizes_text(500), sizes_text(2_500_000)
    ('500 B', '2.5 MB')
    """
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size_bytes >= limit:
            return f"{size_bytes / limit:.3g} {unit}"
    return f"{size_bytes} B"


def removed_text(removed: dict[tuple[str, str], int]) -> Iterator[str]:
    """Yield the removed rows of each kernel by status: ``gemm: 3 crashed, 1 duplicate``."""
    for kernel in sorted({kernel for kernel, _ in removed}):
        own = {status: n for (k, status), n in removed.items() if k == kernel}
        said = ", ".join(f"{own[s]} {s.replace('_', ' ')}" for s in STATUSES if s in own)
        yield f"{kernel}: {said}"
