"""Arrays that begin at multiples of 16 bytes, as text: what lets a GPU's compiler make vectors of neighbours.

Numba has no word for it. A device function without code of its own says it of the arrays of the kernel that calls it.
"""

from __future__ import annotations

from looptune.backends.tiles import WIDE

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
