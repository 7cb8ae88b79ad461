"""Expansion: what each copy holds, what is copied back, what becomes legal after it, and what the proof finds wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.core.errors import IllegalTransform
from looptune.frontend import load
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Const, Load, Loop, Node, Var
from looptune.ir.rewrite import rewrite, walk_stmts
from looptune.lower.pipeline import lower
from looptune.lower.plan_check import prove_plan
from looptune.poly.translation_validation import prove
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import schedule
from tests.helpers import all_targets, cross_check
from tests.helpers.all_targets import Case
from tests.helpers.expand_cases import BOTH, CASES, DOITGEN, expanded

SIZES = ({"n": 7, "m": 9, "nr": 5, "nq": 4, "np": 6, "ts": 3}, {"n": 1, "m": 1, "nr": 1, "nq": 1, "np": 1, "ts": 0})


@pytest.mark.sampled(7, "wide")
@pytest.mark.parametrize("name", CASES)
def test_loops_and_kernels_are_proved_for_all_sizes(name: str) -> None:
    """The values are followed through the copies, in the loops and in what is launched on a GPU and on a CPU."""
    codelet, done = expanded(*CASES[name])
    assert prove(codelet, done.codelet).verdict == "proved"
    assert prove(codelet, done.codelet, reassociate=False).verdict == "proved"
    for blocks in (False, True):
        proof = prove_plan(codelet, lower(done.codelet, blocks=blocks), SIZES[0], blocks=blocks)
        assert proof.verdict == "proved", (blocks, proof.reason)


@pytest.mark.sampled(4, "wide")
@pytest.mark.parametrize("name", CASES)
def test_the_arrays_are_left_as_by_the_text(name: str) -> None:
    """Bit by bit, copies back included, and where some loops have no iteration."""
    codelet, done = expanded(*CASES[name])
    for sizes in SIZES:
        given = cross_check.arguments(codelet, sizes)
        want, got = (cross_check.interpreted(c, given) for c in (codelet, done.codelet))
        assert cross_check.off(want, got) is None


@pytest.mark.simulator
@pytest.mark.wide
@pytest.mark.parametrize("part", [0, *(pytest.param(p, marks=pytest.mark.long) for p in (1, 2))])
def test_every_target_computes_what_the_text_does(part: int, tmp_path: Path) -> None:
    """gcc of the C that is printed, Numba on the CPU, CUDA C as C++, and Numba's CUDA module in the simulator."""
    small = {**SIZES[0], "n": 5, "m": 6, "nr": 2, "nq": 3, "np": 4, "ts": 2}
    cases = [
        Case(name, text, [cross_check.arguments(load(text).codelet, s) for s in (small, SIZES[1])], lines)
        for name, (text, lines) in list(CASES.items())[part::3]
    ]
    assert not all_targets.wrong(cases, tmp_path)


def test_expansion_makes_loops_parallel() -> None:
    """Without it both loops of doitgen that share the row are sequential, and threads may not run them."""
    _, done = expanded(DOITGEN, BOTH)
    modes = {f.number: f.mode for f in walk_stmts(done.codelet.body) if isinstance(f, Loop)}
    assert (modes[1], modes[2]) == ("parallel", "parallel")
    for line in ("loop r: parallel", "loop q: parallel"):
        with pytest.raises(IllegalTransform):
            expanded(DOITGEN, (line,))


def test_directives_inside_each_other_make_one_array() -> None:
    """They are two steps of the schedule, and only the last copy of all is copied back, after the outermost loop."""
    codelet, done = expanded(DOITGEN, BOTH)
    assert [v.name for v in done.codelet.locals] == ["sum_r_q"]
    assert [(s.text, s.loop, s.proof) for s in done.steps] == [
        ("expand sum", "r", "proved"),
        ("expand sum", "q", "proved"),
    ]
    assert len(done.codelet.body) == len(codelet.body) + 1


def test_a_directive_of_the_codelet_is_for_the_nests_that_it_fits() -> None:
    """A nest that does not write the variable is left as it is, and has no step."""
    text = """
void f(int n, double x[n], double y[n]) {
  double t;
  for (int i = 0; i < n; i++) { t = x[i]; y[i] = t * t; }
  for (int i = 0; i < n; i++) x[i] = y[i];
}
"""
    codelet, done = expanded(text, ("codelet: expand t",))
    assert [(s.text, s.number, s.proof) for s in done.steps] == [("expand t", 1, "proved")]
    assert done.codelet.body[1:] == schedule(Analysis(codelet)).codelet.body[1:]


def test_a_copy_back_is_a_loop_that_directives_address() -> None:
    """By the number after those of the text."""
    _, done = expanded(DOITGEN, (*BOTH, "loop 6: noParallel"))
    assert [s.number for s in done.steps] == [1, 2, 6]


def _source(change: Callable[[Load], Load]) -> Callable[[Node], Node | None]:
    """Return a rule that changes what is copied back."""

    def rule(n: Node) -> Node | None:
        match n:
            case Assign(Load("sum"), Load() as source):
                return replace(n, value=change(source))
        return None

    return rule


def _read(n: Node) -> Node | None:
    match n:
        case Assign(Load("A"), Load("sum_r_q", (_, q, p), dtype)):
            return replace(n, value=Load("sum_r_q", (Var("q"), q, p), dtype))
    return None


def _written(n: Node) -> Node | None:
    match n:
        case Assign(Load("sum_r_q", (r, _, p), dtype), value) if "sum_r_q" not in names_in(value):
            return replace(n, target=Load("sum_r_q", (r, r, p), dtype))
    return None


MUTANTS = {
    "of the first r": _source(lambda a: replace(a, index=(Const(0), *a.index[1:]))),
    "of the first q": _source(lambda a: replace(a, index=(a.index[0], Const(0), a.index[2]))),
    "of one element": _source(lambda a: replace(a, index=(*a.index[:2], Const(0)))),
    "none": lambda n: () if isinstance(n, Assign) and n.name.startswith("copy_out") else None,
    "read from another copy": _read,
    "written to another copy": _written,
}


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.parametrize("sizes", [None, {"nr": 3, "nq": 4, "np": 5}], ids=["all sizes", "some"])
def test_the_proof_finds_a_wrong_copy(mutant: str, sizes: dict[str, int] | None) -> None:
    """One that is copied back from another iteration, or not at all, or not the one that a statement uses."""
    codelet, done = expanded(DOITGEN, BOTH)
    wrong = rewrite(MUTANTS[mutant], done.codelet)
    assert wrong != done.codelet
    assert prove(codelet, wrong, sizes).verdict == ("unknown" if mutant == "of one element" else "failed")
