"""Lowering is a list of passes: each leaves a plan that is well formed, and text of C that computes the same."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import looptune
from looptune.backends.numba_cpu.backend import NumbaCpu
from looptune.cli import options
from looptune.cli.main import cli
from looptune.core.errors import UsageError
from looptune.frontend import load
from looptune.ir.interpreter import run
from looptune.ir.nodes import Array, Codelet, Scalar
from looptune.lower import pipeline
from looptune.lower.listing import print_plan
from looptune.lower.machine import Machine
from looptune.lower.pipeline import PASSES, Pass, finish, lower, names, plan_after
from looptune.lower.plan import Kernel, Plan, evaluate_size
from looptune.lower.plan_check import plan_as_loops
from looptune.lower.thread_code import ThreadWalk
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers.paths import POLYBENCH, ROOT

GPU, CPU = Machine(blocks=True, contract="cc", host_reads=True), Machine(blocks=False, host_reads=True)
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
    "means": (MEANS, ()),
    "gemm": (GEMM.read_text(), ("loop k: unroll 2",)),
}


def scheduled(text: str, lines: tuple[str, ...]) -> Codelet:
    return schedule(Analysis(load(text).codelet), parse_lines(lines)).codelet


def of(machine: Machine) -> list[str]:
    return [p.name for p in PASSES if p.concerns(machine)]


def results(codelet: Codelet) -> dict[str, np.ndarray]:
    """Return the arrays after one run, with sizes of 3, 4 and 5 and small whole numbers in all elements."""
    scalars: dict[str, Any] = {p.name: 3 + k if p.dtype == "int32" else 2.0
               for k, p in enumerate(p for p in codelet.params if isinstance(p, Scalar))}  # fmt: skip
    arrays: dict[str, np.ndarray] = {}
    for p in codelet.params:
        if isinstance(p, Array):
            shape = [evaluate_size(e, scalars) for e in p.shape if e is not None]
            arrays[p.name] = (np.arange(np.prod(shape)).reshape(shape) % 7).astype(p.dtype)
    run(codelet, arrays, scalars)
    return {name: array.ravel() for name, array in arrays.items()}


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)


def test_the_command_knows_all_passes() -> None:
    """The names that the help lists are those of the passes, no two the same, each with a reason."""
    assert names() == options.PASSES
    assert len(set(names())) == len(PASSES)
    assert all(p.reason for p in PASSES)


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize("machine", [GPU, CPU], ids=["gpu", "cpu"])
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.wide) if n == "gemm" else n for n in CASES])
def test_each_pass_leaves_a_plan_of_the_same_meaning(name: str, machine: Machine) -> None:
    """What is printed after each pass is C that looptune reads, and it computes what the original does."""
    text, lines = CASES[name]
    wanted = results(load(text).codelet)
    for last in of(machine):
        plan = plan_after(scheduled(text, lines), machine, last)
        assert plan.passes[-1] == last
        made = print_plan(plan)
        assert same(results(load(made).codelet), wanted), f"after {last}:\n{made}"
        if machine.blocks and "thread-teams" in plan.passes and "local-cse" not in plan.passes:
            plan_as_loops(plan)  # verifies the tree


def test_the_design_page_lists_the_passes() -> None:
    """Each row has the name, the targets and the reason that the list has."""
    page = (ROOT / "docs" / "design.md").read_text()
    where = {"all": "all", "gpu": "GPU", "cpu": "CPU", "gpu, as text": "GPU, as text",
             "gpu, without a grid barrier": "GPU without a grid barrier"}  # fmt: skip
    assert "\n".join(f"| `{p.name}` | {where[p.of]} | {p.reason} |" for p in PASSES) in page


def test_no_pass_runs_twice() -> None:
    """A finished plan is what finishing it leaves."""
    text, lines = CASES["gemm"]
    plan = lower(scheduled(text, lines), blocks=True)
    assert plan.passes == tuple(p.name for p in PASSES if p.early)
    done = finish(plan, GPU)
    assert done.passes == tuple(of(GPU))
    assert finish(done, GPU) is done


def test_what_is_emitted_is_what_the_last_pass_left(tmp_path: Path) -> None:
    """A backend writes the same text of a plan and of the finished one."""
    text, lines = CASES["means"]
    plan = lower(scheduled(text, lines))
    backend = NumbaCpu(tmp_path)
    done = finish(plan, Machine(blocks=False, reorder=backend.floats.reorder, host_reads=True))
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


SUM = "void f(int n, int m, float A[n][m], float y[n]) {{ for (int i = 0; i < n; i++) {{ {} }} }}\n"
SHARED = SUM.format("y[i] = 0; for (int j = 0; j < m; j++) y[i] += A[i][j];")
PRODUCT = """\
void f(int n, int m, int l, float C[n][m], float A[n][l], float B[l][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      for (int k = 0; k < l; k++) C[i][j] += A[i][k] * B[k][j];
}
"""
STEPS = """\
void f(int steps, int n, int m, float A[n][m], float B[n][m]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < m - 1; j++) B[i][j] = A[i - 1][j] + A[i][j + 1];
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < m - 1; j++) A[i][j] = B[i][j];
  }
}
"""
TRIANGLE = """\
void f(int n, int m, float C[n][n], float A[n][m]) {
  for (int i = 0; i < 512; i++)
    for (int j = i; j < 512; j++)
      for (int k = 0; k < m; k++) C[i][j] += A[i][k] * A[j][k];
}
"""
KEPT = """\
void f(double s[3], double a[9]) {
  for (int j = 0; j < 3; j++) s[j] = 0;
  for (int i = 0; i < 9; i++) for (int j = 0; j < 3; j++) s[j] += a[i] * j;
}
"""
STAGED = ("loop k: tile 16", "loop k: stage A, B")
COLUMNS = """\
void f(int n, float A[8][n]) {
  for (int j = 0; j < n; j++)
    for (int i = 1; i < 8; i++) A[i][j] += A[i - 1][j];
}
"""
TALL = """\
void f(float A[600000][8]) {
  for (int i = 0; i < 600000; i++)
    for (int j = 0; j < 8; j++) A[i][j] += 1;
}
"""
NO_BARRIER = Machine(blocks=True, contract="cc", grid_barrier=False)
ANY_ORDER = Machine(blocks=False, reorder=True)
APPLIES: dict[str, tuple[Machine, str, tuple[str, ...]]] = {
    "split-reduction": (GPU, SHARED, ("loop j: parallel", "loop j: split 4")),
    "ping-pong-arrays": (GPU, STEPS, ("loop t: overlap 2",)),
    "map-loops": (GPU, PRODUCT, ()),
    "temporal-tiling": (GPU, STEPS, ("loop t: overlap 2",)),
    "thread-teams": (GPU, SHARED, ("loop j: parallel",)),
    "scalar-replacement": (GPU, PRODUCT, ()),
    "warp-tiles": (GPU, PRODUCT.replace("float", "double"), ("loop k: tensor",)),
    "kernel-parameters": (GPU, PRODUCT, ()),
    "grid-compaction": (GPU, TRIANGLE, ("loop 1: gridify(i, j)", "codelet: pack")),
    "tall-grids": (GPU, TALL, ()),
    "host-launches": (NO_BARRIER, STEPS, ("loop t: persistent 2",)),
    "fp-contraction": (GPU, SUM.format("if (A[i][0] * A[i][1] + 1 < y[i]) y[i] = 0;"), ()),
    "init-fusion": (GPU, SHARED, ("loop j: parallel",)),
    "block-copies": (
        GPU,
        COLUMNS.replace("A[i - 1][j]", "A[i - 1][j] * A[i][j - 1]").replace("j = 0", "j = 1"),
        ("loop j: wavefront j, i, tile 4, 4, team", "loop j: stage A"),
    ),
    "own-copies": (GPU, COLUMNS, ("loop j: stage A",)),
    "shared-memory": (GPU, PRODUCT, STAGED),
    "temporal-tile-bodies": (GPU, STEPS, ("loop t: overlap 2",)),
    "full-strips": (GPU, PRODUCT, STAGED),
    "tile-copies": (GPU, PRODUCT, STAGED),
    "local-cse": (GPU, PRODUCT, ("loop j: unroll 2, jam",)),
    "address-split": (GPU, PRODUCT, ("loop j: unroll 2, jam",)),
    "time-bands": (CPU, STEPS, ("loop t: overlap 2",)),
    "serial-nests": (CPU, PRODUCT, ()),
    "reassociation": (ANY_ORDER, SHARED, ()),
    "unswitch": (CPU, SUM.format("for (int j = 0; j < m; j++) if (n > 3) y[i] += A[i][j];"), ()),
}
"""For most passes, a program that it changes."""


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize("name", APPLIES)
def test_what_a_pass_changes_is_printed(name: str) -> None:
    """The text after a pass is C that looptune reads, and it is not the text after the pass before."""
    machine, text, lines = APPLIES[name]
    own = of(machine)
    before, after = (print_plan(plan_after(scheduled(text, lines), machine, own[k])) if k >= 0 else text
                     for k in (own.index(name) - 1, own.index(name)))  # fmt: skip
    assert before != after
    load(after)


WRITERS = ("backends.codegen", "backends.cuda.cuda_c_writer", "backends.opencl.writer", "backends.numba_cuda.writer")


@cache
def imports(module: str) -> set[str]:
    """Return the modules of looptune that a module imports, by its syntax."""
    path = Path(looptune.__file__).parent.joinpath(*module.split(".")[1:])
    file = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    found: set[str] = set()
    for n in ast.walk(ast.parse(file.read_text())):
        match n:
            case ast.Import(names=names):
                found |= {a.name for a in names}
            case ast.ImportFrom(module=str(source), names=names):
                found |= {source, *(f"{source}.{a.name}" for a in names)}
    root = Path(looptune.__file__).parent.parent
    paths = {m: root.joinpath(*m.split(".")) for m in found if m.startswith("looptune.")}
    return {m for m, path in paths.items() if path.with_suffix(".py").exists() or path.is_dir()}


def reached(module: str) -> set[str]:
    """Return all that a module imports, and what that imports."""
    found, left = set[str](), {module}
    while left:
        found |= left
        left = {m for n in left for m in imports(n)} - found
    return found


def test_no_writer_imports_a_pass() -> None:
    """Nor does anything that a writer imports; a backend asks ``lower.pipeline`` for a finished plan."""
    root = Path(looptune.__file__).parent
    modules = [".".join(("looptune", *f.relative_to(root).with_suffix("").parts)) for f in root.rglob("*.py")]
    writers = [m for m in modules if m.startswith(tuple(f"looptune.{w}" for w in WRITERS))]
    assert len(writers) > 15
    for writer in writers:
        assert not [m for m in reached(writer) if m.startswith(("looptune.lower.passes", "looptune.lower.pipeline"))]
    for module in modules:
        if module.startswith("looptune.backends."):
            assert not [m for m in imports(module) if m.startswith("looptune.lower.passes")], module


@pytest.mark.parametrize("target", ["cuda-c", "numba-cpu", "opencl"])
def test_each_pass_runs_once(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pass of the target runs once for a text that is emitted; those of a kernel once for each kernel."""
    calls = Counter[str]()

    def counted(step: Pass) -> Pass:
        def run(plan: Plan, machine: Machine) -> Plan:
            calls[step.name] += 1
            return step.run(plan, machine)

        return replace(step, run=run)

    monkeypatch.setattr(pipeline, "PASSES", tuple(map(counted, PASSES)))
    codelet = scheduled(*CASES["means"])
    text = targets.emit(target, pipeline.lower(codelet, blocks=target != "numba-cpu"), tmp_path)
    machine = targets.machine(target, tmp_path)
    assert text
    assert calls == {p.name: 1 for p in PASSES if p.concerns(machine)}


def test_a_kernel_is_rewritten_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The walks through what threads run visit each kernel once in each of their passes."""
    seen = Counter[tuple[str, str]]()
    walk = ThreadWalk.run

    def run(self: ThreadWalk) -> Kernel:
        seen[type(self).__name__, self.kernel.name] += 1
        return walk(self)

    monkeypatch.setattr(ThreadWalk, "run", run)
    plan = lower(scheduled(STEPS, ("loop t: persistent 2",)), blocks=True)
    targets.emit("cuda-c", plan, tmp_path)
    assert len(seen) == 2 * len(plan.kernels)
    assert set(seen.values()) == {1}


def test_a_plan_is_finished_for_one_machine() -> None:
    """A writer of another machine cannot take it."""
    done = finish(lower(scheduled(*CASES["gemm"]), blocks=True), GPU)
    with pytest.raises(AssertionError, match="the plan is for Machine"):
        finish(done, NO_BARRIER)


def test_tiles_of_several_steps_are_lowered_for_their_machine() -> None:
    """Lowered for a CPU, blocks of a GPU would store into the array from which others load."""
    codelet = load("""void f(int steps, int n, double A[n], double B[n]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++) B[i] = A[i - 1] + A[i + 1];
    for (int i = 1; i < n - 1; i++) A[i] = B[i - 1] + B[i + 1];
  }
}
""").codelet
    done = schedule(Analysis(codelet), parse_lines(["loop t: overlap 2"])).codelet
    stored = finish(lower(done, blocks=True), Machine(blocks=True))
    assert "A__spare" in {local.name for local in stored.device_locals}
    with pytest.raises(AssertionError, match="lowered for a CPU"):
        finish(lower(done), Machine(blocks=True))
