"""Every configuration once, in an order the seed fixes.

The order is a permutation of 0 .. size - 1 computed point by point, so a space of 10^30 costs no memory: a Feistel
network on the mixed radix (a, b), a = b = ceil(sqrt(size)), walked until it lands inside (Black and Rogaway, "Ciphers
with Arbitrary Finite Domains", 2002). a * b exceeds size by less than 2 sqrt(size) + 1, so the walk is short.
"""

from __future__ import annotations

from hashlib import blake2b
from math import isqrt
from typing import ClassVar

from looptune.tune.space import Configuration, Space
from looptune.tune.strategies.base import Strategy
from looptune.tune.view import View

# Three rounds are indistinguishable from random to a handful of queries; six cost 10 us and leave no visible pattern.
_ROUNDS = 6


class Random(Strategy):
    name: ClassVar[str] = "random"

    def __init__(self, space: Space | View, seed: int = 0) -> None:
        super().__init__(space, seed)
        self._next = 0

    def ask(self) -> Configuration | None:
        size = self.space.size
        while self._next < size:
            configuration = self.space[permuted(self._next, size, self.seed)]
            self._next += 1
            if configuration is not None:
                return configuration
        return None

    def tell(self, configuration: Configuration, cost_us: float | None) -> None:
        """Sampling without replacement: nothing to learn."""


def permuted(index: int, size: int, seed: int) -> int:
    """The image of ``index`` under a permutation of ``range(size)``.

    >>> sorted(permuted(i, 7, seed=1) for i in range(7))
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
