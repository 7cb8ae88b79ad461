"""The findings of the analysis as data: each loop, each directive, and how the code would run.

    explain(unit, placed) -> Explanation       nothing is compiled or run

A loop is parallel, a reduction, sequential (with one dependence, shown by two of its iterations), or unknown where the
code cannot be analysed. A directive is proved, asserted (by ``assume``) or refused, with what is legal instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from looptune.core.errors import LooptuneError
from looptune.core.source import Span
from looptune.ir.def_use import integer_parameters, names_in
from looptune.lower.passes.cpu_reassociation import vectorised_sums
from looptune.lower.pipeline import lower
from looptune.lower.plan import HostIf, HostLoop, HostWhile, Kernel, Launch, Plan, count, data_decide, extent
from looptune.lower.plan import Step as HostStep
from looptune.lower.plan_outline import summarize_plan
from looptune.poly.out_of_bounds import OutOfBounds, out_of_bounds_accesses, undecided_accesses
from looptune.poly.reassociation import ReorderedReduction
from looptune.report.check.loop_facts import LoopFacts, loop_facts, with_division
from looptune.report.check.races import Race, races
from looptune.report.check.text_names import in_text_names
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.assumptions import find_assumptions
from looptune.schedule.legal_space import LegalSpace, legal_space
from looptune.schedule.oversized import oversized_directives
from looptune.schedule.suggest import Suggestion, alternatives, without_directive

if TYPE_CHECKING:
    from looptune.frontend import Unit
    from looptune.schedule.applied import AppliedDirective
    from looptune.schedule.directive_lines import DirectiveLine

Judgement = Literal["proved", "asserted", "refused"]
_Place = tuple[Span, tuple[int, int]]
"""A directive, and the number and the piece of its loop."""


@dataclass(frozen=True, slots=True)
class CheckedDirective:
    """A directive; ``number``, ``piece`` and ``loop`` say where it stands, ``refusal`` why it is refused.

    ``piece``: 1, 2, ... for a loop that was distributed, else 0. ``sums``: the reductions that it reorders.
    """

    text: str
    number: int
    piece: int
    loop: str
    span: Span
    judgement: Judgement
    refusal: LooptuneError | None = None
    suggestions: tuple[Suggestion, ...] = ()
    sums: tuple[ReorderedReduction, ...] = ()


@dataclass(frozen=True, slots=True)
class ExecutionOutline:
    """How the codelet runs with the directives that were not refused.

    ``launches`` is None if sizes are not known, or data decide on it. ``outline`` is the text to print. By kernel:
    ``around`` are the host loops, outermost first; ``extents`` the iterations along its axes, None if they are not
    known or change with a host loop.
    """

    plan: Plan
    outline: tuple[str, ...]
    around: tuple[tuple[str, ...], ...]
    extents: tuple[tuple[int, ...] | None, ...]
    launches: int | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The findings about a codelet; ``permitted`` is there only if everything was asked for.

    ``vectors``: the sums of floats that a CPU's compiler may take in any order. ``assumes``: the assumptions as
    sentences; ``assumption_summary``: the same in short; ``out_of_bounds``: the accesses outside of their arrays;
    ``races``: what is wrong with the loops that pragmas of OpenMP or OpenACC run in parallel.
    """

    codelet: str
    path: str
    sizes: Mapping[str, int]
    reassociate: bool
    loops: tuple[LoopFacts, ...]
    directives: tuple[CheckedDirective, ...]
    runs: ExecutionOutline
    permitted: LegalSpace | None
    vectors: tuple[ReorderedReduction, ...] = ()
    assumes: tuple[str, ...] = ()
    out_of_bounds: tuple[OutOfBounds, ...] = ()
    assumption_summary: tuple[tuple[str, str], ...] = ()
    races: tuple[Race, ...] = ()

    @property
    def refused(self) -> bool:
        return bool(self.races) or any(d.judgement == "refused" for d in self.directives)


def explain(
    unit: Unit, placed: Sequence[DirectiveLine] = (), *, reassociate: bool = True, everything: bool = False
) -> Explanation:
    """Analyse a codelet with its own directives and the ``placed`` ones.

    ``everything``: also find which directives are permitted. Raises a LooptuneError for a directive that is malformed
    or addresses no loop; one that is refused is a result.
    """
    analysis = Analysis(unit.codelet, reassociate)
    integers = {*integer_parameters(unit.codelet)}
    sizes = {n: int(v) for n, v in unit.values.items() if n in integers}
    done, too_much, judged = _judged_steps(analysis, placed, unit.values)
    if too_much:
        codelet = analysis.codelet
        for step in (s for s in done.steps if _place(s) in too_much):
            codelet = without_directive(codelet, step.directive)
        rest = [p for p in placed if all(p.directive.span != span for span, _ in too_much)]
        done = schedule(analysis.of(codelet), rest, unit.values, keep_going=True)
    ordered = sorted(judged, key=lambda j: (j.span.file != unit.path, j.span.file, j.span.line, j.span.col))
    runs = _runs(done, sizes, integers <= sizes.keys())
    found = legal_space(analysis) if everything else None
    loops = tuple(loop_facts(analysis, {flag for part in unit.parts for flag in part.flags}))
    accepted = [(j.number, j.text.split()[0]) for j in ordered if j.judgement != "refused"]
    loops = tuple(
        with_division(f, analysis, placed, unit.values, {name for n, name in accepted if n == f.number}) for f in loops
    )
    vectors = _vectors(unit, done) if reassociate else ()
    outside = out_of_bounds_accesses(analysis.model)
    rests = find_assumptions(unit, outside, undecided_accesses(analysis.model), analysis.model.assumed, done.assumed)
    wrong = races(unit.worksharing, loops, unit.names)
    loops, checked, vectors = in_text_names((loops, tuple(ordered), vectors), unit.names)
    return Explanation(
        unit.codelet.name, unit.path, sizes, reassociate, loops, checked, runs, found, vectors, rests.sentences(),
        tuple(x for x in outside if x.always), rests.summary(), wrong,
    )  # fmt: skip


def checked_directives(analysis: Analysis, values: Mapping[str, int | float]) -> tuple[CheckedDirective, ...]:
    """Return the directives in the text of a codelet, each with the judgement.

    Raises a LooptuneError for a directive that is malformed.
    """
    return _judged_steps(analysis, (), values)[2]


def _judged_steps(
    analysis: Analysis, placed: Sequence[DirectiveLine], values: Mapping[str, int | float]
) -> tuple[ScheduleResult, Mapping[_Place, LooptuneError], tuple[CheckedDirective, ...]]:
    """Return the schedule, the directives that need more than a GPU has, and all of them with their judgements."""
    done = schedule(analysis, placed, values, keep_going=True, sums=True)
    too_much = {(b.directive.span, b.loop): why for b, why in oversized_directives(analysis, placed, values, gpu=True)}
    judged = (_judged(analysis, placed, s, values, too_much.get(_place(s))) for s in done.steps)
    return done, too_much, tuple(judged)


def _vectors(unit: Unit, done: ScheduleResult) -> tuple[ReorderedReduction, ...]:
    """Return the sums that a CPU's compiler reorders; a version with directives for a GPU alone has none."""
    try:
        return vectorised_sums(unit.codelet, lower(done.codelet))
    except LooptuneError:
        return ()


def _place(step: AppliedDirective) -> _Place:
    return step.directive.span, (step.number, step.piece)


def _judged(
    analysis: Analysis,
    placed: Sequence[DirectiveLine],
    step: AppliedDirective,
    values: Mapping[str, int | float],
    too_much: LooptuneError | None,
) -> CheckedDirective:
    where = (step.text, step.number, step.piece, step.loop, step.directive.span)
    if step.refusal is not None:
        return CheckedDirective(*where, "refused", step.refusal, alternatives(analysis, placed, step, values))
    if too_much is not None:
        return CheckedDirective(*where, "refused", too_much)
    return CheckedDirective(*where, "asserted" if step.proof == "asserted" else "proved", sums=step.sums)


def _runs(done: ScheduleResult, sizes: Mapping[str, int], known: bool) -> ExecutionOutline:
    planned = lower(done.codelet, blocks=True)
    placed = tuple(_kernels(planned.steps, ()))
    extents = tuple(_extents(k, sizes, around) for k, around in placed)
    launches = count(planned.steps, sizes) if known and not data_decide(planned) else None
    return ExecutionOutline(
        planned, summarize_plan(planned, sizes if known else None), tuple(a for _, a in placed), extents, launches
    )


def _kernels(steps: Sequence[HostStep], around: tuple[str, ...]) -> Iterator[tuple[Kernel, tuple[str, ...]]]:
    """Yield the kernels in the order of ``Plan.kernels``, each with its host loops."""
    for step in steps:
        match step:
            case Launch(kernel):
                yield kernel, around
            case HostLoop(var, _, _, _, body):
                yield from _kernels(body, (*around, var))
            case HostWhile(_, _, body):
                yield from _kernels(body, (*around, "while"))
            case HostIf(_, then, other):
                yield from _kernels((*then, *other), around)


def _extents(kernel: Kernel, sizes: Mapping[str, int], around: tuple[str, ...]) -> tuple[int, ...] | None:
    needed = names_in(tuple((a.lo, a.hi) for a in kernel.grid))
    return extent(kernel, sizes) if needed <= sizes.keys() - {*around} else None
