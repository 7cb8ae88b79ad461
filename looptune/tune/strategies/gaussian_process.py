"""A Gaussian process over the features of configurations: the expected cost of a candidate and its uncertainty.

    cost(x) = w x + process            w: ridge regression, so that trends are extrapolated beyond the points seen
    k(a, b) = exp(-|a - b| / s)        the scale s and the noise of those offered that make the costs most likely

Costs are logarithms, and those above the median are compressed: the cost of a bad version says little about the good
ones. Versions that could not be timed have no cost, since they say nothing about the speed of their neighbours; a
second process estimates how likely a candidate can be timed, and the expected improvement is weighted by that
(Schonlau, 1997).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

SCALES = (0.1, 0.2, 0.4, 0.8)
"""In units of the square root of the number of features, which is about how far apart two random points are."""
NOISES = (1e-3, 1e-1)
DRAWN = 0.3
"""Of what is over the median, so much is kept."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Parameters of the covariance: length scale and noise."""

    scale: float
    noise: float


def targets(costs: np.ndarray) -> np.ndarray:
    """Return the values to fit, from finite costs: mean 0, deviation 1."""
    logs = np.log(costs)
    median = np.median(logs)
    drawn = np.where(logs > median, median + DRAWN * (logs - median), logs)
    values: np.ndarray = (drawn - drawn.mean()) / (drawn.std() + 1e-9)
    return values


def shape(apart: np.ndarray, y: np.ndarray, features: int) -> Shape:
    """Return the most likely kernel parameters; ``apart`` are distances between the points of ``y``."""
    shapes = [Shape(s * sqrt(max(features, 1)), n) for s in SCALES for n in NOISES]
    return max(shapes, key=lambda one: _likelihood(apart, y, one))


def _likelihood(apart: np.ndarray, y: np.ndarray, one: Shape) -> float:
    """Return the logarithm, with the variance at its best value, but for a constant."""
    lower = _factor(apart, one)
    white = np.linalg.solve(lower, y)
    return float(-0.5 * len(y) * np.log(white @ white / len(y) + 1e-12) - np.log(np.diag(lower)).sum())


def _factor(apart: np.ndarray, one: Shape) -> np.ndarray:
    return np.linalg.cholesky(np.exp(-apart / one.scale) + one.noise * np.eye(len(apart)))


def weights(points: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the effect of a unit of each feature by itself.

    Ridge regression, that is, with a prior of mean 0 and deviation 1.
    """
    return np.linalg.solve(points.T @ points + np.eye(points.shape[1]), points.T @ y)


def feasible(apart: np.ndarray, timed: np.ndarray, across: np.ndarray, one: Shape) -> np.ndarray:
    """Return for each candidate an estimate, 0 to 1, of the probability that it can be timed.

    ``apart``: distances between the known points; ``timed``: 1.0 for those that could be timed, else 0.0; ``across``:
    distances, a row for each known point, a column for each candidate. Without failures nearby the estimate is 1.
    """
    lower = _factor(apart, one)
    failed = np.linalg.solve(lower.T, np.linalg.solve(lower, 1.0 - timed))
    likely: np.ndarray = np.clip(1.0 - np.exp(-across / one.scale).T @ failed, 0.0, 1.0)
    return likely


def improvement(
    apart: np.ndarray, y: np.ndarray, across: np.ndarray, one: Shape, trend: np.ndarray, ahead: np.ndarray
) -> np.ndarray:
    """Return the expected improvement of each candidate over the least of ``y``, in units of ``y``.

    ``apart``: distances between the known points; ``across``: distances, a row for each known point, a column for each
    candidate; ``trend`` and ``ahead``: the linear part of the costs at the known points and at the candidates.
    """
    lower = _factor(apart, one)
    white = np.linalg.solve(lower, y - trend)
    reach = np.linalg.solve(lower, np.exp(-across / one.scale))
    mean = ahead + reach.T @ white
    variance = max(float(white @ white) / len(y), 1e-12) * np.maximum(1 + one.noise - (reach * reach).sum(axis=0), 1e-9)
    deviation = np.sqrt(variance)
    z = (y.min() - mean) / deviation
    expected: np.ndarray = deviation * (z * _below(z) + np.exp(-0.5 * z * z) / sqrt(2 * np.pi))
    return expected


def _below(z: np.ndarray) -> np.ndarray:
    """Return the normal distribution function, to 1e-7: Abramowitz and Stegun, formula 26.2.17."""
    t = 1 / (1 + 0.2316419 * np.abs(z))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail: np.ndarray = np.exp(-0.5 * z * z) / sqrt(2 * np.pi) * series
    return np.where(z > 0, 1 - tail, tail)
