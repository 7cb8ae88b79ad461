"""Memory operations of a GPU that need their own text: asynchronous copies, copies of 16 bytes, aligned arrays.

Tiles are filled in advance: while a block computes with one buffer, the next tiles are copied to others.

    tile of 1st, 2nd, … strip begun          for each strip: wait for its tile · barrier · begin a later one · compute

With ``buffers 3`` two tiles are being copied. A thread waits for the copies that it began itself; the barrier, the only
one per strip, extends this to the copies of all threads, and ensures that no thread reads the buffer that is filled
next. Numba has no function for copies that bypass registers (compute capability 8.0), so they are PTX here.

Numba has no function for a copy of 16 bytes either, so it is an LLVM load and a store. That arrays begin at multiples
of 16 bytes is stated by a device function without code of its own, from which a GPU's compiler makes vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from looptune.lower.plan import Kernel, Plan, vector_copied_arrays
from looptune.lower.tiles import WIDE
from looptune.schedule.directives.vectorize import VectorAccess

LEAST_CAPABILITY = 80
"""Of devices that copy to shared memory while they compute."""
WIDTHS = (16, 8, 4)
"""Bytes that one such copy takes."""
BEGIN, AWAIT = "begin_copies", "await_copies"
MOST_GROUPS = 8
"""Of copies in progress: ``tensor`` has as many stages at most."""
IMPORTS = ("from llvmlite import ir", "from numba import types", "from numba.cuda.extending import intrinsic")
_COPY = '''\
@intrinsic
def {name}(typingctx, to, at, source, place, there):
    """{width} bytes of ``source`` from element ``place`` on are on their way to ``to``, from element ``at`` on; zeros
    where they are not ``there``, and then ``place`` may be any."""

    def emit(context, builder, signature, args):
        def where(k, space, kind):
            array = context.make_array(signature.args[k])(context, builder, args[k])
            place = builder.gep(array.data, [builder.zext(args[k + 1], ir.IntType(64))])
            return builder.ptrtoint(builder.addrspacecast(place, ir.PointerType(place.type.pointee, space)), kind)

        count, far = ir.IntType(32), ir.IntType(64)
        read = builder.select(args[4], ir.Constant(count, {width}), ir.Constant(count, 0))
        kind = ir.FunctionType(ir.VoidType(), [count, far, count])
        text = "cp.async.{cache}.shared.global [$0], [$1], {width}, $2;"
        places = [where(0, 3, count), where(2, 1, far)]
        builder.call(ir.InlineAsm(kind, text, "r,l,r,~{{memory}}", True), [*places, read])
        return context.get_dummy_value()

    return types.void(to, types.uint64, source, types.uint64, types.boolean), emit
'''
_ORDER = '''\
@intrinsic
def {name}(typingctx):
    """{what}"""

    def emit(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(ir.InlineAsm(kind, "{ptx};", "~{{memory}}", True), [])
        return context.get_dummy_value()

    return types.void(), emit
'''


def copy(width: int) -> str:
    """Return the name of the function that copies this many bytes."""
    return f"copy_{width}_bytes_ahead"


def wait_group_name(groups: int) -> str:
    """Return the name of the function that waits until at most this many groups of copies are in progress."""
    return f"{AWAIT}_{groups}"


def helpers(kernels: Iterable[str]) -> Iterator[str]:
    """Yield the device functions that kernels use."""
    texts = tuple(kernels)
    for width in WIDTHS:
        if any(copy(width) in text for text in texts):
            # Past the L1 where that is possible: nobody else on this multiprocessor reads it.
            yield _COPY.format(name=copy(width), width=width, cache="cg" if width == max(WIDTHS) else "ca")
    if any(BEGIN in text for text in texts):
        yield _ORDER.format(name=BEGIN, what="Copies begun since the last call are a group.",
                            ptx="cp.async.commit_group")  # fmt: skip
    for groups in range(MOST_GROUPS):
        if any(f"{wait_group_name(groups)}(" in text for text in texts):
            yield _ORDER.format(name=wait_group_name(groups), what=f"All groups but the last {groups} have arrived.",
                                ptx=f"cp.async.wait_group {groups}")  # fmt: skip


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


ALIGNED_ARRAY = "array_is_aligned"
ALIGNED_ARRAY_TEXT = f'''\
@intrinsic
def {ALIGNED_ARRAY}(typingctx, array):
    """The array, which is one of several parameters of the calling kernel, begins at a multiple of {WIDE} bytes."""

    def emit(context, builder, signature, args):
        word = ir.IntType(64)
        place = builder.ptrtoint(context.make_array(signature.args[0])(context, builder, args[0]).data, word)
        holds = builder.icmp_unsigned("==", builder.and_(place, ir.Constant(word, {WIDE - 1})), ir.Constant(word, 0))
        builder.assume(holds)
        return context.get_dummy_value()

    return types.void(array), emit
'''


def is_vectorized(kernel: Kernel) -> bool:
    """Return whether the kernel's arrays begin at multiples of 16 bytes, so that neighbours are accessed together."""
    return kernel.annotation(VectorAccess) is not None


def aligned(plan: Plan) -> tuple[str, ...]:
    """Return the arrays that have to be aligned: those copied to tiles or accessed 16 bytes at a time."""
    vectorized = (a for kernel in plan.kernels if is_vectorized(kernel) for a in kernel.arrays)
    return tuple(sorted({*vector_copied_arrays(plan), *vectorized}))


def unaligned(array: str) -> str:
    """Return the message for an array that is not aligned."""
    return (
        f"{array} is accessed {WIDE} bytes at a time, and begins at an address that is no multiple of {WIDE}: copy it"
    )
