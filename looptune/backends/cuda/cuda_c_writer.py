"""Plans as CUDA C: a file that nvcc compiles, with its kernels and a host function that launches them.

extern "C" __global__ void __launch_bounds__(256) gemm_0(float *__restrict__ C, const float *__restrict__ A, ...)
extern "C" cudaError_t gemm(int ni, int nj, int nk, float alpha, ..., float *C, float *A, float *B, cudaStream_t stream)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import ClassVar

from looptune.backends.base import description
from looptune.backends.codegen import half
from looptune.backends.codegen.c import CWriter, close_braces, list_lines
from looptune.backends.codegen.c_expressions import UNARY
from looptune.backends.codegen.c_host import HostLines, host_writer
from looptune.backends.codegen.grid_barrier import CUDA_LAUNCH, CUDA_LEAVE, CUDA_MEET, LEAVE, MEET, TOGETHER
from looptune.backends.codegen.identifiers import CUDA_NAMES, avoid_reserved
from looptune.backends.codegen.kernel import dynamic_shared_bytes
from looptune.backends.codegen.matrix_ops import FragmentLoad, StepProduct, clear_name, gather_name, store_name
from looptune.backends.codegen.memory_ops import aligned, is_vectorized
from looptune.backends.codegen.register_limits import launch_bounds, max_registers
from looptune.backends.codegen.writer import TensorCoreWriter
from looptune.backends.cuda import matrix_functions
from looptune.backends.cuda.vector_loads import LANES, VectorLoads, VectorPlace, vector_loads
from looptune.core.escape import comment
from looptune.ir import c_printer
from looptune.ir.nodes import SHORT_FLOATS, Array, Binary, Const, Expr, Load, Scalar, Var, promoted_type
from looptune.lower.addresses import MOST_ELEMENTS
from looptune.lower.fp_contraction import is_product
from looptune.lower.plan import ARRIVED, Dimension, FinishedPlan, Kernel, Plan, data_decide, uncounted_arrays
from looptune.lower.signature import extent_names, scalar_type
from looptune.lower.tiles import WIDE
from looptune.lower.warp_tiles import TILES, WarpTiles

_SPECIAL = MappingProxyType({
    ("float32", "nan"): "__int_as_float(0x7fc00000)", ("float32", "inf"): "__int_as_float(0x7f800000)",
    ("float64", "nan"): "__longlong_as_double(0x7ff8000000000000LL)",
    ("float64", "inf"): "__longlong_as_double(0x7ff0000000000000LL)",
})  # fmt: skip

_OF_BITS = MappingProxyType({"popcount": "popcll", "clz": "clzll"})

_COPY = """\
__device__ __forceinline__ void copy_16_bytes(void *to, const void *from)
{
    *(uint4 *)to = *(const uint4 *)from;
}
"""
_AHEAD = """\
__device__ __forceinline__ void {name}(void *to, const void *from, bool there)
{{
    asm volatile("cp.async.{cache}.shared.global [%0], [%1], {width}, %2;"
                 : : "r"((unsigned int)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)),
                     "r"(there ? {width} : 0) : "memory");
}}
"""
_ORDER = """\
__device__ __forceinline__ void {name}()
{{
    asm volatile("{ptx};" : : : "memory");
}}
"""


_VECTOR = """\
struct __align__({wide}) {name} {{
    {kind} e[{lanes}];
}};
"""

NAME = "cuda-c"
DYNAMIC = "shared__all"


class CudaCWriter(CWriter, TensorCoreWriter):
    """Writer of CUDA C."""

    api: ClassVar[str] = "cuda"
    """How the names of the host's functions begin."""
    misaligned: ClassVar[str] = "cudaErrorMisalignedAddress"
    """What the host function returns for an array that does not begin where it has to."""
    barrier = "__syncthreads();"
    types = MappingProxyType({
        "float16": "unsigned short", "bfloat16": "unsigned short", "float32": "float", "float64": "double",
        "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
        "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int",
        "uint64": "unsigned long long", "bool": "bool",
    })  # fmt: skip
    wide_suffix = "LL"
    loads_vectors: ClassVar[bool] = True
    """Loads of aligned arrays are of elements of vectors, see ``vector_loads``."""
    vectors = VectorLoads()

    def kernel(self, kernel: Kernel) -> str:
        apart = not self.loads_vectors or self.plan.wide_indices or kernel.time_tile is not None
        self.vectors = VectorLoads() if apart or not is_vectorized(kernel) else vector_loads(kernel)
        return super().kernel(kernel)

    def element(self, load: Load) -> str:
        place = None if load.array in {*self.tiles, *self.renamed} else self.vectors.place(load)
        return super().element(load) if place is None else self._vector_element(load, place)

    def _vector_element(self, load: Load, place: VectorPlace) -> str:
        kind = self.types[load.dtype]
        lanes = LANES[load.dtype]
        name = f"{kind.replace(' ', '_')}_x{lanes}"
        self.functions[name] = _VECTOR.format(wide=WIDE, name=name, kind=kind, lanes=lanes)
        at = [] if place.base == Const(0, place.base.dtype) else [f"{self.unsigned_index(place.base, UNARY)} / {lanes}"]
        at = [f"(unsigned long long)({text})" for text in at]
        at += [f"{self.long(v)} * {self.long(Const(k))}" if k > 1 else self.long(v) for v, k in place.counted if k]
        at += [f"{place.constant}u"] * (place.constant > 0 or not at)
        less = f" - {-place.constant}u" if place.constant < 0 else ""
        return f"((const {name} *){self.name(load.array)})[{' + '.join(at)}{less}].e[{place.element}]"

    def name(self, name: str) -> str:
        return avoid_reserved(name, CUDA_NAMES)

    def value(self, e: Expr, level: int = 0) -> str:
        if self.no_contraction and isinstance(e, Binary) and is_product(e):
            name = "__fmul_rn" if e.dtype == "float32" else "__dmul_rn"
            return f"{name}({self.value(e.lhs)}, {self.value(e.rhs)})"
        return super().value(e, level)

    def opening(self, kernel: Kernel) -> str:
        limit = f" __maxnreg__({max_registers(kernel)})" if max_registers(kernel) else ""
        if launch_bounds(kernel):
            limit = f" __launch_bounds__({', '.join(map(str, launch_bounds(kernel)))})"
        return f'extern "C" __global__ void{limit}\n{kernel.name}'

    def array_parameter(self, dtype: str, name: str, constant: bool, restrict: bool) -> str:
        return f"{'const ' * constant}{self.types[dtype]} *{'__restrict__ ' * restrict}{name}"

    def thread(self, dimension: Dimension) -> str:
        return self.coordinates.get(f"thread {dimension}", f"threadIdx.{dimension}")

    def block_number(self, dimension: Dimension, kind: str) -> str:
        number = self.coordinates.get(f"block {dimension}", f"blockIdx.{dimension}")
        return f"(long long){number}" if kind == "int64" else number

    def attribute_kernel(self, kernel: Kernel) -> str:
        """Return the kernel as the function takes it that sets its attributes."""
        return kernel.name

    def shared(self, name: str, count: int, dtype: str, alignment: int = 0) -> str:
        aligned = f"__align__({alignment}) " if alignment else ""
        return f"__shared__ {aligned}{self.types[dtype]} {name}[{count}];"

    def open_dynamic_shared(self) -> tuple[str, ...]:
        self.shared_bytes = 0
        aligned = f"__align__({WIDE}) " if self.api == "cuda" else ""
        return (f"extern __shared__ {aligned}double {DYNAMIC}[];",)

    def dynamic_part(self, name: str, first: int, count: int, dtype: str) -> str:
        kind = self.types[dtype]
        return f"{kind} *{name} = ({kind} *){DYNAMIC} + {first};"

    def local_array(self, name: str, count: int, dtype: str) -> str:
        return f"{self.types[dtype]} {name}[{count}];"

    def aligned(self, arrays: Sequence[str]) -> tuple[str, ...]:
        told = (a for a in arrays if a not in self.vectors.arrays)
        return tuple(f"__builtin_assume(((size_t){self.name(a)} & {WIDE - 1}) == 0);" for a in told)

    def block_any(self, condition: str) -> str:
        return f"__syncthreads_or({condition})"

    def special(self, value: float, dtype: str) -> str:
        text = _SPECIAL[dtype, "nan" if math.isnan(value) else "inf"]
        return f"(-{text})" if value < 0 else text

    def function(self, fn: str, dtype: str) -> str:
        if fn == "abs":
            return "llabs" if dtype == "int64" else "abs"
        if fn in _OF_BITS:
            return f"__{_OF_BITS[fn]}"
        return fn + "f" * (dtype == "float32")

    def half_function(self, name: str) -> str:
        return half.for_cuda(name)

    def inline(self, result: str) -> str:
        return f"__host__ __device__ __forceinline__ {result}"

    def copied(self, width: int, to: tuple[str, str], source: tuple[str, str]) -> str:
        name = f"copy_{width}_bytes"
        self.functions[name] = _COPY
        return f"{name}(&{to[0]}[{to[1]}], &{source[0]}[{source[1]}]);"

    def copy_async(self, width: int, to: tuple[str, str], source: tuple[str, str], there: Sequence[str]) -> str:
        name = f"copy_{width}_bytes_ahead"
        # Past the L1 where that is possible: nobody else on this multiprocessor reads it.
        cache = "cg" if width == WIDE else "ca"
        self.functions[name] = _AHEAD.format(name=name, cache=cache, width=width)
        return f"{name}(&{to[0]}[{to[1]}], &{source[0]}[{source[1]}], {self.both(*there) or 'true'});"

    def commit_group(self) -> tuple[str, ...]:
        return (self._order("begin_copies", "cp.async.commit_group"),)

    def wait_group(self, groups: int) -> tuple[str, ...]:
        return (self._order(f"await_copies_{groups}", f"cp.async.wait_group {groups}"),)

    def dynamic_shared(self, name: str, dtype: str) -> str:
        return f"extern __shared__ __align__({WIDE}) {self.types[dtype]} {name}[];"

    def clear_sums(self, sums: str, count: int, dtype: str) -> str:
        self.functions |= matrix_functions.clear(count, dtype)
        return f"{clear_name(count, dtype)}({sums});"

    def load_fragments(self, load: FragmentLoad, to: str, place: str) -> str:
        self.functions |= matrix_functions.load(load)
        return f"{load.name}({to}, &{TILES}[{place}]);"

    def multiply_step(self, product: StepProduct, sums: str, left: str, right: str) -> str:
        self.functions |= matrix_functions.multiply(product)
        return f"{product.name}({sums}, {left}, {right});"

    def gather_sums(self, sums: str, strip: str, count: int) -> str:
        self.functions |= matrix_functions.gather(count)
        return f"{gather_name(count)}({sums}, {strip});"

    def store_sums(self, tiles: WarpTiles, sums: str, place: str) -> str:
        self.functions |= matrix_functions.store(tiles)
        return f"{store_name(tiles)}({sums}, &{TILES}[{place}]);"

    def choose_array(self, name: str, dtype: str, condition: str, a: str, b: str) -> str:
        return f"{self.types[dtype]} *{name} = {condition} ? {a} : {b};"

    def lane_value(self, name: str, by: int) -> str:
        return f"__shfl_{'up' if by < 0 else 'down'}_sync(0xffffffffu, {name}, {abs(by)})"

    @property
    def grid_width(self) -> str:
        return "gridDim.x"

    def grid_barrier(self, arrived: str, met: str) -> str:
        self.functions[MEET] = CUDA_MEET
        return f"{met} = {MEET}({arrived}, {met});"

    def grid_barrier_exit(self, arrived: str, met: str) -> str:
        self.functions[LEAVE] = CUDA_LEAVE
        return f"{LEAVE}({arrived}, {met});"

    def _order(self, name: str, ptx: str) -> str:
        self.functions[name] = _ORDER.format(name=name, ptx=ptx)
        return f"{name}();"


def kernel_text(plan: FinishedPlan, kernel: Kernel) -> str:
    """Return one kernel and the functions that it calls, as NVRTC compiles them: without a header."""
    functions, text = kernel_parts(plan, kernel)
    return "\n".join([*(functions[name] for name in sorted(functions)), text])


def kernel_parts(plan: FinishedPlan, kernel: Kernel) -> tuple[dict[str, str], str]:
    """Return the functions that a kernel calls, by name, and the kernel."""
    writer = CudaCWriter(plan, extent_names(plan))
    text = writer.kernel(kernel)
    return writer.functions, text


def file_text(plan: FinishedPlan) -> str:
    """Return a complete ``.cu`` file."""
    writer = CudaCWriter(plan, extent_names(plan))
    kernels = [writer.kernel(k) for k in plan.compiled_kernels]
    host = "\n".join(close_braces(host_lines(plan, host_writer(plan, writer)))) + "\n"
    said = comment(description(plan, NAME))
    functions = (writer.functions[name] for name in sorted(writer.functions))
    together = [CUDA_LAUNCH] if any(k.steps for k in plan.compiled_kernels) else []
    together += [read_flag_text(writer.api)] if data_decide(plan) else []
    return "\n".join([f"/* {said}*/\n#include <cuda_runtime.h>\n", *functions, *kernels, *together, host])


READ = "read_flag__host"


def read_flag_text(api: str) -> str:
    """Return the function that waits for the launches on a stream and reads a flag; after an error it is false."""
    return (
        f"static bool {READ}(const int *flag, {api}Stream_t stream)\n{{\n    int found = 0;\n"
        f"    if ({api}MemcpyAsync(&found, flag, sizeof found, {api}MemcpyDeviceToHost, stream) != {api}Success)\n"
        f"        return false;\n    return {api}StreamSynchronize(stream) == {api}Success && found != 0;\n}}\n"
    )


def host_lines(plan: Plan, writer: CudaCWriter) -> Iterator[str]:
    """Yield the lines of the host function: ``extern "C"``, so that C and whatever loads a library can call it."""
    codelet, name, api = plan.codelet, writer.name, writer.api
    yield "/* Launch on `stream`; pointers are the device's, to contiguous arrays that do not overlap:"
    halves = ", ".join(p.name for p in codelet.params if isinstance(p, Array) and p.dtype in SHORT_FLOATS)
    ends = (
        f".\n   Of floats of 16 bits, whose pointers are cast to (unsigned short *): {halves}. */" if halves else ". */"
    )
    yield f"   {', '.join(_declared(p) for p in codelet.params if isinstance(p, Array))}{ends}"
    parameters = [_parameter(p, writer) for p in codelet.params]
    yield list_lines(f'extern "C" {api}Error_t {name(codelet.name)}(', [*parameters, f"{api}Stream_t stream"])
    yield "{"
    own = [local.name for local in plan.device_locals]
    for array in (a for a in aligned(plan) if a not in own):
        yield f"    if ((size_t){name(array)} % {WIDE} != 0) {{"
        yield f"        return {writer.misaligned};"
    for shape in dict.fromkeys(a.shape for a in uncounted_arrays(plan) if None not in a.shape):
        extents = (n for n in shape if n is not None)
        product = " * ".join(
            f"(double){name(n.name) if isinstance(n, Var) else writer.wide(n, UNARY)}" for n in extents
        )
        yield f"    if ({product} > {MOST_ELEMENTS}.0) {{"
        yield f"        return {api}ErrorInvalidValue;"
    for local in plan.device_locals:
        count = " * ".join(writer.wide(e, 10) for e in local.shape) if local.shape else "1"
        kind = writer.types[local.dtype]
        yield f"    {kind} *{name(local.name)} = 0;"
        yield f"    const size_t {local.name}__bytes = sizeof({kind}) * ({count});"
    for local in plan.device_locals:
        yield f"    if ({api}MallocAsync(&{name(local.name)}, {local.name}__bytes, stream) != {api}Success) {{"
        yield from (f"        {api}FreeAsync({name(n)}, stream);" for n in own[: own.index(local.name)])
        yield f"        return {api}GetLastError();"
    if ARRIVED in own:
        yield f"    {api}MemsetAsync({name(ARRIVED)}, 0, {ARRIVED}__bytes, stream);"
    launched = HostLines(
        writer,
        lambda kernel, blocks, _: _launched(kernel, plan, blocks, writer),
        lambda flag: f"{READ}({name(flag)}, stream)",
    )
    yield from launched.steps(plan.steps, "    ")
    yield f"    {api}Error_t launched = {api}GetLastError();"
    yield from (f"    {api}FreeAsync({name(n)}, stream);" for n in own)
    yield "    return launched;"
    yield ""


def _parameter(p: Array | Scalar, writer: CudaCWriter) -> str:
    if isinstance(p, Array):
        return f"{writer.types[p.dtype]} *{writer.name(p.name)}"
    return f"{writer.types[promoted_type(p.dtype)]} {writer.name(p.name)}"


def _declared(array: Array) -> str:
    return array.name + "".join("[]" if n is None else f"[{c_printer.expression_text(n)}]" for n in array.shape)


def _launched(kernel: Kernel, plan: Plan, blocks: Sequence[str], writer: CudaCWriter) -> str:
    def passed(scalar: str) -> str:
        kind, name = scalar_type(plan, scalar), writer.name(scalar)
        return name if kind == promoted_type(plan.dtype(scalar)) else f"({writer.types[kind]}){name}"

    args = [*map(writer.name, kernel.arrays), *map(passed, kernel.scalars)]
    if kernel.steps:
        passed_on = ["stream", kernel.name, *args]
        told = [str(n) for n in (kernel.blocks_per_sm, kernel.block[0], dynamic_shared_bytes(kernel))]
        return f"{_allowed(kernel, writer)}{TOGETHER}({', '.join([*told, *passed_on])});"
    grid = ", ".join(b if b == "1" else f"(unsigned int){b}" for b in blocks)
    block, shared = ", ".join(str(n) for n in kernel.block), dynamic_shared_bytes(kernel)
    launch = f"{kernel.name}<<<dim3({grid}), dim3({block}), {shared}, stream>>>"
    return f"{_allowed(kernel, writer)}{launch}({', '.join(args)});"


def _allowed(kernel: Kernel, writer: CudaCWriter) -> str:
    """Return the statement that lets launches of a kernel ask for as much shared memory as it needs, or ""."""
    shared = dynamic_shared_bytes(kernel)
    if not shared:
        return ""
    most = f"{writer.api}FuncAttributeMaxDynamicSharedMemorySize"
    return f"{writer.api}FuncSetAttribute({writer.attribute_kernel(kernel)}, {most}, {shared}); "
