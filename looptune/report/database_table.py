"""The contents of a results database: a summary, and every row as CSV or JSON lines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO

from looptune.core.si_units import time_text
from looptune.report.failure_table import heading
from looptune.runtime.outcome import CLASSES
from looptune.tune.formats import csv
from looptune.tune.store.searches import VERSIONS, Search, by_context
from looptune.tune.store.store import Row, iso_time

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


def write_lines(rows: Iterable[Row], out: TextIO, concluded: Sequence[Mapping[str, Conclusion]] = ()) -> None:
    """Write one JSON object per row, with the complete outcome: every run and all other evidence.

    Then one for each context of these rows, and each objective, that came to a conclusion; its role is ``result``.
    """
    contexts: dict[str, None] = {}
    for row in rows:
        contexts[row.context.hash] = None
        within = ("q1_us", "q3_us", "cost_us", "seconds", "message")
        own = {name: value for name, value in csv.cells(row).items() if name not in within}
        whole = own | {name: json.loads(own[name]) for name in ("sizes", "options")}
        outcome = None if row.outcome is None else {"status": row.outcome.status, **asdict(row.outcome)}
        out.write(json.dumps(whole | {"outcome": outcome}) + "\n")
    for context, one in ((c, by[c]) for c in contexts for by in concluded if c in by):
        known = {"role": "result", "context": context, "sweep": one.sweep, "finished": iso_time(one.finished)}
        out.write(json.dumps(known | {"record": one.record}) + "\n")


def removed_text(removed: dict[tuple[str, str], int]) -> Iterator[str]:
    """Yield the removed rows of each kernel by status: ``gemm: 3 crashed, 1 duplicate``."""
    for kernel in sorted({kernel for kernel, _ in removed}):
        own = {status: n for (k, status), n in removed.items() if k == kernel}
        said = ", ".join(f"{own[s]} {s.replace('_', ' ')}" for s in STATUSES if s in own)
        yield f"{kernel}: {said}"
