"""Bayesian optimisation: a Gaussian process, fitted to the costs told, chooses the next point.

    sections for this device, points far apart ──▶ fit ──▶ greatest expected improvement ──▶ fit ──▶ tournament ──▶ …

Two ways of choosing take turns. Expected improvement exploits: it asks near the best as long as the model expects
anything there. A tournament explores: of ENTRANTS random candidates it asks the one with the least lower confidence
bound (Cox and John, 1992), so that a model that is sure and wrong cannot keep the search in one region.

The cost of a question is bounded, whatever the space and the number of questions: at most RECENT points are fitted,
half of them the best, and at most CANDIDATES are looked at, which are the points that differ from one of the TOP best
along one axis, and random ones. Of a space too large to list the candidates are POOL random points, and the neighbours
of each new best. The search ends when every candidate was asked. See ``gaussian_process`` for the model.

``batch`` questions are asked at once where so many devices measure: a question that has no answer yet is taken to have
the median of the costs known (constant liar; Ginsbourger et al., 2010).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, islice
from math import inf
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from looptune.tune.space.space import Configuration, Space
from looptune.tune.space.table_view import Table
from looptune.tune.strategies import gaussian_process, predictions
from looptune.tune.strategies.base import Search, Sequential, Strategy
from looptune.tune.strategies.gaussian_process import Features, Hyperparameters
from looptune.tune.strategies.random import draw_configurations, permute_index

if TYPE_CHECKING:
    from looptune.tune.space.view import SpaceView

FIRST, APART = 4, 40
"""Points before the first fit, each the farthest of so many random ones."""
LAUNCHES = 8
"""Versions of a section that speaks of launching alone: every nest's time hangs on that, the default's first."""
ENTRANTS, CONFIDENCE = 8, 1.0
"""Candidates of a tournament, and the deviations below the mean that its bound is."""
POOL, AROUND = 1000, 100
RECENT, CANDIDATES, TOP = 200, 800, 5
STEPS = ((40, 8), (80, 4), (130, 2), (RECENT + 1, 1))
"""Steps of the fit for each question while fewer points are known: a step takes the cube of their number."""


class Model(Sequential):
    """Bayesian optimisation: a Gaussian process predicts the cost.

    Points are selected by expected improvement and by tournaments, in turn.
    """

    name: ClassVar[str] = "model"
    predictable: ClassVar[bool] = True

    def __init__(self, space: Space | SpaceView, seed: int = 0) -> None:
        super().__init__(space, seed)
        self._points: list[int] = []
        """The candidates: row number in the table to point."""
        self._drawn: dict[int, Configuration] = {}
        """Of a space too large to list, what the candidates are."""
        self._table = Table(())
        self._features = Features(np.zeros((0, 0)), np.zeros(0, int))
        self._digits = np.zeros((0, 0), np.int16)
        self._hyper = Hyperparameters.prior(0)
        self._beside: dict[int, np.ndarray] = {}
        self._known: list[int] = []
        self._ranked: list[tuple[float, int]] = []
        """The best of the known, at most RECENT // 2: cost, and position in ``_known``."""
        self._turn = 0
        self._free = np.zeros(0, bool)
        """Which rows were not asked for."""
        self._prior: tuple[Configuration, ...] = ()
        """What is known to be good elsewhere: the points -1, -2 and so on, which the space need not have."""
        self._predicted_us: Mapping[str, float] = {}
        self._logs: np.ndarray | None = None
        """By row the logarithm of the predicted cost."""

    def begin_with(self, known: Sequence[Configuration]) -> Strategy:
        """Learn from what is good elsewhere as from the space's own points, and ask for it first."""
        self._prior = tuple(known)
        return self

    def with_predictions(self, predicted_us: Mapping[str, float]) -> Strategy:
        """Begin with what is predicted to be fast, and learn how wrong the predictions are."""
        self._predicted_us = predicted_us
        return self

    def at(self, point: int) -> Configuration | None:
        return self._prior[-point - 1] if point < 0 else super().at(point)

    def search(self) -> Search:
        starts = list(self.view.parts())
        if not starts:
            return
        ideas = list(dict.fromkeys([*self._known_points(), *(() if self._predicted_us else self._ideas())]))
        self._pool([*starts, *ideas])
        least = inf
        yield ideas
        while ideas or self._free.any():
            rows = [self._points.index(ideas.pop(0))] if ideas else self._questions()
            asked = [self._points[row] for row in rows]
            if len(asked) > 1:
                yield asked
            best = least
            for row, point in zip(rows, asked, strict=True):
                cost = yield point
                self._note(row, cost)
                if cost < best:
                    best, found = cost, point
            if best < least and not isinstance(self.view, Table):
                self._pool([*self._points, *self._around(found)])
            least = best

    def _known_points(self) -> list[int]:
        """Return the points of what is known to be good elsewhere: those of the space where it has them."""
        rows = self.view.rows if isinstance(self.view, Table) else ()
        numbers = {row.text: number for number, row in enumerate(rows)}
        return [numbers.get(c.text, -1 - k) for k, c in enumerate(self._prior)]

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
            case Table(rows=rows):
                own = {row.text for row in rows}
                more = [k for k, c in enumerate(self._prior) if c.text not in own]
                self._points = [*range(self.view.size), *(-1 - k for k in more)]
                self._table = Table((*rows, *(self._prior[k] for k in more))) if more else self.view
                self._set_up()
                return
        wanted = list(points)
        if not self._points:
            size = self.view.size
            wanted += [permute_index(k, size, self.seed) for k in range(min(POOL, size))]
        new = [point for point in dict.fromkeys(wanted) if point not in self._drawn]
        self._drawn |= {point: c for point in new if (c := self.at(point)) is not None}
        self._points, self._table = list(self._drawn), Table(self._drawn.values())
        self._set_up()

    def _set_up(self) -> None:
        """Derive from the table what the model looks at; the fit goes on where the axes are as many as before."""
        before = self._features.axes
        self._features = gaussian_process.features(self._table)
        self._digits = self._table.digit_rows.astype(np.int16)
        self._logs = predictions.logarithms([row.text for row in self._table.rows], self._predicted_us)
        if self._features.axes != before or not self._known:
            self._hyper = Hyperparameters.prior(self._features.axes)
        self._beside.clear()
        self._known, self._ranked = [], []
        self._free = np.ones(len(self._points), bool)
        rows = {point: row for row, point in enumerate(self._points)}
        for point, cost in self.costs.items():
            if point in rows:
                self._note(rows[point], cost)

    def _note(self, row: int, cost: float) -> None:
        insort(self._ranked, (cost, len(self._known)))
        del self._ranked[RECENT // 2 :]
        self._known.append(row)
        self._free[row] = False

    def _around(self, point: int) -> list[int]:
        if point < 0:
            return []
        return [p for p, _ in zip(self.view.near(point, self.rng), range(AROUND), strict=False)]

    def _questions(self) -> list[int]:
        """Return the rows to ask for next: ``batch``, or as many as are left."""
        chosen: list[int] = []
        free = self._free.copy()
        rows = [self._known[position] for position in self._fitted()]
        costs = [self.costs[self._points[row]] for row in rows]
        timed = [cost for cost in costs if cost < inf]
        lie = float(np.median(timed)) if timed else inf
        while len(chosen) < self.batch and free.any():
            row = self._next(np.array([*rows, *chosen], int), np.array([*costs, *[lie] * len(chosen)]), free)
            free[row] = False
            chosen.append(row)
        return chosen

    def _fitted(self) -> Sequence[int]:
        """Return the positions of the known to fit, ascending: all, or the best and the newest."""
        count = len(self._known)
        if count <= RECENT:
            return range(count)
        return sorted({*(position for _, position in self._ranked), *range(count - RECENT // 2, count)})

    def _next(self, rows: np.ndarray, costs: np.ndarray, free: np.ndarray) -> int:
        """Return the row to ask for next, where ``rows`` are fitted to ``costs``, and ``free`` may be asked for."""
        timed, failed = rows[costs < inf], rows[costs == inf]
        if self._logs is not None and len(timed) < predictions.FEW:
            rest = np.flatnonzero(free)
            row, self._hyper = predictions.next_row(self._features, self._logs, rows, costs, rest, self._hyper)
            return row
        if not len(rows):
            first = self._table.parts()[0]
            return first if free[first] else self._far(rows, free)
        if len(rows) < FIRST or not len(timed):
            return self._far(rows, free)
        columns = self._features.columns
        values = gaussian_process.targets(costs[costs < inf])
        steps = next(steps for most, steps in STEPS if len(timed) < most)
        trends = columns if self._logs is None else predictions.trends(columns, self._logs, timed)
        weights = gaussian_process.trend(trends[timed], values)
        rest = values - trends[timed] @ weights
        process, self._hyper = gaussian_process.fitted(columns[timed], rest, self._features.axis, self._hyper, steps)
        candidates = self._candidates(rows[np.argsort(costs, kind="stable")[:TOP]], free)
        mean, deviation, across = process.predict(columns[candidates])
        mean = mean + trends[candidates] @ weights
        likely = np.ones(len(candidates))
        if len(failed):
            likely = gaussian_process.feasible(across, process.covariance(columns[failed], columns[candidates]))
        self._turn += 1
        if self._turn % 2:
            expected = likely * gaussian_process.improvement(float(values.min()), mean, deviation)
            return int(candidates[expected.argmax()])
        entrants = np.array(self.rng.sample(range(len(candidates)), min(ENTRANTS, len(candidates))))
        # A failure is as bad as the worst version: in units of the deviation of the costs, that is about four.
        bound = mean - CONFIDENCE * deviation + 4 * (1 - likely)
        return int(candidates[entrants[bound[entrants].argmin()]])

    def _far(self, known: np.ndarray, free: np.ndarray) -> int:
        """Return the farthest from all ``known`` of a few random rows."""
        rest = np.flatnonzero(free)
        some = rest[self.rng.sample(range(len(rest)), min(APART, len(rest)))]
        columns = self._features.columns
        squares = ((columns[some][:, None] - columns[known]) ** 2).sum(axis=2)
        return int(some[squares.min(axis=1, initial=inf).argmax()])

    def _candidates(self, best: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Return the rows among which to choose: all, or those beside the ``best`` and random ones."""
        rest = np.flatnonzero(free)
        if len(rest) <= CANDIDATES:
            return rest
        near = np.unique(np.concatenate([self._near(int(row)) for row in best]))
        near = near[free[near]][: CANDIDATES // 2]
        others = rest[self.rng.sample(range(len(rest)), CANDIDATES - len(near))]
        return np.union1d(near, others)

    def _near(self, row: int) -> np.ndarray:
        """Return the rows that differ from ``row`` along one axis at most."""
        if row not in self._beside:
            different = np.zeros(len(self._digits), np.int16)
            for k, digit in enumerate(self._digits[row]):
                different += self._digits[:, k] != digit
            self._beside[row] = np.flatnonzero(different <= 1)
        return self._beside[row]
