"""T1 problem JSON, schema 1.0.0: the space that was searched, and the kernel as far as other tools have words for it.

The parameters' values are texts that hold Python lists, the conditions Python expressions. The block ``looptune`` has
the directives of every configuration; ``looptune run --space`` reads those. No other tool can build the kernel: with
the cache file of the same search Kernel Tuner replays it.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

from looptune.tune.formats import records
from looptune.tune.space.parameters import Parameter, Sheet
from looptune.tune.store.searches import Search

_AXES = ("X", "Y", "Z")


def text(search: Search, command: str = "") -> str:
    """The file; ``command`` is the sweep's, which names the C file."""
    own = records.of(search)
    plainest = search.recording.table.parts()
    defaults = own.rows[plainest[0]] if plainest else ()
    sizes = records.lengths(search)
    blocks = [parameter.name for parameter in own.parameters if parameter.axis.startswith("blocksize")]
    whole = {
        "General": {"FormatVersion": 1, "TimeUnit": "Milliseconds", "OutputFormat": "JSON"},
        "ConfigurationSpace": {
            "TuningParameters": [_parameter(p, d) for p, d in zip(own.parameters, defaults, strict=True)],
            "Conditions": [{"Parameters": list(c.names), "Expression": c.expression} for c in own.conditions()],
        },
        "KernelSpecification": {
            "Device": {"Name": search.context.device},
            # There is no word for a CPU's loops.
            "Language": "CUDA",
            "KernelName": search.context.kernel,
            "KernelFile": _file(search.context.kernel, command),
            "ProblemSize": sizes,
            "GlobalSizeType": "CUDA",
            "GlobalSize": _extents([str(size) for size in sizes]),
            "LocalSize": _extents(blocks),
            "Arguments": [],
        },
        "Search": {"Name": "brute_force"},
        "looptune": _about(search, own),
    }
    return json.dumps(whole, indent=1) + "\n"


def _parameter(parameter: Parameter, default: object) -> dict[str, Any]:
    whole = all(isinstance(value, int) for value in parameter.values)
    kind = "string" if not parameter.numeric else "int" if whole else "float"
    return {"Name": parameter.name, "Type": kind, "Values": repr(list(parameter.values)), "Default": default}


def _extents(texts: list[str]) -> dict[str, str]:
    return dict(zip(_AXES, [*texts, "1", "1", "1"], strict=False))


def _file(kernel: str, command: str) -> str:
    """The C file of a command; a guess where there is none."""
    words = shlex.split(command)[2:]
    return next((word for word in words if word.endswith(".c")), f"{kernel}.c")


def _about(search: Search, own: Sheet) -> dict[str, Any]:
    return records.about(search, own) | {"configurations": [entry.configuration.text for entry in search.entries]}
