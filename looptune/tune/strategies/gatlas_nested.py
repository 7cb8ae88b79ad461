"""GATLAS's second nesting: searches of the blocking parameters and of the structural variants in turn.

    structure fixed:  each quantity through its values, the best kept        unroll 2, 4, 8 …, block 8, 16, 32 …
    quantities fixed: each word through its variants, the best kept          split or contiguous, orders, tile or unroll
    again until neither improves; then from the next start, then from a random point

It begins at the best of the plainest versions of each structure, the first few of which are tried.

A quantity with more than MOST values is tried in MOST even steps, and again, finer, in the next turn. After Jang, "GPU
Automatically Tuned Linear Algebra Software", with the axes of any space instead of those of one kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import ClassVar

from looptune.tune.strategies.base import Best, Search, Sequential

MOST = 32
RESTARTS = 10


class GatlasNested(Sequential):
    """The second nested search of GATLAS: numbers with fixed structure, structure with fixed numbers, in turn."""

    name: ClassVar[str] = "gatlas-nested"

    def search(self) -> Search:
        starts = yield from self.probe_starts(self.view.starts())
        for start in chain(starts, self.random_points(RESTARTS)):
            yield from self._alternate(start)

    def _alternate(self, start: int) -> Search:
        best: Best = start, (yield start)
        span = 1.0
        while True:
            before = best
            for numeric in (True, False):
                axes = [k for k, axis in enumerate(self.view.axes(best[0])) if axis.numeric == numeric]
                self.rng.shuffle(axes)
                for k in axes:
                    found = yield from self.cheapest(list(self._through(best[0], k, span)), best)
                    best = best if found is None else found
            longest = max((len(a.values) for a in self.view.axes(best[0]) if a.numeric), default=0)
            if best == before and span * longest <= MOST:
                return
            span /= MOST / 4

    def _through(self, point: int, k: int, span: float) -> Iterator[int]:
        """Yield points along an axis: all of a word's, or of a quantity's the share ``span`` around ``point``."""
        axis, here = self.view.axes(point)[k], self.view.digits(point)[k]
        if here < 0:
            return
        digits: Sequence[int] = range(len(axis.values))
        if axis.numeric:
            order = axis.ascending
            at, reach = order.index(here), max(MOST // 2, round(len(order) * span / 2))
            window = order[max(0, at - reach) : at + reach + 1] if span < 1 else order
            digits = window[:: max(1, len(window) // MOST)]
        for digit in digits:
            there = self.view.moved(point, k, digit)
            if there is not None:
                yield there
