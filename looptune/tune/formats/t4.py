"""T4 results JSON, schema 1.1.0, which adds to 1.0.0: milliseconds, the median as the objective ``time``.

A version that was not timed has no runtimes and no measurement; why is its ``invalidity``. Each result has a block
``looptune`` besides, with the directives and the message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from looptune.core.version import __version__
from looptune.runtime.outcome import Timed
from looptune.tune.formats import records
from looptune.tune.store.searches import Entry, Search
from looptune.tune.store.store import moment

_APIS: Mapping[str, tuple[str, str]] = MappingProxyType({
    "numba-cuda": ("CUDA", "NVIDIA CUDA"), "cuda-c": ("CUDA", "NVIDIA CUDA"), "opencl": ("OpenCL", "OpenCL"),
})  # fmt: skip


def text(search: Search) -> str:
    """The file."""
    own = records.of(search)
    api, platform = _APIS.get(search.context.target, ("CPU", search.context.target))
    newest = max((entry.row.started for entry in search.entries), default=0.0)
    whole = {
        "schema_version": "1.1.0",
        "metadata": {
            "compute_api": api, "platform": platform, "device": search.context.device, "autotuner": "looptune",
            "autotuner_version": __version__, "timestamp": moment(newest), "timeunit": "milliseconds",
        },
        "looptune": records.about(search, own),
        "results": [_result(e, records.configuration(own, k)) for k, e in enumerate(search.entries)],
    }  # fmt: skip
    return json.dumps(whole, indent=1) + "\n"


def _result(entry: Entry, configuration: dict[str, Any]) -> dict[str, Any]:
    spent, median_ms = records.spent_ms(entry), records.median_ms(entry)
    invalidity = records.INVALIDITY[entry.row.status]
    timed = [] if median_ms is None else [{"name": "time", "value": median_ms, "unit": "ms", "type": "double"}]
    return {
        "timestamp": records.begun(entry),
        "configuration": configuration,
        "objectives": ["time"],
        "times": {
            # The schema's name, and the one that Kernel Tuner and the benchmarking methodology go by.
            "compilation_time": spent["compile"], "compilation": spent["compile"], "validation": spent["verify"],
            "framework": spent["rest"], "search_algorithm": 0.0, "runtimes": records.runs_ms(entry),
        },
        "invalidity": invalidity,
        "correctness": int(invalidity != "correctness"),
        "measurements": timed,
        "looptune": records.extras(entry) | {"message": _message(entry), "facts": entry.facts},
    }  # fmt: skip


def _message(entry: Entry) -> str:
    match entry.row.outcome:
        case None | Timed():
            return ""
        case outcome:
            return outcome.message
