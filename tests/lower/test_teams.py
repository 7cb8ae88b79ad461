"""``parallel, team``: the threads of one block share a loop, and what stands beside it is the same launch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from looptune.backends.cuda.cuda_c_writer import CudaCWriter
from looptune.core.errors import IllegalTransform
from looptune.frontend import load
from looptune.ir.c_printer import function
from looptune.ir.nodes import Assign, Const, Load
from looptune.ir.specialize import specialize
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish, lower
from looptune.lower.plan import Launch, Plan
from looptune.lower.plan_check import prove_plan
from looptune.lower.team import Phase, TeamFor, TeamSingle, exchanged_names
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests.helpers import cross_check
from tests.helpers.reduction_cases import agrees_on_cpu, analysis, drawn, given, planned, scheduled
from tests.helpers.team_cases import BLOCK, CASES, COUNTED, made
from tests.helpers.team_reduction_cases import MEAN, Case

simulator = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")

each = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
AFFINE = {name: case for name, case in CASES.items() if case.text != COUNTED}


@each
def test_who_shares_what(case: Case) -> None:
    """What is for one block and stands together is one kernel; a loop of the grid, or another size, is the next."""
    assert drawn(made(case)) == case.runs


@pytest.mark.parametrize("case", AFFINE.values(), ids=AFFINE.keys())
def test_what_is_launched_is_proved(case: Case) -> None:
    """On a GPU for all sizes; and on a CPU, where it is a parallel loop like any other."""
    original, tree = analysis(case.text).codelet, scheduled(case.text, *case.lines).codelet
    for blocks in (True, False):
        proof = prove_plan(original, lower(tree, blocks=blocks), blocks=blocks)
        assert proof.verdict == "proved", proof.reason


def test_a_dependence_is_refused() -> None:
    """Threads of one block are threads: no iteration may need another's."""
    text = "void f(int n, double x[n])\n{ for (int i = 1; i < n; i++) x[i] += x[i - 1]; }\n"
    with pytest.raises(IllegalTransform, match="must run before"):
        scheduled(text, "loop i: parallel, team")


def test_a_loop_shared_by_threads_that_do_not_wait_is_not_proved() -> None:
    """Without the order of phases the proof fails: it looks at what the team does."""
    case = CASES["one after the other"]
    done = made(case)
    (kernel,) = done.kernels
    assert kernel.team is not None
    turned = replace(kernel.team, phases=kernel.team.phases[::-1])
    assert all(isinstance(p, TeamFor) for p in turned.phases)
    (launch,) = done.steps
    assert isinstance(launch, Launch)
    wrong = replace(done, steps=(replace(launch, kernel=replace(kernel, team=turned)),))
    assert prove_plan(analysis(case.text).codelet, wrong).verdict != "proved"


def shuffled(what: str) -> tuple[Phase, ...]:
    """The phases of a mean of each column, one of which sets the mean, one adds up, one divides and stores it."""
    done = planned_mean()
    (kernel,) = done.kernels
    assert kernel.team is not None
    clear, tree, last, rest = kernel.team.phases
    assert isinstance(last, TeamSingle)
    divide, store = last.body
    assert isinstance(store, Assign)
    wrong = Assign(Load("mean", (Const(0),), "float64"), store.value)
    match what:
        case "stored before it is divided":
            return clear, tree, replace(last, body=(store, divide)), rest
        case "stored before it is added up":
            return clear, replace(last, body=(store,)), tree, replace(last, body=(divide,)), rest
        case "never stored":
            return clear, tree, replace(last, body=(divide,)), rest
        case "used before it is set":
            return tree, clear, last, rest
        case "another element":
            return clear, tree, replace(last, body=(divide, wrong)), rest
    return kernel.team.phases


def planned_mean() -> Plan:
    lines = ("loop i: parallel", "loop k: parallel", BLOCK)
    return lower(scheduled(MEAN, *lines).codelet, blocks=True)


@pytest.mark.parametrize(
    ("what", "verdict"),
    [
        ("as it is", "proved"),
        ("stored before it is divided", "failed"),
        ("stored before it is added up", "failed"),
        ("never stored", "failed"),
        ("used before it is set", "failed"),
        ("another element", "failed"),
    ],
)
def test_what_a_team_knows_is_proved_to_be_what_memory_would_hold(what: str, verdict: str) -> None:
    """An element that every lane has in a register: set by the first use of it, stored with its last value."""
    done = planned_mean()
    (launch,), (kernel,) = done.steps, done.kernels
    assert isinstance(launch, Launch)
    assert kernel.team is not None
    changed = replace(launch, kernel=replace(kernel, team=replace(kernel.team, phases=shuffled(what))))
    assert prove_plan(analysis(MEAN).codelet, replace(done, steps=(changed,))).verdict == verdict


@each
def test_source_to_source(case: Case) -> None:
    """What ``transform`` prints is read again as the same loops for teams."""
    done = scheduled(case.text, *case.lines).codelet
    again = schedule(Analysis(load(function(done, pragmas=True)).codelet)).codelet
    assert drawn(lower(again, blocks=True)) == case.runs


@pytest.mark.sampled(6, "wide")
@pytest.mark.sampled(30, "wide")
@each
def test_cpu(case: Case, tmp_path: Path) -> None:
    """On the CPU the arrays are those of the loops in their order."""
    agrees_on_cpu(planned(case.text, *case.lines), case.text, case.sizes, tmp_path)


@pytest.mark.wide
@simulator
def test_cuda(tmp_path: Path) -> None:
    """In the CUDA simulator too, for any sizes and for given ones."""
    from looptune.backends.numba_cuda.backend import NumbaCuda

    programs, wants = [], {}
    for name, case in CASES.items():
        tree = scheduled(case.text, *case.lines).codelet
        for seed, sizes in enumerate(case.sizes):
            start = given(analysis(case.text).codelet, sizes, seed)
            for kind, codelet in (("", tree), (" baked", specialize(tree, sizes))):
                key = f"{name} {sizes}{kind}"
                wants[key] = cross_check.interpreted(analysis(case.text).codelet, start)
                programs.append(cross_check.Emitted(key, NumbaCuda().emit(lower(codelet, blocks=True)), "f", start))
    assert cross_check.misses(programs, wants, tmp_path, 1e-12) == {}


def test_what_lanes_exchange_through_memory() -> None:
    """A compiler may not be told that it changes through one name: it would read it before the barrier."""
    text = """void f(int n, double A[n][n], double x[n], double y[n], double z[n], double w[n]) {
      for (int i = 0; i < n; i++) {
        x[i] = 0;
        for (int j = 0; j < n; j++) x[i] += A[i][j];
        for (int k = 0; k < n; k++) A[i][k] = y[k] * x[i];
      }
      for (int i = 0; i < n; i++) {
        double s = 0;
        for (int j = 0; j < n; j++) s += w[j];
        z[i] = s;
      }
    }"""
    lines = ("loop 2: parallel", "loop 3: parallel, team", "loop 5: parallel")
    plan = lower(scheduled(text, *lines).codelet, blocks=True)
    first, second = (exchanged_names(k.team.phases) for k in plan.kernels if k.team is not None)
    assert "A" in first
    assert not {"x", "y", "z", "w"} & (first | second)
    done = finish(plan, Machine(blocks=True))
    head = CudaCWriter(done).kernel(done.kernels[0]).partition("{")[0]
    for declared in ("double *A", "double *__restrict__ x", "const double *__restrict__ y"):
        assert declared in head
