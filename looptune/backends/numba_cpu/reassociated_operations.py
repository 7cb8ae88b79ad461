"""Operations of a sum or a product whose terms LLVM may reorder, for Numba on a CPU.

    y[i] = plus_in_any_order(y[i], A[i, j] * x[j])          fadd reassoc float %y, %term

Only these operations have LLVM's ``reassoc``, and only if a loop accumulates by them into one place
(``cpu_reassociation``): LLVM vectorises such a loop, and has to leave every other operation as C has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.targetconfig import ConfigStack
from numba.extending import intrinsic


def in_any_order(operation: str) -> Callable[..., Any]:
    """Return an intrinsic of two numbers that LLVM may reorder; ``operation``: the method of LLVM's builder."""

    @intrinsic
    def combined(typingctx, a, b):  # type: ignore[no-untyped-def]
        kind = typingctx.unify_types(a, b)

        def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
            told = ConfigStack().top_or_none()
            more = told.fastmath.flags if told is not None and told.fastmath else ()
            both = [context.cast(builder, v, t, kind) for v, t in zip(args, signature.args, strict=True)]
            return getattr(builder, operation)(*both, flags=("reassoc", *more))

        return kind(a, b), emit

    return combined


plus_in_any_order = in_any_order("fadd")
minus_in_any_order = in_any_order("fsub")
times_in_any_order = in_any_order("fmul")


@intrinsic
def fused(typingctx, a, b, c):  # type: ignore[no-untyped-def]
    """Return C's ``fma``: a * b + c, rounded once, on every processor."""
    kind = typingctx.unify_types(a, b, c)

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        three = [context.cast(builder, v, t, kind) for v, t in zip(args, signature.args, strict=True)]
        return builder.fma(*three)

    return kind(a, b, c), emit
