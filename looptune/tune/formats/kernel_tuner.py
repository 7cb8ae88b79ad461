"""A Kernel Tuner cache file: its simulation mode and dashboard read it.

The key ``restrictions``, which Kernel Tuner passes over, holds what makes its space the one that was searched:

    kernel_tuner.tune_cache("gemm.json", restrictions=json.load(open("gemm.json"))["restrictions"])
"""

from __future__ import annotations

import json
from typing import Any

from looptune.tune.formats import records
from looptune.tune.store.searches import Entry, Search


def text(search: Search) -> str:
    """The file, one line a configuration; by its last characters Kernel Tuner knows that it is whole."""
    own = records.of(search)
    head = {
        "device_name": search.context.device,
        "kernel_name": search.context.kernel,
        "problem_size": records.lengths(search),
        "tune_params_keys": list(own.names),
        "tune_params": {parameter.name: list(parameter.values) for parameter in own.parameters},
        "objective": "time",
        "restrictions": [condition.expression for condition in own.conditions()],
        "looptune": records.about(search, own),
    }
    lines = [
        json.dumps({",".join(map(str, own.rows[k])): records.configuration(own, k) | _entry(entry)})[1:-1]
        for k, entry in enumerate(search.entries)
    ]
    return json.dumps(head, indent=1)[:-2] + ',\n "cache": {\n' + ",\n".join(lines) + "\n}\n}\n"


def _entry(entry: Entry) -> dict[str, Any]:
    spent, median_ms = records.spent_ms(entry), records.median_ms(entry)
    return {
        "time": records.error(entry) if median_ms is None else median_ms,
        "times": records.runs_ms(entry),
        "compile_time": spent["compile"], "verification_time": spent["verify"], "benchmark_time": spent["rest"],
        "strategy_time": 0.0, "framework_time": 0.0, "timestamp": records.begun(entry), **records.extras(entry),
    }  # fmt: skip
