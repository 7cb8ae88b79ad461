"""Search: spaces, strategies, workers, the store.

The package can be called for one more release: ``@looptune.tune`` is the former name of ``@looptune.autotune``.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *args: Any, **named: Any) -> Any:
        warnings.warn("looptune.tune is now looptune.autotune", DeprecationWarning, stacklevel=2)
        return importlib.import_module("looptune.deploy.autotune").autotune(*args, **named)


# As Python's data model has it for modules; a function of this name would hide the package.
sys.modules[__name__].__class__ = _Callable
