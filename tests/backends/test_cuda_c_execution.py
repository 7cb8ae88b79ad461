"""What emitted CUDA C computes is what the loops do, on a processor; ``test_opencl`` runs some of it as OpenCL C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests import programs
from tests.helpers import cross_check, cuda_c_on_cpu
from tests.helpers.cuda_c_cases import TOLERANCE, cases


def check(some: Sequence[cuda_c_on_cpu.Case], found: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    tolerances = {p.name: max(p.tolerance, TOLERANCE) for p in programs.ALL}
    wrong = {}
    for case in some:
        want = cross_check.interpreted(case.codelet, case.arguments)
        off = cross_check.off(want, found[case.name], tolerances.get(case.name, TOLERANCE))
        if off is not None:
            wrong[case.name] = off
    assert not wrong, "\n".join(f"{name}: {off}" for name, off in wrong.items())


@pytest.mark.wide
@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long)])
def test_cuda_c_means_what_the_loops_do(part: int, tmp_path: Path) -> None:
    """Threads of a block in a shuffled order from barrier to barrier, copies as late as they may come."""
    assert len({case.name for case in cases()}) == len(cases())
    some = cases()[part::3]
    check(some, cuda_c_on_cpu.run(some, tmp_path))
