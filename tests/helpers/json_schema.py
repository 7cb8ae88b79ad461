"""Validation of JSON by a schema: by jsonschema where it is installed, and at any rate by the few keywords ours use.

The schemas are in tests/data/schemas, written from the published ones without their descriptions.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.helpers.paths import ROOT

TYPES = {
    "object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool,
}  # fmt: skip
KNOWN = {"$schema", "$comment", "type", "enum", "required", "properties", "items", "pattern", "minimum"}


def schema(name: str) -> dict[str, Any]:
    """The schema of the file ``name``.json."""
    held: dict[str, Any] = json.loads((ROOT / "tests" / "data" / "schemas" / f"{name}.json").read_text())
    return held


def validate(value: Any, name: str) -> None:
    """AssertionError with the place where the value violates the schema."""
    rules = schema(name)
    _check(value, rules, "$")
    try:
        import jsonschema
    except ImportError:
        return
    jsonschema.validate(value, rules)


def _check(value: Any, rules: dict[str, Any], place: str) -> None:
    assert set(rules) <= KNOWN, f"{place}: a keyword that is not checked: {set(rules) - KNOWN}"
    if "type" in rules:
        named = rules["type"] if isinstance(rules["type"], list) else [rules["type"]]
        right = any(isinstance(value, TYPES[t]) and isinstance(value, bool) <= (t == "boolean") for t in named)
        assert right, f"{place}: {value!r} is not {named}"
    assert "enum" not in rules or value in rules["enum"], f"{place}: {value!r} is none of {rules['enum']}"
    assert "pattern" not in rules or re.search(rules["pattern"], value), f"{place}: {value!r}"
    assert "minimum" not in rules or value >= rules["minimum"], f"{place}: {value!r}"
    if isinstance(value, dict):
        missing = {*rules.get("required", ())} - {*value}
        assert not missing, f"{place}: without {missing}"
        for key, inner in rules.get("properties", {}).items():
            if key in value:
                _check(value[key], inner, f"{place}.{key}")
    if isinstance(value, list) and "items" in rules:
        for k, item in enumerate(value):
            _check(item, rules["items"], f"{place}[{k}]")
