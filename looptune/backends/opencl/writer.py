"""Plans as OpenCL C: a file of kernels, and in a comment how the host launches them.

__kernel __attribute__((reqd_work_group_size(32, 8, 1)))
void gemm_0(__global float *restrict C, __global const float *restrict A, ...)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from looptune.backends.base import description
from looptune.backends.codegen import half
from looptune.backends.codegen.c import CWriter, close_braces, reads_double
from looptune.backends.codegen.c_host import HostLines, host_writer
from looptune.backends.codegen.identifiers import OPENCL_NAMES, avoid_reserved
from looptune.backends.codegen.kernel import check_portable
from looptune.core.escape import comment
from looptune.ir import c_printer
from looptune.ir.nodes import Array
from looptune.lower.machine import Machine
from looptune.lower.plan import Dimension, FinishedPlan, Kernel, Plan, vector_copied_arrays
from looptune.lower.signature import extent_names
from looptune.lower.tiles import WIDE

if TYPE_CHECKING:
    from looptune.core.floating_point import Contract

NAME = "opencl"
DOUBLE = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
_BARRIER = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
_COPY = """\
inline void {name}(__local void *to, __global const void *from)
{{
    *(__local {kind} *)to = *(__global const {kind} *)from;
}}
"""
_COPY_OR_ZEROS = """\
inline void {name}(__local void *to, __global const void *from, int there)
{{
    if (there)
        *(__local {kind} *)to = *(__global const {kind} *)from;
    else
        *(__local {kind} *)to = ({kind})0;
}}
"""
_ANY = f"""\
inline int any_of_block(__local int *flag, int own)
{{
    if (get_local_id(0) == 0 && get_local_id(1) == 0)
        *flag = 0;
    {_BARRIER}
    if (own)
        *flag = 1;
    {_BARRIER}
    int any = *flag;
    {_BARRIER}
    return any;
}}
"""
_WIDE = MappingProxyType({4: "uint", 8: "uint2", 16: "uint4"})


class OpenClWriter(CWriter):
    """Copies ahead are made at once: what is filled for a later iteration is there before its barrier."""

    contraction_pragma = "#pragma OPENCL FP_CONTRACT OFF"

    barrier = _BARRIER
    types = MappingProxyType({
        "float16": "ushort", "bfloat16": "ushort", "float32": "float", "float64": "double",
        "int8": "char", "int16": "short", "int32": "int", "int64": "long",
        "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong", "bool": "uchar",
    })  # fmt: skip
    wide_suffix = "L"
    block_flag = "__local int any__flag;"

    def name(self, name: str) -> str:
        return avoid_reserved(name, OPENCL_NAMES)

    def opening(self, kernel: Kernel) -> str:
        x, y = kernel.block
        return f"__kernel __attribute__((reqd_work_group_size({x}, {y}, 1)))\nvoid {kernel.name}"

    def array_parameter(self, dtype: str, name: str, constant: bool, restrict: bool) -> str:
        return f"__global {'const ' * constant}{self.types[dtype]} *{'restrict ' * restrict}{name}"

    def thread(self, dimension: Dimension) -> str:
        return self.coordinates.get(f"thread {dimension}", f"(uint)get_local_id({'xyz'.index(dimension)})")

    def block_number(self, dimension: Dimension, kind: str) -> str:
        number = self.coordinates.get(f"block {dimension}", f"get_group_id({'xyz'.index(dimension)})")
        return f"({self.types[kind]}){number}"

    def shared(self, name: str, count: int, dtype: str, alignment: int = 0) -> str:
        aligned = f" __attribute__((aligned({alignment})))" if alignment else ""
        return f"__local {self.types[dtype]} {name}[{count}]{aligned};"

    def local_array(self, name: str, count: int, dtype: str) -> str:
        return f"{self.types[dtype]} {name}[{count}];"

    def block_any(self, condition: str) -> str:
        self.asks = True
        self.functions["any_of_block"] = _ANY
        return f"any_of_block(&any__flag, {condition})"

    def special(self, value: float, dtype: str) -> str:
        text = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "(-INFINITY)"
        return text if dtype == "float32" else f"((double){text})"

    def function(self, fn: str, dtype: str) -> str:
        return fn

    def half_function(self, name: str) -> str:
        return half.for_opencl(name)

    def inline(self, result: str) -> str:
        return f"inline {result}"

    def copied(self, width: int, to: tuple[str, str], source: tuple[str, str]) -> str:
        name = f"copy_{width}_bytes"
        self.functions[name] = _COPY.format(name=name, kind=_WIDE[width])
        return f"{name}(&{to[0]}[{to[1]}], &{source[0]}[{source[1]}]);"

    def copy_async(self, width: int, to: tuple[str, str], source: tuple[str, str], there: Sequence[str]) -> str:
        name = f"copy_{width}_bytes_or_zeros"
        self.functions[name] = _COPY_OR_ZEROS.format(name=name, kind=_WIDE[width])
        return f"{name}(&{to[0]}[{to[1]}], &{source[0]}[{source[1]}], {self.both(*there) or '1'});"

    def commit_group(self) -> tuple[str, ...]:
        return ()

    def wait_group(self, groups: int) -> tuple[str, ...]:
        return ()

    # Its work groups cannot wait for each other.
    grid_width = ""

    def grid_barrier(self, arrived: str, met: str) -> str:
        raise AssertionError("the host makes every launch")

    grid_barrier_exit = grid_barrier

    def choose_array(self, name: str, dtype: str, condition: str, a: str, b: str) -> str:
        raise AssertionError("only blocks that wait for each other keep their tiles")

    def lane_value(self, name: str, by: int) -> str:
        raise AssertionError("only blocks that wait for each other keep their tiles")


def machine(contract: Contract) -> Machine:
    """Return the capabilities of OpenCL's devices, whose work groups cannot wait for each other."""
    return Machine(blocks=True, contract=contract, grid_barrier=False, host_reads=True)


def device_text(plan: FinishedPlan) -> str:
    """Return the kernels and the functions that they call, for a plan in which the host makes all launches."""
    return _device(plan, OpenClWriter(plan, extent_names(plan)))


def _device(plan: FinishedPlan, writer: OpenClWriter) -> str:
    check_portable(plan, NAME)
    kernels = [writer.kernel(k) for k in plan.kernels]
    functions = (writer.functions[name] for name in sorted(writer.functions))
    return "\n".join([*([DOUBLE] if reads_double(plan) else []), *functions, *kernels])


def file_text(plan: FinishedPlan) -> str:
    """Return a complete ``.cl`` file."""
    writer = OpenClWriter(plan, extent_names(plan))
    device = _device(plan, writer)
    host = "\n".join(f"   {line}" for line in close_braces(_host(plan, host_writer(plan, writer))))
    said = comment(f"{description(plan, NAME)}\n{host}")
    return f"/* {said}\n*/\n\n{device}"


def _host(plan: Plan, writer: CWriter) -> Iterator[str]:
    """Yield what the host does, in C, with ``enqueue(kernel, global size, local size, arguments)``."""
    declared = ", ".join(c_printer.declaration(p) for p in plan.codelet.params if isinstance(p, Array))
    yield f"The host, for buffers {declared} that do not overlap:"
    yield ""
    for array in vector_copied_arrays(plan):
        yield f"{writer.name(array)} begins at a multiple of {WIDE} bytes."
    for local in plan.device_locals:
        count = " * ".join(writer.wide(e, 10) for e in local.shape) if local.shape else "1"
        yield f"{writer.name(local.name)} is a buffer of {count} x {writer.types[local.dtype]}."
    host = HostLines(
        writer,
        lambda kernel, blocks, _: _queued(kernel, blocks, writer),
        lambda flag: f"read_after_all_kernels({writer.name(flag)})[0] != 0",
    )
    yield from host.steps(plan.steps, "")


def _queued(kernel: Kernel, blocks: Sequence[str], writer: CWriter) -> str:
    sides = (*kernel.block, 1)
    along = ", ".join(b if n == 1 else f"{b} * {n}" for b, n in zip(blocks, sides, strict=True))
    args = ", ".join(writer.name(n) for n in (*kernel.arrays, *kernel.scalars))
    return f"enqueue({kernel.name}, ({along}), ({', '.join(map(str, sides))}), {args});"
