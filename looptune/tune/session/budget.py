"""The budget of a sweep: a number of configurations, or a time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from looptune.core.errors import UsageError

if TYPE_CHECKING:
    from looptune.core.settings import Objective

_SECONDS: Mapping[str, int] = MappingProxyType({"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600})


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a sweep: ``count`` configurations without duplicates and ``seconds``; None: no limit.

    A sweep without a time goes on for ``overrun_s`` after its end, or as long again, and then stops whatever runs. With
    one, a run that is under way is stopped after FINISHING of them, or not at all.
    """

    count: int | None = None
    seconds: float | None = None
    overrun_s: float | None = None


FINALS_SHARE = 6
"""The finals time versions for this part of a budget of seconds, or less."""
ENERGY_SHARE, DECIDING_SHARE = 6, 4
"""The energies of the finalists are measured for this part of it, or for this one where they decide."""
AROUND_FINALS = 0.5
"""Of that time, what else the finals take: processes that set up and build, and the proof."""
LEAST_SHARE = 5
"""The search has this part of it, or more: what comes before may have taken most."""
DERIVATION_SHARE = 4
"""The derivation of a space begins nothing new after this part of it."""
FINISHING = 0.25


def energy_seconds(seconds: float, objective: Objective) -> float:
    """Return how long energies are measured in a budget of so many seconds.

    >>> energy_seconds(60.0, "time"), energy_seconds(60.0, "energy")
    (10.0, 15.0)
    """
    return seconds / (ENERGY_SHARE if objective == "time" else DECIDING_SHARE)


def search_budget(seconds: float, before_s: float, finals_s: float, energy_s: float = 0.0) -> Budget:
    """Return what is left of a budget of seconds for the search, where ``before_s`` of them have passed.

    The rest is for the finals, which time versions for about ``finals_s``, and measure energies for ``energy_s``.
    Without a time there are none.

    >>> search_budget(60.0, 4.0, 10.0)
    Budget(count=None, seconds=41.0, overrun_s=15.0)
    >>> search_budget(60.0, 4.0, 10.0, 15.0)
    Budget(count=None, seconds=26.0, overrun_s=15.0)
    >>> search_budget(10.0, 9.0, 1.0)
    Budget(count=None, seconds=2.0, overrun_s=1.5)
    """
    finals_s *= 1 + AROUND_FINALS
    return Budget(seconds=max(seconds / LEAST_SHARE, seconds - before_s - finals_s - energy_s), overrun_s=finals_s)


def parse_budget(text: str) -> Budget:
    """Return the budget of ``60`` (configurations), ``90s``, ``10m``, ``1.5h`` or ``1h30m``.

    Raises UsageError for any other text.

    >>> parse_budget("60").count, parse_budget("1h30m").seconds
    (60, 5400.0)
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
