"""What decides between versions: the time of one run, its energy, or the product of both (EDP).

    time     median microseconds of the finals
    energy   joules of one run
    edp      joules of one run x its median time in the finals     joule-seconds

EDP, the energy-delay product, is that of Horowitz, Indermaur and Gonzalez, "Low-power digital design", 1994.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from looptune.core.errors import UsageError
from looptune.core.settings import OBJECTIVES, Objective
from looptune.runtime.timing import MARGIN, Speedup, verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from looptune.runtime.energy import Energy

QUANTITIES: Mapping[Objective, str] = MappingProxyType({"time": "time", "energy": "energy", "edp": "EDP"})
"""What tables call that of which a winner has the least."""


def objective_of(text: str) -> Objective:
    """Return the objective of this name. Raises UsageError for any other text."""
    for name in OBJECTIVES:
        if name == text:
            return name
    raise UsageError(f"objective is {text!r}: choose {', '.join(OBJECTIVES)}")


@dataclass(frozen=True, slots=True)
class Cost:
    """The joules, or joule-seconds, of one run, with the least and the most that were measured."""

    value: float
    low: float
    high: float

    def is_like(self, other: Cost) -> bool:
        """Tell whether two costs differ by no more than the margin of a verdict, or than they spread."""
        return saving(self, other).verdict in ("SAME", "AMBIGUOUS")


def cost(objective: Objective, median_us: float, energy: Energy | None) -> Cost | None:
    """Return the cost of a version, None where its energy is not known.

    The objective is "energy" or "edp"; the time of a version is not one number but paired rounds (``timing``).
    """
    assert objective != "time", "times are compared by rounds"
    if energy is None:
        return None
    factor = median_us / 1e6 if objective == "edp" else 1.0
    low, high = energy.range
    return Cost(energy.joules * factor, low * factor, high * factor)


def saving(base: Cost, other: Cost) -> Speedup:
    """Return how many times less ``other`` costs than ``base``.

    The interval is from the least of the base over the most of the other to the reverse. FAST means less, SLOW more.
    """
    low, high = base.low / other.high, base.high / other.low
    return Speedup(base.value / other.value, low, high, verdict(low, high, MARGIN))
