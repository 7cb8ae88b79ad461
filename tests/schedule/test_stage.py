"""Tiles in shared memory: in the CUDA simulator they give what the loops give, and every refusal says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.backends.numba_cuda.backend import NumbaCuda
from looptune.core.errors import DirectiveError, ResourceError
from looptune.frontend import load
from looptune.lower.passes.shared_memory import stage_tiles
from looptune.lower.pipeline import lower
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check
from tests.helpers.stage_cases import CASES, ITSELF, PRODUCT, SMALL, STENCIL, Case, planned, sized

pytestmark = pytest.mark.sampled(2)

simulator = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")


@pytest.mark.wide
@simulator
def test_what_the_loops_give(tmp_path: Path) -> None:
    """Of every case, for sizes that are constants and for sizes that are arguments."""
    programs, wants = [], {}
    for name, case in CASES.items():
        codelet = load(case.text).codelet
        for seed, sizes in enumerate(case.sizes):
            start = cross_check.arguments(codelet, sizes, seed)
            for known in (sizes, None):
                key = f"{name} {sizes}{' as arguments' if known is None else ''}"
                wants[key] = cross_check.interpreted(codelet, start)
                programs.append(cross_check.Emitted(key, NumbaCuda().emit(planned(case, known)), "f", start))
    assert cross_check.misses(programs, wants, tmp_path, 1e-6) == {}


@pytest.mark.sampled(13, "wide")
@simulator
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_tiles_are_what_a_block_reads(case: Case) -> None:
    """Shapes as worked out by hand; and machine code without local memory."""
    done = planned(case, case.sizes[0])
    tiles = [t for k in done.kernels if (s := stage_tiles(k, done)) is not None for t in s.tiles]
    assert tiles
    if case.tiles:
        assert tuple((*t.shape[:-1], t.pitch) for t in tiles) == case.tiles
    built = NumbaCuda().build(done)
    assert all(used.local_bytes == 0 for used in built.resources)
    assert sum(used.shared_bytes for used in built.resources) > 0


SIDE_BY_SIDE = ("loop j: unroll 4, jam", "loop k: tile k:6", "loop k: stage A", "codelet: grid blocksize 4x2")


@pytest.mark.wide
@simulator
@pytest.mark.parametrize(
    ("lines", "transposed"),
    [
        (SIDE_BY_SIDE, [(2, 6, False), (16, 20, True)]),
        (("loop j: unroll 4, split, jam", *SIDE_BY_SIDE[1:]), [(2, 6, False), *[(4, 7, False)] * 4]),
        (("loop i: unroll 4, jam", *SIDE_BY_SIDE[1:]), [(4, 7, False), (8, 6, False)]),
    ],
    ids=["along x", "apart", "along y"],
)
def test_rows_that_a_thread_reads_side_by_side_are_transposed(
    lines: tuple[str, ...], transposed: list[tuple[int, int, bool]], tmp_path: Path
) -> None:
    """The elements of a column lie side by side, padded to an odd number of 16 bytes, and are read together."""
    case = Case(ITSELF, lines, sized((64, 12), (23, 7)), ())
    done = planned(case, case.sizes[0])
    tiles = [t for k in done.kernels if (s := stage_tiles(k, done)) is not None for t in s.tiles]
    assert [(t.rows, t.pitch, t.transposed) for t in tiles] == transposed
    assert [t.vector_width for t in tiles if t.transposed] == [4] * sum(t.transposed for t in tiles)
    codelet, programs, wants = load(ITSELF).codelet, [], {}
    for sizes in case.sizes[1:]:
        start = cross_check.arguments(codelet, sizes)
        wants[str(sizes)] = cross_check.interpreted(codelet, start)
        programs.append(cross_check.Emitted(str(sizes), NumbaCuda().emit(planned(case, sizes)), "f", start))
    assert cross_check.misses(programs, wants, tmp_path, 1e-6) == {}


@simulator
@pytest.mark.parametrize(
    ("asked", "copies"), [("", 2), (", unroll 6", 6), (", unroll 4", 4), (", unroll 9", 6), (", unroll 64", 12)]
)
def test_so_many_iterations_are_written_out(asked: str, copies: int) -> None:
    """As many as are asked for and divide what there are; else as many as 16 bytes hold of the rows of A."""
    lines = ("loop k: tile 12", f"loop k: stage A, B{asked}", SMALL)
    text = NumbaCuda().emit(planned(Case(PRODUCT, lines, (), ()), {"n": 8, "m": 8, "l": 48}))
    sums = [line for line in text.splitlines() if line.lstrip().startswith("C_r = C_r +")]
    assert len(sums) == copies


COLUMNS = """
void f(int n, double A[n][n]) {
  for (int j = 0; j < n; j++) for (int i = 1; i < n; i++) A[i][j] += A[i - 1][j];
}
"""
REFUSED = {
    "how often it runs": (PRODUCT, ("loop k: stage A",), "the trip count of loop k is not known: tile it"),
    "threads apart": (
        "void f(int n, double L[n][n], double x[n], double y[n])\n"
        "{ for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) y[i] += L[i][j] * x[j]; }\n",
        ("loop j: tile 4", "loop j: stage x"), "not all threads of a block reach it"),
    "a guard of each thread's own": (
        PRODUCT, ("loop k: tile 4", "loop k: stage A", "loop i: unroll 2, guarded, jam"),
        "not all threads of a block reach it"),
    "a team of threads": (
        "void f(int n, double A[n][n], double x[n], double y[n])\n"
        "{ for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[i] += A[i][j] * x[j]; }\n",
        ("loop j: parallel", "loop j: tile 4", "loop j: stage x"), "a team of threads shares a loop that reduces"),
    "a grid ahead": (STENCIL, ("nest i: stage A, buffers 2",), "with 2 buffers it must be directly in a loop"),
    "alone ahead": (
        "void f(int n, double A[8][n], double x[8], double y[n])\n"
        "{ for (int i = 0; i < n; i++) for (int j = 0; j < 8; j++) y[i] += A[j][i] * x[j]; }\n",
        ("loop j: noParallel", "loop j: stage x, buffers 2"), "with 2 buffers it must be directly in a loop"),
    "not affine": (
        "void f(int n, int p[n], double x[n], double y[n]) { for (int i = 0; i < n; i++) y[i] = x[p[i]]; }\n",
        ("loop i: stage x",), "a subscript of it is not affine"),
    "a column of any length": (COLUMNS, ("loop j: stage A",), "how many elements it uses is not a number"),
    "a long column": (COLUMNS.replace("i < n", "i < 80"), ("loop j: stage A",), "more than 64 elements"),
    "how long": (
        "void f(int n, double *x, double y[n]) { for (int i = 0; i < n; i++) y[i] = x[i]; }\n",
        ("loop i: stage x",), "its extent must be declared"),
}  # fmt: skip


@simulator
@pytest.mark.parametrize(("text", "lines", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_staged_is_refused(text: str, lines: tuple[str, ...], message: str) -> None:
    """With the loop's place, and what to do."""
    done = lower(schedule(Analysis(load(text).codelet), parse_lines(lines)).codelet)
    with pytest.raises(DirectiveError, match=message) as refusal:
        NumbaCuda().emit(done)
    assert refusal.value.span.line > 0


@simulator
def test_a_tile_too_large_is_an_error_with_both_numbers() -> None:
    """48 KiB for a block."""
    case = Case(PRODUCT, ("loop k: tile 256", "loop k: stage A, B"), (), ())
    with pytest.raises(ResourceError, match="needs 81920 bytes of shared memory per block, the limit is 49152"):
        NumbaCuda().build(planned(case))


@simulator
def test_older_devices_have_no_copies_ahead() -> None:
    """A tile filled ahead is an error that names both capabilities; one at a time is none."""
    with pytest.raises(ResourceError, match="needs sm_80, this is sm_75"):
        NumbaCuda("sm_75").build(planned(CASES["the next one ahead"], CASES["the next one ahead"].sizes[0]))
    assert NumbaCuda("sm_75").build(planned(CASES["product"], CASES["product"].sizes[0])).objects
