"""The chart of GATLAS: each case of the product over sizes, tuned, as tab-separated lines.

    python benchmarks/gatlas.py [--case nn ...] [--plain] [--sizes 256,512,...] [--devices all] [--budget N]
                                [--finals S] [--strategy NAME] [--db FILE] [-o FILE]

    what the database lacks, tuned at once ─▶ versions built, side by side ─▶ line after line, alone on one device

For each case (nn nt tn tt: A, B transposed or not) and size N (or MxNxK) ``gatlas/product.c`` is tuned, unless the
database has finals of it, and its best version timed:

    kernel       the arrays are on the device, the caches cold
    arguments    the same directives with the sizes as arguments of the kernel, where the tuned one has them inlined
    library      cuBLAS, or on a CPU NumPy's BLAS
    transfers    from arrays of the host to an array of the host: A, B and C there, the run, C back

The first three run in turn, in rounds. What each of them computes of other random inputs is compared with NumPy's
product in double, in ROWS of its rows.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, Self, TextIO

import numpy as np

from looptune import places
from looptune.api import CACHE
from looptune.backends.base import Backend, Binary, Program
from looptune.defaults import DATABASE
from looptune.deploy.binaries import Sizes, builder
from looptune.deploy.measured import Measured, measured
from looptune.errors import LooptuneError, TargetError, UsageError
from looptune.experiment import run_all, together
from looptune.frontend import Unit, load
from looptune.ir import Codelet
from looptune.places import Place
from looptune.preparation import Request, prepare_all
from looptune.report.progress import Live
from looptune.runtime import peak
from looptune.runtime.machine import Machine, Run, on_gpu
from looptune.runtime.roofline import Peaks
from looptune.runtime.sizes import problem, shapes
from looptune.runtime.timing import Sampler, finals, summary
from looptune.targets import Model
from looptune.tune.job import Target
from looptune.tune.serving import Returned
from looptune.tune.store import Store
from looptune.tune.workers import cores, default_jobs

ROOT = Path(__file__).parent.parent
FILE = ROOT / "gatlas" / "product.c"
BLAS = ROOT / "polybench" / "handwritten" / "gemm.py"
"""It has the libraries' products."""
CASES: Mapping[str, tuple[str, ...]] = {
    "nn": (), "nt": ("TRANS_B",), "tn": ("TRANS_A",), "tt": ("TRANS_A", "TRANS_B"),
}  # fmt: skip
SIZES = "256,512,1024,2048,4096,8192"
BUDGET, FINALS_S = "40", 3.0
"""Of each sweep: what a search finds later is worth little, and every case and size has finals of its own."""
ROWS = 64
ROUNDS_S, PATIENCE_S = 0.3, 1.5
"""Of a line: so long rounds go on, 30 of them at least; slow ones at most so long, and five at least."""
COPIED, COPIED_S = 9, 1.0
"""Runs with transfers: so many, or as many as fit, three at least."""
BUILD_S = 120.0
STOPPED = 130
RESUMES = "stopped; what was measured is kept, the same command goes on from here"
HEAD = ("case", "M", "N", "K", "kernel us", "q1", "q3", "n", "GFLOP/s", "% of FMA peak", "arguments us", "GFLOP/s",
        "library us", "GFLOP/s", "transfers us", "n", "GFLOP/s", "error", "directives")  # fmt: skip
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """``macros`` make the C of it; ``m, n, k``: C has m x n elements, sums have k terms."""

    name: str
    macros: tuple[str, ...]
    m: int
    n: int
    k: int

    def __str__(self) -> str:
        return f"{self.name} at {self.m}x{self.n}x{self.k}"

    @property
    def defines(self) -> dict[str, str | None]:
        return {**dict.fromkeys(self.macros), "NI": str(self.m), "NJ": str(self.n), "NK": str(self.k)}

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k

    @property
    def turned(self) -> tuple[bool, bool]:
        """Whether A and B are given transposed."""
        return "TRANS_A" in self.macros, "TRANS_B" in self.macros


def cases(names: Sequence[str], plain: bool, sizes: str) -> Iterator[Case]:
    for name in names:
        for size in sizes.split(","):
            numbers = [int(x) for x in size.split("x")]
            m, n, k = numbers * 3 if len(numbers) == 1 else numbers
            yield Case(name, (*CASES[name], *(["NO_ALPHA_BETA"] if plain else [])), m, n, k)


# What is tuned.


def tuned(units: Mapping[Case, Unit], model: Model, place: Place, given: Any) -> bool:
    """Sweep what the database has no finals of, all of it at once; False where that was interrupted."""
    known = bests(units, model, given.db)
    missing = [case for case in units if case not in known]
    if not missing:
        return True
    say(f"tuning {len(missing)} of {len(units)} cases and sizes on {model.facts.name}")
    ready = [prepare_all(request(case, given), place) for case in missing]
    live = Live(sys.stderr, [prepared.context for (prepared,) in ready])
    for group in together(ready, place):
        every = [one for prepared in group for one in prepared]
        with Store.open(given.db) as store:
            for warning in store.warnings:
                warn(warning)
            if any(result.interrupted for result in run_all(every, store, live, place)):
                return False
    return True


def request(case: Case, given: Any) -> Request:
    return Request(
        FILE, defines=case.defines, dtype=given.dtype, target=given.target, sweep=True, strategy=given.strategy,
        budget=given.budget, jobs=given.jobs, finals_s=given.finals, seed=given.seed, db=given.db,
        devices=given.devices,
    )  # fmt: skip


def bests(units: Mapping[Case, Unit], model: Model, db: Path) -> dict[Case, Measured]:
    """What finals have been won on this device: those of a sweep that was broken off are still to come."""
    if not db.exists():
        return {}
    with Store.read(db) as store:
        every = {case: measured(store, unit, model.target.name) for case, unit in units.items()}
    own = {case: [b for b in of if b.final and b.context.device == model.facts.name] for case, of in every.items()}
    sizes = {case: {"ni": case.m, "nj": case.n, "nk": case.k} for case in units}
    return {case: best for case, of in own.items() for best in of if {**best.sizes} == sizes[case]}


# What is built.


@dataclass(frozen=True, slots=True)
class Versions:
    """``general``: with the sizes as arguments, None where the directives are for these sizes only."""

    exact: Binary
    general: Binary | None


def built(
    of: Mapping[Case, tuple[Codelet, Measured]], target: Target, place: Place, jobs: int | None
) -> dict[Case, Versions]:
    """Side by side, before anything is timed; a target that inlines no sizes has one version."""
    kinds: tuple[Sizes, ...] = ("exact", "elsewhere") if target.bakes else ("exact",)
    tasks = [*product(range(len(of)), kinds)]
    at_once = jobs if jobs is not None else default_jobs() if target.bakes else cores()
    replies = place.each(partial(builder, tuple(of.values()), target), BUILD_S, tasks, at_once) if of else []
    found: dict[tuple[int, Sizes], Binary | None] = {}
    for task, reply in zip(tasks, replies, strict=True):
        if not isinstance(reply, Returned):
            raise TargetError(f"{[*of][task[0]]} is not built: {reply.message}")
        found[task] = None if reply.value is None else reply.value.opened()
    made: dict[Case, Versions] = {}
    for number, case in enumerate(of):
        exact = found[number, "exact"]
        assert exact is not None, "what was measured can be built"
        made[case] = Versions(exact, found[number, "elsewhere"] if target.bakes else exact)
    return made


# What is timed.


@dataclass(slots=True)
class Inputs:
    """Random arrays, drawn once for all cases of the same shapes: to draw the largest takes as long as a line."""

    seed: int
    held: dict[tuple[Any, ...], dict[str, Array]] = field(default_factory=dict)

    def of(self, codelet: Codelet, values: Mapping[str, int | float]) -> dict[str, Array]:
        at = problem(codelet, values)
        key = (*sorted(shapes(codelet, at).items()), *(p.dtype for p in codelet.params))
        if key not in self.held:
            self.held[key] = at.arrays(codelet, self.seed)
        return self.held[key]


@dataclass(frozen=True, slots=True)
class Right:
    """NumPy's product in double, of some rows. ``scale``: a term's size times the root of their number."""

    case: Case
    rows: Array
    want: Array
    scale: float

    @classmethod
    def of(cls, case: Case, given: Mapping[str, Array], values: Mapping[str, int | float]) -> Self:
        rows = np.random.default_rng(2).permutation(case.m)[:ROWS]
        turn_a, turn_b = case.turned
        a = (given["A"].T if turn_a else given["A"])[rows].astype(np.float64)
        b = given["B"].T if turn_b else given["B"]
        want = values.get("alpha", 1) * (a @ b.astype(np.float64))
        if "NO_ALPHA_BETA" not in case.macros:
            want += values["beta"] * given["C"][rows]
        largest = float(np.abs(a).max()) * max(float(b.max()), -float(b.min()))
        return cls(case, rows, want, largest * abs(values.get("alpha", 1)) * case.k**0.5)

    def error(self, got: Array) -> float:
        """The largest difference over ``scale``; LooptuneError where it is more than rounding makes of it."""
        error = float(np.abs(got[self.rows] - self.want).max() / self.scale)
        # As many roundings as terms, each of a partial sum of at most k terms' size.
        if not error <= 4 * self.case.k**0.5 * np.finfo(got.dtype).eps:
            raise LooptuneError(f"{self.case} is wrong: {error:.1e} off")
        return error


@dataclass(frozen=True, slots=True)
class Bench:
    """One device that does nothing else."""

    target: Target
    machine: Machine
    backend: Backend
    peaks: Peaks | None
    inputs: Inputs

    @classmethod
    def on(cls, target: Target, seed: int) -> Self:
        machine, backend = target.machine(), target.backend()
        peaks = peak.of(machine, backend, CACHE) if target.name in peak.KNOWN else None
        return cls(target, machine, backend, peaks, Inputs(seed))

    def line(self, case: Case, best: Measured, codelet: Codelet, versions: Versions) -> tuple[str, ...]:
        """LooptuneError where one of our kernels computes something else."""
        host = self.inputs.of(codelet, best.values)
        right = Right.of(case, host, best.values)
        exact = self.backend.load(versions.exact)
        error, copied = self._with_transfers(exact, host, best, right)
        samplers, wrong = self._samplers(case, exact, versions, host, best, right)
        times = finals(samplers, 0, seconds=ROUNDS_S / 3, limit_s=ROUNDS_S, patience_s=PATIENCE_S)
        s = summary(times["kernel"])
        others = {name: median(us) for name, us in times.items()}
        if versions.general is versions.exact:
            others["arguments"] = s.median_us
        dtype = host["C"].dtype.name
        most = None if self.peaks is None else self.peaks.fma(dtype)
        share = "-" if most is None else f"{case.flops / s.median_us / 1e3 / most.best:.1%}".removesuffix("%")
        kernel_us, kernel_rate = _rate(case, s.median_us)
        moved_us, moved_rate = _rate(case, median(copied))
        directives = "; ".join(best.directives.splitlines())
        return (
            case.name, str(case.m), str(case.n), str(case.k),
            kernel_us, f"{s.q1_us:.1f}", f"{s.q3_us:.1f}", str(s.n), kernel_rate, share,
            *_rate(case, others.get("arguments")), *_rate(case, others.get("library")),
            moved_us, str(len(copied)), moved_rate, f"{max(error, wrong):.1e}", directives,
        )  # fmt: skip

    def _with_transfers(
        self, program: Program, host: Mapping[str, Array], best: Measured, right: Right
    ) -> tuple[float, list[float]]:
        """The error of a first run, and microseconds of others, from arrays of the host to an array of the host."""
        whole = moved(program, self.machine, best.values)
        error = right.error(whole(host))
        times: list[float] = []
        while len(times) < COPIED and (len(times) < 3 or sum(times) < 1e6 * COPIED_S):
            times.append(_wall_us(lambda: whole(host)))
        return error, times

    def _samplers(
        self, case: Case, exact: Program, versions: Versions, host: Mapping[str, Array], best: Measured, right: Right
    ) -> tuple[dict[str, Sampler], float]:
        """Of the kernel, and of the others that there are, on the same arrays; the largest error of these others."""
        arrays = {name: self.machine.place(a) for name, a in host.items()}
        original = self.machine.place(host["C"])
        restore = {"C": (arrays["C"], original)}
        runs = {"kernel": _running(exact, arrays, best.values)}
        if versions.general is not None and versions.general is not versions.exact:
            runs["arguments"] = _running(self.backend.load(versions.general), arrays, best.values)
        call = library(case, self.target.name, host["C"].dtype.name, best.values)
        if call is not None:
            runs["library"] = self.machine.foreign(call, tuple(arrays[name] for name in "CAB"))
        errors = [0.0]
        for name, run in [*runs.items()][1:]:
            self.machine.copy(original, arrays["C"])
            self.machine.once(run)
            try:
                errors.append(right.error(self.machine.fetch(arrays["C"])))
            except LooptuneError as error:
                if name != "library":
                    raise
                warn(f"the library's {error.message}")
                del runs[name]
        return {name: self.machine.sampler(run, restore) for name, run in runs.items()}, max(errors)


def _running(program: Program, arrays: Mapping[str, Any], values: Mapping[str, int | float]) -> Run:
    return lambda stream: program.run(arrays, values, stream)


def _rate(case: Case, us: float | None) -> tuple[str, str]:
    return ("-", "-") if us is None else (f"{us:.1f}", f"{case.flops / us / 1e3:.1f}")


def moved(
    program: Program, machine: Machine, values: Mapping[str, int | float]
) -> Callable[[Mapping[str, Array]], Array]:
    """A function of the host's arrays that gives C in the host's memory."""

    def whole(host: Mapping[str, Array]) -> Array:
        arrays = {name: machine.place(a) for name, a in host.items()}
        program.run(arrays, values, machine.stream)
        return machine.fetch(arrays["C"])

    return whole


def _wall_us(action: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    action()
    return (time.perf_counter_ns() - start) / 1e3


def library(case: Case, target: str, dtype: str, values: Mapping[str, int | float]) -> Callable[..., None] | None:
    """The product of C, A, B by cuBLAS in full precision or by NumPy; None where the device has no library here."""
    make = _by_hand().library_cuda if on_gpu(target) else _by_hand().library_cpu
    multiply = make(dtype, case.turned)
    return None if multiply is None else partial(multiply, case.m, case.n, case.k, *_factors(values))


def _factors(values: Mapping[str, int | float]) -> tuple[int | float, int | float]:
    """Alpha and beta."""
    return values.get("alpha", 1.0), values.get("beta", 0.0)


@cache
def _by_hand() -> Any:
    spec = importlib.util.spec_from_file_location("gatlas_blas", BLAS)
    assert spec is not None, f"{BLAS} can be imported"
    assert spec.loader is not None, f"{BLAS} has a loader"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# What is written.


def chart(given: Any) -> int:
    """0; 1 where a case could not be tuned or is wrong."""
    every = [*cases(given.case if given.case else list(CASES), given.plain, given.sizes)]
    units = {case: load(FILE, defines=case.defines, dtype=given.dtype) for case in every}
    with places.at(None, given.devices, warn) as place:
        models = place.models(given.target, CACHE, fastmath=True, warm=False)
        if len(models) > 1:
            raise UsageError(f"a chart is of one model of device: choose one of {', '.join(given.devices.split(','))}")
        (model,) = models
        if not tuned(units, model, place, given):
            say(RESUMES)
            return STOPPED
        found = bests(units, model, given.db)
        of = {case: (units[case].codelet, best) for case, best in found.items()}
        made = built(of, model.target, place, given.jobs)
    # The processes that measured are gone, and with them what they held on the devices.
    failed = [f"nothing was timed of {case}" for case in every if case not in found]
    bench = Bench.on(model.target, given.seed + 1)
    with ExitStack() as stack:
        out = [sys.stdout, *([] if given.output is None else [stack.enter_context(given.output.open("w"))])]
        write(HEAD, out)
        for case, (codelet, best) in of.items():
            try:
                write(bench.line(case, best, codelet, made[case]), out)
            except (LooptuneError, RuntimeError) as error:  # a RuntimeError is the library's
                failed.append(str(error))
    for message in failed:
        say(f"error: {message}")
    return 1 if failed else 0


def write(cells: Sequence[str], out: Sequence[TextIO]) -> None:
    for stream in out:
        print("\t".join(cells), file=stream, flush=True)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    say(f"warning: {text}")


def main(arguments: Sequence[str]) -> int:
    options = argparse.ArgumentParser(description="GATLAS's chart: products over sizes, as tab-separated lines")
    options.add_argument("--case", action="append", choices=list(CASES))
    options.add_argument("--plain", action="store_true", help="without alpha and beta")
    options.add_argument("--sizes", default=SIZES, help="N or MxNxK, separated by commas")
    options.add_argument("--strategy", default="gatlas-nested", help="of the sweeps: looptune run --strategy")
    options.add_argument("--budget", default=BUDGET, help="versions of a sweep; with a time they run one by one")
    options.add_argument("--finals", type=float, default=FINALS_S, metavar="S", help="seconds of each sweep's finals")
    options.add_argument("--jobs", type=int, metavar="N", help="compiling processes; default: all cores but one")
    options.add_argument("--seed", type=int, default=0, metavar="N", help="of searches and inputs")
    options.add_argument("--devices", metavar="LIST", help="GPUs that sweep: looptune run --devices")
    options.add_argument("--db", type=Path, default=DATABASE)
    options.add_argument("--target", default="auto", choices=["auto", "numba-cuda", "numba-cpu"])
    options.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    options.add_argument("-o", "--output", type=Path, metavar="FILE", help="the lines as a file too, as they come")
    given = options.parse_args(arguments)
    try:
        if given.output is not None:
            given.output.touch()
        return chart(given)
    except (LooptuneError, OSError) as error:
        say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        say(RESUMES)
        return STOPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
