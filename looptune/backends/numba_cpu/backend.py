"""Plans on the CPU, through Numba: a serial function per kernel, and a driver that divides them among all cores.

    grid axis y ─▶ chunks of it, run by prange in parallel_for.py   grid axis x, thread loops ─▶ for loops inside
    loop that reduces ─▶ for loop; alone in its kernel ─▶ a chunk for each core, their results combined in order
    several steps of a loop at once ─▶ a band of rows for each core, see ``cpu_time_bands``

A kernel function sees a range of its outer axis, so that LLVM vectorises it like any serial loop nest. To be measured,
each function of a plan is compiled by itself and stored in a file cache, by which compiling processes pass it to the
measuring one; a driver is given the addresses of the kernels, so that it is the same for all versions that launch
their kernels in one way. The emitted module, which is to be read and imported, calls them by name.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np

from looptune.backends.base import Backend, Binary, Program, header
from looptune.backends.codegen.python import (
    DTYPES,
    HELPERS,
    SHARE,
    ident,
    imported_types,
)
from looptune.backends.numba_cpu import parallel_for
from looptune.backends.numba_cpu.calls_by_address import address_of
from looptune.backends.numba_cpu.code_cache import DIGEST
from looptune.backends.numba_cpu.functions import (
    FunctionWriter,
    address_positions,
    decorated_kernel,
    driver_function,
    driver_signature,
    is_divided,
    kernel_function,
    parameter_types,
)
from looptune.backends.numba_cpu.openmp_layer import load_openmp_layer
from looptune.backends.numba_cpu.program import CpuProgram
from looptune.core.cache_file import replace_file
from looptune.core.floating_point import DEFAULT, Floats
from looptune.core.version import __version__
from looptune.lower.cpu_names import IN_ANY_ORDER
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish
from looptune.lower.plan import FinishedPlan, Kernel, Plan, has_host_loop

ANY_ORDER = (*IN_ANY_ORDER.values(), "fused")
"""What ``anyorder`` defines for the text of kernels."""

_UNIT = f'"""A {{}} of looptune {__version__} for {{}}."""\n'


@dataclass(frozen=True, slots=True)
class KernelSources:
    """A plan as text that something else compiles.

    ``kernels``: by name a function, the Numba types of its parameters and whether its iterations are divided;
    ``driver``: the function of C's parameters and ``cores`` that runs them, and ``signature`` its Numba type.
    """

    helpers: tuple[str, ...]
    kernels: Mapping[str, tuple[str, tuple[str, ...], bool]]
    driver: str
    signature: str


def parts(plan: Plan, *, reorders: bool) -> KernelSources:
    """Return the sources of a plan's kernels and of its driver."""
    finished = finish(plan, Machine(blocks=False, reorder=reorders, host_reads=True))
    writer, host = FunctionWriter(plan), FunctionWriter(plan)
    kernels = {
        k.name: ("\n".join(kernel_function(k, writer)) + "\n", tuple(parameter_types(finished, k)), is_divided(k))
        for k in finished.kernels
    }
    driver = list(driver_function(finished, host, stops=False))
    helpers = tuple(f"@njit(inline='always')\n{HELPERS[h]}" for h in sorted(writer.used | host.used))
    return KernelSources(helpers, kernels, "\n".join(driver) + "\n", driver_signature(plan, stops=False))


class NumbaCpu(Backend):
    """The backend of Numba for the CPU."""

    name = "numba-cpu"

    def __init__(self, cache: Path, floats: Floats = DEFAULT, threads: int | None = None) -> None:
        """``cache``: the folder of compiled modules; ``threads``: at most so many, None for all cores."""
        load_openmp_layer()  # before Numba loads it by itself, when it is asked for the number of threads
        self.cache = cache
        self.floats = floats
        self.threads = threads

    def emit(self, plan: Plan) -> str:
        finished = self.finish(plan)
        writer, host = FunctionWriter(plan), FunctionWriter(plan)
        kernels = [line for k in finished.kernels for line in decorated_kernel(finished, k, writer)]
        decorator = f"@njit({driver_signature(plan, stops=False)!r}, **OPTIONS)"
        driver = ["", "", decorator, *driver_function(finished, host, stops=False)]
        return self._module(header(plan, self.name), imported_types(plan), (writer, host), [*kernels, *driver])

    def _module(
        self, opening: str, types: Collection[str], writers: Collection[FunctionWriter], body: Sequence[str]
    ) -> str:
        """Return a module with these functions, which opens with a docstring."""
        used = sorted({name for writer in writers for name in writer.used})
        helpers = [f"@njit(inline='always')\n{HELPERS[h]}\n" for h in used]
        called = sorted(name for name in ANY_ORDER if any(f"{name}(" in line for line in body))
        top = [
            opening,
            "import math\n",
            "import numpy as np",
            f"from numba import {', '.join((*types, 'njit', 'uintp', 'void'))}",
            "from numba.core.compiler import Compiler\n",
            *(
                [f"from looptune.backends.numba_cpu.reassociated_operations import {', '.join(called)}"]
                if called
                else []
            ),
            "from looptune.backends.numba_cpu.code_cache import kept",
            "from looptune.backends.numba_cpu.parallel_for import sharer",
            "from looptune.backends.numba_cpu.noalias_pipeline import Unaliased\n",
            f"OPTIONS = {noalias_type(self.floats.contracts_here)}\n",
        ]
        return "\n".join([*top, "", *helpers, *body]) + "\n"

    def finish(self, plan: Plan) -> FinishedPlan:
        return finish(plan, Machine(blocks=False, reorder=self.floats.reorder, host_reads=True))

    def measuring(self) -> Backend:
        return NumbaCpu(self.cache, Floats(contract="fast"), self.threads)

    def build(self, plan: Plan) -> Binary:
        """Compile the functions into the cache. The caller records Numba's own errors as evidence."""
        finished = self.finish(plan)
        source, start = self.emit(finished), time.perf_counter()
        self._compiled(finished)
        return Binary(self.name, finished, source, {}, (), time.perf_counter() - start)

    def load(self, binary: Binary) -> Program:
        return CpuProgram(binary.plan, self._compiled(binary.plan), self.threads)

    def _compiled(self, plan: FinishedPlan) -> Callable[..., None]:
        """Return the driver with its kernels, compiled or taken from the cache."""
        addresses: list[int] = []
        for kernel in plan.kernels:
            module = _import(self._kernel_module(plan, kernel), self.cache)
            addresses.append(address_of(module.kernel))
            if is_divided(kernel):
                addresses.append(address_of(parallel_for.sharer(module.kernel_args)))
        driver = getattr(_import(self._driver_module(plan), self.cache), ident(plan.codelet.name))
        return partial(driver, np.array(addresses, np.int64))

    def _kernel_module(self, plan: FinishedPlan, kernel: Kernel) -> str:
        """Return a module of one kernel that does not depend on the other kernels, nor on its number among them."""
        writer = FunctionWriter(plan)
        types, head = ", ".join(parameter_types(plan, kernel)), "int64, int64, " if is_divided(kernel) else ""
        # A kernel is called by its address alone: Numba's functions for callers in Python and C are left out.
        options = "no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS"
        body = [
            f"kernel_args = ({types}{',' if types else ''})\n\n",
            f"@kept(void({head}*kernel_args), {options})",
            *kernel_function(replace(kernel, name="kernel"), writer),
        ]
        return self._module(_UNIT.format("kernel", self.name), (*DTYPES, "boolean"), (writer,), body)

    def _driver_module(self, plan: FinishedPlan) -> str:
        """Return a module of a plan's driver, which is given the addresses of the kernels."""
        stops, writer = has_host_loop(plan), FunctionWriter(plan)
        body = ["from looptune.backends.numba_cpu.calls_by_address import kernel_caller, share_caller\n"]
        for kernel in plan.kernels:
            made = f"{kernel.name}{SHARE} = share_caller" if is_divided(kernel) else f"{kernel.name} = kernel_caller"
            types = ", ".join(parameter_types(plan, kernel))
            body.append(f"{made}(({types}{',' if types else ''}))")
        # It looks at what another thread tells it: no compiler may take that array to be its own.
        options = "**{**OPTIONS, 'pipeline_class': Compiler}" if stops else "**OPTIONS"
        signature = driver_signature(plan, stops, addressed=True)
        body += ["\n", f"@kept({signature!r}, no_cfunc_wrapper=True, {options})"]
        body += driver_function(plan, writer, stops=stops, addresses=address_positions(plan))
        return self._module(_UNIT.format("driver", self.name), (*DTYPES, "boolean"), (writer,), body)


def options_of(contract: bool) -> str:
    """Return Numba's options; ``contract``: a product and the sum of which it is a term may round once."""
    flags = "{'contract'}" if contract else "False"
    return f"dict(nogil=True, error_model='numpy', fastmath={flags})"


def noalias_type(contract: bool) -> str:
    """Return the same type with the guarantee that no two arrays overlap."""
    return f"{options_of(contract)[:-1]}, pipeline_class=Unaliased)"


def _import(source: str, cache: Path) -> ModuleType:
    """Return the emitted module, compiled or taken from the cache."""
    digest = hashlib.sha256(source.encode()).hexdigest()
    name = f"looptune_{digest[:20]}"
    if name in sys.modules:
        return sys.modules[name]
    path = cache / f"{name}.py"
    # Numba looks at the file, and Python's own copy of it in byte code may be damaged.
    if not path.exists() or path.read_bytes() != source.encode():
        replace_file(path, source.encode())
    module = ModuleType(name)
    module.__file__ = str(path)
    setattr(module, DIGEST, digest)
    sys.modules[name] = module  # Numba finds a cached function's globals by its module's name
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module
