"""Building for a GPU without one: versions share the kernels in which they do not differ."""

from __future__ import annotations

from pathlib import Path

import oracle
import pytest

from looptune import targets
from looptune.frontend import load
from looptune.frontend.placed import parse_lines
from looptune.mapping import Plan, plan
from looptune.schedule import Analysis, schedule

pytestmark = pytest.mark.skipif(not oracle.CUDA, reason="needs the package numba-cuda")

TWO = """
void two(int n, float x[n], float y[n]) {
  for (int i = 0; i < n; i++) x[i] = 2 * y[i];
  for (int j = 0; j < n; j++) y[j] = x[n - 1 - j];
}
"""


def planned(*lines: str) -> Plan:
    return plan(schedule(Analysis(load(TWO).codelet), parse_lines(lines)).codelet)


def test_an_unchanged_kernel_is_compiled_once(tmp_path: Path) -> None:
    """Unrolling one of two loops compiles one kernel more; a build repeated compiles nothing."""
    backend = targets.backend("numba-cuda", tmp_path)
    first = backend.build(planned())
    kept = set(tmp_path.glob("*.cubin"))
    assert len(kept) == 2
    second = backend.build(planned("loop j: unroll 2, guarded"))
    assert len(set(tmp_path.glob("*.cubin")) - kept) == 1
    assert first.objects["two_0"] == second.objects["two_0"]
    assert first.objects["two_1"] != second.objects["two_1"]
    again = targets.backend("numba-cuda", tmp_path).build(planned())
    assert (again.objects, again.resources) == (first.objects, first.resources)
    assert len(list(tmp_path.iterdir())) == 3
