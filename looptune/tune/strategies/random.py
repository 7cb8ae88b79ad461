"""Random search: every configuration once, in an order that the seed determines.

The first are one of each section of the space, and four of those that are written for the device. Sections try
different ideas: with one of each it is soon known how fast a version can be, hopeless versions are cut off, and a small
budget has tried all sections.

The order is a permutation of 0 .. size - 1 computed point by point, so a space of 10^30 costs no memory: a Feistel
network on the mixed radix (a, b), a = b = ceil(sqrt(size)), iterated until the result is inside (Black and Rogaway,
"Ciphers with Arbitrary Finite Domains", 2002). a * b exceeds size by less than 2 sqrt(size) + 1, so few iterations
suffice.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import chain, islice
from math import isqrt
from typing import TYPE_CHECKING, ClassVar

from looptune.tune.space.space import Configuration, Section, Space
from looptune.tune.strategies.base import Strategy

if TYPE_CHECKING:
    from looptune.tune.space.view import SpaceView

# Three rounds are indistinguishable from random to a handful of queries; six cost 10 us and leave no visible pattern.
_ROUNDS = 6

TRIED = 16
"""So many numbers of a section, at most, until enough are allowed."""
OWN = 4
"""So many of a section that is for this device."""


class Random(Strategy):
    """Every configuration once, in a pseudorandom order that the seed determines."""

    name: ClassVar[str] = "random"

    def __init__(self, space: Space | SpaceView, seed: int = 0) -> None:
        super().__init__(space, seed)
        self._order = self._ordered()

    def ask(self) -> Configuration | None:
        return next(self._order, None)

    def _ordered(self) -> Iterator[Configuration]:
        size = self.space.size
        scouts = tuple(first_configurations(self.space, self.seed))
        others = (n for index in range(size) if (n := permute_index(index, size, self.seed)) not in scouts)
        yield from (found for n in chain(scouts, others) if (found := self.space[n]) is not None)

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        """Ignore the cost: the order is fixed by the seed."""


def first_configurations(space: Space | SpaceView, seed: int) -> Iterator[int]:
    """Yield the numbers of a few allowed configurations of each section, the last section first.

    One number for a section, OWN numbers for a section that names a device; none if there is only one section.
    """
    sections = space.sections if isinstance(space, Space) else ()
    start = space.size
    for section in reversed(sections if len(sections) > 1 else ()):
        start -= section.size
        yield from (start + k for k, _ in islice(draw_configurations(section, seed), OWN if section.device else 1))


def draw_configurations(section: Section, seed: int) -> Iterator[tuple[int, Configuration]]:
    """Yield allowed configurations of a section with their numbers, in an order of the seed.

    Only the first few that the section has are tried.
    """
    tried = (permute_index(k, section.size, seed) for k in range(min(section.size, TRIED)))
    yield from ((k, found) for k in tried if (found := section.configuration(k)) is not None)


def permute_index(index: int, size: int, seed: int) -> int:
    """Return the image of ``index`` under a permutation of ``range(size)``.

    >>> sorted(permute_index(i, 7, seed=1) for i in range(7))
    [0, 1, 2, 3, 4, 5, 6]
    """
    assert 0 <= index < size, "an index is below the size"
    side = isqrt(size - 1) + 1
    while True:
        index = _shuffle(index, side, seed)
        if index < size:
            return index


def _shuffle(index: int, side: int, seed: int) -> int:
    left, right = divmod(index, side)
    for turn in range(_ROUNDS):
        left, right = right, (left + _hash(seed, turn, right, side)) % side
    return left * side + right


def _hash(seed: int, turn: int, value: int, side: int) -> int:
    # 16 bytes more than the radix needs leave a bias below 2^-128 after the reduction.
    width = (side.bit_length() + 7) // 8 + 16
    text = f"{seed} {turn} {value}".encode()
    blocks = (blake2b(text, salt=block.to_bytes(8)).digest() for block in range(-(-width // 64)))
    return int.from_bytes(b"".join(blocks)[:width]) % side
