"""What ``looptune build --c`` makes is declared as the function of the file is, and links in its place."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from looptune.core.errors import UsageError
from looptune.deploy import build
from looptune.frontend import load

MAIN = """#include <stdio.h>
{before}
{declared};
int main(void) {{
  for (int i = 0; i < 40; i++) {{ w[i] = i; x[i] = 3 * i; }}
  {call};
  double t = 0; for (int i = 0; i < 40; i++) t = t * 0.5 + x[i];
  printf("%.9g\\n", t);
  return 0;
}}
"""
LOOP = "for (int i = 0; i < n; i++) x[i] += 2 * w[i];"
CASES = {
    "const and restrict": ("double w[40], x[40];", "void f(int n, const double *restrict w, double *restrict x)",
                           "f(40, w, x)", "const double * restrict w"),
    "unused parameters": ("double w[40], x[40];", "void f(char *name, int n, double unused, const double *w,"
                                      " double x[n])", 'f("a", 40, 1.5, w, x)', "double unused"),
    "types of the file and of headers": ("#include <stdint.h>\n#include <stddef.h>\ntypedef float real; real w[40]; "
                                         "int16_t x[40];", "void f(const size_t n, const real *w, int16_t *x)",
                                         "f(40, w, x)", "const size_t n"),
    "arrays of two dimensions": ("double w[40], x[40];", "void f(int n, double x[restrict n], double (*w2)[40])",
                                 "f(40, x, &w)", "double (*w2)[40]"),
    "a constant that is returned": ("double w[40], x[40];", "int f(int n, double *w, double *x)", "f(40, w, x)",
                                    "return 3;"),
    "variables at file scope": ("double w[40], x[40]; int n;", "void f(void)", "n = 40, f()", "extern double x[40];"),
}  # fmt: skip


def unit_of(before: str, declared: str, folder: Path, *, end: str = "") -> str:
    loop = LOOP.replace("w[i]", "w2[0][i]") if "w2" in declared else LOOP
    file = folder / "f.c"
    file.write_text(f"{before}\n{declared}\n{{ {loop} {end} }}\n".replace("{ for", "{\n  for"))
    return build.as_c(load(file), folder / "none", "auto", "looptune build", default=True)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("name", CASES)
def test_the_function_is_that_of_the_file(name: str, tmp_path: Path) -> None:
    """gcc takes its definition after the file's own declaration, and the program computes the same with either."""
    before, declared, call, said = CASES[name]
    text = unit_of(before, declared, tmp_path, end="return 3;" if declared.startswith("int") else "")
    assert said in text
    assert "#pragma omp parallel for" in text
    extern = before.replace("double w", "extern double w").replace("int n;", "extern int n;")
    extern = extern.replace("real w", "extern real w").replace("int16_t x", "extern int16_t x")
    (tmp_path / "made.c").write_text(text)
    (tmp_path / "checked.c").write_text(f"{extern}\n{declared};\n{text}")
    (tmp_path / "main.c").write_text(MAIN.format(before=before, declared=declared, call=call))
    (tmp_path / "own.c").write_text((tmp_path / "f.c").read_text().replace(before, extern))
    gcc = ["gcc", "-std=gnu11", "-Wall", "-Werror", "-fopenmp", "-ffp-contract=off"]
    subprocess.run([*gcc, "-Wno-error", "-c", "checked.c", "-o", "c.o"], cwd=tmp_path, check=True, timeout=60)
    printed = []
    for file in ("made.c", "own.c"):
        subprocess.run([*gcc, "-w", "main.c", file, "-o", "p"], cwd=tmp_path, check=True, timeout=60)
        printed.append(subprocess.run(["./p"], cwd=tmp_path, capture_output=True, check=True, timeout=60).stdout)
    assert printed[0] == printed[1]


def test_what_no_other_file_can_see_is_said(tmp_path: Path) -> None:
    """A static array of other functions is ``extern``: linking the file by itself fails, and the comment says why."""
    before = "typedef struct { double v; } box;\nstatic double w[40] = {1}, x[40];\nbox b;\n"
    text = unit_of(f"{before}double get(int i) {{ return x[i] + w[i]; }}", "void f(int n)", tmp_path, end="b.v = x[0];")
    there = "include this file there, in the function's place with LOOPTUNE_TYPES_DECLARED defined."
    assert f"x is static in f.c: {there}" in text
    assert "extern double x[40];" in text
    (tmp_path / "made.c").write_text(text)
    own = (tmp_path / "f.c").read_text().partition("void f(int n)")[0]
    (tmp_path / "g.c").write_text(f'{own}#define LOOPTUNE_TYPES_DECLARED\n#include "made.c"\n')
    gcc = ["gcc", "-Wall", "-Wextra", "-Werror", "-fopenmp", "-c", "g.c"]
    subprocess.run(gcc, cwd=tmp_path, check=True, timeout=60)


def test_what_only_the_function_uses_moves_with_it(tmp_path: Path) -> None:
    """Static variables that no other function uses, and tables of constants, are declared as the file has them."""
    before = "#define N 40\nenum { TAPS = 2 };\nstatic double w[N]; double x[N], total; long runs;"
    text = unit_of(before, "void f(int n)", tmp_path, end="total += x[TAPS]; runs++;")
    assert "static double w[40];" in text
    assert "static in" not in text
    (tmp_path / "made.c").write_text(text)
    main = "int main(void) { x[2] = 3; f(40); f(40); return (int)total + (int)runs != 8; }"
    (tmp_path / "main.c").write_text(f"extern double x[40], total; extern long runs; void f(int n);\n{main}")
    (tmp_path / "rest.c").write_text("double x[40], total; long runs; double w[3];")
    gcc = ["gcc", "-Wall", "-Wextra", "-Werror", "-fopenmp", "main.c", "made.c", "rest.c", "-o", "p"]
    subprocess.run(gcc, cwd=tmp_path, check=True, timeout=60)
    subprocess.run([tmp_path / "p"], check=True, timeout=60)


def test_variables_of_the_file_keep_their_qualifiers(tmp_path: Path) -> None:
    """const, volatile and restrict stay, and a pointer is not declared as an array."""
    before = "typedef double real; const real *restrict w; double *x; extern const int c[9]; volatile int v;"
    text = unit_of(before, "void f(int n)", tmp_path, end="for (int i = 0; i < 9; i++) x[i] += c[i] * v;")
    assert [line for line in text.splitlines() if line.startswith("extern")] == [
        "extern const real * restrict w;", "extern double *x;", "extern const int c[9];", "extern volatile int v;",
    ]  # fmt: skip


def test_results_are_returned(tmp_path: Path) -> None:
    """A function that returns what it computes, or one of several constants, still returns it."""
    early = "int f(int n, double *w, double *x) { if (n < 0) return 1;"
    (tmp_path / "g.c").write_text(f"{early} {LOOP} return 3; }}\n")
    text = build.as_c(load(tmp_path / "g.c"), tmp_path / "none", "auto", "", default=True)
    assert "int f(int n, double *w, double *x)\n{\n  int result[1];" in text
    assert text.rstrip().endswith("return result[0];\n}")


def test_what_cannot_be_declared_so_is_refused(tmp_path: Path) -> None:
    """A pointer to a whole array, a union among the parameters."""
    with pytest.raises(UsageError, match="f takes t, a pointer to a whole array"):
        unit_of("double w[40], x[40];", "void f(int n, double (*t)[40])", tmp_path, end="(*t)[0] = 1;")
    with pytest.raises(UsageError, match="f has a parameter without a name"):
        unit_of("double w[40], x[40];", "void f(int n, double)", tmp_path)
    with pytest.raises(UsageError, match="p at file scope consists of structs"):
        unit_of("struct { double v; } p[40]; double w[40], x[40];", "void f(int n)", tmp_path, end="p[0].v = 1;")
    local = "struct { double v, u; } t = {1, 2};"
    unnamed = load(
        f"struct {{ double v, u; }} f(int n, double *w, double *x) {{ {local} {LOOP} t.v = x[0]; return t; }}\n"
    )
    with pytest.raises(UsageError, match="a struct without a name is returned"):
        build.as_c(unnamed, tmp_path / "none", "auto", "", default=True)
    with pytest.raises(UsageError, match="f takes s, whose type"):
        unit_of('#include "gone.h"', "void f(int n, handle_s *s, double *w, double *x)", tmp_path)
    with pytest.raises(UsageError, match="the codelet writes v at file scope, which is volatile"):
        unit_of("volatile int v;", "void f(int n, double *w, double *x)", tmp_path, end="v = n;")


TYPES = """#include <stdio.h>
#include <complex.h>
#define PACKED __attribute__((packed))
enum { DIM = 3 };
typedef double real;
typedef real mat[DIM][DIM];
typedef real *row;
struct PACKED head { char tag; int n; };
typedef union { double d; long l; } bits;
typedef void (*callback)(int);
"""
DECLARED = """real f(int n, const mat *restrict a, row *r, real b[static restrict n][n][DIM], real c[const 3],
       complex float *z, const struct head *h, bits seed, callback call, FILE *log, double *new)"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_header_is_for_c_and_for_cxx(tmp_path: Path) -> None:
    """It declares all types of the signature, arrays of other sizes for C alone; the layout of a struct stays."""
    body = "for (int i = 0; i < n; i++) { r[i][0] += a[i][1][2] * c[1] + h->n; b[i][0][1] = new[i]; z[i] *= 2; }"
    unit = load(f"{TYPES}{DECLARED}\n{{\n  {body}\n  return r[0][0];\n}}\n")
    (tmp_path / "f.h").write_text(build.header(unit))
    text = build.as_c(unit, tmp_path / "none", "auto", "", default=True)
    (tmp_path / "f.c").write_text(f'#include "f.h"\n#define LOOPTUNE_TYPES_DECLARED\n{text}')
    (tmp_path / "alone.c").write_text(text)
    (tmp_path / "g.c").write_text(f'#include "f.h"\n#include <complex.h>\n{DECLARED};\n')
    size = 'static_assert(sizeof(head) == 5, "packed");'
    (tmp_path / "h.cpp").write_text(f'#include "f.h"\n#include "f.h"\n{size}\n')
    for command in ("gcc -fopenmp f.c alone.c g.c", "g++ h.cpp"):
        call = [*command.split(), "-std=gnu++17" if "g++" in command else "-std=gnu17"]
        subprocess.run([*call, "-Wall", "-Wextra", "-Werror", "-c"], cwd=tmp_path, check=True, timeout=60)


STRUCTS = """#include <complex.h>
#include <stddef.h>
enum { FIX = 3 };
typedef double real; typedef struct { float r, g, b; } px; typedef double complex zc;
struct grid { int n; real *data; real sum; double complex z; px fix[FIX]; size_t pad; };
struct box { double w; } B;
zc f(int n, const px *in, px *restrict out, struct grid *g, const zc a, zc *x, zc A[n][n], struct box b);
"""
USES_STRUCTS = """
zc f(int n, const px *in, px *restrict out, struct grid *g, const zc a, zc *x, zc A[n][n], struct box b)
{
  zc s = 0;
  g->sum = 0;
  for (int i = 0; i < n; i++) { out[i].g = in[i].r * in[i].b + g->fix[1].b; g->sum += g->data[i] * b.w * B.w; }
  for (int i = 0; i < n; i++) {
    x[i] = a * x[i] + g->z;
    s += conj(x[i]);
    b.w += 1;
    for (int j = 0; j < n; j++) A[i][j] *= a;
  }
  return s * b.w;
}
"""
CALLS_STRUCTS = """#include <stdio.h>
int main(void) {
  double d[4] = {1, 2, 3, 4}; zc x[4] = {1, 2 + I, 3, 4 * I}, A[4][4] = {{I, 2}, {3}};
  px in[4] = {{1, 2, 3}}, out[4] = {0};
  struct grid g = {4, d, 0, 2 - I, {{0}, {0, 0, 5}}, 0}; struct box b = {3};
  B.w = 2;
  zc s = f(4, in, out, &g, 1 + 2 * I, x, A, b);
  printf("%g %g %g %g %g %g %g %g\\n", creal(s), cimag(s), g.sum, out[0].g, out[3].g, creal(x[1]), cimag(A[0][0]), b.w);
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_structs_and_complex_numbers_are_parameters_and_results(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(STRUCTS.replace("} B;", "}; extern struct box B;") + USES_STRUCTS)
    text = build.as_c(load(tmp_path / "f.c"), tmp_path / "none", "auto", "", default=True)
    assert "float (*restrict out)[3] = (void *)out_given;" in text
    (tmp_path / "made.c").write_text(text)
    (tmp_path / "main.c").write_text(STRUCTS + CALLS_STRUCTS)
    (tmp_path / "checked.c").write_text((tmp_path / "f.c").read_text().split("zc f(int n")[0] + text)
    gcc = ["gcc", "-std=gnu11", "-Wall", "-Werror", "-fopenmp", "-ffp-contract=off", "-DLOOPTUNE_CHECK"]
    subprocess.run([*gcc, "-DLOOPTUNE_TYPES_DECLARED", "-c", "checked.c"], cwd=tmp_path, check=True, timeout=60)
    printed = []
    for file in ("made.c", "f.c"):
        subprocess.run([*gcc, "main.c", file, "-o", "p"], cwd=tmp_path, check=True, timeout=60)
        printed.append(subprocess.run(["./p"], cwd=tmp_path, capture_output=True, check=True, timeout=60).stdout)
    assert printed[0] == printed[1]


MIXED = """typedef struct { int id; double x; float m[2][3]; } item;
typedef struct { item *items; int n; double total; } bag;
void f(bag *b, const item *restrict src, item cells[][4])
{
  for (int i = 0; i < b->n; i++) {
    b->items[i].id = src[i].id * 2 + cells[i][1].id;
    for (int r = 0; r < 2; r++) for (int c = 0; c < 3; c++) b->items[i].m[r][c] = src[i].m[1 - r][c] + cells[i][c].id;
    b->total += src[i].x;
  }
  for (int i = 0; i < b->n; i++) cells[i][3].x += b->items[i].m[1][2];
}
"""
USES_MIXED = """#include <stdio.h>
int main(void) {
  item a[5] = {0}, s[5] = {0}, c[5][4] = {0}; bag b = {a, 5, 1};
  for (int i = 0; i < 5; i++) { s[i].id = i + 1; s[i].x = 0.5 * i; s[i].m[i & 1][2] = i; c[i][1].id = 7 * i; }
  f(&b, s, c);
  for (int i = 0; i < 5; i++) printf("%d %g %g %g\\n", a[i].id, a[i].m[1][2], a[i].m[0][1], c[i][3].x);
  printf("%g\\n", b.total);
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_fields_of_several_types_have_the_names_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(MIXED)
    made = build.as_c(load(tmp_path / "f.c"), tmp_path / "none", "auto", "looptune build", default=True)
    assert "b->items[i].m[r][c] = src[i].m[1 - r][c]" in made
    printed = []
    for k, source in enumerate((MIXED, made)):
        (tmp_path / "p.c").write_text(source + USES_MIXED)
        subprocess.run(["gcc", "-fopenmp", "p.c", "-o", f"p{k}"], cwd=tmp_path, check=True)
        printed.append(subprocess.run([f"./p{k}"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout)
    assert printed[0] == printed[1]


def test_a_type_is_chosen_for_all_floats(tmp_path: Path) -> None:
    """The declaration has it as well as the loops."""
    (tmp_path / "f.c").write_text(f"typedef double real;\nvoid f(int n, real *w, double *x) {{ {LOOP} }}\n")
    unit = load(tmp_path / "f.c", dtype="float32")
    for text in (build.as_c(unit, tmp_path / "none", "auto", "", default=True), build.header(unit)):
        assert "typedef float real;" in text
        assert "void f(int n, real *w, float *x)" in text


def test_a_counter_of_the_file_that_is_read_is_refused(tmp_path: Path) -> None:
    """The loops leave its last value behind, which a function with counters of its own cannot."""
    text = "int x[40], i;\nvoid f(int n) { for (i = 0; i < n; i++) x[i] = i; }\nint g(void) { return i; }\n"
    with pytest.raises(UsageError, match="other functions read i at file scope"):
        build.as_c(load(text, kernel="f"), tmp_path / "none", "auto", "looptune build", default=True)


def test_a_scop_is_a_function_of_its_own(tmp_path: Path) -> None:
    """It has another name than the function around, as the header has; the comment says what the loops assume."""
    (tmp_path / "h.c").write_text(
        f"double w[40], x[40];\nvoid f(int n) {{\n#pragma scop\n{LOOP}\n#pragma endscop\n}}\n"
    )
    unit = load(tmp_path / "h.c")
    text = build.as_c(unit, tmp_path / "none", "auto", "", default=True)
    declared = text.partition("\nvoid f_scop(")[2].partition("\n")[0]
    assert f"void f_scop({declared};" in build.header(unit)
    assert "in h.c it is a part of f." in text
    assert "Its arrays do not overlap" in text
