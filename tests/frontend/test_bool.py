"""bool is a type of its own: what becomes one is 1 where it is not zero, and it is an int in arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import looptune
from looptune.core.errors import UsageError
from looptune.frontend import load
from looptune.ir import c_printer
from looptune.lower.pipeline import lower
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check, cuda_c_on_cpu
from tests.helpers.cross_check import Arguments

TEXT = """\
#include <stdbool.h>
void f(int n, bool flag, bool m[n], int a[n], int b[n], float x[n], int c[n], double d[n], unsigned char u[n], int r[n])
{
  bool any = 0;
  for (int i = 0; i < n; i++) {
    bool t = a[i] & 256;
    b[i] = t ? 1 : 0;
    c[i] = (bool)x[i];
    bool q = d[i];
    q++;
    r[i] = q + (bool)b[i] + flag;
    q--;
    r[i] += 10 * q + 100 * !q + 1000 * (t == flag) + 10000 * -t + 100000 * ~q;
    m[i] += u[i];
    m[i] = 9 * m[i];
    t |= 6;
    t <<= 2;
    r[i] += 7 * t;
    x[i] = m[i];
    d[i] = t / 2.0;
    a[i] = a[t] + (_Bool)d[i];
    if (m[i] && !t)
      u[i] = 3;
    m[i] = m[i] && u[i] > 1;
  }
  for (int i = 0; i < n; i++)
    any += a[i] > 5;
  b[0] = any;
}
"""


def arguments() -> Arguments:
    n = 6
    return {
        "n": n,
        "flag": 1,
        "m": np.array([1, 0, 1, 0, 0, 1], bool),
        "a": np.array([256, 0, 768, 1, -256, 2], np.int32),
        "b": np.zeros(n, np.int32),
        "x": np.array([0.5, 0, -0.25, np.nan, np.inf, 1e-30], np.float32),
        "c": np.zeros(n, np.int32),
        "d": np.array([0.25, 0, -0.0, 5, 0, 2.0**40]),
        "u": np.array([0, 0, 2, 255, 0, 1], np.uint8),
        "r": np.zeros(n, np.int32),
    }


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    return cross_check.by_gcc(TEXT, load(TEXT).codelet, arguments(), tmp_path_factory.mktemp("gcc"))


def same(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    for name, want in wanted.items():
        np.testing.assert_array_equal(found[name], want, err_msg=name)


def test_the_interpreter_and_the_c_that_is_printed(wanted: dict[str, np.ndarray], tmp_path: Path) -> None:
    """Both convert as gcc does, and the function keeps its signature."""
    codelet = load(TEXT).codelet
    same(cross_check.interpreted(codelet, arguments()), wanted)
    printed = c_printer.function(codelet)
    assert "_Bool flag, _Bool m[n]" in printed
    same(cross_check.by_gcc(printed, codelet, arguments(), tmp_path), wanted)


@pytest.mark.wide
@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
def test_cuda_c(wanted: dict[str, np.ndarray], tmp_path: Path) -> None:
    """Arrays and parameters are C++'s bool."""
    codelet = load(TEXT).codelet
    case = cuda_c_on_cpu.Case("bool", lower(schedule(Analysis(codelet), parse_lines(())).codelet), codelet, arguments())
    same(cuda_c_on_cpu.run([case], tmp_path)["bool"], wanted)


def test_a_processor_and_arrays_of_bytes(wanted: dict[str, np.ndarray]) -> None:
    """np.bool_ and uint8 arrays are accepted; a byte that is no truth value is refused."""
    compiled = looptune.compile(TEXT, target="numba-cpu")
    given = arguments()
    compiled(*given.values())
    same(cross_check.arrays(given), wanted)
    given = arguments() | {"m": np.array([1, 0, 1, 0, 0, 1], np.uint8)}
    compiled(*given.values())
    same(cross_check.arrays(given), wanted)
    with pytest.raises(UsageError, match="m is an array of bool: its elements are 0 and 1, not 2"):
        compiled(*(arguments() | {"m": np.full(6, 2, np.uint8)}).values())
