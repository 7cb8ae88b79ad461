"""Plans: which loops the host runs, which form the grid, what stays in a thread, and where locals live."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from looptune.frontend import load
from looptune.ir.def_use import upward_exposed_uses
from looptune.ir.nodes import Loop
from looptune.ir.rewrite import walk
from looptune.lower.pipeline import lower
from looptune.lower.plan import HostIf, HostLoop, Kernel, Launch, Plan, Step, blocks, extent, launches
from looptune.lower.plan_check import plan_as_loops, prove_plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check


def planned(text: str, *lines: str) -> Plan:
    return lower(schedule(Analysis(load(text).codelet), parse_lines(lines)).codelet)


def sketch(steps: Sequence[Step]) -> list[object]:
    """``host t: [...]`` for a host loop; for a kernel its axes, block and the loops in the thread."""
    out: list[object] = []
    for step in steps:
        match step:
            case Launch(kernel):
                out.append(drawn(kernel))
            case HostLoop(var, _, _, _, body):
                out.append((f"host {var}", sketch(body)))
            case HostIf(_, then, other):
                out.append(("if", sketch(then), sketch(other)))
    return out


def drawn(kernel: Kernel) -> str:
    axes = " ".join(a.var for a in kernel.grid)
    inside = " ".join(n.var for n in walk(kernel.body) if isinstance(n, Loop))
    return f"grid({axes}) {kernel.block[0]}x{kernel.block[1]} thread({inside})"


GEMM = """
void f(int n, int m, int k, float C[n][m], float A[n][k], float B[k][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      C[i][j] *= 2;
      for (int l = 0; l < k; l++) C[i][j] += A[i][l] * B[l][j];
    }
}
"""
COPY = "void f(int n, float x[n], float y[n])\n{ for (int i = 0; i < n; i++) y[i] = x[i]; }\n"
TRIANGLE = "void f(int n, float A[n][n])\n{ for (int i = 0; i < n; i++) for (int j = i; j < n; j++) A[i][j] += 1; }\n"
WAVE = """
void f(int n, float A[n][n])
{ for (int i = 1; i < n; i++) for (int j = 0; j < n - 1; j++) A[i][j] = A[i - 1][j + 1]; }
"""
TIME = """
void f(int steps, int n, float A[n][n], float B[n][n]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++) B[i][j] = A[i - 1][j] + A[i + 1][j];
    for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) A[i][j] = B[i][j];
  }
}
"""
CUBE = """
void f(int n, float A[n][n][n])
{ for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int k = 0; k < n; k++) A[i][j][k] += 1; }
"""


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        (GEMM, (), ["grid(i j) 32x8 thread(l)"]),
        (GEMM, ("codelet: grid blocksize 64x4",), ["grid(i j) 64x4 thread(l)"]),
        (GEMM, ("codelet: grid blocksize 128",), ["grid(i j) 128x1 thread(l)"]),
        (GEMM, ("loop j: noParallel",), ["grid(i) 256x1 thread(j l)"]),
        (GEMM, ("loop i: noParallel",), [("host i", ["grid(j) 256x1 thread(l)"])]),
        (GEMM, ("loop i: noParallel", "loop j: noParallel"), ["grid() 1x1 thread(i j l)"]),
        (GEMM, ("loop i: gridify(j)",), ["grid(j) 256x1 thread(i l)"]),
        (WAVE, ("loop i: gridify(j)",), [("host i", ["grid(j) 256x1 thread()"])]),
        (GEMM, ("loop i: tile i:4",), ["grid(outer_i j) 32x8 thread(i l)"]),
        (GEMM, ("loop j: tile j:2",), ["grid(i outer_j) 32x8 thread(j l)"]),
        (GEMM, ("loop i: tile i:2", "loop j: tile j:2"), ["grid(outer_i outer_j) 32x8 thread(i j l)"]),
        (GEMM, ("loop i: unroll 2, jam",), ["grid(i j) 32x8 thread(l)", "grid(i j) 32x8 thread(l)"]),
        (GEMM, ("loop i: unroll 2, guarded, jam",), ["grid(i j) 32x8 thread(l l)"]),
        (COPY, (), ["grid(i) 256x1 thread()"]),
        (COPY, ("loop i: tile i:4",), ["grid(outer_i) 256x1 thread(i)"]),
        (TRIANGLE, (), ["grid(i) 256x1 thread(j)"]),
        (TIME, (), [("host t", ["grid(i j) 32x8 thread()", "grid(i j) 32x8 thread()"])]),
        (TRIANGLE, ("nest i: gridify(i, j)",), ["grid(i j) 32x8 thread()"]),
        (TRIANGLE, ("nest i: gridify(j, i)",), ["grid(j i) 32x8 thread()"]),
        (CUBE, (), ["grid(i j) 32x8 thread(k)"]),
        (CUBE, ("nest i: permute i, k, j",), ["grid(i k) 32x8 thread(j)"]),
        (CUBE, ("nest i: permute j, i, k", "codelet: grid blocksize 64x4"), ["grid(j i) 64x4 thread(k)"]),
        (CUBE, ("nest i: gridify(i, j, k)",), ["grid(i j k) 32x8 thread()"]),
        (CUBE, ("nest i: gridify(i, j, k)", "loop i: tile i:4"), ["grid(outer_i j k) 32x8 thread(i)"]),
        (CUBE, ("nest i: gridify(i, j, k)", "loop j: unroll 2"), ["grid(i j k) 32x8 thread()"] * 3),
        (CUBE, ("nest i: gridify(i, j, k)", "loop k: unroll 2, guarded"), ["grid(i j k) 32x8 thread()"]),
        (TRIANGLE, ("loop j: box",), ["grid(i j) 32x8 thread()"]),
    ],
)  # fmt: skip
def test_plans(text: str, lines: tuple[str, ...], expected: list[object]) -> None:
    """The first two parallel loops are the grid, one alone takes the whole block, strips move into the thread."""
    assert sketch(planned(text, *lines).steps) == expected


def test_a_jammed_guard_shares_one_loop() -> None:
    """The guard sinks into the loops both branches share, so that the nest stays a nest."""
    (kernel,) = planned(GEMM, "loop i: unroll 2, guarded, jam").kernels
    assert [a.var for a in kernel.axes] == ["i", "j"]


def test_statements_between_loops_run_in_one_thread() -> None:
    """Straight-line statements, with the sequential loops beside them, become one kernel of one thread."""
    text = """
void f(int n, float x[n], float r[2]) {
  float s = 0;
  for (int i = 0; i < n; i++) s += x[i];
  r[0] = s;
  for (int i = 0; i < n; i++) x[i] /= s;
  r[1] = x[0];
}
"""
    done = planned(text)
    assert sketch(done.steps) == ["grid() 1x1 thread(i)", "grid(i) 256x1 thread()", "grid() 1x1 thread()"]
    assert [v.name for v in done.device_locals] == ["s"], "a kernel writes s and another reads it"
    assert [v.name for v in done.kernels[0].locals][:1] != ["s"]


def test_private_locals_stay_in_the_thread() -> None:
    """A scalar written before it is read in every iteration belongs to the thread, in every kernel that does so."""
    text = """
void f(int n, float x[n], float y[n]) {
  float t;
  for (int i = 0; i < n; i++) { t = x[i] * 2; y[i] = t + t * t; }
  for (int i = 0; i < n; i++) { t = y[i]; x[i] = t; }
}
"""
    done = planned(text)
    assert done.device_locals == ()
    assert [[v.name for v in k.locals] for k in done.kernels] == [["t"], ["t"]]


def test_what_is_assigned_under_a_condition_is_read_under_it() -> None:
    """Copies of one temporary, each under the guard of its copy, belong to the thread, and are no element for all."""
    text = (
        "void f(int n, double x[n][n], double y[n][n])\n{\n"
        "  for (int j = 0; j < n - 1; j++)\n"
        "    for (int k = 0; k < n; k++) { double t = x[j][k]; y[j][k] = t + 1; }\n}\n"
    )
    plan = planned(text, "loop j: noParallel", "loop j: unroll 2, guarded, jam")
    assert plan.device_locals == ()
    (kernel,) = plan.kernels
    assert len({v.name for v in kernel.locals}) == 2


@pytest.mark.parametrize(
    ("body", "read_first"),
    [
        ("if (n > 3) t = 1; x[0] = 0; if (n > 3) x[1] = t;", False),
        ("if (n > 3) { if (x[0] > 2) t = 1; y[0] = 1; } if (n > 3) { if (x[0] > 2) y[1] = t; }", False),
        ("if (n > 3 && x[0] > 2) t = 1; if (n > 3 && x[0] > 2 && m > 4) y[1] = t;", False),
        ("if (n > 3) t = 1; else t = 2; y[1] = t;", False),
        ("if (n > 3) y[0] = 1; else t = 2; if (n > 3) y[1] = 2; else y[1] = t;", False),
        ("if (n > 3) t = 1; if (m > 3) y[1] = t;", True),
        ("if (n > 3) t = 1; y[1] = t;", True),
        ("if (x[0] > 2) t = 1; x[0] = 3; if (x[0] > 2) y[1] = t;", True),
        ("if (x[0] > 2) { t = 1; x[0] = 0; } if (x[0] > 2) y[1] = t;", True),
        ("if (x[0] > 2) t = 1; else x[0] = 3; if (x[0] > 2) y[1] = t;", True),
        ("if (n > 3) y[1] = t; t = 1;", True),
        ("if (x[0] > 2) t = 1; for (int i = 0; i < n; i++) { if (x[0] > 2) y[1] = t; x[0] += 1; }", True),
        ("if (x[0] > 2) t = 1; for (int i = 0; i < n; i++) if (x[0] > 2) y[i] = t;", False),
        ("for (int i = 0; i < n; i++) t = 1; y[1] = t;", True),
    ],
)  # fmt: skip
def test_which_names_are_read_before_they_are_assigned(body: str, read_first: bool) -> None:
    head = "void f(int n, int m, double x[4], double y[4])"
    codelet = load(f"{head}\n{{ double t; {body} for (int k = 0; k < n; k++) y[2] = 0; }}\n").codelet
    assert ("t" in upward_exposed_uses(codelet.body)) == read_first


def test_local_arrays_are_resident() -> None:
    """An array of the codelet's own that one kernel fills and another reads is in device memory."""
    text = """
void f(int n, float x[n], float y[n]) {
  float t[n];
  for (int i = 0; i < n; i++) t[i] = x[i];
  for (int i = 0; i < n; i++) y[i] = t[n - 1 - i];
}
"""
    done = planned(text)
    assert [v.name for v in done.device_locals] == ["t"]
    assert all("t" in k.arrays for k in done.kernels)
    assert "n" in done.kernels[1].scalars


def test_the_host_decides_conditions_on_sizes() -> None:
    """An if whose condition the host can compute chooses between launches; one on data does not leave the thread."""
    text = """
void f(int n, int mode, float x[n]) {
  if (mode > 1) { for (int i = 0; i < n; i++) x[i] += 1; } else x[0] = 3;
  if (x[0] > 2) for (int i = 0; i < n; i++) x[i] -= 1;
}
"""
    found = sketch(planned(text).steps)
    assert found[0] == ("if", ["grid(i) 256x1 thread()"], ["grid() 1x1 thread()"])
    assert found[1] == "grid() 1x1 thread(i)"


def test_kernels_need_no_more_than_they_use() -> None:
    """Arrays and scalars are those of the body, bounds and strides, in the codelet's order."""
    text = """
void f(int p, int n, int m, float a, float b, float A[n][m], float x[n], float y[p])
{ for (int i = 0; i < n; i++) x[i] += b * A[i][0]; for (int k = 0; k < p; k++) y[k] = a; }
"""
    first, second = planned(text).kernels
    assert (first.arrays, first.scalars) == (("A", "x"), ("n", "m", "b"))
    assert (second.arrays, second.scalars) == (("y",), ("p", "a"))


def test_kernel_names_avoid_the_users() -> None:
    """A parameter called as a kernel would be keeps its name."""
    (kernel,) = planned("void f(int f_0, float x[f_0])\n{ for (int i = 0; i < f_0; i++) x[i] = 1; }\n").kernels
    assert kernel.name != "f_0"


@pytest.mark.parametrize(
    ("n", "m", "grid"), [(1, 1, (1, 1)), (8, 32, (1, 1)), (9, 33, (2, 2)), (16, 64, (2, 2)), (512, 512, (16, 64))]
)
def test_the_grid_covers_the_iterations(n: int, m: int, grid: tuple[int, int]) -> None:
    """Blocks along x and y, rounded up."""
    (kernel,) = planned(GEMM).kernels
    assert extent(kernel, {"n": n, "m": m, "k": 1}) == (n, m)
    assert blocks(kernel, {"n": n, "m": m, "k": 1}) == (*grid, 1)


def test_extents_count_steps_and_are_never_negative() -> None:
    """ceil((hi - lo) / step) iterations, none where the loop does not run."""
    (kernel,) = planned("void f(int n, float x[n])\n{ for (int i = 2; i < n; i += 3) x[i] = 1; }\n").kernels
    assert [extent(kernel, {"n": n})[0] for n in (0, 2, 3, 5, 6, 9)] == [0, 0, 1, 1, 2, 3]


def test_launches_follow_the_host_loops() -> None:
    """One launch per iteration and kernel, in order, with the values of the host's variables."""
    found = [(k.name, env["t"]) for k, env in launches(planned(TIME).steps, {"steps": 3, "n": 8})]
    assert found == [("f_0", 0), ("f_1", 0), ("f_0", 1), ("f_1", 1), ("f_0", 2), ("f_1", 2)]


SLANTED = """
void f(int n, int m, double A[n + 9][n + 9]) {
  for (int i = LO; i < n; i++)
    for (int j = FROM; j < TO; j++) A[i][j] += 1;
}
"""


@pytest.mark.parametrize("start", ["0", "2"])
@pytest.mark.parametrize(
    ("lo", "hi"),
    [
        ("i", "n"),
        ("0", "i + 1"),
        ("n - i", "n"),
        ("i / 2", "2 * i"),
        ("i > 2 ? i : 2", "n"),
        ("i", "i + 3"),
        ("3", "i"),
    ],
)
def test_a_slanted_grid_covers_what_its_loops_do(lo: str, hi: str, start: str) -> None:
    """Every iteration is a thread's, for any order of the two, whichever way the bounds slant."""
    text = SLANTED.replace("FROM", lo).replace("TO", hi).replace("LO", start)
    original = load(text).codelet
    for names in ("i, j", "j, i"):
        done = planned(text, f"nest i: gridify({names})", "codelet: grid blocksize 4x2")
        for n in (1, 5, 6):
            given = cross_check.arguments(original, {"n": n, "m": 3})
            assert (
                cross_check.off(
                    cross_check.interpreted(original, given), cross_check.interpreted(plan_as_loops(done), given)
                )
                is None
            )
        if "?" not in lo:
            assert len(done.kernels[0].axes) == 2
            assert prove_plan(original, done).verdict == "proved"


def test_copies_of_a_temporary_that_both_branches_assign_are_proved() -> None:
    text = """
void f(int n, double a[n], double b[4]) {
  double t;
  for (int i = 0; i < n; i++) {
    if (!(b[0] > i)) t = b[1]; else t = b[2];
    t += a[i];
    a[i] = t;
  }
}
"""
    original = load(text).codelet
    done = schedule(Analysis(original), parse_lines(["loop i: noParallel", "loop i: unroll 3, jam"])).codelet
    assert prove_plan(original, lower(done)).verdict == "proved"


def test_parts_of_a_sum_whose_loop_reads_past_its_element_are_proved_at_sizes() -> None:
    """With known sizes the bounds of the parts are affine, and no x[i + 9] is x[9]; without, nothing is said."""
    text = """
void f(int n, double x[n + 9], double b[n]) {
  for (int i = 2; i < n; i++) { x[9] += i; b[i] += x[i + 9]; }
}
"""
    original = load(text).codelet
    done = schedule(Analysis(original), parse_lines(["loop i: rfactor 3"])).codelet
    assert prove_plan(original, lower(done)).verdict == "unknown"
    assert prove_plan(original, lower(done), {"n": 7}).verdict == "proved"
