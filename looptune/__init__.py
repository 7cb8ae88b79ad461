"""looptune: annotated C loop nests to proved, verified and tuned GPU and CPU kernels.

``compile`` and ``Kernel`` are those of ``looptune.deploy.compile``, ``autotune`` is that of
``looptune.deploy.autotune``, loaded when first asked for: the command line starts fast.
"""

from __future__ import annotations

import importlib
from typing import Any

from looptune.core.errors import LooptuneError
from looptune.core.version import __version__

__all__ = ["Kernel", "LooptuneError", "__version__", "autotune", "compile"]


def __getattr__(name: str) -> Any:
    if name in ("compile", "Kernel"):
        return getattr(importlib.import_module("looptune.deploy.compile"), name)
    if name == "autotune":
        return importlib.import_module("looptune.deploy.autotune").autotune
    if name == "tune":  # the package, and the former name of autotune
        return importlib.import_module("looptune.tune")
    raise AttributeError(f"module 'looptune' has no attribute '{name}'")
