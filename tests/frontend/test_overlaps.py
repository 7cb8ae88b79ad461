"""Memory that a function names in two ways is not taken for two arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from looptune.core.errors import UnsupportedError
from looptune.frontend import load, points_to
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
    ("numbers set to each other", "int *o = r[0]; for (int i = 0; i < n; i++) { int l = 0, h = n, k; while (l < h) "
     "{ k = l + h; k /= 2; if (x[k] < i) l = k + 1; else h = k; } o[i] = l; }"),
    ("two arrays at one index", f"int *p = x + n, *q = ga + n; if (n > 1) p = x + 1; if (n) q = ga + n; {MOVED}"),
    ("two calls of a macro", f"int *p, *q; p = q = NULL; p = DATA(x); q = DATA(ga); {MOVED}"),
    ("pointers that are exchanged", f"int *p = x, *q = r[0], *t; while (n--) {{ {MOVED} t = p; p = q; q = t; }}"),
    ("an address that is only passed", "int s, *p = x + 1; set((int **) &s, 0); for (int i = 0; i < n; i++) p[i] = s;"),
]  # fmt: skip

AT_FILE = """struct g { double *data; int n; void (*enter)(double **, double *); }; union u { double *p; long bits; };
static struct g g; static double *p, *q, a[1000];
void *malloc(unsigned long); void *memcpy(void *, void *, unsigned long);
static double *own(int n) { double *r = malloc(n * sizeof(double)); return r; }
static double *same(double *x) { return x; }
static double *kept(double *x) { static double *k; if (x) k = x; return k; }
static double *get(void) { return p; }
static void deep(double *x) { double *y = x + 1; p = y; }
static void set(double *x) { deep(x); }
static void enter(struct g *v, double *x) { v->data = x; }
static struct g made(double *x) { struct g v = {x, 1}; return v; }
static double *swapped(double *c, double *d) { double *r = c, *s = d, *t; t = r; r = s; s = t; return r; }
static void even(double *x, int n);
static void odd(double *x, int n) { if (n) even(x, n - 1); }
static void even(double *x, int n) { if (n) odd(x, n - 1); else p = x; }
static void (*how)(double *) = set; static double *(*which)(double *) = same;
static void apply(void (*done)(double *), double *x) { done(x); }
static double *down(double *x, int n) { return n ? down(x, n - 1) : x; }
static void next(double **to, double *x, int n) { if (n) next(to, x, n - 1); else *to = x; }
"""
APART_BY_CALLS = [
    ("arrays of one function", "p = own(n); q = own(n);", "q[i] = p[i - 1]"),
    ("structs that one function sets", "struct g v, w; enter(&v, x); enter(&w, y);", "v.data[i] = w.data[i - 1]"),
    ("two results", "double *r = same(x), *s = same(y);", "r[i] = s[i - 1]"),
]
OVERLAPPING_BY_CALLS = [
    ("a field of the file", "enter(&g, x);", "x[i] = g.data[i - 1]"),
    ("a pointer of the file", "set(x);", "x[i] = p[i - 1]"),
    ("a field of a variable", "struct g v; enter(&v, x);", "x[i] = v.data[i - 1]"),
    ("a field of what a parameter leads to", "enter(w, x);", "w->data[i] = x[i - 1]"),
    ("what a function returns of the file", "double *r = get();", "r[i] = p[i - 1]"),
    ("what it returns of its arguments", "double *r = same(same(x));", "r[i] = x[i - 1]"),
    ("a static variable of a function", "kept(x); double *r = kept(0);", "r[i] = x[i - 1]"),
    ("a struct that is returned", "struct g v = made(x);", "v.data[i] = x[i - 1]"),
    ("a function that calls itself", "double *r = down(x, n);", "r[i] = x[i - 1]"),
    ("one that sets what it is given", "double *r = 0; next(&r, x, n);", "r[i] = x[i - 1]"),
    ("two functions that call each other", "odd(x, n);", "x[i] = p[i - 1]"),
    ("what pointers were before an exchange", "double *r = swapped(x, y);", "r[i] = y[i - 1]"),
    (
        "an exchanged pointer by its address",
        "double *r = x, *s = y, *t, **to = &r; t = r; r = s; s = t;",
        "(*to)[i] = y[i - 1]",
    ),
    ("a call through a pointer of the file", "how(x);", "x[i] = p[i - 1]"),
    ("a call through a parameter", "apply(set, x);", "x[i] = p[i - 1]"),
    ("what a call through a pointer returns", "double *r = which(x);", "r[i] = x[i - 1]"),
    ("a call through a pointer elsewhere", "double *r = 0; (*w->enter)(&r, x);", "r[i] = x[i - 1]"),
    ("a copied struct", "struct g v, u; v.data = x; memcpy(&u, &v, sizeof u);", "u.data[i] = x[i - 1]"),
    ("a copy of what pointers lead to", "w->data = x; memcpy(w + 1, w, sizeof *w);", "w[1].data[i] = x[i - 1]"),
    ("a struct that is chosen", "struct g u, v; v.data = x; u = n ? v : g;", "u.data[i] = x[i - 1]"),
    ("another member of a union", "union u b, c; b.p = x; c.bits = b.bits;", "c.p[i] = x[i - 1]"),
    ("a union in a copied struct", "struct { union u k; } b, c; b.k.p = x; c = b;", "c.k.p[i] = x[i - 1]"),
    ("an integer", "long k = (long) x; double *r = (double *) ((k + 15) & ~15);", "r[i] = x[i - 1]"),
]


def verdict_with_calls(tmp_path: Path, around: str, statement: str) -> str:
    path = tmp_path / "f.c"
    loop = f"for (int i = 1; i < n; i++) {statement} + 1;"
    path.write_text(f"{AT_FILE}void f(int n, double *x, double *y, struct g *w) {{ {around} {loop} }}\n")
    (file,) = scan([Source(path)], 1)
    return next(n.verdict for n in file.nests)


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


def test_many_paths_among_objects_make_it_less_precise_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more facts are found than are looked at, objects over several links are one."""
    monkeypatch.setattr(points_to, "MOST_FACTS", 1)
    for _, body in OVERLAPPING[::2]:
        assert verdict(tmp_path, body) == "sequential"
    for _, around, statement in OVERLAPPING_BY_CALLS[::3]:
        assert verdict_with_calls(tmp_path, around, statement) == "sequential"


def test_a_codelet_with_two_names_of_one_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text(f"{HEAD}{{ int s = 0, *p = &s; if (n) return;\n{PREFIX} }}\n")
    what = "p, which may lead to the same memory as s, as this function sets them, is not accepted in a codelet"
    with pytest.raises(UnsupportedError, match=what):
        load(path, kernel="f:5")
    (nest,) = survey(path).nests
    assert what in str(nest.refusal)


@pytest.mark.parametrize(("around", "statement"), [case[1:] for case in OVERLAPPING_BY_CALLS],
                         ids=[case[0] for case in OVERLAPPING_BY_CALLS])  # fmt: skip
def test_what_functions_of_the_file_set_is_known(tmp_path: Path, around: str, statement: str) -> None:
    assert verdict_with_calls(tmp_path, around, statement) == "sequential"


@pytest.mark.parametrize(("around", "statement"), [case[1:] for case in APART_BY_CALLS],
                         ids=[case[0] for case in APART_BY_CALLS])  # fmt: skip
def test_two_calls_of_one_function_stay_apart(tmp_path: Path, around: str, statement: str) -> None:
    assert verdict_with_calls(tmp_path, around, statement) == "parallel"


def test_what_another_function_does_with_pointers_of_the_file_is_known(tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text(f"""{AT_FILE}void enter_both(double *x) {{ p = x; g.data = x + 1; }}
void f(int n) {{ for (int i = 1; i < n; i++) p[i] = g.data[i - 1]; }}
void h(int n) {{ for (int i = 1; i < n; i++) p[i] = a[i - 1]; }}
""")
    (file,) = scan([Source(path)], 1)
    assert [n.verdict for n in file.nests] == ["sequential", "parallel"]
