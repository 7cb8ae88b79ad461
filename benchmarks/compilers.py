"""Tuned kernels on the CPU beside what gcc makes of the same loops, and GEMM beside NumPy's BLAS.

    looptune run polybench/*.c --sweep --target numba-cpu --fp-contract fast
    python benchmarks/compilers.py [--db FILE] [--fp-contract fast|off|cc] [FILE.c ...]

For each C file (default: polybench/*.c) and each of its sizes that the database has for this CPU: the best version, the
default, and ``gcc -O3 -march=native -fopenmp`` on the original loops with ``omp parallel for`` at every outermost loop
that is parallel, timed in turn on the same arrays (``finals``). gcc contracts products with sums when it compiles for a
processor that can, and so does the kernel, unless ``--fp-contract`` says otherwise.
Writes a Markdown table to standard output.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from looptune.backends import openmp
from looptune.core.errors import LooptuneError
from looptune.core.floating_point import CONTRACTS, Floats
from looptune.core.settings import DATABASE
from looptune.deploy import plans
from looptune.deploy.best_versions import BestVersion, best_versions
from looptune.frontend import Unit, load
from looptune.ir.nodes import Array, Codelet
from looptune.lower.passes.openmp_scalars import accumulate_in_scalars
from looptune.runtime import targets
from looptune.runtime.device import Device
from looptune.runtime.problem_sizes import problem
from looptune.runtime.targets import CACHE, Target
from looptune.runtime.timing import Speedup, finals, speedup, summary
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.tune.store.store import Store

GCC = ("gcc", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
HEAD = "| kernel | sizes | tuned | default | gcc | tuned over default | tuned over gcc | BLAS | of BLAS |"
C_TYPES = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "float32": ctypes.c_float, "float64": ctypes.c_double}


def by_gcc(codelet: Codelet, analysis: Analysis, folder: Path) -> Callable[..., None]:
    """The function, called with NumPy arrays and numbers in C's order."""
    source, library = folder / f"{codelet.name}.c", folder / f"{codelet.name}.so"
    source.write_text(openmp.text(accumulate_in_scalars(schedule(analysis).codelet)))
    subprocess.run([*GCC, str(source), "-o", str(library), "-lm"], check=True)
    function = getattr(ctypes.CDLL(str(library)), codelet.name)

    def call(*args: Any) -> None:
        given = zip(codelet.params, args, strict=True)
        function(*(ctypes.c_void_p(a.ctypes.data) if isinstance(p, Array) else C_TYPES[p.dtype](a) for p, a in given))

    return call


def blas(name: str, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> Callable[[], Any] | None:
    """What NumPy has for the kernel: the product alone, which is nearly all that GEMM does."""
    if name != "gemm":
        return None
    a, b, out = arrays["A"], arrays["B"], np.empty_like(arrays["C"])
    return lambda: np.matmul(a, b, out=out)


def paired(base_us: Sequence[float], other_us: Sequence[float]) -> Speedup:
    """Of the rounds that both were in: what is surely slower leaves early."""
    rounds = min(len(base_us), len(other_us))
    return speedup(base_us[:rounds], other_us[:rounds], 0)


def row(
    unit: Unit, best: BestVersion, target: Target, machine: Device, folder: Path
) -> tuple[str, tuple[float, float]]:
    """One line of the table; the speed-ups over the default and over gcc."""
    codelet, analysis = unit.codelet, Analysis(unit.codelet)
    given = problem(codelet, best.values).arrays(codelet, 0)
    arrays = {name: machine.place(a) for name, a in given.items()}
    restore = {p.name: (arrays[p.name], given[p.name]) for p in codelet.params if isinstance(p, Array) and p.io != "in"}
    backend = target.backend()
    programs = {
        "tuned": backend.load(backend.build(plans.exact(analysis, best))),
        "default": backend.load(backend.build(plans.default(analysis))),
    }
    compiled = by_gcc(codelet, analysis, folder)
    args = [arrays[p.name] if isinstance(p, Array) else best.values[p.name] for p in codelet.params]
    samplers = {
        name: machine.sampler(lambda stream, p=program: p.run(arrays, best.values, stream), restore)  # type: ignore[misc]
        for name, program in programs.items()
    }
    # Its threads are Numba's: both have them of the same OpenMP.
    samplers["gcc"] = machine.sampler(lambda stream: compiled(*args), restore)
    library = blas(codelet.name, arrays, best.values)
    if library is not None:
        samplers["blas"] = machine.sampler(machine.external_kernel(library, ()), {})
    times = finals(samplers, 0, leaving=("gcc", "default"))
    over = [paired(times[name], times["tuned"]) for name in ("default", "gcc")]
    cells = [
        codelet.name, " ".join(f"{n}={v}" for n, v in best.sizes.items()),
        *(str(summary(times[name])) for name in ("tuned", "default", "gcc")),
        *(f"{o.ratio:.2f} [{o.low:.2f}, {o.high:.2f}] {o.verdict}" for o in over),
    ]  # fmt: skip
    if library is not None:
        share = paired(times["blas"], times["tuned"])
        cells += [str(summary(times["blas"])), f"{100 * share.ratio:.0f}%"]
    else:
        cells += ["", ""]
    return f"| {' | '.join(cells)} |", (over[0].ratio, over[1].ratio)


def rows(files: Sequence[Path], db: Path, floats: Floats, target: Target, folder: Path) -> Iterator[str]:
    machine = target.machine()
    place = (machine.facts.name, machine.facts.cores)
    ratios = []
    for file in files:
        unit = load(file)
        with Store.read(db) as store:
            found = best_versions(store, unit, target.name, floats)
        here = [best for best in found if (best.context.device, best.cores) == place]
        if not here:
            yield f"| {unit.codelet.name} | nothing in {db} for {place[0]} |{' |' * 7}"
        for best in here:
            line, over = row(unit, best, target, machine, folder)
            ratios.append(over)
            yield line
    if ratios:
        means = [math.exp(sum(map(math.log, r)) / len(r)) for r in zip(*ratios, strict=True)]
        yield f"| geometric mean | | | | | {means[0]:.2f} | {means[1]:.2f} | | |"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Tuned kernels beside what gcc makes of the same loops.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--db", type=Path, default=DATABASE)
    parser.add_argument("--fp-contract", choices=CONTRACTS, default="fast")
    given = parser.parse_args(arguments)
    floats = Floats(contract=given.fp_contract)
    files = given.files if given.files else sorted(Path(__file__).parent.parent.glob("polybench/*.c"))
    try:
        target = targets.resolve("numba-cpu", CACHE, floats=floats)
        facts = target.machine().facts
        print(f"# Tuned on {facts.name}, {facts.cores} cores, beside gcc\n\n{HEAD}\n|{'---|' * 9}")
        with tempfile.TemporaryDirectory() as folder:
            for line in rows(files, given.db, floats, target, Path(folder)):
                print(line, flush=True)
    except LooptuneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\nCommand: `{' '.join(['python benchmarks/compilers.py', *arguments])}`")
    return 0


if __name__ == "__main__":
    if "OPENBLAS_THREAD_TIMEOUT" not in os.environ:
        # Else its threads keep their cores for a tenth of a second after each product, which others are timed in.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "OPENBLAS_THREAD_TIMEOUT": "10"})
    sys.exit(main(sys.argv[1:]))
