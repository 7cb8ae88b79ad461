"""``wavefront ..., tile ..., team``: the threads of a block share a tile wave by wave, from a copy if it is staged."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.backends.hip import writer as hip
from looptune.backends.opencl import writer as opencl
from looptune.core.errors import DirectiveError, ResourceError
from looptune.frontend import load
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish
from looptune.lower.plan_check import prove_plan
from tests.helpers import cross_check
from tests.helpers.cuda_c_on_cpu import GXX
from tests.helpers.kernel_cases import planned, wrong_in_c, wrong_in_numba
from tests.helpers.wave_tile_cases import CASES


@pytest.mark.skipif(GXX is None, reason="needs g++")
def test_tiles_compute_what_the_loops_do(tmp_path: Path) -> None:
    """In CUDA C, with sizes that tiles do not divide, as constants and as arguments."""
    assert not wrong_in_c(CASES, tmp_path, (True, False), 1e-4)


@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
def test_tiles_compute_what_the_loops_do_in_numba(tmp_path: Path) -> None:
    """In Numba's simulator, with sizes that tiles do not divide."""
    assert not wrong_in_numba(CASES, tmp_path, False, 1e-4)


@pytest.mark.parametrize("name", CASES)
def test_what_is_launched_is_proved(name: str) -> None:
    """For all sizes: that blocks cover the tiles, and that threads of a wave are independent."""
    case = CASES[name]
    proof = prove_plan(load(case.text).codelet, planned(case.text, case.lines))
    assert proof.verdict == "proved", proof.reason


@pytest.mark.parametrize(
    ("staged", "read", "said"),
    [
        ("A", "A[2*i-2] + A[2*i+2]", "there are others between the elements that it writes"),
        ("B", "A[2*i-2] + A[2*i+2] + B[X[i]]", "its subscripts are not sums of loop variables and sizes"),
    ],
)
def test_copies_that_a_block_cannot_have(staged: str, read: str, said: str) -> None:
    """What would be written back besides is another block's, and what data decide may be anywhere."""
    text = f"""void f(int steps, int n, float A[2*n], float B[n], int X[n])
{{
  for (int t = 0; t < steps; t++)
    for (int i = 1; i < n - 1; i++)
      A[2*i] = {read};
}}
"""
    lines = ("loop t: skew i by t", "loop t: wavefront t, i, tile 4, 16, team", f"loop t: stage {staged}")
    with pytest.raises(DirectiveError, match=f"stage {staged} at loop t, in a tile of a team: {said}"):
        finish(planned(text, lines), Machine(blocks=True))


def test_each_tile_is_a_block() -> None:
    """The team is the whole block, so that each iteration of the grid has one."""
    case = CASES["seidel, staged"]
    (kernel,) = planned(case.text, case.lines).kernels
    assert kernel.team is not None
    assert (kernel.team.block_axis, [kernel.threads(d) for d, _ in kernel.grid_axes]) == ("xy", [1, 1])


def test_only_cuda_launches_ask_for_shared_memory() -> None:
    """A tile of more than 48 KiB is refused for OpenCL and HIP, with both numbers."""
    case = CASES["sums, staged, more than 48 KiB"]
    plan = planned(case.text, case.lines)
    for emit, target in ((opencl.file_text, "opencl"), (hip.file_text, "hip")):
        with pytest.raises(ResourceError, match=f"needs 67088 bytes of shared memory for {target}"):
            emit(finish(plan, Machine(blocks=True, grid_barrier=False)))
