"""Prefix sums in parts: every form, on every target, what is proved, and what the proof finds wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from looptune.core.errors import IllegalTransform
from looptune.frontend import load
from looptune.ir.nodes import Assign, Codelet, Const, Derivation, Load, Loop, Node, PrefixDivision, Var
from looptune.ir.rewrite import renaming, rewrite, walk_stmts
from looptune.lower.pipeline import lower
from looptune.lower.plan_check import prove_plan
from looptune.poly.translation_validation import prove
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.directive_lines import parse_lines
from tests.helpers import all_targets, cross_check
from tests.helpers.all_targets import Case
from tests.helpers.prefix_cases import ARRAY, CASES, COMPACTION, EACH_ROW, SCALAR, divided

SIZES = ({"n": 11, "m": 8}, {"n": 1, "m": 1}, {"n": 2, "m": 3})


@pytest.mark.sampled(5, "wide")
@pytest.mark.parametrize("name", CASES)
def test_loops_and_kernels_are_proved(name: str) -> None:
    """The loops for all sizes, and what is launched on a GPU and on a CPU at one, if data do not say which elements."""
    codelet, done = divided(*CASES[name])
    sizes = None if name == "compaction" else SIZES[0]
    assert prove(codelet, done.codelet).verdict == "proved"
    for blocks in (False, True):
        proof = prove_plan(codelet, lower(done.codelet, blocks=blocks), sizes, blocks=blocks)
        assert proof.verdict == "proved", (blocks, proof.reason)


@pytest.mark.sampled(3, "wide")
@pytest.mark.parametrize("name", CASES)
def test_the_arrays_are_left_as_by_the_text(name: str) -> None:
    """Bit by bit, for data that are not rounded, where parts are shorter and where there is no iteration."""
    codelet, done = divided(*CASES[name])
    for sizes in SIZES:
        given = cross_check.arguments(codelet, sizes)
        want, got = (cross_check.interpreted(c, given) for c in (codelet, done.codelet))
        assert cross_check.off(want, got) is None


@pytest.mark.simulator
@pytest.mark.wide
@pytest.mark.parametrize("part", [0, *(pytest.param(p, marks=pytest.mark.long) for p in (1, 2, 3))])
def test_every_target_computes_what_the_text_does(part: int, tmp_path: Path) -> None:
    """gcc of the C that is printed, Numba on the CPU, CUDA C as C++, and Numba's CUDA module in the simulator."""
    cases = [
        Case(name, text, [cross_check.arguments(load(text).codelet, s) for s in SIZES], lines)
        for name, (text, lines) in list(CASES.items())[part::4]
    ]
    assert not all_targets.wrong(cases, tmp_path)


def test_the_loops_over_parts_are_parallel() -> None:
    """And the one over the sums of the parts is a prefix sum, which a second length divides."""
    _, done = divided(SCALAR, ("loop i: prefix 16, 64",))
    modes = {f.var: f.mode for f in walk_stmts(done.codelet.body) if isinstance(f, Loop)}
    assert {v for v, mode in modes.items() if mode == "parallel"} == {"i_sum", "i_scan_sum", "i_scan_part", "i_part"}
    assert modes["i_scan_scan"] == "sequential"
    assert [(s.text, s.loop, s.proof) for s in done.steps] == [("prefix 16, 64", "i", "proved")]


def test_rows_and_their_parts_are_parallel_together() -> None:
    """After copies for the rows and a distribution, both of which are steps of their own."""
    _, done = divided(*CASES["each row"])
    nests = [f for f in done.codelet.body if isinstance(f, Loop)]
    inner = {g.var: (f.mode, g.mode) for f in nests for g in f.body if isinstance(g, Loop)}
    assert inner == {"j_sum": ("parallel",) * 2, "j_scan": ("parallel", "sequential"), "j_part": ("parallel",) * 2}
    assert len(done.steps) == 3


def test_rounded_sums_are_named_and_kept_under_no_reassociate() -> None:
    """Integers are not rounded: their sums may be in any order."""
    _, done = divided(EACH_ROW, ("loop j: prefix 4",))
    assert [str(s) for s in done.sums] == ["+:a (4:33)"]
    assert not divided(ARRAY, ("loop i: prefix 4",))[1].sums
    exact = Analysis(load(ARRAY).codelet, reassociate=False)
    assert schedule(exact, parse_lines(["loop i: prefix 4"])).steps[0].proof == "proved"
    with pytest.raises(IllegalTransform, match=r"it reorders the reduction [+] of s, whose order --no-reassociate"):
        schedule(Analysis(load(SCALAR).codelet, reassociate=False), parse_lines(["loop i: prefix 4"]))


SCATTER = COMPACTION.replace("y[k++] = x[i]", "{ k++; y[(int)x[i]] = k; }")


def test_places_that_data_decide_are_the_users_to_assert() -> None:
    """A scatter may write an element twice; its parts are parallel if the user asserts that it does not."""
    lines = ("loop i: prefix 4",)
    assert _parts(divided(SCATTER, lines)) == ("parallel", "sequential")
    done = divided(SCATTER, (*lines, "loop i_part: parallel, assume"))
    assert [s.proof for s in done[1].steps] == ["proved", "asserted"]
    assert _parts(done) == ("parallel", "parallel")


def test_a_counter_that_grows_places_elements_apart() -> None:
    """A stream compaction writes each element once; not if the counter may stay, wrap, or begin again."""
    lines = ("loop i: prefix 4",)
    assert _parts(divided(COMPACTION, lines)) == ("parallel", "parallel")
    for other in (
        COMPACTION.replace("y[k++] = x[i]", "{ y[k] = x[i]; if (x[i] > 3) k++; }"),
        COMPACTION.replace("y[k++] = x[i]", "{ y[k / 2] = x[i]; k++; }"),
        COMPACTION.replace("k++", "k--"),
        COMPACTION.replace("int k", "unsigned k"),
        COMPACTION.replace("int k = 0;", "for (int j = 0; j < 2; j++) { int k = 0;").replace("count[0]", "} count[0]")
        .replace("= k;", "= 0;"),
    ):  # fmt: skip
        assert _parts(divided(other, lines)) == ("parallel", "sequential"), other


def test_the_proof_judges_which_elements_are_apart() -> None:
    """A step that says so of another statement is wrong."""
    codelet, done = divided(SCATTER, ("loop i: prefix 4",))
    assert done.codelet.derivation is not None
    (step,) = done.codelet.derivation.steps
    stores = frozenset(
        s.name for s in walk_stmts(step.after.body) if isinstance(s, Assign) and s.target.dtype == "float32"
    )
    wrong = Derivation((replace(step, distinct=stores),))
    assert prove(codelet, replace(done.codelet, derivation=wrong)).verdict == "failed"


def _parts(done: tuple[Codelet, ScheduleResult]) -> tuple[str, str]:
    """How the loops over the parts run."""
    modes = {f.var: f.mode for f in walk_stmts(done[1].codelet.body) if isinstance(f, Loop)}
    return modes["i_sum"], modes["i_part"]


def _sum_from(value: int) -> Callable[[Node], Node | None]:
    def rule(n: Node) -> Node | None:
        match n:
            case Assign(Var("s_sum"), Const()):
                return replace(n, value=Const(float(value), "float32"))
        return None

    return rule


def _inclusive(n: Node) -> Node | None:
    match n:
        case Loop("i_scan", body=(first, second)):
            return replace(n, body=(second, first))
    return None


def _other_terms(n: Node) -> Node | None:
    return (
        Load("y", n.index, n.dtype) if isinstance(n, Load) and n.array == "x" and n.index == (Var("i_term"),) else None
    )


def _from_sums(n: Node) -> Node | None:
    match n:
        case Assign(Var("s_part"), Load("s_starts", index, dtype)):
            return replace(n, value=Load("s_sums", index, dtype))
    return None


def _shorter(var: str) -> Callable[[Node], Node | None]:
    def rule(n: Node) -> Node | None:
        return (
            rewrite(lambda m: Const(2) if m == Const(3) else None, n) if isinstance(n, Loop) and n.var == var else None
        )

    return rule


def _never(n: Node) -> Node | None:
    return () if isinstance(n, Loop) and n.var == "i_scan" else None  # type: ignore[return-value]


PLANTED: dict[str, Callable[[Node], Node | None]] = {
    "sums begin with one": _sum_from(1),
    "the value after each part": _inclusive,
    "terms of another array": _other_terms,
    "parts begin with their sums": _from_sums,
    "shorter sums": _shorter("i_sum"),
    "shorter parts": _shorter("i_part"),
    "fewer values": _shorter("i_scan"),
    "no scan": _never,
    "another scalar": renaming({"s_part": "s_sum"}),
    "the total in the scalar of a part": renaming({"s": "s_part"}),
}


@pytest.mark.parametrize("name", PLANTED)
def test_the_proof_finds_a_wrong_division(name: str) -> None:
    """Each of them in the codelet that the directive makes, so that all that follows agrees with it."""
    codelet, done = divided(SCALAR, ("loop i: prefix 3",))
    proof = prove(codelet, _planted(done.codelet, PLANTED[name]))
    assert proof.verdict == "failed", proof


def _planted(finished: Codelet, rule: Callable[[Node], Node | None]) -> Codelet:
    assert finished.derivation is not None
    (step,) = finished.derivation.steps
    wrong = replace(step, after=replace(step.after, body=rewrite(rule, step.after.body)))
    return replace(finished, body=rewrite(rule, finished.body), derivation=Derivation((wrong,)))


def test_the_proof_finds_terms_that_depend_on_the_value() -> None:
    """Whatever the step says, the loop of the text is judged."""
    codelet, done = divided(SCALAR, ("loop i: prefix 3",))
    assert done.codelet.derivation is not None
    (step,) = done.codelet.derivation.steps

    def rule(n: Node) -> Node | None:
        return Load("y", n.index, n.dtype) if isinstance(n, Load) and n.array == "x" else None

    other = [replace(c, body=rewrite(rule, c.body)) for c in (step.text, step.before, step.after)]
    derivation = Derivation((PrefixDivision(*other, step.number, step.loops, step.names),))
    finished = replace(done.codelet, body=rewrite(rule, done.codelet.body), derivation=derivation)
    assert prove(other[0], finished).verdict == "proved"
    assert prove(codelet, finished).verdict == "failed"
