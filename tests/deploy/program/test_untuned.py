"""Codelets that were not tuned: the version that the cost model predicts to be fastest."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.deploy.program.untuned import guess, warning
from looptune.frontend import Unit, load_each
from looptune.schedule.analysis import Analysis
from tests.helpers.paths import POLYBENCH
from tests.helpers.whole_programs import build

ARCHITECTURES = ("sm_80", "sm_90")


def unit(path: Path) -> Unit:
    ((_, found),) = load_each(path).codelets
    assert isinstance(found, Unit)
    return found


def test_a_product_is_blocked() -> None:
    """A nest without directives gets those of a space derived from it, if they are predicted to be much faster."""
    product = unit(POLYBENCH / "c" / "gemm.c")
    found = guess(product, Analysis(product.codelet), ARCHITECTURES)
    assert found is not None
    assert "tensor" in found.directives
    assert found.predicted_us < found.default_us / 10
    assert found.device == "NVIDIA H200"


def test_directives_of_the_file_are_kept() -> None:
    """Somebody has chosen them."""
    own = unit(POLYBENCH / "gemm.c")
    assert guess(own, Analysis(own.codelet), ARCHITECTURES) is None


def test_a_version_that_would_be_slower_than_the_loops_is_said() -> None:
    """A launch for each operation, or one thread for all; nothing is said of a version that has threads enough."""
    chain = unit(POLYBENCH / "c" / "cholesky.c")
    said = warning(chain, Analysis(chain.codelet), "", ARCHITECTURES)
    assert said.startswith("cholesky is predicted to take ")
    assert "LOOPTUNE_DEVICE=none" in said
    product = unit(POLYBENCH / "c" / "gemm.c")
    assert not warning(product, Analysis(product.codelet), "", ARCHITECTURES)


@pytest.mark.sampled(3)
@pytest.mark.wide
@pytest.mark.parametrize("name", ["doitgen", "jacobi-2d", "trmm"])
def test_a_predicted_version_computes_the_same(name: str, tmp_path: Path, driver: Path) -> None:
    """With directives for the sizes of the program, also where these are small."""
    program = build([POLYBENCH / "c" / f"{name}.c"], tmp_path, driver, ["-DSMALL_DATASET"])
    ran = program.on_device(LOOPTUNE_VERBOSE=1)
    assert "predicted to be fastest" in ran.said
    checked = program.on_device(LOOPTUNE_CHECK=1)
    assert checked.out == program.plain().out
    assert "differ" not in checked.said
    assert "all calls agree" in checked.said
