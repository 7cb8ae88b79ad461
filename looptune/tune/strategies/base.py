"""What a strategy is: it is asked for configurations and told what they cost.

    ask() -> configuration | None        None: nothing is left
    tell(configuration, cost_us)         None: it could not be timed

At most ``window`` configurations are open at a time. They are told in the order they were asked for, so that the same
costs give the same questions whatever the machine. A strategy that learns keeps its window small.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from looptune.tune.space import Configuration, Space


class Strategy(ABC):
    name: ClassVar[str]
    window: ClassVar[int] = 256

    def __init__(self, space: Space, seed: int = 0) -> None:
        self.space = space
        self.seed = seed

    @abstractmethod
    def ask(self) -> Configuration | None: ...

    @abstractmethod
    def tell(self, configuration: Configuration, cost_us: float | None) -> None: ...
