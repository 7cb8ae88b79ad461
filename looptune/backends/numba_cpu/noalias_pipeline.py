"""How kernels of the CPU target are compiled: no two arrays overlap.

LLVM would else ask before each loop, and gives up vectorising one of several rows, for which it had to ask too much.
"""

from __future__ import annotations

from typing import Any

from numba.core.compiler import Compiler


class Unaliased(Compiler):
    """A ``pipeline_class`` for ``njit``."""

    def define_pipelines(self) -> Any:
        self.state.flags.noalias = True
        return super().define_pipelines()  # type: ignore[no-untyped-call]  # numba's functions have no types
