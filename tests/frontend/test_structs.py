"""Structs: the same results as gcc, fields as arrays and scalars."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import looptune
from looptune.deploy.source_to_source import transform
from looptune.frontend import c_ast, load
from looptune.frontend.normalize import complex_numbers, struct_layout
from looptune.frontend.survey import survey
from looptune.ir.c_printer import declaration
from looptune.ir.nodes import Array
from tests.helpers.against_gcc import difference, difference_after, verdicts
from tests.helpers.gcc_programs import Program, programs
from tests.helpers.paths import TESTS

gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

PIXELS = """typedef struct { float r, g, b; } px;
void f(int n, px *in) {
  for (int i = 0; i < n; i++)
    in[i].r = in[i].g + in[i].b;
}
"""
GRID = """struct grid { int n; double *data; double sum; };
void f(struct grid *g) {
  g->sum = 0;
  for (int i = 0; i < g->n; i++)
    g->sum += g->data[i];
}
"""


@pytest.mark.sampled(2)
@pytest.mark.sampled(4, "wide")
@gcc
@pytest.mark.parametrize("program", programs(TESTS / "data" / "structs.c"), ids=lambda p: p.name)
def test_structs_compute_what_gcc_computes(program: Program, tmp_path: Path) -> None:
    assert difference(program.text, program.sizes, tmp_path, program.shapes) is None
    assert [*verdicts(load(program.text).codelet).values()] == program.loops


@pytest.mark.parametrize(
    ("text", "params"),
    [
        (PIXELS, ["n", "float in[][3]"]),
        (GRID, ["double g_sum[1]", "double g_data[]", "g_n"]),
        (PIXELS.replace("float r, g, b;", "int id; float r, g, b;").replace("+ in[i].b", ""), ["n", "float in[][4]"]),
    ],
)
def test_fields_are_columns_or_parameters(text: str, params: list[str]) -> None:
    found = load(text).codelet.params
    assert [declaration(p) if isinstance(p, Array) else p.name for p in found] == params


CELLS = """struct cell { int id; double x; float m[3]; };
void f(int n, struct cell *p) { for (int i = 0; i < n; i++) { p[i].x += p[i].id; p[i].m[1] = 2; } }
"""


def test_fields_of_several_types_are_an_array_each() -> None:
    found = [p for p in load(CELLS).codelet.params if isinstance(p, Array)]
    assert [declaration(p) for p in found] == ["double p_x[]", "int p_id[]", "float p_m[][3]"]
    cells = np.zeros(5, dtype=np.dtype([("id", "i4"), ("x", "f8"), ("m", "f4", 3)], align=True))
    cells["id"] = np.arange(5)
    looptune.compile(CELLS, target="numba-cpu")(5, cells["x"], cells["id"], cells["m"])
    assert cells["x"].tolist() == [0, 1, 2, 3, 4]
    assert cells["m"].tolist() == [[0, 2, 0]] * 5


def test_a_structured_array_is_passed_as_it_is() -> None:
    kernel = looptune.compile(PIXELS, target="numba-cpu")
    pixels = np.zeros(5, dtype=[("r", "f4"), ("g", "f4"), ("b", "f4")])
    pixels["g"], pixels["b"] = 1, np.arange(5)
    kernel(5, pixels)
    assert pixels["r"].tolist() == [1, 2, 3, 4, 5]


def test_the_same_field_of_two_pointers_may_be_one_place() -> None:
    """A field that one struct's pointer writes is no constant of another pointer to such a struct."""
    text = """struct g { int n; };
void h(struct g *a, struct g *b, int *x) { a->n = 3; for (int i = 0; i < 9; i++) x[i] = b->n; }
"""
    assert {"a_n", "b_n"} <= {p.name for p in load(text).codelet.params if isinstance(p, Array)}


WRITTEN = {
    "nbody": ("loop i: tile 4", "p[i].vx += dt * fx;"),
    "nested2": ("loop i: unroll 2", "c->g->a * i"),
    "sizedfield2": ("loop 3: unroll 2", "((int *)&p[k])[12 + i * 3 + 2 * j]"),
    "mixed_grid": ("loop 1: unroll 2", "]."),
    "cvec": ("loop 2: tile 2", "c[i * n + j].re = s_re;"),
    "zgemm_lda": ("loop j: unroll 2", "__imag__ B["),
    "dot": ("loop i: parallel", "reduce(+:s_re, +:s_im)"),
    "spinor": ("loop 3: unroll 2", "((double *)&u["),
}


@gcc
@pytest.mark.parametrize("name", WRITTEN)
def test_loops_are_written_back_with_the_fields_of_the_text(name: str, tmp_path: Path) -> None:
    lines, said = WRITTEN[name]
    every = [*programs(TESTS / "data" / "structs.c"), *programs(TESTS / "data" / "complex.c")]
    assert difference_after(next(p for p in every if p.name == name), [lines], tmp_path) is None
    assert said in (tmp_path / "made.c").read_text()


def test_what_does_not_change_stays(tmp_path: Path) -> None:
    file = tmp_path / "f.c"
    file.write_text(PIXELS)
    assert transform(file) == PIXELS


def test_c_that_is_built_names_the_fields_of_mixed_structs_unless_a_variable_hides_them() -> None:
    assert not isinstance(load(CELLS).head, str)
    text = """struct s { int k; double x; };
void f(int n, struct s *p, double *q) {
  for (int i = 0; i < n; i++) { double t = p[i].k + p[i].x; { double p = t; q[i] = p; } }
}
"""
    head = load(text).head
    assert head == "f has another variable that is called p, as its structs are: rename one"


def test_a_struct_that_leads_back_to_itself_through_an_array_is_no_error_of_ours(tmp_path: Path) -> None:
    """Such a type has no end, and is read some levels deep."""
    path = tmp_path / "blocks.c"
    path.write_text("""struct vector;
struct symbol { int len; char *name; };
struct block { long start, end; struct symbol *of; struct block *around; int n; struct symbol syms[1]; };
struct vector { int n; struct block *block[2]; };
struct table { struct vector *vector; };
struct vector *find(long pc, struct table *t) {
  struct vector *bl = t->vector;
  struct block *b;
  int bot = bl->n;
  while (bot >= 0) { b = bl->block[bot]; if (b->end > pc) return bl; bot--; }
  return 0;
}
""")
    assert len(survey(path).nests) == 1


def test_the_layout_of_a_struct_is_computed_once() -> None:
    """Structs that hold others twice, and structs that lead to others twice, have very many paths."""
    held: c_ast.Type = c_ast.Basic("int32")
    led: c_ast.Type = c_ast.Basic("int8")
    for k in range(60):
        held = c_ast.Struct(f"h{k}", (("a", held), ("b", held)))
        led = c_ast.Struct(f"l{k}", (("a", c_ast.Pointer(led)), ("n", c_ast.Basic("int8")), ("b", c_ast.Pointer(led))))
    assert struct_layout.size_of(held) == 4 * 2**60
    assert struct_layout.alignment(held) == 4
    assert struct_layout.size_of(led) == 24
    assert isinstance(led, c_ast.Struct)
    assert struct_layout.field_of(led, "b") == (led.fields[2][1], 16)
    assert not complex_numbers.mentions_complex(c_ast.Name("x"), {"x": c_ast.Pointer(led), "y": held})


def test_structs_of_one_tag_have_layouts_of_their_own() -> None:
    """Those of different files may have the same tag; of a field after one of unknown size the place is unknown."""
    first = c_ast.Struct("s", (("n", c_ast.Basic("int8")), ("x", c_ast.Basic("float64"))))
    again = c_ast.Struct("s", (("n", c_ast.UnsupportedType("u")), ("x", c_ast.Basic("float64")), ("z", first)))
    assert [struct_layout.size_of(s) for s in (first, again)] == [16, None]
    assert struct_layout.alignment(again) is None
    assert struct_layout.field_of(again, "x") == (c_ast.Basic("float64"), -1)
    assert struct_layout.field_of(again, "y") is None
