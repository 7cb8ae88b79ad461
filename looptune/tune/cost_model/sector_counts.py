"""The number of sectors that a set of accesses touches: unions of intervals that repeat at strides.

    A[i][k - 1], A[i][k], A[i][k + 1]   for 8 i, 512 k     ==>     8 intervals of 514 elements, 65 sectors each

An access is ``base + sum of coefficient * counter`` in elements, in row-major order; each counter runs over 0 .. count.
Coefficients are taken in ascending order, so that adjacent intervals are merged first. If there are more than MOST
intervals, the last values of a counter are assumed to add as much as those before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

SECTOR = 32
"""Bytes that a cache of a GPU fetches at once."""
MOST = 512
"""Intervals looked at side by side."""

Terms = tuple[tuple[str, int], ...]
"""Counters with their coefficients, none of which is 0."""


@dataclass(frozen=True, slots=True)
class AffineAddress:
    """The address of an access: ``width`` elements from ``base + terms``, in elements of the array."""

    terms: Terms
    base: int
    width: int = 1

    def step_of(self, counter: str) -> int:
        return dict(self.terms).get(counter, 0)


def sectors(places: Iterable[AffineAddress], counts: Mapping[str, float], itemsize: int) -> float:
    """Return how many sectors the accesses to one array touch.

    ``counts`` has the trip counts of the counters that run; the other counters are constant.
    """
    groups: dict[Terms, list[AffineAddress]] = {}
    for p in places:
        terms = tuple(sorted((name, c) for name, c in p.terms if counts.get(name, 1) > 1))
        groups.setdefault(terms, []).append(p)
    return sum(_group(terms, group, counts, itemsize) for terms, group in groups.items())


def _group(terms: Terms, group: Sequence[AffineAddress], counts: Mapping[str, float], itemsize: int) -> float:
    """Of places that differ in their bases alone."""
    starts = np.array([p.base for p in group], np.int64)
    ends = starts + np.array([p.width for p in group], np.int64)
    runs = [(abs(c), max(1, round(counts[name])), min(0, c)) for name, c in terms]
    back = sum(down * (count - 1) for _, count, down in runs)
    starts, ends = merge_intervals(starts + back, ends + back)
    scale = 1.0
    for stride, count, _ in sorted(runs):
        starts, ends, more = _repeated(starts, ends, stride, count)
        scale *= more
    low, high = merge_intervals(starts * itemsize // SECTOR, -(-ends * itemsize // SECTOR))
    return scale * float((high - low).sum())


def _repeated(
    starts: np.ndarray, ends: np.ndarray, stride: int, count: int
) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
    """Return the intervals at ``count`` places ``stride`` apart; and by how much more of them there is than that."""
    if len(starts) == 1 and stride <= ends[0] - starts[0]:
        return starts, ends + stride * (count - 1), 1.0
    looked = min(count, max(4, MOST // len(starts)))
    whole = _shifted(starts, ends, stride, looked)
    if looked == count:
        return *whole, 1.0
    size, half = _size(*whole), _size(*_shifted(starts, ends, stride, looked // 2))
    growth = (size - half) / (looked - looked // 2)
    return *whole, (size + growth * (count - looked)) / size


def _shifted(starts: np.ndarray, ends: np.ndarray, stride: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    by = stride * np.arange(count)[:, None]
    return merge_intervals((starts[None, :] + by).ravel(), (ends[None, :] + by).ravel())


def _size(starts: np.ndarray, ends: np.ndarray) -> int:
    return int((ends - starts).sum())


def merge_intervals(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the union of half-open intervals as disjoint intervals in ascending order.

    >>> merge_intervals(np.array([4, 0]), np.array([6, 4]))
    (array([0]), array([6]))
    """
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    first = np.concatenate([[True], starts[1:] > reach[:-1]])
    last = np.concatenate([np.flatnonzero(first)[1:] - 1, [len(starts) - 1]])
    return starts[first], reach[last]
