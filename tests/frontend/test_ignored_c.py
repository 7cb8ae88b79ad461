"""C that says nothing of what is computed is read over, and a misspelt pragma is warned of."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import UnsupportedError
from looptune.frontend import load
from tests.helpers import cross_check
from tests.helpers.against_gcc import difference

BODY = "{ for (int i = 0; i < n; i++) a[i] = 2 * a[i]; }"


@pytest.mark.parametrize(
    "text",
    [
        f"void f(n, a) int n; int *a; {BODY}",
        f"void f(a, n) int a[], n; {BODY}",
        'void f(int n, int *a) { _Static_assert(sizeof(int) == 4, ""); S1: ' + BODY[1:],
        'int g(int x) { __asm__ volatile("nop" : : ); return x; }\nvoid f(int n, int *a) ' + BODY,
        "void f(int n, int a[n]) { for (int i = 0; i < n;) { a[i] = 2 * a[i]; i++; } }",
        "typedef int real;\nint h(x) real x; { return x; }\nvoid f(int n, real *a) " + BODY,
    ],
)
def test_it_is_read(text: str) -> None:
    """Parameters as before C89, assertions, labels, other functions in assembly, loops without a third part."""
    codelet = load(f"{text}\n", kernel="f").codelet
    given = cross_check.arguments(codelet, {"n": 4, "a": 4})
    want = {"a": 2 * cross_check.arrays(given)["a"]}
    assert cross_check.off(want, cross_check.interpreted(codelet, given)) is None


@pytest.mark.parametrize(
    ("pragma", "meant"),
    [
        ("hmpcg unroll 4", "hmppcg"), ("hmppgc unroll 4", "hmppcg"), ("HMMPCG parallel", "hmppcg"),
        ("looptone unroll 2", "looptune"), ("loop_tune unroll 2", "looptune"), ("hmmp f codelet", "hmpp"),
        ("omp parallel for", ""), ("acc loop", ""), ("GCC ivdep", ""), ("simd", ""), ("unroll(4)", ""), ("once", ""),
        ("STDC FP_CONTRACT ON", ""), ("ivdep", ""), ("hmppcg parallel", ""), ("something else", ""),
    ],
)  # fmt: skip
def test_a_misspelt_pragma_is_warned_of(pragma: str, meant: str) -> None:
    """With the place and the word that was meant; those of other tools stay silent."""
    warnings = load(f"void f(int n, int *a) {{\n#pragma {pragma}\n{BODY[1:]}\n").warnings
    assert [f"did you mean {meant}?" in w and ":2:" in w for w in warnings] == ([True] if meant else [])


MODES = """typedef unsigned int u8 __attribute__((mode(QI)));
typedef int wide __attribute__((__mode__(__DI__)));
typedef short v8 __attribute__((vector_size(16)));
typedef float big __attribute__((mode(DF)));
typedef int one __attribute__((mode(QI))), other;
v8 twice(v8 x) { return x + x; }
void f(int n, wide *a, big *b, const signed char *c) {
  for (int i = 0; i < n; i++) { a[i] = a[i] * 3000000000 + c[i]; b[i] = b[i] / 3; }
}
void g(int n, other *a) { for (int i = 0; i < n; i++) a[i] = 300; }
"""


def test_types_of_other_modes_and_vectors_leave_the_rest_of_the_file(tmp_path: Path) -> None:
    """A mode is a width. Of several names that are declared together, none is taken for what it may not be."""
    assert difference(MODES, {"n": 9}, tmp_path, None, "f") is None
    small = "typedef unsigned int u8 __attribute__((mode(QI)));\n"
    assert difference(f"{small}void f(int n, u8 *a) {{ for (int i = 0; i < n; i++) a[i] += 250; }}\n", {"n": 9},
                      tmp_path) is None  # fmt: skip
    with pytest.raises(UnsupportedError, match="a, of type other, is not accepted"):
        load(MODES, kernel="g:10")
