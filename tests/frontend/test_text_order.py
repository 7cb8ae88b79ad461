"""What the text of a loop shows about the order of its iterations, where there is no codelet."""

from __future__ import annotations

import pytest

from looptune.frontend import c_ast, nests
from looptune.frontend.program import read_program
from looptune.frontend.text_order import text_order

HEAD = "struct s *next(struct s *); double sqrt(double); int f(int n, int k, double *x, char *t, struct s *p)"
CASES = [
    ("a call of which nothing is known", "for (int i = 0; i < n; i++) p = next(p);", "call i"),
    ("a call without an order", "for (int i = 0; i < n; i++) x[i] = sqrt(x[i]);", None),
    ("a jump", "for (int i = 0; i < n; i++) if (x[i] > 0) break;", "jump i"),
    ("a jump out of an inner loop", "for (int i = 0; i < n; i++) while (k > 0) break;", None),
    ("a jump to a label outside", "for (int i = 0; i < n; i++) if (x[i] > 0) goto end; end: k = 0;", "jump i"),
    ("a return", "for (int i = 0; i < n;) { if (x[i] > 0) return 1; i++; }", "jump while"),
    ("characters", "while (*t++ == ' ') k = 0;", "next while"),
    ("a counter that data move", "for (int i = 0; i < n; i++) if (x[i] > 0) i++;", "next while"),
    ("a counted while", "while (k < n) { x[k] = 0; k += 2; }", None),
    ("a value of the iteration before", "for (int i = 0; i < n; i++) { x[i] = k; k = i; }", "scalar i k"),
    ("a value of this iteration", "for (int i = 0; i < n; i++) { k = i; x[i] = k; }", None),
    ("one of this iteration on each way", "for (int i = 0; i < n; i++) { if (i) k = 1; else k = 2; x[i] = k; }", None),
    ("one that a way leaves", "for (int i = 0; i < n; i++) { if (x[i] > 0) k = i; x[i] = k; }", "scalar i k"),
    ("elements that data choose", "for (int i = 0; i < n; i++) if (x[i] > 0) x[k++] = i;", "scalar i k"),
    ("a counter", "for (int i = 0; i < n; i++) x[k++] = i;", None),
    ("a sum", "for (int i = 0; i < n; i++) k += t[i];", None),
    ("a sum that is used", "for (int i = 0; i < n; i++) { k += t[i]; x[i] = k; }", "scalar i k"),
    ("a maximum", "for (int i = 0; i < n; i++) if (t[i] > k) k = t[i];", None),
    ("a switch", "for (int i; i < n; i++) { switch (i) { case 1: k = 2; break; default: k = i; } x[i] = k; }", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "order"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_the_text_shows_the_order(text: str, order: str | None) -> None:
    file = read_program(f"{HEAD} {{ {text} return 0; }}", lambda _: lambda _name, _text: True).file
    loop = next(nests.outermost_loops(file.functions[0].body))
    assert isinstance(loop, c_ast.For | c_ast.While)
    found = text_order(loop, file.functions[0], file)
    assert (None if found is None else f"{found.why} {found.counter} {found.scalar}".strip()) == order
