"""Scalars at file scope that a codelet writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from looptune.frontend import load
from looptune.ir.nodes import Array
from tests.helpers.against_gcc import difference

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """\
double total, last; int count = 3;
static int hidden;
void f(int n, const double *restrict x, int *restrict hit)
{
  for (int i = 0; i < n; i++) {
    total += x[i];
    if (x[i] > 0.5) { count++; hit[i] = 1; }
    last = x[i];
  }
  hidden = n;
}
"""


SCOP = PROGRAM.replace("  for", "#pragma scop\n  for").replace("  hidden", "#pragma endscop\n  hidden")


def test_they_are_arrays_of_one_element() -> None:
    arrays = {p.name: p.io for p in load(PROGRAM).codelet.params if isinstance(p, Array)}
    assert arrays == {"x": "in", "hit": "out", "total": "inout", "last": "inout", "count": "inout", "hidden": "out"}


@pytest.mark.parametrize("n", [0, 9])
@pytest.mark.parametrize(("text", "kernel"), [(PROGRAM, None), (SCOP, None), (PROGRAM, "f:5")])
def test_they_get_the_values_of_gcc(text: str, kernel: str | None, n: int, tmp_path: Path) -> None:
    shapes = {"x": (10,), "hit": (10,)} if not n else None
    assert difference(text, {"n": n}, tmp_path, shapes, kernel) is None


def test_one_that_a_called_function_reads_has_its_present_value(tmp_path: Path) -> None:
    text = "double s;\nstatic double get(void) { return s; }\n"
    text += "void f(int n, double *x) { for (int i = 0; i < n; i++) { s += 1; x[i] = get(); } }"
    assert difference(text, {"n": 5}, tmp_path) is None


def test_sizes_of_types_and_variables_are_those_of_gcc(tmp_path: Path) -> None:
    text = """\
#define N 10
double g[N][2 * N];
void f(double a[N], unsigned char *b)
{
  double t[4];
  for (int i = 0; i < (int)(sizeof(g) / sizeof(g[0])); i++) {
    a[i] = sizeof a + sizeof(t) / sizeof t[0] + sizeof(*b) + sizeof(float) + sizeof g[0][1] + sizeof((char)i);
    b[i] = sizeof(int[3]);
  }
}
"""
    assert difference(text, {}, tmp_path) is None


def test_a_type_of_a_header_that_is_not_read_hinders_only_what_uses_it() -> None:
    text = """\
#include <mpi.h>
struct state { MPI_Comm all; int rank; };
MPI_Datatype kind(void *p) { return *(MPI_Datatype *)p; }
void f(int n, float *x, MPI_Comm comm)
{ MPI_Barrier(comm); for (int i = 0; i < n; i++) x[i] = 1; }
"""
    assert load(text, kernel="f").codelet.name == "f_5"
