"""Kernel Launcher wisdom 1.0: for a kernel and its type, of each device and size the best few.

Kernel Launcher looks for a key in the file of that name: ``gemm_float32`` in ``gemm_float32.wisdom``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from looptune.report.formats import entries
from looptune.tune.parameters import sheet
from looptune.tune.searched import Search
from looptune.version import __version__

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
    values = [[next(rows) for _ in search.entries] for search in searches]
    records = [r for search, own_rows in zip(searches, values, strict=True) for r in _records(search, own_rows)]
    return "".join(json.dumps(line) + "\n" for line in (header, *records))


def _records(search: Search, rows: Sequence[Sequence[Any]]) -> Iterator[dict[str, Any]]:
    context = search.context
    capability = re.sub(r"\D", "", context.capability)
    timed = [(ms, k) for k, entry in enumerate(search.entries) if (ms := entries.median_ms(entry)) is not None]
    # Directives that lead to the same source are one version: the first of them stands for it.
    first = {search.entries[k].measured.source: (ms, k) for ms, k in sorted(timed, reverse=True)}
    for median_ms, k in sorted(first.values())[:BEST]:
        entry = search.entries[k]
        yield {
            "config": list(rows[k]),
            "problem_size": entries.lengths(search),
            "time": median_ms,
            "environment": {
                "date": entries.begun(entry), "device_name": context.device, "looptune_version": __version__,
                **({"compute_capability": int(capability)} if capability else {}),
            },
            "looptune": entries.extras(entry) | {"sizes": json.loads(context.sizes), "target": context.target},
        }  # fmt: skip
