"""C++ is read as far as it is C, and means what g++ makes of it; the rest and other languages are refused by name."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from looptune.core.errors import LooptuneError
from looptune.deploy.source_to_source import transform
from looptune.frontend import load
from looptune.frontend.other_languages import as_c
from looptune.frontend.survey import survey
from looptune.ir import interpreter
from looptune.schedule.analysis import Analysis
from tests.helpers.against_gcc import difference

PROGRAMS = {
    "casts": """\
#include <algorithm>
#include <cmath>
namespace hot { namespace inner {
void f(int n, const float &a, float *x, double (&w)[64])
{
    for (auto i = 0; i < n; ++i) {
        bool positive = x[i] > 0; // not std::max(of, these): "std::min"
        x[i] = positive == true ? std::max(x[i], static_cast<float>(a)) : std::abs(x[i] - 1) * (float)w[i % 64];
        w[i % 64] += std::sqrt(std::min(4.0, std::fabs(w[i % 64])));
    }
}
}}
using hot::inner::f;
""",
    "constants": """\
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
using namespace std;
constexpr int64_t Half = 2;
extern "C" {
struct Limits { int32_t low, high; };
static const Limits limits = {0, 40};
typedef double real;
static inline int32_t clamp(const Limits &l, int32_t v) { return min(std::max(v, l.low), l.high); }
void f(int n, const float &a, float *x, real (&w)[64])
{
    for (std::size_t i = 0; i < (std::size_t)n; i++)
        x[i] = w[clamp(limits, (int32_t)i - 3)] / Half + std::abs((int)i - 5) + abs(a - x[i]);
}
}
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_means_what_it_means_to_cxx(name: str, tmp_path: Path) -> None:
    """The interpreter leaves what a program of g++ leaves, and the reference is compiled by a C compiler."""
    path = tmp_path / "f.cpp"
    path.write_text(PROGRAMS[name])
    called = 'extern "C" void call(int n, float a, float *x, double *w) { f(n, a, x, *(double (*)[64])w); }\n'
    (tmp_path / "called.cpp").write_text(f'#include "f.cpp"\n{called}')
    library = tmp_path / "f.so"
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", library, tmp_path / "called.cpp"], check=True)
    rng = np.random.default_rng(7)
    x, w, n, a = rng.normal(size=50).astype(np.float32), rng.normal(size=64), 50, 0.25
    mine = {"x": x.copy(), "w": w.copy()}
    codelet = load(path, kernel="f").codelet
    values = {"n": n, "a": a, **{p.name: v for p, v in zip(codelet.params[4:], (0, 40), strict=False)}}
    interpreter.run(codelet, mine, values)
    ctypes.CDLL(str(library)).call(n, ctypes.c_float(a), *(ctypes.c_void_p(v.ctypes.data) for v in (x, w)))
    assert np.allclose(mine["x"], x, rtol=1e-6)
    assert np.allclose(mine["w"], w)
    assert difference(path, values, tmp_path, {"x": (n,)}, kernel="f") is None
    assert Analysis(codelet).model.statements


def test_transformed_loops_are_cxx(tmp_path: Path) -> None:
    path = tmp_path / "f.cpp"
    path.write_text(PROGRAMS["casts"])
    made = transform(path, ("loop i: unroll 2",), kernel="f")
    assert "bool positive;" in made
    (tmp_path / "made.cpp").write_text(made)
    subprocess.run(["g++", "-fsyntax-only", tmp_path / "made.cpp"], check=True)
    path.write_text("void f(int n, double (&w)[n]) { for (int i = 0; i < n - 1; i++) w[i] = w[i + 1]; }")
    with pytest.raises(LooptuneError, match=r"C\+\+ does not convert what allocates the copies"):
        transform(path, ("loop i: snapshot w",))


def test_each_token_stays_where_it_was() -> None:
    """Carets point into the text of the user."""
    function = 'void f() { std::cout << "a;b" << 1; delete[] p; }'
    text = f"namespace a {{\nint x = std::max(1, static_cast<int>(2.5)); // }}\n{function}\n}}\n"
    made = as_c(text)
    assert len(made) == len(text)
    assert made.count("\n") == text.count("\n")
    for word in ("int x", "(1,", "2.5", "// }", "void f"):
        assert made.index(word) == text.index(word)
    assert [line.split() for line in made.split("\n")] == [
        [], ["int", "x", "=", "std__max(1,", "(int)(2.5));", "//", "}"],
        ["void", "f()", "{", 'puts("");', "free(p);", "}"], [], [],
    ]  # fmt: skip


@pytest.mark.parametrize("call", ["std::max(x[0], *y++)", "abs(*y++)", "max(x[0], next(y))", "std::abs(x[0] = 2)"])
def test_no_argument_is_evaluated_twice(call: str, tmp_path: Path) -> None:
    """What may have an effect is refused: the macros that stand for these functions name arguments twice."""
    path = tmp_path / "f.cpp"
    head = "using namespace std;\nfloat next(float *y) { *y += 1; return *y; }\nvoid f(int n, float *x, float *y)"
    path.write_text(f"{head}\n{{ for (int i = 0; i < n; i++) x[i] = {call}; }}\n")
    with pytest.raises(LooptuneError):
        load(path, kernel="f")


@pytest.mark.parametrize(
    "functions",
    ["float g(float v) { return v; } double g(double v) { return 2 * v; }",
     "namespace a { float g(float v) { return v; } } namespace b { float g(float v) { return 2 * v; } }"],
)  # fmt: skip
def test_functions_of_one_name_are_not_read(functions: str, tmp_path: Path) -> None:
    """Which one a call means is for C++ to tell; the rest of the file is read."""
    path = tmp_path / "f.cpp"
    loops = "for (int i = 0; i < n; i++)"
    callers = f"void f(int n, float *x) {{ {loops} x[i] = g(x[i]); }}\nvoid h(int n, float *x) {{ {loops} x[i] = 0; }}"
    path.write_text(f"{functions}\n{callers}\n")
    with pytest.raises(LooptuneError, match="g, which is not defined in this program"):
        load(path, kernel="f")
    assert load(path, kernel="h").codelet.name == "h"
    assert ["g is defined 2 times" in str(error) for error in survey(path).skipped] == [True]


def test_abs_of_the_headers_of_c_is_for_floats_too(tmp_path: Path) -> None:
    """As in g++, whose math.h and stdlib.h declare all of them."""
    path = tmp_path / "f.cpp"
    path.write_text("#include <math.h>\nvoid f(int n, double *x) { for (int i = 0; i < n; i++) x[i] = abs(x[i]); }")
    given = {"x": np.array([-0.5, 2.25])}
    interpreter.run(load(path).codelet, given, {"n": 2})
    assert given["x"].tolist() == [0.5, 2.25]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("std::vector<float> v(n);", "std::vector is C++, of which looptune reads what is C as well: pass a pointer"),
        ("auto s = x[0];", "auto is C++, of which looptune reads what is C as well: write the type"),
        ("float &s = x[0];", "a reference is C++, of which looptune reads what is C as well: write a pointer, *s"),
        ("auto g = [](float v) { return v; };", "auto is C++"),
        ("h(x, [](float v) { return v; });", "a lambda is C++"),
        ("x[0] = float(n);", "float(…) is C++, of which looptune reads what is C as well: write (float)(…)"),
        ("for (float v : x) x[0] += v;", "a loop over a range is C++"),
        ("float *p = new float[n];", "new is C++, of which looptune reads what is C as well: pass the array"),
        ("std::fill(x, x + n, 0.f);", "std::fill is C++"),
        ("try { x[0] = 1; } catch (...) { }", "an exception is C++"),
    ],
)
def test_what_is_no_c_is_named(statement: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "f.cpp"
    path.write_text(f"void f(int n, float *x)\n{{\n    {statement}\n    for (int i = 0; i < n; i++) x[i] *= 2;\n}}\n")
    with pytest.raises(LooptuneError) as refused:
        load(path)
    assert message in refused.value.message
    assert refused.value.span.line == 3


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("f.cpp", "class G { void f() { for (int i = 0; i < 9; i++) x[i] = 0; } };", "a class is C++"),
        ("f.cc", "template <class T> void f(T *x) { for (int i = 0; i < 9; i++) x[i] = 0; }", "a template is C++"),
        ("f.f90", "do i = 1, n\n", "f.f90 is Fortran, and looptune reads C: write the loops as a C function, which"),
        ("f.cu", "__global__ void f() {}\n", "f.cu is CUDA, and looptune reads C: give it the sequential loops"),
    ],
)
def test_a_file_without_c_is_refused(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(LooptuneError) as refused:
        load(path)
    assert message in refused.value.message
