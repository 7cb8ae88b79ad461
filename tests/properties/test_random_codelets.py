"""Random codelets under random directives of every kind: accepted is the same, refused would not be.

    python -m pytest tests/properties/test_random_codelets.py --cases 10000  new ones; --hypothesis-seed=N repeats

    accepted   the loops, and the plan as launched, leave the same bits, threads in any order; every instance runs once,
               in the order that was judged; both are proved, but for a few that take too long, and where isl is not
               asked it would agree
    refused    the two iterations shown run in this order and, in the order refused, in the other; run one after the
               other they leave different values, unless the reason why not is one of those counted

Arrays hold small integers in float64: sums in any order give the same bits, so that reordered reductions need no
tolerance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from looptune.core.errors import IllegalTransform, LooptuneError
from looptune.frontend import load
from looptune.ir import c_printer, interpreter
from looptune.ir.nodes import Codelet, If, Load, Loop, Select
from looptune.ir.rewrite import rewrite, walk
from looptune.lower.pipeline import lower
from looptune.lower.plan_check import plan_as_loops
from looptune.poly import legality
from looptune.poly.dependence import Dependence
from looptune.poly.isl_objects import Space
from looptune.poly.legality import Verdict, Violation
from looptune.poly.scop import Order, SchedulePiece, Scop, Statement, build
from looptune.poly.translation_validation import TOO_INVOLVED, prove
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.base import NewSchedule
from looptune.schedule.directives.grid import BlockSize
from tests.helpers import cross_check, random_nests, threaded_interpreter

USUAL = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=(Phase.generate,))
Instance = tuple[Statement, tuple[int, ...]]
Arrays = Mapping[str, np.ndarray]
Change = Callable[[float], float]
INVOLVED = "not proved, as isl gave up"
FIXED, NEW, OWN = 60, 30, 20
"""Cases of the everyday run: the same each time, others each time, and with local arrays."""


class Judging(Analysis):
    """Remembers the last order it refused; of a loop that may not be parallel there is no new one."""

    last: tuple[NewSchedule | None, Order, Violation] | None = None

    def judge(self, new: NewSchedule, old: Order, *, partial: bool = False) -> Violation | None:
        refused = super().judge(new, old, partial=partial)
        if refused is not None:
            self.last = new, old, refused
        return refused

    def verdict(self, names: frozenset[str], depth: int, order: Order) -> Verdict:
        verdict = super().verdict(names, depth, order)
        if verdict.witness is not None:
            self.last = None, order, verdict.witness
        return verdict


@pytest.mark.parametrize(
    "count",
    [FIXED // 6, pytest.param(FIXED // 2, marks=pytest.mark.wide), pytest.param(FIXED, marks=pytest.mark.long)],
)
def test_the_same_cases_each_time(count: int) -> None:
    """Accepted is right, refused is for a reason, on a fixed sample."""
    tried(settings(USUAL, max_examples=count, derandomize=True))


@pytest.mark.wide
def test_other_cases_each_time(request: pytest.FixtureRequest) -> None:
    """The same on new ones, as many as ``--cases`` says."""
    cases = request.config.getoption("--cases")
    tried(settings(USUAL, max_examples=cases if cases else NEW, print_blob=True))


@pytest.mark.wide
def test_arrays_that_iterations_have_their_own_of(request: pytest.FixtureRequest) -> None:
    """The same of programs whose loops hold a local array, written by element, passed over, and used."""
    cases = request.config.getoption("--cases")
    tried(settings(USUAL, max_examples=cases if cases else OWN, derandomize=not cases), random_nests.with_own_array())


@pytest.mark.wide
def test_copies_of_what_iterations_share(request: pytest.FixtureRequest) -> None:
    """The same of programs whose iterations use one array after the other, with expansions."""
    cases = request.config.getoption("--cases")
    run = settings(USUAL, max_examples=cases if cases else OWN, derandomize=not cases)
    tried(run, random_nests.with_scratch(), random_nests.EXPANSIONS)


def tried(
    run: settings, programs: st.SearchStrategy[str] | None = None, kinds: Sequence[str] = random_nests.KINDS
) -> None:
    counts: Counter[str] = Counter()

    @run
    @given(data=st.data(), text=random_nests.program() if programs is None else programs)
    def each(data: st.DataObject, text: str) -> None:
        case(data, text, counts, kinds)

    each()
    assert counts[INVOLVED] <= 2 + counts["accepted"] / 500, "isl seldom gives up"
    print("".join(f"\n{count:6} {what}" for what, count in sorted(counts.items())))


def case(data: st.DataObject, text: str, counts: Counter[str], kinds: Sequence[str]) -> None:
    original = load(text).codelet
    lines = data.draw(random_nests.directives(original, "cut" in text, kinds))
    note(text)
    note("\n".join(lines))
    analysis = Judging(original)
    done = scheduled(analysis, lines)
    match done:
        case LooptuneError(message=message):
            note(message)
            counts[type(done).__name__] += 1
            assert "\n" not in message
            if isinstance(done, IllegalTransform) and "must run before" in message:
                counts[check_witness(analysis)] += 1
        case ScheduleResult():
            counts["accepted"] += 1
            note(c_printer.body(done.codelet, pragmas=True))
            check_accepted(analysis, done, lines, counts)


def scheduled(analysis: Analysis, lines: list[str]) -> ScheduleResult | LooptuneError:
    """As the schedule is, each dependence that is evidently kept, or at once, being so for isl as well."""
    known, simultaneous = legality.preserved_syntactically, legality.simultaneous

    def checked(space: Space, d: Dependence, first: tuple[SchedulePiece, ...], then: tuple[SchedulePiece, ...]) -> bool:
        evident = known(space, d, first, then)
        assert not evident or d.map.intersect(space.later(d.source, d.sink, first, then)).is_empty()
        return evident

    def checked_at_once(
        space: Space, d: Dependence, first: tuple[SchedulePiece, ...], then: tuple[SchedulePiece, ...]
    ) -> bool:
        evident = simultaneous(space, d, first, then)
        assert not evident or d.map.intersect(space.later(d.source, d.sink, first, then)).is_empty()
        assert not evident or d.map.intersect(space.later(d.sink, d.source, then, first).reverse()).is_empty()
        return evident

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(legality, "preserved_syntactically", checked)
        patch.setattr(legality, "simultaneous", checked_at_once)
        try:
            return schedule(analysis, parse_lines(lines), {"n": 4, "m": 6})
        except LooptuneError as refusal:
            return refusal


def check_accepted(analysis: Analysis, done: ScheduleResult, lines: list[str], counts: Counter[str]) -> None:
    original, model = analysis.codelet, build(done.expanded)
    conditional = any(isinstance(n, If) and any(isinstance(x, Load) for x in walk(n.cond)) for n in walk(original.body))
    small: Codelet = rewrite(lambda n: n.annotated(BlockSize((3, 2))) if isinstance(n, Loop) else None, done.codelet)
    planned = lower(small)
    launched, shared = plan_as_loops(planned), frozenset(v.name for v in planned.device_locals if not v.shape)
    note(c_printer.body(launched))
    for n, m in random_nests.SIZES:
        want, instances = random_nests.outcome(original, n, m)
        got, traced = random_nests.outcome(done.codelet, n, m)
        assert cross_check.off(want, got) is None, f"n={n} m={m}"
        copied = [(name, at) for name, at in traced if name not in analysis.model.statements]  # back from an expansion
        assert conditional or Counter(instances) == Counter(traced) - Counter(copied), f"n={n} m={m}"
        assert cross_check.off(want, threaded(done.codelet, n, m, frozenset())) is None, f"threads, n={n} m={m}"
        assert cross_check.off(want, threaded(launched, n, m, shared)) is None, f"plan, n={n} m={m}"
        if not any("unroll" in line or "tile" in line for line in lines):
            times = [time_at(model, done.order, i, {"n": n, "m": m}) for i in traced]
            assert all(a < b for a, b in pairwise(times)), f"n={n} m={m}"
    for finished, held in ((done.codelet, frozenset[str]()), (launched, shared)):
        proof = prove(original, finished, shared=held)
        what = "loops" if finished is done.codelet else "plan"
        counts[INVOLVED if proof.reason == TOO_INVOLVED else f"{what} {proof.verdict}"] += 1
        parted = finished is launched and "rfactor" in " ".join(lines)  # its parts are not affine in the sizes
        unknown = proof.verdict == "unknown" and (parted or proof.reason == TOO_INVOLVED)
        assert proof.verdict == "proved" or unknown, proof.reason


def threaded(codelet: Codelet, n: int, m: int, shared: frozenset[str]) -> dict[str, np.ndarray]:
    arrays = random_nests.inputs(codelet, n, m)
    threaded_interpreter.run(codelet, arrays, {"n": n, "m": m}, seed=n + m, shared=shared)
    return arrays


def time_at(
    model: Scop, order: Order, instance: tuple[str, tuple[int, ...]], sizes: Mapping[str, int]
) -> tuple[int, ...]:
    name, at = instance
    dims = model.statements[name].dims
    return random_nests.time_of(order[name], {**sizes, **dict(zip(dims, at, strict=True))})


def check_witness(analysis: Judging) -> str:
    """The pair refused runs in the old order, in the new one the other way round, and what that changes."""
    if analysis.last is None:
        return "witness of an expansion, or of what is expanded: not run"
    new, old, refused = analysis.last
    counted = all(
        isinstance(f, Loop) and f.source_value is None for s in analysis.model.statements.values() for f in s.loops
    )
    if refused.because is not None or refused.array in analysis.model.internal_names or not counted:
        return "witness of a local, of what is not known, or of a loop that counts down: not run"
    if max(*refused.source_iteration.values(), *refused.sink_iteration.values(), 0) > random_nests.INSIDE:
        return "witness where accesses leave their arrays: not run"
    sizes = {"n": 5, "m": 5, **refused.sizes}
    first = refused.first_statement, tuple(refused.source_iteration.values())
    then = refused.then_statement, tuple(refused.sink_iteration.values())
    assert time_at(analysis.model, old, first, sizes) < time_at(analysis.model, old, then, sizes)
    if new is not None:
        early, late = (time_at(analysis.model, new.order, i, sizes)[: new.cut] for i in (then, first))
        assert early < late
    return f"witness {changes(analysis, refused, sizes)}"


def changes(analysis: Analysis, refused: Violation, sizes: Mapping[str, int]) -> str:
    """That the two instances leave another value the other way round, for some data; or why these two alone do not."""
    pair = [
        (analysis.model.statements[n], tuple(at.values()))
        for n, at in (
            (refused.first_statement, refused.source_iteration),
            (refused.then_statement, refused.sink_iteration),
        )
    ]
    for seed in range(16):
        one, other = (run_both(analysis.codelet, order, sizes, seed) for order in (pair, pair[::-1]))
        if cross_check.off(one, other) is not None:
            return "changes a value"
    asked = [n for s, _ in pair for n in walk(s.conditions) if isinstance(n, Load) and n.array == refused.array]
    if asked:
        return "read by a condition"
    if any(isinstance(n, Select) for s, _ in pair for n in walk(s.assign.value)):
        return "of a maximum, which may be what the element was"
    first, then = ([run_both(analysis.codelet, [i], sizes, seed) for seed in range(16)] for i in pair)
    idle = [run_both(analysis.codelet, [], sizes, seed) for seed in range(16)]
    if alike(first, then):
        return "both do the same, as where both write one value"
    if alike(first, idle) or alike(then, idle):
        return "one of the two leaves all as it is, which `x[9] + k` does where k is 0"
    assert refused.element is not None, refused
    at = refused.array, refused.element
    if all(adds(analysis.codelet, i, sizes, *at) for i in pair):
        return "both add to one element, as `z[12 - k] = z[k + 8] + i` does where k is 2"
    assert all(multiplies(analysis.codelet, i, sizes, *at) for i in pair), refused
    return "both multiply one element, as `x[9] += x[9]` does"


def alike(one: Sequence[Arrays], other: Sequence[Arrays]) -> bool:
    return all(cross_check.off(a, b) is None for a, b in zip(one, other, strict=True))


def multiplies(
    codelet: Codelet, instance: Instance, sizes: Mapping[str, int], array: str, element: tuple[int, ...]
) -> bool:
    """Twice the element before is twice the element after, and nothing else."""
    return follows(codelet, instance, sizes, array, element, lambda x: 2 * x)


def adds(codelet: Codelet, instance: Instance, sizes: Mapping[str, int], array: str, element: tuple[int, ...]) -> bool:
    """One more in the element before is one more in it after, and nothing else."""
    return follows(codelet, instance, sizes, array, element, lambda x: x + 1)


def follows(
    codelet: Codelet, instance: Instance, sizes: Mapping[str, int], array: str, element: tuple[int, ...], by: Change
) -> bool:
    """What changes the element before changes the element after likewise, and nothing else."""
    for seed in range(16):
        want = run_both(codelet, [instance], sizes, seed)
        got = run_both(codelet, [instance], sizes, seed, {(array, element): by})
        want[array][element] = by(want[array][element])
        if cross_check.off(want, got) is not None:
            return False
    return True


def run_both(
    codelet: Codelet,
    pair: Sequence[Instance],
    sizes: Mapping[str, int],
    seed: int,
    changed: Mapping[tuple[str, tuple[int, ...]], Change] = MappingProxyType({}),
) -> dict[str, np.ndarray]:
    """What the instances leave in arrays large enough for the sizes, some elements of which are changed, and in
    locals."""
    rng = np.random.default_rng(seed)
    arrays = {name: rng.uniform(1, 2, a.shape) * 3 for name, a in random_nests.inputs(codelet, 1, 1, 64).items()}
    arrays |= {v.name: rng.uniform(1, 2, 4) for v in codelet.locals if v.shape}
    for (array, element), by in changed.items():
        arrays[array][element] = by(arrays[array][element])
    machine = interpreter.Interpreter(arrays, {**sizes, **{v.name: 1.5 for v in codelet.locals}}, None)
    for statement, at in pair:
        machine.scalars |= dict(zip(statement.dims, at, strict=True))
        machine.step(statement.assign)
    return machine.arrays | {v.name: np.array([machine.scalars[v.name]]) for v in codelet.locals if not v.shape}
