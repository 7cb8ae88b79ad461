"""A T1 problem as a space file, where its parameters are directives of ours.

    {"Name": "loop k", "Type": "string", "Values": "['', 'unroll 2']"}   ──▶   loop k: { | unroll 2 }
    {"Parameters": ["loop k"], "Expression": "unroll(k) <= 4"}           ──▶   where unroll(k) <= 4

A parameter is a place, a value the directives there. A file that ``looptune export`` wrote has its configurations in
the block ``looptune``, which are the space. What another tool's parameters do to a kernel nobody can tell: refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from looptune.core.errors import UsageError
from looptune.tune.formats import json_cursor
from looptune.tune.formats.json_cursor import Located

_PLACE = re.compile(r"((?:loop|nest)\s+[\w.]+(?:\s*,\s*[\w.]+)*|codelet)")
_MOST = 100_000
"""Characters of a parameter's values."""


def space_text(path: Path, text: str) -> str:
    """The space file that says the same; UsageError where the file is no T1 problem, or one of another tool."""
    file = json_cursor.parse(path, text)
    if not isinstance(file.held, dict) or "ConfigurationSpace" not in file.held:
        raise UsageError(f"{path} is no space: expected a T1 problem with a ConfigurationSpace, or a space file")
    about = file.get("looptune")
    listed = None if about is None else about.get("configurations")
    if listed is not None:
        return "\nor\n".join(configuration.text() for configuration in listed.items())
    space = file.at("ConfigurationSpace")
    lines = [_line(parameter) for parameter in space.at("TuningParameters").items()]
    conditions = space.get("Conditions")
    wheres = [] if conditions is None else [_where(condition) for condition in conditions.items()]
    return "\n".join((*lines, *wheres))


def _line(parameter: Located) -> str:
    name = parameter.at("Name")
    if not _PLACE.fullmatch(name.text()):
        raise UsageError(
            f"{name.file}: {name.place}: `{name.held}` is no directive of looptune, so this is the space of another "
            "kernel: a parameter is `loop NAME`, `nest NAME` or `codelet`, its values are directives"
        )
    values = list(_values(parameter.at("Values")))
    return f"{name.held}: {{ {' | '.join(values)} }}" if len(values) > 1 else f"{name.held}: {values[0]}"


def _values(values: Located) -> Iterator[str]:
    text = values.text()
    try:
        held = ast.literal_eval(text) if len(text) <= _MOST else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        held = None
    if not isinstance(held, list | tuple) or not held:
        raise values.refused("a text that holds a Python list of directives, such as \"['', 'unroll 4']\"")
    for value in held:
        if not isinstance(value, str) or re.search(r"[{}|#\n\r]", value):
            raise values.refused(f"directives as values, one line each, not {value!r}")
        yield value


def _where(condition: Located) -> str:
    expression = condition.at("Expression")
    if re.search(r"[#\n\r]", expression.text()):
        raise expression.refused("a condition of one line, such as `unroll(k) <= 4`")
    return f"where {expression.held}"
