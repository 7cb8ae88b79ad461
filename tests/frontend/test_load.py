"""What ``load`` says of a file beyond the statements: the codelet chosen, shapes, values, names, places, errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from looptune.core.errors import UsageError
from looptune.frontend import load
from looptune.frontend.math_functions import NATIVE
from looptune.ir import interpreter
from looptune.ir.c_printer import expression_text, function
from looptune.ir.nodes import Array, Assign, Binary, Const, Load, Local, Loop, Scalar, Var, While
from looptune.ir.rewrite import walk
from tests.helpers.codelets import nest

TWO = """
#pragma hmpp <g> second codelet, args[y].io=inout
static
void g(int n, double *x, double *y) { for (int i = 0; i < n; i++) y[i] += x[i]; }
#pragma hmpp <g> first codelet
void f(int n, double *x) { for (int i = 0; i < n; i++) x[i] = i; }
int main() { f(3, a);
  g(3, a, b); return 0; }
"""


# -- which codelet --------------------------------------------------------------------------------


def test_codelets_have_names() -> None:
    """A codelet is called by its label, with or without its group, or by its function; a group by its name."""
    assert load(TWO, kernel="second").codelet.name == "g"
    assert load(TWO, kernel="g.first").codelet.label == "first"
    assert load(TWO, kernel="f").codelet.label == "first"
    assert [part.function for part in load(TWO).parts] == ["f", "g"]
    with pytest.raises(UsageError, match=r"no codelet h in <source>: it has g, g.second, g.first"):
        load(TWO, kernel="h")


def test_functions_without_a_mark_need_a_choice() -> None:
    """Only what hmpp marks is one program: of plain functions with loops the user takes one."""
    plain = re.sub("#pragma.*", "", TWO)
    with pytest.raises(UsageError, match=r"<source> has 2 codelets: choose one with --kernel: g, f"):
        load(plain)
    assert load(plain, kernel="g").codelet.name == "g"


def test_codelet_of_a_prototype() -> None:
    """The pragma may stand before the prototype, with other pragmas and blank lines between."""
    text = "#pragma hmpp k codelet, &\n#pragma hmpp & args[x].io=out\n\n#pragma once_more\nvoid k(int n, double *x);\n"
    text += nest("for (int i = 0; i < n; i++) x[i] = 1;") + "void k(int n, double *x) { while (n > 3) x[0] = 1; }\n"
    unit = load(text)
    assert (unit.codelet.name, unit.codelet.label) == ("k", "k")
    assert unit.codelet.params[1] == Array("x", "float64", (None,), "out")


def test_functions_that_cannot_be_read_are_left_out() -> None:
    """Inline assembly, GNU extensions and unknown types elsewhere do not stand in the way."""
    text = """
#include <cuda_runtime.h>
extern cudaError_t check(cudaError_t e);
static inline __attribute__((always_inline)) unsigned long cycles(void) {
  unsigned long t; __asm__ __volatile__("rdtsc" : "=a"(t)); return t; }
void timing(void) { cudaEvent_t start, stop; cudaEventCreate(&start); kernel<<<1, 2>>>(start); }
__extension__ typedef long long big __attribute__((aligned(8)));
void f(int n, big *restrict x) {
#pragma scop
  for (int i = 0; i < n; i++) x[i] = i;
#pragma endscop
}
int main() { f(12, 0); unsigned long t = cycles(); timing(); return t > 3; }
"""
    unit = load(text)
    assert unit.codelet.params == (Scalar("n", "int32"), Array("x", "int64", (None,), "out"))
    assert unit.values == {"n": 12}


def test_main_is_the_codelet_only_where_nothing_else_is() -> None:
    """main's own loops do not compete with another function's, and count where there is none."""
    loop = "for (int i = 0; i < n; i++) x[i] = 1;"
    both = nest(loop) + "int main() { for (int i = 0; i < 3; i++) f(i, 0); }\n"
    assert load(both).codelet.name == "f"
    alone = f"int main(int argc, char **argv) {{ double x[4]; int n = 4; {loop} return 0; }}\n"
    assert load(alone).codelet.params == (Scalar("argc", "int32"),)


# -- parameters and values ------------------------------------------------------------------------


def test_parameter_shapes() -> None:
    """Every way to write an array parameter has its shape; extents stay expressions of the parameters."""
    text = """
typedef double row[5];
typedef float real, matrix[3][4];
void f(int n, double *a, double b[], double c[n + 1][2 * n], double (*d)[n], row *e, matrix g, real h[static 2],
       const double *restrict const k, double *out, double (*whole)[n][2], unsigned char *bytes, int unused[n]) {
  for (int i = 0; i < n; i++) {
    a[i] = b[i] + c[i][i] + d[i][i] + e[i][i] + g[i][i] + h[i] + k[i] + (*whole)[i][0] + bytes[i];
    *out = a[i];
  }
}
"""
    n = Var("n")
    shapes = {p.name: p.shape for p in load(text).codelet.params if isinstance(p, Array)}
    assert shapes == {
        "a": (None,), "b": (None,), "c": (Binary("+", n, Const(1)), Binary("*", Const(2), n)), "d": (None, n),
        "e": (None, Const(5)), "g": (Const(3), Const(4)), "h": (Const(2),), "k": (None,), "out": (Const(1),),
        "whole": (n, Const(2)), "bytes": (None,), "unused": (n,),
    }  # fmt: skip


def test_directions_come_from_the_accesses_and_the_clauses() -> None:
    """Read, written or both, unless an hmpp clause says."""
    text = nest("for (int i = 0; i < n; i++) { y[i] = x[i]; z[i] += 1; }", "int n, double *x, double *y, double *z")
    assert [p.io for p in load(text).codelet.params if isinstance(p, Array)] == ["in", "out", "inout"]
    clauses = "#pragma hmpp f codelet, args[x].io=inout, args[2-3].io=inout, args[y].size={n}\n"
    arrays = [p for p in load(clauses + text).codelet.params if isinstance(p, Array)]
    assert [p.io for p in arrays] == ["inout", "inout", "inout"]
    assert arrays[1].shape == (Var("n"),)


def test_values_follow_the_caller() -> None:
    """Constants reach the call through variables, arithmetic, wrappers, pointers and -D; differing calls give none."""
    text = """
#define N 8
static const int HALF = N / 2;
int scale = 3;
void init(int n, float *beta) { *beta = 2.5f; }
void f(int n, int m, float alpha, float beta, int odd, double *x) {
  for (int i = 0; i < n; i++) x[i] = alpha * beta * m * scale * odd; }
void wrapper(int size, float beta, int odd) { f(size, size * 2 + HALF, -1.5, beta, odd, 0); }
int main(int argc, char **argv) {
  int n, m = argc; float beta; n = N;
  init(n, &beta); wrapper(n, beta, m); wrapper(8, beta, 1); }
"""
    assert load(text).values == {"n": 8, "m": 20, "alpha": -1.5, "beta": 2.5, "scale": 3}
    assert load(text, defines={"odd": 5, "alpha": "0.5"}).values["odd"] == 5
    assert load(text, defines={"odd": 5, "alpha": "0.5"}).values["alpha"] == 0.5


def test_values_are_converted_on_their_way() -> None:
    """What a call passes, a variable is given and a global begins with has the value of its type; floats are kept."""
    text = """
unsigned char first = 300;
void f(int n, signed char c, unsigned short s, _Bool b, int k, float x, int *a) {
  for (int i = 0; i < n; i++) a[i] = c * s * b + x + k + first; }
int main(void) { unsigned char n; n = 276; f(n, 200, 70000, 256, 2.9, 0.1, 0); }
"""
    assert load(text).values == {"n": 20, "c": -56, "s": 4464, "b": 1, "k": 2, "x": 0.1, "first": 44}


def test_values_from_size_clauses() -> None:
    """A number in .size is the value of the parameter that is that extent."""
    text = "#pragma hmpp f codelet, args[A].size={64,n}\n"
    text += nest("for (int i = 0; i < m; i++) A[i][0] = 1;", "int n, int m, double A[m][n]")
    assert load(text).values == {"m": 64}


def test_globals_become_parameters_after_the_functions_own() -> None:
    """Arrays and scalars at file scope are appended in file order, constants are baked in, counters are not shared."""
    text = """
#define N 6
double B[N][N], A[N];
enum { ONE = 1, THREE = 3 };
static const double w[2] = {0.5, THREE};
int i, size = 4;
void f(double *x) { for (i = ONE; i < size; i++) B[i][0] = A[i] * w[i & 1] + x[i]; }
"""
    unit = load(text)
    assert [p.name for p in unit.codelet.params] == ["x", "B", "A", "size"]
    assert unit.codelet.locals == (Local("w", "float64", (Const(2),)),)
    assert unit.values == {"size": 4}


# -- the tree -------------------------------------------------------------------------------------


def test_copies_of_sizes_stay_affine() -> None:
    """Integers written once with what never changes vanish into the bounds and indices that use them."""
    text = nest("""
  int m = n, last, idx;
  last = m - 1;
  for (int i = 0; i <= last; i++) { idx = i * m + last; int next = idx + 1; x[next] = x[idx]; }
""")
    codelet = load(text).codelet
    assert codelet.locals == ()
    (loop,) = codelet.body
    assert isinstance(loop, Loop)
    assert loop.hi == Var("n")
    (only,) = loop.body
    assert isinstance(only, Assign)
    index = Binary("+", Binary("*", Var("i"), Var("n")), Binary("-", Var("n"), Const(1)))
    assert only.value == Load("x", (index,), "float64")


def test_coefficients_are_their_values() -> None:
    """A float written once with a constant or a parameter vanishes; one that is computed stays."""
    body = "float c, d = -a, e = a * 2; c = 0.1; for (int i = 0; i < n; i++) x[i] = c + d + e;"
    codelet = load(nest(body, "int n, float a, float *x")).codelet
    assert [v.name for v in codelet.locals] == ["e"]
    assert "x[i] = (float)0.1 + -a + e;" in function(codelet)


def test_a_variable_written_twice_is_no_copy() -> None:
    """A bound that changes under a condition is read where it stands; one that is set anew is another variable."""
    codelet = load(nest("int m = n; if (n > 3) m = m - 1; for (int i = 0; i < m; i++) x[i] = 1;")).codelet
    assert codelet.locals == (Local("m", "int32"),)
    codelet = load(nest("int m = n; m = m - 1; for (int i = 0; i < m; i++) x[i] = 1;")).codelet
    assert not codelet.locals


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("i = 0; i < n; i++", "0 .. n by 1"),
        ("i = 0; n > i; ++i", "0 .. n by 1"),
        ("i = 1; i <= n; i += 1", "1 .. n + 1 by 1"),
        ("i = 0; i != n; i++", "0 .. n by 1"),
        ("i = 0; i < n; i = 3 + i", "0 .. n by 3"),
        ("i = n - 1; i >= 0; i--", "0 .. n by 1"),
        ("i = n; i > 0; --i", "0 .. n by 1"),
        ("i = n - 1; 0 <= i; i -= 2", "0 .. n by 2"),
        ("i = 0; i + 2 < n; i++", "0 .. n - 2 by 1"),
        ("i = 0; i < n && i < 8; i++", "0 .. (n < 8 ? n : 8) by 1"),
        ("i = 0; i < (n < 8 ? n : 8); i++", "0 .. (n < 8 ? n : 8) by 1"),
        ("i = 0; i < n; i -= -2", "0 .. n by 2"),
    ],
)
def test_counted_headers(header: str, expected: str) -> None:
    """A header that counts becomes a half-open loop with a positive step."""
    (loop,) = load(nest(f"for (int {header}) x[i] = i;")).codelet.body
    assert isinstance(loop, Loop)
    assert f"{expression_text(loop.lo)} .. {expression_text(loop.hi)} by {loop.step}" == expected


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 1; i < n; i *= 2) x[i] = 1;",
        "for (int i = 0; i < n; i++) { x[i] = 1; if (x[0] > 2) i++; }",
        "for (int i = 0; i < n; i++) { x[i] = 1; n--; }",
        "for (int i = 0; i < n && x[i] > 0; i++) x[i] = 1;",
        "for (int i = 0; i < x[0]; i++) x[i] = 1;",
        "for (double z = 0; z < 1; z += 0.5) x[0] += z;",
        "for (int i = 0; i < n; i--) x[i] = 1;",
        "for (unsigned i = 0; i - 1 < n; i++) x[i] = 1;",
    ],
)
def test_other_headers_are_whiles(loop: str) -> None:
    """What does not count keeps C's meaning as a while."""
    assert any(isinstance(s, While) for s in load(nest(loop)).codelet.body)


def test_names_numbers_and_iterations() -> None:
    """Loops keep the user's names and count from 1; statements are S0, S1 … with the loops around them."""
    codelet = load(
        nest("""
  int i = 5, t;
  for (i = 0; i < n; i++) for (int j = 0; j < 4; j++) { double i = x[j]; x[j] = i; }
  for (i = 0; i < n; i++) { for (int i = 0; i < 3; i++) x[i] = 2; t = i; x[t] = t; }
  x[0] = i;
""")
    ).codelet
    loops = [n for n in walk(codelet.body) if isinstance(n, Loop)]
    assert [(loop.number, loop.var) for loop in loops] == [(1, "i"), (2, "j"), (3, "i"), (4, "i_2")]
    assigns = [n for n in walk(codelet.body) if isinstance(n, Assign)]
    assert [a.name for a in assigns] == [f"S{k}" for k in range(len(assigns))]
    inner = next(a for a in assigns if a.target == Load("x", (Var("j"),), "float64"))
    assert inner.instance == (Var("i"), Var("j"))
    assert {v.name for v in codelet.locals} == {"i_3", "i_4"}


def test_conversions_are_explicit() -> None:
    """Operands meet in C's type; the value of an assignment has its target's; constants have C's types."""
    text = nest("for (int i = 0; i < n; i++) { x[i] = x[i] * 2 + 0.1; k[i] = k[i] / 3u; }", "int n, float *x, char *k")
    shown = function(load(text).codelet)
    assert "x[i] = x[i] * 2 + 0.1;" in shown
    assert "k[i] /= 3u;" in shown
    dtypes = {n.dtype for n in walk(load(text).codelet.body) if isinstance(n, Binary)}
    assert dtypes == {"float32", "float64", "uint32"}
    narrow = {n.dtype for n in walk(load(text, float_literals=True).codelet.body) if isinstance(n, Binary)}
    assert narrow == {"float32", "uint32"}


def test_math_functions_are_those_the_interpreter_knows() -> None:
    """The front end accepts exactly the functions that have a meaning."""
    assert NATIVE.keys() | {"abs", "ldexp", "ilogb", "popcount", "clz"} == interpreter.FUNCTIONS.keys()


# -- places and errors ----------------------------------------------------------------------------


def test_spans_are_of_the_original_text() -> None:
    """A node's span is its words in the file, through macros, headers, tabs and continued lines."""
    text = "#define N 4\n#define AT(i) x[(i) + N]\n\n/* two\nlines */ void f(int n, double *x) {\n"
    text += "\tfor (int i = 0; i < N; \\\n i++) { AT(i) = n + x[i]; }\n}\n"
    (loop,) = load(text).codelet.body
    assert isinstance(loop, Loop)
    assert (str(loop.span), loop.span.width) == ("<source>:6:2", 3)
    (assign,) = loop.body
    assert isinstance(assign, Assign)
    value = assign.value
    words = value.span.text[value.span.col - 1 : value.span.col - 1 + value.span.width]
    assert words == "n + x[i]"
    assert loop.span.text == "\tfor (int i = 0; i < N; \\"


def test_body_is_the_function_body() -> None:
    """Unit.body holds both braces of the codelet, in the text as it was given."""
    text = "// {\n" + nest("for (int i = 0; i < n; i++) { x[i] = 1; }") + "int g(int a) { return a; }\n"
    unit = load(text)
    assert unit.text[slice(*unit.body)] == "{\nfor (int i = 0; i < n; i++) { x[i] = 1; }\n}"
    assert (unit.path, unit.text) == ("<source>", text)


def test_a_helper_is_inlined() -> None:
    """A function of tests and returns stands for its value; an integer minimum is a minimum."""
    text = "static inline int least(int a, int b) { if (a < b) return a; return b; }\n"
    (loop,) = load(text + nest("for (int i = 0; i < least(n, 5); i++) x[i] = 1;")).codelet.body
    assert isinstance(loop, Loop)
    assert loop.hi == Binary("min", Var("n"), Const(5))


def test_a_scop_takes_its_surroundings_along() -> None:
    """Around a scop: initial values enter it, other scalars and shared arrays become parameters."""
    text = """
void f(int n) {
  double third = 1.0 / 3, t, A[10], tmp[10]; int i, steps = 4;
  t = clock();
  A[0] = 1;
#pragma scop
  for (int s = 0; s < steps; s++)
    for (i = 0; i < 10; i++) { tmp[i] = A[i] * third + t; A[i] = tmp[i]; }
#pragma endscop
  t = A[3];
}
"""
    codelet = load(text).codelet
    assert codelet.params == (Scalar("n", "int32"), Array("A", "float64", (Const(10),)), Scalar("t", "float64"))
    assert codelet.locals == (Local("third", "float64"), Local("tmp", "float64", (Const(10),)))


def test_a_variable_of_the_function_hides_that_of_the_file() -> None:
    """It is no write to the latter, which is no parameter therefore."""
    loop = "for (int i = 0; i < n; i++) y[i] = w;"
    text = "static double w; void set(double u) { w = u; }\n"
    unit = load(f"{text}void f(int n, double *y) {{ double w = 2; w *= n; {loop} }}\n", kernel="f")
    assert [p.name for p in unit.codelet.params] == ["n", "y"]


def test_a_value_is_given_to_a_parameter_of_a_header_or_of_a_macro(tmp_path: Path) -> None:
    """The text of the file names neither where its functions are declared."""
    loop = "for (int i = 0; i < n; i++) x[i] *= 2;"
    (tmp_path / "scale.h").write_text(f"void scale(int n, double *x) {{ {loop} }}\n")
    (tmp_path / "f.c").write_text('#include "scale.h"\n')
    (tmp_path / "g.c").write_text(f"#define DEFINE(name) void name(int n, double *x) {{ {loop} }}\nDEFINE(scale)\n")
    for name in ("f.c", "g.c"):
        assert load(tmp_path / name, defines={"n": "8"}).values == {"n": 8}
