"""Search in phases, each over the parameters of one loop, with a search of one quantity that assumes a unimodal cost.

    Algorithm 1      x . x . . . x             a stride that doubles while the cost falls
                             x x . x           then the same from the best, to both sides, within its neighbours

    Algorithm 2      quantities, powers of two     loop 1, loop 2, …
                     words                         loop 1, loop 2, …       each tried
                     quantities, all values        loop 1, loop 2, …       from the best of those
    trades           one quantity doubled, another halved                  where a round ended at the best of all

After Jiang and Snir, "Automatic Tuning Matrix Multiplication Performance on Graphics Hardware", PACT 2005, whose phases
were those of one kernel: here a phase is a loop, the last written first. The directives of the inner loop determine
whether memory, a cache or registers bound it, and so which blocks of the outer loops are good; in the other order a
block would be chosen for a loop that then changes. Words come after the first quantities, since a structure has to be
judged with its own blocks, not with those of another. Rounds are repeated until one brings no improvement. The
registers, shared memory and threads that a version needs are products of quantities; if no single one can change, two
may: trades.

The search begins at the FIRST best of the plainest versions of each structure, the first few of which are tried; then,
in turn, at the best with two loops drawn anew, and at the other structures and random points. For a unimodal quantity
with n values, Algorithm 1 asks O(log^2 n) times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, product
from math import inf
from typing import TYPE_CHECKING, ClassVar

from looptune.tune.strategies.base import Best, Search, Sequential, Steps

if TYPE_CHECKING:
    from looptune.tune.space.axes import Axis

Probe = Callable[[int], Steps[float]]
"""The cost at a position."""

FIRST = 2
RESTARTS = 40
REDRAWN = 2
"""Loops that a restart near the best changes."""


def unimodal(probe: Probe, at: int, low: int, high: int) -> Steps[Best]:
    """Yield the position in ``low .. high`` of the minimum of a unimodal sequence, and its cost.

    The search begins at ``at``.

    A position without a time is as high as any other, so strides continue over it until they reach one with a time.
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
    """The search of Jiang and Snir (PACT 2005), in phases that are the loops of the nest."""

    name: ClassVar[str] = "jiang-snir"

    def search(self) -> Search:
        starts = yield from self.probe_starts(self.view.starts())
        for start in starts[:FIRST]:
            yield from self._rounds(start)
        others = chain(starts[FIRST:], self.random_points(RESTARTS // 2))
        for start in others:
            yield from self._rounds(self._beside())
            yield from self._rounds(start)

    def _beside(self) -> int:
        """Return the best point with some loops replaced by those of a random point.

        If it is known, the nearest unknown point is returned.
        """
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
        while True:
            before = best[1]
            groups = self.view.groups(best[0])[::-1]
            for phase in (self._powers, self._words, self._values):
                for group in groups:
                    best = yield from phase(group, best)
            if not best[1] < before:
                if best[1] > min(self.costs.values()):
                    return
                traded = yield from self._trade(best)
                if not traded[1] < best[1]:
                    return
                best = traded

    def _words(self, group: Sequence[int], best: Best) -> Steps[Best]:
        for k in group:
            axis = self.view.axes(best[0])[k]
            if not axis.numeric:
                points = [self.view.moved(best[0], k, digit) for digit in range(len(axis.values))]
                found = yield from self.cheapest([p for p in points if p is not None], best)
                best = best if found is None else found
        return best

    def _powers(self, group: Sequence[int], best: Best) -> Steps[Best]:
        for k in group:
            axis = self.view.axes(best[0])[k]
            if axis.numeric:
                best = yield from self._quantity(k, [d for d in axis.ascending if _power_of_two(axis.values[d])], best)
        return best

    def _values(self, group: Sequence[int], best: Best) -> Steps[Best]:
        for k in group:
            axis = self.view.axes(best[0])[k]
            if axis.numeric:
                best = yield from self._quantity(k, axis.ascending, best)
        return best

    def _quantity(self, k: int, digits: Sequence[int], best: Best) -> Steps[Best]:
        """Run Algorithm 1 over some of an axis's digits."""
        base = best[0]
        digit = self.view.digits(base)[k]
        if digit < 0 or not digits:
            return best

        def probe(at: int) -> Steps[float]:
            point = self.view.moved(base, k, digits[at])
            if point is None:
                return inf
            return (yield point)

        first = digits.index(digit) if digit in digits else 0
        at, cost = yield from unimodal(probe, first, 0, len(digits) - 1)
        point = self.view.moved(base, k, digits[at])
        return (point, cost) if point is not None and cost < best[1] else best

    def _trade(self, best: Best) -> Steps[Best]:
        """Yield the first point that is better with one quantity doubled and another halved, else ``best``."""
        digits, axes = self.view.digits(best[0]), self.view.axes(best[0])
        numeric = [k for k, axis in enumerate(axes) if axis.numeric and digits[k] >= 0]
        twice = [(k, d) for k in numeric if (d := _times(axes[k], digits[k], 2.0)) is not None]
        half = [(k, d) for k in numeric if (d := _times(axes[k], digits[k], 0.5)) is not None]
        for (k, more), (other, less) in product(twice, half):
            there = [more if n == k else less if n == other else d for n, d in enumerate(digits)]
            point = self.view.nearest(best[0], there, (), self.rng)
            if point is not None and self.view.digits(point) == tuple(there):
                cost = yield point
                if cost < best[1]:
                    return point, cost
        return best


def _times(axis: Axis, digit: int, factor: float) -> int | None:
    """Return the digit of so many times the value, if the axis has it."""
    wanted = float(axis.values[digit]) * factor
    return next((d for d in axis.ascending if axis.values[d] == wanted), None)


def _power_of_two(value: float | str) -> bool:
    match value:
        case int():
            return value > 0 and value & (value - 1) == 0
    return False
