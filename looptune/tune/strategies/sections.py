"""Search by sections: the first version of each section, in their order, then more of the sections with fast ones.

    next section:   least  (its best time / the best time of all) * (1 + versions asked of it / PATIENCE)

A section is one idea, and a derived space begins with those that most often win. So a short budget soon has a good
version, and spends the rest on the sections that have shown one; a section that is r times slower has its turn after
about r times PATIENCE versions of the best. Within a section, the first version is the one that its text puts first,
and the others follow in an order of the seed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, ClassVar

from looptune.tune.space.space import Configuration, Section, Space
from looptune.tune.strategies.base import Strategy
from looptune.tune.strategies.random import permute_index

if TYPE_CHECKING:
    from looptune.tune.space.view import SpaceView

PATIENCE = 8
"""Versions of a section after which another one that is twice as slow is as promising."""


@dataclass(slots=True, eq=False)
class _Part:
    """A section: what is left of it, the versions asked for, and its best cost."""

    left: Iterator[Configuration]
    asked: int = 0
    best_us: float = inf
    ended: bool = False


class Sections(Strategy):
    """The first version of each section, then most versions of the sections whose best is fast."""

    name: ClassVar[str] = "sections"
    window = 32
    any_order = True

    def __init__(self, space: Space | SpaceView, seed: int = 0) -> None:
        super().__init__(space, seed)
        if isinstance(space, Space):
            self._parts = [_Part(_versions(section, seed)) for section in space.sections]
        else:
            self._parts = [_Part(found for k in range(space.size) if (found := space[k]) is not None)]
        self._open: dict[str, deque[_Part]] = {}

    def ask(self) -> Configuration | None:
        while open_ := [part for part in self._parts if not part.ended]:
            part = min(open_, key=self._turn)
            found = next(part.left, None)
            if found is None:
                part.ended = True
                continue
            part.asked += 1
            self._open.setdefault(found.text, deque()).append(part)
            return found
        return None

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        part = self._open[configuration.text].popleft()
        part.best_us = min(part.best_us, inf if cost_us is None else cost_us)

    def _turn(self, part: _Part) -> tuple[bool, float, int]:
        """Return the key by which the next section is chosen, the least first."""
        best_us = min(p.best_us for p in self._parts)
        ratio = part.best_us / best_us if 0 < best_us < inf else 1.0
        return part.asked > 0, ratio * (1 + part.asked / PATIENCE), part.asked


def _versions(section: Section, seed: int) -> Iterator[Configuration]:
    """Yield the allowed versions of a section: the first as written, the others in an order of the seed."""
    others = (n for k in range(section.size) if (n := permute_index(k, section.size, seed)))
    yield from (found for n in chain((0,), others) if (found := section.configuration(n)) is not None)
