"""Comparisons in lowest terms, and none that the ones around decide: small cases, and random ones by enumeration."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from looptune.frontend import load
from looptune.ir import c_printer
from looptune.ir.conditions import simplify_conditions
from looptune.ir.nodes import Assign, Binary, Codelet, Const, Expr, If, Stmt, Var
from looptune.lower.plan import evaluate_size

HEAD = (
    "void f(int n, float x[n], float y[n], int at[n])\n{ for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) %s }\n"
)


def shown(body: str) -> str:
    """What the body of the two loops becomes, on one line."""
    codelet = load(HEAD % body).codelet
    done = Codelet(codelet.name, codelet.params, (), simplify_conditions(codelet.body))
    text = " ".join(c_printer.body(done, indent="").split())
    return text.removeprefix("for (int i = 0; i < n; i++) { for (int j = 0; j < n; j++) { ").removesuffix(" } }")


@pytest.mark.parametrize(
    ("body", "becomes"),
    [
        ("if (4 * j + 1 >= 4 * i + 3) x[j] = 1;", "if (j >= i + 1) { x[j] = 1; }"),
        ("if (4 * j + 3 >= 4 * i) x[j] = 1;", "if (j >= i) { x[j] = 1; }"),
        ("if (2 * i < 7) x[j] = 1;", "if (i <= 3) { x[j] = 1; }"),
        ("if (i < j + 1) x[j] = 1;", "if (i < j + 1) { x[j] = 1; }"),
        ("if (j > i) { if (j >= i) x[j] = 1; if (i >= j) y[j] = 1; }", "if (j > i) { x[j] = 1; }"),
        ("if (j > i) x[j] = 1; else if (i >= j) y[j] = 1;", "if (j > i) { x[j] = 1; } else { y[j] = 1; }"),
        ("if (j > i && 2 * j > 2 * i && j < n - 3) x[j] = 1;", "if (j > i && j < n - 3) { x[j] = 1; }"),
        ("{ if (j > i) x[j] = 1; if (j > i) y[j] = 1; }", "if (j > i) { x[j] = 1; y[j] = 1; }"),
        (
            "{ if (at[j] > i) at[j] = i; if (at[j] > i) y[j] = 1; }",
            "if (at[j] > i) { at[j] = i; } if (at[j] > i) { y[j] = 1; }",
        ),
        ("if (x[i] > 2 * i) if (x[i] > i) y[j] = 1;", "if (x[i] > 2 * i) { if (x[i] > i) { y[j] = 1; } }"),
    ],
)
def test_what_becomes_of_it(body: str, becomes: str) -> None:
    """In lowest terms; gone where one around says so; two alike are one, unless what they ask changes between."""
    assert shown(body) == becomes


def test_a_fact_ends_where_its_variable_changes() -> None:
    """After k is assigned nothing is known of it, neither in this iteration nor at the start of the next."""
    body = "{ int k = j; if (k > i) { if (k > i) x[j] = 1; if (x[j] > 0) k = i; if (k > i) x[j] = 2; } }"
    text = "k = j; if (k > i) { x[j] = 1; if (x[j] > 0) { k = i; } if (k > i) { x[j] = 2; } }"
    assert shown(body).endswith(text)
    loop = "{ int k = j; if (k > i) { for (int l = 0; l < n; l++) { if (k > i) x[l] = 1; k = l; } } }"
    assert "for (int l = 0; l < n; l++) { if (k > i) { x[l] = 1; } k = l; }" in shown(loop)


NAMES = ("i", "j", "k")
sums = st.tuples(st.lists(st.integers(-4, 4), min_size=3, max_size=3), st.integers(-9, 9))


def expression(factors: list[int], constant: int) -> Expr:
    terms: list[Expr] = [Binary("*", Const(f), Var(v)) for f, v in zip(factors, NAMES, strict=True)]
    total: Expr = Const(constant)
    for term in terms:
        total = Binary("+", total, term)
    return total


comparisons = st.builds(
    lambda op, a, b: Binary(op, expression(*a), expression(*b)), st.sampled_from(("<", "<=", ">", ">=")), sums, sums
)
trees = st.recursive(
    st.integers(1, 99).map(lambda n: (Assign(Var("r"), Const(n)),)),
    lambda inner: st.builds(
        lambda conds, then, other: (If(conds[0] if len(conds) == 1 else Binary("&&", *conds), then, other), *then),
        st.lists(comparisons, min_size=1, max_size=2), inner, inner,
    ),
    max_leaves=6,
)  # fmt: skip


def assigned(body: tuple[Stmt, ...], env: dict[str, int]) -> list[Expr]:
    out: list[Expr] = []
    for stmt in body:
        match stmt:
            case If(cond, then, other):
                out += assigned(then if evaluate_size(cond, env) else other, env)
            case Assign(_, what):
                out.append(what)
    return out


@pytest.mark.wide
@given(trees)
def test_the_same_statements_run(body: tuple[Stmt, ...]) -> None:
    """Random conditions one in the other, at every point of a cube."""
    done = simplify_conditions(body)
    for point in product(range(-3, 4), repeat=3):
        env = dict(zip(NAMES, point, strict=True))
        assert assigned(body, env) == assigned(done, env)
