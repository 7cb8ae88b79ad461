"""Every configuration, in the order the space file writes them."""

from __future__ import annotations

from typing import ClassVar

from looptune.tune.space import Configuration, Space
from looptune.tune.strategies.base import Strategy
from looptune.tune.view import View


class Exhaustive(Strategy):
    name: ClassVar[str] = "exhaustive"
    seeded: ClassVar[bool] = False

    def __init__(self, space: Space | View, seed: int = 0) -> None:
        super().__init__(space, seed)
        self._remaining = iter(space)

    def ask(self) -> Configuration | None:
        return next(self._remaining, None)

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        """The order is fixed: nothing to learn."""
