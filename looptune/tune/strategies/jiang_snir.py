"""Search in phases, each over the parameters of one loop, with a search of one quantity that takes it to be unimodal.

    Algorithm 1      x . x . . . x             a stride that doubles while the cost falls
                             x x . x           then the same from the best, to both sides, within its neighbours

    Algorithm 2      powers of two: loop 1, loop 2, …      words, and quantities among the powers of two
                     all values:    loop 1, loop 2, …      quantities, from the best of those

After Jiang and Snir, "Automatic Tuning Matrix Multiplication Performance on Graphics Hardware", PACT 2005, whose
phases were those of one kernel: here a phase is a loop, the last written first. What the inner loop is made into
decides whether memory, a cache or registers bound it, and so which blocks of the outer loops are good; the other way
round a block is chosen for a loop that does not stay. Rounds are repeated until one brings nothing; then the search
begins again, RESTARTS times: at the best with two loops drawn anew, and at a random point, in turn. On a unimodal
quantity with n values Algorithm 1 asks O(log^2 n) times.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from math import inf
from typing import ClassVar

from looptune.tune.axes import Axis
from looptune.tune.strategies.base import Best, Search, Sequential

Probe = Callable[[int], Generator[int, float, float]]
"""The cost at a position."""

RESTARTS = 20
REDRAWN = 2
"""Loops that a restart near the best changes."""


def unimodal(probe: Probe, at: int, low: int, high: int) -> Generator[int, float, Best]:
    """The position in ``low .. high`` where a sequence with one minimum is least, and its cost; begins at ``at``.

    What could not be timed is as high as anything, so strides over it go on until something was timed.
    """
    cost = yield from probe(at)
    below, above = low - 1, high + 1
    while True:
        start = at
        for direction, bound in ((1, above), (-1, below)):
            stride, previous = 1, at
            while (bound - at) * direction > stride:
                there = at + direction * stride
                found = yield from probe(there)
                if found < cost:
                    previous, at, cost = at, there, found
                elif cost < inf:
                    bound = there
                    break
                stride *= 2
            if at != start:
                below, above = (previous, bound) if direction > 0 else (bound, previous)
                break
        if at == start:
            return at, cost


class JiangSnir(Sequential):
    name: ClassVar[str] = "jiang-snir"

    def search(self) -> Search:
        for start in self.from_each(self.view.starts(), 0):
            yield from self._rounds(start)
        for k in range(RESTARTS if self.view.size else 0):
            yield from self._rounds(self._beside() if k % 2 == 0 else self.rng.randrange(self.view.size))

    def _beside(self) -> int:
        """The best with some loops as a random point has them, or what comes nearest to that and is not known."""
        best = min(self.costs, key=lambda point: (self.costs[point], point))
        other = self.view.towards(self.rng.randrange(self.view.size), best)
        groups = self.view.groups(best)
        redrawn = {k for group in self.rng.sample(groups, min(REDRAWN, len(groups))) for k in group}
        pairs = zip(self.view.digits(best), self.view.digits(other), strict=True)
        digits = [theirs if k in redrawn else ours for k, (ours, theirs) in enumerate(pairs)]
        point = self.view.nearest(best, digits, self.costs, self.rng)
        return best if point is None else point

    def _rounds(self, start: int) -> Search:
        best = start, (yield start)
        groups = self.view.groups(start)[::-1]
        while True:
            before = best[1]
            for whole in (False, True):
                for group in groups:
                    best = yield from self._phase(group, best, whole)
            if not best[1] < before:
                return

    def _phase(self, group: Sequence[int], best: Best, whole: bool) -> Generator[int, float, Best]:
        """The axes of one loop, one after the other: words each tried, with the quantities they bring."""
        for k in group:
            axis = self.view.axes(best[0])[k]
            if axis.numeric:
                best = yield from self._quantity(k, axis, best, whole)
            elif not whole:
                points = [self.view.moved(best[0], k, digit) for digit in range(len(axis.values))]
                found = yield from self.least([p for p in points if p is not None], best)
                best = best if found is None else found
        return best

    def _quantity(self, k: int, axis: Axis, best: Best, whole: bool) -> Generator[int, float, Best]:
        digit = self.view.digits(best[0])[k]
        if digit < 0:
            return best
        order = axis.ascending
        digits = order if whole else [d for d in order if _power_of_two(axis.values[d])]
        if not digits:
            return best
        base = best[0]

        def probe(at: int) -> Generator[int, float, float]:
            point = self.view.moved(base, k, digits[at])
            if point is None:
                return inf
            return (yield point)

        first = digits.index(digit) if digit in digits else 0
        at, cost = yield from unimodal(probe, first, 0, len(digits) - 1)
        point = self.view.moved(base, k, digits[at])
        return (point, cost) if point is not None and cost < best[1] else best


def _power_of_two(value: float | str) -> bool:
    match value:
        case int():
            return value > 0 and value & (value - 1) == 0
    return False
