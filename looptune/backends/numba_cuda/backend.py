"""Plans on an NVIDIA GPU, through Numba: one kernel function per launch, one thread, or one team, per grid iteration.

Every choice here, and in ``writer``, which writes a kernel's statements, was measured on an H200.

``build`` needs no GPU: Numba to PTX to cubin. ``load`` launches the cubins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numba import cuda
from numba.cuda.cudadrv import nvrtc

from looptune.backends.base import Backend, Binary, header
from looptune.backends.codegen import grid_barrier, matrix_ops, memory_ops
from looptune.backends.codegen.kernel import (
    check_capability,
    check_limits,
    dynamic_shared_bytes,
    kernel_lines,
    launched_block,
)
from looptune.backends.codegen.memory_ops import (
    ALIGNED,
    ALIGNED_ARRAY,
    ALIGNED_ARRAY_TEXT,
    ALIGNED_TEXT,
    COPY,
    COPY_TEXT,
    aligned,
    unaligned,
)
from looptune.backends.codegen.persistent import persistent_lines
from looptune.backends.codegen.python import HELPERS, LEVEL, HostText, ident, imported_types, numpy_type, uses_half
from looptune.backends.codegen.register_limits import launch_bounds, max_registers
from looptune.backends.cuda import cubin
from looptune.backends.cuda.program import CudaProgram, argument_types
from looptune.backends.numba_cuda import bit_casts, uncontracted_products
from looptune.backends.numba_cuda.alpha_renaming import alpha_rename
from looptune.backends.numba_cuda.noalias import is_readonly, noalias_readonly
from looptune.backends.numba_cuda.tested_versions import is_tested
from looptune.backends.numba_cuda.uncontracted_products import PRODUCT, PRODUCT_TEXT
from looptune.backends.numba_cuda.writer import CudaWriter, HostWriter, host_helper
from looptune.core.version import toolchain
from looptune.ir.nodes import HALF, Array, Local, Loop
from looptune.lower.addresses import MOST_ELEMENTS
from looptune.lower.concurrent_launches import is_concurrent
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish
from looptune.lower.plan import (
    ARRIVED,
    Dimension,
    FinishedPlan,
    HostLoop,
    Kernel,
    Launch,
    Plan,
    Step,
    data_decide,
    decisions,
    fuse_persistent_launches,
    uncounted_arrays,
)
from looptune.lower.signature import extent_names, half_scalars, scalar_type
from looptune.lower.tiles import WIDE

if TYPE_CHECKING:
    from looptune.core.floating_point import Contract

if is_tested():
    from looptune.backends.numba_cuda import compiler_patches

AT_ONCE = "blocks_at_once"
_AT_ONCE = f'''\
def {AT_ONCE}(each):
    """So many on every multiprocessor; one in Numba's simulator, where blocks cannot wait for each other."""
    return each * getattr(cuda.get_current_device(), "MULTIPROCESSOR_COUNT", 0) or 1

'''

READ = "read_flag"
_READ = f'''\
def {READ}(flag, stream):
    """What a flag in device memory is, once the launches before have set it."""
    found = flag.copy_to_host(stream=stream)
    if stream:
        stream.synchronize()
    return found[0] != 0

'''

WITH_SHARED = "with_shared_bytes"
_WITH_SHARED = f'''\
def {WITH_SHARED}(kernel, grid, block, stream, count):
    """The launch of a kernel that asks for so many bytes of shared memory, which its code is told to allow."""
    launch = kernel[grid, block, stream, count]

    def allow(made, _):
        from cuda.bindings import driver

        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.cuFuncSetAttribute(driver.CUfunction(int(made._codelibrary.get_cufunc().handle)), most, count)

    getattr(launch, "pre_launch_callbacks", []).append(allow)
    return launch

'''


def architectures() -> tuple[str, ...]:
    """Return the architectures for which code can be compiled here."""
    return tuple(f"sm_{major}{minor}" for major, minor in sorted(nvrtc.get_supported_ccs()))


@dataclass(frozen=True, slots=True)
class KernelSources:
    """A plan as text that something else launches.

    ``imports`` and ``helpers``: what its kernels need; ``kernels``: by name a function and the Numba types of its
    parameters; ``host``: the body of a function of C's parameters that calls ``launch(kernel, grid, block, *args)`` for
    each launch and ``new(count, dtype)`` for each array of its own (``zeros=True`` if that has to be zero); a grid that
    is a number is that of a persistent kernel: the number of blocks per multiprocessor, all of which run at the same
    time, and ``beside=True`` says that a kernel may run at the same time as that of the call directly before; ``wide``:
    the arrays that have to begin at a multiple of 16 bytes; ``wide_indices``: subscripts have 64 bits.
    """

    imports: tuple[str, ...]
    helpers: tuple[str, ...]
    kernels: Mapping[str, tuple[str, tuple[str, ...]]]
    host: tuple[str, ...]
    wide: tuple[str, ...]
    wide_indices: bool


def parts(plan: Plan, contract: Contract = "cc") -> KernelSources:
    """Return the sources of a plan's kernels and of its launching function."""
    finished = finish(plan, Machine(blocks=True, contract=contract, host_reads=True))
    check_limits(finished)
    imports, helpers, kernels = _kernels(finished)
    types = {k.name: tuple(map(_named, argument_types(finished, k))) for k in finished.compiled_kernels}
    writer = HostWriter(finished, set())
    zeros = {ARRIVED: ", zeros=True"}
    flags = {flag for flag, _ in decisions(finished.steps)}
    new = [
        f"    {ident(v.name)}, {READ}_{v.name} = new(1, {numpy_type(v.dtype)!r}, flag=True)"
        if v.name in flags
        else f"    {ident(v.name)} = new({_count(v, writer)}, {numpy_type(v.dtype)!r}{zeros.get(v.name, '')})"
        for v in finished.device_locals
    ]
    host = (*new, *_steps(finished, writer, _called, lambda flag: f"{READ}_{flag}()"))
    made = {k: (text.rstrip() + "\n", types[k]) for k, text in kernels.items()}
    own = {v.name for v in finished.device_locals}
    wide = tuple(name for name in aligned(finished) if name not in own)
    defined = (*helpers, *(host_helper(h) for h in sorted(writer.used)))
    return KernelSources(imports, defined, made, host, wide, finished.wide_indices)


def _called(kernel: Kernel, grid: str, block: tuple[int, ...], beside: str) -> str:
    args = [ident(n) for n in (*kernel.arrays, *kernel.scalars)]
    args += [f"beside={beside}"] if beside else []
    return f"launch({', '.join([kernel.name, grid, str(block), *args])})"


def _named(kind: Any) -> str:
    """``float32[::1]``, ``float32[::1] readonly`` or ``uint32``."""
    return f"{kind.dtype}[::1]{' readonly' * is_readonly(kind)}" if hasattr(kind, "ndim") else str(kind)


class NumbaCuda(Backend):
    """The backend of Numba for NVIDIA GPUs."""

    name = "numba-cuda"

    def __init__(self, arch: str = "sm_90", contract: Contract = "cc", cache: Path | None = None) -> None:
        """``cache``: the folder of compiled kernels, shared by processes; None compiles anew."""
        self.arch = arch
        self.contract = contract
        self.cache = cache

    def emit(self, plan: Plan) -> str:
        finished = self.finish(plan)
        return self._module(finished, *_texts(finished))

    def _module(self, plan: FinishedPlan, opening: str, kernels: Mapping[str, str]) -> str:
        host = HostWriter(plan, set())
        steps = list(_host(plan, host))
        helpers = [f"{host_helper(h)}\n" for h in sorted(host.used)]
        helpers += [_WITH_SHARED] if any(map(dynamic_shared_bytes, plan.compiled_kernels)) else []
        helpers += [_AT_ONCE] if any(k.steps for k in plan.compiled_kernels) else []
        helpers += [_READ] if data_decide(plan) else []
        return "\n".join([header(plan, self.name), opening, *kernels.values(), *helpers, *steps]) + "\n"

    def finish(self, plan: Plan) -> FinishedPlan:
        return finish(plan, Machine(blocks=True, contract=self.contract, host_reads=True))

    def measuring(self) -> Backend:
        return NumbaCuda(self.arch, "fast", self.cache)

    def build(self, plan: Plan) -> Binary:
        start = time.perf_counter()
        finished = self.finish(plan)
        check_limits(finished)
        check_capability(finished, self.arch)
        opening, texts = _texts(finished)
        built, kernels = self._cubins(finished, opening, texts, 0), finished.compiled_kernels
        resources = tuple(cubin.resources(k, built[k.name][1]) for k in kernels)
        objects = {k.name: built[k.name][0] for k in kernels}
        source = self._module(finished, opening, texts)
        return Binary(self.name, finished, source, objects, resources, time.perf_counter() - start)

    def build_ahead(self, plan: Plan, first: int) -> None:
        if self.cache is not None:
            finished = self.finish(plan)
            check_limits(finished)
            self._cubins(finished, *_texts(finished), first)

    def _cubins(self, plan: FinishedPlan, opening: str, texts: Mapping[str, str], first: int) -> dict[str, cubin.Code]:
        """Return the code of each kernel; the longest are compiled first, beginning with number ``first`` of them."""
        name = ident(plan.codelet.name)
        ordered = sorted(plan.compiled_kernels, key=lambda k: -len(texts[k.name]))
        turned = (*ordered[first:], *ordered[:first])
        return {k.name: self._cubin(plan, k, opening, alpha_rename(texts[k.name], name)) for k in turned}

    def ptx(self, plan: Plan) -> str:
        """Return the PTX of every kernel, without a GPU."""
        finished = self.finish(plan)
        opening, texts = _texts(finished)
        kernels = finished.compiled_kernels
        return "\n".join(self._ptx(finished, k, f"{opening}\n{texts[k.name]}", k.name) for k in kernels)

    def _ptx(self, plan: Plan, kernel: Kernel, source: str, entry: str) -> str:
        module: dict[str, Any] = {"__name__": entry}
        exec(compile(source, f"<{kernel.name}>", "exec"), module)
        major, minor = divmod(int(self.arch.removeprefix("sm_")), 10)
        with patched_compiler(), noalias_readonly():
            text, _ = cuda.compile_ptx(
                module[entry].py_func, argument_types(plan, kernel), cc=(major, minor), fastmath=False,
                launch_bounds=launch_bounds(kernel), opt=True,
            )  # fmt: skip
        return str(text)

    def _cubin(self, plan: Plan, kernel: Kernel, opening: str, text: str) -> cubin.Code:
        """Kernels that do not differ, of one version or several, share them."""
        source, entry = f"{opening}\n{text}", ident(plan.codelet.name)
        facts = (source, str(argument_types(plan, kernel)), self.arch, repr(toolchain("numba-cuda")))
        make = partial(self._ptx, plan, kernel, source, entry)
        return cubin.load_or_make(self.cache, facts, lambda: cubin.link(make(), self.arch, max_registers(kernel)))

    def load(self, binary: Binary) -> CudaProgram:
        return CudaProgram(binary)


def _texts(plan: FinishedPlan) -> tuple[str, dict[str, str]]:
    """Return what a module of kernels opens with, imports and device functions; and the text of each kernel by name."""
    imports, helpers, kernels = _kernels(plan)
    opening = ["import math", "", "import numpy as np", *imports, "", "", *(f"{h}\n" for h in helpers)]
    return "\n".join(opening), kernels


def _kernels(plan: FinishedPlan) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]:
    """Return imports and device functions that the kernels need, and the kernels."""
    writer = CudaWriter(plan, extent_names(plan))
    kernels = {k.name: "\n".join(_kernel(plan, k, writer)) for k in plan.compiled_kernels}
    casts = [bit_casts.TEXTS[h] for h in sorted(writer.used) if h in bit_casts.TEXTS]
    called = [h for h in sorted(writer.used) if h not in bit_casts.TEXTS]
    helpers = [*casts, *(f"@cuda.jit(device=True, inline='always')\n{HELPERS[h]}" for h in called)]
    copying = [COPY_TEXT] if any(f"{COPY}(" in text for text in kernels.values()) else []
    copying += [ALIGNED_TEXT] if any(f"{ALIGNED}(" in text for text in kernels.values()) else []
    copying += [ALIGNED_ARRAY_TEXT] if any(f"{ALIGNED_ARRAY}(" in text for text in kernels.values()) else []
    copying += [PRODUCT_TEXT] if any(f"{PRODUCT}(" in text for text in kernels.values()) else []
    copying += [*memory_ops.helpers(kernels.values()), *matrix_ops.helpers(kernels.values())]
    meeting = [grid_barrier.NUMBA] if any(k.steps for k in plan.compiled_kernels) else []
    if any(f"{lane}(" in text for text in kernels.values() for lane in grid_barrier.LANES):
        meeting.append(grid_barrier.NUMBA_LANES)
    imports = [
        f"from numba import cuda, {', '.join(imported_types(plan))}",
        *([f"from numba.types import {HALF}"] if uses_half(plan) else []),
        *(memory_ops.IMPORTS if copying or meeting or casts else ()),
    ]
    imports += [grid_barrier.IMPORT] if meeting else []
    imports += [uncontracted_products.IMPORT] if PRODUCT_TEXT in copying or casts else []
    return tuple(imports), (*copying, *meeting, *helpers), kernels


def patched_compiler() -> AbstractContextManager[None]:
    """Return a context in which parts of Numba's compiler are replaced by faster ones, if its version was tested."""
    return compiler_patches.patched_compiler(None) if is_tested() else nullcontext()


def numba_stream(handle: Any) -> Any:
    """Return a driver stream in the form that Numba's own launches take."""
    return cuda.external_stream(int(handle))


def _kernel(plan: FinishedPlan, kernel: Kernel, writer: CudaWriter) -> Iterator[str]:
    bounds = launch_bounds(kernel)
    said = f"launch_bounds={bounds[0] if len(bounds) == 1 else bounds}" if bounds else ""
    said = f"max_registers={max_registers(kernel)}" if max_registers(kernel) else said
    yield f"@cuda.jit({said})" if said else "@cuda.jit"
    yield f"def {kernel.name}({', '.join(ident(n) for n in (*kernel.arrays, *kernel.scalars))}):"
    own = partial(kernel_lines, plan, writer=writer)
    yield from persistent_lines(plan, kernel, writer, own) if kernel.steps else own(kernel)
    yield ""
    yield ""


def _host(plan: Plan, writer: CudaWriter) -> Iterator[str]:
    """Yield the function a user calls: device arrays in, launches out."""
    params = [p.name for p in plan.codelet.params]
    yield f"def {ident(plan.codelet.name)}({', '.join([ident(n) for n in params] + ['stream=0'])}):"
    yield '    """Launch on ``stream``; arrays are contiguous device arrays, updated in place."""'
    for p in plan.codelet.params:
        if isinstance(p, Array) and len(p.shape) > 1:
            yield f"    {ident(p.name)} = {ident(p.name)}.reshape({ident(p.name)}.size)"
    own = {local.name for local in plan.device_locals}
    for array in (name for name in aligned(plan) if name not in own):
        yield f"    if {ident(array)}.__cuda_array_interface__['data'][0] % {WIDE}:"
        yield f'        raise ValueError("{unaligned(array)}")'
    for local in plan.device_locals:
        made = f"({_count(local, writer)}, np.{numpy_type(local.dtype)})"
        made = f"to_device(np.zeros{made}, stream=stream)" if local.name == ARRIVED else f"device_array{made}"
        yield f"    {ident(local.name)} = cuda.{made}"
    for array in (ident(a.name) for a in uncounted_arrays(plan)):
        yield f"    if {array}.size > {MOST_ELEMENTS}:"
        yield f'        raise ValueError("{array} has more than {MOST_ELEMENTS} elements")'
    read = f"{READ}({{}}, stream)".format
    yield from _steps(plan, writer, partial(_indexed, plan), lambda flag: read(ident(flag)))


def _count(local: Local, writer: CudaWriter) -> str:
    """How many elements it has."""
    return " * ".join(writer.bound(e, LEVEL["*"]) for e in local.shape) if local.shape else "1"


Spelled = Callable[[Kernel, str, tuple[int, ...], str], str]
"""A launch as text: of a kernel, with a grid and a block; of a persistent one with blocks a multiprocessor.

The last one says when it may run at the same time as the launch directly before it, "" where it never may.
"""


def _indexed(plan: Plan, kernel: Kernel, grid: str, block: tuple[int, ...], _beside: str) -> str:
    args = [ident(n) for n in kernel.arrays]
    rounded = {n: f"np.{HALF}({ident(n)})" for n, kind in half_scalars(plan).items() if kind == HALF}
    args += [f"np.{numpy_type(scalar_type(plan, n))}({rounded.get(n, ident(n))})" for n in kernel.scalars]
    grid = f"{AT_ONCE}({grid})" if kernel.steps else grid
    if len(block) > 3:
        return f"{WITH_SHARED}({kernel.name}, {grid}, {block[:2]}, stream, {block[3]})({', '.join(args)})"
    return f"{kernel.name}[{grid}, {block}, stream]({', '.join(args)})"


def _steps(plan: Plan, writer: CudaWriter, spelled: Spelled, read: Callable[[str], str]) -> Iterator[str]:
    def launched(step: Launch | HostLoop, indent: str, before: Step | None) -> Iterator[str]:
        match step:
            case Launch(kernel):
                first = before.kernel if isinstance(before, Launch) and is_concurrent(before.kernel, kernel) else None
                yield from _launch(kernel, writer, indent, spelled, first)
            case HostLoop():
                kernel = fuse_persistent_launches(step)
                block = launched_block(kernel) if dynamic_shared_bytes(kernel) else kernel.block[:1]
                yield f"{indent}{spelled(kernel, str(kernel.blocks_per_sm), block, '')}"

    return HostText(writer, launched, read).steps(plan.steps, "    ")


def _launch(kernel: Kernel, writer: CudaWriter, indent: str, spelled: Spelled, before: Kernel | None) -> Iterator[str]:
    """``before``: the kernel directly before it, where both may run at the same time: if that has blocks at all."""
    grid = _grid(kernel, writer)
    beside = ""
    if before is not None:
        other = _grid(before, writer)
        beside = f"min({other}) > 0" if other else "True"
    if grid:
        yield f"{indent}grid = {grid}"
        yield f"{indent}if min(grid) > 0:"
        indent += "    "
    place = "grid" if grid else "(1,)"
    whole = launched_block(kernel)
    block = whole if len(kernel.axes) == 2 or kernel.block[1] > 1 or len(whole) > 2 else kernel.block[:1]
    yield f"{indent}{spelled(kernel, place, block, beside)}"


def _grid(kernel: Kernel, writer: CudaWriter) -> str:
    """Return the blocks along each dimension as text, "" where there is always one block."""

    def count(axis: Loop, threads: int) -> str:
        per = axis.step * threads
        lo, hi = writer.bound(axis.lo, LEVEL["*"]), writer.bound(axis.hi, LEVEL["-"])
        span = hi if lo == "0" else f"{hi} - {lo}"
        return f"({span} + {per - 1}) // {per}" if per > 1 else span

    along = {dim: count(axis, kernel.threads(dim)) for dim, axis in kernel.grid_axes}
    if kernel.packing is not None:
        along["x"], along["y"] = map(str, kernel.packing.blocks)
    if kernel.exchanged:
        along |= {"x": along["y"], "y": along.get("x", "1")}
    dimensions: tuple[Dimension, ...] = ("x", "y", "z")
    grid = [along.get(dim, "1") for dim in dimensions[: max(map(dimensions.index, along), default=0) + 1]]
    return f"({', '.join(grid)},)" if along else ""
