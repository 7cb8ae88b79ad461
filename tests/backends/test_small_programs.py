"""Programs with little in them, and directives upon directives: nothing that C accepts ends in a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import looptune
from looptune.backends.numba_cuda.backend import parts
from looptune.core.errors import LooptuneError
from looptune.frontend import load
from looptune.ir import c_printer
from looptune.lower.pipeline import lower
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import all_targets, cross_check
from tests.helpers.all_targets import Case

NOTHING = (
    "void f(int *b)\n{ int a; for (int i = 0; i < 10; i++) a = 5; }\n",
    "void f(int *b)\n{ for (int i = 0; i < 10; i++) ; }\n",
    "void f(int n, int *b)\n{ for (int i = 0; i < n; i++) for (int j = i; j < n; j++) { } }\n",
    "void f(int n, int *b)\n{ for (int i = 0; i < n; i++) { int s = 0; for (int j = 0; j < i; j++) s += j; } }\n",
)
DIRECTIVES = (
    "unroll 2", "unroll 2, split, guarded", "unroll 3, jam", "tile 4", "parallel", "noParallel", "fullunroll",
    "box", "grid blocksize 32x4", "rfactor 4", "vectorize", "overlap 2", "persistent", "pack", "swizzle 4", "stage b",
    "maxregs 32", "distribute", "factor", "fold",
)  # fmt: skip


@pytest.mark.parametrize("text", NOTHING)
@pytest.mark.parametrize("directive", DIRECTIVES)
def test_loops_with_nothing_in_them(text: str, directive: str, tmp_path: Path) -> None:
    """Dead values and empty bodies, under every directive: done or refused, and written for every target."""
    for loop in ("1", "2") if "j" in text else ("1",):
        try:
            done = schedule(Analysis(load(text).codelet), parse_lines([f"loop {loop}: {directive}"])).codelet
        except LooptuneError:
            continue
        assert c_printer.function(done)
        for target in ("numba-cpu", "cuda-c", "opencl"):
            assert targets.emit(target, lower(done, blocks=target != "numba-cpu"), tmp_path)


ALONE = (
    "void f(void)\n{ int a[10]; for (int i = 0; i < 100; i++) { a[0] = i; a[1] = a[0]; } }\n",
    "void f(void)\n{ int a[10]; for (int i = 0; i < 10; i++) a[i] = i; for (int i = 0; i < 10; i++) a[i] += a[0]; }\n",
    "void f(void)\n{ float s = 0; for (int i = 0; i < 10; i++) s += i; }\n",
)


@pytest.mark.wide
def test_functions_without_parameters_run() -> None:
    """Nothing goes in and nothing comes out, in machine code as well."""
    for text in ALONE:
        looptune.compile(text, target="numba-cpu")()


GEMM = """
void gemm(int n, int s_1, long C[n][n], long A[n][n], long B[n][n])
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      long s = s_1, s_2[2];
      s_2[0] = 1;
      for (int k = 0; k < n; k++)
        s += A[i][k] * B[k][j];
      C[i][j] = s + s_2[0];
    }
}
"""


@pytest.mark.wide
def test_copies_of_copies_have_names_of_their_own(tmp_path: Path) -> None:
    """Jammed copies of jammed copies, beside names of the user's that look like theirs."""
    given: cross_check.Arguments = {"n": 7, "s_1": 3, "C": np.zeros((7, 7), np.int64)}
    given |= {"A": np.arange(49, dtype=np.int64).reshape(7, 7), "B": np.arange(49, dtype=np.int64).reshape(7, 7) % 5}
    cases = []
    for i, j in ((3, 3), (4, 4), (2, 12), (5, 2)):
        lines = [f"loop i: unroll {i}, jam", f"loop j: unroll {j}, jam"]
        cases.append(Case(f"{i} x {j}", GEMM, [given], lines, all_targets.QUICK))
    assert not all_targets.wrong(cases, tmp_path)


MEMORY = {
    "triangle": (
        """
void f(int n, int k0, float C[n][n], float A[n][k0])
{
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) {
      float s = 0;
      for (int k = 0; k < k0; k++)
        s += A[i][k] * A[j][k];
      C[i][j] = s;
    }
}
""",
        ["nest 1: permute j, i, k", "loop 2: unroll 2, jam"],
    ),
    "scalar in memory": (
        """
void f(int n, int m, double A[m], double B[n])
{
  double s = 2;
  for (int k = 0; k < n; k++)
    for (int i = 0; i < 2; i++)
      if (k > m)
        s = B[k] + i;
  for (int k = 0; k < m; k++)
    A[k] = 1;
  B[0] = s;
}
""",
        [],
    ),
}


RUNNING = (
    "double r = 0; for (int i = 0; i < 16; i++) { if (i > 3) r += x[i]; if (i > 3) y[0][i] = r; }",
    "for (int j = 0; j < 4; j++) { double r = 0; for (int i = 0; i < 16; i++) "
    "{ if (i > j) r += x[i]; if (i > j) y[j][i] = r; } }",
    "double r = 1; for (int i = 0; i < 16; i++) { if (i % 3 == 1) r = x[i]; if (i % 3 == 1) r += x[i]; "
    "if (i % 3 == 1) y[1][i] = r; }",
)


@pytest.mark.wide
def test_a_running_sum_counts_where_its_condition_holds(tmp_path: Path) -> None:
    """Iterations whose condition is false add nothing, where the sum goes on from one to the next."""
    cases = []
    for k, body in enumerate(RUNNING):
        text = f"void f(double x[16], double y[4][16])\n{{ {body} }}\n"
        given = [cross_check.arguments(load(text).codelet, {})]
        cases.append(Case(f"{k}", text, given, (), all_targets.QUICK))
    assert not all_targets.wrong(cases, tmp_path)


@pytest.mark.wide
@pytest.mark.parametrize("name", MEMORY)
def test_what_is_read_ahead_may_be_a_scalar_in_memory(name: str, tmp_path: Path) -> None:
    """Where a condition guards a sum, arrays of any shape are looked at, scalars in device memory too."""
    text, lines = MEMORY[name]
    codelet = load(text).codelet
    sizes = ({"n": 5, "k0": 3}, {"n": 8, "k0": 4}) if "k0" in text else ({"n": 7, "m": 3}, {"n": 3, "m": 5})
    given = [cross_check.arguments(codelet, s) for s in sizes]
    assert not all_targets.wrong([Case(name, text, given, lines, all_targets.QUICK)], tmp_path)


CONVOLUTION = """
void conv(int n, int q, long A[n + q], long B[q])
{
  for (int i = 0; i < n; i++)
    for (int j = i; j < q + i; j++)
      A[j] += B[j - i];
}
"""


@pytest.mark.wide
def test_sums_in_loops_that_begin_at_a_variable(tmp_path: Path) -> None:
    """What a loop reduces is named in its own variables after it and a loop inside have become copies."""
    given: list[cross_check.Arguments] = [
        {"n": n, "q": q, "A": np.arange(n + q, dtype=np.int64), "B": np.arange(q, dtype=np.int64) + 1}
        for n, q in ((1, 1), (4, 3), (9, 7))
    ]
    inner = ("unroll 3", "unroll 2, jam", "tile 4", "unroll 3, guarded", "unroll 2, split")
    outer = ("unroll 2", "unroll 2, jam", "tile 3", "unroll 3, split, guarded")
    cases = []
    for k, line in enumerate((*inner, *inner)):
        lines = [f"loop j: {line}", "loop i: parallel", f"loop i: {outer[k % len(outer)]}"]
        try:
            schedule(Analysis(load(CONVOLUTION).codelet), parse_lines(lines))
        except LooptuneError:
            continue
        cases.append(Case(f"{k}", CONVOLUTION, given, lines, all_targets.QUICK))
    assert len(cases) > 4
    assert not all_targets.wrong(cases, tmp_path)


FLAG = """
#include <stdbool.h>
void f(int n, float x[n], float y[n], bool B)
{
  bool u = 0, w = B;
  for (int i = 0; i < n; i++)
    u |= x[i] > 0.5f;
  for (int i = 0; i < n; i++)
    y[i] = u ? w : x[i];
}
"""


@pytest.mark.wide
def test_a_bool_between_two_kernels_is_in_device_memory(tmp_path: Path) -> None:
    """Its memory is made by a host function, in NumPy's type, which is not called as Numba's is."""
    given: list[cross_check.Arguments] = [
        {"n": 5, "x": np.full(5, x, np.float32), "y": np.zeros(5, np.float32), "B": 1} for x in (0.25, 0.75)
    ]
    assert not all_targets.wrong([Case("flag", FLAG, given)], tmp_path)


def test_a_modules_memory_for_a_bool_has_a_type_of_numpy() -> None:
    """A built module and a search make the memory of a plan from the name of its type."""
    two = schedule(Analysis(load(FLAG).codelet), ()).codelet
    host = "\n".join(parts(lower(two)).host)
    (made,) = re.findall(r"new\(1, '(\w+)'\)", host)
    assert np.dtype(made) == np.bool_
