"""Exhaustive search: one configuration of each section, as ``random`` begins, then the others, all sections in turn.

    position of number k of a section of n:   (k + 1/2) / n  of the sweep

So a section of good versions shows early how fast they are, wherever it stands in the file and however small it is, and
hopeless versions are cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import accumulate, chain
from typing import TYPE_CHECKING, ClassVar

from looptune.tune.space.space import Configuration, Space
from looptune.tune.strategies.base import Strategy
from looptune.tune.strategies.random import first_configurations

if TYPE_CHECKING:
    from looptune.tune.space.view import SpaceView


class Exhaustive(Strategy):
    """One configuration of each section, then all others, with the sections in turn."""

    name: ClassVar[str] = "exhaustive"
    seeded: ClassVar[bool] = False

    def __init__(self, space: Space | SpaceView, seed: int = 0) -> None:
        super().__init__(space, seed)
        scouts = tuple(first_configurations(space, 0))
        numbers = chain(scouts, (k for k in _in_turn(space) if k not in scouts))
        self._remaining = (found for k in numbers if (found := space[k]) is not None)

    def ask(self) -> Configuration | None:
        return next(self._remaining, None)

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        """Ignore the cost: the order is fixed."""


def _in_turn(space: Space | SpaceView) -> Iterator[int]:
    """All numbers, those of a section in the order written."""
    sizes = [section.size for section in space.sections] if isinstance(space, Space) else [space.size]
    starts = accumulate(sizes, initial=0)

    def numbered(start: int, size: int) -> Iterator[tuple[float, int]]:
        return (((k + 0.5) / size, start + k) for k in range(size))

    return (number for _, number in merge(*map(numbered, starts, sizes)))
