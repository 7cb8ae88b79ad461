"""Legal alternatives to a refused directive; each of them has been judged.

division   ->  ``rfactor`` of a loop that accumulates into different elements, as a histogram does; ``prefix`` of one
               that carries prefix sums; ``argreduce`` of one that keeps the best of its terms
any        ->  what its class offers as ``alternatives``; after ``distribute``
parallel   ->  with its reduction; after ``expand`` or ``snapshot``; on another loop; with ``assume``
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError, IllegalTransform, LooptuneError
from looptune.ir.def_use import target_name
from looptune.ir.nodes import Array, Assign, Codelet, Const, Directive, If, Local, Loop, Node, While
from looptune.ir.rewrite import rewrite, substitute, walk
from looptune.poly.arg_reduction import arg_reductions
from looptune.poly.prefix_sum import is_prefix_sum
from looptune.schedule import directives
from looptune.schedule.apply import ScheduleResult, schedule
from looptune.schedule.array_parts import parts_that_fit
from looptune.schedule.binding import enclosing_path
from looptune.schedule.directive_lines import DirectiveLine, parse_lines
from looptune.schedule.messages import directive_text
from looptune.schedule.reduction_clauses import reductions
from looptune.schedule.reuse import overwritten_arrays, reused_variables, verdict_of

if TYPE_CHECKING:
    from looptune.schedule.analysis import Analysis
    from looptune.schedule.applied import AppliedDirective

_ENOUGH = 3
PARTS = 4096
"""Of a loop whose parts have copies of arrays: a warp for each multiprocessor of a large GPU."""
LENGTH = 32
"""Iterations of the parts of a prefix sum."""
BLOCK = 1024
"""Iterations of a loop that keeps the best of its terms."""
_FILE = "suggestion"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A legal alternative to a refused directive: ``text`` is a sentence, ``lines`` are directives for --directive."""

    text: str
    lines: tuple[str, ...]

    @property
    def directive(self) -> str:
        """Return the name of the last directive."""
        (placed,) = parse_lines(self.lines[-1:])
        return placed.directive.name


def schedule_with_suggestions(
    analysis: Analysis, placed: Sequence[DirectiveLine], values: Mapping[str, int | float], *, sums: bool = False
) -> ScheduleResult:
    """Schedule the codelet; a directive that is refused comes with what would be legal instead."""
    try:
        return schedule(analysis, placed, values, sums=sums)
    except (DirectiveError, IllegalTransform) as refusal:
        raise _with_advice(refusal, analysis, placed, values) from None


def _with_advice(
    refusal: LooptuneError, analysis: Analysis, placed: Sequence[DirectiveLine], values: Mapping[str, int | float]
) -> LooptuneError:
    try:
        steps = schedule(analysis, placed, values, keep_going=True).steps
    except (DirectiveError, IllegalTransform):
        return refusal
    step = next((s for s in steps if s.refusal is not None and s.refusal.span == refusal.span), None)
    if step is None:
        return refusal
    advice = tuple(f"instead: {s.text}" for s in alternatives(analysis, placed, step, values))
    return type(refusal)(refusal.message, refusal.span, (*refusal.notes, *advice))


def alternatives(
    analysis: Analysis, placed: Sequence[DirectiveLine], step: AppliedDirective, values: Mapping[str, int | float]
) -> tuple[Suggestion, ...]:
    """Return legal variants of the directive of ``step``, the nearest first, at most three."""
    codelet = without_directive(analysis.codelet, step.directive)
    rest = [p for p in placed if p.directive.span != step.directive.span]
    bare = analysis.of(codelet)
    found: list[Suggestion] = []
    for s in _candidates(analysis, step):
        if len(found) < _ENOUGH and _legal(bare, rest, s.lines, values):
            found.append(s)
    return tuple(found)


def division(
    analysis: Analysis, placed: Sequence[DirectiveLine], loop: Loop, values: Mapping[str, int | float]
) -> Suggestion | None:
    """Return the directive that divides a loop that carries prefix sums, or accumulates into different elements.

    So it is with a loop that keeps the best of its terms. None if the loop is another one, or if it cannot be divided.
    """
    verdict = verdict_of(analysis, loop)
    if verdict.kind == "sequential":
        return _prefix(analysis, placed, loop, values) or _blocks(analysis, placed, loop, values)
    if verdict.kind != "reduction" or not reductions(loop, verdict).wrong:
        return None
    names = {target_name(r.target) for r in reductions(loop, verdict).reduces}
    text = f"rfactor {parts_that_fit(PARTS, sized_arrays(analysis.codelet, names, values))}"
    line = f"loop {loop.number}: {text}"
    return (
        Suggestion(f"`{text}` divides it among threads", (line,)) if _legal(analysis, placed, (line,), values) else None
    )


def _prefix(
    analysis: Analysis, placed: Sequence[DirectiveLine], loop: Loop, values: Mapping[str, int | float]
) -> Suggestion | None:
    """Return the directive that divides a prefix sum into parallel parts, or None."""
    if analysis.codelet.derivation is not None or not is_prefix_sum(analysis.codelet, loop.number):
        return None
    text = f"prefix {LENGTH}"
    line = f"loop {loop.number}: {text}"
    legal = has_parallel_parts(analysis, (*placed, *parse_lines((line,), _FILE)), loop, values)
    return Suggestion(f"a prefix sum: `{text}` divides it among threads", (line,)) if legal else None


def has_parallel_parts(
    analysis: Analysis, placed: Sequence[DirectiveLine], loop: Loop, values: Mapping[str, int | float]
) -> bool:
    """Tell whether the directives ``placed`` divide a prefix sum into parts that are parallel."""
    try:
        done = schedule(analysis, placed, values, keep_going=True).codelet
    except LooptuneError:
        return False
    steps = done.derivation.steps if done.derivation is not None else ()
    parts = {number for step in steps for number in (step.loops[0], step.loops[2])}
    modes = {f.mode for f in walk(done.body) if isinstance(f, Loop) and f.number in parts}
    return any(step.number == loop.number for step in steps) and modes == {"parallel"}


def _blocks(
    analysis: Analysis, placed: Sequence[DirectiveLine], loop: Loop, values: Mapping[str, int | float]
) -> Suggestion | None:
    """Return the directive that divides a loop which keeps the best of its terms into blocks that are parallel."""
    if not arg_reductions(loop):
        return None
    text, parallel = f"argreduce {BLOCK}", f"loop {loop.number}: parallel"
    line = f"loop {loop.number}: {text}"
    legal = _legal(analysis, placed, (parallel, line), values)
    return Suggestion(f"`{text}` divides it among threads", (parallel, line)) if legal else None


def sized_arrays(codelet: Codelet, names: Collection[str], values: Mapping[str, int | float]) -> Iterator[Local]:
    """Yield the arrays of these names, with the known values in their extents."""
    known = {n: Const(int(v)) for n, v in values.items() if isinstance(v, int)}
    for a in (*codelet.params, *codelet.locals):
        if isinstance(a, (Array, Local)) and a.name in names:
            yield Local(a.name, a.dtype, substitute(tuple(e for e in a.shape if e is not None), known))


def without_directive(codelet: Codelet, directive: Directive) -> Codelet:
    """Return the codelet as if the directive were not in its file."""

    def rule(n: Node) -> Node | None:
        match n:
            case Loop() | While() | If() | Assign() if any(d.span == directive.span for d in n.directives):
                return replace(n, directives=tuple(d for d in n.directives if d.span != directive.span))
        return None

    own = tuple(d for d in codelet.directives if d.span != directive.span)
    return replace(codelet, body=rewrite(rule, codelet.body), directives=own)


def _legal(
    analysis: Analysis, placed: Sequence[DirectiveLine], lines: Sequence[str], values: Mapping[str, int | float]
) -> bool:
    try:
        done = schedule(analysis, (*placed, *parse_lines(lines, _FILE)), values, keep_going=True)
    except LooptuneError:
        return False
    mine = [s for s in done.steps if s.directive.span.file == _FILE]
    return len(mine) >= len(lines) and all(s.refusal is None for s in mine)


def _candidates(analysis: Analysis, step: AppliedDirective) -> Iterator[Suggestion]:
    """Yield what may be legal instead; nothing for a loop that another directive has made, which the text lacks."""
    around = enclosing_path(analysis.codelet.body, step.number)
    if not around:
        return
    loop = around[-1]
    numbers = {f.var: f.number for f in walk(loop) if isinstance(f, Loop)}
    for a in directives.find(step.directive).alternatives(step.directive, loop):
        text = directive_text(a.directive)
        line = f"loop {numbers.get(a.loop, step.number)}: {text}"
        yield Suggestion(a.text or f"`{text}` is legal", (line,))
    if step.directive.name.lower() == "parallel":
        yield from _parallel(analysis, step, around)
    here = f"loop {step.number}: "
    yield Suggestion("it is legal after `distribute`", (f"{here}distribute", here + directive_text(step.directive)))


def _parallel(analysis: Analysis, step: AppliedDirective, around: Sequence[Loop | While]) -> Iterator[Suggestion]:
    verdict = verdict_of(analysis, around[-1])
    if verdict.kind == "reduction":
        sums = {(r.op, r.variable.partition("[")[0].strip()) for r in verdict.reductions}
        text = f"reduce({', '.join(f'{op}:{x}' for op, x in sorted(sums))})"
        yield Suggestion(f"it is legal with `{text}`", (f"loop {step.number}: parallel, {text}",))
    loop = around[-1]
    for word, find in (("expand", reused_variables), ("snapshot", overwritten_arrays)):
        names = ", ".join(find(analysis, loop)) if isinstance(loop, Loop) else ""
        if names:
            lines = (f"loop {step.number}: {word} {names}", f"loop {step.number}: parallel")
            yield Suggestion(f"it is legal with `{word} {names}`", lines)
    divided = division(analysis, (), loop, {}) if isinstance(loop, Loop) else None
    if divided is not None:
        yield divided
    inner = [f for f in walk(around[-1]) if isinstance(f, Loop) and f.number != step.number]
    outer = [f for f in reversed(around[:-1]) if isinstance(f, Loop)]
    free = next((f for f in (*inner, *outer) if verdict_of(analysis, f).kind == "parallel"), None)
    if free is not None:
        yield Suggestion(f"loop {free.number} ({free.var}) is parallel", (f"loop {free.number}: parallel",))
    if verdict.witness is not None and verdict.witness.because is not None:
        yield Suggestion(
            "`parallel, assume` asserts it", (f"loop {step.number}: {directive_text(step.directive)}, assume",)
        )
