"""Made-up costs over a space: a bowl, a rugged one, one with holes; the same configuration costs the same each time.

bowl      1 + how far each number is from the best one, in doublings, + a step for each word that is not the best
rugged    the bowl times 1 .. 1 + RUGGED, by a hash of the text
holes     the rugged one, of which a share cannot be timed
product   a matrix product on a GPU of 132 multiprocessors: waves of blocks, occupancy, shared memory and its bandwidth
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from math import ceil, log2

from looptune.tune.space.space import Configuration, Space, parse
from looptune.tune.space.table_view import coordinates
from looptune.tune.space.view import SpaceView
from looptune.tune.strategies import Strategy

RUGGED = 0.4
HOLES = 0.25

Cost = Callable[[Configuration], float | None]

SMALL = parse(
    "loop i: unroll {1..16}, {contiguous, split}\nloop j: tile j:{1..16}\n"
    "codelet: grid blocksize {8x8, 16x8, 32x8, 64x8}",
    "s",
)
"""2,048 versions: the bowl's best is found by its coordinates one at a time."""
LARGE = parse("loop i: unroll {1..1000}, {contiguous, split}\nloop j: tile j:{1..1000}", "s")
"""Two millions."""
SECTIONS = parse(
    "loop i: { | unroll {2..8}, {contiguous, split} | tile i:{2..8} }\nloop j: unroll {1..9}\n"
    "where unroll(i) <= unroll(j)\nor\ncodelet: parallel\nor\nloop j: unroll 3\nnest i: permute {i, j | j, i}",
    "s",
)


def bowl(configuration: Configuration, best: float = 12.0) -> float:
    cost = 1.0
    for value in coordinates(configuration)[0].values():
        match value:
            case str():
                cost += 0.5 * ("split" not in value)
            case number:
                cost += abs(log2(number / best))
    return 100.0 * cost


def rugged(configuration: Configuration) -> float:
    return bowl(configuration) * (1.0 + RUGGED * _share(configuration.text))


def holes(configuration: Configuration) -> float | None:
    return None if _share(f"hole {configuration.text}") < HOLES else rugged(configuration)


def product(configuration: Configuration, n: int = 1024, noise: float = 0.0) -> float | None:
    """Microseconds of C = A B with n x n elements, up to so much more by a hash; None where a block has no room."""
    at = {name: value for name, value in coordinates(configuration)[0].items() if not isinstance(value, str)}
    rows, columns, vector = at.get("unroll(i)", 1), at.get("unroll(j)", 1), at.get("runs(j)", 1)
    depth, buffers, parts = at.get("tile(k)"), at.get("buffers(k)", 1), at.get("split(k)", 1)
    threads = at["blocksize"] * at["blocksize.2"]
    high, wide = rows * at["blocksize.2"], columns * at["blocksize"]
    registers = rows * columns + 2 * (rows + columns) + 28
    shared_bytes = 0 if depth is None else 4 * (high + wide) * depth * buffers
    if shared_bytes > 48 * 1024 or registers * threads > 65536:
        return None
    room = min(65536 // (registers * threads), 2048 // threads, 228 * 1024 // max(shared_bytes, 1))
    busiest = ceil(ceil(n / high) * ceil(n / wide) * parts / 132)
    warps = threads / 32
    hidden = min(1.0, min(room, busiest) * warps * min(rows * columns, 16) / 80)
    if depth is None:
        issued = (rows * columns + rows + columns + 2 + 4 / at.get("unroll(k)", 1)) / 4
        cycles = max(issued / hidden, 2 * columns + rows, (high + wide) / 12 / warps)
    else:
        issued = (rows * columns + rows / 4 + columns / vector + 3) / 4
        waiting = 15 * warps / (depth * buffers * min(room, busiest) ** 0.5)
        cycles = max(issued / hidden, columns + rows / 4, (high + wide) / 6 / warps) + waiting
    us = 4.0 + busiest * warps * n / parts * cycles / 1755 + (6 if parts > 1 else 0)
    cleaned = 25.0 if "box(i)" not in at and (n % rows or n % columns) else 0.0
    return (us + cleaned) * (1 + noise * _share(configuration.text))


def _share(text: str) -> float:
    """Evenly over 0 .. 1, fixed for each text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=6).digest()) / 2**48


def searched(strategy: Strategy, cost: Cost, most: int = 5000) -> list[tuple[Configuration, float | None]]:
    """What a strategy asks for with its window as full as a sweep keeps it, and the costs."""
    asked: list[tuple[Configuration, float | None]] = []
    told = 0
    while len(asked) < most and (configuration := strategy.ask()) is not None:
        asked.append((configuration, cost(configuration)))
        while len(asked) - told >= strategy.window:
            strategy.tell(*asked[told])
            told += 1
    return asked


def best(space: Space | SpaceView, cost: Cost) -> float:
    return min(c for c in map(cost, space) if c is not None)
