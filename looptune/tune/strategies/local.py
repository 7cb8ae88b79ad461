"""Local search around the best point found, with restarts: the future work of the InPar 2012 paper.

    from a point: its neighbours, nearest first; the first that is better is the next point
    PATIENCE neighbours in a row that are no better: from a random point, RESTARTS times

Neighbours change one choice, a quantity by one step or by a power of two of them; equally near ones come in an order
drawn from the seed.
"""

from __future__ import annotations

from itertools import islice
from typing import ClassVar

from looptune.tune.strategies.base import Search, Sequential

PATIENCE = 16
RESTARTS = 20


class Local(Sequential):
    """Local search: move to the first better neighbour, nearest first; restart from random points."""

    name: ClassVar[str] = "local"

    def search(self) -> Search:
        for start in self.starting_points(self.view.parts(), RESTARTS):
            point, cost = start, (yield start)
            while True:
                better = None
                fresh = (p for p in self.view.near(point, self.rng) if p not in self.costs)
                for there in islice(fresh, max(PATIENCE, self._degree(point))):
                    found = yield there
                    if found < cost:
                        better = there, found
                        break
                if better is None:
                    break
                point, cost = better

    def _degree(self, point: int) -> int:
        """As many neighbours as there are single moves, up and down, in the axes that are active."""
        return 2 * sum(digit >= 0 for digit in self.view.digits(point))
