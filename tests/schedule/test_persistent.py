"""Loops whose launches are one: blocks that wait for each other give what the loops give, whatever is in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.backends.codegen.kernel import shared_bytes
from looptune.backends.codegen.register_limits import launch_bounds
from looptune.core.errors import DirectiveError
from looptune.frontend import load
from looptune.lower.checkpoints import checkpoints
from looptune.lower.machine import MODEL, Machine
from looptune.lower.passes.host_launches import split_persistent_launches
from looptune.lower.pipeline import finish, lower
from looptune.lower.plan import count, has_host_loop, launches
from looptune.lower.plan_check import prove_plan
from looptune.lower.plan_outline import summarize_plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check, cuda_c_on_cpu, kernel_cases
from tests.helpers.kernel_cases import planned
from tests.helpers.persistent_cases import CASES, COLUMNS, CONDITIONS, SMALL, STEPS

simulator = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
compiler = pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")


@pytest.mark.wide
@compiler
def test_what_the_loops_give(tmp_path: Path) -> None:
    """In CUDA C, three blocks or more taking turns, for sizes that are constants and arguments."""
    assert not kernel_cases.wrong_in_c(CASES, tmp_path, (False, True), 1e-5)


@pytest.mark.long
@simulator
def test_what_the_loops_give_in_numba(tmp_path: Path) -> None:
    """In the simulator, where one block does it all."""
    assert not kernel_cases.wrong_in_numba(CASES, tmp_path, False, 1e-5)


@pytest.mark.sampled(20, "wide")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_it_is_proved_and_is_one_launch(name: str) -> None:
    case = CASES[name]
    original, sizes = load(case.text).codelet, case.sizes[0]
    done = planned(case.text, case.lines, sizes)
    proof = prove_plan(original, done, sizes)
    assert proof.verdict == "proved", proof.reason
    whole, *others = [k for k in done.compiled_kernels if k.steps]
    assert len(others) == (name == "steps written out"), "what is left of the steps is another loop"
    assert count(done.steps, sizes) == len(list(launches(done.steps, sizes)))
    assert whole.name in {k.name for k, _ in launches(done.steps, sizes)}
    assert len(split_persistent_launches(done, MODEL).compiled_kernels) == len(done.kernels)
    if cross_check.CUDA:
        from looptune.backends.numba_cuda.backend import NumbaCuda

        used = {r.kernel: r for r in NumbaCuda().build(done).resources}
        assert used.keys() == {k.name for k in done.compiled_kernels}
        ready = finish(done, Machine(blocks=True))
        (whole, *_) = (k for k in ready.compiled_kernels if k.steps)
        assert used[whole.name].shared_bytes == shared_bytes(whole)
        assert used[whole.name].threads == max(k.block[0] * k.block[1] for k in done.kernels)


def test_launches_are_counted_and_shown() -> None:
    """One, whatever the steps; there is nothing between two to stop at, and no pace to compare."""
    sizes = {"steps": 7, "n": 30, "m": 21}
    done = planned(STEPS, ("loop 1: persistent 2", SMALL))
    assert [count(done.steps, {**sizes, "steps": t}) for t in (0, 1, 500)] == [1, 1, 1]
    assert not has_host_loop(done)
    assert checkpoints(done, sizes) is None
    assert summarize_plan(done, sizes) == (
        "2 blocks a multiprocessor, t: 7 times",
        "  grid i, j: 3 x 7 blocks of 8 x 4 threads",
        "  grid i, j: 3 x 7 blocks of 8 x 4 threads",
        "2 kernels, 1 launch",
    )
    assert summarize_plan(split_persistent_launches(done, Machine(blocks=True)), sizes)[0] == "host t: 7 times"
    assert count(split_persistent_launches(done, Machine(blocks=True)).steps, sizes) == 14
    inner = planned(CONDITIONS, ("loop t: persistent", SMALL))
    assert count(inner.steps, sizes) == 4, "a launch for t and one for the nest beside it, twice"
    assert has_host_loop(inner)


@pytest.mark.parametrize(
    ("text", "lines", "why"),
    [
        (
            STEPS,
            ("loop 2: persistent",),
            "its iterations are independent, and it needs a sequential loop",
        ),
        (COLUMNS, ("loop 5: persistent",), "a loop around it is parallel"),
        (COLUMNS, ("loop 2: persistent",), "it contains no parallel loop"),
        (
            STEPS.replace("  for (int t", "  if (A[0][0] > 0) for (int t"),
            ("loop t: persistent",),
            "its bounds or a condition around it depend on array elements, which the host does not read",
        ),
        (
            COLUMNS,
            ("loop 1: persistent", "loop 2: parallel", "loop 2: grid blocksize 32x4", "loop 4: grid blocksize 16x16"),
            "its nests have blocks of 128 and 256 threads: give all nests the same block size",
        ),
    ],
)
def test_refusals(text: str, lines: tuple[str, ...], why: str) -> None:
    with pytest.raises(DirectiveError, match=f"persistent of loop .: {why}"):
        planned(text, lines)
    kept = schedule(Analysis(load(text).codelet), parse_lines(lines), keep_going=True)
    assert [s.proof for s in kept.steps if s.directive.name == "persistent"] == ["refused"]
    assert not any(k.steps for k in lower(kept.codelet, blocks=True).compiled_kernels)


def test_blocks_of_several_sizes_where_nobody_waits() -> None:
    """The threads that a smaller block lacks have nothing to do."""
    lines = ("loop 1: persistent", "loop 2: grid blocksize 8x2", "loop 4: grid blocksize 8x8")
    done = planned(STEPS, lines)
    assert [k.block for k in done.kernels] == [(8, 2), (8, 8)]
    assert done.compiled_kernels[0].block == (64, 1)


def test_launchbounds_do_not_say_how_many_blocks_there_are() -> None:
    done = planned(STEPS, ("loop 1: persistent 2", "codelet: launchbounds 4", SMALL))
    assert [launch_bounds(k) for k in done.compiled_kernels] == [(32, 2)]


def test_loops_of_one_name_are_told_apart() -> None:
    """Two loops called t, of which one cannot be persistent: because of its blocks, or for it has no threads."""
    nest = "for (int i = 0; i < n; i++) A[i] = A[i] + t;"
    alone = "for (int i = 1; i < n; i++) A[i] = A[i] + A[i - 1];"
    twice = "void f(int s, int u, int n, float A[n], float x[1]) {\n%s\n}"
    first, last = f"for (int t = 0; t < s; t++) {{ {alone} }}", f"for (int t = 0; t < u; t++) {{ {nest} }}"
    for body, number in ((first + last, 1), (last + first, 3)):
        with pytest.raises(DirectiveError, match="persistent of loop t: it contains no parallel loop"):
            planned(twice % body, (f"loop {number}: persistent", f"loop {4 - number}: persistent"))
    total = "for (int i = 0; i < n; i++) x[0] += A[i];"
    mixed = f"for (int t = 0; t < s; t++) {{ {total} {nest} }}"
    for body, number in ((mixed + last, 1), (last + mixed, 3)):
        lines = ("loop 1: persistent", f"loop {4 if number == 1 else 3}: persistent", f"loop {number + 1}: parallel",
                 f"loop {number + 1}: grid blocksize 32x2", f"loop {number + 2}: grid blocksize 32x8")  # fmt: skip
        with pytest.raises(DirectiveError, match="its nests have blocks of 64 and 256 threads"):
            planned(twice % body, lines)
