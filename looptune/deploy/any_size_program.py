"""A program without known sizes on a GPU, for arrays of any number of elements and rows.

the arrays of a call ─┬─▶ at most 2^31 elements each: the kernels, whose subscripts have 32 bits
                      └─▶ more: the same kernels with subscripts of 64 bits, built at the first such call
its sizes ────────────▶ more blocks of rows than a GPU takes along y: kernels whose blocks are launched along x
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from looptune.backends.base import Backend, Binary, PartialRun, Program, TimeLimit
from looptune.backends.codegen.kernel import uncountable_array
from looptune.lower.passes.tall_grids import exchange_blocks
from looptune.lower.plan import Plan, uncounted_arrays

MOST_SIZES = 64
"""Of calls whose plans are kept."""


def load(backend: Backend, plan: Plan, binary: Binary, *, blocks: bool) -> Program:
    """Return the program of a plan that is built as ``binary``; ``blocks``: threads come in blocks, as on a GPU.

    One whose arrays are known to be countable in 32 bits, or that runs on a CPU, is what the backend loads.
    """
    program = backend.load(binary)
    return AnySizeProgram(backend, plan, program) if blocks and uncounted_arrays(plan) else program


@dataclass(slots=True)
class AnySizeProgram(Program):
    """A plan whose arrays may have more elements than 32 bits count; ``usual`` is its program for all others.

    ``others``: those that were built for calls, by whether subscripts have 64 bits, and by the kernels whose blocks are
    exchanged. ``grids``: the plan and these kernels by the sizes of calls.
    """

    backend: Backend
    plan: Plan
    usual: Program
    others: dict[tuple[bool, frozenset[str]], Program] = field(default_factory=dict)
    grids: dict[tuple[tuple[str, int], ...], tuple[Plan, frozenset[str]]] = field(default_factory=dict)

    def run(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None) -> None:
        self._fitting(arrays, scalars).run(arrays, scalars, stream)

    def run_within(
        self, limit: TimeLimit, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None
    ) -> PartialRun:
        return self._fitting(arrays, scalars).run_within(limit, arrays, scalars, stream)

    def _fitting(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float]) -> Program:
        """Return the program for these arrays. Raises ResourceError where a GPU has too little for its kernels."""
        counts = {name: prod(shape_of(array)) for name, array in arrays.items()}
        wide = uncountable_array(self.plan, counts, scalars) is not None
        sizes = tuple(sorted((n, v) for n, v in scalars.items() if isinstance(v, int)))
        if sizes not in self.grids:
            self.grids = {**(self.grids if len(self.grids) < MOST_SIZES else {}),
                          sizes: exchange_blocks(self.plan, dict(sizes))}  # fmt: skip
        plan, exchanged = self.grids[sizes]
        if not wide and not exchanged:
            return self.usual
        key = wide, exchanged
        if key not in self.others:
            plan = replace(plan, wide_indices=wide or plan.wide_indices)
            self.others[key] = self.backend.load(self.backend.build(plan))
        return self.others[key]


def shape_of(array: Any) -> tuple[int, ...]:
    """Return the shape of an array; one on a device may have the CUDA Array Interface alone."""
    facts = None if hasattr(array, "shape") else getattr(array, "__cuda_array_interface__", None)
    return tuple(array.shape if facts is None else facts["shape"])
