"""The measured peaks of a device: codelets are built, loaded and timed like the user's.

    copy   y[i] = x[i]                              bytes read and written
    read   the sums of lines of a matrix            bytes read
    fma    a = a * p + q, independent chains        two operations each

Each rate is the best of several runs. On a CPU the chains are vectors, see ``backends.numba_cpu.fma_peak``. The rates
are stored in a file by device, driver and toolchain, because every sweep needs them.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from looptune.backends.numba_cpu.fma_peak import fma_chains
from looptune.core.version import toolchain
from looptune.frontend import load
from looptune.ir.nodes import Array
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.runtime.roofline import FloatType, Peaks, Rate
from looptune.runtime.verification import extents
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule

if TYPE_CHECKING:
    from looptune.backends.base import Backend
    from looptune.lower.plan import Plan
    from looptune.runtime.device import Device, DeviceInfo, Run

RUNS, FEWEST, LIMIT_S, PATIENCE_S = 500, 3, 0.25, 0.75
"""So many runs of each, or as many as fit into the limit: on a busy machine most are disturbed, and few are not."""
BEYOND, LEAST_BYTES, LARGE_BYTES = 4, 32 * 2**20, 256 * 2**20
"""An array that is copied or read is so many times as large as the last-level cache, between these bounds."""
SHARE = 8
"""An array takes at most this part of the device's memory."""
FLOATS: tuple[FloatType, FloatType] = ("float32", "float64")
CHAINS, PASSES = 8, 4096
"""Of a GPU's thread; eight hide the latency of four cycles even of one warp on each scheduler."""
PASSES_AT_ONCE = 16
"""So that a loop's own operations are few beside 128 multiply-adds."""
CPU_PASSES = 100_000
DISTURBED = 0.3
"""With half of the runs so far below the best something else was running."""
THREADS, WAVES = 2048, 4
"""A GPU's multiprocessor holds so many threads, and runs so many times as many."""

COPY = """
void copy(int n, double x[n], double y[n]) {
  #pragma looptune parallel
  #pragma looptune unroll 4, split
  for (int i = 0; i < n; i++) y[i] = x[i];
}
"""
COLUMNS = """
void sums(int n, int m, double x[m][n], double y[n]) {
  #pragma looptune parallel
  for (int i = 0; i < n; i++) {
    double s = 0;
    #pragma looptune noParallel
    for (int j = 0; j < m; j++) s += x[j][i];
    y[i] = s;
  }
}
"""
ROWS = COLUMNS.replace("x[m][n]", "x[n][m]").replace("x[j][i]", "x[i][j]")
LINES = 64
"""Numbers in a column, of which each thread of a GPU adds up one."""


def fma_text(dtype: FloatType) -> str:
    """Return the source of the dependent multiply-adds of one thread."""
    chains, kind = range(CHAINS), "float" if dtype == "float32" else "double"
    return "\n".join([
        f"void fma(int n, int m, {kind} x[n], {kind} z[2]) {{",
        "  #pragma looptune parallel",
        "  for (int i = 0; i < n; i++) {",
        f"    {kind} p = z[0], q = z[1];",
        *(f"    {kind} a{c} = x[i] + {c};" for c in chains),
        "    #pragma looptune noParallel",
        f"    #pragma looptune unroll {PASSES_AT_ONCE}, contiguous",
        "    for (int k = 0; k < m; k++) {",
        *(f"      a{c} = a{c} * p + q;" for c in chains),
        "    }",
        f"    x[i] = {' + '.join(f'a{c}' for c in chains)};",
        "  }",
        "}",
        "",
    ])  # fmt: skip


def plan_of_text(text: str, **sizes: int) -> Plan:
    """Return the plan of the codelet in ``text`` at these sizes."""
    done = schedule(Analysis(load(text).codelet), (), sizes)
    return lower(specialize(done.codelet, sizes), "", blocks=True)


KNOWN = ("numba-cuda", "numba-cpu")
"""The devices whose FMA peaks are measured."""


def measure(machine: Device, backend: Backend) -> Peaks:
    """Return the peak rates of this device, measured now; nothing else may be running on it."""
    gpu = machine.facts.target == "numba-cuda"
    count = _large_bytes(machine.facts) // 8
    copied = _runs(machine, backend, COPY, 16 * count, n=count)
    if gpu:
        read = _runs(machine, backend, COLUMNS, 8 * count, n=count // LINES, m=LINES)
    else:
        read = _runs(machine, backend, ROWS, 8 * count, n=LINES * machine.facts.cores,
                     m=count // (LINES * machine.facts.cores))  # fmt: skip
    if gpu:
        fma32, fma64 = (_rate(_gpu_fma(machine, backend, dtype)) for dtype in FLOATS)
    else:
        fma32, fma64 = (_cpu_fma(machine, dtype) for dtype in FLOATS)
    return Peaks(_rate(copied), _rate(read), fma32, fma64)


def _large_bytes(facts: DeviceInfo) -> int:
    beyond = max(LEAST_BYTES, BEYOND * facts.cache_bytes)
    return min(LARGE_BYTES, beyond, facts.memory_bytes // SHARE)


def _gpu_fma(machine: Device, backend: Backend, dtype: FloatType) -> Iterator[float]:
    threads = machine.facts.cores * THREADS * WAVES
    return _runs(machine, backend, fma_text(dtype), 2 * CHAINS * PASSES * threads, n=threads, m=PASSES)


def _cpu_fma(machine: Device, dtype: FloatType) -> Rate:
    """All cores at once: if other programs never let them, no less than one core does when it is let alone."""
    one, every, operations = fma_chains(dtype)
    amount = operations * CPU_PASSES
    alone = _rate(_repeated(machine, lambda stream: one(CPU_PASSES), amount))
    return _rate(_repeated(machine, lambda stream: every(CPU_PASSES), amount * machine.facts.cores), alone.best)


def _runs(machine: Device, backend: Backend, text: str, amount: int, **sizes: int) -> Iterator[float]:
    """10^9 of ``amount`` a second, run after run."""
    built = plan_of_text(text, **sizes)
    own = backend.measuring()
    program = own.load(own.build(built))
    arrays: dict[str, Any] = {}
    for p in built.codelet.params:
        match p:
            case Array(name, dtype):
                arrays[name] = machine.place(np.full(extents(p, sizes), 0.5, dtype))
    return _repeated(machine, lambda stream: program.run(arrays, sizes, stream), amount)


def _repeated(machine: Device, run: Run, amount: int) -> Iterator[float]:
    sample = machine.sampler(run, {})
    return (amount / sample() / 1e3 for _ in range(RUNS))


def _rate(runs: Iterator[float], least: float = 0.0, clock: Callable[[], float] = time.perf_counter) -> Rate:
    """Return the best of ``runs`` after the first, which warms up; more of them where none came up to ``least``."""
    start = clock()
    next(runs)
    found: list[float] = []
    for rate in runs:
        found.append(rate)
        limit_s = LIMIT_S if max(found) >= least else PATIENCE_S
        if len(found) >= FEWEST and clock() - start > limit_s:
            break
    best = max(least, *found)
    return Rate(best, (best - median(found)) / best)


def cached_rates(facts: DeviceInfo, cache: Path) -> Peaks | None:
    """Return the peak rates that were measured on this device before."""
    try:
        found = Peaks.of(_held(cache)[_key(facts)])
        return None if found.fma32 is None else found
    except (KeyError, TypeError, ValueError):
        return None


def cache_rates(facts: DeviceInfo, cache: Path, peaks: Peaks) -> None:
    """Store the rates for ``cached_rates``; if the file cannot be written, they are measured again next time."""
    path = _file(cache)
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(_held(cache) | {_key(facts): peaks.record()}, indent=1) + "\n")
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def peak_rates(machine: Device, backend: Backend, cache: Path, *, fresh: bool = False) -> Peaks:
    """Return the known peak rates, or measure and store them; ``fresh`` measures again.

    Rates whose measurement was disturbed are measured again by later processes until their runs agree; the best of each
    rate is kept.
    """
    before = None if fresh else cached_rates(machine.facts, cache)
    key = (str(cache), _key(machine.facts))
    if before is not None and (key in _measured or not _disturbed(before)):
        return before
    found = measure(machine, backend)
    found = found if before is None else found.with_runs_of(before)
    cache_rates(machine.facts, cache, found)
    _measured.add(key)
    return found


_measured: set[tuple[str, str]] = set()
"""By this process."""


def _disturbed(peaks: Peaks) -> bool:
    return any(rate.spread > DISTURBED for rate in peaks.rates.values())


def _file(cache: Path) -> Path:
    return cache / "peaks.json"


def _held(cache: Path) -> dict[str, Any]:
    try:
        held = json.loads(_file(cache).read_text())
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}


def _key(facts: DeviceInfo) -> str:
    versions = " ".join(f"{name} {version}" for name, version in toolchain().items())
    return f"{facts.name}, {facts.target}, {facts.cores} cores, driver {facts.driver}, {versions}"
