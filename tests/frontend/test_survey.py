"""Every nest of a file, whatever stands around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from looptune.core.errors import ParseError
from looptune.frontend import survey as survey_module
from looptune.frontend.lower_codelet import build
from looptune.frontend.survey import survey
from looptune.ir.nodes import Array
from looptune.report.check.loop_facts import loop_facts
from looptune.schedule.analysis import Analysis

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """\
#include "missing.h"
#include <stdio.h>
int old(a, b) int a; what b; {
return a; }
#define BOTH for (int i = 0; i < 9; i++) x[i] = 1; for (int i = 0; i < 9; i++) x[i] = 2;
void f(int n, float *x, struct other *o)
{
  while (o->next) {
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) x[i * n + j] = 0;
    puts("");
  }
  BOTH
}
int broken(void) { return 1 +; }
"""


def test_inner_nests_are_listed_where_the_outer_one_is_not_supported(tmp_path: Path) -> None:
    path = tmp_path / "program.c"
    path.write_text(PROGRAM)
    found = survey(path)
    assert [(n.kernel, n.depth, n.codelet is not None, n.inside) for n in found.nests] == [
        ("f:8", 3, False, False),
        ("f:9", 2, True, True),
        ("f:13", 1, True, False),
        ("f:13", 1, True, False),
    ]
    assert [name for name, _ in found.missing] == ["missing.h"]
    assert {e.span.line for e in found.skipped} == {3, 15}


def test_extents_are_those_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "program.c"
    path.write_text(PROGRAM)
    found = survey(path)
    extents = [found.extent(n) for n in found.nests]
    assert extents[1] is not None
    assert PROGRAM[slice(*extents[1])].startswith("for (int i = 0; i < n; i++)\n")
    assert PROGRAM[slice(*extents[1])].endswith("x[i * n + j] = 0;")
    assert extents[2:] == [None, None]


def test_nests_with_long_tables_are_analysed(tmp_path: Path) -> None:
    """A constant array of which each value would be an assignment is an array at file scope."""
    path = tmp_path / "program.c"
    values, half = (", ".join(map(str, range(n))) for n in (600, 300))
    path.write_text(f"""static const short window[600] = {{{values}}};
void f(int n, double *y) {{ for (int i = 0; i < n; i++) y[i] *= window[i]; }}
void g(int n, double *y) {{ static const int t[2][300] = {{{{{half}}}}}; for (int i = 0; i < n; i++) y[i] *= t[1][i]; }}
""")
    for nest in survey(path).nests:
        assert nest.refusal is not None
        assert nest.codelet is not None
        assert [f.kind for f in loop_facts(Analysis(nest.codelet), frozenset())] == ["parallel"]


ENDS = """void f(int n, int m, double *y, const double *x) {
  double *p = y, *q = y; const double *best = x; int i, j;
  for (i = 0; i < n; i++) *p++ = 0;
  for (i = 0; i < n; i++) { p = y + i; *p = x[i]; }
  for (i = 0; i < n; i++, p += 2 * m - n) for (j = 0; j < n; j++) *p++ = x[i];
  for (i = 0; i < n; i++) if (x[i] > 0) best = &x[i];
  for (i = 0; i < n; i++) if (x[i] > 0) *q++ = x[i];
  for (i = 0; i < n; i++) { if (x[i] > 9) continue; best = &x[i]; }
  *p = *q = *best;
}
"""


def test_nests_may_set_pointers_that_are_read_after_them(tmp_path: Path) -> None:
    """They are analysed: where a condition decides which iteration sets a pointer last, the loop is sequential."""
    path = tmp_path / "program.c"
    path.write_text(ENDS)
    found = survey(path).nests
    assert all(n.refusal is not None and "read afterwards" in n.refusal.message for n in found)
    kinds = [[f.kind for f in loop_facts(Analysis(n.codelet), n.flags)] for n in found if n.codelet is not None]
    assert kinds == [["parallel"]] * 2 + [["parallel", "parallel"]] + [["sequential"]] * 3


def test_types_of_missing_headers_have_the_width_that_they_name(tmp_path: Path) -> None:
    path = tmp_path / "program.c"
    path.write_text("""#include "types.h"
static inline my_int16_t half(my_uint32_t x) { return x >> 1; }
void f(my_int32_t n, u8 *x, ogg_int64_t *y) { for (my_int i = 0; i < n; i++) y[i] = half(x[i]); }
""")
    (nest,) = survey(path).nests
    assert nest.codelet is not None
    assert [p.dtype for p in nest.codelet.params] == ["int32", "uint8", "int64"]


GIVEN = """struct inner { double w[4]; int k; };
struct bits { int left, error; unsigned char *buf; struct inner *in; double unused[3]; };
void refill(struct bits *s, int n);
static int get(struct bits *s) { if (s->left < 3) refill(s, 3); s->left -= 3; return s->buf[s->left]; }
void f(int n, struct bits *s, int *y) { for (int i = 0; i < n; i++) y[i] = get(s); }
void g(int n, struct bits *s, double *y) {
  for (int t = 0; t < 9; t++) { refill(s, t); for (int i = 0; i < n; i++) s->buf[i] += s->in->k * y[i]; } }
void h(int n, struct bits *s) { for (int i = 0; i < n; i++) { s->buf[i] = 1; refill(s, i); s->buf[i] += s->in->k; } }
"""


def test_calls_may_change_the_fields_of_structs_that_they_are_given(tmp_path: Path) -> None:
    """Only those that the nest uses count; the fields of one struct that a pointer leads to have variables."""
    path = tmp_path / "program.c"
    path.write_text(GIVEN)
    nests = [n for n in survey(path).nests if not n.inside]
    kinds = [[f.kind for f in loop_facts(Analysis(n.codelet), n.flags)] for n in nests if n.codelet is not None]
    assert kinds == [["sequential"], ["sequential", "parallel"], ["sequential"]]
    changed = {p.name for n in nests if n.codelet is not None for p in n.codelet.params if isinstance(p, Array)}
    assert {"s_left", "s_buf", "s_in_k"} <= changed
    assert "s_unused" not in changed


UNSET = """#include "config.h"
#if AT_LEAST(3, 0)
typedef int number;
#else
typedef float number;
#endif
#ifndef WAY
#error choose a WAY
#endif
void f(int n, number *x) { for (int i = 0; i < n; i++) x[i] = 1; }
"""


def test_directives_that_need_a_missing_header_do_not_lose_the_file(tmp_path: Path) -> None:
    """A tolerant survey ignores ``#error``, takes a condition that cannot be evaluated as false, and lists both."""
    path = tmp_path / "program.c"
    path.write_text(UNSET)
    with pytest.raises(ParseError, match="cannot be evaluated"):
        survey(path)
    found = survey(path, tolerant=True)
    (nest,) = found.nests
    assert nest.codelet is not None
    assert [p.dtype for p in nest.codelet.params] == ["int32", "float32"]
    assert [e.span.line for e in found.skipped] == [2, 8]


CELLS = """struct part { int k; double w[4]; };
struct cell { int id; double x; double *row; struct part s[3]; };
void a(int n, int m, struct cell *c) {
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) c[i].row[j] = c[i].x + c[i].id; }
void b(int n, struct cell **c) { for (int i = 0; i < n; i++) c[i]->x = c[i]->id; }
void d(int n, struct cell *c) {
  for (int i = 1; i < n; i++) for (int j = 0; j < 3; j++) c[i].s[j].w[1] = c[i - 1].s[j].w[1] + c[i].id; }
void e(int n, struct cell *c) {
  for (int i = 0; i < n; i++) for (int j = 1; j < 3; j++) c[i].s[j].w[0] = c[i].s[j - 1].w[0] + c[i].s[j].k; }
void f(int n, struct cell *c, double *z) { for (int i = 0; i < n; i++) { c[i].row = z; c[i].row[0] = c[i].id; } }
"""


def test_a_block_that_runs_once_is_no_nest(tmp_path: Path) -> None:
    path = tmp_path / "program.c"
    path.write_text(
        "void f(int n, int *x) { do { n++; do { for (int i = 0; i < n; i++) x[i] = 0; } while (0); } while (0); }"
    )
    assert [(n.span.col, n.depth, n.inside) for n in survey(path).nests] == [(40, 1, False)]


def test_headers_are_found_by_their_names(tmp_path: Path) -> None:
    """A tolerant survey reads <name/header.h> where the sources have header.h, unless it is one of the system's."""
    (tmp_path / "real.h").write_text("typedef double real;")
    (tmp_path / "types.h").write_text("#error not this one")
    path = tmp_path / "program.c"
    path.write_text(
        "#include <lib/real.h>\n#include <sys/types.h>\nvoid f(real *x) { for (int i = 0; i < 9; i++) x[i] = 0; }"
    )
    found = survey(path, tolerant=True, include_dirs=[tmp_path])
    assert not found.skipped
    (nest,) = found.nests
    assert nest.codelet is not None
    assert [p.dtype for p in nest.codelet.params] == ["float64"]


def test_fields_of_several_types_behind_pointers_and_in_arrays_are_analysed(tmp_path: Path) -> None:
    """Each field that is used has an array; a field that is a pointer leads to rows, if it is not set."""
    path = tmp_path / "program.c"
    path.write_text(CELLS)
    nests = survey(path).nests
    kinds = [[f.kind for f in loop_facts(Analysis(n.codelet), n.flags)] for n in nests if n.codelet is not None]
    assert kinds[:4] == [["parallel"] * 2, ["parallel"], ["sequential", "parallel"], ["parallel", "sequential"]]
    assert all(n.refusal is not None and n.refusal.message.startswith("fields of types") for n in nests[:4])
    assert kinds[4:] == [["unknown"]]


@pytest.mark.wide
def test_of_many_calls_the_effects_count(tmp_path: Path) -> None:
    """A nest with more calls than are inlined is analysed: those that are left may change what they are given."""
    path = tmp_path / "program.c"
    levels = "".join(f"void g{k}(double *x, int i) {{ g{k - 1}(x, i); g{k - 1}(x, i + 1); }}\n" for k in range(1, 12))
    nest = "for (int i = 0; i < n; i++) { g11(x, i); y[i] = 0; }"
    path.write_text(
        f"void g0(double *x, int i) {{ x[i] += 1; }}\n{levels}void f(int n, double *x, double *y) {{ {nest} }}\n"
    )
    found = survey(path).nests[-1]
    assert found.refusal is not None
    assert "calls are inlined" in found.refusal.message
    assert found.codelet is not None
    assert "other_functions" in {p.name for p in found.codelet.params}


FILLED = """struct s { int left, flag; int *buf; struct s *in; int arr[4]; } one;
static int get(struct s *p) { p->left -= 1; return p->buf[p->left]; }
static int set(struct s *p) { p->flag = 7; return 3; }
static int move(struct s *p) { p->in = p; return 3; }
void a(struct s *p, int n) { for (int i = 0; i < n; i++) p->flag |= get(p) << i; }
void b(struct s *p, int n) { for (int i = 0; i < n; i++) p->flag = set(p) << i; }
void c(struct s *p, int n) { for (int i = 0; i < n; i++) p->arr[i] = set(p) << i; }
void d(struct s *p, int n) { for (int i = 0; i < n; i++) p->flag |= set(p) << i; }
void e(struct s *p, int n) { for (int i = 0; i < n; i++) p->in->flag = move(p) << i; }
void f(struct s *p, int n) { for (int i = 0; i < n; i++) p->arr[p->left] = get(p) << i; }
void g(struct s *p, int n) { for (int i = 0; i < n; i++) p->arr[n] = (n = i) + get(p); }
"""


def test_a_field_may_be_set_to_what_a_call_returns_that_changes_others(tmp_path: Path) -> None:
    """C leaves the order open only where the call changes where the field is, or a field that is read."""
    path = tmp_path / "program.c"
    path.write_text(FILLED)
    nests = survey(path).nests
    assert [n.function.name for n in nests if n.codelet is not None] == ["a", "b", "c"]
    assert all(n.refusal is not None and "order that C leaves open" in n.refusal.message for n in nests[3:])


def test_an_error_of_ours_in_one_nest_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_at_two(file: Any, chosen: Any, options: Any) -> Any:
        if chosen.nest.line == 2:
            raise AssertionError("planted")
        return build(file, chosen, options)

    monkeypatch.setattr(survey_module, "build", fails_at_two)
    path = tmp_path / "program.c"
    path.write_text("""void f(int n, double *y) {
  for (int i = 0; i < n; i++) y[i] = 0;
  for (int i = 0; i < n; i++) y[i] = 1;
}
""")
    first, second = survey(path).nests
    assert first.codelet is None
    assert first.refusal is not None
    assert "an error in looptune: AssertionError: planted" in first.refusal.message
    assert second.codelet is not None


def test_names_from_macros_are_those_of_the_text(tmp_path: Path) -> None:
    """A variable that only hands a value on is replaced wherever it is used (libLBFGS)."""
    path = tmp_path / "program.c"
    path.write_text("""#define LEAST(m, a, b) if ((a) < (b)) { (m) = (a); } else { (m) = (b); }
struct range { double low, high; };
static double clipped(double x, const double low, const double high) {
  double m;
  if (high < low) m = low;
  else LEAST(m, x, high)
  return m;
}
void f(int n, double *y, struct range *r) {
  double high = r->high;
  for (int i = 0; i < n; i++) { high = r->low + i; y[i] = clipped(y[i], r->low, high); }
}
""")
    (nest,) = survey(path).nests
    assert nest.refusal is None


def test_what_one_function_needs_keeps_no_other_from_being_read(tmp_path: Path) -> None:
    """An attribute of a variable, constants that are named like types of missing headers, and ``long double``."""
    path = tmp_path / "f.c"
    path.write_text("""#include "missing.h"
enum { A_FLOAT, B_FLOAT };
void g(int n, int *x) { int v __attribute__((vector_size(16))) = {1}; for (int i = 0; i < n; i++) x[i] = v[0]; }
long double h(int n, long double *x) { long double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s; }
void k(int n, my_float *x) { for (int i = 0; i < n; i++) switch (n) { case A_FLOAT: x[i] = B_FLOAT; } }
""")
    read = survey(path, tolerant=True)
    assert [(n.function.name, n.codelet is not None) for n in read.nests] == [("h", True), ("k", True)]
    assert [e.message for e in read.skipped] == ["the attribute vector_size is not supported: write plain C types"]
