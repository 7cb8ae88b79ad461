"""What a strategy is: it is asked for configurations and told what they cost.

    ask() -> configuration | None        None: nothing is left, or the search has converged
    tell(configuration, cost_us)         None: it could not be timed

At most ``window`` configurations are open at a time. They are told in the order they were asked for, so that the same
costs give the same questions whatever the machine. A strategy that learns keeps its window small.

    trials                               of how many runs the last question wants the median; None: of as many as usual

A strategy may ask for a configuration again with more trials; a sweep that has its time answers with that.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from importlib.util import find_spec
from math import inf
from typing import ClassVar

from looptune.errors import UsageError
from looptune.tune.product import view_of
from looptune.tune.space import Configuration, Space
from looptune.tune.view import View

Search = Generator[int, float, None]
"""Yields the index of a point and is sent its cost, ``inf`` where it could not be timed."""
Best = tuple[int, float]
"""A point and its cost."""


class Strategy(ABC):
    name: ClassVar[str]
    window: ClassVar[int] = 256
    seeded: ClassVar[bool] = True
    """Another seed asks in another order."""
    needs: ClassVar[str | None] = None
    """A package of the extra ``search``."""
    trials: int | None = None

    def __init__(self, space: Space | View, seed: int = 0) -> None:
        self.space = space
        self.seed = seed

    @classmethod
    def check(cls) -> None:
        """UsageError where the package it needs is missing."""
        if cls.needs is not None and find_spec(cls.needs) is None:
            raise UsageError(f"the strategy {cls.name} needs the package {cls.needs}: pip install 'looptune[search]'")

    @abstractmethod
    def ask(self) -> Configuration | None: ...

    @abstractmethod
    def tell(self, configuration: Configuration, cost_us: float | None) -> None: ...


class Sequential(Strategy):
    """A search written as one: ``search`` asks by yielding a point, and goes on with its cost.

    It may yield what it knows, what a ``where`` forbids, or another point with the same directives: that is answered
    from memory, so nothing is asked twice.
    """

    window: ClassVar[int] = 1

    def __init__(self, space: Space | View, seed: int = 0) -> None:
        super().__init__(space, seed)
        self.view = view_of(space)
        self.rng = random.Random(seed)
        self.costs: dict[int, float] = {}
        self._texts: dict[str, float] = {}
        self._open: int | None = None
        self._running = self.search()
        self._last: int | None = None

    @abstractmethod
    def search(self) -> Search: ...

    def ask(self) -> Configuration | None:
        assert self._open is None, "one question at a time"
        while (index := self._advance()) is not None:
            configuration = self.view[index]
            if configuration is None:
                self.costs[index] = inf
            elif configuration.text in self._texts:
                self.costs[index] = self._texts[configuration.text]
            else:
                self._open = index
                return configuration
        return None

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        assert self._open is not None, "told what was not asked"
        cost = inf if cost_us is None else cost_us
        self.costs[self._open] = self._texts[configuration.text] = cost
        self._open = None

    def from_each(self, starts: Iterable[int], restarts: int) -> Iterator[int]:
        """The first of ``starts``, the others in the seed's order, then random points, if possible not asked yet."""
        first, others = [*starts][:1], [*starts][1:]
        if not first:
            return
        self.rng.shuffle(others)
        yield from first
        yield from others
        for _ in range(restarts):
            tries = [self.rng.randrange(self.view.size) for _ in range(20)]
            yield next((p for p in tries if p not in self.costs), tries[0])

    def least(self, points: Iterable[int], best: Best | None = None) -> Generator[int, float, Best | None]:
        """Ask for all of them; the cheapest, or ``best`` where none is cheaper."""
        for point in points:
            cost = yield point
            if best is None or cost < best[1]:
                best = point, cost
        return best

    def _advance(self) -> int | None:
        """The next point whose cost is not known; None at the end of the search."""
        try:
            index = next(self._running) if self._last is None else self._running.send(self.costs[self._last])
            while index in self.costs:
                index = self._running.send(self.costs[index])
        except StopIteration:
            return None
        self._last = index
        return index
