"""Plans on an NVIDIA GPU, through CUDA C: NVRTC compiles each kernel, and the cubins are launched as Numba's are.

``build`` needs no GPU: C to PTX to cubin. ``emit`` gives the same kernels as a file for nvcc, with a host function.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuda.bindings import nvrtc

from looptune.backends.base import Backend, Binary
from looptune.backends.codegen.kernel import check_capability, check_limits
from looptune.backends.cuda import cubin
from looptune.backends.cuda.cuda_c_writer import NAME, file_text, kernel_text
from looptune.backends.cuda.program import CallingConvention, CudaProgram
from looptune.core.version import toolchain
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish

if TYPE_CHECKING:
    from looptune.core.floating_point import Contract
    from looptune.lower.plan import FinishedPlan, Kernel, Plan

ENTRY = "kernel_of_looptune"
"""What every kernel is called in its cubin, so that those of two versions that do not differ are one."""


MINIMAL = (13, 0)
"""NVRTC from this version on can leave out declarations that no kernel of ours needs."""


class CudaC(Backend):
    """The backend of CUDA C, for NVIDIA GPUs."""

    name = NAME
    lines_a_second = 1000.0

    def __init__(self, arch: str = "sm_90", contract: Contract = "cc", cache: Path | None = None) -> None:
        """``cache``: the folder of compiled kernels, shared by processes; None compiles anew."""
        self.arch = arch
        self.contract = contract
        self.cache = cache

    def emit(self, plan: Plan) -> str:
        return file_text(self.finish(plan))

    def finish(self, plan: Plan) -> FinishedPlan:
        return finish(plan, Machine(blocks=True, contract=self.contract, host_reads=True))

    def measuring(self) -> Backend:
        return CudaC(self.arch, "fast", self.cache)

    def build(self, plan: Plan) -> Binary:
        start = time.perf_counter()
        finished = self.finish(plan)
        check_limits(finished)
        check_capability(finished, self.arch)
        built = {k.name: self._cubin(finished, k) for k in finished.compiled_kernels}
        used = tuple(cubin.resources(k, built[k.name][1]) for k in finished.compiled_kernels)
        objects = {name: code for name, (code, _) in built.items()}
        return Binary(self.name, finished, file_text(finished), objects, used, time.perf_counter() - start)

    def build_ahead(self, plan: Plan, first: int) -> None:
        if self.cache is not None:
            finished = self.finish(plan)
            check_limits(finished)
            kernels = finished.compiled_kernels
            for kernel in (*kernels[first:], *kernels[:first]):
                self._cubin(finished, kernel)

    def ptx(self, plan: Plan) -> str:
        """Return the PTX of every kernel, without a GPU."""
        finished = self.finish(plan)
        return "\n".join(self._ptx(kernel_text(finished, k), k.name) for k in finished.compiled_kernels)

    def load(self, binary: Binary) -> CudaProgram:
        return CudaProgram(binary, CallingConvention(pointers_only=True, entry=ENTRY))

    def finished(self, plan: Plan) -> FinishedPlan:
        """Return the plan after all passes for launches that do not wait for each other, and so for no data.

        Raises ResourceError if a kernel needs more than a GPU of any kind has.
        """
        made = finish(plan, Machine(blocks=True, contract=self.contract))
        check_limits(made)
        return made

    def images(self, plan: FinishedPlan, kernel: Kernel) -> tuple[bytes, str]:
        """Return the machine code of a kernel, under its own name, and its PTX.

        Raises ResourceError if the architecture lacks what the kernel needs.
        """
        check_capability(plan, self.arch)
        text = kernel_text(plan, kernel)
        ptx = self._ptx(text, kernel.name)
        facts = (text, self.arch, _toolchain())
        return cubin.load_or_make(self.cache, facts, lambda: cubin.link(ptx, self.arch))[0], ptx

    def _cubin(self, plan: FinishedPlan, kernel: Kernel) -> cubin.Code:
        text = kernel_text(plan, replace(kernel, name=ENTRY))
        facts = (text, self.arch, _toolchain())
        return cubin.load_or_make(self.cache, facts, lambda: cubin.link(self._ptx(text, kernel.name), self.arch))

    def _ptx(self, text: str, name: str) -> str:
        """Return the PTX of one kernel, compiled with Numba's settings.

        Products are contracted with sums unless they are written otherwise, and everything else is rounded as IEEE 754
        prescribes.
        """
        options = [f"--gpu-architecture=compute_{self.arch.removeprefix('sm_')}", "--std=c++17", "--fmad=true"]
        # It declares no textures and nothing of the host, which take a quarter of the time of a small kernel.
        options += ["--minimal"] if _check(nvrtc.nvrtcVersion()) >= MINIMAL else []
        program = _check(nvrtc.nvrtcCreateProgram(text.encode(), f"{name}.cu".encode(), 0, [], []))
        try:
            compiled = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
            if compiled[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
                raise RuntimeError(f"NVRTC: {_text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)}")
            return _text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
        finally:
            _check(nvrtc.nvrtcDestroyProgram(program))


def _check(result: tuple[Any, ...]) -> Any:
    error, *values = result
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {_check(nvrtc.nvrtcGetErrorString(error)).decode()}")
    return values[0] if len(values) == 1 else tuple(values)


def _text(program: Any, size: Any, write: Any) -> str:
    """Return what the compiler has to give, without the zero that ends it."""
    held: bytes = b" " * _check(size(program))
    _check(write(program, held))
    return held.rstrip(b"\0").decode()


def _toolchain() -> str:
    return repr(toolchain("cuda-c"))
