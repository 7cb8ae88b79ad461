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


SHARED = {
    "a cast": "int *d = (int *) q->w; d[0] = p[i].w[0];",
    "the address of a field": "double *d = &q->x; *d = p[i].x + 1;",
    "a step of what an address leads to": "double *d = &q->x; ++*d; p[i].x *= 2;",
    "an array in a struct": "double *d = q->v; d[1] = p[i].v[0] + 1;",
    "a struct in a struct": "struct pair *d = &q->pair; d->a = 1; p[i].pair.a += 2;",
    "the same memory as two structs": "q->other->a = 1; p[i].pair.a += 2;",
    "memory without type": "int *k = q->any; double *d = q->any; *k = *d;",
    "a struct as numbers": "unsigned char *b = (unsigned char *) q; b[8] = p[i].v[0];",
    "a struct in a struct as numbers": "int *b = (int *) q; b[8] = p[i].other->a;",
    "a bit-field": "double *d = &q->flags->d; *d = p[i].flags->bit;",
    "an element of a union": "int *k = &q->u.i; *k = p[i].u.f + 1;",
    "two pointers in a union": "*q->two->c = p[i].two->d[0] + 1;",
    "a pointer that a cast may change": "long *k = (long *) q; k[6] = 0; q->w[0] = p[i].x;",
    "a copy of a struct": "struct pair *d = &q->pair; struct pair e = *d; e.a += 1; p[i].pair = e;",
    "an array of the loop": "double b[2], *d = b; if (q) d = q->v; d[0] = p[i].v[1];",
}
STRUCTS = """typedef struct node node;
typedef union either either;
union either { int i; float f; };
typedef struct flags flags;
typedef union two { char *c; double *d; } two;
struct pair { int a, b; };
struct node { double x, v[2], *w; node *next; struct pair pair, *other; either u; flags *flags; void *any;
              two *two; };
struct flags { unsigned bit:1; double d; };
"""


def verdicts(path: Path, body: str) -> list[str]:
    path.write_text(f"{STRUCTS}double f(node *p, int n) {{ double s = 0; {body} return s; }}\n")
    (nest,) = survey(path).nests
    assert nest.codelet is not None
    return [f.kind for f in nest_facts(nest.codelet, Analysis(nest.codelet), nest.flags)]


@pytest.mark.parametrize("body", SHARED.values(), ids=SHARED.keys())
def test_memory_that_is_used_as_two_types_is_one_element(tmp_path: Path, body: str) -> None:
    """Two iterations that use it depend on each other, and a sum of it is none."""
    loop = f"for (int i = 0; i + 1 < n; i++) {{ node *q = p[i].next; {body} }}"
    assert verdicts(tmp_path / "shared.c", loop) == ["sequential"]


def test_memory_that_is_used_as_two_types_and_only_read(tmp_path: Path) -> None:
    loop = "for (int i = 0; i < n; i++) { node *q = p[i].next; double *d = &q->x; s += *d * q->x; }"
    assert verdicts(tmp_path / "read.c", loop) == ["reduction"]


def test_a_list_of_structs_whose_fields_are_listed_later(tmp_path: Path) -> None:
    """Any number of pointers may lead back, and a size that is not known is some number."""
    list_ = "for (; p; p = p->next->next->next->next->next) { p->flags->bit = 1; s += sizeof(flags); }"
    assert verdicts(tmp_path / "list.c", list_) == ["sequential"]


def test_a_table_of_pointers_that_ends_with_null(tmp_path: Path) -> None:
    """As in Qhull: the pointers are elements of a union at the end of a struct."""
    path = tmp_path / "set.c"
    path.write_text("""typedef struct setT setT; typedef union setelemT setelemT;
union setelemT { void *p; int i; };
struct setT { int maxsize; setelemT e[1]; };
typedef struct vertexT { double *point; int id; unsigned seen:1; } vertexT;
double f(setT *set, double *c, int dim) {
  vertexT *vertex, **vertexp; double s = 0; int k;
  if ((set) && (vertexp = (vertexT **)&((set)->e[0].p)))
    while ((vertex = *vertexp++)) { vertex->seen = 1; for (k = 0; k < dim; k++) c[k] += vertex->point[k]; }
  return s; }
""")
    (nest,) = survey(path).nests
    assert nest.codelet is not None
    kinds = [f.kind for f in nest_facts(nest.codelet, Analysis(nest.codelet), nest.flags)]
    assert kinds == ["sequential", "parallel"]


ROWS = [
    ("rows as values", "for (int i = 1; i < 8; i++) to[i] = rows[i - 1];", "parallel"),
    ("rows of a pointer to rows", "int (*p)[8] = k ? rows : more; for (int i = 1; i < n; i++) p[i][1] = p[i - 1][1];",
     "sequential"),
    ("a step over rows", "int (*p)[8] = rows; for (int i = 0; i < 7; i++) { to[i] = *p++; (*p)[0] = 1; }", "parallel"),
    ("the address of a row", "for (int i = 0; i < 7; i++) { int *q = &rows[i][2]; q[1] = more[i][1]; }", "parallel"),
    ("the address of a number", "for (int i = 0; i < n; i++) { int *p = &k; *p = to[i][0]; to[i][0] += k; }",
     "sequential"),
    ("a table of addresses", "int *v[] = {&k, to[0]}; for (int i = 0; i < n; i++) *v[i % 2] = i;", "sequential"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "kind"), [c[1:] for c in ROWS], ids=[c[0] for c in ROWS])
def test_rows_and_addresses_of_numbers(tmp_path: Path, body: str, kind: str) -> None:
    path = tmp_path / "f.c"
    path.write_text(f"int rows[7][8], more[7][8];\nvoid f(int n, int k, int **to) {{ {body} }}\n")
    (nest,) = survey(path).nests
    assert nest.codelet is not None
    (facts, *_) = nest_facts(nest.codelet, Analysis(nest.codelet), nest.flags)
    assert facts.kind == kind
