"""looptune's search strategies in Kernel Tuner, by its interface for optimisers in a file of their own.

In a T1 problem, or in an experiment of the autotuning methodology, whose strategy is then the class ``Looptune``:

    "strategy_options": {"custom_search_method_path": "examples/kernel_tuner/looptune_search.py"}

In a script:

    from kernel_tuner.strategies.wrapper import OptAlgWrapper
    from looptune_search import Looptune
    kernel_tuner.tune_kernel(..., strategy=OptAlgWrapper(Looptune("model", seed=1)))

Both want looptune and Kernel Tuner 1.3 or newer in one environment.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kernel_tuner.strategies.wrapper import OptAlg

from looptune.tune.formats.records import foreign_configuration
from looptune.tune.space.table_view import Table
from looptune.tune.strategies import named

if TYPE_CHECKING:
    from kernel_tuner.searchspace import Searchspace
    from kernel_tuner.strategies.common import CostFunc


class Looptune(OptAlg):
    """An optimiser of Kernel Tuner that asks the looptune strategy of this name; equal seeds ask in equal order."""

    def __init__(self, strategy: str = "model", seed: int = 0) -> None:
        super().__init__()
        self.strategy, self.seed = strategy, seed

    def __call__(self, func: CostFunc, searchspace: Searchspace) -> tuple[tuple, float]:
        """Search until the budget is spent, which Kernel Tuner says by an exception, or the strategy ends.

        Returns the best configuration and its cost as Kernel Tuner counts it: negative where more is better.
        """
        names = list(searchspace.tune_params)
        points = {foreign_configuration(dict(zip(names, point, strict=True))): point for point in searchspace.list}
        search = named(self.strategy)(Table(points), self.seed)
        best, least = (), sys.float_info.max
        asked = []
        while (configuration := search.ask()) is not None:
            cost = func(points[configuration])
            if cost < least:
                best, least = points[configuration], cost
            asked.append((configuration, cost))
            while len(asked) >= search.window:
                configuration, cost = asked.pop(0)
                search.tell(configuration, _positive(cost))
        return best, least


def _positive(cost: float) -> float | None:
    """Return a cost above 0, the less the better; None where the configuration failed."""
    if cost >= sys.float_info.max or cost == 0:
        return None
    return cost if cost > 0 else 1 / -cost
