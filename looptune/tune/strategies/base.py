"""The interface of a search strategy: it is asked for configurations and told their costs.

    ask() -> configuration | None        None: nothing is left, or the search has converged
    tell(configuration, cost_us)         None: it could not be timed

At most ``window`` configurations are open at a time, a number that may change. Their costs are told in the order in
which they were asked for, so that the questions depend on the costs only, and not on the machine. A strategy that
learns keeps its window small. In a budget of time, in which the machine decides how far a search gets, a strategy of
``any_order`` is told each cost as soon as it is known.

``trials`` is the number of runs whose median the strategy wants for its last question; None stands for the usual
number. A strategy may ask for a configuration again with more trials; a sweep that has a time of it answers with that
time.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from math import inf
from typing import TYPE_CHECKING, ClassVar, TypeVar

from looptune.core.errors import UsageError
from looptune.tune.space.product_view import view_of

if TYPE_CHECKING:
    from looptune.tune.space.space import Configuration, Space
    from looptune.tune.space.view import SpaceView

Wave = Sequence[int]
"""Points that are asked for at once, whatever they cost; what is sent for it means nothing."""
T = TypeVar("T")
Steps = Generator[int | Wave, float, T]
"""Yields the index of a point and is sent its cost, ``inf`` where it could not be timed."""
Search = Steps[None]
Best = tuple[int, float]
"""A point and its cost."""
PROBES, SHARE = 8, 1 / 40
"""Of the starts of a search so many are tried, or that share of the space, before it begins at the best of them."""


class Strategy(ABC):
    """A search strategy: ``ask`` returns the next configuration, ``tell`` receives its cost in microseconds or None."""

    name: ClassVar[str]
    window: int = 256
    any_order: bool = False
    seeded: ClassVar[bool] = True
    """Another seed asks in another order."""
    predictable: ClassVar[bool] = False
    """It learns from predicted costs."""
    needs: ClassVar[str | None] = None
    """A package of the extra ``search``."""
    trials: int | None = None
    batch: int = 1
    """How many devices measure at once, set before the first question: a strategy that learns may ask for so many."""

    def __init__(self, space: Space | SpaceView, seed: int = 0) -> None:
        self.space = space
        self.seed = seed

    @classmethod
    def check(cls) -> None:
        """Raise UsageError if the package that the strategy needs is missing."""
        if cls.needs is not None and find_spec(cls.needs) is None:
            raise UsageError(f"the strategy {cls.name} needs the package {cls.needs}: pip install 'looptune[search]'")

    def begin_with(self, known: Sequence[Configuration]) -> Strategy:
        """Return a strategy that asks for these configurations first: they are good at other sizes, or elsewhere."""
        return KnownFirst(self, known)

    def with_predictions(self, predicted_us: Mapping[str, float]) -> Strategy:
        """Return a strategy that knows the predicted costs of versions by their texts; most have no use for them."""
        return self

    @abstractmethod
    def ask(self) -> Configuration | None: ...

    @abstractmethod
    def tell(self, configuration: Configuration, cost_us: float | None) -> None: ...


class Sequential(Strategy):
    """A search written as a generator: ``search`` asks by yielding a point, and continues with its cost.

    It may yield a point whose cost is known, one that a ``where`` forbids, or another point with the same directives:
    these are answered from memory, so no configuration is asked for twice. Points that it needs regardless of the costs
    of the others are yielded as a list (a wave): they are compiled at the same time, and their costs are known when the
    points are yielded one by one.
    """

    def __init__(self, space: Space | SpaceView, seed: int = 0) -> None:
        super().__init__(space, seed)
        self.window = 1
        self.view = view_of(space)
        self.rng = random.Random(seed)
        self.costs: dict[int, float] = {}
        self._texts: dict[str, float] = {}
        self._wave: deque[tuple[int, Configuration]] = deque()
        self._open: deque[int] = deque()
        self._running = self.search()
        self._last: int | Wave | None = None

    @abstractmethod
    def search(self) -> Search: ...

    def ask(self) -> Configuration | None:
        if not self._wave:
            assert not self._open, "what is asked next may depend on what is open"
            self._advance()
        if not self._wave:
            return None
        index, configuration = self._wave.popleft()
        self._open.append(index)
        return configuration

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        assert self._open, "told what was not asked"
        cost = inf if cost_us is None else cost_us
        self.costs[self._open.popleft()] = self._texts[configuration.text] = cost
        self.window = max(1, len(self._open) + len(self._wave))

    def at(self, point: int) -> Configuration | None:
        """Return the configuration of a point, None where the space has none there."""
        return self.view[point]

    def starting_points(self, starts: Iterable[int], restarts: int) -> Iterator[int]:
        """Yield the first of ``starts``, the others in the seed's order, then random points."""
        first, others = [*starts][:1], [*starts][1:]
        self.rng.shuffle(others)
        yield from first
        yield from others
        yield from self.random_points(restarts)

    def probe_starts(self, starts: Sequence[int]) -> Steps[list[int]]:
        """Return the starts ordered by cost, as far as they were tried, then the others."""
        tried = starts[: max(PROBES, round(SHARE * self.view.size))]
        yield tried
        found: list[Best] = []
        for start in tried:
            found.append((start, (yield start)))
        return [start for start, _ in sorted(found, key=lambda best: best[1])] + [*starts[len(tried) :]]

    def random_points(self, times: int) -> Iterator[int]:
        """Yield ``times`` random points, each not asked for yet if one of 20 draws is not."""
        for _ in range(times if self.view.size else 0):
            tries = [self.rng.randrange(self.view.size) for _ in range(20)]
            yield next((p for p in tries if p not in self.costs), tries[0])

    def cheapest(self, points: Iterable[int], best: Best | None = None) -> Steps[Best | None]:
        """Ask for all of them; the cheapest, or ``best`` where none is cheaper."""
        wave = [*points]
        yield wave
        for point in wave:
            cost = yield point
            if best is None or cost < best[1]:
                best = point, cost
        return best

    def _advance(self) -> None:
        """Go on until something is asked that is not known, or to the end of the search."""
        try:
            while not self._wave:
                match self._last:
                    case None:
                        self._last = next(self._running)
                    case int(point):
                        self._last = self._running.send(self.costs[point])
                    case _:
                        self._last = self._running.send(inf)
                self._wave.extend(self._unknown([self._last] if isinstance(self._last, int) else self._last))
        except StopIteration:
            pass
        self.window = max(1, len(self._wave))

    def _unknown(self, points: Wave) -> Iterator[tuple[int, Configuration]]:
        """Of several with the same directives the first; the cost of what need not be asked is noted."""
        asked: set[str] = set()
        for point in points:
            configuration = None if point in self.costs else self.at(point)
            if point in self.costs or (configuration is not None and configuration.text in asked):
                continue
            if configuration is None:
                self.costs[point] = inf
            elif configuration.text in self._texts:
                self.costs[point] = self._texts[configuration.text]
            else:
                asked.add(configuration.text)
                yield point, configuration


class KnownFirst(Strategy):
    """The known configurations in their order, and then what another strategy asks for, which learns its own costs."""

    name: ClassVar[str] = "known first"

    def __init__(self, strategy: Strategy, known: Sequence[Configuration]) -> None:
        super().__init__(strategy.space, strategy.seed)
        self.strategy = strategy
        self.any_order = strategy.any_order
        self._known = deque(known)
        self._open: Counter[str] = Counter()
        """Of the known, those whose cost has not been told, by their texts."""
        self._adopt()

    def ask(self) -> Configuration | None:
        found: Configuration | None
        if self._known:
            found = self._known.popleft()
            self._open[found.text] += 1
        else:
            self.strategy.batch = self.batch
            found = self.strategy.ask()
            self.trials = self.strategy.trials
        self._adopt()
        return found

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        if self._open[configuration.text]:
            self._open[configuration.text] -= 1
        else:
            self.strategy.tell(configuration, cost_us)
        self._adopt()

    def _adopt(self) -> None:
        self.window = len(self._known) + self._open.total() + self.strategy.window
