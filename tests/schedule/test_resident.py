"""Elements that threads keep through a loop: the results are those of the loops, and owners store what others read."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.backends.codegen.kernel import check_capability, check_limits, dynamic_shared_bytes, shared_bytes
from looptune.core.errors import DirectiveError, ResourceError
from looptune.frontend import load
from looptune.ir.c_printer import expression_text
from looptune.lower.listing import print_plan
from looptune.lower.machine import MODEL, Machine
from looptune.lower.pipeline import finish, lower
from looptune.lower.plan import Kernel, Plan, count, with_kernels
from looptune.lower.plan_check import prove_plan
from looptune.lower.plan_outline import summarize_plan
from looptune.poly.ownership import has_one_owner
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.tune.cost_model.devices import named
from looptune.tune.cost_model.estimate import estimate
from looptune.tune.space.derive import derive
from tests.helpers import cross_check, cuda_c_on_cpu, kernel_cases
from tests.helpers.kernel_cases import planned
from tests.helpers.persistent_cases import STEPS
from tests.helpers.resident_cases import CASES, LU, PATHS, SMALL, SPLIT

simulator = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
compiler = pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")


@compiler
def test_what_the_loops_give(tmp_path: Path) -> None:
    """In CUDA C, several blocks that take turns, of which those at the edge have less to do."""
    some = {name: CASES[name] for name in ("paths", "lu")}
    assert not kernel_cases.wrong_in_c(some, tmp_path, (True,), 1e-6)


@pytest.mark.wide
@compiler
def test_what_the_loops_give_everywhere(tmp_path: Path) -> None:
    """In all cases, for sizes that are constants and arguments."""
    assert not kernel_cases.wrong_in_c(CASES, tmp_path, (False, True), 1e-5)


@pytest.mark.long
@simulator
def test_what_the_loops_give_in_numba(tmp_path: Path) -> None:
    """In the simulator, where one block has all tiles in turn, and in each iteration loads and stores its elements."""
    assert not kernel_cases.wrong_in_numba(CASES, tmp_path, False, 1e-5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_it_is_proved_and_is_one_launch(name: str) -> None:
    case = CASES[name]
    original, sizes = load(case.text).codelet, case.sizes[0]
    done = planned(case.text, case.lines, sizes)
    for known in (sizes, None):
        proof = prove_plan(original, done if known else planned(case.text, case.lines), known)
        assert proof.verdict == "proved", proof.reason
    before = 1 if name == "a scalar in memory" else 0
    assert count(done.steps, sizes) == 1 + before
    assert [bool(k.steps) for k in done.compiled_kernels] == [False] * before + [True]


def test_what_others_read_is_stored() -> None:
    """Of Floyd and Warshall's algorithm, a row and a column."""
    whole = _kept(planned(PATHS, CASES["paths"].lines)).resident
    assert whole is not None
    stored = [" and ".join(map(expression_text, e.conditions)) for e in whole.exchanged]
    assert stored == ["p1__point == k", "p0__point == k"]


def _kept(plan: Plan) -> Kernel:
    return next(k for k in plan.kernels if k.resident is not None)


@pytest.mark.parametrize("left", [0, 1])
def test_the_proof_notices_what_is_not_stored(left: int) -> None:
    done = planned(PATHS, CASES["paths"].lines)

    def forget(kernel: Kernel) -> Kernel:
        whole = kernel.resident
        assert whole is not None
        return replace(kernel, resident=replace(whole, exchanged=whole.exchanged[left : left + 1]))

    proof = prove_plan(load(PATHS).codelet, replace(done, steps=with_kernels(done.steps, forget)))
    assert (proof.verdict, proof.reason) == (
        "failed", "other threads read elements of A that their owners do not store")  # fmt: skip


def test_each_place_has_one_owner() -> None:
    assert has_one_owner(100, (4, 8, 4), (32, 4, 1))
    assert has_one_owner(100, (4, 8, 4), (8, 1, 32))
    assert not has_one_owner(100, (3, 8, 4), (32, 4, 1)), "the last places have none"
    assert not has_one_owner(100, (4, 8, 5), (32, 4, 1)), "blocks overlap"


@pytest.mark.parametrize(
    ("text", "lines", "why"),
    [
        (PATHS, (), "the value of A[i][k] is from its own iteration of k only in a part of the nest: separate"),
        (PATHS, ("loop j: splitat k, k + 1",), "the value of A[k][j] is from its own iteration of k only in a part"),
        (LU.replace("A[i][k] / (A[k][k] + 40)", "A[i][(int)A[k][k]]"), (), "cannot be analysed"),
        (LU.replace("int i", "unsigned i"), (), "a loop of its nest counts, or has a bound, in another type than int"),
        (LU.replace("A[i][j] -=", "A[j][j] -="), (), "iterations of loop i inside it write the same element of A"),
    ],
)  # fmt: skip
def test_refusals(text: str, lines: tuple[str, ...], why: str) -> None:
    with pytest.raises(DirectiveError) as refused:
        planned(text, (*lines, "loop k: resident"))
    assert why in refused.value.message


def test_it_needs_no_word_of_blocks() -> None:
    """Without ``persistent`` there is one block on each multiprocessor."""
    done = planned(LU, ("loop 1: resident rows 2", SMALL), {"n": 20})
    assert summarize_plan(done, {"n": 20}) == (
        "1 block a multiprocessor, k: 20 times",
        "  elements kept, tiles of 8 x 8: 3 x 3 blocks of 8 x 4 threads",
        "1 kernel, 1 launch",
    )


def test_where_blocks_cannot_wait() -> None:
    """The host launches the nests as they are, and a CPU's cores run them."""
    done = planned(LU, ("loop 1: resident rows 2", SMALL), {"n": 20})
    split = finish(done, Machine(blocks=True, grid_barrier=False))
    assert [k.resident for k in split.kernels] == [None, None]
    assert not split.device_locals
    made = schedule(Analysis(load(LU).codelet), parse_lines(("loop 1: resident rows 2", SMALL))).codelet
    assert [k.resident for k in lower(made, blocks=False).kernels] == [None, None]


def test_more_shared_memory_than_a_kernel_declares() -> None:
    """Rows in shared memory may take what a launch can ask for: 227 KiB on an H100, 48 KiB on older devices."""
    lines = (*SPLIT, "loop 1: resident rows 8, columns 8, shared {}", "codelet: grid blocksize 32x32")
    ready = {n: finish(planned(PATHS, tuple(x.format(n) for x in lines), {"n": 300}), Machine(blocks=True))
             for n in (1, 4, 8)}  # fmt: skip
    (small,), (large,) = (ready[n].compiled_kernels for n in (1, 4))
    assert dynamic_shared_bytes(small) == 0
    assert dynamic_shared_bytes(large) == shared_bytes(large) > 4 * 8 * 1024 * 4
    check_limits(ready[4])
    check_capability(ready[4], "sm_90")
    with pytest.raises(ResourceError, match="bytes of shared memory per block, the limit is 49152"):
        check_capability(ready[4], "sm_75")
    with pytest.raises(ResourceError, match="bytes of shared memory per block, the limit is 232448"):
        check_limits(ready[8])


def test_the_model_knows_what_fits() -> None:
    """Elements that stay in memory take longer, and those in registers less than separate launches."""
    sizes, chip = {"n": 2800}, named("h200")
    times = [
        estimate(planned(PATHS, (*SPLIT, *lines), sizes), sizes, chip).time_us
        for lines in (
            ("loop 1: resident rows 8, columns 8, shared 4", "codelet: grid blocksize 32x32"),
            ("loop 1: resident rows 2, columns 2", "codelet: grid blocksize 32x8"),
            (),
        )
    ]
    assert times == sorted(times)
    assert all(math.isfinite(t) for t in times)


def test_derived_spaces_propose_it() -> None:
    assert "resident rows 8, columns 8, shared {4, 3} | resident rows 8, columns 4 | " in derive(
        Analysis(load(PATHS).codelet)
    )
    assert "resident rows 8, columns 4, shared {4, 3}, cyclic | " in derive(Analysis(load(LU).codelet))
    assert "resident" not in derive(Analysis(load(STEPS).codelet)), "tiles that overlap fit"


def test_the_listing_shows_what_threads_do() -> None:
    done = planned(LU, ("loop 1: resident rows 2", SMALL), {"n": 9})
    text = print_plan(finish(done, Machine(blocks=True)))
    for part in ("load", "gather", "compute", "exchange", "store"):
        assert f"// {part}\n" in text
    assert "A_0_0__kept" in text
    assert "for (int i = k + 1; i < 9; i++)" in print_plan(finish(done, MODEL)), "the model looks at the loops"
