"""Names that a block is said to assign before it reads them, against runs of every short block."""

from __future__ import annotations

import itertools

import numpy as np

from looptune.frontend import load
from looptune.ir import interpreter
from looptune.ir.def_use import upward_exposed_uses
from looptune.ir.nodes import Assign, Binary, Const, Var, While

STATEMENTS = (
    "t = 1;",
    "y[0] = t;",
    "x[0] = 3;",
    "if (x[0] > 2) t = 1;",
    "if (x[0] > 2) y[0] = t;",
    "if (x[0] > 2) t = 1; else t = 2;",
    "if (x[0] > 2) t = 1; else x[0] = 3;",
    "if (x[0] > 2) { t = 1; x[0] = 0; }",
    "if (x[0] > 2) { if (n > 1) t = 1; }",
    "if (x[0] > 2 && n > 1) y[0] = t;",
    "if (!(x[0] > 2)) y[0] = t;",
    "if (n > 1) { if (x[0] > 2) t = 1; else t = 2; }",
    "if (n > 1) x[0] = 3; else y[0] = t;",
    "for (int i = 0; i < n; i++) { if (x[0] > 2) y[0] += t; x[0] = 3; }",
    "for (int i = 0; i < n; i++) t = 1;",
)


def test_what_is_assigned_first_is_never_read_earlier() -> None:
    """Of all blocks of three statements; those in which no run reads t too early are not all found to be so."""
    text = f"void f(int n, double x[1], double y[1])\n{{ double t; {' '.join(STATEMENTS)} }}\n"
    body = load(text).codelet.body
    assert len(body) == len(STATEMENTS)
    sure = 0
    for block in itertools.product(body, repeat=3):
        if "t" not in upward_exposed_uses(block):
            sure += 1
            for n, first in itertools.product((0, 1, 2), (0.0, 3.0)):
                # A scalar without a value is a KeyError.
                interpreter.Interpreter({"x": np.array([first]), "y": np.zeros(1)}, {"n": n}, None).run(block)
    assert sure > 1000


def test_what_a_while_loop_assigns_before_each_use_is_its_own() -> None:
    """A scalar that each pass assigns first is not exposed; one that the condition or a pass reads first is."""
    t, z, big = Var("t", "float64"), Var("z", "float64"), Const(4.0, "float64")
    body = (Assign(t, Binary("*", z, z)), Assign(z, t))
    assert upward_exposed_uses((While(Binary("<", z, big), body),)) == {"z"}
    assert upward_exposed_uses((While(Binary("<", z, big), tuple(reversed(body))),)) == {"t", "z"}
