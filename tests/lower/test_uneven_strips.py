"""Strips of sums of different lengths: a block runs those that its threads need, and few ask for each term."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.frontend import load
from looptune.ir.c_printer import expression_text
from looptune.ir.nodes import If, Loop
from looptune.ir.rewrite import walk_stmts
from looptune.ir.specialize import specialize
from looptune.lower.machine import Machine
from looptune.lower.pipeline import lower, plan_after
from looptune.lower.plan_check import prove_plan
from looptune.lower.tiles import ONCE
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check, cuda_c_on_cpu, kernel_cases
from tests.helpers.kernel_cases import Case
from tests.helpers.tensor_cases import GEMM, SYMM, TRIANGLE, sizes

TOLERANCE = 1e-12
TILED = ("loop i: box 8", "loop k: box 8", "loop j: box 8", "loop i: unroll 2, jam", "loop j: unroll 2, jam",
         "loop k: tile 8", "codelet: grid blocksize 4x4")  # fmt: skip
STAGED = (*TILED, "loop k: stage A, B, buffers 2, unroll 8")
CASES = {
    "up to the diagonal": Case(SYMM, STAGED, sizes((45, 39, 0), (70, 33, 0), (1, 1, 0))),
    "from the diagonal": Case(TRIANGLE, STAGED, sizes((45, 39, 0), (66, 34, 0), (1, 1, 0))),
    "one tile": Case(SYMM, (*TILED, "loop k: stage A, B"), sizes((45, 39, 0))),
    "strips that end early": Case(SYMM, (
        *(line for line in STAGED if not line.startswith("loop k")), "loop k: box 2", "loop k: tile 16",
        "loop k: stage A, B, unroll 8"), sizes((45, 39, 0))),
}  # fmt: skip


def strips(text: str, lines: tuple[str, ...], n: int = 64) -> list[Loop]:
    """After the pass, the loops over strips of which some are run as a whole."""
    codelet = schedule(Analysis(load(text).codelet), parse_lines(lines)).codelet
    plan = plan_after(specialize(codelet, {"n": n, "m": n, "l": n}), Machine(blocks=True), "uneven-strips")
    loops = [s for k in plan.kernels for s in walk_stmts(k.body) if isinstance(s, Loop)]
    return [s for s in loops if any(isinstance(f, Loop) and f.var == ONCE for f in s.body)]


def test_a_block_runs_what_its_threads_need() -> None:
    """Strips end after the last row of a block, or begin at its first; in whole ones, nothing is asked for."""
    for text, bound in ((SYMM, "(2 * i__first + 14) / 8"), (TRIANGLE, "(2 * i__first + 1) / 8")):
        (loop,) = strips(text, STAGED)
        ends = expression_text(loop.hi) + expression_text(loop.lo)
        assert bound in ends, ends
        whole, some = (f for f in walk_stmts(loop.body) if isinstance(f, Loop) and f.var != ONCE)
        assert not [s for s in walk_stmts(whole.body) if isinstance(s, If)]
        assert [s for s in walk_stmts(some.body) if isinstance(s, If)]
        assert whole.var == some.var, "they read the same tiles"
    assert strips(GEMM, STAGED) == []


@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
def test_results_are_those_of_the_loops(tmp_path: Path) -> None:
    some = {name: Case(c.text, c.lines, c.sizes[:1]) for name, c in CASES.items()}
    assert not kernel_cases.wrong_in_c(some, tmp_path, (True,), TOLERANCE)


@pytest.mark.wide
@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
def test_results_at_other_sizes(tmp_path: Path) -> None:
    assert not kernel_cases.wrong_in_c(CASES, tmp_path, (True, False), TOLERANCE)


@pytest.mark.wide
@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
def test_results_in_the_simulator(tmp_path: Path) -> None:
    assert not kernel_cases.wrong_in_numba(CASES, tmp_path, True, TOLERANCE)


def test_they_are_proved() -> None:
    """Sums in registers whose conditions change in their loops are those of the loops."""
    for name in ("up to the diagonal", "from the diagonal"):
        case = CASES[name]
        codelet, known = load(case.text).codelet, case.sizes[0]
        done = schedule(Analysis(codelet), parse_lines(case.lines)).codelet
        assert prove_plan(codelet, lower(specialize(done, known), blocks=True), known).verdict == "proved"
