"""The peak rate of multiply-adds of a CPU: on every core, independent chains of vector multiply-adds.

    for n passes:  v0 = v0 * x + y,  v1 = v1 * x + y,  ...        CHAINS vectors, as wide as the machine's registers

Two units with a latency of four cycles need eight independent chains; more than twelve and their constants do not fit
into sixteen registers. The code uses LLVM's vectors, because no loop is sure to be vectorised across its chains.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import get_num_threads, int64, njit, prange, types
from numba.core import cgutils
from numba.extending import intrinsic

from looptune.backends.numba_cpu.openmp_layer import load_openmp_layer

CHAINS = 12
_WIDTHS = (("avx512f", 64), ("avx", 32))
"""Bytes of a vector register by the feature that gives it; 16 everywhere else."""


@cache
def fma_chains(dtype: str) -> tuple[Callable[[int], None], Callable[[int], None], int]:
    """Return two functions that make ``count`` passes, on one core and on every core, and the operations of a pass."""
    load_openmp_layer()
    scalar = getattr(types, dtype)
    lanes = _vector_bytes() // np.dtype(dtype).itemsize
    passes = _passes(scalar, lanes)

    @njit(types.void(int64, scalar[::1]), parallel=True, nogil=True)
    def everywhere(count, out):  # type: ignore[no-untyped-def]
        for core in prange(out.size):
            out[core] = passes(count)

    @njit(types.void(int64, scalar[::1]), nogil=True)
    def alone(count, out):  # type: ignore[no-untyped-def]
        out[0] = passes(count)

    out = np.zeros(get_num_threads(), dtype)
    return lambda count: alone(count, out), lambda count: everywhere(count, out), 2 * lanes * CHAINS


def _vector_bytes() -> int:
    features = llvm.get_host_cpu_features()
    return next((width for name, width in _WIDTHS if features.get(name)), 16)


def _passes(scalar: Any, lanes: int) -> Any:
    """``passes(count)``, which gives a number that depends on every chain, so that none can be left out."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        element = context.get_value_type(scalar)
        vector = ir.VectorType(element, lanes)
        bits = 32 if scalar is types.float32 else 64
        kind = ir.FunctionType(vector, [vector] * 3)
        fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{lanes}f{bits}")
        by, to = (ir.Constant(vector, [value] * lanes) for value in (0.5, 0.25))
        begun = (ir.Constant(vector, [1.0 + k] * lanes) for k in range(CHAINS))
        chains = [cgutils.alloca_once_value(builder, v) for v in begun]
        with cgutils.for_range(builder, args[0]):
            for chain in chains:
                builder.store(builder.call(fma, [builder.load(chain), by, to]), chain)
        total = builder.load(chains[0])
        for chain in chains[1:]:
            total = builder.fadd(total, builder.load(chain))
        lane = [builder.extract_element(total, ir.Constant(ir.IntType(32), k)) for k in range(lanes)]
        found = lane[0]
        for value in lane[1:]:
            found = builder.fadd(found, value)
        return found

    @intrinsic
    def passes(typing, count):  # type: ignore[no-untyped-def]
        return scalar(int64), generate

    return passes
