"""T1 problem JSON, schema 1.0.0: the searched space, and the kernel as far as the format can describe it.

The parameters' values are texts that hold Python lists, the conditions Python expressions. The block ``looptune`` has
the directives of every configuration; ``looptune run --space`` reads those. No other tool can build the kernel: with
the cache file of the same search, Kernel Tuner replays it.

A T1 problem is read as a space file if its parameters are directives:

    {"Name": "loop k", "Type": "string", "Values": "['', 'unroll 2']"}   ──▶   loop k: { | unroll 2 }
    {"Parameters": ["loop k"], "Expression": "unroll(k) <= 4"}           ──▶   where unroll(k) <= 4

A parameter is a place, and its values are directives there. A file that ``looptune export`` wrote has its
configurations in the block ``looptune``, which are the space. Parameters of another tool are refused, since their
effect on a kernel is not known.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looptune.core.errors import UsageError
from looptune.tune.formats import json_cursor, records

if TYPE_CHECKING:
    from looptune.tune.formats.json_cursor import JsonCursor
    from looptune.tune.space.parameters import Parameter, ParameterTable
    from looptune.tune.store.searches import Search

_AXES = ("X", "Y", "Z")


def text(search: Search, command: str = "") -> str:
    """Return the T1 file; ``command`` is that of the sweep, which names the C file."""
    own = records.search_parameters(search)
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
    """Return the C file of a command; a guess where there is none."""
    words = shlex.split(command)[2:]
    return next((word for word in words if word.endswith(".c")), f"{kernel}.c")


def _about(search: Search, own: ParameterTable) -> dict[str, Any]:
    return records.metadata(search, own) | {"configurations": [entry.configuration.text for entry in search.entries]}


_PLACE = re.compile(r"((?:loop|nest)\s+[\w.]+(?:\s*,\s*[\w.]+)*|codelet)")
_MOST = 100_000
"""Characters of a parameter's values."""


def space_text(path: Path, text: str) -> str:
    """Return the equivalent space file. Raises UsageError if the file is no T1 problem, or one of another tool."""
    file = json_cursor.parse(path, text)
    if not isinstance(file.value, dict) or "ConfigurationSpace" not in file.value:
        raise UsageError(
            f"{path} is not a search space: expected a T1 problem with a ConfigurationSpace, or a space file"
        )
    about = file.get("looptune")
    listed = None if about is None else about.get("configurations")
    if listed is not None:
        return "\nor\n".join(configuration.text() for configuration in listed.items())
    space = file.at("ConfigurationSpace")
    lines = [_line(parameter) for parameter in space.at("TuningParameters").items()]
    conditions = space.get("Conditions")
    wheres = [] if conditions is None else [_where(condition) for condition in conditions.items()]
    return "\n".join((*lines, *wheres))


def _line(parameter: JsonCursor) -> str:
    name = parameter.at("Name")
    if not _PLACE.fullmatch(name.text()):
        raise UsageError(
            f"{name.file}: {name.path}: `{name.value}` is not a directive of looptune, so this is the space of another "
            "kernel: a parameter is `loop NAME`, `nest NAME` or `codelet`, its values are directives"
        )
    values = list(_values(parameter.at("Values")))
    return f"{name.value}: {{ {' | '.join(values)} }}" if len(values) > 1 else f"{name.value}: {values[0]}"


def _values(values: JsonCursor) -> Iterator[str]:
    text = values.text()
    try:
        held = ast.literal_eval(text) if len(text) <= _MOST else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        held = None
    if not isinstance(held, list | tuple) or not held:
        raise values.error("a text that holds a Python list of directives, such as \"['', 'unroll 4']\"")
    for value in held:
        if not isinstance(value, str) or re.search(r"[{}|#\n\r]", value):
            raise values.error(f"directives as values, one line each, not {value!r}")
        yield value


def _where(condition: JsonCursor) -> str:
    expression = condition.at("Expression")
    if re.search(r"[#\n\r]", expression.text()):
        raise expression.error("a condition of one line, such as `unroll(k) <= 4`")
    return f"where {expression.value}"
