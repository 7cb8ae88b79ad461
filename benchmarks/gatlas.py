"""The chart of GATLAS: each case of the product over sizes, tuned, as tab-separated lines.

    python benchmarks/gatlas.py [--case nn ...] [--plain] [--sizes 256,512,...] [--strategy NAME] [--budget N]
                                [--db FILE] [-o FILE]

For each case (nn nt tn tt: A, B transposed or not) and size N (or MxNxK) `gatlas/product.c` is tuned, unless the
database has it, and its best version timed:

    kernel       the arrays are on the device, the caches cold: the median of runs through a graph
    arguments    the same directives with the sizes as arguments of the kernel, where the tuned one has them inlined
    transfers    from arrays of the host to an array of the host: A, B and C there, the run, C back

Then it is paranoid: the result of other random inputs is compared with NumPy's product in double, in ROWS of its rows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from looptune import targets
from looptune.analysis import Analysis
from looptune.api import CACHE
from looptune.defaults import DATABASE
from looptune.deploy import plans
from looptune.deploy.measured import Measured, measured
from looptune.errors import LooptuneError
from looptune.frontend import Unit, load
from looptune.plans import Plan
from looptune.runtime.machine import Machine
from looptune.runtime.sizes import problem
from looptune.tune.job import Target
from looptune.tune.store import Store

FILE = Path(__file__).parent.parent / "gatlas" / "product.c"
CASES: Mapping[str, tuple[str, ...]] = {
    "nn": (), "nt": ("TRANS_B",), "tn": ("TRANS_A",), "tt": ("TRANS_A", "TRANS_B"),
}  # fmt: skip
SIZES = "256,512,1024,2048,4096,8192"
ROWS = 64
RUNS = 9
HEAD = ("case", "M", "N", "K", "kernel us", "GFLOP/s", "arguments us", "GFLOP/s", "transfers us", "GFLOP/s", "error",
        "directives")  # fmt: skip
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """``macros`` make the C of it; ``m, n, k``: C has m x n elements, sums have k terms."""

    name: str
    macros: tuple[str, ...]
    m: int
    n: int
    k: int

    @property
    def defines(self) -> dict[str, str | None]:
        return {**dict.fromkeys(self.macros), "NI": str(self.m), "NJ": str(self.n), "NK": str(self.k)}

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k


def cases(names: Sequence[str], plain: bool, sizes: str) -> Iterator[Case]:
    for name in names:
        for size in sizes.split(","):
            numbers = [int(x) for x in size.split("x")]
            m, n, k = numbers * 3 if len(numbers) == 1 else numbers
            yield Case(name, (*CASES[name], *(["NO_ALPHA_BETA"] if plain else [])), m, n, k)


def tuned(case: Case, unit: Unit, target: Target, db: Path, strategy: str, budget: str) -> Measured:
    """The best of the database at these sizes, after a sweep where there is none; LooptuneError where that fails."""
    found = _known(case, unit, target, db)
    if found is None:
        macros = [name if value is None else f"{name}={value}" for name, value in case.defines.items()]
        given = [word for macro in macros for word in ("-D", macro)]
        sweep = ["--sweep", "--strategy", strategy, "--budget", budget, "--target", target.name, "--quiet"]
        command = [sys.executable, "-m", "looptune", "run", str(FILE), *given, *sweep, "--db", str(db)]
        subprocess.run([*command, "--reports", str(db.parent / "reports")], stdout=subprocess.DEVNULL, check=False)
        found = _known(case, unit, target, db)
    if found is None:
        raise LooptuneError(f"nothing was timed of {case.name} at {case.m}x{case.n}x{case.k}")
    return found


def _known(case: Case, unit: Unit, target: Target, db: Path) -> Measured | None:
    if not db.exists():
        return None
    facts = target.machine().facts
    with Store.read(db) as store:
        every = measured(store, unit, target.name)
    sizes = {"ni": case.m, "nj": case.n, "nk": case.k}
    return next((b for b in every if b.context.device == facts.name and {**b.sizes} == sizes), None)


def line(case: Case, best: Measured, unit: Unit, target: Target) -> tuple[str, ...]:
    analysis, machine = Analysis(unit.codelet), target.machine()
    inlined = plans.exact(analysis, best)
    general = plans.elsewhere(analysis, best) if target.bakes else inlined
    host = problem(unit.codelet, best.values).arrays(unit.codelet, 0)
    kernel_us = _kernel_us(inlined, target, machine, host, best)
    arguments_us = kernel_us if general is inlined else _kernel_us(general, target, machine, host, best)
    whole = moved(inlined, target, machine, best)
    transfers_us = median(_wall_us(lambda: whole(host)) for _ in range(RUNS))
    other = problem(unit.codelet, best.values).arrays(unit.codelet, 1)
    error = paranoid(case, other, whole(other), best.values)
    timed = [kernel_us, arguments_us, transfers_us]
    cells = [text for us in timed for text in _rate(case, us)]
    shown = "; ".join(best.directives.splitlines())
    return (case.name, str(case.m), str(case.n), str(case.k), *cells, f"{error:.1e}", shown)


def _rate(case: Case, us: float | None) -> tuple[str, str]:
    return ("-", "-") if us is None else (f"{us:.1f}", f"{case.flops / us / 1e3:.1f}")


def _kernel_us(
    made: Plan | None, target: Target, machine: Machine, host: Mapping[str, Array], best: Measured
) -> float | None:
    """None where the directives are for these sizes only."""
    if made is None:
        return None
    backend = target.backend()
    program = backend.load(backend.build(made))
    arrays = {name: machine.place(a) for name, a in host.items()}
    restore = {"C": (arrays["C"], machine.place(host["C"]))}
    sample = machine.sampler(lambda stream: program.run(arrays, best.values, stream), restore)
    return median(sample() for _ in range(RUNS))


def moved(made: Plan, target: Target, machine: Machine, best: Measured) -> Callable[[Mapping[str, Array]], Array]:
    """A function of the host's arrays that gives C in the host's memory."""
    backend = target.backend()
    program = backend.load(backend.build(made))

    def whole(host: Mapping[str, Array]) -> Array:
        arrays = {name: machine.place(a) for name, a in host.items()}
        program.run(arrays, best.values, machine.stream)
        return machine.fetch(arrays["C"])

    return whole


def _wall_us(action: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    action()
    return (time.perf_counter_ns() - start) / 1e3


def paranoid(case: Case, given: Mapping[str, Array], got: Array, values: Mapping[str, int | float]) -> float:
    """The largest difference from NumPy's product in double, over the root of the sum's length and its terms' size;
    LooptuneError where it is more than rounding makes of it."""
    rows = np.random.default_rng(2).permutation(case.m)[:ROWS]
    a = (given["A"].T if "TRANS_A" in case.macros else given["A"])[rows].astype(np.float64)
    b = (given["B"].T if "TRANS_B" in case.macros else given["B"]).astype(np.float64)
    want = values.get("alpha", 1) * (a @ b)
    scale = np.abs(a).max() * np.abs(b).max() * abs(values.get("alpha", 1)) * case.k**0.5
    if "NO_ALPHA_BETA" not in case.macros:
        want += values["beta"] * given["C"][rows]
    error = float(np.abs(got[rows] - want).max() / scale)
    # As many roundings as terms, each of a partial sum of at most k terms' size.
    if not error <= 4 * case.k**0.5 * np.finfo(got.dtype).eps:
        raise LooptuneError(f"{case.name} at {case.m}x{case.n}x{case.k} is wrong: {error:.1e} off")
    return error


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(description="GATLAS's chart: products over sizes, as tab-separated lines")
    options.add_argument("--case", action="append", choices=list(CASES))
    options.add_argument("--plain", action="store_true", help="without alpha and beta")
    options.add_argument("--sizes", default=SIZES, help="N or MxNxK, separated by commas")
    options.add_argument("--strategy", default="gatlas-nested", help="of the sweeps: looptune run --strategy")
    options.add_argument("--budget", default="60", help="versions or time of a sweep")
    options.add_argument("--db", type=Path, default=DATABASE)
    options.add_argument("--target", default="auto", choices=["auto", "numba-cuda", "numba-cpu"])
    options.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    options.add_argument("-o", "--output", type=Path, metavar="FILE", help="the lines as a file too, as they come")
    given = options.parse_args(arguments)
    try:
        target = targets.resolve(given.target, CACHE)
        lines = ["\t".join(HEAD)]
        print(lines[0], flush=True)
        for case in cases(given.case if given.case else list(CASES), given.plain, given.sizes):
            unit = load(FILE, defines=case.defines, dtype=given.dtype)
            best = tuned(case, unit, target, given.db, given.strategy, given.budget)
            lines.append("\t".join(line(case, best, unit, target)))
            print(lines[-1], flush=True)
            if given.output is not None:
                given.output.write_text("\n".join([*lines, ""]))
    except LooptuneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
