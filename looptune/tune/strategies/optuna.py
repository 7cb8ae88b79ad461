"""Optuna's tree-structured Parzen estimator behind ask and tell; needs the extra ``search``.

Each axis is a parameter, suggested only if it is active: words as categories, quantities by their rank. A suggestion
that is no point of the space, or was asked before, is replaced by the nearest point that is neither, and Optuna is told
the cost of that point under the parameters of that point. Costs are told as logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf, log
from typing import Any, ClassVar

from looptune.tune.space.axes import Axis, consistent_digits
from looptune.tune.strategies.base import Search, Sequential


class Optuna(Sequential):
    """The tree-structured Parzen estimator of Optuna."""

    name: ClassVar[str] = "optuna"
    needs: ClassVar[str | None] = "optuna"

    def search(self) -> Search:
        self.check()
        from optuna import create_study, logging
        from optuna.samplers import TPESampler
        from optuna.trial import TrialState, create_trial

        logging.set_verbosity(logging.WARNING)
        study = create_study(sampler=TPESampler(seed=self.seed))
        starts = self.view.parts()
        while starts:
            trial = study.ask()
            part = trial.suggest_categorical("part", range(len(starts))) if len(starts) > 1 else 0
            axes = self.view.axes(starts[part])
            names = [f"{part} {k} {axis.name}" for k, axis in enumerate(axes)]
            digits = consistent_digits(axes, partial(_suggest, trial, names, axes))
            point = self.view.nearest(starts[part], digits, self.costs, self.rng)
            if point is None:
                return
            cost = yield point
            found = self.view.digits(self.view.towards(point, starts[part]))
            value = log(cost) if 0 < cost < inf else None
            if found == digits and value is not None:
                study.tell(trial, value)
                continue
            study.tell(trial, state=TrialState.FAIL)
            if value is not None:
                given = {n: _rank(a, d) for n, a, d in zip(names, axes, found, strict=True) if d >= 0}
                known = {n: d for n, d in trial.distributions.items() if n in given}
                given = {n: given[n] for n in known} | ({"part": part} if len(starts) > 1 else {})
                known |= {"part": trial.distributions["part"]} if len(starts) > 1 else {}
                study.add_trial(create_trial(params=given, distributions=known, value=value))


def _suggest(trial: Any, names: Sequence[str], axes: Sequence[Axis], k: int) -> int:
    name, axis = names[k], axes[k]
    count = len(axis.values)
    if axis.numeric:
        rank: int = trial.suggest_int(name, 0, count - 1)
        return axis.ascending[rank]
    digit: int = trial.suggest_categorical(name, range(count))
    return digit


def _rank(axis: Axis, digit: int) -> int:
    return axis.ascending.index(digit) if axis.numeric else digit
