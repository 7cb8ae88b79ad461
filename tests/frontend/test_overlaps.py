"""Memory that a function names in two ways is not taken for two arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from looptune.core.errors import UnsupportedError
from looptune.frontend import load
from looptune.frontend.survey import survey
from looptune.report.scan.findings import scan
from looptune.report.scan.sources import Source

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """#define DATA(x) (x == NULL ? NULL : at(x))
int *cur; struct s { int x, y; }; int ga[9], *gp = ga; int *at(int *); void set(int **, int *);
void move(int k) { cur = ga + k; } extern void *list; void copy(int **, int **); void f(int n, int *x, int **r)
"""
PREFIX = "for (int i = 1; i < n; i++) { *p += x[i]; x[i] = s; }"
MOVED = "for (int i = 1; i < n; i++) p[i] = q[i - 1];"
CHAIN = "".join(f"c{k} = c{k - 1}; " for k in range(29, 0, -1))
"""Each pointer has the value of the next only after the loop around has gone on once more."""
OVERLAPPING = [
    ("the address of a number", f"int s = 0, *p = &s; {PREFIX}"),
    ("one that is assigned", f"int s = 0, *p; p = &s; {PREFIX}"),
    ("a struct", "struct s v, *p = &v; for (int i = 0; i < n; i++) { p->x += x[i]; x[i] = v.x; }"),
    ("two ways to one array", f"int *p = x, *q; q = p; if (n > 9) q = x + 2; {MOVED}"),
    ("what a call returns", f"int *p = x, *q = at(x); {MOVED}"),
    ("what a call sets", f"int *p = x, *q; set(&q, x); {MOVED}"),
    ("a row", f"int *p = r[0], *q = r[0] + 1; {MOVED}"),
    ("a variable of the file", f"int *p = gp, *q = ga; if (n) p = gp + 1; if (n) q = ga + 1; {MOVED}"),
    ("a list for a struct", "struct { int k, *p; } w = {1, x}; for (int i = 1; i < n; i++) w.p[i] = x[i - 1];"),
    ("a copy of a struct", "struct { int *p; } v, w; v.p = x; w = v; for (int i = 1; i < n; i++) w.p[i] = x[i - 1];"),
    ("one that another function sets", "for (int i = 1; i < n; i++) cur[i] = ga[i - 1];"),
    ("rows of one array", "int *v[2] = {x, x + 1}; for (int i = 1; i < n; i++) v[1][i] = v[0][i];"),
    ("a copied pointer", f"int *p = 0, *q = x; copy(&p, &q); {MOVED}"),
    ("a long chain", f"int *c0 = 0{''.join(f', *c{k} = 0' for k in range(1, 30))}; for (int t = 0; t < 40; t++) "
     f"{{ {CHAIN} c0 = x; }} for (int i = 1; i < n; i++) x[i] = c29[i - 1];"),
    ("far along a list", "struct l { struct l *next; int *v; } *h = list, *o = h; for (int t = 0; t < 9; t++) "
     f"o = o->next; int *p = o->v, *q = h{'->next' * 9}->v; {MOVED}"),
    ("a pointer in a struct", "struct { int *p; } w; w.p = x + 1; for (int i = 1; i < n; i++) w.p[i] = x[i - 1];"),
]  # fmt: skip
APART = [
    ("two fields of a struct", "struct s v, *p = &v; for (int i = 0; i < n; i++) { p->x += x[i]; x[i] = v.y; }"),
    ("two arrays", f"int a[9], b[9], *p, *q; p = a; q = b; if (n) p = a + 1; {MOVED}"),
    ("two arrays at one index", f"int *p = x + n, *q = ga + n; if (n > 1) p = x + 1; if (n) q = ga + n; {MOVED}"),
    ("two calls of a macro", f"int *p, *q; p = q = NULL; p = DATA(x); q = DATA(ga); {MOVED}"),
    ("pointers that are exchanged", f"int *p = x, *q = r[0], *t; while (n--) {{ {MOVED} t = p; p = q; q = t; }}"),
    ("an address that is only passed", "int s, *p = x + 1; set((int **) &s, 0); for (int i = 0; i < n; i++) p[i] = s;"),
]  # fmt: skip


def verdict(tmp_path: Path, body: str) -> str:
    path = tmp_path / "f.c"
    path.write_text(f"{HEAD}{{ {body} }}\n")
    (file,) = scan([Source(path)], 1)
    return next(n.verdict for n in file.nests if n.loops[0].variable == "i")


@pytest.mark.parametrize("body", [c[1] for c in OVERLAPPING], ids=[c[0] for c in OVERLAPPING])
def test_memory_with_two_names_is_one_memory(tmp_path: Path, body: str) -> None:
    assert verdict(tmp_path, body) == "sequential"


@pytest.mark.parametrize("body", [c[1] for c in APART], ids=[c[0] for c in APART])
def test_different_memory_stays_different(tmp_path: Path, body: str) -> None:
    assert verdict(tmp_path, body) in ("parallel", "reduction")


def test_a_codelet_with_two_names_of_one_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text(f"{HEAD}{{ int s = 0, *p = &s; if (n) return;\n{PREFIX} }}\n")
    what = "p, which may lead to the same memory as s, as this function sets them, is not accepted in a codelet"
    with pytest.raises(UnsupportedError, match=what):
        load(path, kernel="f:5")
    (nest,) = survey(path).nests
    assert what in str(nest.refusal)
