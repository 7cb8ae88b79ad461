"""Every configuration: one of each section, as ``random`` begins, then the others in the order the file has them."""

from __future__ import annotations

from itertools import chain
from typing import ClassVar

from looptune.tune.space import Configuration, Space
from looptune.tune.strategies.base import Strategy
from looptune.tune.strategies.random import scouted
from looptune.tune.view import View


class Exhaustive(Strategy):
    name: ClassVar[str] = "exhaustive"
    seeded: ClassVar[bool] = False

    def __init__(self, space: Space | View, seed: int = 0) -> None:
        super().__init__(space, seed)
        scouts = tuple(scouted(space, 0))
        numbers = chain(scouts, (k for k in range(space.size) if k not in scouts))
        self._remaining = (found for k in numbers if (found := space[k]) is not None)

    def ask(self) -> Configuration | None:
        return next(self._remaining, None)

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        """The order is fixed: nothing to learn."""
