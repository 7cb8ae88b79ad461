"""The space derived from a file's loops: it holds what won in spaces made by hand, and all of it fits the file."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from looptune.cli.main import cli
from looptune.core.errors import DirectiveError, IllegalTransform, UsageError
from looptune.frontend import load
from looptune.ir.nodes import Codelet, Loop
from looptune.ir.rewrite import walk
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.grid import BlockSize
from looptune.tune.session.find_space import find_space
from looptune.tune.space import forms, histograms
from looptune.tune.space.derive import derive
from looptune.tune.space.patterns import Patterns
from looptune.tune.space.space import Configuration, Space, parse
from tests.helpers import affine_nests
from tests.helpers.paths import POLYBENCH, POLYBENCH_C
from tests.helpers.wave_tile_cases import BATCH

FILES = sorted(p.stem for p in POLYBENCH.glob("*.c"))
LARGE = {"bp_stereo", "gramschm"}
"""Their derived spaces take long to judge."""
GPU = {
    "gemm": ("loop k: factor", "loop i: unroll 4, jam", "loop j: unroll 4, jam", "loop k: tile k:32",
             "loop k: stage A, B, buffers 2, unroll 16", "codelet: grid blocksize 16x8"),
    "2mm": ("loop 1, 4: unroll 8, jam", "loop 2, 5: unroll 8, split, vector 4, jam", "loop 3, 6: tile k:16",
            "loop 3: stage A, B, buffers 2, transposed(A), unroll 16",
            "loop 6: stage C, D, buffers 2, transposed(C), unroll 16",
            "codelet: grid blocksize 16x8"),
    "3mm": ("loop 1, 4, 7: unroll 4, jam", "loop 2, 5, 8: unroll 4, jam", "loop 3, 6, 9: rfactor 4",
            "loop 3, 6, 9: tile k:16", "loop 3: stage A, B, buffers 2, unroll 16",
            "loop 6: stage C, D, buffers 2, unroll 16", "loop 9: stage E, F, buffers 2, unroll 16",
            "codelet: grid blocksize 16x8"),
    "syrk": ("loop 3: unroll 8, jam", "loop 4: unroll 8, split, jam", "loop k: tile k:16", "loop k: stage A, buffers 2",
             "codelet: grid blocksize 16x8"),
    "syr2k": ("loop 3: unroll 8, jam", "loop 4: unroll 8, split, jam", "loop k: tile k:8",
              "loop k: stage A, B, buffers 2", "codelet: grid blocksize 16x16"),
    "half of syrk": ("loop 3: fold", "loop 3, 4: box 8", "loop 3, 4: unroll 4, jam", "loop k: tile k:16",
                     "loop k: stage A, buffers 2", "codelet: grid blocksize 16x16"),
    "half of syr2k": ("loop 3: fold", "loop 3, 4: box 8", "loop 3, 4: unroll 8, jam", "loop k: tile k:8",
                      "loop k: stage A, B, buffers 2", "codelet: grid blocksize 16x16"),
    "strips of half of syr2k": ("loop 3: fold", "loop 3, 4: box 8", "loop 3: unroll 8, jam", "loop 4: unroll 4, jam",
                                "loop k: tile k:16", "loop k: stage A, B, buffers 2, unroll 16",
                                "codelet: grid blocksize 16x8"),
    "parts of half of syrk": ("loop 3: fold", "loop 3, 4: box 8", "loop 3, 4: unroll 4, jam", "loop k: rfactor 4",
                              "loop k: tile k:16", "loop k: stage A, buffers 2, unroll 16",
                              "codelet: grid blocksize 16x16"),
    "covar": ("loop 1: gridify(i, j)", "loop 5, 6: box 8", "loop 5, 6: unroll 4, jam", "loop 7: tile i:32",
              "loop 7: stage data, buffers 2, unroll 4", "codelet: grid blocksize 16x16"),
    "corr": ("loop 1: gridify(i, j)", "loop 3: gridify(i, j)", "loop 7: distribute", "loop 8: cut",
             "loop 7.2, 8: box 8", "loop 7.2: unroll 4, jam", "loop 8: unroll 4, jam", "loop 9: tile i:32",
             "loop 9: stage data, buffers 2, unroll 4", "codelet: grid blocksize 16x16"),
    "atax": ("loop 3: parallel", "loop 2.2: parallel", "codelet: grid blocksize 32x32"),
    "bicg": ("loop 3.2: parallel", "nest 2.2: permute j, i", "loop 2.2: rfactor 64", "codelet: grid blocksize 32x4"),
    "mvt": ("loop 2: parallel", "loop 4: rfactor 64", "codelet: grid blocksize 32x4"),
    "one read of atax": ("loop 2.1: fuse", "loop 3: parallel", "loop 2.1: unroll 4, jam", "loop 2.1: rfactor 256",
                         "codelet: grid blocksize 32x16"),
    "one read of bicg": ("loop 2.1: fuse 3", "loop 3.1: fuse", "loop 3.1: parallel", "loop 2.1: unroll 4, jam",
                         "loop 2.1: rfactor 256", "codelet: grid blocksize 32x16"),
    "one read of mvt": ("nest 3: permute j, i", "loop 1: fuse", "loop 2: fuse", "loop 2: parallel",
                        "loop 1: unroll 8, jam", "loop 1: rfactor 512", "codelet: grid blocksize 32x8"),
    "gesummv": ("loop j: parallel", "codelet: grid blocksize 32x4"),
    "gramschm": ("loop 2: parallel", "loop 4: gridify(i, j)", "loop 3: parallel, team", "loop 2, 3, 5, 6: unroll 4",
                 "codelet: grid blocksize 16x64"),
    "rows of gramschm": ("loop 2: parallel", "loop 3: parallel, team", "loop 4: distribute", "loop 6: cut",
                         "loop 4.1: gridify(i, j)", "nest 4.2: permute i, j", "loop 5: unroll 4",
                         "loop 6: unroll 4, jam", "codelet: grid blocksize 32x32"),
    "3dconv": ("nest i: gridify(i, j, k)", "loop i: tile i:4", "loop k: box 32", "codelet: grid blocksize 64x4"),
    "bp_stereo": ("codelet: grid blocksize 32x2",),
    "2dconv": ("loop i: unroll 3, guarded, jam", "codelet: grid blocksize 32x8"),
    "fdtd-2d": ("loop 3, 5, 7: unroll 2, guarded, jam", "codelet: grid blocksize 128x2"),
}  # fmt: skip
"""On an H200, in the spaces of ``pragmas/``."""
CPU = {
    "gemm": ("nest i: permute i, k, j", "loop i: unroll 4, jam", "loop k: unroll 4, jam"),
    "2mm": ("nest 1: permute i, k, j", "nest 4: permute i, k, j", "loop 1, 4: unroll 4, jam",
            "loop 3, 6: unroll 4, jam"),
    "covar": ("nest 6: permute i, j2", "loop 7: unroll 8, remainder, jam"),
    "syr2k": ("loop 3: unroll 4, jam", "loop 4: unroll 2, jam"),
    "rows of corr": ("loop 7: distribute", "nest 7.3: permute j1, i, j2", "loop 7.3: unroll 4, jam",
                     "loop 9: unroll 4, jam", "loop 1, 3: unroll 16, jam", "loop 7.4: tile j1:16, j2:16"),
    "rows of covar": ("loop 5: distribute", "nest 5.2: permute j1, i, j2", "loop 5.2: unroll 4, jam",
                      "loop 7: unroll 4, jam", "loop 1: unroll 16, jam", "loop 5.3: tile j1:16, j2:16"),
    "one read of atax": ("loop 2.1: fuse", "loop 3: parallel", "loop 2.1: unroll 4, jam", "loop 2.1: rfactor 2"),
    "one read of bicg": ("loop 2.1: fuse 3", "loop 3.1: fuse", "loop 3.1: parallel", "loop 2.1: unroll 4, jam",
                         "loop 2.1: rfactor 2"),
    "one read of mvt": ("nest 3: permute j, i", "loop 1: fuse", "loop 2: fuse", "loop 2: parallel",
                        "loop 1: unroll 4, jam", "loop 1: rfactor 2"),
}  # fmt: skip
"""On two cores of a server."""


def read(name: str) -> Analysis:
    return Analysis(load(POLYBENCH / f"{name}.c").codelet)


def tree(analysis: Analysis, version: Configuration) -> Codelet | None:
    """None where it is refused."""
    try:
        return schedule(analysis, parse_lines(version.text.splitlines())).codelet
    except (DirectiveError, IllegalTransform):
        return None


def blocks(codelet: Codelet) -> list[BlockSize | None]:
    """Which ``==`` does not look at."""
    return [n.annotation(BlockSize) for n in walk(codelet.body) if isinstance(n, Loop)]


@pytest.mark.sampled(13, "wide")
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "device", "lines"),
    [
        pytest.param(n, device, lines, id=f"{n}-{device}", marks=pytest.mark.long if n in LARGE else ())
        for device, each in (("gpu", GPU), ("cpu", CPU))
        for n, lines in each.items()
    ],
)
def test_what_won_in_spaces_made_by_hand_is_there(name: str, device: str, lines: tuple[str, ...]) -> None:
    """As the same loops, on a GPU in blocks of the same shape."""
    analysis = read(name.split()[-1])
    (winner,) = parse("\n".join(lines), "winner")
    assert winner is not None
    want = tree(analysis, winner)
    assert want is not None
    space = parse(derive(analysis), "derived").on(device)
    parts = [Space((section,)) for section in space.sections]
    # Small sections first: to judge every unrolling of belief propagation's eighteen loops takes a minute.
    near = sorted((part for part in parts if part.versions < 100), key=lambda part: part.versions)
    found = (tree(analysis, v) for part in near for v in part)
    assert any(t == want and (device == "cpu" or blocks(t) == blocks(want)) for t in found if t is not None)


@pytest.mark.sampled(10, "wide")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long) if n in LARGE else n for n in FILES])
def test_every_section_fits_the_file(name: str) -> None:
    """Its first version is legal, and no section is another one's twin."""
    analysis = read(name)
    text = derive(analysis)
    sections = text.split("\nor\n")
    assert len(set(sections)) == len(sections)
    for section in sections:
        assert tree(analysis, next(iter(parse(section, "derived")))) is not None, section


@pytest.mark.sampled(4)
@pytest.mark.sampled(5, "wide")
@pytest.mark.parametrize("name", affine_nests.CODES)
def test_of_any_program(name: str) -> None:
    """PolyBench's other kernels."""
    text = derive(Analysis(load(affine_nests.CODES[name]).codelet))
    assert parse(text, "derived").versions > 50


@pytest.mark.wide
def test_scalars_that_begin_anew_are_expanded_along_all_their_loops() -> None:
    """After which isl finds the order of ludcmp in which each step updates a part of the matrix by parallel loops."""
    copies = ("loop 1: expand w", "loop 6: expand w", "loop 8: expand w", "loop 2: expand w_i", "loop 4: expand w_i")
    assert forms.nested_expansions(Analysis(load(POLYBENCH_C / "ludcmp.c").codelet)) == copies
    mine = [s for s in sections_of("ludcmp") if copies[0] in s]
    assert any({*copies, "loop 9: parallel", "loop 1.4: gridify(i, j)"} <= {*s} for s in mine)


@pytest.mark.sampled(9, "wide")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lu", "fuse:min"),
        ("cholesky", "fuse:min"),
    ],
)
def test_a_nest_that_is_not_parallel_is_scheduled(name: str, words: str) -> None:
    """The first version on a GPU has parallel loops where the text has none, or has them farther outside."""
    analysis = Analysis(load(POLYBENCH_C / f"{name}.c").codelet)
    text = derive(analysis)
    first = next(iter(parse(text, "derived").on("gpu")))
    assert first.lines[0] == f"loop 1: schedule parallel:outer, {words}"
    assert "parallel" in Patterns(analysis, (first.lines[0],)).modes.values()


@pytest.mark.wide
def test_a_nest_whose_every_loop_carries_a_dependence_begins_with_tiles_of_blocks() -> None:
    """seidel-2d has waves of tiles, each of which a block has in shared memory."""
    first = next(iter(parse(derive(Analysis(load(POLYBENCH_C / "seidel-2d.c").codelet)), "derived").on("gpu")))
    skew, wave, stage, block = first.lines
    assert (skew, stage) == ("loop 1: skew i by t, j by 4*t + 2*i", "loop 1: stage A")
    assert (wave, block) == ("loop 1: wavefront t, i, j, tile 16, 32, 64, team:j", "codelet: grid blocksize 32x16")


@pytest.mark.wide
def test_a_product_around_a_row_becomes_one_of_tiles() -> None:
    """Where the loop of a sum is around that of a row, a GPU has threads for both others, and tiles."""
    for name in ("gemm", "syrk", "syr2k"):
        text = derive(Analysis(load(POLYBENCH_C / f"{name}.c").codelet))
        sections = [s.splitlines() for s in text.split("\nor\n") if "loop 1: schedule parallel:outer, fuse:min" in s]
        assert any(line.startswith("loop 3: stage A") for section in sections for line in section), name
        assert all("for gpu" in section for section in sections), name


@pytest.mark.parametrize("kind", ["_Float16", "float"])
def test_a_product_may_add_up_in_a_scalar(kind: str) -> None:
    """As one has to of floats of 16 bits, whose sums are floats."""
    text = f"""
void f(int n, {kind} A[n][n], {kind} B[n][n], {kind} C[n][n]) {{
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {{
      float sum = 0;
      for (int k = 0; k < n; k++) sum += A[i][k] * B[k][j];
      C[i][j] = 2 * sum + C[i][j];
    }}
}}
"""
    analysis = Analysis(load(text).codelet)
    (found,) = Patterns(analysis).sums
    assert (found.product, [f.var for f in found.around], found.reused) == (True, ["i", "j"], ("A", "B"))
    first = next(s for s in derive(analysis).split("\nor\n") if "stage A, B" in s)
    lines = next(iter(parse(first, "<derived>"))).text.splitlines()
    schedule(analysis, parse_lines(lines))  # which raises an error if that is illegal


@pytest.mark.wide
def test_two_loops_that_are_a_triangle_have_threads_for_both() -> None:
    """As after the schedule of lu, whose step updates two triangles."""
    text = derive(Analysis(load(POLYBENCH_C / "lu.c").codelet))
    assert "loop 1.2: gridify(i, j)\nloop 1.3: gridify(i, j)" in text


def sections_of(name: str) -> list[list[str]]:
    """Return the lines of the sections that are not for a CPU alone."""
    text = derive(Analysis(load(POLYBENCH_C / f"{name}.c").codelet))
    sections = [section.splitlines() for section in text.split("\nor\n")]
    return [lines for lines in sections if "for cpu" not in lines]


def test_a_row_that_becomes_a_column_is_turned_in_a_tile() -> None:
    """With the loops in either order; not where what is read is written too."""
    text = "void f(int n, int m, float a[n][m], float b[m][n]) {{ for (int {0}) for (int {1}) b[j][i] = {2}; }}"
    rows, columns = "i = 0; i < n; i++", "j = 0; j < m; j++"
    for outer, inner, other in ((rows, columns, 2), (columns, rows, 1)):
        space = derive(Analysis(load(text.format(outer, inner, "a[i][j]")).codelet), device="gpu")
        turned = [s for s in space.split("\nor\n") if "transposed(a)" in s]
        assert [f"loop {other}: stage a, transposed(a)" in s for s in turned] == [True]
        assert ("permute" in turned[0]) == (outer == rows)
    assert "transposed" not in derive(Analysis(load(text.format(rows, columns, "b[i][j]")).codelet), device="gpu")


def test_of_four_parallel_loops_three_are_the_grid() -> None:
    """The innermost two and either of the others, of which a thread has several iterations; a short sum has no team."""
    text = """
void conv(float x[8][16][34][34], float w[16][16][3][3], float y[8][16][32][32]) {
  for (int b = 0; b < 8; b++) for (int o = 0; o < 16; o++) for (int i = 0; i < 32; i++) for (int j = 0; j < 32; j++)
    for (int c = 0; c < 16; c++) for (int p = 0; p < 3; p++) for (int q = 0; q < 3; q++)
      y[b][o][i][j] += x[b][c][i + p][j + q] * w[o][c][p][q];
}
"""
    space = derive(Analysis(load(text).codelet), device="gpu")
    assert "loop 1: permute o, i, j, b\nloop 2: gridify(o, i, j)\nloop 2: { unroll {8, 4}, jam | }" in space
    assert "loop 1: permute b, i, j, o\nloop 1: gridify(b, i, j)" in space
    assert "loop 7: parallel" not in space


def test_a_maximum_under_a_condition_is_a_sum_for_teams() -> None:
    """And a loop whose bounds are data is neither unrolled nor tiled."""
    text = """
void f(int n, int row[n + 1], float x[n][n], float y[n]) {
  for (int i = 0; i < n; i++) {
    float m = x[i][0];
    for (int j = 1; j < n; j++) if (x[i][j] > m) m = x[i][j];
    for (int k = row[i]; k < row[i + 1]; k++) m += k;
    y[i] = m;
  }
}
"""
    space = derive(Analysis(load(text).codelet), device="gpu")
    assert "loop 2: parallel" in space
    assert "loop 3: unroll" not in space
    assert "loop 3: { unroll" not in space


def test_each_of_many_small_problems_has_a_block() -> None:
    """With a copy of the matrix that it updates, unless its extents are no numbers."""
    for size, copied in (("7", True), ("m", False)):
        text = BATCH.replace("int m, float A[n][7][7]", f"int m, float A[n][{size}][{size}]").replace(
            "< 7", f"< {size}"
        )
        space = derive(Analysis(load(text).codelet), device="gpu")
        assert "loop 2: noParallel, team\nloop 3, 4, 5: parallel, team" in space
        assert ("loop 2: { stage A | }" in space) == copied


def test_loops_in_a_while_are_like_those_in_a_sequential_loop() -> None:
    """Sums have teams and parts, also apart from what is parallel; stencils have grids."""
    text = """void f(int n, double a[n][n], double b[n][n], double tol) { double e = 1; while (e > tol) { e = 0;
  for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++) {
    b[i][j] = a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]; double d = b[i][j] - a[i][j]; if (d > e) e = d; }
  for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++) a[i][j] = b[i][j]; } }
"""
    space = derive(Analysis(load(text).codelet)).splitlines()
    assert {"loop 3: parallel", "loop 3: rfactor {4, 16, 64}", "loop 4: unroll {2, 3, 4, 8}, guarded, jam"} <= {*space}
    assert {"loop 2: distribute", "loop 3.2: parallel"} <= {*space}


def test_loops_around_while_are_not_jammed() -> None:
    """Each copy decides for itself when it ends."""
    text = """
void f(int n, int y[n]) {
  for (int i = 0; i < n; i++) { int k = i; while (k > 1) k = k % 2 ? 3 * k + 1 : k / 2; y[i] = k; }
}
"""
    space = derive(Analysis(load(text).codelet), device="gpu")
    assert "noJam" in space
    assert "{noJam, jam}" not in space


def test_products_between_rows_have_nests_of_their_own() -> None:
    """Both loops around the products of a batch are distributed, with copies of the scalar that one of them takes."""
    text = """
void attend(int b, int n, int c, float q[b][n][c], float k[b][n][c], float s[b][n][n], float o[b][n][c]) {
  for (int h = 0; h < b; h++)
    for (int i = 0; i < n; i++) {
      for (int j = 0; j < n; j++) {
        float d = 0;
        for (int l = 0; l < c; l++) d += q[h][i][l] * k[h][j][l];
        s[h][i][j] = d;
      }
      float z = 0;
      for (int j = 0; j < n; j++) z += s[h][i][j];
      for (int j = 0; j < c; j++) {
        float a = 0;
        for (int l = 0; l < n; l++) a += s[h][i][l] * k[h][l][j];
        o[h][i][j] = a / z;
      }
    }
}
"""
    found = Patterns(Analysis(load(text).codelet)).perfect_products
    assert {*found.lines} == {"loop 1: distribute", "loop 2: distribute", "loop 1: expand z", "loop 2: expand z_h"}
    assert [(s.loop.number, s.perfect) for s in found.sums if s.product] == [(4, True), (7, True)]


def test_recurrences_of_threads_are_unrolled_in_small_blocks() -> None:
    """Before the orders that isl finds; a sum is no recurrence, and neither is what threads share."""
    text = """
void smooth(int n, double x[n][n], double y[n][n], double s[n]) {
  for (int t = 0; t < 9; t++)
    for (int i = 0; i < n; i++) {
      for (int j = 1; j < n; j++) y[i][j] = x[i][j] / (y[i][j - 1] + 1);
      for (int j = 0; j < n; j++) s[i] += y[i][j];
      for (int j = 1; j < n; j++) x[i][n - 1 - j] = y[i][j] * x[i][n - j];
    }
}
"""
    sections = [s.splitlines() for s in derive(Analysis(load(text).codelet), device="gpu").split("\nor\n")]
    (own,) = (k for k, s in enumerate(sections) if "Threads with a recurrence" in s[0])
    assert sections[own][2] == "loop 3, 5: { unroll {8, 4}, contiguous, remainder | }"
    assert "8x1" in sections[own][3]
    assert all(k > own for k, s in enumerate(sections) if any("schedule" in line for line in s))


@pytest.mark.wide
def test_what_iterations_use_one_after_the_other_gets_copies() -> None:
    """After which doitgen is a product for each r, in a grid of three dimensions."""
    copies = ["loop 1: expand sum", "loop 2: expand sum"]
    mine = [s for s in sections_of("doitgen") if copies[0] in s]
    assert any("tensor" in line for line in mine[0]), "a product comes first"
    assert any(s[:2] == copies for s in mine)
    assert any("loop 1: gridify(r, q, p)" in s and any("stage A, C4" in line for line in s) for s in mine)
    row = """
void rows(int n, int m, float A[n][m], float B[n]) {
  float row[2000];
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < m; j++) row[j] = A[i][j] * 2;
    for (int j = 0; j < m; j++) B[i] += row[j] * row[m - 1 - j];
  }
}
"""
    assert forms.expansions(Analysis(load(row).codelet)) == ("loop 1: expand row",)


@pytest.mark.wide
def test_old_values_are_copied_where_later_iterations_overwrite_them() -> None:
    """After which trmm is a product; one sequential loop of a nest is enough, and none where values flow."""
    first = sections_of("trmm")[0]
    assert "loop 1: snapshot B" in first
    assert any(line.startswith("loop 3: tensor") for line in first)
    for name in ("lu", "seidel-2d", "gemm"):
        assert forms.snapshots(Analysis(load(POLYBENCH_C / f"{name}.c").codelet)) == ()


@pytest.mark.wide
def test_a_scalar_in_a_products_way_is_expanded() -> None:
    """Both sums of symm are products then."""
    first = sections_of("symm")[0]
    lines = ["loop 1: expand temp2", "loop 2: expand temp2_i", "loop 1: schedule parallel:outer, fuse:min"]
    assert set(lines) < set(first)
    assert any(line.startswith("loop 3.1, 1.4: tensor") for line in first)


@pytest.mark.sampled(9, "wide")
@pytest.mark.parametrize("name", ["trmm", "adi", "gramschmidt", "seidel-2d", "atax"])
def test_no_copies_where_values_flow_or_iterations_write_elements_of_their_own(name: str) -> None:
    assert forms.expansions(Analysis(load(POLYBENCH_C / f"{name}.c").codelet)) == ()


@pytest.mark.wide
def test_a_loop_is_split_where_it_reaches_what_the_others_read() -> None:
    """The pieces of floyd-warshall are parallel, threads keep their elements, or a team has the pieces of each row."""
    kept, shared = sections_of("floyd-warshall")[:2]
    assert kept[2:4] == shared[1:3] == ["loop 2: splitat k, k + 1", "loop 3: splitat k, k + 1"]
    assert kept[5].startswith("loop 1: { resident ")
    assert "loop 3.1, 3.2: parallel, team" in shared
    for name in ("lu", "correlation", "jacobi-2d"):
        assert forms.splits(Analysis(load(POLYBENCH_C / f"{name}.c").codelet)) == ()
    loops = "for (int k = 0; k < n; k++) for (int i = 0; i < n; i++)"
    moved = f"void f(int n, float A[n + 3]) {{\n {loops} A[i + 1] += A[k + 3];\n}}"
    assert forms.splits(Analysis(load(moved).codelet)) == ("loop 2: splitat k + 2, k + 3",)


@pytest.mark.wide
@pytest.mark.parametrize("name", ["doitgen", "floyd-warshall", "trisolv"])
def test_all_that_is_listed_is_legal(name: str) -> None:
    """An unrolling that a dependence forbids is in no derived space."""
    analysis = Analysis(load(POLYBENCH_C / f"{name}.c").codelet)
    for version in parse(derive(analysis), "derived"):
        assert tree(analysis, version) is not None, version.text


@pytest.mark.parametrize("name", ["2mm", "jacobi-2d"])
def test_a_nest_that_is_parallel_is_not_scheduled(name: str) -> None:
    """An order with the loops of the text is no news."""
    assert "loop 1: schedule" not in derive(Analysis(load(POLYBENCH_C / f"{name}.c").codelet))


def found(text: str) -> Patterns:
    return Patterns(Analysis(load(text).codelet))


COUNTS = "void f(int n, int x[n][n], float h[64], float g[512][512]) {"
EACH = "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++)"


def test_parts_of_a_histogram_have_copies() -> None:
    """Threads of a GPU read neighbours; large copies are fewer; every histogram is divided, and nothing else."""
    two = (
        f"{COUNTS} {EACH} h[x[i][j]]++; for (int k = 0; k < 9; k++) {{ {EACH} g[x[i][j]][k] += k; g[0][0] = k; }} }}\n"
    )
    made = [s.splitlines() for s in derive(Analysis(load(two).codelet)).split("or\n# Waves")[0].split("\nor\n")]
    blocks = "codelet: grid blocksize {128x1, 32x1}"
    assert made[0][1:] == [
        "for gpu", "loop 1: permute j, i", "loop 4: permute j, i", "loop 2, 5: rfactor {1024}", blocks,
    ]  # fmt: skip
    assert made[1] == ["for gpu", "loop 1, 4: rfactor {1024}", blocks]
    assert ["for cpu", "loop 1, 4: rfactor {8, 2, 4, 16, 64}"] in made
    one = derive(Analysis(load(f"{COUNTS} {EACH} h[x[i][j]]++; }}\n").codelet))
    assert f"loop 2: rfactor {{4096, 16384, 1024}}\n{blocks}\n" in one
    assert not list(histograms.sections(found(f"{COUNTS} {EACH} h[i] += x[i][j]; }}\n")))


def test_sums() -> None:
    """Along rows and columns, around the loop that tells them apart, and of products, with what is read again."""
    patterns = found("""
void f(int n, float A[n][n], float B[n][n], float C[n][n], float x[n], float y[n], float z[n], float s[1]) {
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) y[i] += A[i][j] * x[j];
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) z[i] += A[j][i] * x[j];
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) x[j] += A[i][j] * y[i];
  for (int i = 0; i < n; i++) for (int j = i; j < n; j++) for (int k = 0; k < n; k++) C[i][j] += A[k][i] * B[k][j];
  for (int i = 0; i < n; i++) s[0] += x[i];
}
""")
    told = [
        (s.loop.number, [f.number for f in s.around], s.contiguous, s.outside_target_loop, s.product)
        for s in patterns.sums
    ]
    assert told == [
        (2, [1], True, False, False),
        (4, [3], False, False, False),
        (5, [6], False, True, False),
        (9, [7, 8], False, False, True),
        (10, [], True, False, False),
    ]
    product = patterns.sums[3]
    assert (product.reused, product.triangular) == (("A", "B"), True)
    assert patterns.vector_order(product) == ("i", "k", "j")


def test_what_stands_in_a_products_way_is_cut_off() -> None:
    """Its two loops are a grid where nothing is between them; a loop along rows that follows sums along columns is
    apart from them; where neither is so nothing is distributed."""
    patterns = found("""
void f(int n, float A[n][n], float C[n][n], float R[n], float q[n]) {
  for (int i = 0; i < n; i++) {
    C[i][i] = 1;
    for (int j = i + 1; j < n; j++) {
      C[i][j] = 0;
      for (int k = 0; k < n; k++) C[i][j] += A[k][i] * A[k][j];
    }
  }
  for (int j = 0; j < n; j++) {
    R[j] = 0;
    for (int i = 0; i < n; i++) R[j] += q[i] * A[i][j];
    for (int i = 0; i < n; i++) A[i][j] -= q[i] * R[j];
  }
}
""")
    assert patterns.perfect_products.lines == ("loop 1: distribute", "loop 2: cut")
    assert patterns.distributed_column_sums is not None
    assert patterns.distributed_column_sums.lines == ("loop 4: distribute", "loop 6: cut")
    plain = Patterns(read("gemm"))
    assert plain.perfect_products is plain
    assert plain.distributed_column_sums is None


def test_stencils_and_steps() -> None:
    """A time loop of two nests in two dimensions; the nests are stencils, their rows are not."""
    patterns = found("""
void f(int steps, int n, float A[n][n], float B[n][n]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n; i++) for (int j = 1; j < n; j++) B[i][j] = A[i - 1][j] + A[i][j - 1];
    for (int i = 1; i < n; i++) for (int j = 1; j < n; j++) A[i][j] = B[i][j];
  }
}
""")
    assert [tuple(f.number for f in band) for band in patterns.stencils] == [(2, 3), (4, 5)]
    assert [(f.number, patterns.rank(f)) for f in patterns.steps] == [(1, 2)]
    assert patterns.sums == ()
    text = derive(patterns.analysis)
    assert "loop 1: overlap {2, 4, 6, 8}, rows 8" in text
    assert "loop 1: overlap {4, 8}, rows {10, 9, 6, 5}, columns 4\nloop 1: persistent\ncodelet: vectorize" in text


@pytest.mark.wide
@pytest.mark.parametrize(("dtype", "rows"), [("float32", "{28, 20}"), ("float64", "{16}")])
def test_cubes_fill_the_shared_memory_of_a_block(dtype: str, rows: str) -> None:
    """Two arrays of 32 x 28 x 28 floats are 215,040 bytes of 232,448."""
    text = derive(Analysis(load(POLYBENCH_C / "heat-3d.c", dtype=dtype).codelet))
    assert f"loop 1: overlap 1, rows {rows}\nloop 1: persistent\ncodelet: grid blocksize 32x28\n" in text
    assert "loop 1: overlap 1, rows {14, 22, 10, 6}\ncodelet: grid blocksize {32x16, 32x8}\nor" in text
    # Two steps invalidate eight elements.
    deep = "loop 1: overlap 2, rows {14, 22, 10}\ncodelet: grid blocksize {32x16, 32x8}\n"
    assert f"{deep}where overlap(1) * 4 < blocksize(1)\nor" in text


def test_it_can_be_printed() -> None:
    """``check --derive-space`` gives the file that a sweep would go over; with other options it is a mistake."""
    file = str(POLYBENCH / "gemm.c")
    done = CliRunner().invoke(cli, ["check", file, "--derive-space"], standalone_mode=False)
    assert (done.exception, done.return_value) == (None, 0)
    assert done.stdout == derive(read("gemm"))
    assert parse(done.stdout, "gemm.pragmas").versions > 200
    both = CliRunner().invoke(cli, ["check", file, "--derive-space", "--legal-space"], standalone_mode=False)
    assert isinstance(both.exception, UsageError)


@pytest.mark.sampled(9, "wide")
@pytest.mark.parametrize(("kernel", "packed"), [("corr", True), ("covar", True), ("syrk", True), ("gemm", False)])
def test_idle_blocks_of_triangles_are_left_out(kernel: str, packed: bool) -> None:
    """Where a product is a triangle, or is made one."""
    text = derive(Analysis(load(POLYBENCH / f"{kernel}.c").codelet))
    assert ("codelet: pack" in text) == packed


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_derivation_out_of_time_ends_with_its_first_section(device: str) -> None:
    """The first one for the device is made however long it takes: without it there is nothing to search."""
    analysis = Analysis(load(POLYBENCH / "gemm.c").codelet)
    (first,) = parse(derive(analysis, 0.0, device=device), "derived").sections
    whole = parse(derive(analysis, 600.0, device=device), "derived")
    assert first == whole.sections[0]
    assert whole.sections == whole.on(device).sections
    assert _sources(whole) == _sources(parse(derive(analysis), "derived").on(device))


def _sources(space: Space) -> list[list[str]]:
    return [[line.template.source for line in section.lines] for section in space.sections]


@pytest.mark.sampled(9, "wide")
@pytest.mark.parametrize(("gpu", "other"), [(True, "cpu"), (False, "gpu")])
def test_a_derived_space_is_for_the_device(gpu: bool, other: str) -> None:
    """A sweep tries no section that is written for another kind of device."""
    path = POLYBENCH_C / "seidel-2d.c"
    unit = load(path)
    space = find_space(path, None, unit, Analysis(unit.codelet), gpu=gpu)
    assert space.sections
    assert all(section.device != other for section in space.sections)


@pytest.mark.sampled(9, "wide")
@pytest.mark.parametrize(("name", "lines"), [
    ("gemm", ("loop 3: factor",)),
    ("syrk", ("loop 3: fold", "loop 3: gridify(i, j)", "loop 5: factor", "codelet: pack")),
    ("covar", ("loop 1: gridify(i, j)", "loop 5: gridify(j1, j2)", "codelet: pack")),
])  # fmt: skip
def test_products_of_doubles_are_first_for_tensor_cores(name: str, lines: tuple[str, ...]) -> None:
    """Large blocks first, with what takes factors apart and makes triangles a grid; of floats there is none."""
    first = next(s for s in derive(Analysis(load(POLYBENCH / f"{name}.c", dtype="float64").codelet)).split("\nor\n")
                 if "for gpu" in s)  # fmt: skip
    assert {*lines, "codelet: { | swizzle 8 }"} <= {*first.splitlines()}
    assert "tensor, block {128x128, 128x64, 64x128}, warp 64x32, shape 16x8x4" in first
    assert "tensor" not in derive(Analysis(load(POLYBENCH / f"{name}.c", dtype="float32").codelet))
