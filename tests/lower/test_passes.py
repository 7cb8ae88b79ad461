"""Lowering is a list of passes: each leaves a plan that is well formed, and text of C that computes the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.cli import options
from looptune.cli.main import cli
from looptune.core.errors import UsageError
from looptune.frontend import load
from looptune.ir.interpreter import run
from looptune.ir.nodes import Array, Codelet, Scalar, Var
from looptune.lower.listing import print_plan
from looptune.lower.pipeline import PASSES, Machine, finish_plan, lower_to_plan, names, plan_after
from looptune.lower.plan_check import plan_as_loops
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers.paths import POLYBENCH, ROOT

GPU, CPU = Machine(blocks=True, contract="cc"), Machine(blocks=False)
GEMM = POLYBENCH / "gemm.c"
MEANS = """\
void means(int n, int m, float A[n][m], float mean[m]) {
  for (int j = 0; j < m; j++) {
    mean[j] = 0;
    for (int i = 0; i < n; i++) mean[j] += A[i][j];
    for (int i = 0; i < n; i++) if (j > 1) A[i][j] -= mean[j];
  }
}
"""
CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "gemm": (GEMM.read_text(), ("loop k: unroll 2",)),
    "means": (MEANS, ()),
}


def scheduled(text: str, lines: tuple[str, ...]) -> Codelet:
    return schedule(Analysis(load(text).codelet), parse_lines(lines)).codelet


def of(machine: Machine) -> list[str]:
    return [p.name for p in PASSES if p.concerns(machine)]


def results(codelet: Codelet) -> dict[str, np.ndarray]:
    """Return the arrays after one run, with sizes of 3, 4 and 5 and small whole numbers in all elements."""
    scalars = {p.name: 3 + k if p.dtype == "int32" else 2.0
               for k, p in enumerate(p for p in codelet.params if isinstance(p, Scalar))}  # fmt: skip
    arrays: dict[str, np.ndarray] = {}
    for p in codelet.params:
        if isinstance(p, Array):
            shape = [int(scalars[e.name]) for e in p.shape if isinstance(e, Var)]
            arrays[p.name] = (np.arange(np.prod(shape)).reshape(shape) % 7).astype(p.dtype)
    run(codelet, arrays, scalars)
    return arrays


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def test_the_command_knows_all_passes() -> None:
    """The names that the help lists are those of the passes, no two the same, each with a reason."""
    assert names() == options.PASSES
    assert len(set(names())) == len(PASSES)
    assert all(p.reason for p in PASSES)


@pytest.mark.parametrize("machine", [GPU, CPU], ids=["gpu", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_each_pass_leaves_a_plan_of_the_same_meaning(name: str, machine: Machine) -> None:
    """What is printed after each pass is C that looptune reads, and it computes what the original does."""
    text, lines = CASES[name]
    wanted = results(load(text).codelet)
    for last in of(machine):
        plan = plan_after(scheduled(text, lines), machine, last)
        assert plan.passes[-1] == last
        made = print_plan(plan)
        assert same(results(load(made).codelet), wanted), f"after {last}:\n{made}"
        if machine.blocks and "thread-teams" in plan.passes:
            plan_as_loops(plan)  # verifies the tree


def test_the_design_page_lists_the_passes() -> None:
    """Each row has the name, the targets and the reason that the list has."""
    page = (ROOT / "docs" / "design.md").read_text()
    where = {"all": "all", "gpu": "GPU", "cpu": "CPU"}
    assert "\n".join(f"| `{p.name}` | {where[p.of]} | {p.reason} |" for p in PASSES) in page


def test_no_pass_runs_twice() -> None:
    """A finished plan is what finishing it leaves."""
    text, lines = CASES["gemm"]
    plan = lower_to_plan(scheduled(text, lines), blocks=True)
    assert plan.passes == tuple(p.name for p in PASSES if p.early)
    done = finish_plan(plan, GPU)
    assert done.passes == tuple(of(GPU))
    assert finish_plan(done, GPU) is done


def test_what_is_emitted_is_what_the_last_pass_left(tmp_path: Path) -> None:
    """A backend writes the same text of a plan and of the finished one."""
    text, lines = CASES["means"]
    plan = lower_to_plan(scheduled(text, lines))
    backend = NumbaCpu(tmp_path)
    done = finish_plan(plan, Machine(blocks=False, reorder=backend.floats.reorder))
    assert backend.emit(replace(done, schedule_text=plan.schedule_text)) == backend.emit(plan)


def test_tiles_are_part_of_the_plan() -> None:
    """The text after ``shared-memory`` says what a block copies, and its loop reads the tile."""
    plan = plan_after(scheduled(CASES["gemm"][0], ("loop k: tile k:16", "loop k: stage A")), GPU, "shared-memory")
    (kernel,) = plan.kernels
    assert kernel.tiles is not None
    assert [t.array for t in kernel.tiles.tiles] == ["A"]
    text = print_plan(plan)
    assert "fill A_0__tile: 8 x 16 elements of A from [i__first][16 * outer_k]" in text
    assert "A_0__tile[i__thread * 16 + k]" in text


def test_a_team_is_printed_by_phases() -> None:
    """Lane 0, shared loops and the combination of their sums stand one after the other."""
    lines = ("loop 2: parallel", "codelet: grid blocksize 8x4")
    plan = plan_after(scheduled(MEANS, lines), GPU, "thread-teams")
    assert any(k.team is not None for k in plan.kernels)
    text = print_plan(plan)
    for said in ("// a team of", "// shared by the lanes", "// lanes combine"):
        assert said in text


def test_a_pass_of_another_target_is_refused() -> None:
    """The error names the passes that there are."""
    with pytest.raises(UsageError, match="--after unswitch: no pass for a GPU; its passes are split-reduction, "):
        plan_after(scheduled(MEANS, ()), GPU, "unswitch")


def test_the_command_prints_a_pass() -> None:
    """``looptune emit --after`` prints C; a name that is none lists the passes."""
    done = CliRunner().invoke(cli, ["emit", str(GEMM), "--target", "cuda-c", "--after", "map-loops"])
    assert "// kernel gemm_0(): blocks of 32 x 8 threads" in done.output, done.output
    refused = CliRunner().invoke(cli, ["emit", str(GEMM), "--after", "nothing"])
    assert refused.exit_code == 2
    assert "'map-loops'" in refused.output
