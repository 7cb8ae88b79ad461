"""How a space is searched: one strategy a file, each listed here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from looptune.tune.strategies.base import Strategy
from looptune.tune.strategies.exhaustive import Exhaustive
from looptune.tune.strategies.random import Random

ALL: Mapping[str, type[Strategy]] = MappingProxyType({s.name: s for s in (Exhaustive, Random)})

__all__ = ["ALL", "Strategy"]
