"""Sampling of one loop at a time, as in the InPar 2012 paper: vary its directives, keep the best, take the next loop.

    a start ──▶ all directives of loop 1 ──▶ best of them, all directives of loop 2 ──▶ …

A pass costs the sum of the loops' choices, where the whole space costs their product. It is exact if loops do not
interact. The seed determines the order of the loops. The paper made one pass, from the default; here a pass begins at
the plainest version of each structure, the best of those that are tried first, and the last RESTARTS passes begin at
random points.
"""

from __future__ import annotations

from itertools import chain
from typing import ClassVar

from looptune.tune.strategies.base import Search, Sequential

RESTARTS = 10


class Sampling(Sequential):
    """Sampling of one loop at a time (InPar 2012): vary its directives, keep the best, continue with the next loop."""

    name: ClassVar[str] = "sampling"

    def search(self) -> Search:
        starts = yield from self.probe_starts(self.view.starts())
        for start in chain(starts, self.random_points(RESTARTS)):
            best = start, (yield start)
            groups = self.view.groups(start)
            self.rng.shuffle(groups)
            for group in groups:
                found = yield from self.cheapest(self.view.varying(best[0], group), best)
                best = best if found is None else found
