"""The bits of a float and the float of 32 bits on a GPU, for which Numba has no function that its simulator has too."""

from __future__ import annotations

from looptune.backends.codegen.half import BITS_OF, FLOAT_OF, PYTHON

IMPORT = "from numba import config"


def _text(name: str, result: str, given: str) -> str:
    simulated = "".join(f"    {line}\n" for line in PYTHON[name].splitlines())
    llvm = {"float32": "ir.FloatType()", "uint32": "ir.IntType(32)"}[result]
    return f'''\
if config.ENABLE_CUDASIM:

{simulated}
else:

    @intrinsic
    def {name}(typingctx, given):
        """The same 32 bits in another type."""

        def emit(context, builder, signature, args):
            return builder.bitcast(args[0], {llvm})

        return types.{result}(types.{given}), emit
'''


TEXTS = {BITS_OF: _text(BITS_OF, "uint32", "float32"), FLOAT_OF: _text(FLOAT_OF, "float32", "uint32")}
"""The definition of each function."""
