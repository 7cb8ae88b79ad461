"""Default limits of a sweep, and the default places of the database and of reports."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

TIMEOUT_S = 60.0
"""What a version may take to compile, and to run."""
FINALS_S = 15.0
"""How long finals wait for clear verdicts; twice that for slow versions."""
DATABASE = Path(".looptune/results.sqlite")
"""The results database, below the folder that looptune is started in."""
REPORTS = Path("reports")
"""Where reports are written, likewise."""

Objective = Literal["time", "energy", "edp"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
"""What versions may be chosen by: see ``runtime.objective``."""

SearchCompiler = Literal["nvrtc", "own"]
SEARCH_COMPILERS: tuple[SearchCompiler, ...] = get_args(SearchCompiler)
"""What compiles the versions of a search for an NVIDIA GPU: NVRTC, or the target's own compiler, as it does finalists.
"""
