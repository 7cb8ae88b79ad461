"""A Gaussian process over points in the plane of features: what a cost is likely to be, and how sure that is.

    k(a, b) = exp(-|a - b|^2 / s)      of the scales s and the noises offered, those that make the costs likeliest

Costs are logarithms, the upper half of them drawn together: how bad a bad version is says little about the good ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

SCALES = (0.15, 0.3, 0.6, 1.2)
"""In units of the square root of the number of features, which is about how far apart two random points are."""
NOISES = (1e-3, 1e-1)
DRAWN = 0.3
"""Of what is over the median, so much is kept."""


@dataclass(frozen=True, slots=True)
class Shape:
    scale: float
    noise: float


def targets(costs: np.ndarray) -> np.ndarray:
    """What is fitted: mean 0, deviation 1. ``inf`` is as the worst; all of them ``inf`` is all 0."""
    timed = np.isfinite(costs)
    if not timed.any():
        return np.zeros(len(costs))
    logs = np.log(np.where(timed, costs, costs[timed].max()))
    median = np.median(logs)
    drawn = np.where(logs > median, median + DRAWN * (logs - median), logs)
    return (drawn - drawn.mean()) / (drawn.std() + 1e-9)


def shape(squares: np.ndarray, y: np.ndarray, features: int) -> Shape:
    """The likeliest; ``squares`` are squared distances between the points that ``y`` is known of."""
    shapes = [Shape(s * sqrt(max(features, 1)), n) for s in SCALES for n in NOISES]
    return max(shapes, key=lambda one: _likelihood(squares, y, one))


def _likelihood(squares: np.ndarray, y: np.ndarray, one: Shape) -> float:
    """The logarithm, with the variance at its best value, but for a constant."""
    lower = _factor(squares, one)
    white = np.linalg.solve(lower, y)
    return float(-0.5 * len(y) * np.log(white @ white / len(y) + 1e-12) - np.log(np.diag(lower)).sum())


def _factor(squares: np.ndarray, one: Shape) -> np.ndarray:
    return np.linalg.cholesky(np.exp(-squares / one.scale) + one.noise * np.eye(len(squares)))


def improvement(squares: np.ndarray, y: np.ndarray, across: np.ndarray, one: Shape) -> np.ndarray:
    """By how much each candidate is expected to fall below the least of ``y``, in units of the targets' deviation.

    ``across``: squared distances, a row for each known point, a column for each candidate.
    """
    lower = _factor(squares, one)
    white = np.linalg.solve(lower, y)
    reach = np.linalg.solve(lower, np.exp(-across / one.scale))
    mean = reach.T @ white
    variance = max(float(white @ white) / len(y), 1e-12) * np.maximum(1 + one.noise - (reach * reach).sum(axis=0), 1e-9)
    deviation = np.sqrt(variance)
    z = (y.min() - mean) / deviation
    return deviation * (z * _below(z) + np.exp(-0.5 * z * z) / sqrt(2 * np.pi))


def _below(z: np.ndarray) -> np.ndarray:
    """The normal distribution function, to 1e-7: Abramowitz and Stegun, formula 26.2.17."""
    t = 1 / (1 + 0.2316419 * np.abs(z))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-0.5 * z * z) / sqrt(2 * np.pi) * series
    return np.where(z > 0, 1 - tail, tail)
