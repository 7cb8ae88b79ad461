"""Definitions as before C89, and declarations without a type, against what gcc makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.core.errors import LooptuneError
from looptune.frontend import load
from tests.helpers.against_gcc import difference

LOOP = "for (i = 0; i < n; i++) a[i] = 2 * a[i] + i;"
TEXTS = (
    f"f(a, n)\ndouble *a;\nint n;\n{{ int i; {LOOP} }}",
    f"static f(a, n) double *a; {{ register i; {LOOP} }}",
    f"int f(n, a) double a[]; {{ int i; {LOOP} return n; }}",
    f"typedef int pair[2]; extern g(); f(a, n) float a[]; {{ static z; int i; {LOOP} }}",
    f"struct s {{ int x; }}; f(a, n, p) long *a; struct s *p; {{ int i; {LOOP} a[0] += p->x; }}",
    f"f(n, x, a) float x; double *a; short n; {{ int i; {LOOP} a[1] *= x; }}",
    f"const k = 3; static z, w[4]; f(a, n) int *a; {{ const m = 4; int i; {LOOP} a[0] += k + m; }}",
    f"#define FN(name) name(a, n) double *a; int n; {{ int i; {LOOP} }}\nFN(f)",
)


@pytest.mark.parametrize("text", TEXTS)
def test_gcc_computes_the_same(text: str, tmp_path: Path) -> None:
    unit = load(f"{text}\n", kernel="f")
    sizes = {"n": 9, "x": 1.25, "p_x": 5}
    known = {p.name: sizes[p.name] for p in unit.codelet.params if p.name in sizes}
    assert difference(f"{text}\n", known, tmp_path, {}, "f") is None


def test_a_mark_is_that_of_the_function(tmp_path: Path) -> None:
    """It is neither a codelet of another file nor a scop outside of every function."""
    for mark, body in (
        ("#pragma hmpp f codelet, target=CUDA, args[a].io=inout\n", LOOP),
        ("", f"\n#pragma scop\n{LOOP}\n#pragma endscop\n"),
    ):
        unit = load(f"{mark}f(a, n)\ndouble *a;\nint n;\n{{ int i; {body} }}\n")
        assert (unit.codelet.name, unit.warnings) == ("f", ())


@pytest.mark.parametrize("kind", ["", "int "])
def test_what_cannot_be_read_is_an_error_at_its_place(kind: str) -> None:
    text = f"#pragma hmpp f codelet\n{kind}f(a, n) double *a; int n; {{ int i; {LOOP} @ }}\n"
    with pytest.raises(LooptuneError, match="illegal character '@'") as refused:
        load(text)
    assert refused.value.span is not None
    assert refused.value.span.line == 2


def test_macros_that_are_not_known_stay_what_they_are() -> None:
    """A name with parentheses before a declaration is no definition."""
    with pytest.raises(LooptuneError):
        load(f"MODULE(a, b)\nint z;\nvoid f(int n, int *a) {{ int i; {LOOP} }}\nvoid g(void) {{ @ }}\n", kernel="g")
