"""``looptune check``: what is said of loops is true when the loops are run, and what is offered is legal.

the witness        run at its sizes, both iterations touch the element named, in the order claimed
the verdict        at small sizes, no two iterations of a parallel loop touch one element that either writes
the suggestion     put in the directive's place, it is accepted
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import oracle
import pytest
from affine import CODES
from hypothesis import given, settings
from hypothesis import strategies as st

from looptune.analysis import Analysis
from looptune.errors import DirectiveError, IllegalTransform
from looptune.explain import Explanation, LoopFacts, explain
from looptune.frontend import load
from looptune.frontend.placed import parse_lines
from looptune.interp import _Machine
from looptune.ir import Assign, Codelet, Expr, If, Load, Loop, Scalar, Stmt, Var
from looptune.mapping import plan
from looptune.permitted import bare, permitted
from looptune.plans import count, launches
from looptune.poly.legality import Refused
from looptune.report import loops, loops_json
from looptune.rewrite import walk
from looptune.schedule import schedule
from looptune.source import Span

README = Path(__file__).parent.parent / "README.md"


def explained(text: str, *lines: str, everything: bool = False, reassociate: bool = True) -> Explanation:
    return explain(load(text), parse_lines(lines), everything=everything, reassociate=reassociate)


# --- running the loops ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Touch:
    """One access of a run. ``counters`` by the loop's number, ``iteration`` by the user's names and values.

    ``sums``: it is of x in ``x = x op e``.
    """

    span: Span
    array: str
    element: tuple[int, ...]
    writes: bool
    counters: Mapping[int, int]
    iteration: Mapping[str, int]
    sums: bool


def run(codelet: Codelet, sizes: Mapping[str, int]) -> list[Touch]:
    """Every access in the order it is made, of a codelet whose control does not read arrays."""
    machine = _Machine({}, dict(sizes), None)
    local = {v.name for v in codelet.locals}
    found: list[Touch] = []

    def touched(node: Load | Var, writes: bool, around: tuple[Loop, ...], stmt: Assign) -> Touch:
        array, index = (node.array, node.index) if isinstance(node, Load) else (node.name, ())
        users = {f.var: machine.value(Var(f.var) if f.shown is None else f.shown) for f in around}
        counters = {f.number: machine.scalars[f.var] for f in around}
        span = node.span if node.span.line else stmt.span
        sums = node == stmt.target and any(n == node for n in walk(stmt.value))
        return Touch(span, array, tuple(int(machine.value(e)) for e in index), writes, counters, users, sums)

    def visit(body: tuple[Stmt, ...], around: tuple[Loop, ...], asked: tuple[Expr, ...]) -> None:
        for stmt in body:
            match stmt:
                case Assign(target, value):
                    inside = target.index if isinstance(target, Load) else ()
                    nodes = [n for n in walk((value, *inside, *asked)) if isinstance(n, Load | Var)]
                    memory = [n for n in nodes if isinstance(n, Load) or n.name in local]
                    found.extend(touched(n, False, around, stmt) for n in memory)
                    found.append(touched(target, True, around, stmt))
                case Loop(var, lo, hi, inner, step):
                    for i in range(machine.value(lo), machine.value(hi), step):
                        machine.scalars[var] = i
                        visit(inner, (*around, stmt), asked)
                case If(cond, then, other):
                    visit(then if machine.value(cond) else other, around, (*asked, cond))

    visit(codelet.body, (), ())
    return found


def integers(codelet: Codelet) -> list[str]:
    return [p.name for p in codelet.params if isinstance(p, Scalar) and p.dtype.startswith("int")]


def place(touch: Touch) -> tuple[int, int]:
    return touch.span.line, touch.span.col


@dataclass(frozen=True)
class Pair:
    """Two accesses of one element, one a write. ``value``: what the first writes is what the second reads."""

    first: Touch
    then: Touch
    value: bool


def carried(touches: list[Touch], loop: LoopFacts) -> Iterator[Pair]:
    """The pairs in different iterations of the loop and the same ones around it."""
    by_element: dict[object, list[Touch]] = {}
    for t in touches:
        if loop.number in t.counters:
            around = tuple(itertools.takewhile(lambda c: c[0] != loop.number, t.counters.items()))
            by_element.setdefault((t.array, t.element, around), []).append(t)
    for group in by_element.values():
        for (k, a), (m, b) in itertools.combinations(enumerate(group), 2):
            if (a.writes or b.writes) and a.counters[loop.number] != b.counters[loop.number]:
                kept = not any(t.writes for t in group[k + 1 : m])
                yield Pair(a, b, a.writes and not b.writes and kept)


def shows(witness: Refused, pair: Pair) -> bool:
    """The pair is of the two accesses that the witness names, and they do what it says."""
    does = {"flow": (True, False), "anti": (False, True), "output": (True, True)}[witness.kind]
    ends = (witness.source.line, witness.source.col), (witness.sink.line, witness.sink.col)
    a, b = pair.first, pair.then
    return (place(a), place(b)) == ends and (a.writes, b.writes) == does and a.array == witness.array


def assert_true(codelet: Codelet, loop: LoopFacts) -> None:
    """The witness happens at its sizes, just as it says, and at no smaller ones; a value flows where it is said to."""
    assert loop.reason is not None
    w, value = loop.reason.dependence, loop.reason.value
    assert w.because is None
    sizes = {p: w.sizes.get(p, 3) for p in integers(codelet)}
    pairs = [p for p in carried(run(codelet, sizes), loop) if shows(w, p)]
    assert any((p.first.iteration, p.then.iteration, p.first.element) == (w.first, w.then, w.element) for p in pairs)
    smaller = itertools.product(*(range(1, sum(w.sizes.values()) + 1) for _ in w.sizes))
    for values in (v for v in smaller if sum(v) < sum(w.sizes.values())):
        at = {**sizes, **dict(zip(w.sizes, values, strict=True))}
        assert not any(shows(w, p) and p.value >= value for p in carried(run(codelet, at), loop)), (str(w), at)
    if not value:
        everything = carried(run(codelet, dict.fromkeys(sizes, 4)), loop)
        assert not any(p.value and not (p.first.sums and p.then.sums) for p in everything), str(w)


def assert_free(codelet: Codelet, loop: LoopFacts, sizes: Mapping[str, int]) -> None:
    """Iterations share nothing but what each has its own of, and what they accumulate into."""
    sums = {r.variable.partition("[")[0] for r in loop.reductions}
    for p in carried(run(codelet, sizes), loop):
        assert p.first.array in {*loop.private, *loop.shared, *sums}, (loop.number, p)


@pytest.mark.parametrize("name", CODES)
def test_every_witness_is_real_and_every_parallel_loop_is_free(name: str) -> None:
    """Sequential: the two iterations touch the element named, in order, at the smallest sizes. Else: no conflict."""
    codelet = load(CODES[name]).codelet
    for loop in explained(CODES[name]).loops:
        if loop.kind == "sequential":
            assert_true(codelet, loop)
        else:
            assert_free(codelet, loop, dict.fromkeys(integers(codelet), 4))


def test_the_verdicts_of_known_codes() -> None:
    """p parallel, r reduction, s sequential, by loop number."""
    kinds = {name: "".join(f.kind[0] for f in explained(text).loops) for name, text in CODES.items()}
    assert kinds == {
        "gemver": "ppprppr", "symm": "spr", "trmm": "spr", "doitgen": "ssprp", "cholesky": "ssrr", "lu": "ssrpr",
        "ludcmp": "ssrprsrsr", "trisolv": "sr", "durbin": "srpp", "deriche": "pspspp", "floyd-warshall": "sss",
        "nussinov": "ssr", "adi": "spsspss", "fdtd-2d": "sppppppp", "heat-3d": "spppppp", "jacobi-1d": "spp",
        "jacobi-2d": "spppp", "seidel-2d": "sss",
    }  # fmt: skip


SUBSCRIPTS = ("i", "j", "i - 1", "j + 1", "n - 1 - i", "i + j", "0", "m - j")
HEADERS = (
    "for (int {v} = 0; {v} < {n}; {v}++)", "for (int {v} = {n} - 1; {v} >= 0; {v}--)",
    "for (int {v} = 1; {v} <= {n}; {v} += 2)", "for (int {v} = {n}; {v} > 0; {v} -= 2)",
)  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Two loops that count either way, around one or two statements on one array and one scalar."""
    outer, inner = (draw(st.sampled_from(HEADERS)).format(v=v, n=n) for v, n in (("i", "n"), ("j", "m")))
    lines = []
    for _ in range(draw(st.integers(1, 2))):
        a, b, c, d = (draw(st.sampled_from(SUBSCRIPTS)) for _ in range(4))
        target, value = draw(st.sampled_from([(f"A[{a}][{b}]", f"A[{c}][{d}] + t"), ("t", f"A[{a}][{b}]"),
                                              (f"A[{a}][{b}]", f"A[{a}][{b}] + B[j]")]))  # fmt: skip
        lines.append(f"      {target} = {value};")
    body = "\n".join([f"  {outer}", f"    {inner} {{", *lines, "    }"])
    return f"void f(int n, int m, int A[99][99], int B[99]) {{\n  int t = 0;\n{body}\n}}\n"


@settings(max_examples=60, deadline=None)
@given(texts())
def test_witnesses_of_random_loops_are_real(text: str) -> None:
    """As above, for loops that count up and down by one and by two."""
    codelet = load(text).codelet
    for loop in explained(text).loops:
        if loop.kind == "sequential":
            assert_true(codelet, loop)
        else:
            assert_free(codelet, loop, {"n": 4, "m": 4})


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
    assert (w.first, w.then, w.element, w.sizes) == ({"i": 1}, {"i": 0}, (1,), {"n": 2})
    assert (w.source_text, w.sink_text) == ("A[i]", "A[ i+1 ]")
    refused = explained(text, "loop i: parallel").directives[0].refusal
    assert "iteration (i=1) must run before (i=0) when n=2" in str(refused)


JACOBI = """\
void f(int n, float A[n][n]) {
  for (int i = 1; i < n; i++)
    for (int j = 0; j < n - 1; j++)
      A[i][j] = A[i - 1][j + 1];
}
"""


def test_the_readme_shows_what_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example there is the output to the letter."""
    monkeypatch.chdir(tmp_path)
    Path("jacobi.c").write_text(JACOBI)
    found = explain(load("jacobi.c"), parse_lines(["loop i: permute j, i"], "directives"))
    shown = "".join(f"    {line}".rstrip() + "\n" for line in loops.text(found).splitlines())
    assert shown in README.read_text()


HARD = """\
#include <math.h>
void f(int n, int p[n+1], float x[n], float y[n], float z[n]) {
  for (int i = 0; i < n; i++)
    z[p[i]] = y[i];
  for (int i = 0; i < n; i++)
    for (int k = p[i]; k < p[i + 1]; k++)
      z[k] = 1;
  for (int i = 0; i < n; i++)
    z[(int)floor(x[i])] = 1;
  for (int i = 0; i < n; i++)
    z[i * i] = 1;
  for (int i = 0; i < n; i++)
    while (x[i] > 1)
      x[i] /= 2;
  for (int i = 1; i < n; i++)
    if (y[i - 1] > 0)
      y[i] = 2 * y[i];
}
"""


def test_what_cannot_be_analysed_is_said_with_its_place() -> None:
    """Indirect and non-affine subscripts, bounds that are data, calls, while: what and where; the rest is analysed."""
    found = explained(HARD).loops
    said = [(f.unknown.what, f.unknown.span.line, f.unknown.span.col) for f in found if f.unknown is not None]
    assert said == [
        ("subscript p[i] of z", 4, 7),
        ("the bound p[i] of loop k", 6, 18),
        ("subscript (int)floor((double)x[i]) of z", 9, 12),
        ("subscript i * i of z", 11, 7),
        ("a while loop", 13, 5),
    ]
    assert [f.kind for f in found] == [
        "unknown", "unknown", "parallel", "unknown", "unknown", "parallel", "unknown", "sequential",
    ]  # fmt: skip
    assert loops.text(explained(HARD)).count("cannot be analysed") == 5


def test_a_dependence_under_a_condition_on_data_says_so() -> None:
    """Where y[1] > 0 the iterations do depend on each other: run on such data, the value arrives."""
    last = explained(HARD).loops[-1]
    assert last.reason is not None
    w = last.reason.dependence
    assert (w.array, w.kind, w.first, w.then, w.element) == ("y", "flow", {"i": 1}, {"i": 2}, (1,))
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
    assert "runs in order: threads would share row" in loops.text(explained(local))


def test_threads_never_share_a_local_array() -> None:
    """A loop of which each iteration needs its own array is not given to threads, asked for or not."""
    text = "void f(int n, float A[n][4], float B[n]) {\n  float r[4];\n  for (int i = 0; i < n; i++) {\n" \
           "    for (int p = 0; p < 4; p++) r[p] = A[i][p];\n    B[i] = r[0] + r[3];\n  }\n}\n"  # fmt: skip
    (judged,) = explained(text, "loop i: parallel").directives
    assert judged.judgement == "refused"
    assert "parallel is illegal: iterations of loop i would share r" in str(judged.refusal)
    side_by_side = CODES["durbin"]
    assert [f.shared for f in explained(side_by_side).loops] == [(), (), (), ()]
    assert not any(a.var == "k" for k in explained(side_by_side).runs.plan.kernels for a in k.axes)


def test_strict_float_keeps_sums_and_frees_maxima() -> None:
    """Under --strict-float a sum of floats is sequential, one of integers and a maximum stay reductions."""
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
            float(oracle.interpreted(codelet, {"n": 3, "A": data[list(o)], "s": np.zeros(1, np.float32)})["s"][0])
            for o in orders
        }

    assert len({str(r) for r in results("s[0] > A[i] ? s[0] : A[i]")}) > 1
    assert results("A[i] > s[0] ? A[i] : s[0]") == results("fmaxf(s[0], A[i])") == {1.0}


# --- directives -----------------------------------------------------------------------------------------------------

ANNOTATED = """\
void f(int n, double A[n][n], double s[n], double B[n][n], int p[n]) {
  double sum = 0;
  #pragma hmppcg permute j, i
  for (int i = 1; i < n; i++)
    for (int j = 0; j < n - 1; j++)
      A[i][j] = A[i - 1][j + 1];
  #pragma hmppcg parallel, reduce(max:sum)
  for (int i = 0; i < n; i++)
    sum += s[i];
  s[0] = sum;
  #pragma hmppcg parallel
  for (int i = 1; i < n; i++)
    #pragma hmppcg unroll 4, split, guarded
    for (int j = 0; j < n; j++)
      B[i][j] = B[i - 1][j];
  #pragma hmppcg tile i:4, j:4
  for (int i = 1; i < n; i++)
    for (int j = 0; j < n - 1; j++)
      B[i][j] = B[i - 1][j + 1];
  #pragma hmppcg gridify(i, j)
  for (int i = 1; i < n; i++)
    for (int j = 0; j < n; j++)
      B[i][j] = B[i - 1][j];
  #pragma hmppcg parallel, trust
  for (int i = 0; i < n; i++)
    s[p[i]] = 0;
  #pragma hmppcg parallel
  for (int i = 0; i < n; i++)
    s[p[i]] = 0;
  #pragma hmppcg permute k, j, i
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n - 1; j++)
      for (int k = 0; k < n; k++)
        A[i][j] = A[i - 1][j + 1] + s[k];
  #pragma hmppcg unroll 2, split
  for (int i = 1; i < n; i++)
    s[i] = s[i - 1];
}
"""


def test_every_directive_is_judged_and_each_refusal_is_that_of_transform() -> None:
    """The message, place and caret are those that the directive is refused with when it stands alone in the file."""
    found = explained(ANNOTATED)
    assert [d.judgement for d in found.directives] == [
        "refused", "refused", "refused", "proved", "refused", "refused", "asserted", "refused", "refused", "refused",
    ]  # fmt: skip
    for d in (d for d in found.directives if d.judgement == "refused"):
        lines = [x if "#pragma" not in x or k == d.span.line else "" for k, x in enumerate(ANNOTATED.splitlines(), 1)]
        with pytest.raises((DirectiveError, IllegalTransform)) as alone:
            schedule(Analysis(load("\n".join(lines) + "\n").codelet))
        assert str(d.refusal) == str(alone.value)


def test_every_suggestion_is_legal() -> None:
    """Written in place of what was refused, it is accepted; and the useful ones are there."""
    found = explained(ANNOTATED)
    offered = [s.text for d in found.directives for s in d.suggestions]
    for text in ("`i, j` is legal, the order it has", "loop 5 (j) is parallel", "`tile i:4` is legal",
                 "`gridify j` is legal", "`parallel, trust` asserts it", "`i, k, j` is legal",
                 "`unroll 2` is legal", "legal with `reduce(+:sum)`"):  # fmt: skip
        assert text in offered, text
    for d in found.directives:
        lines = [x if k != d.span.line else "" for k, x in enumerate(ANNOTATED.splitlines(), 1)]
        codelet = bare(load("\n".join(lines) + "\n").codelet)
        for s in d.suggestions:
            schedule(Analysis(codelet), parse_lines(s.lines))
    (given,) = explained(CODES["trisolv"], "loop i: tile i:3", "loop j: noParallel").directives[:1]
    assert given.judgement == "proved"


def test_distribute_is_offered_where_it_helps() -> None:
    """A nest that is imperfect, or whose one statement needs another's value of an earlier iteration."""
    text = """\
void f(int n, int m, int k, float A[n][m], float B[n]) {
  for (int i = 1; i < n; i++) {
    B[i] = A[i - 1][1];
    for (int j = 0; j < k; j++) A[i][j] = 0;
  }
  for (int i = 1; i < n; i++) {
    B[i] = A[i][0];
    A[i][1] = B[i - 1];
  }
}
"""
    found = explained(text, "loop 1: permute j, i", "loop 3: parallel").directives
    assert [[s.text for s in d.suggestions][-1] for d in found] == ["legal after `distribute`"] * 2


def test_a_refusal_leaves_the_other_directives_as_they_are() -> None:
    """What is not refused is applied, as if the refused one were not there."""
    found = explained(ANNOTATED)
    kept = [d for d in found.directives if d.judgement != "refused"]
    lines = [x if "#pragma" not in x or k in {d.span.line for d in kept} else ""
             for k, x in enumerate(ANNOTATED.splitlines(), 1)]  # fmt: skip
    alone = explained("\n".join(lines) + "\n")
    assert found.runs.outline == alone.runs.outline


# --- what is permitted ----------------------------------------------------------------------------------------------

NESTS = {
    "wave": "for (int i = 1; i < n; i++)\n  for (int j = 1; j < m; j++)\n    A[i][j] = A[i - 1][j] + A[i][j - 1];",
    "skew": "for (int i = 1; i < n; i++)\n  for (int j = 0; j < m - 1; j++)\n    A[i][j] = A[i - 1][j + 1];",
    "sum": "for (int i = 0; i < n; i++) {\n  B[i] = 0;\n  for (int j = 0; j < m; j++)\n    B[i] += A[i][j];\n}",
    "far": "for (int i = 2; i < n; i++)\n  for (int j = 0; j < m - 1; j++)\n    A[i][j] = A[i - 2][j + 1];",
    "triangle": "for (int i = 0; i < n; i++)\n  for (int j = 0; j < i; j++)\n    A[i][j] = 0;",
}
EXPECTED = {
    "wave": (["i, j", "j, i"], ["i:T, j:T"]), "skew": ([], []), "sum": (["i, j", "j, i"], []), "far": ([], []),
    "triangle": (["i, j", "j, i"], ["i:T, j:T"]),
}  # fmt: skip


@pytest.mark.parametrize("name", NESTS)
def test_all_that_is_listed_is_legal_and_keeps_the_meaning(name: str) -> None:
    """Each order, and each tiling at several sizes, is accepted and leaves the same bits; a tiling that only some sizes
    allow, as of ``far`` by twos, is not listed."""
    text = f"void f(int n, int m, int A[n][m], int B[n]) {{\n{NESTS[name]}\n}}\n"
    codelet = load(text).codelet
    found = permitted(Analysis(codelet))
    orders, tilings = EXPECTED[name]
    assert [", ".join(p.order) for p in found.permutations] == orders
    assert [t.line.partition("tile ")[2] for t in found.tilings] == tilings
    given = oracle.arguments(codelet, {"n": 7, "m": 6})
    want = oracle.interpreted(codelet, given)
    tiled = [t.line.replace(":T", f":{size}") for t in found.tilings for size in (1, 2, 3, 5)]
    for line in (*(p.line for p in found.permutations), *tiled):
        changed = schedule(Analysis(codelet), parse_lines([line])).codelet
        assert oracle.off(want, oracle.interpreted(changed, given)) is None, line


def test_the_marks_of_an_order_are_true() -> None:
    """Outermost and innermost are parallel where the permuted text says so when it is explained itself."""
    text = "void f(int n, float C[n][n], float A[n][n], float B[n][n]) {\n" \
           "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int k = 0; k < n; k++)\n" \
           "  C[i][j] += A[i][k] * B[k][j];\n}\n"  # fmt: skip
    found = explained(text, everything=True).permitted
    assert found is not None
    assert len(found.permutations) == 6
    assert [t.loops for t in found.tilings] == [("i", "j", "k")]
    for p in found.permutations:
        names = iter(p.order)
        header = " ".join(f"for (int {v} = 0; {v} < n; {v}++)" for v in names)
        again = explained(f"{text.splitlines()[0]}\n{header}\n  C[i][j] += A[i][k] * B[k][j];\n}}\n").loops
        assert (p.outermost, p.innermost) == tuple(again[k].kind == "parallel" for k in (0, -1))


# --- how it runs, JSON ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fdtd-2d", "ludcmp", "nussinov", "doitgen", "heat-3d"])
def test_launches_are_counted_as_they_come(name: str) -> None:
    """The count equals that of the launches gone through one by one."""
    codelet = load(CODES[name]).codelet
    made = plan(schedule(Analysis(codelet)).codelet)
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


AT = {"file": str, "line": int, "column": int}
LOOP = {"number": int, "variable": str, "depth": int, **AT, "verdict": str, "default": str, "reductions": list,
        "private": list, "shared": list, "dependence": dict, "unknown": dict}  # fmt: skip
DEPENDENCE = {"array": str, "kind": str, "value_flows": bool, "element": list, "sizes": dict, "condition": str,
              "first": dict, "then": dict, "arrays": list}  # fmt: skip
END = {"iteration": dict, "access": str, "writes": bool, **AT}
DIRECTIVE = {"directive": str, "loop": int, "piece": int, "variable": str, **AT, "verdict": str, "reorders": list,
             "message": str, "notes": list, "suggestions": list}  # fmt: skip
KERNEL = {"name": str, "axes": list, "team": list, "extents": list, "parts": str, "block": list, "host_loops": list}
TOP = {"codelet": str, "file": str, "sizes": dict, "strict_float": bool, "refused": bool, "loops": list,
       "directives": list, "runs": dict, "permitted": dict}  # fmt: skip


def has(record: Mapping[str, object], fields: Mapping[str, type], nullable: tuple[str, ...] = ()) -> bool:
    kinds = {k: type(v) for k, v in record.items()}
    return list(kinds) == list(fields) and all(
        kinds[k] is t or (k in nullable and record[k] is None) for k, t in fields.items()
    )


@pytest.mark.parametrize("text", [ANNOTATED, HARD, CODES["ludcmp"]], ids=["annotated", "hard", "ludcmp"])
def test_the_record_has_the_documented_fields(text: str) -> None:
    """Every object has all its fields, in order and of their types; null only where the documentation says."""
    made = loops_json.record(explained(text, everything=True))
    assert has(made, TOP)
    for f in made["loops"]:
        assert has(f, LOOP, ("variable", "dependence", "unknown"))
        assert (f["dependence"] is not None) == (f["verdict"] == "sequential")
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
