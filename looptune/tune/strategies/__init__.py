"""The search strategies: one in each file, each listed here. Packages may add others, see ``core/plugins``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from looptune.core import plugins
from looptune.core.errors import UsageError
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
from looptune.tune.strategies.sections import Sections

if TYPE_CHECKING:
    from looptune.core.plugins import Plugin

ALL: Mapping[str, type[Strategy]] = MappingProxyType(
    {
        s.name: s
        for s in (
            Exhaustive, Random, Sampling, Sections, JiangSnir, GatlasTrials, GatlasNested, Local, Evolutionary, Model,
            Optuna, PyATF,
        )
    }
)  # fmt: skip

__all__ = ["ALL", "Strategy", "named", "names"]


def names() -> tuple[str, ...]:
    """Return the names of all strategies, those of packages last."""
    return (*ALL, *(n for n in plugins.names("strategy") if n not in ALL))


def named(name: str) -> type[Strategy]:
    """Return the strategy of this name, built in or from a plug-in.

    Raises UsageError, which lists the names, if there is none, and PluginError if the plug-in cannot be used.
    """
    plugin = plugins.find_plugin("strategy", name, built_in=name in ALL)
    if plugin is not None:
        return _brought(plugin)
    if name not in ALL:
        raise UsageError(f"unknown strategy '{name}': choose one of {', '.join(names())}")
    return ALL[name]


def _brought(plugin: Plugin) -> type[Strategy]:
    cls = plugin.load()
    if not (isinstance(cls, type) and issubclass(cls, Strategy)):
        raise plugin.error("it is not a subclass of looptune.tune.strategies.base.Strategy")
    if inspect.isabstract(cls):
        raise plugin.error(f"it lacks {', '.join(sorted(cls.__abstractmethods__))}")
    if getattr(cls, "name", "") != plugin.name:
        raise plugin.error(f"it calls itself {getattr(cls, 'name', 'nothing')}")
    return cls
