"""The tier that needs a GPU: what the simulator cannot show. Skipped elsewhere, with the reason.

python -m pytest tests/backends/test_gpu.py
"""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import looptune
from looptune.backends.base import Progress, TimeLimit
from looptune.cli.main import cli
from looptune.frontend import load
from looptune.lower.pipeline import lower
from looptune.runtime import device_compare, peak_rates, targets
from looptune.runtime.device_compare import Comparison
from looptune.runtime.outcome import CutOff, Timed
from looptune.runtime.tolerance import RoundingEstimate
from looptune.runtime.verification import ReferenceComparison
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.tune.incumbent import Incumbent
from looptune.tune.measure.build_steps import plans_of
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.measure.measuring_device import MeasuringDevice
from looptune.tune.session import prepare
from looptune.tune.space.space import Configuration
from tests import programs
from tests.helpers import cross_check
from tests.helpers.codelets import STEPS
from tests.helpers.kernel_cases import Case as Launched
from tests.helpers.overlap_cases import CASES as OVERLAPPING
from tests.helpers.paths import POLYBENCH
from tests.helpers.persistent_cases import CASES as PERSISTENT
from tests.helpers.reduction_cases import CASES
from tests.helpers.screening_run import measured
from tests.helpers.stage_cases import CASES as STAGED
from tests.helpers.stage_cases import Case as Staged
from tests.helpers.swizzle_cases import CASES as SWIZZLE
from tests.helpers.team_cases import CASES as FOR_TEAMS
from tests.helpers.team_reduction_cases import Case
from tests.programs.program import Program

MISSING = targets.gpu_missing()
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(MISSING), reason=f"no GPU: {MISSING}")]
GEMM = POLYBENCH / "gemm.c"
REASSOCIATED = 1e-4
"""NVVM contracts a * b + c, and libdevice's functions differ from the host's in the last bits of a float."""


compilers = pytest.mark.parametrize("target", ["numba-cuda", "cuda-c"])


@compilers
@pytest.mark.parametrize("program", programs.ALL, ids=lambda p: p.name.replace(" ", "-"))
def test_a_kernel_computes_what_c_means(program: Program, target: str) -> None:
    """NumPy arrays in, the interpreter's results in the same arrays."""
    kernel = looptune.compile(program.text, target=target)
    given = cross_check.arguments(kernel.codelet, program.sizes)
    got = cross_check.copied(given)
    kernel(*got.values())
    tolerance = max(program.tolerance, REASSOCIATED)
    off = cross_check.off(cross_check.interpreted(kernel.codelet, given), cross_check.arrays(got), tolerance)
    assert off is None, f"{off}\n{kernel.source}"


EVERY: dict[str, Case | Staged | Launched] = {
    **CASES, **STAGED, **{f"overlap: {name}": case for name, case in OVERLAPPING.items()},
    **{f"for a team: {name}": case for name, case in FOR_TEAMS.items()},
    **{f"persistent: {name}": case for name, case in PERSISTENT.items()},
    **{f"swizzle: {name}": case for name, case in SWIZZLE.items()},
}  # fmt: skip


@compilers
@pytest.mark.parametrize("case", EVERY.values(), ids=EVERY.keys())
def test_teams_and_tiles_compute_what_the_loops_do(case: Case | Staged | Launched, target: str) -> None:
    """Reductions shared out to a block's threads, tiles in shared memory; for blocks of every shape, filled or not."""
    kernel = looptune.compile(case.text, target=target, directives=case.lines)
    for seed, sizes in enumerate(case.sizes):
        given = cross_check.arguments(kernel.codelet, sizes, seed)
        got = cross_check.copied(given)
        kernel(*got.values())
        off = cross_check.off(cross_check.interpreted(kernel.codelet, given), cross_check.arrays(got), REASSOCIATED)
        assert off is None, f"{sizes}: {off}\n{kernel.source}"


@compilers
def test_device_arrays_are_updated_where_they_are(target: str) -> None:
    """Arrays with the CUDA Array Interface are used in place, and NumPy arrays beside them are refused or copied."""
    cupy = pytest.importorskip("cupy")
    n = 45
    kernel = looptune.compile(GEMM, target=target, dtype="float64", directives=["loop i: unroll 4, jam"])
    rng = np.random.default_rng(0)
    a, b, c = (rng.random((n, n)) for _ in range(3))
    held = cupy.asarray(c)
    kernel(n, n, n, 1.5, 0.5, held, cupy.asarray(a), cupy.asarray(b))
    np.testing.assert_allclose(cupy.asnumpy(held), 1.5 * a @ b + 0.5 * c, rtol=1e-12)


@compilers
def test_a_sweep_verifies_and_reports(tmp_path: Path, target: str) -> None:
    """A few versions of GEMM at sizes no factor divides: all verified, none wrong or crashed, the record complete."""
    sizes = ["-D", "NI=61", "-D", "NJ=53", "-D", "NK=47"]
    where = ["--db", str(tmp_path / "db"), "--reports", str(tmp_path / "reports")]
    call = ["run", str(GEMM), "--sweep", "--strategy", "random", "--budget", "20", "--target", target, "--json"]
    outcome = CliRunner().invoke(cli, [*call, *sizes, *where], catch_exceptions=False, standalone_mode=False)
    record = json.loads(outcome.stdout)
    assert record["target"] == target
    assert record["versions"]["timed"] == 20
    assert 0 < record["tuned_q1_us"] <= record["tuned_us"] <= record["tuned_q3_us"]


@compilers
def test_a_gpu_stops_between_two_launches(tmp_path: Path, target: str) -> None:
    """The device's own time decides: with a limit of nothing a launch or two are made, without one all, and right."""
    resolved = targets.resolve(target, tmp_path)
    backend, machine = resolved.backend(), resolved.machine()
    planned = lower(schedule(Analysis(load(STEPS).codelet)).codelet)
    program = backend.load(backend.build(planned))
    given = {name: np.ones(40_000_000, np.float32) for name in "xy"}
    placed = {name: machine.place(a) for name, a in given.items()}
    sizes = {"t": 200, "n": 40_000_000}
    ran = program.run_within(TimeLimit(500.0), placed, sizes, machine.stream)
    assert 0 < ran.launched < ran.launches == 400
    assert ran.us > 500.0
    stepwise, graph = ({name: machine.place(a) for name, a in given.items()} for _ in "ab")
    assert program.run_within(TimeLimit(60e6), stepwise, sizes, machine.stream).launched == 400
    machine.sampler(lambda stream: program.run(graph, sizes, stream), {})()
    np.testing.assert_array_equal(machine.fetch(stepwise["x"]), machine.fetch(graph["x"]))


def test_a_gpu_screens_at_reduced_sizes(tmp_path: Path) -> None:
    """A version is right and timed at both sizes, with its pace; hopeless at the reduced ones, it is run there only."""
    (tmp_path / "steps.c").write_text(STEPS)
    request = prepare.TuningRequest(tmp_path / "steps.c", defines={"t": "2000", "n": "4096"}, target="numba-cuda")
    prepared = prepare.prepare(request)
    job = replace(prepared.job, cache=tmp_path / "cache", screens=True)
    lab, bench = KernelBuilder(job, prepared.context), MeasuringDevice(job)
    plans = plans_of(job, lab.scheduled(Configuration(())).codelet, "")
    outcome = measured(bench, plans, None)
    assert isinstance(outcome, Timed), outcome
    best = Incumbent.of(outcome)
    assert best.reduced_sizes == "t=251 n=257"
    assert best.reduced_us is not None
    assert best.pace is not None
    assert 0 < best.pace.us[0] <= best.pace.us[-1] <= best.us + 0.1
    assert sorted(best.pace.us) == [*best.pace.us]
    # However busy the GPU is, no run takes a thousand times as long as another one.
    slow = Progress(best.pace.loop, tuple(1e3 * us for us in best.pace.us))
    slower = replace(best, us=1e3 * best.us, reduced_us=1e3 * best.reduced_us, pace=slow)
    again = measured(bench, plans, slower)
    assert isinstance(again, Timed), again
    cut_off = measured(bench, plans, replace(best, us=1e6, reduced_us=1e-3))
    assert isinstance(cut_off, CutOff), cut_off
    assert (cut_off.launched, cut_off.where) == (0, "at t=251 n=257")


def test_results_are_compared_on_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One element off among a million is found, wherever it is, and nothing is where there is none."""
    target = targets.resolve("numba-cuda", tmp_path)
    machine = target.machine()
    want = {"a": np.linspace(1, 2, 1_000_003, dtype=np.float32).reshape(1, -1)}
    comparison = Comparison(machine, target.backend(), ReferenceComparison(want, 10, lambda: RoundingEstimate({}, {})))
    assert comparison.wrong({"a": machine.place(want["a"])}) is None
    for at in (0, 65_536, 1_000_002):
        got = want["a"].copy()
        got[0, at] = np.nan
        assert f"a[0][{at}]" in str(comparison.wrong({"a": machine.place(got)}))
        monkeypatch.setattr(device_compare, "MOST", 300_000 if at else device_compare.MOST)


def test_the_peaks_of_a_gpu(tmp_path: Path) -> None:
    """No rate exceeds what the clocks of the GPU allow: all operations and bytes that are counted were made.

    How near they come depends on what else the GPU does.
    """
    target = targets.resolve("numba-cuda", tmp_path)
    machine = target.machine()
    found = peak_rates.measure(machine, target.backend())
    khz, memory_khz, bits = (_fact(name) for name in ("CLOCK_RATE", "MEMORY_CLOCK_RATE", "GLOBAL_MEMORY_BUS_WIDTH"))
    # Lanes of a multiprocessor, two operations each; two words a clock, of which a cache may keep a third.
    lanes, bytes_ = 2e-6 * khz * machine.facts.cores, 1.5 * 2e-6 * memory_khz * bits / 8
    limits = {"copy": bytes_, "read": bytes_, "fma32": 128 * lanes, "fma64": 64 * lanes}
    assert limits.keys() == found.rates.keys()
    for name, rate in found.rates.items():
        assert 0 < rate.best < 1.1 * limits[name], name
        assert 0 <= rate.spread < 1


def _fact(name: str) -> int:
    """An attribute of the first GPU."""
    cuda = importlib.import_module("looptune.backends.cuda.driver")
    what = getattr(cuda.driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return int(cuda.check(cuda.driver.cuDeviceGetAttribute(what, 0)))
