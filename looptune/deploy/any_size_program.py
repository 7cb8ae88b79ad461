"""A program without known sizes on a GPU, for arrays of any number of elements.

the arrays of a call ─┬─▶ at most 2^31 elements each: the kernels, whose subscripts have 32 bits
                      └─▶ more: the same kernels with subscripts of 64 bits, built at the first such call
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from looptune.backends.base import Backend, Binary, PartialRun, Program, TimeLimit
from looptune.backends.codegen.kernel import uncountable_array
from looptune.lower.plan import Plan, uncounted_arrays


def load(backend: Backend, plan: Plan, binary: Binary, *, blocks: bool) -> Program:
    """Return the program of a plan that is built as ``binary``; ``blocks``: threads come in blocks, as on a GPU.

    One whose arrays are known to be countable in 32 bits, or that runs on a CPU, is what the backend loads.
    """
    program = backend.load(binary)
    return AnySizeProgram(backend, plan, program) if blocks and uncounted_arrays(plan) else program


@dataclass(slots=True)
class AnySizeProgram(Program):
    """A plan whose arrays may have more elements than 32 bits count; ``usual`` is its program for all others."""

    backend: Backend
    plan: Plan
    usual: Program
    wide: Program | None = None

    def run(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None) -> None:
        self._fitting(arrays, scalars).run(arrays, scalars, stream)

    def run_within(
        self, limit: TimeLimit, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None
    ) -> PartialRun:
        return self._fitting(arrays, scalars).run_within(limit, arrays, scalars, stream)

    def _fitting(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float]) -> Program:
        """Return the program for these arrays. Raises ResourceError where a GPU has too little for its kernels."""
        counts = {name: prod(shape_of(array)) for name, array in arrays.items()}
        if uncountable_array(self.plan, counts, scalars) is None:
            return self.usual
        if self.wide is None:
            self.wide = self.backend.load(self.backend.build(replace(self.plan, wide_indices=True)))
        return self.wide


def shape_of(array: Any) -> tuple[int, ...]:
    """Return the shape of an array; one on a device may have the CUDA Array Interface alone."""
    facts = None if hasattr(array, "shape") else getattr(array, "__cuda_array_interface__", None)
    return tuple(array.shape if facts is None else facts["shape"])
