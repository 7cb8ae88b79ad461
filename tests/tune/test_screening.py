"""Versions looked at first at reduced sizes: which sizes these are, what is found there, and who is not run further."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from looptune.backends.base import Progress
from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.core.floating_point import STRICT
from looptune.frontend import load
from looptune.ir import interpreter
from looptune.ir.nodes import Codelet
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan import has_host_loop
from looptune.runtime import c_compiler
from looptune.runtime.c_reference import CReference
from looptune.runtime.device import Cpu, DeviceInfo
from looptune.runtime.outcome import CutOff, Timed, WrongResult
from looptune.runtime.problem_sizes import Problem, edge_sizes, problem, screening_sizes
from looptune.runtime.targets import Model, Target
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.tune.cost_model import devices
from looptune.tune.cost_model.estimate import estimate
from looptune.tune.execution.lab import NextStep, PreparedVersion
from looptune.tune.incumbent import Incumbent
from looptune.tune.job import Job
from looptune.tune.measure.build_steps import Built, Plans, first_step, plans_of
from looptune.tune.measure.evaluate import KernelBuilder
from looptune.tune.measure.measuring_device import MeasuringDevice
from looptune.tune.measure.pruning import SCREEN, WAITED_US, WORTH_US, is_endless, is_hopeless, is_promising
from looptune.tune.measure.reference import ReferenceResult, text_of
from looptune.tune.session import experiment, prepare
from looptune.tune.session.budget import Budget
from looptune.tune.session.predicted_time import screening_model
from looptune.tune.session.prepare import PreparedRun, TuningRequest
from looptune.tune.space.space import Configuration, Space, parse
from looptune.tune.store.store import Row, Store
from tests.helpers.fake_lab import CONTEXT, FakeLab, ran, run
from tests.helpers.fake_tasks import timed
from tests.helpers.paths import POLYBENCH, ROOT
from tests.helpers.screening_run import measured

TWO = "\nvoid f(int n, int m, float A[n][m], float B[m][n]) { for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) "
SUM = """
void sums(int n, int m, float A[n][m], float y[n]) {
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i] += A[i][j];
}
"""


def reduced_of(text: str, **sizes: int) -> dict[str, int | float] | None:
    codelet = load(text).codelet
    found = screening_sizes(codelet, problem(codelet, sizes))
    return None if found is None else dict(found.values)


@pytest.mark.parametrize(
    ("text", "sizes", "want"),
    [
        (TWO + "A[i][j] = B[j][i]; }", (2048, 2048), (257, 263)),
        (TWO + "A[i][j] = B[j][i]; }", (4096, 512), (257, 67)),
        (TWO + "A[i][j] = B[j][i]; }", (1024, 5), (127, 13)),
        (TWO + "A[i][j] = B[j][i]; }", (100, 60), None),
        (TWO + "A[i][j] = B[i][j]; }", (512, 512), (67, 67)),
        (TWO + "A[i][j] = B[j][i]; }".replace("[i]; }", "[i - m]; }"), (2048, 512), None),
        (TWO + "if (i > 0) A[i][j] = B[j][i - 1]; }", (512, 512), None),
        (TWO.replace("int j = 0", "int j = i") + "A[i][j - i] = B[j][i]; }", (512, 512), None),
        (TWO.replace("{ for", "{ n = 2 * n; for") + "A[i][j] = 1; }", (512, 512), None),
        (TWO + "B[j][(int)A[i][j]] = 1; }", (512, 512), None),
    ],
)
def test_reduced_sizes(text: str, sizes: tuple[int, int], want: tuple[int, int] | None) -> None:
    """Primes near an eighth, at most 257, different where that is shown to fit; none where nothing is shown to."""
    found = reduced_of(text, n=sizes[0], m=sizes[1])
    assert (None if found is None else (found["n"], found["m"])) == want


def test_the_kernels_have_reduced_sizes() -> None:
    """All fifteen, in the order of their sizes, and none of the primes twice; of belief propagation, which is fast and
    has every second pixel of a row, nothing is shown."""
    for path in (p for p in sorted(POLYBENCH.glob("*.c")) if p.stem != "bp_stereo"):
        unit = load(path, defines={"PAPER_DATASET": None})
        found = screening_sizes(unit.codelet, problem(unit.codelet, unit.values))
        assert found is not None, path.stem
        sizes = {n: v for n, v in found.values.items() if n in unit.values and isinstance(v, int)}
        assert len(set(sizes.values())) == len(sizes)
        order = sorted(sizes, key=lambda n: sizes[n])
        assert [unit.values[n] for n in order] == sorted(unit.values[n] for n in order)


def nest(rng: random.Random) -> str:
    """A nest of two loops with an access to a square array, which may leave it."""
    lo, inner = rng.randint(-1, 2), rng.choice(["0", "1", "i", "i + 1"])
    hi, top = rng.choice(["n", "n - 1", "m"]), rng.choice(["n", "m", "i", "2 * i"])
    index = [rng.choice(["i", "j", "i - 1", "j + 1", "n - 1 - i", "j / 2", "j % n", "0"]) for _ in "ab"]
    return (
        f"\nvoid f(int n, int m, float A[n][n]) {{ for (int i = {lo}; i < {hi}; i++) "
        f"for (int j = {inner}; j < {top}; j++) A[{index[0]}][{index[1]}] += 1; }}"
    )


def stays_inside(codelet: Codelet, sized: Problem) -> bool:
    """As the interpreter sees it."""
    try:
        interpreter.run(codelet, sized.arrays(codelet, 0), sized.values)
    except AssertionError:
        return False
    return True


def test_what_is_shown_to_stay_inside_does() -> None:
    """Of random nests, none for which reduced sizes are found leaves an array at them; many are found, many are not."""
    rng = random.Random(5)
    counts = {True: 0, False: 0}
    for _ in range(60):
        codelet = load(nest(rng)).codelet
        found = screening_sizes(codelet, problem(codelet, {"n": 112, "m": 8}))
        counts[found is not None] += 1
        assert found is None or stays_inside(codelet, found)
    assert min(counts.values()) >= 10


@dataclass(frozen=True)
class Baking:
    """A job as on a GPU, sizes baked in, but on the CPU."""

    job: Job

    def plans(self, text: str = SUM, large: str | None = None) -> Plans:
        """``large``: another program, for the user's sizes."""
        made = [plans_of(self.job, schedule(Analysis(load(t).codelet)).codelet, "") for t in (text, large or text)]
        return Plans(made[1].timed, made[0].codelet)


@pytest.fixture(scope="module")
def baking(tmp_path_factory: pytest.TempPathFactory) -> Baking:
    cache = tmp_path_factory.mktemp("cache")
    unit = load(SUM)
    codelet, text = unit.codelet, text_of(unit, cache)[0]
    size = problem(codelet, {"n": 600, "m": 500})
    target = Target(
        "numba-cpu", partial(NumbaCpu, cache), partial(NumbaCpu, cache, STRICT), Cpu, specializes_sizes=True
    )
    return Baking(Job(codelet, size, screening_sizes(codelet, size), target, cache, screens=True, text=text))


@pytest.fixture(scope="module")
def bench(baking: Baking) -> MeasuringDevice:
    return MeasuringDevice(baking.job)


@pytest.mark.wide
def test_a_hopeless_version_is_not_run_at_the_users_sizes(bench: MeasuringDevice, baking: Baking) -> None:
    """What is measured at the reduced sizes is recorded; a fault at the user's sizes is never reached."""
    version = baking.plans(large=SUM.replace("+=", "-="))
    best = Incumbent(WORTH_US, 1e-3, "n=73 m=61")
    match measured(bench, version, best):
        case CutOff(elapsed_us, best_us, 0, 1, verified, facts, best_at_cutoff_us, where) as cut:
            assert elapsed_us > SCREEN * 1e-3
            assert (best_us, best_at_cutoff_us) == (WORTH_US, 1e-3)
            assert (verified, where) == ("only at n=73 m=61", "at n=73 m=61")
            assert dict(facts)["measure_s"] == 0.0
            assert cut.cost_us == pytest.approx(WORTH_US * elapsed_us / 1e-3)
            assert "cut off at n=73 m=61: " in cut.message
        case other:
            raise AssertionError(f"not cut off: {other}")
    for harmless in (
        None,
        replace(best, reduced_sizes="n=13 m=17"),
        replace(best, reduced_us=None),
        Incumbent(1.0, 1e9),
    ):
        assert isinstance(measured(bench, version, harmless), WrongResult)
    uncut = MeasuringDevice(replace(baking.job, cuts=False))
    assert isinstance(measured(uncut, version, best), WrongResult)


def test_fewer_versions_are_promising_where_finalists_are_verified_again() -> None:
    best = Incumbent(100.0)
    assert [is_promising(us, best) for us in (109.0, 120.0, 126.0)] == [True, True, False]
    assert [is_promising(us, best, again=True) for us in (109.0, 120.0)] == [True, False]
    assert is_promising(1e9, None, again=True)


@pytest.mark.wide
def test_what_is_not_screened_is_checked_at_odd_sizes_where_it_is_promising(baking: Baking) -> None:
    """Timed first; what is slow is right at the user's sizes, and of the rest what fails at the odd ones is wrong."""
    bench = MeasuringDevice(replace(baking.job, screens=False))
    good, bad = baking.plans(), baking.plans(SUM.replace("j < m", "j < m - 1"), large=SUM)
    here = f"against <source> compiled by {c_compiler.version()} at the sizes timed"
    for best, where in (
        (None, f"{here} and at n=73 m=61"),
        (Incumbent(1e9), f"{here} and at n=73 m=61"),
        (Incumbent(1e-3), here),
    ):
        match measured(bench, good, best), measured(bench, bad, best):
            case Timed(verified=verified, facts=facts), other:
                assert verified == where
                assert Incumbent.of(Timed((1.0,), 1.0, 1.0, 1.0, "", facts)).reduced_us is None
                assert isinstance(other, Timed if where == here else WrongResult)
            case other:
                raise AssertionError(f"not timed: {other}")
    whole = MeasuringDevice(replace(baking.job, screens=False, cuts=False))
    assert isinstance(measured(whole, bad, Incumbent(1e-3)), WrongResult)


@pytest.mark.wide
def test_a_version_that_is_predicted_to_be_short_is_not_screened(bench: MeasuringDevice, baking: Baking) -> None:
    """It is timed by its first build, and then verified at prime sizes, with its time there for others."""
    good, bad = baking.plans(), baking.plans(SUM.replace("j < m", "j < m - 1"), large=SUM)
    assert first_step(baking.job, good).at_prime_sizes
    assert first_step(baking.job, good, WAITED_US).at_prime_sizes
    assert not first_step(baking.job, good, WAITED_US / 2).at_prime_sizes
    match measured(bench, good, None, 20.0), measured(bench, bad, None, 20.0):
        case Timed(verified=verified) as found, WrongResult(message):
            assert verified.endswith("at the sizes timed and at n=73 m=61")
            assert Incumbent.of(found).reduced_us is not None
            assert "n=73 m=61" in message
        case other:
            raise AssertionError(f"not timed: {other}")


@pytest.mark.parametrize(("longest_us", "screened"), [(WAITED_US, True), (WAITED_US / 2, False)])
def test_a_version_without_a_long_launch_is_built_once(baking: Baking, longest_us: float, screened: bool) -> None:
    """In a sweep without a budget of time nothing else is predicted of it, so that its turn is that of its request."""
    made = KernelBuilder(baking.job, CONTEXT, None, lambda _: longest_us).prepare(Configuration(()))
    assert isinstance(made, PreparedVersion)
    assert (made.predicted_us, made.ahead) == (None, ())
    assert made.task.load().at_prime_sizes == screened


def test_a_host_loop_is_no_long_launch() -> None:
    """Its launches are many, and a run is stopped between two of them."""
    steps = "\nvoid f(int n, float A[n]) { for (int t = 0; t < 1000; t++) for (int i = 0; i < n; i++) A[i] += t; }"
    codelet, sizes = load(steps).codelet, {"n": 1024}
    plan = lower(specialize(schedule(Analysis(codelet)).codelet, sizes), "", blocks=True)
    found = estimate(plan, sizes, devices.DEFAULT)
    assert (found.launches, has_host_loop(plan)) == (1000, True)
    assert found.time_us > 1000 * found.unstoppable_us > 0
    once = estimate(replace(plan, steps=plan.steps[0].body), {**sizes, "t": 0}, devices.DEFAULT)  # type: ignore[union-attr]
    assert once.unstoppable_us == once.time_us


@pytest.mark.parametrize(
    ("sweep", "more", "budget", "arch", "found"),
    [
        (True, {}, None, "sm_90", True),
        (False, {}, None, "sm_90", False),
        (True, {"screens": False}, None, "sm_90", False),
        (True, {"cuts": False}, None, "sm_90", False),
        (True, {}, 60.0, "sm_90", False),
        (True, {}, None, "gfx90a", False),
    ],
)
def test_what_is_not_screened_is_predicted_where_that_decides_something(
    baking: Baking, sweep: bool, more: dict[str, bool], budget: float | None, arch: str, found: bool
) -> None:
    facts = DeviceInfo("NVIDIA H200", "numba-cuda", arch, 132, 2**36, 2**26, "13010")
    request = TuningRequest(Path("f.c"), sweep=sweep)
    prepared = PreparedRun(
        request, load(SUM), replace(baking.job, **more), Model(baking.job.target, facts, (0,)), CONTEXT, Space(()),
        Budget(seconds=budget), Configuration(()), "f",
    )  # fmt: skip
    model = screening_model(prepared)
    assert (model is not None) == found
    assert model is None or model(baking.plans().timed) > 0


@pytest.mark.wide
def test_a_version_that_cannot_be_compared_at_the_users_sizes_is_screened(
    baking: Baking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it is timed it is verified at prime sizes, however short it is predicted to be."""
    results = ReferenceResult._expected
    monkeypatch.setattr(
        ReferenceResult, "_expected", lambda at, given: ({}, "") if at.at is baking.job.problem else results(at, given)
    )
    bench = MeasuringDevice(baking.job)
    assert not bench.comparison.judge.expected
    step = first_step(baking.job, baking.plans(), 20.0)
    match bench.measure(Built(step, bench.backend.build(step.plan(bench.job.prime_problem))), None):
        case NextStep(task, None):
            assert task.load().at_prime_sizes
        case other:
            raise AssertionError(f"timed: {other}")
    assert isinstance(measured(bench, baking.plans(), None, 20.0), Timed)
    wrong = baking.plans(SUM.replace("j < m", "j < m - 1"), large=SUM)
    assert isinstance(measured(bench, wrong, None, 20.0), WrongResult)


@pytest.mark.wide
def test_what_is_promising_is_run_where_loops_do_not_run(baking: Baking) -> None:
    """By a plan for any sizes: right at the sizes timed and at odd ones, a version is wrong where none is left."""
    at = edge_sizes(baking.job.codelet, baking.job.problem)
    assert any(1 in e.values.values() for e in at)
    right, wrong = baking.plans(), baking.plans(SUM.replace("j < m;", "j < (m < 2 ? 0 : m);"))
    for screens in (False, True):
        bench = MeasuringDevice(replace(baking.job, screens=screens, edge_problems=at))
        assert isinstance(measured(bench, right, None), Timed)
        match measured(bench, wrong, None):
            case WrongResult(message):
                assert "m=1" in message
            case other:
                raise AssertionError(f"not wrong: {other}")
    slow = MeasuringDevice(replace(baking.job, screens=False, edge_problems=at))
    assert isinstance(measured(slow, wrong, Incumbent(1e-3)), Timed)
    assert isinstance(measured(MeasuringDevice(replace(baking.job, screens=False)), wrong, None), Timed)


@pytest.mark.wide
def test_a_timed_version_keeps_its_time_at_reduced_sizes(bench: MeasuringDevice, baking: Baking) -> None:
    """The facts of a row are all that a sweep that goes on needs of the best."""
    outcome = measured(bench, baking.plans(), None)
    assert isinstance(outcome, Timed)
    found = Incumbent.of(outcome)
    assert found.us == outcome.median_us
    assert found.reduced_us is not None
    assert 0 < found.reduced_us < 1e6
    assert found.reduced_sizes == "n=73 m=61"
    assert outcome.verified.endswith(" at the sizes timed and at n=73 m=61")
    kept = Incumbent(
        2.5, 7.125, "n=13", Progress("k in range(0, 4): S0, after nothing", (1.0, 1.0, 1.0, 1.0, 1.5, 2.5))
    )
    assert Incumbent.of(Timed((2.5,), 2.5, 2.5, 2.5, "", kept.facts)) == kept
    assert Incumbent.of(Timed((2.5,), 2.5, 2.5, 2.5, "")) == Incumbent(2.5)


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SUM.replace("+=", "-="), "expected"),
        (SUM.replace("y[i] +=", "y[i + 1] ="), "y: 1 elements written after the array, the nearest 1 outside of it"),
        (SUM.replace("y[i] +=", "y[i + n] ="), "y: 73 elements written after the array, the nearest 1 outside of it"),
        (SUM.replace("y[i] +=", "y[i - n] ="), "y: 73 elements written before the array, the nearest 1 outside of it"),
        (SUM.replace("A[i][j]", "A[i + 1][j]"), "got nan"),
        (SUM.replace("j < m", "j < m - 1"), "at n=73 m=61"),
    ],
)
def test_faults_are_found_at_reduced_sizes(bench: MeasuringDevice, baking: Baking, text: str, message: str) -> None:
    """Wrong values, writes and reads a row outside of an array; and the next version finds the arrays as they were."""
    match measured(bench, baking.plans(text, large=SUM), Incumbent(WORTH_US, 1e-3, "n=73 m=61")):
        case WrongResult(said):
            assert message in said
        case other:
            raise AssertionError(f"not wrong: {other}")
    assert isinstance(measured(bench, baking.plans(), None), Timed)


@pytest.mark.parametrize(
    ("ratio", "best_us", "sizes", "expected"),
    [(16.0, 1000.0, "n=7", True), (14.0, 1000.0, "n=7", False), (16.0, 600.0, "n=7", False),
     (20.0, 600.0, "n=7", True), (1e6, 1000.0, "n=13", False)],
)  # fmt: skip
def test_who_is_hopeless(ratio: float, best_us: float, sizes: str, expected: bool) -> None:
    """Fifteen times the best there, and 10 ms to be expected; times at other sizes say nothing."""
    assert is_hopeless(ratio * 3.0, sizes, Incumbent(best_us, 3.0, "n=7")) == expected


@pytest.mark.parametrize(
    ("reduced_us", "growth", "best_us", "expected"),
    [(1000.0, 8000.0, 12_000.0, True), (1000.0, 900.0, 12_000.0, False), (1000.0, 8000.0, 500_000.0, False)],
)
def test_what_is_endless(reduced_us: float, growth: float, best_us: float, expected: bool) -> None:
    """A second is to be expected, and twenty times the best."""
    assert is_endless(reduced_us, growth, Incumbent(best_us, 3.0, "n=7")) == expected


def cut_row(text: str) -> Row:
    return Row(replace(CONTEXT), text)


@pytest.mark.wide
def test_without_cutting_what_was_cut_off_is_measured_whole(tmp_path: Path) -> None:
    """A stored row that is cut off stands for a sweep that cuts, and for no other, nor for what is compared with."""
    lab = FakeLab(tmp_path / "journal")
    space = parse("loop k: unroll {2..4}", "s")
    with Store.open(tmp_path / "store") as store:
        for text in ("", "loop k: unroll 3"):
            store.record(cut_row(text), CutOff(31.0, 10.0, 5, 40, "only at n=13"))
    cutting = run(lab, tmp_path, space)
    assert (cutting.counts["timed"], cutting.counts["cut_off"]) == (3, 1)
    assert [line.split(" pid")[0] for line in ran(lab, "measure")] == [
        "measure ''", "measure 'loop k: unroll 2'", "measure 'loop k: unroll 4'",
    ]  # fmt: skip
    whole = run(lab, tmp_path, space, cuts=False)
    assert (whole.counts["timed"], whole.counts["cut_off"], whole.resumed) == (4, 0, 3)
    assert len(ran(lab, "measure")) == 4


def test_the_command_line_switches_cutting_off(tmp_path: Path) -> None:
    """A request says so to the job; the CPU, whose programs take any size, is not screened."""
    (tmp_path / "sums.c").write_text(SUM)
    for cut_off in (True, False):
        request = prepare.TuningRequest(tmp_path / "sums.c", defines={"n": "600", "m": "500"}, target="numba-cpu",
                                     early_stop=cut_off)  # fmt: skip
        job = prepare.prepare(request).job
        assert (job.cuts, job.screens) == (cut_off, False)
        assert job.prime_problem is not None
        assert dict(job.prime_problem.values) == {"n": 13, "m": 17}


def test_the_benchmark_of_screening(tmp_path: Path) -> None:
    """A made-up store: one version's order is wrong by a factor of 8, another's by 40, and both are shown."""
    times = {"": (100.0, 10.0), "loop k: unroll 2": (50.0, 4.0), "loop k: unroll 3": (120.0, 32.0),
             "loop k: unroll 4": (1000.0, 160.0), "loop k: unroll 5": (20_000.0, 700.0)}  # fmt: skip
    with Store.open(tmp_path / "db") as store:
        for text, (us, best_at_cutoff_us) in times.items():
            facts = Incumbent(1e3 * us, best_at_cutoff_us, "n=257").facts
            store.record(Row(CONTEXT, text), replace(timed(1e3 * us), facts=facts))
        store.record(Row(CONTEXT, "loop k: unroll 6"), timed(1.0))
    command = [sys.executable, str(ROOT / "benchmarks" / "screening.py"), str(tmp_path / "db")]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    cells = [cell.strip() for cell in said.stdout.splitlines()[2].strip("|").split("|")]
    assert cells == ["gemm float32", "n=257", "5", "1.00", "8.0", "1.0", "8.0", "2", "21000", "0"]


def job_of(text: str, baking: Baking, cache: Path) -> Job:
    unit = load(text)
    size = problem(unit.codelet, {"n": 600, "m": 500})
    made = screening_sizes(unit.codelet, size)
    return replace(
        baking.job, codelet=unit.codelet, problem=size, prime_problem=made, cache=cache, text=text_of(unit, cache)[0]
    )


@pytest.mark.parametrize(
    ("term", "asked"),
    [("A[i][j]", 0), ("(A[i][j] + 65536.0f - 65536.0f)", 3), ("(A[i][j] * 65536.0f - (int)(A[i][j] * 65536.0f))", 1)],
)
def test_rounding_errors_of_long_loops_are_estimated_beside_them(
    baking: Baking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, term: str, asked: int
) -> None:
    """Where terms lose digits, reduced sizes show that versions will differ; the file of each run is then there."""
    job = job_of(SUM.replace("A[i][j]", term), baking, tmp_path)
    threads = experiment.start_estimates(job)
    for thread in threads:
        thread.join()
    assert len(threads) == asked
    here = ReferenceResult(job, job.problem, job.seed)
    here.run_text()
    monkeypatch.setattr(CReference, "run", lambda *_: pytest.fail("it has run before"))
    judge = here.judge(here.inputs())
    if asked == 3:
        assert [len(results) for results in judge.doubt()] == [2, 2, 2, 0]
    if asked and judge.first is not None:
        assert [len(results) for results in judge.first()] == [2, 0, 0, 0]
