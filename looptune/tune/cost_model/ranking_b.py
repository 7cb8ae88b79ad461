"""How alike two orders are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """The correlation of the ranks; equal values share the mean of theirs. None where one of them is all the same, or
    nothing is there.

    >>> spearman([1, 2, 3], [10, 20, 15])
    0.5
    """
    if not len(a):
        return None
    x, y = (_ranks(np.asarray(v, float)) for v in (a, b))
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return round(float(x @ y) / size, 12) if size else None


def _ranks(values: np.ndarray) -> np.ndarray:
    _, which, times = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(times)
    return np.asarray((last - (times - 1) / 2)[which], float)
