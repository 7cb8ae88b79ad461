"""The budget of a sweep: a number of configurations, or a time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from looptune.core.errors import UsageError

_SECONDS: Mapping[str, int] = MappingProxyType({"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600})


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a sweep: ``count`` configurations without duplicates and ``seconds``; None: no limit."""

    count: int | None = None
    seconds: float | None = None


def parse_budget(text: str) -> Budget:
    """Return the budget of ``60`` (configurations), ``90s``, ``10m``, ``1.5h`` or ``1h30m``.

    Raises UsageError for any other text.

    >>> parse_budget("60"), parse_budget("1h30m")
    (Budget(count=60, seconds=None), Budget(count=None, seconds=5400.0))
    """
    written = text.strip().lower()
    if re.fullmatch(r"\d{1,12}", written, re.ASCII) and int(written) > 0:
        return Budget(count=int(written))
    parts = re.findall(r"(\d{1,9}(?:\.\d{1,9})?)\s*(sec|s|min|m|h)\s*", written, re.ASCII)
    whole = re.fullmatch(r"(?:\d{1,9}(?:\.\d{1,9})?\s*(?:sec|s|min|m|h)\s*)+", written, re.ASCII)
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if whole is None or seconds <= 0:
        raise UsageError(f"invalid budget `{text}`: write a number of configurations (60) or a time (90s, 10m, 1h)")
    return Budget(seconds=seconds)
