"""First values of what a team reduces: assigned with the sum where that is the same, and left where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from looptune.ir.accumulators import Accumulator
from looptune.ir.nodes import Const, Load, Var
from looptune.lower.passes.init_fusion import are_disjoint, fuse_initializers
from looptune.lower.pipeline import lower
from looptune.lower.team import TeamReduce
from tests.helpers import cross_check, cuda_c_on_cpu, reduction_cases

HEAD = "void f(int n, int m, double A[n][m], double B[n][m], float x[n], double y[n + 1], float z[n])\n"
ROWS = "{ for (int i = 0; i < n; i++) { %s for (int j = 0; j < m; j++) %s %s } }"
ADD = "y[i] += A[i][j];"
BEGUN = {
    "an element": (ROWS % ("y[i] = 3;", ADD, ""), [3.0]),
    "one of two": (ROWS % ("y[i] = 0; z[i] = x[i];", "{ y[i] += A[i][j]; z[i] *= A[i][j]; }", ""), [0.0, None]),
    "a local": (ROWS % ("float t = 2.5f;", "t = fmaxf(t, A[i][j]);", "y[i] = t;"), [2.5]),
    "beside another": (ROWS % ("x[i] = 1; y[i] = -1; z[i] = x[i];", ADD, ""), [-1.0]),
    "again and again": ("{ for (int k = 0; k < n; k++) { y[k] = 1; for (int l = 0; l < 2; l++) { z[k] = 2;"
                        " for (int j = 0; j < m; j++) z[k] += A[k][j]; y[k] += z[k]; } } }", [2.0]),
    "no number of its type": (ROWS % ("z[i] = 0.1;", "z[i] += A[i][j];", ""), [None]),
    "read meanwhile": (ROWS % ("y[i] = 3; x[i] = y[i];", ADD, ""), [None]),
    "beside a use of its array": (ROWS % ("y[i] = 3; z[i] = y[n - 1];", ADD, ""), [None]),
    "no constant": (ROWS % ("y[i] = x[i];", ADD, ""), [None]),
    "on a condition": (ROWS % ("if (x[i] > 0) y[i] = 1;", ADD, ""), [None]),
}  # fmt: skip
READ = "for (int k = 0; k < m; k++) B[i][k] = y[i] + A[i][k];"
LATER = {
    "read by all": ROWS % ("y[i] = 3;", ADD, READ),
    "read by all, at last": ROWS % ("y[i] = 3;", ADD, "z[i] = y[i];" + READ),
    "changed in between": ROWS % ("y[i] = 3;", ADD, "y[i] /= 2;" + READ),
    "changed afterwards": ROWS % ("y[i] = 3;", ADD, READ + "y[i] = 1;"),
    "read by one": ROWS % ("y[i] = 3;", ADD, "z[i] = y[i];"),
    "not begun": ROWS % ("", ADD, READ),
    "another one": ROWS % ("y[i] = 3;", ADD, READ.replace("y[i] +", "y[n] +")),
}
ALL = {**{name: text for name, (text, _) in BEGUN.items()}, **LATER}


def lines(name: str) -> tuple[str, ...]:
    return (f"loop {3 if name == 'again and again' else 2}: parallel", "codelet: grid blocksize 4x2")


@pytest.mark.parametrize("name", BEGUN)
def test_which_are_moved(name: str) -> None:
    """Constants that nothing reads before the sum is there, of the target's own type."""
    text, firsts = BEGUN[name]
    (kernel,) = lower(reduction_cases.scheduled(HEAD + text, *lines(name)).codelet, blocks=True).kernels
    assert kernel.team is not None
    assert all(a.first is None for t in kernel.team.trees for a in t.accumulators), "the plan has them where they were"
    (tree,) = _trees(fuse_initializers(kernel.team.phases))
    assert [None if a.first is None else a.first.value for a in tree.accumulators] == firsts


def _trees(phases: tuple[object, ...]) -> list[TeamReduce]:
    found = [p for p in phases if isinstance(p, TeamReduce)]
    return found + [t for p in phases for t in _trees(getattr(p, "body", ()))]


def test_elements_that_may_be_one() -> None:
    """Their first values stay, and each is loaded after the one before is stored."""
    own, i = Var("own", "float32"), Var("i", "int32")
    sums = [Accumulator("+", Load("y", (at,), "float32"), own, own, False) for at in (i, Const(0), Const(1))]
    assert are_disjoint(sums[1:])
    assert not are_disjoint(sums)
    assert are_disjoint([sums[0], Accumulator("+", Load("z", (i,), "float32"), own, own, False)])


@pytest.mark.wide
@pytest.mark.skipif(cuda_c_on_cpu.GXX is None, reason="needs g++")
def test_results_are_the_loops(tmp_path: Path) -> None:
    """All of them, also where the loop that reduces does not run."""
    cases = []
    for name, text in ALL.items():
        for sizes in ({"n": 5, "m": 7}, {"n": 3, "m": 0}):
            codelet = reduction_cases.analysis(HEAD + text).codelet
            made = lower(reduction_cases.scheduled(HEAD + text, *lines(name)).codelet, blocks=True)
            cases.append(cuda_c_on_cpu.Case(f"{name} {sizes}", made, codelet, cross_check.arguments(codelet, sizes)))
    results = cuda_c_on_cpu.run(cases, tmp_path)
    wrong = {
        c.name: cross_check.off(cross_check.interpreted(c.codelet, c.arguments), results[c.name], 1e-6) for c in cases
    }
    assert not any(wrong.values()), wrong
