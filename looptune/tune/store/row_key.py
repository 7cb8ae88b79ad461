"""The keys of rows, and the words of rows and records that an earlier looptune wrote."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from looptune.core.escape import dump_json
from looptune.schedule.directive_lines import current_text


def row_key(context: str, directives: str, role: str) -> str:
    """Return the key of a row, with the hash of its context.

    A default run has the key of the version without directives.
    """
    return digest(json.dumps([context, directives, "version" if role == "default" else role]))


def digest(text: str) -> str:
    """Return the hash of a text in hexadecimal digits."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def current_cell(value: Any) -> Any:
    """Return directives in present words; what is no text stays as it is, for the reader of the row to refuse."""
    return current_text(value) if isinstance(value, str) else value


def current_record(value: Any) -> Any:
    """Return a record, a JSON text, with the directives in it in present words."""
    try:
        held = json.loads(value)
    except (TypeError, ValueError, RecursionError):
        return value
    now = _current(held)
    return value if now == held else dump_json(now)


def _current(held: Any) -> Any:
    match held:
        case str():
            return current_text(held)
        case list():
            return [_current(part) for part in held]
        case dict():
            return {current_text(name): _current(part) for name, part in held.items()}
    return held
