"""Plans on the CPU, through Numba: a serial function per kernel, a driver that runs them on all cores with prange.

    grid axis y ─▶ prange over chunks of it        grid axis x, thread loops ─▶ for loops inside

A kernel function sees a range of its outer axis, so that LLVM vectorises it like any serial loop nest. What is
compiled is kept in a file cache, so that compiling processes hand it to the measuring one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from numba import get_num_threads

from looptune.backends.base import Backend, Binary, Program, header
from looptune.backends.text import DTYPES, HELPERS, LEVEL, Writer, ident, never_negative
from looptune.ir import Array, Const, Load, Loop, Scalar, Var
from looptune.mapping import HostIf, HostLoop, Kernel, Launch, Plan, Step

CHUNKS_PER_CORE = 4
"""Chunks of the outer axis per core: enough to balance a triangular nest, few enough to cost nothing."""


class _Writer(Writer):
    """Arrays keep their dimensions; an index other than a plain loop variable is unsigned, or Numba tests its sign."""

    def element(self, load: Load) -> str:
        return f"{ident(load.array)}[{', '.join(self.index(i) for i in load.index)}]"

    def index(self, e: object) -> str:
        match e:
            case Const(value):
                return str(int(value))
            case Var(name) if name in self.nonnegative:
                return ident(name)
        return f"uintp({self.bound(e)})"  # type: ignore[arg-type]

    def loop(self, loop: Loop, indent: str) -> Iterator[str]:
        lo, hi = self.bound(loop.lo), self.bound(loop.hi)
        step = "" if loop.step == 1 else f", {loop.step}"
        start = "" if lo == "0" and not step else f"{lo}, "
        yield f"{indent}for {ident(loop.var)} in range({start}{hi}{step}):"
        if never_negative(loop.lo, self.nonnegative):
            self.nonnegative.add(loop.var)
        yield from self.block(loop.body, indent + "    ")
        self.nonnegative.discard(loop.var)


class NumbaCpu(Backend):
    name = "numba-cpu"

    def __init__(self, cache: Path, fastmath: bool = True) -> None:
        """``cache``: the folder of compiled modules; ``fastmath``: reductions may be reassociated and vectorised."""
        self.cache = cache
        self.fastmath = fastmath

    def emit(self, plan: Plan) -> str:
        sizes = _extents(plan)
        writer = _Writer(sizes)
        kernels = [line for k in plan.kernels for line in _kernel(plan, k, writer)]
        driver = list(_driver(plan, _Writer(sizes)))
        helpers = [f"@njit(inline='always')\n{HELPERS[h]}\n" for h in sorted(writer.used)]
        flags = "{'contract', 'reassoc', 'nsz', 'arcp'}" if self.fastmath else "False"
        options = f"OPTIONS = dict(nogil=True, cache=True, error_model='numpy', fastmath={flags})"
        names = ", ".join((*DTYPES, "njit", "prange", "uintp"))
        top = [
            header(plan, self.name),
            "import math",
            "",
            "import numpy as np",
            f"from numba import {names}",
            "",
            options,
            "",
        ]
        return "\n".join([*top, "", *helpers, *kernels, *driver]) + "\n"

    def build(self, plan: Plan) -> Binary:
        """Compile into the cache. Numba's own errors pass through: the caller records them as evidence."""
        source, start = self.emit(plan), time.perf_counter()
        _import(source, self.cache)
        return Binary(self.name, plan, source, {}, (), time.perf_counter() - start)

    def load(self, binary: Binary) -> Program:
        return _CpuProgram(binary.plan, getattr(_import(binary.source, self.cache), ident(binary.plan.codelet.name)))


class _CpuProgram(Program):
    def __init__(self, plan: Plan, entry: Any) -> None:
        self.entry = entry
        self.params = tuple(p.name for p in plan.codelet.params)

    def run(self, arrays: Mapping[str, Any], scalars: Mapping[str, int | float], stream: Any = None) -> None:
        self.entry(*(arrays[p] if p in arrays else scalars[p] for p in self.params), get_num_threads())


def _extents(plan: Plan) -> set[str]:
    """Parameters that are an array's extent, and therefore positive."""
    shapes = [e for p in plan.codelet.params if isinstance(p, Array) for e in p.shape]
    return {e.name for e in shapes if isinstance(e, Var)}


def _kernel(plan: Plan, kernel: Kernel, writer: _Writer) -> Iterator[str]:
    names = ", ".join(ident(n) for n in (*kernel.arrays, *kernel.scalars))
    spans = "start, stop, " if kernel.axes else ""
    yield "@njit(**OPTIONS)"
    yield f"def {kernel.name}({spans}{names}):".replace(", )", ")")
    yield from _axes(kernel, writer)
    yield ""
    yield ""


def _axes(kernel: Kernel, writer: _Writer) -> Iterator[str]:
    indent = "    "
    for depth, axis in enumerate(kernel.axes):
        if depth == 0:
            step = "" if axis.step == 1 else f", {axis.step}"
            yield f"{indent}for {ident(axis.var)} in range(start, stop{step}):"
        else:
            lo, hi = writer.bound(axis.lo), writer.bound(axis.hi)
            step = "" if axis.step == 1 else f", {axis.step}"
            yield f"{indent}for {ident(axis.var)} in range({lo}, {hi}{step}):"
        if never_negative(axis.lo, writer.nonnegative):
            writer.nonnegative.add(axis.var)
        indent += "    "
    yield from writer.block(kernel.body, indent)
    for axis in kernel.axes:
        writer.nonnegative.discard(axis.var)


def _driver(plan: Plan, writer: _Writer) -> Iterator[str]:
    params = ", ".join(ident(p.name) for p in plan.codelet.params)
    parallel = any(k.axes for k in plan.kernels)
    yield f"@njit({_signature(plan)!r}, parallel={parallel}, **OPTIONS)"
    yield f"def {ident(plan.codelet.name)}({params}, cores):".replace("(, ", "(")
    for local in plan.resident:
        shape = ", ".join(writer.bound(e) for e in local.shape) if local.shape else "1"
        yield f"    {ident(local.name)} = np.zeros(({shape},), {local.dtype})"
    yield from _steps(plan.steps, writer, "    ")


def _steps(steps: tuple[Step, ...], writer: _Writer, indent: str) -> Iterator[str]:
    if not steps:
        yield f"{indent}pass"
    for step in steps:
        match step:
            case Launch(kernel):
                yield from _launch(kernel, writer, indent)
            case HostLoop(var, lo, hi, stride, body):
                yield f"{indent}for {ident(var)} in range({writer.bound(lo)}, {writer.bound(hi)}, {stride}):"
                yield from _steps(body, writer, indent + "    ")
            case HostIf(cond, then, other):
                yield f"{indent}if {writer.condition(cond)}:"
                yield from _steps(then, writer, indent + "    ")
                yield f"{indent}else:"
                yield from _steps(other, writer, indent + "    ")


def _launch(kernel: Kernel, writer: _Writer, indent: str) -> Iterator[str]:
    names = ", ".join(ident(n) for n in (*kernel.arrays, *kernel.scalars))
    if not kernel.axes:
        yield f"{indent}{kernel.name}({names})"
        return
    axis = kernel.axes[0]
    lo, hi, step = writer.bound(axis.lo), writer.bound(axis.hi, LEVEL["-"]), axis.step
    span = hi if lo == "0" else f"{hi} - {writer.bound(axis.lo, LEVEL['*'])}"
    count = f"({span} + {step - 1}) // {step}" if step > 1 else span
    start = ("" if lo == "0" else f"{lo} + ") + (f"{step} * " if step > 1 else "")
    part, end = "int64(chunk) * trips // chunks", "(int64(chunk) + 1) * trips // chunks"
    yield f"{indent}trips = max(0, {count})"
    yield f"{indent}chunks = min(trips, {CHUNKS_PER_CORE} * cores)"
    yield f"{indent}for chunk in prange(chunks):"
    yield f"{indent}    first = {start}({part})" if start else f"{indent}    first = {part}"
    yield f"{indent}    last = {start}({end})" if start else f"{indent}    last = {end}"
    yield f"{indent}    {kernel.name}(first, last, {names})"


def _signature(plan: Plan) -> str:
    types = []
    for p in plan.codelet.params:
        match p:
            case Scalar(_, dtype):
                types.append(dtype)
            case Array(_, dtype, shape):
                types.append(f"{dtype}[{', '.join([':'] * (len(shape) - 1) + ['::1'])}]")
    return f"void({', '.join((*types, 'int64'))})"


def _import(source: str, cache: Path) -> ModuleType:
    """The emitted module, compiled or taken from the cache."""
    name = f"looptune_{hashlib.sha256(source.encode()).hexdigest()[:20]}"
    if name in sys.modules:
        return sys.modules[name]
    path = cache / f"{name}.py"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(source)
        part.replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, f"{path} cannot be imported"
    assert spec.loader is not None, f"{path} has no loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Numba finds a cached function's globals by its module's name
    spec.loader.exec_module(module)
    return module
