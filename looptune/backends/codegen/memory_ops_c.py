"""Arrays that begin at multiples of 16 bytes: which have to, and the text with which a GPU's compiler makes vectors.

Numba has no word for it. A device function without code of its own says it of the arrays of the kernel that calls it.
"""

from __future__ import annotations

from looptune.lower.passes.shared_memory import WIDE, wide
from looptune.lower.plan import Plan

ALIGNED = "arrays_are_aligned"
ALIGNED_TEXT = f'''\
@intrinsic
def {ALIGNED}(typingctx):
    """The arrays that the calling kernel is given begin at multiples of {WIDE} bytes."""

    def emit(context, builder, signature, args):
        for arg in builder.function.args:
            if arg.name.endswith(".4") and isinstance(arg.type, ir.PointerType):  # the address of an array
                arg.attributes.align = {WIDE}
        return context.get_dummy_value()

    return types.void(), emit
'''


def aligned(plan: Plan) -> tuple[str, ...]:
    """The arrays that tiles are filled from 16 bytes at a time, and those of kernels that access neighbours at once."""
    return tuple(sorted({*wide(plan), *(a for kernel in plan.kernels if kernel.vectors for a in kernel.arrays)}))


def unaligned(array: str) -> str:
    return (
        f"{array} is accessed {WIDE} bytes at a time, and begins at an address that is no multiple of {WIDE}: copy it"
    )
