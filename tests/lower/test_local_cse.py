"""Places and values that a run of assignments shares are computed once; what the run changes is not held."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count

import pytest

from looptune.frontend import load
from looptune.ir.c_printer import assignment
from looptune.ir.def_use import written_names
from looptune.ir.nodes import Assign, Const, Expr, Load, Loop, Var
from looptune.ir.rewrite import walk_stmts
from looptune.ir.simplify import add, mul
from looptune.lower.passes.local_cse import eliminate_common_subexpressions

TEXT = """
void f(int n, float a, float x[10][10], float y[10], float s, float t, int k, int z[10])
{{ for (int i = 0; i < n; i++) {{ {} }} }}
"""


def flat(element: Load) -> Expr:
    """In rows of ten."""
    place = element.index[0]
    for column in element.index[1:]:
        place = add(mul(place, Const(10)), column)
    return place


def drawn(body: str, nonnegative: Collection[str] = ("i",)) -> list[str]:
    (loop,) = (s for s in walk_stmts(load(TEXT.format(body)).codelet.body) if isinstance(s, Loop))
    number = count()
    held = eliminate_common_subexpressions(
        loop.body, flat, lambda ending: f"v{next(number)}{ending}", nonnegative, stored=written_names(loop.body)
    )
    return [assignment(s.target, s.value).rstrip(";").replace("_2", "") for s in held if isinstance(s, Assign)]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("x[i][2] = 1; x[i][3] = 2;", ["v0__at = 10 * i", "x[v0__at + 2] = 1", "x[v0__at + 3] = 2"]),
        ("x[0][z[2 * i]] = 1; x[1][z[2 * i + 1]] = 2;",
         ["v0__at = 2 * i", "x[0][z[v0__at]] = 1", "x[1][z[v0__at + 1]] = 2"]),
        ("y[i] = 1; y[i + 1] = 2;", ["y[i] = 1", "y[i + 1] = 2"]),
        ("x[i][i] = 1;", ["x[i][i] = 1"]),
        (
            "s = s + a * y[i]; t = t + a * y[i] * 2;",
            ["v0__once = a * y[i]", "s += v0__once", "t += v0__once * 2"],
        ),
        ("y[i] = y[i] * a; s = y[i] * a;", ["v0__once = y[i] * a", "y[i] = v0__once",
                                           "s = v0__once * a"]),
        ("y[i] = y[i] + a; y[i] = y[i] * t;", ["v0__once = y[i] + a", "y[i] = v0__once * t"]),
        ("y[i] = a; t = y[i]; y[i] = y[i] + s; y[i] = t;", ["v0__once = a", "t = v0__once", "y[i] = v0__once + s",
                                                            "y[i] = t"]),
        ("y[i] = y[i] + a; y[i] = y[i] + y[i + 1];", ["v0__once = y[i] + a", "y[i] = v0__once",
                                                       "y[i] = v0__once + y[i + 1]"]),
        ("y[i] = y[i] + a; y[i + 1] = a; y[i] = y[i] * t;", ["v0__once = y[i] + a", "y[i] = v0__once", "y[i + 1] = a",
                                                             "y[i] = v0__once * t"]),
        ("y[i] = a; y[i + k] = t; s = y[i];", ["y[i] = a", "y[i + k] = t", "s = y[i]"]),
        ("y[k] = a; k = i; s = y[k];", ["y[k] = a", "k = i", "s = y[k]"]),
        ("z[i] = k; z[i + 1] = z[i];", ["z[i] = k", "z[i + 1] = z[i]"]),
        ("x[0][i] = y[i] / a; x[1][i] = y[i + 1] / a; x[2][i] = y[i + 2] + 1;",
         ["v0__once = y[i + 1]", "v1__once = y[i + 2]", "x[0][i] = y[i] / a", "x[1][i] = v0__once / a",
          "x[2][i] = v1__once + 1"]),
        ("y[i] = y[i] / a; y[i + 1] = y[i + 1] / a;", ["y[i] /= a", "y[i + 1] /= a"]),
        ("s = 1 / a; t = s > 0 ? y[i] : 0;", ["s = 1 / a", "t = (s > 0 ? y[i] : (float)0)"]),
        ("a = a + 1; s = a * t; t = a * t;", ["a += 1", "s = a * t", "t = a * t"]),
        ("s = i > 0 && y[i] > a ? 1 : 2; t = i > 0 ? y[i] : 0;", ["s = (i > 0 && y[i] > a ? 1 : 2)",
                                                                 "t = (i > 0 ? y[i] : (float)0)"]),
    ],
)  # fmt: skip
def test_what_is_held(body: str, lines: list[str]) -> None:
    """A place with its constant apart, the largest value that occurs twice, nothing that is read on a condition; and an
    element that is updated in turn, unless another element of its array is used meanwhile."""
    assert drawn(body) == lines


def test_a_place_from_below_0_is_whole() -> None:
    """What is added to it may be what makes it one: in 32 bits without a sign the rest is far away."""
    body = "x[i][2] = y[i]; x[i][2] = y[i + 1]; x[i][3] = 2;"
    assert drawn(body, ()) == ["v0__at = i * 10 + 2", "x[v0__at] = y[i]", "x[v0__at] = y[i + 1]", "x[i][3] = 2"]


def test_a_variable_of_the_programs_is_none_that_is_made() -> None:
    """Whatever its name ends with, what it is set to later is not set before a division or function uses it."""
    for name in ("t__once", "t__at"):
        run = f"{name} = a[0]; b[i] = sqrt({name}); {name} = a[1]; b[0] = {name};"
        text = f"void f(int n, double a[9], double b[9]) {{ double {name}; for (int i = 0; i < n; i++) {{ {run} }} }}\n"
        codelet = load(f"#include <math.h>\n{text}").codelet
        (loop,) = (s for s in walk_stmts(codelet.body) if isinstance(s, Loop))
        held = eliminate_common_subexpressions(loop.body, flat, lambda ending: f"v{ending}", ("i",))
        made = [s.target for s in held if isinstance(s, Assign) and s.target != Var("v__once", "float64")]
        assert made == [s.target for s in loop.body if isinstance(s, Assign)]


def test_loads_of_arrays_that_the_kernel_stores_elsewhere_precede_stores() -> None:
    """No compiler may move them past a store that could change what they read."""
    text = "void f(int n, float x[9], float y[9]) { for (int i = 0; i < n; i++) { x[i] = 1; x[i + 1] = y[i]; } }\n"
    (loop,) = (s for s in walk_stmts(load(text).codelet.body) if isinstance(s, Loop))
    for stored, lines in (
        ((), ["x[i] = 1", "x[i + 1] = y[i]"]),
        (("x", "y"), ["v__once = y[i]", "x[i] = 1", "x[i + 1] = v__once"]),
    ):
        held = eliminate_common_subexpressions(loop.body, flat, lambda ending: f"v{ending}", ("i",), stored=stored)
        assert [assignment(s.target, s.value).rstrip(";") for s in held if isinstance(s, Assign)] == lines
