"""Names of the generated files and functions of a program."""

from __future__ import annotations

import hashlib
from pathlib import Path


def identifier(text: str) -> str:
    """Return the text as a part of a name in C."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in text)


def digest(path: Path, *facts: object) -> str:
    """Return eight digits that differ for different files and facts."""
    return hashlib.sha256(repr((str(path.resolve()), *facts)).encode()).hexdigest()[:8]
