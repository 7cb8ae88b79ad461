"""The first questions of a search whose costs are predicted: where the prediction, corrected, expects most.

    log cost(x) = log prediction(x) + constant + process(x)

A model of the device ranks versions well and misjudges what it knows nothing of by the same factor wherever that
occurs. So the Gaussian process learns how wrong the prediction is, and the first question is the version with the least
prediction. After FEW times, ``model`` goes on with the prediction as one more trend.

Source: a computer model as the mean of a Gaussian process, after Kennedy and O'Hagan, "Bayesian calibration of computer
models", 2001.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from looptune.tune.strategies import gaussian_process

if TYPE_CHECKING:
    from looptune.tune.strategies.gaussian_process import Features, Hyperparameters

FEW = 10
"""Times after which the prediction is only a trend."""
DOUBT = 0.4
"""Least deviation of the logarithm of a cost from what is predicted: the prediction is seldom twice too long."""
UNKNOWN = 10.0
"""A version without a prediction is taken to cost so many times the most that is predicted: it may not be built."""
FIT, FITTED_FROM = 4, 4
"""Steps of the fit for each question, from so many times on."""
TREND = 3.0
"""Weight of the prediction among the trends, whose prior has the deviation 1: most of the costs' spread is its."""
NEAR_FAILED = 3.0
"""While nothing has a time, what is beside a version that failed counts as if its prediction were e^3 times as long."""


def logarithms(texts: Sequence[str], predicted_us: Mapping[str, float]) -> np.ndarray | None:
    """Return the logarithm of the prediction of each version, None where nothing is predicted."""
    known = [us for text in texts if (us := predicted_us.get(text)) is not None]
    if not known:
        return None
    most_us = UNKNOWN * max(known)
    found: np.ndarray = np.log([max(predicted_us.get(text, most_us), 1e-3) for text in texts])
    return found


def trends(columns: np.ndarray, logs: np.ndarray, timed: np.ndarray) -> np.ndarray:
    """Return the columns and, last, the predictions ``logs`` in units of their spread over the rows ``timed``."""
    scaled = (logs - logs[timed].mean()) / (logs[timed].std() + 1e-9)
    return np.concatenate([columns, TREND * scaled[:, None]], axis=1)


def next_row(
    features: Features,
    logs: np.ndarray,
    rows: np.ndarray,
    costs: np.ndarray,
    candidates: np.ndarray,
    parameters: Hyperparameters,
) -> tuple[int, Hyperparameters]:
    """Return the candidate to ask for, and the hyperparameters; ``costs`` are those of ``rows``, inf of a failure."""
    timed, failed, columns = rows[costs < np.inf], rows[costs == np.inf], features.columns
    if not len(timed):
        expected = logs[candidates]
        if len(failed):
            process, _ = gaussian_process.derived(columns[failed], np.zeros(len(failed)), features.axis, parameters)
            beside = process.covariance(columns[failed], columns[candidates])
            expected = expected + NEAR_FAILED * (beside**4).sum(axis=0)
        return int(candidates[expected.argmin()]), parameters
    values = np.log(costs[costs < np.inf])
    wrong = values - logs[timed]
    constant = float(np.median(wrong))
    process, _ = gaussian_process.derived(columns[timed], wrong - constant, features.axis, parameters)
    if len(timed) >= FITTED_FROM:
        process, parameters = gaussian_process.fitted(columns[timed], wrong - constant, features.axis, parameters, FIT)
    mean, deviation, across = process.predict(columns[candidates])
    own = np.sqrt(process.variance)
    deviation = deviation * max(DOUBT, own) / own
    likely = np.ones(len(candidates))
    if len(failed):
        likely = gaussian_process.feasible(across, process.covariance(columns[failed], columns[candidates]))
    gain = gaussian_process.improvement(float(values.min()), logs[candidates] + constant + mean, deviation)
    return int(candidates[(likely * gain).argmax()]), parameters
