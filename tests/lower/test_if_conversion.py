"""Accumulating without asking: where it is done, where it must not be, and that the results are the loops'."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from looptune.frontend import load
from looptune.ir.nodes import Assign, Const, If, Loop, Stmt, Var
from looptune.ir.rewrite import walk
from looptune.lower.passes.if_conversion import if_convert
from looptune.lower.pipeline import lower
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import cross_check
from tests.helpers.if_conversion_cases import DONE, HEAD, SIZES, SUM, planned

LEFT = {
    "outside": "for (int p = 0; p < n; p++) for (int i = 0; i < m; i++) if (p > 0) S[p][0] += A[i][p - 1];",
    "division": "for (int p = 0; p < n; p++) for (int i = 0; i < m; i++) if (p > 0) S[p][0] += i / p;",
    "other element": "for (int p = 0; p < n; p++) for (int i = 0; i < m; i++) if (p > 0) S[p][i % n] += x[i];",
    "loop's own": "for (int p = 0; p < n; p++) for (int i = 0; i < m; i++) if (i > p) S[p][0] += x[i];",
}
PARTLY = (
    "for (int p = 0; p < n; p++) for (int i = 0; i < m; i++)\n"
    "  if (p > 0) { S[p][0] += A[i][p - 1]; if (x[i] > 0) x[i] = 0; S[p][0] += x[i]; }"
)
"""One register accumulates what may be read in any case, and what may not."""


def asking(body: tuple[Stmt, ...]) -> Iterator[If]:
    """The conditions inside loops."""
    for loop in (n for n in walk(body) if isinstance(n, Loop)):
        yield from (n for n in walk(loop.body) if isinstance(n, If))


@pytest.mark.parametrize("name", DONE)
def test_no_iteration_asks(name: str) -> None:
    """The loop of a register under a condition is without it; the plan, which is what is proved, has it."""
    made = planned(*DONE[name], SIZES[1])
    assert any(list(asking(k.body)) for k in made.kernels)
    assert not any(list(asking(if_convert(k, made).body)) for k in made.kernels)


@pytest.mark.parametrize("name", LEFT)
def test_what_may_not_be_read_is_asked_for(name: str) -> None:
    """An element outside its array, a division by nothing, what is no register, and what the loop decides."""
    made = planned(LEFT[name], (), SIZES[0])
    assert any(list(asking(if_convert(k, made).body)) for k in made.kernels)
    assert all(if_convert(k, made) == k for k in made.kernels)


def test_a_register_that_is_used_before_it_is_set_keeps_its_value() -> None:
    """One that is loaded in any case is not emptied before a condition under which it is used and set anew."""
    nest = "for (int i = 0; i < 6; i++) for (int j = i; j < i + 1; j++) for (int k = 1; k < m; k++)"
    codelet = load(f"void f(int m, long c[9][9], long e[9]) {{ {nest} c[i][i] += e[i]; }}\n").codelet
    lines = ("loop 1: tile 3", "loop 3: rfactor 2")
    made = lower(schedule(Analysis(codelet), parse_lines(lines)).codelet, blocks=True)
    kernel = made.kernels[1]
    done = if_convert(kernel, made)
    assert done != kernel
    assert emptied(done.body) == emptied(kernel.body)


def emptied(body: tuple[Stmt, ...]) -> list[Stmt]:
    return [n for n in walk(body) if isinstance(n, Assign) and isinstance(n.value, Const)]


def test_registers_are_emptied_in_the_order_of_their_declarations() -> None:
    """The text of a version is the same in every process, so that processes share what one of them has compiled."""
    lines = ("loop q: box", "loop p: unroll 4, jam", "loop q: unroll 4, jam")
    made = planned(SUM, lines, {"n": 8, "m": 4})
    (kernel,) = made.kernels
    names = [s.target.name for s in emptied(if_convert(kernel, made).body) if isinstance(s.target, Var)]
    assert len(names) > 5
    assert names == [v.name for v in kernel.locals if v.name in names]


@pytest.mark.wide
@pytest.mark.skipif(not cross_check.CUDA, reason="needs the package numba-cuda")
def test_results_are_those_of_the_loops(tmp_path: Path) -> None:
    """In the CUDA simulator, to the last bit: what is added is added in its order."""
    from looptune.backends.numba_cuda.backend import NumbaCuda

    programs, wants = [], {}
    others = {name: (text, ()) for name, text in {**LEFT, "partly": PARTLY}.items()}
    for name, (text, lines) in {**DONE, **others}.items():
        codelet = load(HEAD + "{" + text + "}\n").codelet
        for sizes in SIZES:
            start = cross_check.arguments(codelet, sizes)
            key = f"{name} {sizes}"
            wants[key] = cross_check.interpreted(codelet, start)
            programs.append(cross_check.Emitted(key, NumbaCuda().emit(planned(text, lines, sizes)), "f", start))
    assert cross_check.misses(programs, wants, tmp_path) == {}
