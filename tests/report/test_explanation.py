"""``looptune check``: what is shown of loops and of how they run, and the record of it for programs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from looptune.frontend import load
from looptune.ir.nodes import Codelet
from looptune.lower.pipeline import lower
from looptune.lower.plan import count, launches
from looptune.report.check import json, nests
from looptune.report.check import text as loops
from looptune.report.check.explanation import explain
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check
from tests.helpers.affine_nests import CODES
from tests.helpers.command_line import looptune
from tests.helpers.explanations import ANNOTATED, HARD, explained, integers

# --- what is shown --------------------------------------------------------------------------------------------------

GOLDEN = {
    "trisolv": """\
  loop        line
  1  for i       3  sequential  flow on x, when n=2
                      (i=0)      writes x[0]   x[i]  7:5
                      (i=1, j=0) reads  x[0]   x[j]  6:25
  2    for j     5  reduction   + of x[i]

  runs as 1 kernel
    one thread, in the thread i, j
  on a CPU, vectors add up +:x (6:7) in another order; --no-reassociate forbids it

  assumed
    no overlap  of x with any other array
    reached     L[n][n], x[n], b[n]
""",
    "seidel-2d": """\
  loop          line
  1  for t         3  sequential  flow on A, when steps=2, n=3
                        (t=0, i=1, j=1) writes A[1][1]   A[i][j]  6:9
                        (t=1, i=1, j=1) reads  A[1][1]   A[i][j]  6:84
  2    for i       4  sequential  flow on A, when steps=1, n=4
                        (t=0, i=1, j=1) writes A[1][1]   A[i][j]      6:9
                        (t=0, i=2, j=1) reads  A[1][1]   A[i - 1][j]  6:38
  3      for j     5  sequential  flow on A, when steps=1, n=4
                        (t=0, i=1, j=1) writes A[1][1]   A[i][j]      6:9
                        (t=0, i=1, j=2) reads  A[1][1]   A[i][j - 1]  6:70

  runs as 1 kernel
    one thread, in the thread t, i, j

  assumed
    reached  A[n][n]
""",
    "symm": """\
  loop          line
  1  for i         4  sequential  flow on C, when m=2, n=1
                        (i=0, j=0)      writes C[0][0]   C[i][j]  11:7
                        (i=1, j=0, k=0) reads  C[0][0]   C[k][j]  8:9
  2    for j       5  parallel    own t
  3      for k     7  reduction   + of t

  runs as 1 kernel
    host i
      grid j: blocks of 256 threads, in the thread k
  on a CPU, vectors add up +:t (9:9) in another order; --no-reassociate forbids it

  assumed
    no overlap  of C with any other array
    reached     C[m][n], A[m][m], B[m][n]
""",
    "trmm": """\
  loop          line
  1  for i         3  sequential  anti on B, no value flows, when m=2, n=1
                        (i=0, j=0, k=1) reads  B[1][0]   B[k][j]  6:30
                        (i=1, j=0)      writes B[1][0]   B[i][j]  7:7
  2    for j       4  parallel
  3      for k     5  reduction   + of B[i][j]

  runs as 1 kernel
    host i
      grid j: blocks of 256 threads, in the thread k
  on a CPU, vectors add up +:B (6:9) in another order; --no-reassociate forbids it

  assumed
    no overlap  of B with any other array
    reached     A[m][m], B[m][n]
""",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_text_is_as_shown(name: str) -> None:
    """The whole picture, to the letter, below the line that names the codelet and the file."""
    assert loops.text(explained(CODES[name])).partition("\n\n")[2] == GOLDEN[name]


def test_a_loop_that_counts_down_is_shown_as_written() -> None:
    """The witness has the user's values of the variable, larger ones first, and the user's own spelling."""
    text = "void f(int n, float A[n+1]) {\n  for (int i = n-1; i >= 0; i--)\n    A[i] = A[ i+1 ];\n}\n"
    (loop,) = explained(text).loops
    assert loop.reason is not None
    w = loop.reason.dependence
    assert (w.source_iteration, w.sink_iteration, w.element, w.sizes) == ({"i": 1}, {"i": 0}, (1,), {"n": 2})
    assert (w.source_text, w.sink_text) == ("A[i]", "A[ i+1 ]")
    refused = explained(text, "loop i: parallel").directives[0].refusal
    assert "iteration (i=1) must run before (i=0) when n=2" in str(refused)


def test_what_cannot_be_analysed_is_said_with_its_place() -> None:
    """Indirect and non-affine subscripts, bounds that are data, calls: what and where; the rest is analysed."""
    found = explained(HARD).loops
    said = [(f.unknown.what, f.unknown.span.line, f.unknown.span.col) for f in found if f.unknown is not None]
    assert said == [
        ("subscript p[i] of z", 4, 7),
        ("the bound p[i] of loop k", 6, 18),
        ("subscript (int)floor((double)x[i]) of z", 9, 12),
        ("subscript i * i of z", 11, 7),
    ]
    assert [f.kind for f in found] == [
        "unknown", "unknown", "parallel", "unknown", "unknown", "parallel", "sequential", "sequential",
    ]  # fmt: skip
    text = loops.text(explained(HARD))
    assert text.count("cannot be analysed") == 4
    assert "sequential  each iteration decides whether there is a next one" in text


def test_a_dependence_under_a_condition_on_data_says_so() -> None:
    """Where y[1] > 0 the iterations do depend on each other: run on such data, the value arrives."""
    last = explained(HARD).loops[-1]
    assert last.reason is not None
    w = last.reason.dependence
    assert (w.array, w.kind, w.source_iteration, w.sink_iteration, w.element) == ("y", "flow", {"i": 1}, {"i": 2}, (1,))
    assert "when n=3 and the condition y[i - 1] > 0 holds" in loops.text(explained(HARD))


def test_only_storage_is_told_from_a_value() -> None:
    """A row that every iteration fills anew carries no value; a local one becomes the iteration's own."""
    text = CODES["doitgen"]
    outer = explained(text).loops[0]
    assert outer.reason is not None
    assert (outer.reason.value, outer.reason.dependence.kind, outer.reason.arrays) == (False, "output", ("row",))
    local = text.replace(", double row[np]) {", ") {\n  double row[np];")
    free = explained(local).loops[0]
    assert (free.kind, free.shared, free.private) == ("parallel", ("row",), ())
    assert "runs serially: `row` cannot be made private" in loops.text(explained(local))


def test_each_thread_has_a_small_local_array_of_its_own() -> None:
    """A loop of which each iteration needs its own array is given to threads, asked for or not, where that is small
    and of a constant size; else it is not, and says how it could be."""
    text = "void f(int n, float A[n][4], float B[n]) {\n  float r[4];\n  for (int i = 0; i < n; i++) {\n" \
           "    for (int p = 0; p < 4; p++) r[p] = A[i][p];\n    B[i] = r[0] + r[3];\n  }\n}\n"  # fmt: skip
    free = explained(text).loops[0]
    assert (free.kind, free.shared, free.private) == ("parallel", (), ("r",))
    for size in ("1025", "n"):
        (judged,) = explained(text.replace("r[4]", f"r[{size}]"), "loop i: parallel").directives
        assert judged.judgement == "refused"
        assert "iterations of loop i would share r; make r an array with one row for each i" in str(judged.refusal)
        assert "or give it a constant size of at most 4096 bytes" in str(judged.refusal)


def test_threads_never_share_a_local_array() -> None:
    """What a loop's iterations leave in a local array for each other keeps it in order."""
    side_by_side = CODES["durbin"]
    assert [f.shared for f in explained(side_by_side).loops] == [(), (), (), ()]
    assert not any(a.var == "k" for k in explained(side_by_side).runs.plan.kernels for a in k.axes)


def test_strict_float_keeps_sums_and_frees_maxima() -> None:
    """Under --no-reassociate a sum of floats is sequential, one of integers and a maximum stay reductions."""
    text = "void f(int n, {0} A[n], {0} s[1]) {{\n  for (int i = 0; i < n; i++)\n    {1}\n}}\n"
    kinds = {
        (dtype, line): explained(text.format(dtype, line), reassociate=False).loops[0].kind
        for dtype in ("float", "int")
        for line in ("s[0] += A[i];", "if (A[i] > s[0]) s[0] = A[i];", "s[0] = s[0] > A[i] ? s[0] : A[i];")
    }
    assert list(kinds.values()) == ["sequential", "reduction", "sequential", "reduction", "reduction", "reduction"]


def test_a_maximum_that_lets_nan_in_depends_on_the_order() -> None:
    """The reason for the above: with a NaN, ``x > e ? x : e`` gives different results, ``e > x ? e : x`` the same."""
    data = np.array([1.0, np.nan, 0.5], dtype=np.float32)
    text = "void f(int n, float A[n], float s[1]) {{ for (int i = 0; i < n; i++) s[0] = {}; }}\n"

    def results(value: str) -> set[float]:
        codelet = load(text.format(value)).codelet
        orders = itertools.permutations(range(3))
        return {
            float(cross_check.interpreted(codelet, {"n": 3, "A": data[list(o)], "s": np.zeros(1, np.float32)})["s"][0])
            for o in orders
        }

    assert len({str(r) for r in results("s[0] > A[i] ? s[0] : A[i]")}) > 1
    assert results("A[i] > s[0] ? A[i] : s[0]") == results("fmaxf(s[0], A[i])") == {1.0}


# --- how it runs, JSON ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fdtd-2d", "ludcmp", "nussinov", "doitgen", "heat-3d"])
def test_launches_are_counted_as_they_come(name: str) -> None:
    """The count equals that of the launches gone through one by one."""
    codelet = load(CODES[name]).codelet
    made = lower(schedule(Analysis(codelet)).codelet)
    for n in (0, 1, 5):
        sizes = dict.fromkeys(integers(codelet), n)
        assert count(made.steps, sizes) == sum(1 for _ in launches(made.steps, sizes))


def test_known_sizes_give_launches() -> None:
    """With the sizes of the file, the plan has numbers."""
    text = CODES["jacobi-1d"].replace("int steps, int n,", "int steps, int n,") + \
        "int main(void) { static double A[50], B[50]; jacobi(7, 50, A, B); return 0; }\n"  # fmt: skip
    found = explained(text)
    assert (found.runs.launches, found.sizes) == (14, {"steps": 7, "n": 50})
    assert found.runs.extents == ((48,), (48,))
    assert "  runs as 2 kernels, 14 launches\n    host t: 7 times\n" in loops.text(found)


PREFIX = "void f(int n, int x[n]) { for (int i = 1; i < n; i++) x[i] += x[i - 1]; }\n"


def test_a_prefix_sum_is_shown_with_the_directive_that_divides_it() -> None:
    """Where its parts are known to be independent; with `parallel`, the refusal names it."""
    found = explained(PREFIX)
    assert "flow on x, when n=3; a prefix sum: `prefix 32` divides it among threads\n" in loops.text(found)
    assert json.record(found)["loops"][0]["division"] == ["loop 1: prefix 32"]
    refused = explained(PREFIX.replace("for", "\n#pragma hmppcg parallel\nfor")).directives[0]
    assert ("loop 1: prefix 32",) in [s.lines for s in refused.suggestions]
    for other in (
        PREFIX.replace("for", "\n#pragma looptune prefix 8\nfor"),
        PREFIX.replace("+= x", "+= 2 * x"),
        PREFIX.replace("x[i] += x[i - 1]", "if (x[i] > 0) x[x[i]] += x[i - 1]"),
    ):
        assert "`prefix" not in loops.text(explained(other))


COUNTS = "void f(int n, int x[n], int h[512][512]) { for (int i = 0; i < n; i++) h[x[i]][x[i]]++; }\n"


def test_a_histogram_is_shown_with_the_directive_that_divides_it() -> None:
    """As many parts as have room for their copies; nothing where it is there, or where no directive divides it."""
    found = explained(COUNTS)
    assert "reduction   + of h[x[i]][x[i]]; `rfactor 1024` divides it among threads\n" in loops.text(found)
    assert json.record(found)["loops"][0]["division"] == ["loop 1: rfactor 1024"]
    refused = explained(COUNTS.replace("for", "\n#pragma hmppcg parallel\nfor")).directives[0]
    assert [s.lines for s in refused.suggestions] == [("loop 1: rfactor 1024",)]
    for other in (
        COUNTS.replace("for", "\n#pragma looptune rfactor 8\nfor"),
        COUNTS.replace("h[512][512]", "*h").replace("[x[i]]++", "++"),
        COUNTS.replace("[x[i]][x[i]]", "[0][0]"),
    ):
        assert json.record(explained(other))["loops"][0]["verdict"] == "reduction"
        assert json.record(explained(other))["loops"][0]["division"] == []


AT = {"file": str, "line": int, "column": int}
LOOP = {"number": int, "variable": str, "depth": int, **AT, "verdict": str, "default": str, "reductions": list,
        "private": list, "shared": list, "dependence": dict, "unknown": dict,
        "division": list}  # fmt: skip
DEPENDENCE = {"array": str, "kind": str, "value_flows": bool, "element": list, "sizes": dict, "condition": str,
              "first": dict, "then": dict, "arrays": list}  # fmt: skip
END = {"iteration": dict, "access": str, "writes": bool, **AT}
DIRECTIVE = {"directive": str, "loop": int, "piece": int, "variable": str, **AT, "verdict": str, "reorders": list,
             "message": str, "notes": list, "suggestions": list}  # fmt: skip
KERNEL = {"name": str, "axes": list, "team": list, "extents": list, "parts": str, "block": list, "host_loops": list}
TOP = {"codelet": str, "file": str, "sizes": dict, "strict_float": bool, "refused": bool, "loops": list,
       "directives": list, "races": list, "vectorised_sums": list, "runs": dict, "permitted": dict,
       "assumes": list, "leaves": list}  # fmt: skip


def has(record: Mapping[str, object], fields: Mapping[str, type], nullable: tuple[str, ...] = ()) -> bool:
    kinds = {k: type(v) for k, v in record.items()}
    return list(kinds) == list(fields) and all(
        kinds[k] is t or (k in nullable and record[k] is None) for k, t in fields.items()
    )


@pytest.mark.parametrize("text", [ANNOTATED, HARD, CODES["ludcmp"]], ids=["annotated", "hard", "ludcmp"])
def test_the_record_has_the_documented_fields(text: str) -> None:
    """Every object has all its fields, in order and of their types; null only where the documentation says."""
    made = json.record(explained(text, everything=True))
    assert has(made, TOP)
    for f in made["loops"]:
        assert has(f, LOOP, ("variable", "dependence", "unknown"))
        assert (f["dependence"] is not None) == (f["verdict"] == "sequential" and f["variable"] is not None)
        assert (f["unknown"] is not None) == (f["verdict"] == "unknown")
        if f["dependence"] is not None:
            assert has(f["dependence"], DEPENDENCE, ("element", "condition"))
            assert has(f["dependence"]["first"], END)
            assert has(f["dependence"]["then"], END)
    for d in made["directives"]:
        assert has(d, DIRECTIVE, ("piece", "variable", "message"))
        assert (d["message"] is not None) == (d["verdict"] == "refused")
    assert list(made["runs"]) == ["launches", "kernels"]
    assert all(has(k, KERNEL, ("extents", "parts")) for k in made["runs"]["kernels"])
    assert list(made["permitted"]) == ["parallel", "permutations", "tilings"]
    assert made["refused"] == any(d["verdict"] == "refused" for d in made["directives"])


def test_colour_is_all_that_colour_adds() -> None:
    """The text with colours is the plain one once the terminal's codes are taken out."""
    found = explained(ANNOTATED)
    coloured = loops.text(found, colour=True)
    plain = "".join(part.partition("m")[2] if k else part for k, part in enumerate(coloured.split("\x1b[")))
    assert coloured != plain == loops.text(found)


def test_scalars_that_leave_a_nest_have_the_names_of_the_text() -> None:
    """A local has another name then, as the codelet has the text's for the array in which the scalar leaves."""
    nest = "for (int i = 1; i < 9; i++) { s += a[i]; k = 2 * k + a[i]; }"
    text = f"void f(double *a) {{ double s = 0, k = 1; g();\n{nest}\nh(s, k); }}\n"
    shown = loops.text(explain(load(text, kernel="f:2"), parse_lines(["loop i: parallel"])))
    assert "flow on k" in shown
    assert "s_2" not in shown
    assert "k_2" not in shown


def test_a_nest_that_takes_too_long_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so at its place; the nest after it is analysed."""
    path = tmp_path / "two.c"
    loops = "for (int i = 0; i < n; i++) x[i] = 0;"
    path.write_text(f'void f(int n, float *x) {{ {loops} puts("a"); {loops} }}\n')

    known: list[Codelet] = []

    def slow(codelet: Codelet, reassociate: bool) -> Analysis:
        known.append(codelet)
        while len(known) == 1:
            pass
        return Analysis(codelet, reassociate)

    monkeypatch.setattr(nests, "LIMIT_S", 0.1)
    monkeypatch.setattr(nests, "Analysis", slow)
    late, other = nests.report(path, None, True)
    assert late.obstacle is not None
    assert late.obstacle.message == "the analysis of this nest took more than 0.1 s"
    assert (late.span.line, late.loops) == (1, ())
    assert [f.kind for f in other.loops] == ["parallel"]


def test_functions_without_effects_leave_loops_parallel(tmp_path: Path) -> None:
    """By their attributes or a pragma; one that reads the array that the loop writes does not."""
    path = tmp_path / "pure.c"
    path.write_text("""
extern double g(double) __attribute__((const));
__attribute__((nothrow, __pure__)) double h(const double *a, int i); // not __attribute__((const)) plain(
[[gnu::const]] int k(int);
double p(double), q(const double *, int);
double plain(double) __attribute__((nothrow));
#pragma looptune pure p, q
void f(int n, const double *x, double *y) {
  for (int i = 0; i < n; i++) y[i] = g(x[i]) + p(x[i]) + k(i);
  puts("");
  for (int i = 0; i < n; i++) y[i] = h(x, i) + q(x, i);
  puts("");
  for (int i = 0; i < n; i++) y[i] = q(y, i);
  puts("");
  for (int i = 0; i < n; i++) y[i] = plain(x[i]);
}
""")
    kinds = [f.kind for nest in nests.report(path, None, True) for f in nest.loops]
    assert kinds == ["parallel", "parallel", "unknown", "sequential"]


SEVERAL = """void f(int n, float a[n], float b[n])
{
  for (int i = 0; i < n; i++) a[i] += 2;
#pragma looptune concurrent
  for (int j = 1; j < n; j++) b[j] += a[j - 1];
}
void g(int n, float a[n])
{
#pragma hmppcg reverse
  for (int i = 1; i < n; i++)
#pragma hmppcg unroll 2
    for (int k = 0; k < n; k++) a[i] = a[i - 1] + k;
  if (n > 3) printf("done");
}
"""


def test_directives_of_a_file_that_is_not_one_codelet(tmp_path: Path) -> None:
    """They are judged in their function if that is one, since they may be about what stands before their nest."""
    path = tmp_path / "a.c"
    path.write_text(SEVERAL)
    ran = looptune("check", path, cwd=tmp_path)
    assert ran.code == 1
    assert "concurrent: loop i before it writes a[i] (line 3), and loop j reads a[j - 1] (line 5)" in ran.out
    assert "reverse is illegal: iteration" in ran.out
    found = nests.nests_record(path, nests.report(path, None, True))["nests"]
    assert [[(d["loop"], d["verdict"]) for d in n["directives"]] for n in found] == [
        [], [(1, "refused")], [(1, "refused"), (2, "proved")]
    ]  # fmt: skip
    path.write_text(SEVERAL.replace("reverse", "unroll 1, 2, 3"))
    assert "cannot be compiled: " in looptune("check", path, cwd=tmp_path).out


def test_histograms_of_a_file_that_is_not_one_codelet(tmp_path: Path) -> None:
    path = tmp_path / "a.c"
    path.write_text(COUNTS + COUNTS.replace("f(", "g(").replace("for", "\n#pragma looptune rfactor 8\nfor"))
    found = nests.nests_record(path, nests.report(path, None, True))["nests"]
    assert [n["loops"][0]["division"] for n in found] == [["loop 1: rfactor 1024"], []]
