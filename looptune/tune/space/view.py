"""The interface of a space for a search: points with axes, moves along the axes, and neighbours.

    index ── digits ──▶ one position for each axis          moved(index, axis, digit)   the point with one axis changed
                                                            varying(index, axes)        all that differ in these only
                                                            near(index, rng)            other points, nearest first

A point is its index, so that the points already asked are a set of numbers; ``view[index]`` is its configuration, None
where a ``where`` forbids it. A small space has a ``Table``, a large one a ``Product``, which stores no configuration.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from looptune.tune.space.axes import Axis, Digits
    from looptune.tune.space.space import Configuration


class SpaceView(ABC):
    """Space as a search sees it: points with axes, moves along them, and neighbours."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Return how many indices there are."""

    @property
    @abstractmethod
    def versions(self) -> int:
        """Return how many configurations there are; see ``Space.versions``."""

    @abstractmethod
    def __getitem__(self, index: int) -> Configuration | None: ...

    def __iter__(self) -> Iterator[Configuration]:
        """Every configuration, in the fixed order."""
        for index in range(self.size):
            configuration = self[index]
            if configuration is not None:
                yield configuration

    @abstractmethod
    def parts(self) -> Sequence[int]:
        """Return the plainest point of each part; the points of a part have the same axes."""

    def starts(self) -> Sequence[int]:
        """Return the points at which a search that changes one loop at a time starts, the plainest of all first."""
        return self.parts()

    @abstractmethod
    def axes(self, index: int) -> tuple[Axis, ...]:
        """Return the axes of the part to which ``index`` belongs."""

    @abstractmethod
    def digits(self, index: int) -> Digits: ...

    @abstractmethod
    def moved(self, index: int, axis: int, digit: int) -> int | None:
        """Return the point with one digit changed and the others as in ``index`` as far as possible.

        None if there is none.
        """

    @abstractmethod
    def varying(self, index: int, axes: Iterable[int]) -> Iterator[int]:
        """Yield the points, including ``index``, that differ from it in these axes only."""

    @abstractmethod
    def near(self, index: int, rng: random.Random) -> Iterator[int]:
        """Yield other points, nearest first, equally near ones in random order; not all of a large space."""

    @abstractmethod
    def nearest(self, index: int, digits: Sequence[int], taken: Container[int], rng: random.Random) -> int | None:
        """Return the nearest point to ``digits`` in the part of ``index`` that is not ``taken``, or None."""

    @abstractmethod
    def towards(self, index: int, other: int) -> int:
        """Return the point in the part of ``other`` that agrees with point ``index`` in as many axes as possible."""

    def groups(self, index: int) -> list[list[int]]:
        """Return the numbers of the axes by the loop to which they belong, in the order written."""
        found: dict[str, list[int]] = {}
        for k, axis in enumerate(self.axes(index)):
            found.setdefault(axis.group, []).append(k)
        return list(found.values())
