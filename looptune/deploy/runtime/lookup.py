"""Selection of a tuned configuration for a device and sizes.

exact                  this device, these sizes
same device            the nearest sizes: the least sum of |log(n / tuned n)| over the dimensions
same capability        other devices of this compute capability, the nearest sizes
same family            those of this major capability, the nearest sizes
default                none of these, or none that may be used at these sizes
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

LEVELS = ("exact", "same device", "same capability", "same family", "default")


class Device(NamedTuple):
    """A device; ``cores`` are the multiprocessors of a GPU, ``capability`` is sm_90, or a CPU's architecture."""

    name: str
    cores: int
    capability: str


class Match(NamedTuple):
    """The version that a call runs: how it was found, one of LEVELS, and its row of the table.

    ``configuration`` is None for the default; ``plan`` is the name of the plan.
    """

    level: str
    configuration: Mapping[str, Any] | None
    plan: str

    def description(self, device: Device, sizes: Mapping[str, int]) -> str:
        """Describe the match in one line."""
        here = f"{device.name}, {named(sizes)}"
        if self.configuration is None:
            return f"nothing was tuned for {here}: the default is used"
        row = self.configuration
        there = f"{row['device']} at {named(row['sizes'])}"
        return f"nothing was tuned for {here}: using what is best on {there} ({self.level})"


def look_up(table: Sequence[Mapping[str, Any]], default: str, device: Device, sizes: Mapping[str, int]) -> Match:
    """Return the closest match; ``default`` is the plan without directives, which runs on any device at any sizes.

    A row has ``device``, ``cores``, ``capability`` and ``sizes``, ``plan`` for exactly these sizes and ``elsewhere``
    for others; None where its directives mean these sizes only.
    """
    found = [(_level(row, device, sizes), _distance(row["sizes"], sizes), k) for k, row in enumerate(table)]
    usable = [f for f in found if f[0] < len(LEVELS) - 1 and _plan(table[f[2]], sizes) is not None]
    if not usable:
        return Match("default", None, default)
    level, _, k = min(usable)
    plan = _plan(table[k], sizes)
    assert plan is not None, "it is usable"
    return Match(LEVELS[level], table[k], plan)


def warned(name: str, match: Match, device: Device, sizes: Mapping[str, int], before: set[str], depth: int) -> None:
    """Warn of a match that is not exact, once for each level and device.

    ``before``: of which there was a warning; ``depth``: calls from the user's to this one.
    """
    kind = f"{match.level} {device.name}"
    if match.level != "exact" and kind not in before:
        before.add(kind)
        warnings.warn(f"{name}: {match.description(device, sizes)}", stacklevel=depth + 1)


def named(sizes: Mapping[str, int]) -> str:
    """Return sizes as text.

    >>> named({"ni": 3, "nj": 4})
    'ni=3 nj=4'
    """
    return " ".join(f"{name}={value}" for name, value in sizes.items())


def _plan(row: Mapping[str, Any], sizes: Mapping[str, int]) -> str | None:
    plan: str | None = row["plan"] if row["sizes"] == sizes else row["elsewhere"]
    return plan


def _level(row: Mapping[str, Any], device: Device, sizes: Mapping[str, int]) -> int:
    if (row["device"], row["cores"]) == (device.name, device.cores):
        return 0 if row["sizes"] == sizes else 1
    if row["capability"] == device.capability:
        return 2
    family = _major(device.capability)
    return 3 if family and family == _major(row["capability"]) else 4


def _major(capability: str) -> str:
    """Return the major compute capability: 9 for sm_90, 12 for sm_120, "" for a device that is not a GPU."""
    return capability[3:-1] if capability.startswith("sm_") else ""


def _distance(tuned: Mapping[str, int], sizes: Mapping[str, int]) -> float:
    return sum(abs(math.log(max(1, sizes[name]) / max(1, value))) for name, value in tuned.items())
