"""Search: spaces, strategies, workers, the store.

The package can be called: ``looptune.tune`` is also the decorator of ``looptune.deploy.autotune``, for
``@looptune.tune``.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *args: Any, **named: Any) -> Any:
        return importlib.import_module("looptune.deploy.autotune").autotune(*args, **named)


# As Python's data model has it for modules; a function of this name would hide the package.
sys.modules[__name__].__class__ = _Callable
