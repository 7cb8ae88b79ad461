"""Kernels as machine code for several architectures: what a program carries so that it needs no compiler.

--arch sm_80,sm_90      a cubin for each, and PTX of the last, which the driver of a later GPU compiles
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from looptune.backends.codegen.kernel import launched_block
from looptune.backends.cuda.cuda_c_writer import kernel_parts, kernel_text
from looptune.core.errors import ResourceError, UsageError
from looptune.core.floating_point import Contract
from looptune.runtime.targets import cuda_installed

if TYPE_CHECKING:
    from looptune.lower.plan import FinishedPlan, Kernel, Plan

NO_CODE = "none"
DEFAULT_ARCHITECTURES = ("sm_80", "sm_90")
_ANY_NAME = "kernel"


@dataclass(frozen=True, slots=True)
class Image:
    """Machine code, or PTX, of one kernel for a compute capability, 90 for sm_90."""

    capability: int
    is_ptx: bool
    code: bytes


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel of a program.

    ``symbol`` is the name of its function; ``text`` is CUDA C, which calls ``functions``, given by name; ``block``
    launches it, see ``launched_block``.
    """

    symbol: str
    text: str
    functions: Mapping[str, str]
    images: tuple[Image, ...]
    block: tuple[int, ...]


def architectures(given: str | None) -> tuple[str, ...]:
    """Return the architectures of an ``--arch`` option, in ascending order; none for "none".

    Raises UsageError if one of them is unknown, or if the packages that compile for GPUs are missing.
    """
    if given == NO_CODE:
        return ()
    if not cuda_installed():
        raise UsageError("machine code for GPUs needs the package numba-cuda; install it with: pip install "
                         "'looptune[cuda]', or build for the host alone with --arch none")  # fmt: skip
    known = importlib.import_module("looptune.backends.numba_cuda.backend").architectures()
    asked = DEFAULT_ARCHITECTURES if given is None else tuple(a.strip() for a in given.split(","))
    for arch in asked:
        if arch not in known:
            raise UsageError(f"unknown architecture {arch!r} in --arch: choose of {', '.join(known)}, or none")
    return tuple(sorted(set(asked), key=known.index))


@dataclass(slots=True)
class KernelCompiler:
    """A compiler of the kernels of plans; every kernel is compiled once.

    ``cache`` is the folder of compiled kernels that looptune's commands share; ``mark`` is in the names of the kernels,
    so that those of same-named functions of a program differ.
    """

    architectures: tuple[str, ...]
    contract: Contract
    cache: Path
    mark: str = ""
    kernels: dict[tuple[str, tuple[int, ...]], CompiledKernel] = field(default_factory=dict)

    def finished(self, plan: Plan) -> FinishedPlan:
        """Return the plan after all passes. Raises ResourceError if no GPU has what a kernel needs."""
        made: FinishedPlan = self._backend(self.architectures[-1]).finished(plan)
        return made

    def compiled(self, plan: FinishedPlan, kernel: Kernel) -> CompiledKernel:
        """Return the compiled kernel. Raises ResourceError if none of the architectures has what it needs."""
        key = (kernel_text(plan, replace(kernel, name=_ANY_NAME)), launched_block(kernel))
        if key not in self.kernels:
            named = replace(kernel, name=f"{plan.codelet.name}_{self.mark}{len(self.kernels)}")
            functions, text = kernel_parts(plan, named)
            self.kernels[key] = CompiledKernel(named.name, text, functions, self._images(plan, named), key[1])
        return self.kernels[key]

    def _images(self, plan: FinishedPlan, kernel: Kernel) -> tuple[Image, ...]:
        found: list[Image] = []
        ptx = ""
        refused: ResourceError | None = None
        for arch in self.architectures:
            try:
                code, ptx = self._backend(arch).images(plan, kernel)
            except ResourceError as error:
                refused = error
                continue
            found.append(Image(int(arch.removeprefix("sm_")), False, code))
        if not found:
            assert refused is not None, "there is an architecture"
            raise refused
        return (*found, Image(found[-1].capability, True, ptx.encode() + b"\0"))

    def _backend(self, arch: str) -> Any:
        return importlib.import_module("looptune.backends.cuda.cuda_c").CudaC(arch, self.contract, self.cache)


def array_text(name: str, code: bytes) -> str:
    """Return the definition of an array of bytes in C."""
    rows = (", ".join(str(b) for b in code[k : k + 24]) for k in range(0, len(code), 24))
    return f"static const unsigned char {name}[{len(code)}] = {{\n" + "".join(f"    {row},\n" for row in rows) + "};\n"


def named_images(kernel: str, images: Sequence[Image]) -> list[tuple[str, Image]]:
    """Return the name of the array in C for each image of a kernel."""
    return [(f"{kernel}_{'compute' if i.is_ptx else 'sm'}_{i.capability}", i) for i in images]


def cuda_text(kernels: Sequence[CompiledKernel]) -> str:
    """Return kernels and the functions that they call as one file of CUDA C."""
    functions = {name: text for kernel in kernels for name, text in kernel.functions.items()}
    return "\n".join([*(functions[name] for name in sorted(functions)), *(kernel.text for kernel in kernels)])
