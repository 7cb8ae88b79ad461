"""What ``load`` makes of a file in the style of PolyBench/C, with its macros and headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import ParseError
from looptune.frontend import load
from looptune.ir.c_printer import function

HEADER = """
#define POLYBENCH_C99_SELECT(x,y) x
#define POLYBENCH_2D(var, dim1, dim2, ddim1, ddim2) var[POLYBENCH_C99_SELECT(dim1,ddim1) + 0][dim2]
#define POLYBENCH_LOOP_BOUND(x,y) x
#define POLYBENCH_2D_ARRAY_DECL(var, type, d1, d2, e1, e2) type (*var)[d1][d2]; var = (type(*)[d1][d2])alloc(d1 * d2);
#define POLYBENCH_ARRAY(x) *x
extern void *alloc(unsigned long long int n);
"""

KERNEL_HEADER = """
#ifndef K_H
#define K_H
# if !defined(NI)
#  define NI 20
# endif
# if !defined(DATA_TYPE_IS_FLOAT) && !defined(DATA_TYPE_IS_DOUBLE)
#  define DATA_TYPE_IS_DOUBLE
# endif
# ifdef DATA_TYPE_IS_DOUBLE
#  define DATA_TYPE double
#  define SCALAR_VAL(x) x
#  define SQRT_FUN(x) sqrt(x)
# else
#  define DATA_TYPE float
#  define SCALAR_VAL(x) x##f
#  define SQRT_FUN(x) sqrtf(x)
# endif
# define _PB_NI POLYBENCH_LOOP_BOUND(NI,ni)
#endif
"""

KERNEL = """
#include <stdio.h>
#include <polybench.h>
#include "k.h"
static void init_array(int ni, DATA_TYPE *alpha, DATA_TYPE POLYBENCH_2D(A,NI,NI,ni,ni))
{
  *alpha = 1.5;
  for (int i = 0; i < ni; i++) A[i][i] = 1;
}
static void print_array(int ni, DATA_TYPE POLYBENCH_2D(A,NI,NI,ni,ni))
{
  for (int i = 0; i < ni; i++) fprintf(stderr, "%0.2lf ", A[i][i]);
}
static void kernel_k(int ni, DATA_TYPE alpha, DATA_TYPE POLYBENCH_2D(A,NI,NI,ni,ni))
{
  int i, j;
#pragma scop
  for (i = 0; i < _PB_NI; i++)
    for (j = 0; j <= i; j++)
      A[i][j] = alpha * SQRT_FUN(A[i][j]) + SCALAR_VAL(0.5);
#pragma endscop
}
int main(int argc, char **argv)
{
  int ni = NI;
  DATA_TYPE alpha;
  struct timeval start;
  POLYBENCH_2D_ARRAY_DECL(A, DATA_TYPE, NI, NI, ni, ni);
  init_array(ni, &alpha, POLYBENCH_ARRAY(A));
  kernel_k(ni, alpha, POLYBENCH_ARRAY(A));
  if (argc > 42) print_array(ni, POLYBENCH_ARRAY(A));
  return 0;
}
"""


@pytest.fixture
def polybench(tmp_path: Path) -> Path:
    (tmp_path / "utilities").mkdir()
    (tmp_path / "utilities" / "polybench.h").write_text(HEADER)
    (tmp_path / "k.h").write_text(KERNEL_HEADER)
    (tmp_path / "k.c").write_text(KERNEL)
    return tmp_path


def test_polybench_file(polybench: Path) -> None:
    """A file in PolyBench's style needs its headers' folder and nothing else."""
    unit = load(polybench / "k.c", include_dirs=[polybench / "utilities"])
    assert (
        function(unit.codelet).replace(" ", "")
        == """
void kernel_k(int ni, double alpha, double A[20][20])
{
  for (int i = 0; i < 20; i++) {
    for (int j = 0; j < i + 1; j++) {
      A[i][j] = alpha * sqrt(A[i][j]) + 0.5;
    }
  }
}
""".lstrip().replace(" ", "")
    )
    assert unit.values == {"ni": 20, "alpha": 1.5}
    assert unit.text[slice(*unit.body)].startswith("  for (i = 0; i < _PB_NI; i++)\n")
    assert unit.text[slice(*unit.body)].endswith("SCALAR_VAL(0.5);\n")


def test_dtype_switches_types_and_polybench_literals(polybench: Path) -> None:
    """float32 re-types the declarations and chooses PolyBench's float forms; -D sizes win over the header's."""
    unit = load(polybench / "k.c", include_dirs=[polybench / "utilities"], dtype="float32", defines={"NI": 7})
    text = function(unit.codelet)
    assert "float A[7][7]" in text
    assert "sqrtf(A[i][j]) + 0.5f" in text
    assert unit.values == {"ni": 7, "alpha": 1.5}
    assert unit.defines == {"NI": "7"}


def test_a_missing_polybench_header_is_named(polybench: Path) -> None:
    """Where the macros of a header that was not found break the syntax, the message names the header."""
    with pytest.raises(ParseError, match=r"<polybench.h> was not found: add its folder with -I"):
        load(polybench / "k.c")
