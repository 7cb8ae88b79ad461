"""16 bytes copied at once, for which Numba has no spelling: an LLVM load and a store."""

from __future__ import annotations

from looptune.lower.passes.shared_memory import WIDE

COPY = "copy_16_bytes"
COPY_TEXT = f'''\
@intrinsic
def {COPY}(typingctx, to, at, source, place):
    """16 bytes of ``source`` from element ``place`` on, to ``to`` from element ``at`` on; both are aligned."""

    def emit(context, builder, signature, args):
        wide = ir.VectorType(ir.IntType(32), 4).as_pointer()

        def where(k):
            array = context.make_array(signature.args[k])(context, builder, args[k])
            return builder.bitcast(builder.gep(array.data, [builder.zext(args[k + 1], ir.IntType(64))]), wide)

        builder.store(builder.load(where(2), align={WIDE}), where(0), align={WIDE})
        return context.get_dummy_value()

    return types.void(to, types.uint64, source, types.uint64), emit
'''
