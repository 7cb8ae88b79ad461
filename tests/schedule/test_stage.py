"""Tiles in shared memory: in the CUDA simulator they give what the loops give, and every refusal says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from looptune.backends.numba_cuda.backend import NumbaCuda
from looptune.core.errors import DirectiveError, ResourceError
from looptune.frontend import load
from looptune.frontend.directive_lines import parse_lines
from looptune.ir.specialize import specialize
from looptune.lower.passes.shared_memory import stage_tiles
from looptune.lower.pipeline import lower_to_plan
from looptune.lower.plan import Plan
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests.helpers import cross_check

pytestmark = pytest.mark.sampled(2)

simulator = pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")


@dataclass(frozen=True)
class Case:
    """A codelet, directives, and sizes to run it with; ``tiles`` are the shapes, of one version after the other."""

    text: str
    lines: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...]
    tiles: tuple[tuple[int, ...], ...]


def sized(*counts: tuple[int, ...]) -> tuple[Mapping[str, int], ...]:
    return tuple(dict(zip(("n", "m", "l"), c, strict=False)) for c in counts)


PRODUCT = """
void f(int n, int m, int l, double C[n][m], double A[n][l], double B[l][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      C[i][j] *= 3;
      for (int k = 0; k < l; k++) C[i][j] += A[i][k] * B[k][j];
    }
}
"""
ITSELF = """
void f(int n, int m, float C[n][n], float A[n][m]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < m; k++) C[i][j] += A[i][k] * A[j][k];
}
"""
STENCIL = """
void f(int n, int m, float A[n][m], float B[n][m]) {
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < m - 1; j++)
      B[i][j] = A[i][j] + 2 * (A[i - 1][j] + A[i + 1][j]) + 3 * (A[i][j - 1] + A[i][j + 1]) + A[i - 1][j - 1];
}
"""
STEPS = """
void f(int n, int m, float A[n][m], float B[n][m]) {
  for (int t = 0; t < 2; t++) {
    for (int i = 1; i < n; i++) for (int j = 0; j < m - 1; j++) B[i][j] = A[i - 1][j] + A[i][j + 1];
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] = B[i][j] / 2;
  }
}
"""
LAYERS = """
void f(int n, int m, int l, double A[n][m][l], double B[n][m][l]) {
  for (int j = 1; j < m - 1; j++)
    for (int k = 0; k < l; k++)
      for (int i = 1; i < n - 1; i++) B[i][j][k] = A[i - 1][j][k] - A[i + 1][j + 1][k] + A[i][j - 1][k];
}
"""
CUBE = """
void f(int n, int m, int l, double A[n][m][l], double B[n][m][l]) {
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < m - 1; j++)
      for (int k = 0; k < l; k++) B[i][j][k] = A[i - 1][j][k] - A[i + 1][j + 1][k] + A[i][j - 1][k];
}
"""
ACROSS = """
void f(int n, int m, int A[m][2 * n + 1], int x[m], int y[n], int s[n]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++) y[i] += A[j][2 * i + 1] * x[m - 1 - j];
    s[n - 1 - i] = x[0];
  }
}
"""
TRIANGLE = """
void f(int n, int m, double A[n][m], double S[m][m]) {
  for (int p = 0; p < m; p++)
    for (int q = p; q < m; q++) {
      S[p][q] = 0;
      for (int i = 0; i < n; i++) S[p][q] += A[i][p] * A[i][q];
      S[q][p] = S[p][q];
    }
}
"""
LINE = """
void f(int n, double x[n], double y[n])
{ for (int i = 2; i < n - 2; i++) y[i] = x[i - 2] + x[i + 2]; }
"""
BACKWARDS = """
void f(int n, double x[n], double y[n]) { for (int i = 0; i < n; i++) y[i] = x[n - 1 - i] * x[i]; }
"""
SMALL = "codelet: grid blocksize 4x2"
CASES = {
    "product": Case(PRODUCT, ("loop k: tile 4", "loop k: stage A, B", SMALL),
                    sized((4, 8, 8), (5, 7, 9), (1, 1, 1), (2, 4, 3)), ((2, 4), (4, 4))),
    "16 bytes at a time, to an edge": Case(PRODUCT, ("loop k: tile 4", "loop k: stage A, B", SMALL),
                                           sized((5, 14, 10), (3, 2, 6)), ((2, 4), (4, 4))),
    "the next one ahead": Case(
        PRODUCT, ("loop k: tile 4", "loop k: stage A, B, buffers 2", "loop i: unroll 2, jam", SMALL),
        sized((4, 8, 16), (5, 7, 9), (3, 2, 6), (1, 1, 1)), ((4, 4), (4, 4))),
    "turned": Case(
        PRODUCT, ("loop k: tile 4", "loop k: stage A, B, turned(A), unroll 4", "loop i: unroll 4, jam", SMALL),
        sized((8, 8, 8), (13, 7, 9)), ((8, 10), (4, 4))),
    "turned, the next one ahead, several at once": Case(
        PRODUCT, ("loop k: tile 6", "loop k: stage A, B, buffers 2, turned(A), unroll 4", "loop i: unroll 2, jam",
                  "loop j: unroll 2, split, jam", SMALL), sized((8, 8, 12), (5, 15, 11), (4, 8, 6), (3, 2, 5)), ()),
    "turned, in layers": Case(CUBE, ("nest i: gridify(i, j, k)", "loop i: tile 3", "loop i: stage A, turned(A)", SMALL),
                              sized((7, 5, 6), (3, 3, 1)), ()),
    "several at once": Case(PRODUCT, ("loop k: tile 6", "loop k: stage A, B, unroll 3", SMALL),
                            sized((4, 8, 12), (5, 7, 9), (3, 2, 4)), ((2, 6), (6, 4))),
    "three ahead": Case(PRODUCT, ("loop k: tile 2", "loop k: stage A, B, buffers 4", SMALL),
                        sized((4, 8, 16), (5, 7, 13), (3, 2, 4)), ((2, 2), (2, 4))),
    "ahead, row by row": Case(
        PRODUCT, ("loop i: noParallel", "loop k: tile 4", "loop k: stage B, buffers 3", SMALL), sized((3, 9, 18)), ()),
    "ahead, of a part": Case(PRODUCT, ("loop k: split 2", "loop k: tile 4", "loop k: stage A, B, buffers 2", SMALL),
                             sized((3, 5, 16), (2, 4, 9)), ()),
    "ahead, small elements": Case(
        "void f(int n, int m, short A[n][m], short x[m], short y[n])\n"
        "{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i] += A[i][j] * x[j]; }\n",
        ("loop j: tile 4", "loop j: stage x, buffers 2", SMALL), sized((9, 18)), ()),
    "one of two": Case(PRODUCT, ("loop k: tile 3", "loop k: stage B", SMALL), sized((5, 7, 9)), ((3, 4),)),
    "several elements a thread": Case(
        PRODUCT, ("loop k: tile 4", "loop k: stage A, B", "loop i: unroll 2, jam", "loop j: unroll 3, jam", SMALL),
        sized((8, 12, 8), (5, 7, 9)), ((4, 4), (4, 12))),
    "split copies": Case(
        PRODUCT, ("loop k: tile 4", "loop k: stage A, B", "loop j: unroll 2, split, jam", SMALL),
        sized((4, 16, 8), (5, 21, 9)), ()),
    "itself": Case(ITSELF, ("loop k: tile 4", "loop k: stage A", SMALL), sized((8, 8), (5, 6), (6, 12)),
                   ((2, 4), (4, 4))),
    "stencil": Case(STENCIL, ("nest i: stage A", SMALL), sized((6, 10), (9, 7), (3, 3), (2, 2)), ((4, 6),)),
    "stencil, several": Case(STENCIL, ("nest i: stage A", "loop i: unroll 3, jam", SMALL), sized((11, 10), (9, 7)), ()),
    "stencil, far copies": Case(STENCIL, ("nest i: stage A", "loop i: unroll 2, split, jam", SMALL),
                                sized((22, 10), (19, 7)), ()),
    "steps": Case(STEPS, ("loop 2: stage A", "loop 4: stage B", SMALL), sized((5, 9)), ((3, 5), (2, 4))),
    "layers": Case(LAYERS, ("loop i: tile 3", "loop i: stage A", SMALL), sized((7, 5, 6)), ()),
    "a grid of three": Case(CUBE, ("nest i: gridify(i, j, k)", "loop i: tile 3", "loop i: stage A", SMALL),
                            sized((7, 5, 6), (9, 4, 9), (3, 3, 1)), ()),
    "a grid of three, several": Case(CUBE, ("nest i: gridify(i, j, k)", "loop i: unroll 2, jam", "loop j: stage A",
                                            "loop k: box 4", SMALL), sized((7, 5, 8), (8, 6, 9)), ()),
    "across": Case(ACROSS, ("loop j: tile 4", "loop j: stage A, x", SMALL), sized((9, 8), (5, 7)), ()),
    "triangle": Case(TRIANGLE, ("nest p: gridify(p, q)", "loop i: tile 4", "loop i: stage A", SMALL),
                     sized((8, 8), (5, 7)), ((4, 2), (4, 4))),
    "triangle in a box": Case(
        TRIANGLE, ("loop q: box", "loop p: unroll 2, jam", "loop q: unroll 2, jam", "loop i: tile 4", "loop i: stage A",
                   SMALL), sized((8, 8), (5, 7), (6, 12)), ((4, 4), (4, 8))),
    "triangle in a box, ahead": Case(
        TRIANGLE, ("loop p: box 2", "loop q: box 2", "loop p: unroll 2, jam", "loop q: unroll 2, jam", "loop i: tile 4",
                   "loop i: stage A, buffers 2", SMALL), sized((12, 8), (9, 7)), ((4, 4), (4, 8))),
    "triangle in a larger box": Case(
        TRIANGLE, ("loop p: box 4", "loop q: box 2", "loop p: unroll 4, jam", "loop q: unroll 2, jam", "loop i: tile 4",
                   "loop i: stage A", SMALL), sized((8, 8), (5, 7), (3, 10)), ((4, 8), (4, 8))),
    "line": Case(LINE, ("loop i: stage x", SMALL), sized((20,), (13,), (3,)), ((12,),)),
    "backwards": Case(BACKWARDS, ("loop i: stage x", SMALL), sized((20,), (13,)), ((8,), (8,))),
    "a launch a row": Case(PRODUCT, ("loop i: noParallel", "loop k: tile 4", "loop k: stage A, B", SMALL),
                           sized((2, 7, 9)), ()),
    "parts": Case(PRODUCT, ("loop k: split 2", "loop k: tile 4", "loop k: stage A, B", SMALL),
                  sized((3, 5, 16), (2, 4, 9)), ()),
}  # fmt: skip


def planned(case: Case, sizes: Mapping[str, int] | None = None) -> Plan:
    done = schedule(Analysis(load(case.text).codelet), parse_lines(case.lines)).codelet
    return lower_to_plan(done if sizes is None else specialize(done, sizes))


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


@pytest.mark.sampled(4, "wide")
@simulator
@pytest.mark.parametrize(
    ("lines", "turned"),
    [
        (SIDE_BY_SIDE, [(2, 6, False), (16, 20, True)]),
        (("loop j: unroll 4, split, jam", *SIDE_BY_SIDE[1:]), [(2, 6, False), *[(4, 7, False)] * 4]),
        (("loop i: unroll 4, jam", *SIDE_BY_SIDE[1:]), [(4, 7, False), (8, 6, False)]),
    ],
    ids=["along x", "apart", "along y"],
)
def test_rows_that_a_thread_reads_side_by_side_are_turned(
    lines: tuple[str, ...], turned: list[tuple[int, int, bool]], tmp_path: Path
) -> None:
    """The elements of a column lie side by side, padded to an odd number of 16 bytes, and are read together."""
    case = Case(ITSELF, lines, sized((64, 12), (23, 7)), ())
    done = planned(case, case.sizes[0])
    tiles = [t for k in done.kernels if (s := stage_tiles(k, done)) is not None for t in s.tiles]
    assert [(t.rows, t.pitch, t.transposed) for t in tiles] == turned
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


REFUSED = {
    "how often it runs": (PRODUCT, ("loop k: stage A",), "the trip count of loop k is not known: tile it"),
    "threads apart": (
        "void f(int n, double L[n][n], double x[n], double y[n])\n"
        "{ for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) y[i] += L[i][j] * x[j]; }\n",
        ("loop j: tile 4", "loop j: stage x"), "not all threads of a block reach it"),
    "a guard of each thread's own": (
        PRODUCT, ("loop k: tile 4", "loop k: stage A", "loop i: unroll 2, guarded, jam"), "do not come to it together"),
    "a team of threads": (
        "void f(int n, double A[n][n], double x[n], double y[n])\n"
        "{ for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[i] += A[i][j] * x[j]; }\n",
        ("loop j: parallel", "loop j: tile 4", "loop j: stage x"), "a team of threads shares a loop that reduces"),
    "a grid ahead": (STENCIL, ("nest i: stage A, buffers 2",), "with 2 buffers it has to stand directly in a loop"),
    "alone ahead": (
        "void f(int n, double A[8][n], double x[8], double y[n])\n"
        "{ for (int i = 0; i < n; i++) for (int j = 0; j < 8; j++) y[i] += A[j][i] * x[j]; }\n",
        ("loop j: noParallel", "loop j: stage x, buffers 2"), "with 2 buffers it has to stand directly in a loop"),
    "not affine": (
        "void f(int n, int p[n], double x[n], double y[n]) { for (int i = 0; i < n; i++) y[i] = x[p[i]]; }\n",
        ("loop i: stage x",), "a subscript of it is not affine"),
    "how long": (
        "void f(int n, double *x, double y[n]) { for (int i = 0; i < n; i++) y[i] = x[i]; }\n",
        ("loop i: stage x",), "its extent must be declared"),
}  # fmt: skip


@simulator
@pytest.mark.parametrize(("text", "lines", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_staged_is_refused(text: str, lines: tuple[str, ...], message: str) -> None:
    """With the loop's place, and what to do."""
    done = lower_to_plan(schedule(Analysis(load(text).codelet), parse_lines(lines)).codelet)
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
