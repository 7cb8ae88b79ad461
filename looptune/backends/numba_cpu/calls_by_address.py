"""Calls of compiled functions by their addresses, which the driver of a version is given when it runs.

    addresses = [share, kernel, ...]        call(addresses[0], addresses[1], lo, step, trips, cores, work, uneven, args)

A driver that names its kernels is compiled with each version again, and LLVM compiles the kernels once more with it. By
addresses it depends only on how kernels are launched, so that many versions share one, and its code can be stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from numba import int64, types, void
from numba.core import cgutils
from numba.extending import intrinsic

from looptune.backends.numba_cpu.parallel_for import share_types


def address_of(dispatcher: Any) -> int:
    """Return the address of the machine code of a Numba function that is compiled for one signature."""
    (compiled,) = dispatcher.overloads.values()
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    assert address, "a compiled function has an address"
    return address


@cache
def kernel_caller(args: tuple[Any, ...]) -> Callable[..., None]:
    """Return ``call(kernel, packed)``: it calls the kernel of the signature ``void(*args)`` at an address."""

    @intrinsic
    def call(typingctx, kernel, packed):  # type: ignore[no-untyped-def]
        def emit(context, builder, signature, given):  # type: ignore[no-untyped-def]
            values = cgutils.unpack_tuple(builder, given[1], len(args))
            return _call(context, builder, given[0], args, values)

        return void(int64, types.BaseTuple.from_types(args)), emit

    made: Callable[..., None] = call
    return made


@cache
def share_caller(args: tuple[Any, ...]) -> Callable[..., None]:
    """Return ``call(share, kernel, lo, step, trips, cores, work, uneven, packed)``.

    ``sharer(args)`` is at the address ``share``, and a kernel ``void(int64, int64, *args)`` at the address ``kernel``.
    """
    kernel_type, *numbers, packed_type = share_types(args)

    @intrinsic
    def call(typingctx, share, kernel, lo, step, trips, cores, work, uneven, packed):  # type: ignore[no-untyped-def]
        def emit(context, builder, signature, given):  # type: ignore[no-untyped-def]
            share_at, kernel_at, *others = given
            function = cgutils.create_struct_proxy(kernel_type)(context, builder)
            function.jit_addr = builder.inttoptr(kernel_at, function.jit_addr.type)
            return _call(context, builder, share_at, share_types(args), [function._getvalue(), *others])

        return void(int64, int64, *numbers, packed_type), emit

    made: Callable[..., None] = call
    return made


def _call(context: Any, builder: Any, address: Any, args: Sequence[Any], values: Sequence[Any]) -> Any:
    """Call the function at the address as Numba calls its own, with these types and values of its arguments."""
    pointer = builder.inttoptr(address, context.call_conv.get_function_type(types.void, args).as_pointer())
    status, _ = context.call_conv.call_function(builder, pointer, types.void, args, values)
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return context.get_dummy_value()
