"""Loops of which too little is known in their nest are analysed alone, and what is said of them is right."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from looptune.core.errors import UnsupportedError
from looptune.frontend.survey import SurveyedNest, survey
from looptune.ir import interpreter
from looptune.ir.nodes import Array, Binary, Codelet, Const, Loop, Node, Scalar, Stmt, Var
from looptune.ir.rewrite import rewrite, substitute
from looptune.report.check.nest_facts import nest_facts
from looptune.report.check.text import because
from looptune.schedule.analysis import Analysis

if TYPE_CHECKING:
    from pathlib import Path

    from looptune.report.check.loop_facts import LoopFacts

CASES = [
    ("a row that data say where it begins", "for (i = 0; i < n; i++) x[d[p] + i] = 0;", "parallel"),
    ("rows that may be the same", "for (i = 0; i < n; i++) for (j = 0; j < m; j++) x[d[i] + j] = j;",
     "sequential parallel"),
    ("a loop that changes where its row begins", "for (i = 0; i < n; i++) { x[d[p] + i] = 0; d[p] = d[p] + n; }",
     "sequential"),
    ("elements that may be the same", "for (i = 0; i < n; i++) x[d[i]] = i;", "sequential"),
    ("the same with a name for the place", "for (i = 0; i < n; i++) { k = d[i]; x[k + 1] = i; }", "sequential"),
    ("places that are written", "for (i = 0; i < n; i++) { x[d[i]] = i; d[i] = 2; }", "unknown"),
    ("one place in every iteration, that may be read", "for (i = 0; i < n; i++) x[d[p] + 2 * i] = x[d[q] + i];",
     "sequential"),
    ("products of data and sizes", "for (i = 0; i < n; i++) for (j = 0; j < m; j++) x[j + d[i] * m] = j;",
     "sequential parallel"),
    ("a dependence in a row of an unknown place", "for (i = 0; i < n; i++) for (j = 1; j < m; j++) "
     "x[i * p * i + j] = x[i * p * i + j - 1];", "unknown sequential"),
    ("rows at places whose distance is not known", "for (i = 0; i < n; i++) for (j = 1; j < m; j++) "
     "x[i * p * i + j] = x[i * p * p + j];", "unknown unknown"),
    ("a scalar that goes on to the next run", "for (i = 0; i < n; i++) for (j = 0; j < m; j++) "
     "{ if (j == 0) x[d[i]] = t; t = j; }", "sequential sequential"),
    ("passes that data decide on", "for (i = 1; i < n; i++) while (y[i] - y[i - 1] > 3) y[i] -= 6;",
     "sequential sequential"),
    ("passes over rows", "for (i = 0; i < n; i++) while (y[i] > 3) y[i] -= 6;", "parallel sequential"),
    ("a list", "while (p > 0) { for (j = 0; j < m; j++) x[d[p] + j] = 1; p = e[p]; }", "sequential parallel"),
]  # fmt: skip
HEAD = "void f(int n, int m, int p, int q, long *d, long *e, double *x, double *y)"


def nests(tmp_path: Path, body: str) -> tuple[SurveyedNest, ...]:
    path = tmp_path / "nest.c"
    path.write_text(f"{HEAD}\n{{\n  int i, j, k; double t = 0;\n  {body}\n}}\n")
    return survey(path).nests


def facts(nest: SurveyedNest) -> tuple[LoopFacts, ...]:
    assert nest.codelet is not None
    return tuple(nest_facts(nest.codelet, Analysis(nest.codelet), nest.flags))


@pytest.mark.parametrize(("body", "kinds"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_loops_alone(tmp_path: Path, body: str, kinds: str) -> None:
    """Each loop has the verdict that it deserves, the outermost first."""
    assert [f.kind for f in facts(nests(tmp_path, body)[0])] == kinds.split()


def test_the_data_are_named(tmp_path: Path) -> None:
    """The reason names the subscript; a dependence between rows is shown with the elements that make it."""
    (found,) = facts(nests(tmp_path, CASES[3][1])[0])
    assert because(found) == "subscript d[i] of x comes from data and may be the same in two iterations, 4:29"
    (found,) = facts(nests(tmp_path, CASES[6][1])[0])
    assert "d[p]=" in because(found)


def test_loops_of_a_nest_that_isl_gives_up(tmp_path: Path) -> None:
    """A nest that is too complex leaves the loops that can be analysed alone."""
    (nest,) = nests(tmp_path, "for (i = 0; i < n; i++) for (j = 0; j < m; j++) x[j] = x[j] + y[i];")
    assert nest.codelet is not None
    found = tuple(nest_facts(nest.codelet, UnsupportedError("isl gave up"), ()))
    assert [f.kind for f in found] == ["reduction", "parallel"]


SUBSCRIPTS = ("d[i] + j", "d[j] + i", "d[p] + j", "d[q] + i", "i * m + j", "(i + 1) * m + j", "i * p * i + j",
              "d[e[j]]", "j", "i", "d[i] * p + j", "k + j", "k * p + i", "2 * j + d[p]", "d[i + 1] + j")  # fmt: skip


def _statement(r: random.Random) -> str:
    at, of = r.choice(SUBSCRIPTS), r.choice(SUBSCRIPTS)
    kind = r.randrange(5)
    if kind == 0:
        return f"x[{at}] += y[{of}];"
    if kind == 1:
        return f"t = y[{of}]; x[{at}] = t;"
    if kind == 2:
        return f"if (y[{of}] > 2) x[{at}] = t; t = j;"
    if kind == 3:
        return f"if (j == 0) x[{at}] = t; t = i + j;"
    return f"x[{at}] = x[{of}] + 1;"


@pytest.mark.parametrize("seed", range(25))
def test_parallel_loops_may_run_backwards(tmp_path: Path, seed: int) -> None:
    """What is said to be parallel, or a sum, gives the same values with its iterations in the opposite order."""
    r = random.Random(seed)
    inner = " ".join(_statement(r) for _ in range(r.randrange(1, 3)))
    before = r.choice(("", "k = d[i];", "k = i * p;", "e[i] = i;"))
    body = f"for (i = 0; i < n; i++) {{ {before} for (j = 0; j < m; j++) {{ {inner} }} }} x[0] = t;"
    for nest in nests(tmp_path, body):
        if nest.codelet is None:
            continue
        for f in facts(nest):
            if f.kind in ("parallel", "reduction") and not f.shared:
                changed = replace(nest.codelet, body=_backwards(nest.codelet, f.number))
                for values in range(3):
                    assert _run(nest.codelet, values) == _run(changed, values), (body, f)


def _backwards(codelet: Codelet, number: int) -> tuple[Stmt, ...]:
    def rule(n: Node) -> Node | None:
        match n:
            case Loop(var, lo, hi, body, dtype=dtype) if n.number == number:
                last = Binary("-", Binary("+", lo, hi), Binary("+", Var(var, dtype), Const(1, dtype)))
                return replace(n, body=substitute(body, {var: last}))
        return None

    return rewrite(rule, codelet.body)


def _run(codelet: Codelet, seed: int) -> dict[str, list[float]]:
    r = np.random.default_rng(seed)
    arrays = {p.name: r.integers(0, 7, 400).astype(p.dtype) for p in codelet.params if isinstance(p, Array)}
    scalars = {p.name: {"n": 5, "m": 4}.get(p.name, 1 + seed) for p in codelet.params if isinstance(p, Scalar)}
    interpreter.run(codelet, arrays, scalars)
    return {name: value.tolist() for name, value in arrays.items()}


def test_what_the_text_shows_is_said_where_isl_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls with an order, jumps and scalars that iterations hand on; a sum is not called sequential."""

    def gives_up(*_: object) -> None:
        raise UnsupportedError("too complex to analyse")

    loops = [
        ('x[i] = d[i]; puts("");', "it calls puts in this order"),
        ("if (d[i]) return; x[i] = 0;", "a jump may end it early"),
        ("if (x[i] > t) { k = i; t = x[i]; }", "which one before may set"),
        ("t += x[i];", "cannot be analysed"),
        ("t = x[i]; y[i] = t;", "cannot be analysed"),
    ]
    found = nests(tmp_path, "\n".join(f"for (i = 0; i < n; i++) {{ {body} }}" for body, _ in loops) + " y[k] = t;")
    monkeypatch.setattr(Analysis, "verdict", gives_up)
    for nest, (_, said) in zip(found, loops, strict=True):
        (fact,) = facts(nest)
        assert said in because(fact)
        assert (fact.kind == "unknown") == (said == "cannot be analysed")
