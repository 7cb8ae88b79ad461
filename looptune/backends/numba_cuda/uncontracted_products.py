"""Products that NVVM must not contract with a sum, for which Numba has no function; its simulator contracts none."""

from __future__ import annotations

PRODUCT = "product_apart"
IMPORT = "from numba import config"
PRODUCT_TEXT = f'''\
if config.ENABLE_CUDASIM:

    def {PRODUCT}(a, b):
        """a * b."""
        return a * b

else:

    @intrinsic
    def {PRODUCT}(typingctx, a, b):
        """a * b, rounded on its own."""
        kind = typingctx.unify_types(a, b)

        def emit(context, builder, signature, args):
            both = [context.cast(builder, v, t, kind) for v, t in zip(args, signature.args)]
            name = "llvm.nvvm.mul.rn." + ("f" if kind == types.float32 else "d")
            function = builder.module.globals.get(name)
            if function is None:
                function = ir.Function(builder.module, ir.FunctionType(both[0].type, [v.type for v in both]), name)
            return builder.call(function, both)

        return kind(a, b), emit
'''
