"""Pointers that are set or moved: the same results as gcc, and loops as parallel as with the array and an index."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from looptune.core.errors import LooptuneError
from looptune.deploy.source_to_source import transform
from looptune.frontend import load
from tests.helpers.against_gcc import difference, verdicts
from tests.helpers.gcc_programs import Program, programs
from tests.helpers.paths import TESTS

gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.mark.sampled(2)
@pytest.mark.sampled(4, "wide")
@gcc
@pytest.mark.parametrize("program", programs(TESTS / "data" / "pointers.c"), ids=lambda p: p.name)
def test_pointers_compute_what_gcc_computes(program: Program, tmp_path: Path) -> None:
    assert difference(program.text, program.sizes, tmp_path, program.shapes) is None
    assert [*verdicts(load(program.text).codelet).values()] == program.loops


def test_one_variable_for_two_arrays_is_one_variable_for_each_range() -> None:
    text = "void f(int n, float *a, float *b) { float *p; for (p = a; p < a + n; p++) *p = 1; p = b; *p = 2; }"
    arrays = {p.name for p in load(text + "\n").codelet.params}
    assert arrays == {"n", "a", "b"}


@pytest.mark.sampled(2)
@pytest.mark.sampled(4, "wide")
@gcc
@pytest.mark.parametrize("program", programs(TESTS / "data" / "pointer_swaps.c"), ids=lambda p: p.name)
def test_swapped_pointers_compute_what_gcc_computes(program: Program, tmp_path: Path) -> None:
    """After an odd number of swaps, and after none."""
    for sizes in (program.sizes, {**program.sizes, "T": 0} if "T" in program.sizes else program.sizes):
        assert difference(program.text, sizes, tmp_path, program.shapes) is None
    assert [*verdicts(load(program.text).codelet).values()] == program.loops


SWAPPED = """double *cur, *next;
void f(int n) {
  for (int t = 0; t < %s; t++) {
    for (int i = 1; i < n; i++)
      next[i] = cur[i - 1];
    double *tmp = cur; cur = next; next = tmp;
  }
}
double g(void) { return cur[0]; }
"""


def test_pointers_that_other_code_reads_are_what_they_were(tmp_path: Path) -> None:
    """The number of swaps has to be a multiple of two; such loops are not written back."""
    file = tmp_path / "f.c"
    file.write_text(SWAPPED % "6")
    assert {"cur", "next"} <= {p.name for p in load(file, kernel="f").codelet.params}
    assert transform(file, kernel="f") == file.read_text()
    with pytest.raises(LooptuneError, match="these loops swap pointers, which is not written back"):
        transform(file, ["loop 2: unroll 2"], kernel="f")
    for steps in ("n", "7"):
        file.write_text(SWAPPED % steps)
        with pytest.raises(LooptuneError, match="the pointer cur is set here and read afterwards"):
            load(file, kernel="f")


MOVED = """void f(int n, float *a, float *b) {
  float *p = a;
  #pragma hmppcg unroll 4
  for (int i = 0; i < n; i++) {
    *p = b[i];
    p++;
  }
  %s
}
"""


def test_transform_does_not_leave_a_pointer_behind_that_the_text_still_reads(tmp_path: Path) -> None:
    file = tmp_path / "f.c"
    file.write_text(MOVED % "")
    assert "a[(long)i] = b[i]" in transform(file)
    file.write_text(MOVED % "*p = 1;")
    with pytest.raises(LooptuneError, match="p, which these statements move, is used outside of them"):
        transform(file, kernel="f")


def test_transform_does_not_write_choices_among_arrays(tmp_path: Path) -> None:
    """The codelet has what follows a choice twice, the text once."""
    file = tmp_path / "f.c"
    file.write_text("void f(int *a, int *b) { for (int i = 0; i < 9; i++) { int *p = i < 4 ? a : b; p[i] = 1; } }\n")
    with pytest.raises(LooptuneError, match="a condition chooses among arrays, which is not written back"):
        transform(file, ["loop i: unroll 2"])


def test_c_that_is_built_does_not_leave_out_a_pointer_that_other_files_may_read() -> None:
    text = "double b[9], *p;\nvoid f(void) { p = &b[3]; for (int i = 0; i < 5; i++) p[i] = 1; }\n"
    head = load(text).head
    assert isinstance(head, str)
    assert head.startswith("f sets the pointer p")
    assert not isinstance(load(text.replace("double", "static double")).head, str)
