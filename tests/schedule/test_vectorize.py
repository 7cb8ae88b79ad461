"""``vectorize``: what a thread accesses side by side is one access, where it is aligned; and what has to be aligned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from looptune.backends.codegen.memory_ops import aligned, is_vectorized
from looptune.cli.main import cli
from looptune.core.errors import DirectiveError
from looptune.deploy import build
from looptune.frontend import load
from looptune.ir.specialize import specialize
from looptune.lower.pipeline import lower
from looptune.lower.plan import Plan
from looptune.runtime import targets
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check, synthetic_database
from tests.helpers.built_modules import imported

COPY = """void f(int n, int m, float A[n][m], float B[n][m], float s[n])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            B[i][j] = 2 * A[i][j];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            s[i] += A[i][j];
}
"""
STENCIL = """void f(int n, int m, float A[n][m], float B[n][m])
{
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < m - 1; j++)
            B[i][j] = A[i - 1][j - 1] + A[i - 1][j + 1] - 2 * A[i][j] + 3 * A[i][j + 1] + A[i + 1][j - 1];
}
"""
LINES = ("loop 2: vectorize 4",)
SUMS = ("loop 4: vectorize 4", "loop 4: parallel")
cuda = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")


def planned(*lines: str, m: int = 64, text: str = COPY) -> Plan:
    sizes = {"n": 32, "m": m}
    return lower(
        specialize(schedule(Analysis(load(text).codelet), parse_lines(lines), sizes).codelet, sizes), blocks=True
    )


def vectors(target: str, made: Plan) -> list[str]:
    """The wide accesses to global memory in what the compiler makes."""
    return re.findall(r"(?:ld|st)\.global[.nc]*\.v\d\.\w+", targets.ptx(target, made, "sm_90"))


@pytest.mark.sampled(9, "wide")
@cuda
@pytest.mark.parametrize("target", ["numba-cuda", "cuda-c"])
def test_neighbours_are_one_access(target: str) -> None:
    """Loads and stores of the grid's threads, and the loads of a team that adds up; two doubles are as wide."""
    found = vectors(target, planned(*LINES))
    assert [v.split(".")[0] for v in found] == ["ld", "st"]
    assert {v.rsplit(".", 2)[1] for v in found} == {"v4"}
    assert any(v.startswith("ld.") and ".v4." in v for v in vectors(target, planned(*SUMS)))
    double = COPY.replace("float", "double")
    assert {v.rsplit(".", 2)[1] for v in vectors(target, planned(*LINES, text=double))} == {"v2"}


@cuda
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_wide_loads_of_what_is_only_read_go_through_its_cache(dtype: str) -> None:
    """In CUDA C as in Numba: an assumption about the address would hide that nobody writes the array."""
    made = planned("loop j: vectorize 4, guarded", text=STENCIL.replace("float", dtype))
    for target in ("numba-cuda", "cuda-c"):
        found = [v for v in vectors(target, made) if v.startswith("ld.")]
        assert found
        assert all(v.startswith("ld.global.nc.v") for v in found), target


@cuda
@pytest.mark.parametrize("target", ["numba-cuda", "cuda-c"])
def test_none_where_rows_are_not_aligned(target: str) -> None:
    """Rows of 63 elements begin anywhere; nor without the directive."""
    assert vectors(target, planned(*LINES, m=63)) == []
    assert vectors(target, planned("loop 2: unroll 4, contiguous, jam")) == []


@pytest.mark.wide
@cuda
@pytest.mark.parametrize("m", [64, 66, 61])
def test_the_tail_is_done_too(m: int, tmp_path: Path) -> None:
    """In a simulated GPU, rows that four divides and others; the last elements are another kernel's."""
    programs = []
    made = planned(*LINES, *SUMS, m=m)
    given = cross_check.arguments(load(COPY).codelet, {"n": 32, "m": m})
    programs.append(cross_check.Emitted(str(m), targets.backend("numba-cuda", None).emit(made), "f", given))
    (got,) = cross_check.simulated(programs, tmp_path).values()
    want = cross_check.interpreted(load(COPY).codelet, given)
    assert cross_check.off(want, {**want, **got}) is None


def test_without_a_number_it_is_for_what_others_bring_together() -> None:
    """All kernels of the codelet, or one loop's; and the arrays that have to be aligned are those."""
    assert aligned(planned("codelet: vectorize")) == ("A", "B", "s")
    assert aligned(planned("loop 1: unroll 2, jam", "loop 1: vectorize")) == ("A", "B")
    assert aligned(planned("loop 2: unroll 4, jam")) == ()


def test_it_is_unroll_and_more() -> None:
    """One loop takes either; a loop in the nest may be named."""
    inner = planned("loop 1: vectorize j:4").codelet
    assert inner == planned("loop 2: unroll 4, jam").codelet
    with pytest.raises(DirectiveError, match="one loop takes either"):
        planned("loop 2: vectorize 4", "loop 2: unroll 2")


@pytest.mark.parametrize(
    ("target", "word"),
    [("numba-cuda", "arrays_are_aligned()"), ("cuda-c", "__builtin_assume("), ("opencl", None), ("numba-cpu", None)],
)
def test_files_say_it(target: str, word: str | None) -> None:
    """What compiles for a GPU of NVIDIA is told; others look for vectors themselves."""
    if target in ("numba-cuda", "cuda-c") and not cross_check.CUDA:
        pytest.skip("needs the package numba-cuda")
    text = targets.backend(target, None).emit(planned(*LINES))
    assert (word is not None and word in text) == (word is not None)
    plain = targets.backend(target, None).emit(planned("loop 2: unroll 4, jam"))
    assert word is None or word not in plain
    assert word is not None or "begins at a multiple" not in text
    if target == "cuda-c":
        assert "cudaErrorMisalignedAddress" in text


def test_it_is_written_back(tmp_path: Path) -> None:
    """What ``transform`` prints is read as the same."""
    path, again = tmp_path / "f.c", tmp_path / "g.c"
    path.write_text(COPY)
    said = CliRunner().invoke(cli, ["transform", str(path), "--directive", LINES[0]])
    assert said.exit_code == 0, said.output
    again.write_text(said.stdout)
    first, *_, last = lower(schedule(Analysis(load(again).codelet), ()).codelet).kernels
    assert (is_vectorized(first), is_vectorized(last)) == (True, False)


@pytest.mark.wide
@cuda
def test_what_ships_has_it(tmp_path: Path) -> None:
    """A module's kernels make the same accesses, and it asks for aligned arrays."""
    unit = load(COPY)
    at = synthetic_database.context(unit, {"n": 32, "m": 64})
    db = synthetic_database.keep(tmp_path / "db", at, {"": 9.0, LINES[0]: 5.0})
    (tmp_path / "made.py").write_text(build.as_python(unit, db, "auto", ""))
    made = imported(tmp_path / "made.py")
    texts = [made.ptx(k, s, "sm_90") for k, s in made.SIGNATURES.items()]
    assert any("st.global.v4.f32" in text for text in texts)
    assert re.search(r"wide=.*A.*B", (tmp_path / "made.py").read_text()) is not None
