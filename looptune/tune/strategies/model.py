"""Bayesian optimisation: a model of the cost, fitted to the costs told, chooses the next point by expected improvement.

    sections for this device, points far apart ──▶ fit ──▶ the candidate expected to improve most ──▶ fit …

Features are the words and the logarithms of the numbers of the directives (``table_view``), so that the model transfers
the effect of one loop's unrolling to all versions that have it; see ``gaussian_process``. The candidates of a space too
large to list are POOL random points, and the neighbours of each new best. The search ends when every candidate was
asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, islice
from math import inf
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from looptune.tune.space.space import Configuration, Space
from looptune.tune.space.table_view import Table
from looptune.tune.strategies import gaussian_process
from looptune.tune.strategies.base import Search, Sequential
from looptune.tune.strategies.random import draw_configurations, permute_index

if TYPE_CHECKING:
    from looptune.tune.space.view import SpaceView

FIRST, APART = 4, 40
"""Points before the first fit, each the farthest of so many random ones."""
LAUNCHES = 8
"""Versions of a section that speaks of launching alone: every nest's time hangs on that, the default's first."""
BESIDE = 3
"""One question in so many goes to the nearest neighbour of the best: the model may be wrong about it."""
POOL, AROUND = 1000, 100
WORK = 200_000
"""Candidates looked at times points fitted, at most: some milliseconds."""
RECENT = 300
"""Points fitted at most, half of them the best: a fit of n takes n^3."""


class Model(Sequential):
    """Bayesian optimisation: a linear trend and a Gaussian process predict the cost.

    Points are selected by expected improvement.
    """

    name: ClassVar[str] = "model"

    def __init__(self, space: Space | SpaceView, seed: int = 0) -> None:
        super().__init__(space, seed)
        self._points: list[int] = []
        """The candidates: row number in the table to point."""
        self._drawn: dict[int, Configuration] = {}
        """Of a space too large to list, what the candidates are."""
        self._table = Table(())
        self._shape: gaussian_process.Shape | None = None

    def search(self) -> Search:
        starts = list(self.view.parts())
        if not starts:
            return
        ideas = self._ideas()
        self._pool([*starts, *ideas])
        known: list[int] = []
        least = inf
        yield ideas
        while True:
            rest = [k for k in range(len(self._points)) if self._points[k] not in self.costs]
            if not rest and not ideas:
                return
            row = self._points.index(ideas.pop(0)) if ideas else self._next(known, rest)
            point = self._points[row]
            cost = yield point
            known.append(row)
            if cost < least and not isinstance(self.view, Table):
                self._pool([*self._points, *self._around(point)])
                known = [k for k, p in enumerate(self._points) if p in self.costs]
            least = min(least, cost)

    def _ideas(self) -> list[int]:
        """Return a version of each section that is written for this device; several of how the default is launched."""
        sections = self.space.sections if isinstance(self.space, Space) else ()
        firsts = accumulate((section.size for section in sections), initial=0)
        own = [(section, first) for section, first in zip(sections, firsts, strict=False) if section.device]
        some = [(s, first, LAUNCHES if s.launching else 1) for s, first in own]
        picked = [
            (first + k, found.text) for s, first, n in some for k, found in islice(draw_configurations(s, self.seed), n)
        ]
        match self.view:
            case Table(rows=rows):
                numbers = {row.text: number for number, row in enumerate(rows)}
                return list(dict.fromkeys(numbers[text] for _, text in picked))
        return [point for point, _ in picked]

    def _pool(self, points: Iterable[int]) -> None:
        """Set the table of the candidates: all of a listed space, else these points, and at first random ones too."""
        match self.view:
            case Table():
                self._table, self._points = self.view, list(range(self.view.size))
                return
        wanted = list(points)
        if not self._points:
            size = self.view.size
            wanted += [permute_index(k, size, self.seed) for k in range(min(POOL, size))]
        new = [point for point in dict.fromkeys(wanted) if point not in self._drawn]
        self._drawn |= {point: c for point in new if (c := self.view[point]) is not None}
        self._points, self._table = list(self._drawn), Table(self._drawn.values())
        self._shape = None

    def _around(self, point: int) -> list[int]:
        return [p for p, _ in zip(self.view.near(point, self.rng), range(AROUND), strict=False)]

    def _next(self, known: list[int], rest: list[int]) -> int:
        if len(known) < FIRST:
            return self._far(known, rest)
        if len(known) % BESIDE:
            return self._promising(known, rest)
        best = min(known, key=lambda k: self.costs[self._points[k]])
        squares = self._squares([best], rest)[0]
        return self.rng.choice([k for k, square in zip(rest, squares, strict=True) if square <= squares.min() + 1e-9])

    def _far(self, known: list[int], rest: list[int]) -> int:
        """Return the plainest first, then of a few random ones the farthest from all."""
        first = [k for k in self._table.parts() if k in rest]
        if not known and first:
            return first[0]
        some = self.rng.sample(rest, min(APART, len(rest)))
        return some[int(self._squares(known, some).min(axis=0, initial=inf).argmax())]

    def _promising(self, known: list[int], rest: list[int]) -> int:
        self.rng.shuffle(rest)
        fitted = self._fitted(known)
        rest = rest[: max(POOL // 4, WORK // len(fitted))]
        timed = [k for k in fitted if self.costs[self._points[k]] < inf]
        if not timed:
            return rest[int(self._squares(fitted, rest).min(axis=0).argmax())]
        expected = self._improvement(timed, rest, refit=len(known) % (1 + len(known) // 40) == 0)
        if len(timed) < len(fitted):
            some = np.isin(fitted, timed)
            assert self._shape is not None, "an improvement has a shape"
            expected = expected * gaussian_process.feasible(
                self._apart(fitted), some, self._apart(fitted, rest), self._shape
            )
        return rest[int(expected.argmax())]

    def _improvement(self, timed: list[int], rest: list[int], refit: bool) -> np.ndarray:
        """``refit``: choose the shape of the process anew."""
        y = gaussian_process.targets(np.array([self.costs[self._points[k]] for k in timed]))
        points, apart = self._table.features - self._table.features.mean(axis=0), self._apart(timed)
        weights = gaussian_process.weights(points[timed], y)
        trend, ahead = points[timed] @ weights, points[rest] @ weights
        if self._shape is None or refit:
            self._shape = gaussian_process.shape(apart, y - trend, points.shape[1])
        return gaussian_process.improvement(apart, y, self._apart(timed, rest), self._shape, trend, ahead)

    def _fitted(self, known: list[int]) -> list[int]:
        if len(known) <= RECENT:
            return known
        best = sorted(known, key=lambda k: self.costs[self._points[k]])[: RECENT // 2]
        return sorted({*best, *known[-RECENT // 2 :]})

    def _apart(self, rows: list[int], others: list[int] | None = None) -> np.ndarray:
        """Return the distances, a row for each of ``rows``; by default among themselves."""
        distances: np.ndarray = np.sqrt(self._squares(rows, rows if others is None else others))
        return distances

    def _squares(self, rows: list[int], others: list[int]) -> np.ndarray:
        a, b = self._table.features[rows], self._table.features[others]
        squares: np.ndarray = np.maximum((a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * a @ b.T, 0.0)
        return squares
