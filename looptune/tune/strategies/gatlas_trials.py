"""Every configuration with one run each, then the best again for long: GATLAS's first nesting.

    probe    all of the space, in an order of the seed, PROBE runs        cheap and noisy
    settle   the best of them again, SETTLE runs                          dear and few

It saves time on the device, not evaluations. At most SETTLED are settled, best first, as long as their probe is within
MARGIN of the best probe. After Jang, "GPU Automatically Tuned Linear Algebra Software". A sweep has a timing protocol
and finals of its own and answers the second question from its store; in simulation the noise is that of the runs.
"""

from __future__ import annotations

from typing import ClassVar

from looptune.tune.space import Configuration, Space
from looptune.tune.strategies.base import Strategy
from looptune.tune.strategies.random import Random
from looptune.tune.view import View

PROBE, SETTLE = 1, 25
MARGIN = 1.1
SETTLED = 10


class GatlasTrials(Strategy):
    name: ClassVar[str] = "gatlas-trials"
    # The best are chosen among those told when the probes end, so all but the last few.
    window: ClassVar[int] = 8

    def __init__(self, space: Space | View, seed: int = 0) -> None:
        super().__init__(space, seed)
        self.trials = PROBE
        self._probes = Random(space, seed)
        self._best: list[tuple[float, str, Configuration]] = []
        self._chosen: list[Configuration] | None = None

    def ask(self) -> Configuration | None:
        if self._chosen is None:
            configuration = self._probes.ask()
            if configuration is not None:
                return configuration
            self.trials = SETTLE
            self._chosen = [c for cost, _, c in self._best if cost <= MARGIN * self._best[0][0]]
        return self._chosen.pop(0) if self._chosen else None

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        if self._chosen is None and cost_us is not None:
            self._best = sorted([*self._best, (cost_us, configuration.text, configuration)], key=lambda e: e[:2])
            del self._best[SETTLED:]
