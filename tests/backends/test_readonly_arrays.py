"""Arrays that a kernel only reads: Numba is told that no store is to them, and only of those."""

from __future__ import annotations

import re

import pytest

from looptune.frontend import load
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check

pytestmark = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")

UPDATE = """
void f(int n, int m, float A[n][m], float q[n], float r[m]) {
  for (int j = 0; j < m; j++)
    for (int i = 0; i < n; i++) A[i][j] -= q[i] * r[j];
}
"""
CHANGED = """
void f(int n, float x[n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] = 2 * x[i];
  for (int j = 0; j < n; j++) x[j] = 2 * y[j];
}
"""


def planned(text: str, *lines: str) -> Plan:
    return lower(schedule(Analysis(load(text).codelet), parse_lines(lines)).codelet, blocks=True)


def accesses(text: str, *lines: str) -> list[list[str]]:
    """Of each kernel, in the order of its PTX: loads that may be moved before stores, other loads, stores."""
    ptx = targets.ptx("numba-cuda", planned(text, *lines), "sm_90")
    found = [re.findall(r"\b(ld\.global\.nc|ld\.global|st\.global)\b", part) for part in ptx.split(".entry")[1:]]
    return [["store" if a == "st.global" else "moves" if a.endswith("nc") else "load" for a in part] for part in found]


def test_unrolled_copies_need_not_wait_for_each_other() -> None:
    """Of four rows a thread, only what is loaded of the array that is written stays behind the stores before it."""
    lines = ("nest j: permute i, j", "loop i: unroll 4, guarded, jam")
    (kernel,) = accesses(UPDATE, *lines)
    assert kernel.count("load") == kernel.count("store") >= 4, "each element of A is read and written once"
    assert kernel.count("moves") >= 5, "of q four elements and of r one"


def test_what_is_written_is_read_in_its_order() -> None:
    """In each kernel of its own: the array that one reads the next writes."""
    assert accesses(CHANGED) == [["moves", "store"], ["moves", "store"]]
    text = CHANGED.replace("y[i] = 2 * x[i]", "y[i] = 2 * x[i] + y[i]")
    assert sorted(accesses(text)[0]) == ["load", "moves", "store"]


def test_signatures_say_which_arrays_are_read() -> None:
    """In a module that ``looptune build`` writes too."""
    from looptune.backends.numba_cuda.backend import parts

    kinds = [types for _, types in parts(planned(CHANGED)).kernels.values()]
    assert kinds == [
        ("float32[::1] readonly", "float32[::1]", "uint32"),
        ("float32[::1]", "float32[::1] readonly", "uint32"),
    ]


def test_numba_is_as_it_was() -> None:
    """Afterwards, after an exception too."""
    from numba.cuda.core.callconv import CUDACallConv

    from looptune.backends.numba_cuda.noalias import noalias_readonly

    def fail() -> None:
        with noalias_readonly():
            assert CUDACallConv.decorate_function is not own
            raise ZeroDivisionError

    own = CUDACallConv.decorate_function
    with pytest.raises(ZeroDivisionError):
        fail()
    assert CUDACallConv.decorate_function is own
