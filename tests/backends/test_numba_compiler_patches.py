"""Numba's slow look-ups, replaced while a kernel compiles: the same code comes out, and Numba is as it was."""

from __future__ import annotations

import contextlib
import re

import pytest

from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check
from tests.helpers.paths import POLYBENCH

pytestmark = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")


def ptx(name: str, *lines: str) -> str:
    codelet = load(POLYBENCH / f"{name}.c").codelet
    sizes = dict.fromkeys(("ni", "nj", "nk", "m", "n", "height", "width", "iterations"), 64)
    done = schedule(Analysis(codelet), parse_lines(lines), sizes)
    text = targets.ptx("numba-cuda", lower(specialize(done.codelet, sizes), blocks=True), "sm_90")
    # Numba numbers what it compiles, in comments and in names.
    names: dict[str, str] = {}
    plain = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"_?_ZN\w+|_cudapy_smem_\d+", lambda found: names.setdefault(found[0], f"name{len(names)}"), plain)


@pytest.mark.wide
@pytest.mark.sampled(60, "wide")
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("2dconv", ("loop i: unroll 3, contiguous, guarded",)),
        ("gemm", ("loop i: unroll 4, jam", "loop j: unroll 4, jam", "loop k: tile k:16", "loop k: stage A, B")),
        pytest.param("bp_stereo", (), marks=pytest.mark.long),
        ("gramschm", ()),
    ],
)
def test_the_same_code_comes_out(name: str, lines: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Large blocks, arrays of a thread's own, teams and branches."""
    sooner = ptx(name, *lines)
    monkeypatch.setattr("looptune.backends.numba_cuda.backend.patched_compiler", contextlib.nullcontext)
    assert sooner == ptx(name, *lines)
    assert ".entry" in sooner


def test_numba_is_as_it_was() -> None:
    """Afterwards, after an exception too; what a class has inherited it inherits again."""
    from numba.core.types.functions import BaseFunction
    from numba.cuda.core import ir
    from numba.cuda.lowering import Lower

    from looptune.backends.numba_cuda.compiler_patches import patched_compiler

    def state() -> list[object]:
        classes = (BaseFunction, ir.Var, ir.Assign, Lower)
        names = ("get_call_type", "__eq__", "list_vars", "_find_singly_assigned_variable")
        return [vars(c).get(n) for c in classes for n in names]

    def fail() -> None:
        with patched_compiler(False):
            assert all(new is not old for new, old in zip(state(), before, strict=True) if old is not None)
            raise ZeroDivisionError

    before = state()
    with pytest.raises(ZeroDivisionError):
        fail()
    assert state() == before
