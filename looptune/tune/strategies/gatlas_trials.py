"""GATLAS's first nesting: every configuration with one run each, then the best again with many.

    probe    all of the space, in an order of the seed, PROBE runs        cheap and noisy
    settle   the best of them again, SETTLE runs                          expensive and few

It saves time on the device, not evaluations. At most SETTLED are settled, best first, as long as their probe is within
MARGIN of the best probe. After Jang, "GPU Automatically Tuned Linear Algebra Software". A sweep has a timing protocol
and finals of its own and answers the second request from its store; in simulation the noise is that of the recorded
runs.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING, ClassVar

from looptune.tune.strategies.base import Strategy
from looptune.tune.strategies.random import Random

if TYPE_CHECKING:
    from looptune.tune.space.space import Configuration, Space
    from looptune.tune.space.view import SpaceView

PROBE, SETTLE = 1, 25
MARGIN = 1.1
SETTLED = 10


class GatlasTrials(Strategy):
    """The first nested search of GATLAS: one run of each configuration, then many runs of the best ones."""

    name: ClassVar[str] = "gatlas-trials"
    window = 8

    def __init__(self, space: Space | SpaceView, seed: int = 0) -> None:
        super().__init__(space, seed)
        self.trials = PROBE
        self._probes = Random(space, seed)
        self._best: list[tuple[float, str, Configuration]] = []
        self._open: deque[bool] = deque()
        """Of each question that is not answered, whether it was a probe."""
        self._settled = 0
        self._least = inf

    def ask(self) -> Configuration | None:
        configuration = self._probes.ask() if self.trials == PROBE else None
        if configuration is None:
            self.trials = SETTLE
            configuration = self._next()
        if configuration is not None:
            self._open.append(self.trials == PROBE)
        return configuration

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        if self._open.popleft() and cost_us is not None:
            self._best = sorted([*self._best, (cost_us, configuration.text, configuration)], key=lambda e: e[:2])
            del self._best[SETTLED:]
            self._least = min(self._least, cost_us)

    def _next(self) -> Configuration | None:
        """Return the best not settled yet.

        While probes are still open, whatever its margin, since a better one may come.
        """
        waiting = any(self._open)
        if not self._best or self._settled == SETTLED or not (waiting or self._best[0][0] <= MARGIN * self._least):
            return None
        self._settled += 1
        return self._best.pop(0)[2]
