"""Where a GPU kernel finds an element: what is written is the place, and as much of it as can be in 64 bits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looptune.backends.numba_cuda.backend import NumbaCuda
from looptune.backends.numba_cuda.writer import CudaWriter
from looptune.frontend import load
from looptune.ir.nodes import Binary, Const, Expr, Var
from looptune.lower.addresses import make_address
from looptune.lower.known_values import KnownValues
from looptune.lower.machine import Machine
from looptune.lower.passes.address_split import split_address
from looptune.lower.pipeline import finish, lower
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule

STENCIL = """
void f(int n, int m, float A[n][m], float B[n][m]) {
  for (int i = 1; i < n - 1; i++)
    for (int j = 1; j < m - 1; j++)
      B[i][j] = A[i - 1][j - 1] + A[i][j] + A[i + 1][j + 1];
}
"""
PLAN = lower(schedule(Analysis(load(STENCIL).codelet)).codelet)
NAMES = ("i", "j", "k", "l")


def written(e: Expr, counted: set[str]) -> str:
    """Return the text of a place, taken apart as for variables that are not negative."""
    return said(e, KnownValues(set(NAMES), counted), set(NAMES))


def said(e: Expr, known: KnownValues, unsigned: set[str]) -> str:
    """Return the text of a place, taken apart by what is known."""
    split = split_address(e, known.counted, known.nonnegative, known.most)
    index = e if split is None or split.is_single else make_address(split.base, split.counted, split.constant)
    return CudaWriter(finish(PLAN, Machine(blocks=True)), unsigned).global_index(index)


@st.composite
def places(draw: st.DrawFn) -> Expr:
    """Sums of multiples of variables and of remainders, and a constant."""
    e: Expr = Const(draw(st.integers(-70000, 70000)))
    for _ in range(draw(st.integers(1, 4))):
        term: Expr = Var(draw(st.sampled_from(NAMES)))
        if draw(st.integers(0, 2)) == 0:
            term = Binary("%", Binary("+", term, Var(draw(st.sampled_from(NAMES)))), Const(draw(st.integers(1, 9))))
        factor = draw(st.integers(1, 5000))
        e = Binary(draw(st.sampled_from(("+", "+", "-"))), e, Binary("*", Const(factor), term))
    return e


def exact(e: Expr, at: dict[str, int]) -> int:
    match e:
        case Const(n):
            return int(n)
        case Var(name):
            return at[name]
        case Binary(op, lhs, rhs):
            a, b = exact(lhs, at), exact(rhs, at)
            return {"+": a + b, "-": a - b, "*": a * b, "%": a % b if op == "%" else 0}[op]
    raise AssertionError(e)


@pytest.mark.wide
@settings(max_examples=400, deadline=None)
@given(places(), st.sets(st.sampled_from(NAMES)), st.tuples(*[st.integers(0, 4000)] * 4))
def test_what_is_written_is_the_place(e: Expr, counted: set[str], values: tuple[int, ...]) -> None:
    """Whatever is counted, in the integers that the kernel has; of places that no array has nothing is said."""
    at = dict(zip(NAMES, values, strict=True))
    want = exact(e, at)
    if 0 <= want < 2**31:
        text = written(e, counted)
        here = {**at, "uint32": lambda n: n % 2**32, "uint64": lambda n: n % 2**64, "int64": int}
        assert eval(text, here) % 2**64 == want, text


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("i * 4096 + j - 4097", "uint64(uint32(4096 * i + j)) - uint64(4097)"),
        ("i * 4096 + k * 64 + 1", "uint64(uint32(4096 * i)) + uint64(k) * uint64(64) + uint64(1)"),
        ("(1 - i % 2) * 10 + j + 7", "uint64(uint32(10 * (1 - int64(i) % 2) + j)) + uint64(7)"),
        ("j - i", "uint32(j - i)"),
        ("k + 3", "uint64(k) + uint64(3)"),
        ("k - 3", "uint32(k - 3)"),
        ("7", "7"),
        ("k", "k"),
        ("i * 4096 + j", "uint32(i * 4096 + j)"),
    ],
)
def test_known_places(place: str, text: str) -> None:
    """k is what a loop of the thread counts. What may be negative before the constant is added stays in 32 bits."""
    names = {name: _Sum(Var(name)) for name in NAMES}
    assert written(eval(place, names).e if place != "7" else Const(7), {"k"}) == text


def test_neighbours_share_what_varies() -> None:
    """Of a stencil one place is computed; the others differ from it by constants."""
    text = NumbaCuda().emit(PLAN)
    (line,) = (line for line in text.splitlines() if "B[" in line and "=" in line)
    assert line.count("__at") >= 1
    assert "uint64(" in line


def test_what_is_known_of_a_variable_is_forgotten_with_it() -> None:
    """Names of what is computed once are given anew."""
    known = KnownValues(set(NAMES))
    one_less = Binary("-", Const(9), Var("v1__once"))
    known.define("v1__once", Binary("%", Var("i"), Const(4)))
    assert said(one_less, known, set()) == "uint64(uint32(3 - v1__once)) + uint64(6)"
    known.unbind("v1__once")
    known.define("v1__once", Binary("*", Var("i"), Const(4)))
    assert said(one_less, known, set()) == "uint32(9 - v1__once)"


class _Sum:
    """Arithmetic that makes expressions."""

    def __init__(self, e: Expr) -> None:
        self.e = e

    def of(self, op: str, other: object, swapped: bool = False) -> _Sum:
        e = other.e if isinstance(other, _Sum) else Const(other)  # type: ignore[arg-type]
        return _Sum(Binary(op, e, self.e) if swapped else Binary(op, self.e, e))

    def __add__(self, other: object) -> _Sum:
        return self.of("+", other)

    def __sub__(self, other: object) -> _Sum:
        return self.of("-", other)

    def __rsub__(self, other: object) -> _Sum:
        return self.of("-", other, swapped=True)

    def __mul__(self, other: object) -> _Sum:
        return self.of("*", other)

    def __mod__(self, other: object) -> _Sum:
        return self.of("%", other)
