"""Predictions beside measurements, for one version or for a whole space, and the correlation of the two orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from looptune.tune.cost_model.devices import Chip
from looptune.tune.cost_model.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction of one version.

    ``flops``: operations of the original loops, None if they depend on data; ``least_bytes``: bytes of the elements
    that they access, each once; ``registers``: registers per thread of each kernel, where a compiler reported them;
    ``measured_us``: None if the version was not measured.
    """

    kernel: str
    path: str
    sizes: Mapping[str, int | float]
    directives: tuple[str, ...]
    estimate: Estimate
    flops: int | None
    least_bytes: int
    registers: Mapping[str, int]
    measured_us: float | None


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a ranking; ``is_complete`` is False for a time at which the run was cut off."""

    directives: str
    predicted_us: float
    bound: str
    measured_us: float | None
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """The versions of a space, the best predicted first; ``refused`` counts those that are illegal or too large."""

    kernel: str
    path: str
    sizes: Mapping[str, int | float]
    chip: Chip
    versions: tuple[Version, ...]
    refused: int

    @property
    def timed(self) -> tuple[Version, ...]:
        return tuple(v for v in self.versions if v.measured_us is not None and v.is_complete)

    @property
    def correlation(self) -> float | None:
        """Return the rank correlation over the timed versions; see ``spearman``."""
        timed = self.timed
        return spearman([v.predicted_us for v in timed], [v.measured_us for v in timed if v.measured_us is not None])

    def slowdown_of_best(self, first: int) -> float | None:
        """Return the time of the fastest of the ``first`` best predicted, relative to that of the fastest version.

        None if no version was timed.
        """
        times = [v.measured_us for v in self.timed if v.measured_us is not None]
        return min(times[:first]) / min(times) if times else None


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return the rank correlation; equal values share their mean rank. None if one of the two is constant or empty.

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
