"""How a space is searched: one strategy a file, each listed here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from looptune.errors import UsageError
from looptune.tune.strategies.base import Strategy
from looptune.tune.strategies.evolutionary import Evolutionary
from looptune.tune.strategies.exhaustive import Exhaustive
from looptune.tune.strategies.gatlas_nested import GatlasNested
from looptune.tune.strategies.gatlas_trials import GatlasTrials
from looptune.tune.strategies.jiang_snir import JiangSnir
from looptune.tune.strategies.local import Local
from looptune.tune.strategies.model import Model
from looptune.tune.strategies.optuna import Optuna
from looptune.tune.strategies.pyatf import PyATF
from looptune.tune.strategies.random import Random
from looptune.tune.strategies.sampling import Sampling

ALL: Mapping[str, type[Strategy]] = MappingProxyType(
    {
        s.name: s
        for s in (
            Exhaustive, Random, Sampling, JiangSnir, GatlasTrials, GatlasNested, Local, Evolutionary, Model,
            Optuna, PyATF,
        )
    }
)  # fmt: skip

__all__ = ["ALL", "Strategy", "named"]


def named(name: str) -> type[Strategy]:
    """UsageError lists the names there are."""
    if name not in ALL:
        raise UsageError(f"unknown strategy '{name}': choose one of {', '.join(ALL)}")
    return ALL[name]
