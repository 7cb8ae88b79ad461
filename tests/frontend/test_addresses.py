"""Nests over structs that point to each other, and pointers into memory of which nothing is known, are analysed.

The statements on numbers that they become are run by the interpreter and compared with the C, compiled by gcc.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

from looptune.frontend.survey import SurveyedNest, survey
from looptune.ir import interpreter
from looptune.ir.nodes import Array, Scalar
from looptune.report.check.nest_facts import nest_facts
from looptune.schedule.analysis import Analysis

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 12
TYPES = """typedef struct node {
  double x; int k; struct node *next; double *w; double v[2]; struct { int a, b; } in;
} node;
static node *last(node *p) { while (p->next) p = p->next; return p; }
static void grow(node *p) { p->k += 2; }
"""
FUNCTIONS = {
    "list": "for (; p; p = p->next) { p->x += p->k; p->v[1] = p->v[0] + p->in.b; n = p->k; }",
    "walk": "for (int i = 0; i < n; i++) { node *q = p + i; q->x = q->k + q->in.a; q->in.b = i; q->next = q; }",
    "chosen": "for (int i = 0; i < n; i++) { node *q = &p[i]; if (q->k > 2 && q->next) q = q->next; q->x += 1; }",
    "rows": "for (int i = 0; i < n; i++) { node *q = p[i].next; if (q) for (int j = 0; j < 3; j++) q->w[j] += q->x; }",
    "moved": "double *d = p->w; for (int i = 0; i < n; i++) { *d++ = p[i].x; if (p[i].next) d = p[i].next->w; }",
    "copies": "for (int i = 1; i < n; i++) { node t = p[i]; t.x += p->x; t.in.a = 3; p[i - 1] = t; }",
    "linked": "for (int i = 0; i + 1 < n; i++) { p[i + 1].next = p[i].next; p[i].next = p[i].k ? &p[i + 1] : 0; }",
    "called": "for (int i = 0; i < n; i++) { node *e = last(&p[i]); e->k = i; grow(e); if (e == p + i) e->x = 9; }",
    "ended": "for (node *q = p, *e = p + n; q < e; q++) { q->k = e - q; q->next = e; }",
}  # fmt: skip
MAIN = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static node mem[%d];
static double heap[%d];
int main(int argc, char **argv) {
  int seed = atoi(argv[2]), p = atoi(argv[3]), n = atoi(argv[4]);
  for (int i = 0; i < %d; i++) {
    int to = i + 1 + (i * seed) %% 3;
    node one = {(i * 3 + seed) %% 7, (i + seed) %% 5, i && to < %d ? mem + to : 0, heap + 3 * i, {i, -i}, {i %% 3, 1}};
    mem[i] = one;
  }
  for (int i = 0; i < %d; i++) heap[i] = i %% 4;
  %s
  for (int i = 0; i < %d; i++) {
    node *m = mem + i;
    printf("%%g %%d %%d %%d %%g %%g %%d %%d ", m->x, m->k, m->next ? (int) (m->next - mem) : 0, (int) (m->w - heap),
           m->v[0], m->v[1], m->in.a, m->in.b);
  }
  for (int i = 0; i < %d; i++) printf("%%g ", heap[i]);
}
"""
TEXT = TYPES + "".join(f"void f_{name}(node *p, int n) {{\n{body}\n}}\n" for name, body in FUNCTIONS.items())
RUNS = [(0, 1, 5), (1, 2, 6), (2, 1, 9), (3, 4, 0)]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("addresses")
    calls = "".join(f'if (!strcmp(argv[1], "{name}")) f_{name}(mem + p, n);\n' for name in FUNCTIONS)
    sizes = (COUNT, 3 * COUNT, COUNT, COUNT, 3 * COUNT, calls, COUNT, 3 * COUNT)
    (folder / "nodes.c").write_text(TEXT)
    (folder / "main.c").write_text('#include "nodes.c"\n' + MAIN % sizes)
    subprocess.run(["gcc", "-w", "-o", folder / "main", folder / "main.c"], check=True)
    return folder


def memory(seed: int) -> dict[str, np.ndarray]:
    """Return the memory of the program at its begin, an array for each field."""
    i = np.arange(COUNT)
    to = i + 1 + (i * seed) % 3
    heap = np.arange(3 * COUNT) % 4
    return {
        "node_x": ((i * 3 + seed) % 7).astype(float), "node_k": ((i + seed) % 5).astype("int32"),
        "node_next": np.where((i > 0) & (to < COUNT), to, 0), "node_w": 3 * i,
        "node_v": np.stack([i, -i], 1).astype(float), "node_in_a": (i % 3).astype("int32"),
        "node_in_b": np.ones(COUNT, "int32"), "memory_of_float64": heap.astype(float),
    }  # fmt: skip


def outermost(folder: Path) -> dict[str, SurveyedNest]:
    found = (n for n in survey(folder / "nodes.c").nests if not n.inside)
    return {n.function.name[2:]: n for n in found if n.function.name.startswith("f_")}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_for_pointers_compute_what_gcc_computes(program: Path, name: str) -> None:
    codelet = outermost(program)[name].codelet
    assert codelet is not None
    for seed, p, n in RUNS:
        arrays = memory(seed)
        arrays["node_w_rows"] = arrays["memory_of_float64"].reshape(COUNT, 3)
        scalars = {"n": n, "p_address": p, "d_address": 3 * p, "q_address": p, "e_address": p + n}
        given = {a.name: arrays[a.name] for a in codelet.params if isinstance(a, Array) and a.name in arrays}
        given |= {a.name: np.zeros(9, a.dtype) for a in codelet.params if isinstance(a, Array) and a.name not in given}
        rest = {a.name: scalars.get(a.name, 3) for a in codelet.params if isinstance(a, Scalar)}
        interpreter.run(codelet, given, rest)
        run = [program / "main", name, str(seed), str(p), str(n)]
        want = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
        got = [[arrays[f][i] for f in ("node_x", "node_k", "node_next", "node_w")] + [*arrays["node_v"][i]]
               + [arrays["node_in_a"][i], arrays["node_in_b"][i]] for i in range(COUNT)]  # fmt: skip
        flat = [*(v for row in got for v in row), *arrays["memory_of_float64"]]
        assert [float(v) for v in flat] == [float(v) for v in want], (name, seed, p, n)


def test_verdicts(program: Path) -> None:
    """Lists are followed in order, structs that are walked over are parallel, places from data are named."""
    found = outermost(program)
    kinds = {}
    for name, nest in found.items():
        assert nest.codelet is not None
        assert nest.refusal is not None, name
        kinds[name] = [f.kind for f in nest_facts(nest.codelet, Analysis(nest.codelet), nest.flags)]
    assert kinds["list"] == ["sequential"]
    assert kinds["walk"] == ["parallel"]
    assert kinds["rows"] == ["reduction", "parallel"]
    assert kinds["copies"] == kinds["linked"] == ["sequential"]
    assert "parallel" not in {kinds[name][0] for name in ("chosen", "moved", "called")}


REFUSED = {
    "a cast": "for (; p; p = p->next) { int *q = (int *) p->w; q[0] = 1; p->w[0] = 2; }",
    "the address of a field": "for (; p; p = p->next) { double *q = &p->x; *q = 1; p->x += 2; }",
    "an array in a struct": "for (; p; p = p->next) { double *q = p->v; *q = 1; p->v[0] += 2; }",
    "a struct in a struct": "for (; p; p = p->next) { struct pair *q = &p->pair; q->a = 1; p->pair.a += 2; }",
    "the same memory as two structs": "for (; p; p = p->next) { p->other->a = 1; p->pair.a += 2; }",
    "memory without type": "for (; p; p = p->next) { int *i = p->any; double *d = p->any; *i = *d; }",
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
def test_memory_that_is_used_as_two_types_is_refused(tmp_path: Path, body: str) -> None:
    path = tmp_path / "refused.c"
    path.write_text(f"""struct pair {{ int a, b; }};
typedef struct node {{ double x, v[2], *w; struct node *next; struct pair pair, *other; union {{ int i; float f; }} u;
                      void *any; }} node;
void f(node *p) {{ {body} }}
""")
    (nest,) = survey(path).nests
    assert nest.codelet is None


VIEWS = """typedef struct { double *data; int n; } view;
view column(double *m, int j);
void f(double *m, view *a, int n) {
  for (int i = 0; i < n; i++) {
    a[i] = column(m, i);
    for (int j = 1; j < n; j++) a[i].data[j] = m[j - 1] + a[i].n;
  }
}
"""


def test_what_a_call_returns_may_lead_into_what_it_was_given(tmp_path: Path) -> None:
    """A struct that a call returns has any values, and its pointers may be any."""
    path = tmp_path / "views.c"
    path.write_text(VIEWS)
    nest = survey(path).nests[0]
    assert nest.codelet is not None
    found = nest_facts(nest.codelet, Analysis(nest.codelet), nest.flags)
    assert "parallel" not in {f.kind for f in found}
    assert {"memory_of_float64", "m_address"} <= {p.name for p in nest.codelet.params}


UNIONS = """typedef union { float f; unsigned u; } word;
typedef struct node { int k, last : 4, first : 4; } bits;
typedef struct row { int n; union { double value, *of; char bytes[8]; } u; } row;
int g(row *p, bits *b, float *y, double *x, int n) {
  for (int i = 0; i < n; i++) { word w; w.f = y[i]; w.u &= 0x7fffffff; y[i] = w.f; }
  for (int i = 1; i < n; i++) p[i].u.value = p[i - 1].u.bytes[2];
  for (int i = 1; i < n; i++) p->u.bytes[i] = i;
  for (int i = 0; i < n; i++) { p[i].n = i; p[i].u.value = i; }
  for (int i = 0; i < n; i++) b[i].last = b[0].first;
  for (int i = 0; i < n; i++) x[i] = p[0].u.of[i];
  for (int i = 0; i < n; i++) p[0].u.of[i] = p[1].u.of[i];
  for (int i = 0; i < n; i++) p[i].u.of[0] = 1;
}
"""


def test_all_fields_of_a_union_are_one_element(tmp_path: Path) -> None:
    """So are the bit-fields of a struct; pointers in unions may be equal."""
    path = tmp_path / "unions.c"
    path.write_text(UNIONS)
    kinds = []
    for nest in survey(path).nests:
        assert nest.codelet is not None
        assert nest.refusal is not None
        (fact,) = nest_facts(nest.codelet, Analysis(nest.codelet), nest.flags)
        kinds.append(fact.kind)
    assert kinds == [
        "parallel", "sequential", "sequential", "parallel", "sequential", "parallel", "sequential", "sequential",
    ]  # fmt: skip


def test_a_call_beside_what_it_may_change_is_analysed(tmp_path: Path) -> None:
    """Behind a pointer that is passed may be what the other operand reads; a scalar that is passed is refused."""
    path = tmp_path / "calls.c"
    path.write_text("""typedef struct { double *x; double sum; } s;
double h(s *p) { double *q = &p->sum; *q += 1; return p->sum; }
double k(int *i) { *i += 1; return 2.0 * *i; }
void f(s *p, double *y, int n, int m) { for (int i = 0; i < n; i++) p->x[i] = h(p); }
void g(s *p, double *y, int n, int m) { for (int i = 0; i < n; i++) y[m] = k(&m); }
""")
    assert [n.codelet is not None for n in survey(path).nests] == [True, False]


def test_a_constant_struct_of_the_file_is_memory(tmp_path: Path) -> None:
    """Where pointers are numbers, its initial values are not known."""
    path = tmp_path / "constant.c"
    path.write_text("""typedef struct { int m; double e; } par;
typedef struct node { double *s; struct node *next; double a; } node;
static const par defaults = { 6, 1e-5 };
void *get(int n);
int f(int n, par *given) {
  par p = given ? *given : defaults;
  node *it = 0, *lm = get(p.m);
  for (int i = 0; i < p.m; i++) { it = &lm[i]; it->a = defaults.e; it->s = get(n); }
  return it != 0;
}
""")
    (nest,) = survey(path).nests
    assert nest.codelet is not None
    assert "defaults_address" in {p.name for p in nest.codelet.params}
