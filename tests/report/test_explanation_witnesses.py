"""What ``looptune check`` says of loops is true when the loops are run.

the witness        run at its sizes, both iterations touch the element named, in the order claimed
the verdict        at small sizes, no two iterations of a parallel loop touch one element that either writes
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looptune.core.source import Span
from looptune.frontend import load
from looptune.ir.interpreter import Interpreter
from looptune.ir.nodes import Assign, Codelet, Expr, If, Load, Loop, Stmt, Var
from looptune.ir.rewrite import walk
from looptune.poly.legality import Violation
from looptune.report.check.loop_facts import LoopFacts
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers.affine_nests import CODES
from tests.helpers.explanations import explained, integers


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
    machine = Interpreter({}, dict(sizes), None)
    local = {v.name for v in codelet.locals}
    found: list[Touch] = []

    def touched(node: Load | Var, writes: bool, around: tuple[Loop, ...], stmt: Assign) -> Touch:
        array, index = (node.array, node.index) if isinstance(node, Load) else (node.name, ())
        users = {f.var: machine.value(Var(f.var) if f.source_value is None else f.source_value) for f in around}
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


def shows(witness: Violation, pair: Pair) -> bool:
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
    assert any(
        (p.first.iteration, p.then.iteration, p.first.element) == (w.source_iteration, w.sink_iteration, w.element)
        for p in pairs
    )
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


@pytest.mark.sampled(20, "wide")
@pytest.mark.parametrize("name", CODES)
def test_every_witness_is_real_and_every_parallel_loop_is_free(name: str) -> None:
    """Sequential: the two iterations touch the element named, in order, at the smallest sizes. Else: no conflict."""
    codelet = load(CODES[name]).codelet
    for loop in explained(CODES[name]).loops:
        if loop.kind == "sequential":
            assert_true(codelet, loop)
        else:
            assert_free(codelet, loop, dict.fromkeys(integers(codelet), 4))


@pytest.mark.wide
def test_the_verdicts_of_known_codes() -> None:
    """p parallel, r reduction, s sequential, by loop number."""
    kinds = {name: "".join(f.kind[0] for f in explained(text).loops) for name, text in CODES.items()}
    assert kinds == {
        "gemver": "ppprppr", "symm": "spr", "trmm": "spr", "doitgen": "ssprp", "cholesky": "ssrr", "lu": "ssrpr",
        "ludcmp": "ssrprsrsr", "trisolv": "sr", "durbin": "srpp", "deriche": "pspspp", "floyd-warshall": "sss",
        "nussinov": "ssr", "adi": "spsspss", "fdtd-2d": "sppppppp", "heat-3d": "spppppp", "jacobi-1d": "spp",
        "jacobi-2d": "spppp", "seidel-2d": "sss",
    }  # fmt: skip


SUBSCRIPTS = ("i", "j", "i - 1", "j + 1", "n - 1 - i", "i + j", "0", "m - j", "(signed char)(256 * i)")
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


@pytest.mark.wide
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


def test_a_witness_is_found_where_isl_drops_a_remainder() -> None:
    """isl projects ``n mod 65536 = 0`` out of a relation; the iterations shown are still two that meet."""
    codelet = load("""void f(int n, unsigned char m, long d[24], long z[m + 32][32][27])
    {
      for (long j = 0; j < (n - 7) / 2 + 1; ++j) {
        for (unsigned short i = n; i < 1; i += 2)
          for (int p = 0; p < m; ++p)
            d[j] += z[2][p][j];
        for (long q = (n - 7) / (-2); q < n - j; q += 3)
          for (int k = 0; k < n; k += 1)
            z[j + 1][1][k] += (d[j] + j) & 255;
      }
    }""").codelet
    analysis = Analysis(codelet)
    distributed = schedule(analysis, parse_lines(["loop 1: distribute"])).codelet
    loop = next(n for n in walk(distributed.body) if isinstance(n, Loop))
    assert loop.mode != "parallel", "it carries a dependence from z[2][1][j] to z[j + 1][1][k]"
