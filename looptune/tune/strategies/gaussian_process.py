"""A Gaussian process over the axes of configurations: the expected cost of a candidate and its uncertainty.

    cost(x) = w x + process  w: ridge regression, so that trends are extrapolated beyond the points seen
    k(a, b) = exp(-r)        r^2 = sum over axes (distance of a and b along the axis / length of the axis)^2

Each axis has a length of its own (automatic relevance determination): an axis that does not matter gets a long one, so
that words, flags and quantities with interactions are one model. Lengths and noise maximise the marginal likelihood
with a prior; a question makes a few steps of Adam (Kingma and Ba, 2015) from where the last one ended, so that the cost
of a question is bounded. The covariance is that of Matern with 1/2, the roughest: times of kernels have cliffs.

A quantity is its logarithm; one whose values are whole and no powers of two is also the power of two that divides it,
since the sizes of warps, vectors and cache lines are powers of two. Costs are logarithms, and those above the median
are compressed: the cost of a bad version says little about the good ones. What could not be timed has no cost, and
lowers the probability that candidates near it can be timed (Schonlau, 1997), by a kernel estimate.

Sources: Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, chapters 2 and 5; the transformations
and the treatment of failures after Hellsten et al., "BaCO: A Fast and Portable Bayesian Compiler Optimization
Framework", ASPLOS 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from looptune.tune.space.axes import Axis
    from looptune.tune.space.table_view import Table

DRAWN = 0.3
"""Of what is over the median, so much is kept."""
ABSENT, DIVISOR, WORD = -0.5, 0.5, 1.4
"""Coordinates: of a quantity that is not there; the weight of the power of two; the weight of the items of a word."""
LARGEST_DIVISOR = 5
"""Powers of two above 2^5 do not tell more: 32 is the size of a warp."""
LENGTH, NOISE = 0.7, 0.01
"""Prior: length of an axis over the square root of the number of axes; noise over the variance of the process."""
LENGTH_SPREAD, NOISE_SPREAD = 1.0, 1.5
"""Standard deviations of the logarithms in the prior."""
LENGTHS, NOISES = (0.03, 50.0), (1e-4, 0.5)
RATE, MEAN_DECAY, SQUARE_DECAY = 0.15, 0.9, 0.99
"""Of Adam."""
FAILED = 0.1
"""Weight of the prior that a version can be timed, where one known version at the same place has weight 1."""


@dataclass(frozen=True, slots=True)
class Features:
    """Coordinates of configurations: ``columns[k]`` is row k, and column c belongs to axis ``axis[c]``."""

    columns: np.ndarray
    axis: np.ndarray

    @property
    def axes(self) -> int:
        return int(self.axis.max(initial=-1)) + 1


def features(table: Table) -> Features:
    """Return the coordinates of the rows of a table; an axis with one value has none."""
    digits = table.digit_rows
    every = (
        columns[digits[:, k]]
        for k, axis in enumerate(table.axes(0) if table.size else ())
        for columns in _columns(axis, table.columns[k])
    )
    parts = [part for part in every if (part != part[0]).any()]
    owners = [np.full(part.shape[1], number) for number, part in enumerate(parts)]
    nothing = np.zeros((table.size, 0))
    return Features(np.concatenate([nothing, *parts], axis=1), np.concatenate([np.zeros(0, int), *owners]))


def _columns(axis: Axis, words: np.ndarray) -> list[np.ndarray]:
    """Return the coordinates of each digit, the last row for no value; one array for each length to be fitted."""
    if not axis.numeric:
        return [WORD * words]
    values = np.asarray(axis.values, float)
    scale = np.log2(values) if values.min() > 0 else values
    found = [_spread(scale)[:, None]]
    if values.min() > 0 and (values % 1 == 0).all() and (values < 2**53).all():
        whole = [int(v) for v in values]
        divisors = np.array([min((v & -v).bit_length() - 1, LARGEST_DIVISOR) for v in whole], float)
        if any(v & (v - 1) for v in whole) and divisors.max() > divisors.min():
            found.append(DIVISOR * _spread(divisors)[:, None])
    return found


def _spread(values: np.ndarray) -> np.ndarray:
    """Return the values scaled to 0 to 1, then ABSENT."""
    least, most = values.min(), values.max()
    return np.append((values - least) / (most - least) if most > least else np.ones(len(values)), ABSENT)


def targets(costs: np.ndarray) -> np.ndarray:
    """Return the values to fit, from finite costs: mean 0, deviation 1."""
    logs = np.log(costs)
    median = np.median(logs)
    drawn = np.where(logs > median, median + DRAWN * (logs - median), logs)
    values: np.ndarray = (drawn - drawn.mean()) / (drawn.std() + 1e-9)
    return values


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Logarithms of the lengths and, last, of the noise; with the state of Adam after ``steps`` steps."""

    logs: np.ndarray
    mean: np.ndarray
    square: np.ndarray
    steps: int = 0

    @classmethod
    def prior(cls, axes: int) -> Self:
        logs = np.append(np.full(axes, log(LENGTH * sqrt(max(axes, 1)))), log(NOISE))
        return cls(logs, np.zeros(axes + 1), np.zeros(axes + 1))

    def weights(self, axis: np.ndarray) -> np.ndarray:
        """Return for each column what it is multiplied by."""
        weights: np.ndarray = np.exp(-self.logs[:-1])[axis]
        return weights

    def descended(self, gradient: np.ndarray) -> Self:
        """Return the hyperparameters after one step of Adam."""
        steps = self.steps + 1
        mean = MEAN_DECAY * self.mean + (1 - MEAN_DECAY) * gradient
        square = SQUARE_DECAY * self.square + (1 - SQUARE_DECAY) * gradient**2
        size = np.sqrt(square / (1 - SQUARE_DECAY**steps)) + 1e-8
        logs = self.logs - RATE * mean / (1 - MEAN_DECAY**steps) / size
        logs[:-1] = np.clip(logs[:-1], log(LENGTHS[0]), log(LENGTHS[1]))
        logs[-1] = np.clip(logs[-1], log(NOISES[0]), log(NOISES[1]))
        return type(self)(logs, mean, square, steps)


@dataclass(frozen=True, slots=True)
class Process:
    """Known ``points`` by columns with the inverse of their covariance, and ``solved``: that times the values."""

    points: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    inverse: np.ndarray
    solved: np.ndarray

    def predict(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return mean and deviation of each candidate in units of ``values``, and its covariances with the points."""
        # Single precision is enough for a choice, and twice as fast.
        inverse, solved = self.inverse.astype(np.float32), self.solved.astype(np.float32)
        across = self.covariance(self.points, columns)
        left = 1 - (across * (inverse @ across)).sum(axis=0)
        return solved @ across, np.sqrt(self.variance * np.maximum(left, 1e-6)), across

    def covariance(self, points: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return a row for each point, a column for each candidate."""
        a, b = ((part * self.weights).astype(np.float32) for part in (points, columns))
        found: np.ndarray = np.exp(-np.sqrt(_squares(a, b)))
        return found

    @property
    def variance(self) -> float:
        """Return the variance of the process that is most likely."""
        return max(float(self.values @ self.solved) / len(self.values), 1e-9)


def fitted(
    points: np.ndarray, values: np.ndarray, axis: np.ndarray, parameters: Hyperparameters, steps: int
) -> tuple[Process, Hyperparameters]:
    """Return the process of the points, a row each, and the hyperparameters after ``steps`` steps."""
    for _ in range(steps):
        process, gradient = derived(points, values, axis, parameters)
        parameters = parameters.descended(gradient)
    return process, parameters


def derived(
    points: np.ndarray, values: np.ndarray, axis: np.ndarray, parameters: Hyperparameters
) -> tuple[Process, np.ndarray]:
    """Return the process and the gradient of the negative logarithm of likelihood and prior.

    The variance of the process is at its most likely value. With W = K^-1 - n / (y' K^-1 y) (K^-1 y)(K^-1 y)', the
    derivative by a parameter is half the sum of W * dK (Rasmussen and Williams, formula 5.9).
    """
    n, noise = len(values), float(np.exp(parameters.logs[-1]))
    weights = parameters.weights(axis)
    scaled = points * weights
    squares = _squares(scaled, scaled)
    np.fill_diagonal(squares, 0.0)
    radius = np.sqrt(squares)
    covariance = np.exp(-radius)
    slope = covariance / np.maximum(radius, 1e-3)
    covariance.flat[:: n + 1] += noise
    inverse = np.linalg.inv(covariance)
    solved = inverse @ values
    share = n / max(float(values @ solved), 1e-12)
    pull = (inverse - share * np.outer(solved, solved)) * slope
    # The sum of pull[i, j] (x[i] - x[j])^2, for each column x, without a matrix of differences for each axis.
    by_column = 2 * ((pull.sum(axis=1)[:, None] * scaled * scaled).sum(axis=0) - (scaled * (pull @ scaled)).sum(axis=0))
    prior = Hyperparameters.prior(len(parameters.logs) - 1).logs
    gradient = (parameters.logs - prior) / LENGTH_SPREAD**2
    gradient[:-1] += 0.5 * np.bincount(axis, by_column, len(gradient) - 1)
    gradient[-1] = (parameters.logs[-1] - prior[-1]) / NOISE_SPREAD**2
    gradient[-1] += 0.5 * noise * (np.trace(inverse) - share * float(solved @ solved))
    return Process(points, values, weights, inverse, solved), gradient


def _squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the squares of the distances, a row for each of ``a``."""
    squares: np.ndarray = np.maximum((a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * (a @ b.T), 0)
    return squares


def trend(points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the effect of a unit of each column by itself: ridge regression, with a prior of deviation 1."""
    weights: np.ndarray = np.linalg.solve(points.T @ points + np.eye(points.shape[1]), points.T @ values)
    return weights


def feasible(timed: np.ndarray, failed: np.ndarray) -> np.ndarray:
    """Return for each candidate an estimate, 0 to 1, of the probability that it can be timed.

    Inputs are covariances: a row for each version that was timed, or that failed; a column for each candidate. Their
    fourth power is the weight of a version, so that only those near it count.
    """
    good = (timed**4).sum(axis=0) + FAILED
    likely: np.ndarray = good / (good + (failed**4).sum(axis=0))
    return likely


def improvement(least: float, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return the expected improvement of each candidate over ``least`` (Jones et al., 1998)."""
    z = (least - mean) / deviation
    expected: np.ndarray = deviation * (z * _below(z) + np.exp(-0.5 * z * z) / sqrt(2 * np.pi))
    return expected


def _below(z: np.ndarray) -> np.ndarray:
    """Return the normal distribution function, to 1e-7: Abramowitz and Stegun, formula 26.2.17."""
    t = 1 / (1 + 0.2316419 * np.abs(z))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail: np.ndarray = np.exp(-0.5 * z * z) / sqrt(2 * np.pi) * series
    return np.where(z > 0, 1 - tail, tail)
