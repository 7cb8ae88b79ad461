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


FINALS_SHARE = 6
"""The finals have this part of a budget of seconds, or less."""
LEAST_SHARE = 2
"""The search has this part of it, or more: what comes before may have taken most."""


def search_seconds(seconds: float, before_s: float, finals_s: float) -> float:
    """Return the seconds of a budget that are the search's, where ``before_s`` of them have passed.

    What is left is for the finals, which take about ``finals_s``, and for the proof.

    >>> search_seconds(60.0, 4.0, 10.0), search_seconds(10.0, 7.0, 2.0)
    (46.0, 5.0)
    """
    return max(seconds / LEAST_SHARE, seconds - before_s - finals_s)


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
