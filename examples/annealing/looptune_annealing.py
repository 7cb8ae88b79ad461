"""Simulated annealing: a step to a neighbour, also to a slower one while the temperature is high.

    a neighbour slower by a factor f is taken with probability f ** (-1 / temperature), which falls with every step

Source: Kirkpatrick, Gelatt and Vecchi, Science 220 (1983).
"""

from __future__ import annotations

from math import inf
from typing import ClassVar

from looptune.tune.strategies.base import Search, Sequential

HOT = 1.0
COOLING = 0.97
COLD = 0.01
RESTARTS = 4


class Annealing(Sequential):
    name: ClassVar[str] = "annealing"

    def search(self) -> Search:
        """Yield the index of a point, and receive its cost in microseconds, or ``inf`` if it could not be timed."""
        for start in self.starting_points(self.view.parts(), RESTARTS):
            point, cost, temperature = start, (yield start), HOT
            while temperature > COLD:
                there = next(iter(self.view.near(point, self.rng)), None)
                if there is None:
                    break
                found = yield there
                if found < cost or self.rng.random() < _chance(cost, found, temperature):
                    point, cost = there, found
                temperature *= COOLING


def _chance(cost: float, found: float, temperature: float) -> float:
    """Return the probability of a step from ``cost`` up to ``found``."""
    if found == inf:
        return 1.0 if cost == inf else 0.0
    return float((found / cost) ** (-1 / temperature))
