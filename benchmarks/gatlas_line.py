"""A line of GATLAS's chart: one case at one size, built, checked and timed on one device that does nothing else.

    kernel       the arrays are on the device, the caches cold
    arguments    the same directives with the sizes as arguments of the kernel, where the tuned one has them inlined
    library      cuBLAS, or on a CPU NumPy's BLAS
    transfers    from arrays of the host to an array of the host: A, B and C there, the run, C back

The first three run in turn, in rounds. What each of them computes of other random inputs is compared with NumPy's
product in double, in ROWS of its rows.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, Self

import numpy as np

from looptune.backends.base import Backend, Binary, Program
from looptune.core.errors import LooptuneError
from looptune.deploy.best_versions import BestVersion
from looptune.ir.nodes import Codelet
from looptune.runtime import peak_rates
from looptune.runtime.device import Device, Run, on_gpu
from looptune.runtime.problem_sizes import problem, shapes
from looptune.runtime.roofline import Peaks
from looptune.runtime.targets import CACHE, Target
from looptune.runtime.timing import Sampler, finals, summary

BLAS = Path(__file__).parent.parent / "polybench" / "handwritten" / "gemm.py"
"""It has the libraries' products."""
ROWS = 64
ROUNDS_S, PATIENCE_S = 0.3, 1.5
"""Of a line: so long rounds go on, 30 of them at least; slow ones at most so long, and five at least."""
COPIED, COPIED_S = 9, 1.0
"""Runs with transfers: so many, or as many as fit, three at least."""
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


@dataclass(frozen=True, slots=True)
class Versions:
    """``general``: with the sizes as arguments, None where the directives are for these sizes only."""

    exact: Binary
    general: Binary | None


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
    machine: Device
    backend: Backend
    peaks: Peaks | None
    inputs: Inputs

    @classmethod
    def on(cls, target: Target, seed: int) -> Self:
        machine, backend = target.machine(), target.backend()
        peaks = peak_rates.peak_rates(machine, backend, CACHE) if target.name in peak_rates.KNOWN else None
        return cls(target, machine, backend, peaks, Inputs(seed))

    def line(self, case: Case, best: BestVersion, codelet: Codelet, versions: Versions) -> tuple[str, ...]:
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
        self, program: Program, host: Mapping[str, Array], best: BestVersion, right: Right
    ) -> tuple[float, list[float]]:
        """The error of a first run, and microseconds of others, from arrays of the host to an array of the host."""
        whole = moved(program, self.machine, best.values)
        error = right.error(whole(host))
        times: list[float] = []
        while len(times) < COPIED and (len(times) < 3 or sum(times) < 1e6 * COPIED_S):
            times.append(_wall_us(lambda: whole(host)))
        return error, times

    def _samplers(
        self, case: Case, exact: Program, versions: Versions, host: Mapping[str, Array], best: BestVersion, right: Right
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
            runs["library"] = self.machine.external_kernel(call, tuple(arrays[name] for name in "CAB"))
        errors = [0.0]
        for name, run in [*runs.items()][1:]:
            self.machine.copy(original, arrays["C"])
            self.machine.time_once(run)
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
    program: Program, machine: Device, values: Mapping[str, int | float]
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


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    say(f"warning: {text}")
