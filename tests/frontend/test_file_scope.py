"""What a function needs of its file is found from the tokens, and copied as another file can have it."""

from __future__ import annotations

import pytest

from looptune.frontend.file_scope import FileScope
from looptune.frontend.preprocess import preprocess

LOOP = "for (int i = 0; i < n; i++) y[i] = {};"
CASES = {
    "variables declared together": (
        "static int a = 1, *b, c[2] = {1, 2}, d; double (*e)[3], h; void g(void) { b = 0; d = 1; }", "a + c[1] + h",
        "static int a = 1, c[2] = {1, 2};\nextern double h;\n\n",
    ),
    "names of the function itself": (
        "static int n; struct s { int q; }; static int q(void) { return n; } int g(void) { return n++ + q(); }",
        "((struct s){n}).q", "struct s { int q; };\n\n",
    ),
    "as before C89": ("half(x) double x; { return x / 2; }", "half(i)",
                      "\nstatic half(x) double x; { return x / 2; }\n\n"),
    "pragmas and attributes": (
        "#define A(n) __attribute__((aligned(n)))\n#pragma pack(1)\nstruct A(8) s { char c; int i; } t;\n"
        "#pragma omp declare simd\nint unused(void);\n#pragma pack()\nint end;", "t.i",
        "#pragma pack(1)\nextern struct __attribute__((aligned(8))) s { char c; int i; } t;\n#pragma pack()\n\n",
    ),
    "headers": ("#define _GNU_SOURCE\n#include <math.h>\n#undef M_PI\nstatic const double M_PI = 3;", "M_PI",
                "#define _GNU_SOURCE\n#include <math.h>\n#undef M_PI\n\nstatic const double M_PI = 3;\n\n"),
    "tables": ("const int a[2] = {1, 2}; extern const int b[2]; const int b[2] = {3, 4}; int c = 1;", "a[1] + b[0] + c",
               "static const int a[2] = {1, 2};\nextern const int b[2];\nextern const int b[2];\nextern int c;\n\n"),
    "parameters without names": (
        "typedef struct a a; typedef struct b b; void g(int, a *, b *);\nvoid (*h)(a *, b *) = g;", "(g(1, 0, 0), 1)",
        "typedef struct a a;\ntypedef struct b b;\nvoid g(int, a *, b *);\n\n",
    ),
    "vectors": ("#define V __attribute__((vector_size(16)))\nstatic float V v; float w V;", "v[0] + w[1]",
                "static float __attribute__((vector_size(16))) v;\n"
                "extern float w __attribute__((vector_size(16))) ;\n\n"),
    "types of GNU C": ("#define SAME(x) ({ __typeof__(x) x_ = (x); x_; })\n"
                       "static int s(int a) { return SAME(a); }", "s(i)",
                       "\nstatic int s(int a) { return ({ __typeof__(a) x_ = (a); x_; }); }\n\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_the_function_needs_precedes_it(name: str) -> None:
    """No more, and with its pragmas and attributes."""
    before, value, expected = CASES[name]
    own = f"void f(int n, double *y) {{ {LOOP.format(value)} }}"
    made = FileScope(preprocess(f"{before}\n{own}\n", "f.c", {}, [])).own_text("f")
    assert made is not None
    assert made.text == f"{expected}{own}\n"
    assert made.hidden == ()


@pytest.mark.parametrize(
    ("before", "hidden"),
    [
        ("static int k; int g(void) { return k; }", ("k",)),
        ("static int k; static void set(void) { k++; } void g(void) { set(); }", ("k",)),
        ("static int k; static void set(void) { k++; }", ()),
        ("static int k; void set(void) { k++; }", ("k",)),
        ("static int k; static int *p = &k; int g(void) { return *p; }", ("k",)),
        ("static const int k = 1; int g(void) { return k; }", ()),
        ("static int k; void g(int k) { k++; }", ()),
        ("static int k; void f(int n, double *y); void g(double *y) { f(3, y); }", ()),
    ],
)
def test_a_state_that_others_use_stays_in_the_file(before: str, hidden: tuple[str, ...]) -> None:
    """Directly, through a function that other files can call, or through a pointer."""
    use = "set(); y[0] = k;" if "set" in before else "y[0] = k;"
    text = f"{before}\nvoid f(int n, double *y) {{ {LOOP.format('1')} {use} }}\n"
    made = FileScope(preprocess(text, "f.c", {}, [])).own_text("f")
    assert made is not None
    assert made.hidden == hidden
