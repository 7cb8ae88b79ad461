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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from looptune.backends.base import Backend, Binary, Program, header
from looptune.backends.codegen import half
from looptune.backends.codegen.python import (
    ADDRESSES,
    DTYPES,
    HELPERS,
    LEVEL,
    SHARE,
    SPELLED,
    Writer,
    host_steps,
    ident,
    imported_types,
    numba_type,
)
from looptune.backends.numba_cpu import parallel_for
from looptune.backends.numba_cpu.calls_by_address import address_of
from looptune.backends.numba_cpu.code_cache import DIGEST
from looptune.backends.numba_cpu.program import CpuProgram
from looptune.core.cache_file import replace_file
from looptune.core.floating_point import DEFAULT, Floats
from looptune.core.version import __version__
from looptune.ir.def_use import continuing_condition
from looptune.ir.intervals import never_negative
from looptune.ir.nodes import HALF, Array, Assign, Const, Expr, If, Load, Loop, Scalar, Stmt, Var, promoted_type
from looptune.lower.cpu_names import CORES, IN_ANY_ORDER
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish
from looptune.lower.plan import FinishedPlan, HostLoop, Kernel, Launch, Plan, has_host_loop
from looptune.lower.signature import half_scalars

if TYPE_CHECKING:
    from looptune.lower.accumulators import Accumulator
    from looptune.lower.team import TeamReduce

ANY_ORDER = (*IN_ANY_ORDER.values(), "fused")
"""What ``anyorder`` defines for the text of kernels."""

_UNIT = f'"""A {{}} of looptune {__version__} for {{}}."""\n'


class _Writer(Writer):
    """Arrays keep their dimensions.

    An index is unsigned, or Numba tests its sign and no vectors are made, but for the variables of loops that begin at
    a constant, of which LLVM sees the sign: ``seen``.

    ``math.floor`` and its like give an int64 under Numba on a CPU, NumPy's give a float, as C's do.
    """

    spelled: ClassVar = {
        **SPELLED,
        "floor": "np.floor({0})",
        "ceil": "np.ceil({0})",
        "trunc": "np.trunc({0})",
        "fmod": "np.fmod({0}, {1})",
        "rint": "np.rint({0})",
        "nextafter": "np.nextafter({0}, {1})",
        "fma": "fused({0}, {1}, {2})",
        **{name: f"{name}({{0}}, {{1}})" for name in IN_ANY_ORDER.values()},
    }

    def __init__(self, plan: Plan) -> None:
        super().__init__(_extents(plan))
        self.half_parameters = half_scalars(plan)
        self.seen: set[str] = set()

    def to_half(self, text: str, dtype: str = "float32") -> str:
        name = half.FROM_DOUBLE if dtype == "float64" else half.FROM_FLOAT
        self.used.update(half.needed(name))
        return f"{name}({text})"

    def from_half(self, text: str) -> str:
        return f"{self.helper(half.TO_FLOAT)}({text})"

    def element(self, load: Load) -> str:
        return f"{ident(load.array)}[{', '.join(self.index(i) for i in load.index)}]"

    def index(self, e: Expr) -> str:
        match e:
            case Const(value):
                return str(int(value))
            case Var(name) if name in self.seen:
                return ident(name)
        return f"uintp({self.bound(e)})"

    def loop(self, loop: Loop, indent: str) -> Iterator[str]:
        lo, hi = self.bound(loop.lo), self.bound(loop.hi)
        step = "" if loop.step == 1 else f", {loop.step}"
        start = "" if lo == "0" and not step else f"{lo}, "
        yield f"{indent}for {ident(loop.var)} in range({start}{hi}{step}):"
        if never_negative(loop.lo, self.nonnegative):
            self.nonnegative.add(loop.var)
        if isinstance(loop.lo, Const) and loop.lo.value >= 0:
            self.seen.add(loop.var)
        on = continuing_condition(loop)
        if on is not None:
            yield f"{indent}    if not ({self.condition(on)}): break"
        yield from self.block(loop.body, indent + "    ")
        self.nonnegative.discard(loop.var)
        self.seen.discard(loop.var)


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
    finished = finish(plan, Machine(blocks=False, reorder=reorders))
    writer, host = _Writer(plan), _Writer(plan)
    kernels = {
        k.name: ("\n".join(_function(k, writer)) + "\n", tuple(_types(finished, k)), _spans(k))
        for k in finished.kernels
    }
    driver = list(_driver(finished, host, stops=False))
    helpers = tuple(f"@njit(inline='always')\n{HELPERS[h]}" for h in sorted(writer.used | host.used))
    return KernelSources(helpers, kernels, "\n".join(driver) + "\n", _signature(plan, stops=False))


class NumbaCpu(Backend):
    """The backend of Numba for the CPU."""

    name = "numba-cpu"

    def __init__(self, cache: Path, floats: Floats = DEFAULT, threads: int | None = None) -> None:
        """``cache``: the folder of compiled modules; ``threads``: at most so many, None for all cores."""
        self.cache = cache
        self.floats = floats
        self.threads = threads

    def emit(self, plan: Plan) -> str:
        finished = self._finished(plan)
        writer, host = _Writer(plan), _Writer(plan)
        kernels = [line for k in finished.kernels for line in _kernel(finished, k, writer)]
        decorator = f"@njit({_signature(plan, stops=False)!r}, **OPTIONS)"
        driver = ["", "", decorator, *_driver(finished, host, stops=False)]
        return self._module(header(plan, self.name), imported_types(plan), (writer, host), [*kernels, *driver])

    def _module(self, opening: str, types: Collection[str], writers: Collection[_Writer], body: Sequence[str]) -> str:
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

    def _finished(self, plan: Plan) -> FinishedPlan:
        return finish(plan, Machine(blocks=False, reorder=self.floats.reorder))

    def measuring(self) -> Backend:
        return NumbaCpu(self.cache, Floats(contract="fast"), self.threads)

    def build(self, plan: Plan) -> Binary:
        """Compile the functions into the cache. The caller records Numba's own errors as evidence."""
        finished = self._finished(plan)
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
            if _spans(kernel):
                addresses.append(address_of(parallel_for.sharer(module.kernel_args)))
        driver = getattr(_import(self._driver_module(plan), self.cache), ident(plan.codelet.name))
        return partial(driver, np.array(addresses, np.int64))

    def _kernel_module(self, plan: FinishedPlan, kernel: Kernel) -> str:
        """Return a module of one kernel that does not depend on the other kernels, nor on its number among them."""
        writer = _Writer(plan)
        types, spans = ", ".join(_types(plan, kernel)), "int64, int64, " if _spans(kernel) else ""
        # A kernel is called by its address alone: Numba's functions for callers in Python and C are left out.
        options = "no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS"
        body = [
            f"kernel_args = ({types}{',' if types else ''})\n\n",
            f"@kept(void({spans}*kernel_args), {options})",
            *_function(replace(kernel, name="kernel"), writer),
        ]
        return self._module(_UNIT.format("kernel", self.name), (*DTYPES, "boolean"), (writer,), body)

    def _driver_module(self, plan: FinishedPlan) -> str:
        """Return a module of a plan's driver, which is given the addresses of the kernels."""
        stops, writer = has_host_loop(plan), _Writer(plan)
        body = ["from looptune.backends.numba_cpu.calls_by_address import kernel_caller, share_caller\n"]
        for kernel in plan.kernels:
            made = f"{kernel.name}{SHARE} = share_caller" if _spans(kernel) else f"{kernel.name} = kernel_caller"
            types = ", ".join(_types(plan, kernel))
            body.append(f"{made}(({types}{',' if types else ''}))")
        # It looks at what another thread tells it: no compiler may take that array to be its own.
        options = "**{**OPTIONS, 'pipeline_class': Compiler}" if stops else "**OPTIONS"
        signature = _signature(plan, stops, addressed=True)
        body += ["\n", f"@kept({signature!r}, no_cfunc_wrapper=True, {options})"]
        body += _driver(plan, writer, stops=stops, addresses=_positions(plan))
        return self._module(_UNIT.format("driver", self.name), (*DTYPES, "boolean"), (writer,), body)


def options_of(contract: bool) -> str:
    """Return Numba's options; ``contract``: a product and the sum of which it is a term may round once."""
    flags = "{'contract'}" if contract else "False"
    return f"dict(nogil=True, error_model='numpy', fastmath={flags})"


def noalias_type(contract: bool) -> str:
    """Return the same type with the guarantee that no two arrays overlap."""
    return f"{options_of(contract)[:-1]}, pipeline_class=Unaliased)"


def _extents(plan: Plan) -> set[str]:
    """Parameters that are an array's extent, and therefore not negative, as the number of cores is."""
    shapes = [e for p in plan.codelet.params if isinstance(p, Array) for e in p.shape]
    return {e.name for e in (*shapes, CORES) if isinstance(e, Var)}


def _kernel(plan: FinishedPlan, kernel: Kernel, writer: _Writer) -> Iterator[str]:
    spans = _spans(kernel)
    types = ", ".join(_types(plan, kernel))
    yield f"{kernel.name}_args = ({types}{',' if types else ''})"
    yield ""
    yield ""
    yield f"@kept(void({'int64, int64, ' if spans else ''}*{kernel.name}_args), **OPTIONS)"
    yield from _function(kernel, writer)
    yield ""
    yield ""
    if spans:
        yield f"{kernel.name}{SHARE} = sharer({kernel.name}_args)"


def _function(kernel: Kernel, writer: _Writer) -> Iterator[str]:
    tree = _alone(kernel)
    extra = [*map(_parts, tree.accumulators), "cores"] if tree is not None else []
    names = [*(ident(n) for n in (*kernel.arrays, *kernel.scalars)), *extra]
    yield f"def {kernel.name}({', '.join([*(('start', 'stop') if _spans(kernel) else ()), *names])}):"
    for v in (v for v in kernel.locals if v.shape):
        yield f"    {ident(v.name)} = np.empty(({', '.join(writer.bound(e) for e in v.shape)},), {_element(v.dtype)})"
    yield from _chunk(kernel, tree, writer) if tree is not None else _axes(kernel, writer)


def _spans(kernel: Kernel) -> bool:
    """Tell whether it is given a range of its outer axis, or of chunks."""
    return bool(kernel.loops) or _alone(kernel) is not None


def _alone(kernel: Kernel) -> TeamReduce | None:
    """Return the loop that is all of the kernel, and reduces."""
    return None if kernel.loops or kernel.team is None else kernel.team.trees[0]


def _chunk(kernel: Kernel, tree: TeamReduce, writer: _Writer) -> Iterator[str]:
    """Chunks ``start`` to ``stop`` of as many as there are cores, each with a result of its own."""
    loop = tree.loop
    yield f"    trips = max(0, {_trips(loop, writer)})"
    yield "    for chunk in range(start, stop):"
    for a in tree.accumulators:
        yield from writer.statement(Assign(a.private, a.identity), "        ")
    yield "        first, last = chunk * trips // cores, (chunk + 1) * trips // cores"
    lo, step = writer.bound(loop.lo, LEVEL["+"]), loop.step
    ends = [f"{step} * {end}" if step > 1 else end for end in ("first", "last")]
    ends = [f"{lo} + {end}" for end in ends] if lo != "0" else ends
    yield f"        for {ident(loop.var)} in range({', '.join([*ends, *([str(step)] if step > 1 else [])])}):"
    if never_negative(loop.lo, writer.nonnegative):
        writer.nonnegative.add(loop.var)
    (share,) = kernel.serial
    assert isinstance(share, Loop), "the kernel is one loop"
    yield from writer.block(share.body, "            ")
    writer.nonnegative.discard(loop.var)
    for a in tree.accumulators:
        yield f"        {_parts(a)}[chunk] = {ident(a.private.name)}"


def _parts(a: Accumulator) -> str:
    """Return the array of the chunks' results."""
    return f"{a.private.name}__team"


def _axes(kernel: Kernel, writer: _Writer) -> Iterator[str]:
    body, around, indent = kernel.serial, tuple[Loop, ...](), "    "
    match body:
        case (Loop() as loop,) if kernel.team is not None and kernel.team.outer:
            around, body = (loop,), loop.body
    for loop in around:
        yield from _opened(loop, writer.bound(loop.lo), writer.bound(loop.hi), writer, indent)
        indent += "    "
    yield from _shared(body, writer, indent) if kernel.loops else writer.block(body, indent)
    for loop in around:
        writer.nonnegative.discard(loop.var)


def _shared(body: tuple[Stmt, ...], writer: _Writer, indent: str) -> Iterator[str]:
    """Yield the loop from ``start`` to ``stop``, or the two of a condition that it does not change."""
    for stmt in body:
        match stmt:
            case If(cond, then, other):
                yield f"{indent}if {writer.condition(cond)}:"
                yield from _shared(then, writer, indent + "    ")
                yield f"{indent}else:"
                yield from _shared(other, writer, indent + "    ")
            case Loop():
                yield from _opened(stmt, "start", "stop", writer, indent)
                yield from writer.block(stmt.body, indent + "    ")
                writer.nonnegative.discard(stmt.var)


def _opened(loop: Loop, lo: str, hi: str, writer: _Writer, indent: str) -> Iterator[str]:
    step = "" if loop.step == 1 else f", {loop.step}"
    yield f"{indent}for {ident(loop.var)} in range({lo}, {hi}{step}):"
    if never_negative(loop.lo, writer.nonnegative):
        writer.nonnegative.add(loop.var)


def _positions(plan: FinishedPlan) -> dict[str, int]:
    """Return where the address of each kernel is among those that a driver is given.

    That of a kernel whose iterations are divided is followed by the address of the function that divides them.
    """
    found, end = {}, 0
    for kernel in plan.kernels:
        found[kernel.name] = end
        end += 2 if _spans(kernel) else 1
    return found


def _driver(
    plan: FinishedPlan, writer: _Writer, *, stops: bool, addresses: Mapping[str, int] | None = None
) -> Iterator[str]:
    """Yield the driver's function.

    ``stops``: it returns between two launches once it is told to. ``addresses``: where the address of each kernel is
    in the array of addresses that is its first argument; None if it calls the kernels by their names.
    """
    names = [*(ident(p.name) for p in plan.codelet.params), "cores", *(["told"] if stops else [])]
    yield f"def {ident(plan.codelet.name)}({', '.join(names if addresses is None else (ADDRESSES, *names))}):"
    if any(CORES.name in kernel.scalars for kernel in plan.kernels):
        yield f"    {CORES.name} = cores"
    for local in plan.device_locals:
        shape = ", ".join(writer.bound(e) for e in local.shape) if local.shape else "1"
        yield f"    {ident(local.name)} = np.zeros(({shape},), {_element(local.dtype)})"

    def launched(step: Launch | HostLoop, indent: str) -> Iterator[str]:
        assert isinstance(step, Launch), "a CPU has no persistent kernels"
        yield from _launch(step.kernel, writer, indent, addresses)
        if stops:
            yield f"{indent}told[1] += 1"

    yield from host_steps(plan.steps, writer, "    ", launched, ("if told[0]:", "    return") if stops else ())


def _launch(kernel: Kernel, writer: _Writer, indent: str, addresses: Mapping[str, int] | None = None) -> Iterator[str]:
    names = ", ".join(ident(n) for n in (*kernel.arrays, *kernel.scalars))
    at = None if addresses is None else addresses[kernel.name]
    tree = _alone(kernel)
    if not kernel.loops and tree is None:
        given = names if at is None else f"{ADDRESSES}[{at}], ({names + ',' if names else ''})"
        yield f"{indent}{kernel.name}({given})"
        return
    of = kernel.name if at is None else f"{ADDRESSES}[{at + 1}], {ADDRESSES}[{at}]"
    share = f"{kernel.name}{SHARE}({of}, "
    if tree is not None:
        yield from _joined(share, tree, names, writer, indent)
        return
    axis = kernel.loops[0]
    lo, step, count = writer.bound(axis.lo), axis.step, _trips(axis, writer)
    yield f"{indent}{share}{lo}, {step}, {count}, cores, ({names + ',' if names else ''}))"


def _trips(loop: Loop, writer: _Writer) -> str:
    """How many iterations the loop has, less than none where it has none."""
    lo, hi, step = writer.bound(loop.lo), writer.bound(loop.hi, LEVEL["-"]), loop.step
    span = hi if lo == "0" else f"{hi} - {writer.bound(loop.lo, LEVEL['*'])}"
    return f"({span} + {step - 1}) // {step}" if step > 1 else span


def _joined(share: str, tree: TeamReduce, names: str, writer: _Writer, indent: str) -> Iterator[str]:
    """Yield the launch that computes a part for each core, and the loop that combines the parts in order."""
    parts = ", ".join(map(_parts, tree.accumulators))
    for a in tree.accumulators:
        yield f"{indent}{_parts(a)} = np.empty(cores, {numba_type(a.private.dtype)})"
    given = f"{names}, {parts}, cores" if names else f"{parts}, cores"
    yield f"{indent}{share}0, 1, cores, cores, ({given},))"
    yield f"{indent}for chunk in range(cores):"
    for a in tree.accumulators:
        yield f"{indent}    {ident(a.private.name)} = {_parts(a)}[chunk]"
        yield from writer.statement(a.update, indent + "    ")


def _types(plan: Plan, kernel: Kernel) -> Iterator[str]:
    """Numba's types of a kernel's parameters, as text."""
    known = {p.name for p in plan.codelet.params}
    for name in kernel.arrays:
        array = plan.array(name)
        yield _array_type(array.dtype, max(1, len(array.shape)))
    for name in kernel.scalars:
        yield numba_type(promoted_type(plan.dtype(name))) if name in known else "int64"
    tree = _alone(kernel)
    if tree is not None:
        yield from (_array_type(a.private.dtype, 1) for a in tree.accumulators)
        yield "int64"


def _array_type(dtype: str, rank: int) -> str:
    return f"{_element(dtype)}[{', '.join([':'] * (rank - 1) + ['::1'])}]"


def _element(dtype: str) -> str:
    """Return Numba's type of an element in memory; a half is its bits."""
    return "uint16" if dtype == HALF else numba_type(dtype)


def _signature(plan: Plan, stops: bool, *, addressed: bool = False) -> str:
    types = ["int64[::1]"] if addressed else []
    for p in plan.codelet.params:
        match p:
            case Scalar(_, dtype):
                types.append(numba_type(promoted_type(dtype)))
            case Array(_, dtype, shape):
                types.append(_array_type(dtype, len(shape)))
    return f"void({', '.join((*types, 'int64', *(['int64[::1]'] if stops else [])))})"


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
