"""Plans as HIP C++: a file that hipcc compiles for AMD GPUs, with its kernels and a host function that launches them.

It is CUDA C with these differences:

    copies ahead              are made at once: what is filled for a later iteration is there before its barrier
    lanes                     shuffles in groups of 32, as on a wavefront of 32 or of 64
    products that must not    a pragma of clang, for HIP's __fmul_rn may be contracted
    be contracted
    persistent loops          are launched one by one by the host, for no barrier of a grid is written
    tensor cores              are refused

Static shared memory has the limit of NVIDIA's GPUs, 48 KB, which is below the 64 KB of AMD's. The text is compiled in
the tests, and was never run on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from looptune.backends.base import description
from looptune.backends.codegen import half
from looptune.backends.codegen.c import CWriter, close_braces
from looptune.backends.codegen.c_host import host_writer
from looptune.backends.codegen.kernel import check_portable
from looptune.backends.codegen.register_limits import launch_bounds
from looptune.backends.cuda.cuda_c_writer import CudaCWriter, host_lines, read_flag_text
from looptune.core.escape import comment
from looptune.lower.machine import Machine
from looptune.lower.signature import extent_names

if TYPE_CHECKING:
    from looptune.core.floating_point import Contract
    from looptune.ir.nodes import Expr
from looptune.lower.plan import FinishedPlan, Kernel, data_decide

NAME = "hip"
UNTESTED = "Untested on hardware: hipcc compiles this text, and nobody has run it on an AMD GPU."

_COPY_OR_ZEROS = """\
__device__ __forceinline__ void {name}(void *to, const void *from, bool there)
{{
    {kind} value = {{}};
    if (there) {{
        value = *(const {kind} *)from;
    }}
    *({kind} *)to = value;
}}
"""
_KINDS: Mapping[int, str] = MappingProxyType({4: "unsigned int", 8: "uint2", 16: "uint4"})


class HipWriter(CudaCWriter):
    """Writer of HIP C++."""

    api = "hip"
    misaligned = "hipErrorInvalidValue"
    contraction_pragma = '_Pragma("clang fp contract(off)")'
    loads_vectors = False

    def value(self, e: Expr, level: int = 0) -> str:
        return CWriter.value(self, e, level)

    def half_function(self, name: str) -> str:
        return half.for_hip(name)

    def opening(self, kernel: Kernel) -> str:
        """Return the head; HIP's second launch bound means wavefronts, and there is no limit of registers."""
        most = launch_bounds(kernel)
        limit = f" __launch_bounds__({most[0]})" if most else ""
        return f'extern "C" __global__ void{limit}\n{kernel.name}'

    def copy_async(self, width: int, to: tuple[str, str], source: tuple[str, str], there: Sequence[str]) -> str:
        name = f"copy_{width}_bytes_or_zeros"
        self.functions[name] = _COPY_OR_ZEROS.format(name=name, kind=_KINDS[width])
        return f"{name}(&{to[0]}[{to[1]}], &{source[0]}[{source[1]}], {self.both(*there) or 'true'});"

    def commit_group(self) -> tuple[str, ...]:
        return ()

    def wait_group(self, groups: int) -> tuple[str, ...]:
        return ()

    def lane_value(self, name: str, by: int) -> str:
        return f"__shfl_{'up' if by < 0 else 'down'}({name}, {abs(by)}, 32)"

    def attribute_kernel(self, kernel: Kernel) -> str:
        return f"(const void *){kernel.name}"


def machine(contract: Contract) -> Machine:
    """Return the capabilities of the target."""
    return Machine(blocks=True, contract=contract, grid_barrier=False, host_reads=True)


def file_text(plan: FinishedPlan) -> str:
    """Return a complete ``.hip`` file. Raises ResourceError where a kernel needs tensor cores."""
    check_portable(plan, NAME)
    writer = HipWriter(plan, extent_names(plan))
    kernels = [writer.kernel(k) for k in plan.compiled_kernels]
    host = "\n".join(close_braces(host_lines(plan, host_writer(plan, writer)))) + "\n"
    said = comment(f"{description(plan, NAME)}\n{UNTESTED}\n")
    functions = [writer.functions[name] for name in sorted(writer.functions)]
    functions += [read_flag_text(writer.api)] if data_decide(plan) else []
    return "\n".join([f"/* {said}*/\n#include <hip/hip_runtime.h>\n", *functions, *kernels, host])
