"""Kernel Launcher wisdom 1.0: for a kernel and its type, of each device and size the best few.

Kernel Launcher looks for a key in the file of that name: ``gemm_float32`` in ``gemm_float32.wisdom``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from looptune.core.version import __version__
from looptune.tune.formats import records as entries
from looptune.tune.space.parameters import Values, sheet
from looptune.tune.store.searches import Entry, Search

BEST = 5


def key(search: Search) -> str:
    """What Kernel Launcher would call it: the kernel and its type, in characters that a file name may have."""
    return re.sub(r"[^\w.-]", "_", f"{search.context.kernel}_{search.context.dtype}", flags=re.ASCII)


def text(searches: Sequence[Search]) -> str:
    """The file; the searches are of one key."""
    own = sheet([entry.configuration for search in searches for entry in search.entries])
    first = searches[0].context
    about = {
        "version": __version__, "name": f"{first.kernel} {first.dtype}", "kernel": first.kernel,
        "parameters": {parameter.name: parameter.axis for parameter in own.parameters},
    }  # fmt: skip
    header = {
        "version": "1.0", "objective": "time", "tunable_parameters": list(own.names), "key": key(searches[0]),
        "looptune": about,
    }  # fmt: skip
    rows = iter(own.rows)
    groups: dict[tuple[str, tuple[int, ...]], list[_Timed]] = {}
    for search in searches:
        group = groups.setdefault((search.context.device, tuple(entries.lengths(search))), [])
        group += [t for e in search.entries if (t := _timed(search, e, next(rows))) is not None]
    records = [_record(timed) for group in groups.values() for timed in _best(group)]
    return "".join(json.dumps(line) + "\n" for line in (header, *records))


@dataclass(frozen=True, slots=True)
class _Timed:
    search: Search
    entry: Entry
    values: Values
    median_ms: float


def _timed(search: Search, entry: Entry, values: Values) -> _Timed | None:
    median_ms = entries.median_ms(entry)
    return None if median_ms is None else _Timed(search, entry, values, median_ms)


def _best(group: Sequence[_Timed]) -> list[_Timed]:
    """Directives that lead to the same source are one version: the first of them stands for it."""
    unique: dict[str, _Timed] = {}
    for timed in group:
        unique.setdefault(timed.entry.measured.source, timed)
    return sorted(unique.values(), key=lambda timed: timed.median_ms)[:BEST]


def _record(timed: _Timed) -> dict[str, Any]:
    context = timed.search.context
    capability = re.sub(r"\D", "", context.capability, flags=re.ASCII)
    return {
        "config": list(timed.values),
        "problem_size": entries.lengths(timed.search),
        "time": timed.median_ms,
        "environment": {
            "date": entries.begun(timed.entry), "device_name": context.device, "looptune_version": __version__,
            **({"compute_capability": int(capability)} if capability else {}),
        },
        "looptune": entries.extras(timed.entry) | {"sizes": json.loads(context.sizes), "target": context.target},
    }  # fmt: skip
