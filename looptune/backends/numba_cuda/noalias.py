"""Tell LLVM that arrays that a kernel only reads do not overlap those that it writes: their loads wait for no store.

    A[p] = A[p] - Q[q] * r                      all four loads are issued at once
    A[p + n] = A[p + n] - Q[q + n] * r

Numba's type of such an array is a readonly one, which its compiler for GPUs does not pass on to LLVM. Here it does, as
C does by ``const float *__restrict__``.

``looptune build`` copies this file into its modules.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from looptune.backends.numba_cuda.tested_versions import is_tested

if is_tested():
    from numba.cuda.core.callconv import CUDACallConv
    from numba.cuda.core.compiler_lock import global_compiler_lock

POINTER = 4
"""The place of the address among what an array is passed as."""


@contextlib.contextmanager
def noalias_readonly() -> Iterator[None]:
    """Yield while readonly arrays are marked for LLVM; one thread at a time."""
    if not is_tested():
        yield
        return
    with global_compiler_lock:
        own = CUDACallConv.decorate_function
        CUDACallConv.decorate_function = _decorated(own)
        try:
            yield
        finally:
            CUDACallConv.decorate_function = own


def _decorated(own: Any) -> Any:
    def decorate(self: Any, fn: Any, args: Sequence[str], kinds: Sequence[Any], noalias: bool = False) -> None:
        own(self, fn, args, kinds, noalias)
        addresses = {f"{name}.{POINTER}" for name, kind in zip(args, kinds, strict=True) if is_readonly(kind)}
        for arg in self.get_arguments(fn):
            if arg.name in addresses:
                arg.add_attribute("noalias")

    return decorate


def is_readonly(kind: Any) -> bool:
    """Return whether a Numba type is that of an array that is not written."""
    return hasattr(kind, "ndim") and not kind.mutable
