"""pyATF's ensemble, simulated annealing, pattern search and Torczon's simplex under an AUC bandit, behind ask and tell.

It needs the extra ``search``. Its coordinates in (0, 1] are shares of each axis; a point that is not in the space is
replaced by the nearest one. Repeated requests are answered from memory; after REPEATED such requests in a row, a new
point, the nearest to the requested one, is asked.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import ceil, inf
from typing import Any, ClassVar

from looptune.tune.space.axes import consistent_digits
from looptune.tune.strategies.base import Search, Sequential

REPEATED = 20


class PyATF(Sequential):
    """The ensemble of pyATF: simulated annealing, pattern search and Torczon's simplex under an AUC bandit."""

    name: ClassVar[str] = "pyatf"
    needs: ClassVar[str | None] = "pyatf"

    def search(self) -> Search:
        self.check()
        with _interrupts_kept():
            from pyatf.search_techniques.auc_bandit import AUCBandit
            from pyatf.search_techniques.pattern_search import PatternSearch
            from pyatf.search_techniques.simulated_annealing import SimulatedAnnealing
            from pyatf.search_techniques.torczon import Torczon

        starts = self.view.parts()
        if not starts:
            return
        own = _Own(self.seed)
        technique = AUCBandit((SimulatedAnnealing(), PatternSearch(), Torczon()))
        own(lambda: technique.initialize(1 + max(len(self.view.axes(start)) for start in starts)))
        repeated = 0
        while True:
            costs: dict[Any, float | None] = {}
            for coordinates in sorted(own(technique.get_next_coordinates)):
                point = self._point(starts, coordinates, repeated > REPEATED)
                if point is None:
                    return
                repeated = repeated + 1 if point in self.costs else 0
                cost = yield point
                costs[coordinates] = None if cost == inf else cost
            own(partial(technique.report_costs, costs))

    def _point(self, starts: Sequence[int], coordinates: Sequence[float], fresh: bool) -> int | None:
        start = starts[_digit(coordinates[0], len(starts))]
        axes = self.view.axes(start)
        digits = consistent_digits(axes, lambda k: _digit(coordinates[k + 1], len(axes[k].values)))
        return self.view.nearest(start, digits, self.costs if fresh else (), self.rng)


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Restore the handler of SIGINT, which pyATF replaces when it is imported."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)


class _Own:
    """Runs pyATF with a state of its own of the module ``random``, which it draws from, so that a seed replays it."""

    def __init__(self, seed: int) -> None:
        self._state = random.Random(seed).getstate()

    def __call__(self, call: Callable[[], Any]) -> Any:
        outside = random.getstate()
        random.setstate(self._state)
        try:
            return call()
        finally:
            self._state = random.getstate()
            random.setstate(outside)


def _digit(share: float, count: int) -> int:
    return min(max(ceil(share * count) - 1, 0), count - 1)
