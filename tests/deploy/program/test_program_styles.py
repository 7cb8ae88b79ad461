"""Programs in the styles of PolyBench/C 4 and of published HMPP files, whole: gcc's build says what they print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import hmpp_programs, polybench_programs
from tests.helpers.random_programs import random_program
from tests.helpers.random_transfers import random_transfers
from tests.helpers.whole_programs import agrees, build

HERE = Path(__file__).parent / "programs"
MAINS = {
    "map": """
double rtclock(void) { return 0; }
int main(void)
{
  static DATA_TYPE A[NI][NK], B[NK][NJ], C[NI][NJ], x[NJ], y[NI];
  int i, j;
  for (i = 0; i < NI; i++) for (j = 0; j < NK; j++) A[i][j] = i - j;
  for (i = 0; i < NK; i++) for (j = 0; j < NJ; j++) B[i][j] = i + j % 3;
  for (j = 0; j < NJ; j++) x[j] = j;
  program(A, B, C, x, y, 1.5);
  for (i = 0; i < NI; i++) printf("%g %g\\n", y[i], C[i][i]);
  verify(A, B, x);
  return 0;
}
""",
    "by_name": """
#include <stdio.h>
int main(void)
{
  double x[7][5], norm;
  for (int i = 0; i < 7; i++) for (int j = 0; j < 5; j++) x[i][j] = i + 2 * j;
  program(7, 5, x[0], &norm);
  printf("%.12g %.12g %.12g\\n", norm, x[2][3], x[6][4]);
}
""",
    "twice": """
#include <stdio.h>
int main(void)
{
  int a[23], b[23], w[4] = {1, 2, 3, 4};
  for (int i = 0; i < 23; i++) a[i] = i * i % 31, b[i] = -1;
  program(23, a, b, w);
  program(23, b, a, w);
  for (int i = 0; i < 23; i++) printf("%d %d\\n", a[i], b[i]);
}
""",
    "mixed": """
#include <stdio.h>
int main(void)
{
  float image[48], sums[8] = {0};
  double w[6];
  unsigned char mask[8];
  long count[6];
  for (int i = 0; i < 48; i++) image[i] = i;
  for (int i = 0; i < 6; i++) w[i] = i * .5;
  for (int i = 0; i < 8; i++) mask[i] = i & 1;
  program(6, 8, image, w, mask, sums, count);
  program(6, 8, image, w, mask, sums, count);
  for (int i = 0; i < 6; i++) printf("%g %g %g %ld\\n", image[i * 8 + 3], w[i], sums[i], count[i]);
}
""",
    "malformed": """
#include <stdio.h>
int main(void)
{
  float a[N], b[N];
  for (int i = 0; i < N; i++) a[i] = i, b[i] = 3;
  program(a, b);
  program(b, a);
  for (int i = 0; i < N; i++) printf("%g %g\\n", a[i], b[i]);
}
""",
}
HOW = (
    "-DMINI_DATASET",
    "-DN=9 -DT=2 -DPOLYBENCH_STACK_ARRAYS -DDATA_TYPE_IS_FLOAT",
    "-DMINI_DATASET -DPOLYBENCH_USE_C99_PROTO -DPAD=3",
)


@pytest.mark.parametrize(
    "style",
    [pytest.param(s, marks=pytest.mark.wide) for s in hmpp_programs.STYLES],
    ids=lambda s: s.name,
)
def test_programs_of_hmpp(style: hmpp_programs.Style, tmp_path: Path, driver: Path) -> None:
    """Groups, maps, loads and stores, lines that continue, and what published files get wrong."""
    folder = tmp_path / "src" / "linear"
    folder.mkdir(parents=True)
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "timers.h").write_text("double rtclock(void);\n")
    (folder / "main.c").write_text(style.text + MAINS[style.name])
    agrees(build([folder / "main.c"], tmp_path, driver))


def test_every_spelling_of_transfers(tmp_path: Path, driver: Path) -> None:
    """What the lines leave on the GPU is there, and what they store is on the host where they store it."""
    program = build([HERE / "hmpp_transfers.c"], tmp_path, driver)
    agrees(program)
    assert program.on_device().count("to") < program.on_device(LOOPTUNE_CHECK=1).count("to") / 2


@pytest.mark.wide
def test_lines_of_a_group(tmp_path: Path, driver: Path) -> None:
    """A line without a label concerns the codelets whose parameters it names, as ``label::NAME`` or plainly."""
    program = build([HERE / "group_lines.c"], tmp_path, driver)
    agrees(program)
    assert "warning" not in program.said
    assert program.on_device().count("from") == 6


@pytest.mark.wide
def test_codelets_and_regions_of_several_files(tmp_path: Path, driver: Path) -> None:
    """Codelets that a header declares, regions and scops of other functions: all of them run on the device."""
    program = build([HERE / "codelets_and_regions.c", HERE / "defined_elsewhere.c"], tmp_path, driver)
    agrees(program)
    assert program.on_device(LOOPTUNE_VERBOSE=1).said.count(": calls on NVIDIA H200: ") == 4
    assert "warning" not in program.said


@pytest.mark.sampled(3)
@pytest.mark.parametrize("how", [HOW[0], *(pytest.param(how, marks=pytest.mark.wide) for how in HOW[1:])])
@pytest.mark.parametrize(
    "style",
    [pytest.param(s, marks=pytest.mark.wide) for s in polybench_programs.ALL],
    ids=lambda s: s.name,
)
def test_programs_of_polybench(style: polybench_programs.Style, how: str, tmp_path: Path, driver: Path) -> None:
    """A header of macros in another folder, sizes and types by -D, arrays on the heap and on the stack."""
    for name, text in (("u/polybench.h", polybench_programs.HEADER), ("u/polybench.c", polybench_programs.SUPPORT),
                       ("k/sizes.h", polybench_programs.SIZES), (f"k/{style.name}.c", style.text)):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    sources = [tmp_path / "k" / f"{style.name}.c", tmp_path / "u" / "polybench.c"]
    agrees(build(sources, tmp_path, driver, ["-I", str(tmp_path / "u"), *how.split()]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.wide) for seed in range(1, 10))])
def test_random_programs(seed: int, tmp_path: Path, driver: Path) -> None:
    """Whatever codelets a program has and however it calls them, it prints what gcc's build prints."""
    (tmp_path / "main.c").write_text(random_program(seed))
    agrees(build([tmp_path / "main.c"], tmp_path, driver))


@pytest.mark.parametrize("seed", [4, *(pytest.param(seed, marks=pytest.mark.wide) for seed in (2, 3, 7))])
def test_random_transfers(seed: int, tmp_path: Path, driver: Path) -> None:
    """Copies beside kernels and memory that is used again, however late or early they are done, and with little memory.

    Arrays of 5.6 MB take more than one half of the memory for transfers.
    """
    (tmp_path / "main.c").write_text(random_transfers(seed))
    program = build([tmp_path / "main.c"], tmp_path, driver)
    agrees(program)
    wanted = program.plain("700000").out
    for settings in ({"FAKE_CUDA_MEMORY": 18 << 20}, {"LOOPTUNE_VERBOSE": 1, "FAKE_CUDA_EAGER": 1}):
        ran = program.on_device("700000", **settings)
        assert (ran.code, ran.out) == (0, wanted), ran.said
    assert any(line.endswith("beside") for line in program.on_device().log)


def test_definitions_before_c89(tmp_path: Path, driver: Path) -> None:
    """Types after the parentheses or none, and no type of the result: all codelets run on the device."""
    program = build([HERE / "old_style.c"], tmp_path, driver)
    agrees(program)
    assert program.on_device(LOOPTUNE_VERBOSE=1).said.count(": calls on NVIDIA H200: ") == 4
    assert "defined in another file" not in program.said
