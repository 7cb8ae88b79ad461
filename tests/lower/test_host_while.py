"""Loops until convergence: the host makes the launches of their passes, and reads whether there is another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.backends.base import PartialRun, TimeLimit
from looptune.backends.early_stop import run_in_batches
from looptune.frontend import load
from looptune.lower.machine import Machine
from looptune.lower.pipeline import finish, lower
from looptune.lower.plan import data_decide
from looptune.lower.plan_outline import summarize_plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import all_targets, cross_check
from tests.helpers.all_targets import Case

RELAX = """
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++) {
        b[i][j] = 0.25 * (a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
        err = fmax(err, fabs(b[i][j] - a[i][j]));
      }"""
COPY = """
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++) a[i][j] = b[i][j];"""
HEAD = "#include <math.h>\nvoid f(int n, double a[n][n], double b[n][n], double tol, int passes[1]) {\n"
PROGRAMS = {
    "while": f"{HEAD} double err = 1; int it = 0; while (err > tol && it < 9) {{ err = 0; {RELAX} {COPY} it++; }}"
    " passes[0] = it; }",
    "do": f"{HEAD} double err; int it = 0; do {{ err = 0; {RELAX} {COPY} it++; }} while (err > tol && it < 9);"
    " passes[0] = it; }",
    "for with break": f"{HEAD} int it; for (it = 0; it < 9; it++) {{ double err = 0; {RELAX} {COPY}"
    " if (err < tol) break; } passes[0] = it; }",
    "endless with break": f"{HEAD} int it = 0; for (;;) {{ double err = 0; {RELAX}"
    f" if (err < tol || it > 7) break; {COPY} it++; }} passes[0] = it; }}",
    "no pass": f"{HEAD} double err = -1; int it = 0; while (err > 0) {{ err = 0; {RELAX} {COPY} it++; }}"
    " passes[0] = it; }",
    "nested": f"{HEAD} double err = 1; int it = 0, k = 0; while (it < 4) {{ k = 0;"
    " while (err > tol / (it + 1) && k < 3)"
    f" {{ err = 0; {RELAX} {COPY} k++; }} it++; for (int j = 0; j < n; j++) a[0][j] += k; err = it; }}"
    " passes[0] = it + 10 * k; }",
    "condition of an array": """
void f(int n, int x[n], int y[n]) {
  while (x[n - 1] > 0 && y[0] != 77) {
    for (int i = 0; i < n; i++) x[i] -= i + 1;
    for (int i = 1; i < n; i++) y[i] = x[i - 1] + y[i];
  }
}""",
    "values between kernels": """
void f(int n, int x[n], int y[n]) {
  int t = 3, last = 0, odd = 0;
  while (t) {
    int s = t * t;
    for (int i = 0; i < n; i++) { int u = x[i] + s; y[i] += u * last; x[i] = u; }
    last = x[n / 2];
    if (last & 1) { odd++; for (int i = 0; i < n; i++) y[i] ^= odd; } else y[0]++;
    t--;
  }
  y[n - 1] = last + 100 * odd;
}""",
    "in a loop": """
void f(int n, int x[n], int y[n][n]) {
  for (int k = 0; k < n; k++) {
    int left = k;
    while (left > 0) { for (int i = 0; i < n; i++) { y[k][i] += x[i] * left; x[i] ^= left; } left -= 2; }
  }
}""",
}  # fmt: skip


def case(name: str, lines: tuple[str, ...] = ()) -> Case:
    text = f"{PROGRAMS[name]}\n"
    codelet = load(text).codelet
    sizes: dict[str, int | float] = {p.name: {"n": 9, "tol": 0.05}.get(p.name, 9) for p in codelet.params}
    return Case(name, text, [cross_check.arguments(codelet, sizes, seed) for seed in (1, 2)], lines, tolerance=1e-12)


@pytest.mark.parametrize(
    ("name", "outline"),
    [("while", ["one thread", "host while err > tol && it < 9", "  one thread, in the thread i, j", "  grid i, j",
                "  one thread", "one thread"]),
     ("for with break", ["one thread", "host it", "  one thread", "  host if on", "    one thread, in the thread i, j",
                         "    grid i, j", "    one thread", "one thread"])],
)  # fmt: skip
def test_the_host_runs_the_loop(name: str, outline: list[str]) -> None:
    lines = summarize_plan(lower(schedule(Analysis(load(f"{PROGRAMS[name]}\n").codelet), []).codelet, blocks=True))
    assert [line.partition(":")[0] for line in lines[:-1]] == outline


@pytest.mark.parametrize("lines", [(), ("loop 3: parallel",), ("loop 3: rfactor 2",)])
def test_a_target_that_reads_nothing_has_one_thread(lines: tuple[str, ...]) -> None:
    codelet = schedule(Analysis(load(f"{PROGRAMS['do']}\n").codelet), parse_lines(lines)).codelet
    plan = finish(lower(codelet, blocks=True), Machine(blocks=True))
    assert not data_decide(plan)
    assert [(k.grid, k.team) for k in plan.kernels] == [((), None)]


def test_launches_are_counted_where_data_decide() -> None:
    """Batches go on until one makes fewer launches than asked; a CPU's run that is told to stop has not ended."""
    left = iter([1, 2, 3, 0])
    assert run_in_batches(lambda most: (min(most, next(left)), 1.0, 1.0), TimeLimit(1e9), None) == PartialRun(3.0, 6, 6)
    ran = run_in_batches(lambda most: (most, 9.0, 9.0), TimeLimit(1.0), None)
    assert ran.launched < ran.launches


LINES = {
    "while": ("loop 2: distribute", "loop 3.2: parallel"),
    "do": ("loop 3: rfactor 2",),
    "for with break": ("loop 3: parallel", "codelet: grid blocksize 32x4"),
    "endless with break": ("loop 2: distribute", "loop 3.2: rfactor 3"),
    "values between kernels": ("loop 2: unroll 2, split",),
    "nested": ("loop 3: distribute", "loop 5: unroll 2, jam"),
}


@pytest.mark.wide
@pytest.mark.simulator
def test_directives_in_passes(tmp_path: Path) -> None:
    assert all_targets.wrong([case(name, lines) for name, lines in LINES.items()], tmp_path) == []


@pytest.mark.wide
@pytest.mark.simulator
def test_passes_compute_what_gcc_computes(tmp_path: Path) -> None:
    assert all_targets.wrong([case(name) for name in PROGRAMS], tmp_path) == []
