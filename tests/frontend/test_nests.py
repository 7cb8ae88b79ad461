"""A loop nest inside any function is a codelet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from looptune.core.errors import LooptuneError, UnsupportedError, UsageError
from looptune.frontend import load
from looptune.ir.c_printer import declaration
from looptune.ir.nodes import Array, Loop, Scalar
from looptune.ir.rewrite import walk
from looptune.schedule.analysis import Analysis, ScheduledTree
from looptune.schedule.assumptions import may_overlap

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
  int n = atoi(argv[1]), j, k;
  double *a = malloc(n * sizeof(double)), *b;
  double sum = 0;
  b = (double *)calloc(n, n * sizeof(double));
  for (int i = 0; i < n; i++) a[i] = i;
  printf("%d\\n", n);
  for (j = 0; j < n; j++)
    for (k = 0; k < n; k++) {
      b[j * n + k] = a[j] * a[k];
      sum += a[k];
    }
  for (int t = 0; t < 10; t++) {
    for (int i = 1; i < n - 1; i++) a[i] = a[i - 1] + a[i + 1];
    printf("%d\\n", t);
  }
  printf("%f %f %d\\n", sum, b[3], j);
}
"""


def parameters(text: str, kernel: str | None = None) -> list[str]:
    return [p.name for p in load(text, kernel=kernel).codelet.params]


def test_function_and_line_choose_a_nest_with_what_it_uses() -> None:
    unit = load(PROGRAM, kernel="main:11")
    assert unit.codelet.name == "main_11"
    assert [p.name for p in unit.codelet.params] == ["a", "b", "n", "j_last", "sum"]
    assert [p.io for p in unit.codelet.params if isinstance(p, Array)] == ["in", "out", "out", "out"]
    assert [n.var for n in walk(unit.codelet.body) if isinstance(n, Loop)] == ["j", "k"]


def test_an_inner_loop_is_a_nest_whose_outer_variables_are_parameters() -> None:
    unit = load(PROGRAM, kernel="main:12")
    assert "j" in {p.name for p in unit.codelet.params if isinstance(p, Scalar)}


def test_no_parameter_is_added_that_the_nest_does_not_use() -> None:
    assert parameters(PROGRAM, "main:9") == ["a", "n"]
    text = "void f(int n, int m, float *x, char **names)\n{ for (int i = 0; i < n; i++) x[i] = 1; puts(*names); }"
    assert parameters(text) == ["n", "x"]


def test_a_line_without_a_loop_names_those_with_one() -> None:
    with pytest.raises(UsageError) as found:
        load(PROGRAM, kernel="main:10")
    assert found.value.message == "no loop begins in line 10 of main: its loops begin in the lines 9, 11, 12, 16, 17"


def test_several_nests_of_a_function_are_listed() -> None:
    with pytest.raises(UnsupportedError) as found:
        load(PROGRAM)
    assert found.value.notes == ("--kernel chooses one of its loop nests: main:9, main:11, main:17",)


def test_the_only_nest_is_taken_with_a_warning() -> None:
    unit = load('void f(int n, float *x)\n{ for (int i = 0; i < n; i++) x[i] = 1;\nprintf("done"); }')
    assert unit.codelet.name == "f_2"
    assert unit.warnings == (
        "<source>:3:1: the codelet is the loop nest f:2 only: printf, which is not defined in this program, cannot be "
        "called in a codelet: define it in this file or in a header of it, or leave the call out\n"
        '  printf("done"); }\n  ^^^^^^^^^^^^^^',
    )


def test_the_nest_with_directives_is_taken() -> None:
    marked = PROGRAM.replace("  for (j = 0", "#pragma looptune parallel\n  for (j = 0")
    unit = load(marked)
    assert unit.codelet.name == "main_12"
    assert "main:12" in unit.warnings[0]


def test_what_a_loop_itself_has_is_refused_there() -> None:
    """The error is not hidden by an inner loop that could be a codelet alone."""
    text = (
        'void f(int n, float *x)\n{ for (int i = 0; i < n; i++) { puts(""); for (int j = 0; j < n; j++) x[j] = 1; } }'
    )
    with pytest.raises(LooptuneError, match="puts, which is not defined") as found:
        load(text)
    assert found.value.notes == ("--kernel chooses one of its loop nests: f:2",)


def test_the_value_of_a_parameter_is_the_one_before_the_nest() -> None:
    text = 'void f(int n, float *x)\n{ n = 2 * n;\nfor (int i = 0; i < n; i++) x[i] = n;\nputs(""); }'
    unit = load(text)
    assert [p.name for p in unit.codelet.params] == ["n", "x"]
    assert not unit.codelet.locals


@pytest.mark.parametrize("call", ["other()", "v->set()", "sets()", "sets_by_other()"])
def test_a_variable_of_the_file_that_a_call_may_change_is_not_read_again(call: str) -> None:
    text = f"""int size, *at; struct s {{ void (*set)(void); }} *v;
      void sets(void) {{ size = 3; }}
      void sets_by_other(void) {{ other(); }}
      void f(float *x) {{ int n = size, m = at[0]; {call}; printf("");
        for (int i = m; i < n; i++) x[i] = 1; }}"""
    assert {p.name for p in load(text, kernel="f:5").codelet.params} == {"x", "n", "m"}
    kept = load(text.replace(call, "puts(x)"), kernel="f:5").codelet
    assert "size" in {p.name for p in kept.params}


def test_an_extent_that_changed_before_the_nest_is_refused() -> None:
    text = 'void f(int n, float x[n][n])\n{ n = 2;\nfor (int i = 0; i < n; i++) x[i][i] = n;\nputs(""); }'
    with pytest.raises(UnsupportedError, match="n is an extent of x and may have another value here"):
        load(text, kernel="f:3")


def test_an_outermost_extent_that_changed_is_left_open() -> None:
    """Where the elements are does not depend on it."""
    text = """void f(int m, float *x) { int n; n = m / 2; float y[n][3];
      for (int i = 0; i < n; i++) y[i][0] = x[i];
      for (int i = 0; i < n; i++) x[i] = y[i][0]; }"""
    params = load(text, kernel="f:3").codelet.params
    assert [declaration(p) for p in params if isinstance(p, Array)] == ["float x[]", "float y[][3]"]


def test_what_a_variable_before_the_nest_begins_with_is_not_needed() -> None:
    """Of ``c``, which leads to a struct, only ``n`` comes, and that is a parameter."""
    text = """struct setup { int n[2]; }; struct info { struct setup *c; };
    void f(struct info *v, float *x) { struct setup *c = v->c; long n = c->n[1] >> 1; int i;
      for (i = 0; i < n; i++) x[i] = 1;
      puts(""); }"""
    assert [p.name for p in load(text, kernel="f:3").codelet.params] == ["x", "n"]


def test_one_of_the_nests_of_a_macro_is_refused() -> None:
    loop = "for (int i = 0; i < n; i++) x[i] = 1;"
    text = f"#define LOOPS {loop} {loop}\nvoid f(int n, float *x)\n{{ LOOPS puts(x); }}"
    with pytest.raises(UnsupportedError, match="this loop, which comes from a macro, cannot be a codelet"):
        load(text, kernel="f:3")


def test_pointers_may_overlap_unless_their_memory_is_their_own() -> None:
    assert may_overlap(load(PROGRAM, kernel="main:11")) == ()
    derived = PROGRAM.replace("b = (double *)calloc(n, n * sizeof(double))", "b = a + 1")
    assert {p.name for p in load(derived, kernel="main:11").codelet.params} == {"n", "a", "j_last", "sum"}
    file_scope = "double b[9], *p;\nvoid f(int n)\n{ p = b + 3;\nfor (int i = 0; i < n; i++) b[i] = p[i]; }"
    with pytest.raises(UnsupportedError, match="b, which may lead to the same memory as p, as this function sets them"):
        load(file_scope, kernel="f:4")


@pytest.mark.parametrize("kernel", ["main:9", "main:11", "main:12", "main:17"])
def test_the_reference_is_the_text_of_the_nest(kernel: str, tmp_path: Path) -> None:
    path = tmp_path / "program.c"
    path.write_text(PROGRAM)
    assert load(path, kernel=kernel).excerpt is not None


def test_a_struct_that_a_nest_alone_uses_belongs_to_its_iterations() -> None:
    """Where the function reads a field after the loop, it is an output of the nest."""
    text = """typedef struct {{ double x, y; }} V;
double f(int n, V *a, double *r) {{
  V d;
  for (int i = 0; i < n; i++) {{ d.x = a[i].x * 2; d.y = a[i].y; r[i] = d.x * d.y; }}
  return {};
}}
"""
    for returned, kind in (("0", "parallel"), ("d.x", "sequential")):
        codelet = load(text.format(returned), kernel="f:4").codelet
        analysis = Analysis(codelet)
        tree = ScheduledTree(analysis, codelet.body, analysis.model.order())
        loop = next(n for n in walk(codelet.body) if isinstance(n, Loop))
        assert tree.verdict(loop).kind == kind
