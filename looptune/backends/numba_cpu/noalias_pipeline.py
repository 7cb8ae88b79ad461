"""The compiler pipeline of the CPU target, which tells LLVM that no two arrays overlap.

LLVM would otherwise check this before each loop, and not vectorise a loop over several rows, which needs too many
checks.
"""

from __future__ import annotations

from typing import Any

from numba.core.compiler import Compiler


class Unaliased(Compiler):
    """A ``pipeline_class`` for ``njit``."""

    def define_pipelines(self) -> Any:
        self.state.flags.noalias = True
        return super().define_pipelines()  # type: ignore[no-untyped-call]  # numba's functions have no types
