"""Where built modules keep what they have compiled."""

from __future__ import annotations

import os
from pathlib import Path


def module_folder() -> Path:
    """Return the folder of compiled kernels: in the user's folder for caches."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path(os.path.expanduser("~")) / ".cache") / "looptune" / "modules"
