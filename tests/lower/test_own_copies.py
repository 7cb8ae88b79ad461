"""Copies of the elements that a thread alone uses: in registers, where the trip counts of its loops are numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.frontend import load
from looptune.ir.nodes import Const, Load, Loop
from looptune.ir.rewrite import walk
from looptune.lower.machine import Machine
from looptune.lower.pipeline import plan_after
from looptune.lower.plan import Kernel
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cuda_c_on_cpu, kernel_cases
from tests.helpers.kernel_cases import Case

ELIMINATION = """
void f(int n, double A[n][n])
{
    for (int k = 0; k < n - 1; k++) {
        for (int i = k + 1; i < n; i++) A[i][k] /= A[k][k] + 300;
        for (int i = k + 1; i < n; i++) for (int j = k + 1; j < n; j++) A[i][j] -= A[i][k] * A[k][j];
    }
}
"""


def lines(steps: int) -> tuple[str, ...]:
    return (f"loop 1: block {steps}", "loop 2.2: stage A", "loop 4.3: stage A", "codelet: grid blocksize 32x1")


def panels(steps: int) -> list[Kernel]:
    codelet = schedule(Analysis(load(ELIMINATION).codelet), parse_lines(lines(steps))).codelet
    kernels = plan_after(codelet, Machine(blocks=True), "own-copies").kernels
    return [k for k in kernels if any(v.name.endswith("__own") for v in k.locals)]


@pytest.mark.parametrize(("steps", "straight"), [(4, True), (16, True), (32, False)])
def test_subscripts_are_numbers(steps: int, straight: bool) -> None:
    """All iterations of the panels of a few steps are written one after the other; of many, loops are left."""
    found = panels(steps)
    assert len(found) == 2
    for kernel in found:
        own = [n for n in walk(kernel.body) if isinstance(n, Load) and n.array.endswith("__own")]
        assert {n.index[0] for n in own if isinstance(n.index[0], Const)} == (
            {Const(k) for k in range(steps)} if straight else set()
        )
        assert any(isinstance(n, Loop) for n in walk(kernel.body)) != straight


@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
def test_results_are_those_of_the_loops(tmp_path: Path) -> None:
    cases = {str(steps): Case(ELIMINATION, lines(steps), ({"n": 23},)) for steps in (4, 8)}
    assert not kernel_cases.wrong_in_c(cases, tmp_path, (True, False), 1e-12)
