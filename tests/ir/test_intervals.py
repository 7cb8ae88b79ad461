"""Choices that the ranges of loops decide: what is left computes the same, and is no more than it has to be."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.intervals import always_iterates
from looptune.ir.nodes import Binary, Const, Expr, Loop, Var
from looptune.ir.simplify import truncdiv
from looptune.ir.specialize import specialize
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check

NEST = """
void f(int n, int m, double A[n][m], double B[m][n])
{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] += 2 * B[j][i]; }
"""
TRIANGLE = """
void f(int n, int m, double A[n][m], double B[m][n])
{ for (int i = 0; i < n; i++) for (int j = i; j < m; j++) if (j >= i) if (j - i < m) A[i][j] += B[j][i]; }
"""
UNSIGNED = """
void f(int n, int m, double A[n][m], double B[m][n])
{ for (unsigned int i = 0; i < n; i++) for (int j = 0; j < m; j++) if (i - 1 < n) A[i][j] += B[j][i]; }
"""
LINES = (
    (), ("loop i: tile 4",), ("loop i: tile i:3, j:4",), ("loop j: unroll 2, guarded",), ("loop i: unroll 3, jam",),
    ("loop i: unroll 2, split, guarded, jam", "loop j: tile 5"), ("nest i: permute j, i",),
)  # fmt: skip


@pytest.mark.parametrize("text", [NEST, TRIANGLE, UNSIGNED], ids=["nest", "triangle", "unsigned"])
@pytest.mark.parametrize("sizes", [(8, 8), (12, 20), (7, 5), (1, 1), (2, 9)], ids=str)
def test_constant_sizes_change_nothing(text: str, sizes: tuple[int, int]) -> None:
    """Baked trees leave the bits of the original, for sizes the factors divide and for others."""
    analysis = Analysis(load(text).codelet)
    known = {"n": sizes[0], "m": max(sizes)}
    for lines in LINES:
        try:
            done = schedule(analysis, parse_lines(lines)).codelet
        except (DirectiveError, IllegalTransform):
            continue
        given = cross_check.arguments(analysis.codelet, known)
        want = cross_check.interpreted(analysis.codelet, given)
        assert cross_check.off(want, cross_check.interpreted(specialize(done, known), given)) is None, lines


def test_what_divides_needs_no_minimum_and_no_guard() -> None:
    """Strips that come out even end where they end; a guard that always holds is gone; others stay."""
    analysis = Analysis(load(NEST).codelet)
    even = specialize(schedule(analysis, parse_lines(["loop i: tile 4"])).codelet, {"n": 8, "m": 5})
    assert "?" not in c_printer.body(even)
    ragged = specialize(schedule(analysis, parse_lines(["loop i: tile 4"])).codelet, {"n": 9, "m": 5})
    assert "? 4 * outer_i + 4 : 9" in c_printer.body(ragged)
    triangle = specialize(Analysis(load(TRIANGLE).codelet).codelet, {"n": 8, "m": 8})
    assert c_printer.body(triangle).count("if") == 1
    unsigned = specialize(Analysis(load(UNSIGNED).codelet).codelet, {"n": 8, "m": 8})
    assert c_printer.body(unsigned).count("if") == 1


I32 = "int32"
N, M = Var("n", I32), Var("m", I32)


def number(k: int) -> Const:
    return Const(k, I32)


def of(op: str, lhs: Expr, rhs: Expr) -> Expr:
    return Binary(op, lhs, rhs)


def bounds(around: Sequence[Var]) -> st.SearchStrategy[Expr]:
    """Sums and multiples of sizes and of variables around, their quotients, the least or the greatest of two."""
    atoms = st.sampled_from([N, M, number(0), number(1), number(-2), *around, *around])
    multiples = st.builds(lambda k, e: of("*", number(k), e), st.sampled_from([1, 2, 4, -1]), atoms)
    sums = st.builds(lambda e, k: of("+", e, number(k)), multiples, st.integers(-2, 4))
    wider = st.builds(of, st.sampled_from(["+", "-"]), sums, atoms)
    quotients = st.builds(lambda e, d: of("/", e, number(d)), sums, st.sampled_from([2, 4]))
    simple = st.one_of(sums, wider, quotients)
    return st.one_of(simple, st.builds(of, st.sampled_from(["min", "max"]), simple, simple))


@st.composite
def towers(draw: st.DrawFn) -> tuple[Loop, ...]:
    """Loops one inside the other, their bodies left out: strips of a loop, which may be off by a few, or anything."""
    small, size = st.integers(-1, 1), draw(st.sampled_from([N, M]))
    d, (first, later, more, less) = draw(st.sampled_from([1, 2, 4])), draw(st.tuples(small, small, small, small))
    begin = of("*", number(d), Var("o", I32))
    rounded = of("+", size, number(d - 1 + later))
    end = of("/", rounded, number(d)) if d > 1 else rounded
    strips = Loop("o", draw(st.sampled_from([number(0), number(first), M])), end, ())
    stop = of("min", of("+", begin, number(d)), of("+", size, number(more)))
    inner = Loop("i", of("+", begin, number(less)), stop, ())
    made = draw(st.sampled_from([[], [strips], [strips, inner]]))
    for name in ("o", "i", "k")[len(made) :]:
        within = bounds([Var(f.var, I32) for f in made])
        lo = draw(st.one_of(st.just(number(0)), within))
        made = [*made, Loop(name, lo, draw(within), ())]
    return tuple(made[: draw(st.integers(2, 3))])


def value(e: Expr, env: dict[str, int]) -> int:
    match e:
        case Const(k):
            return int(k)
        case Var(name):
            return env[name]
        case Binary("/", a, b):
            return truncdiv(value(a, env), value(b, env))
        case Binary(op, a, b):
            by = {"+": operator.add, "-": operator.sub, "*": operator.mul, "min": min, "max": max}[op]
            return int(by(value(a, env), value(b, env)))
    raise AssertionError(e)


def reached(tower: Sequence[Loop], env: dict[str, int]) -> bool:
    """The last of the loops is come to, and has no iteration."""
    first, *inner = tower
    lo, hi = value(first.lo, env), value(first.hi, env)
    if not inner:
        return lo >= hi
    return any(reached(inner, {**env, first.var: k}) for k in range(lo, min(hi, lo + 6)))


@pytest.mark.parametrize(
    "count", [60, pytest.param(200, marks=pytest.mark.wide), pytest.param(600, marks=pytest.mark.long)]
)
def test_a_loop_that_is_said_to_run_runs(count: int) -> None:
    """Whatever the sizes are."""
    settings(max_examples=count, deadline=None)(given(towers())(runs_where_it_is_said))()


def runs_where_it_is_said(tower: tuple[Loop, ...]) -> None:
    *around, last = tower
    if always_iterates(last, {}, around):
        for n, m in product((-3, -1, 0, 1, 2, 5, 8), (-1, 0, 3, 4)):
            assert not reached(tower, {"n": n, "m": m}), (n, m)


STRIP = Loop("o", number(0), of("/", of("+", N, number(15)), number(16)), ())
ROWS = Loop("o", number(0), N, ())
WITHIN = of("*", number(16), Var("o", I32))


@pytest.mark.parametrize(
    ("around", "lo", "hi", "sure"),
    [
        ([STRIP], WITHIN, of("min", of("+", WITHIN, number(16)), N), True),
        ([STRIP], WITHIN, of("+", WITHIN, number(16)), True),
        ([STRIP], WITHIN, of("-", N, number(1)), False),
        ([replace(STRIP, lo=M)], WITHIN, N, False),
        ([ROWS], Var("o", I32), N, True),
        ([ROWS], of("+", Var("o", I32), number(1)), N, False),
        ([ROWS, Loop("i", Var("o", I32), M, ())], Var("o", I32), of("+", Var("i", I32), number(1)), True),
        ([Loop("o", of("min", N, number(0)), M, ())], number(-1), Var("o", I32), False),
        ([Loop("o", of("max", N, number(0)), M, ())], number(-1), Var("o", I32), True),
        ([], number(0), N, False),
    ],
    ids=["strip", "whole", "shorter", "from-a-size", "triangle", "strict", "between", "least", "greatest", "alone"],
)  # fmt: skip
def test_what_runs_whatever_the_sizes(around: list[Loop], lo: Expr, hi: Expr, sure: bool) -> None:
    """Strips of a loop that ends where the last begins, and triangles with their diagonal; no others."""
    assert always_iterates(Loop("k", lo, hi, ()), {}, around) is sure
