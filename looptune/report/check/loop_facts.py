"""What the analysis finds about each loop of a codelet: parallel, a reduction, sequential, or unknown, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from looptune.core.source import Span
from looptune.frontend.normalize.library_effects import STATES
from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import target_name, upward_exposed_uses
from looptune.ir.nodes import Assign, If, Load, Loop, Stmt, Var, While
from looptune.ir.rewrite import walk
from looptune.poly.arg_reduction import arg_reductions_of
from looptune.poly.carried_dependence import Reason
from looptune.poly.legality import Reduction
from looptune.poly.scop import Unanalysable
from looptune.schedule.directives.base import statement_names
from looptune.schedule.parallel_loops import unprivatizable_locals
from looptune.schedule.suggest import Suggestion, division

if TYPE_CHECKING:
    from looptune.frontend.text_order import TextOrder
    from looptune.poly.legality import Verdict
    from looptune.schedule.analysis import Analysis
    from looptune.schedule.directive_lines import DirectiveLine

Kind = Literal["parallel", "reduction", "sequential", "unknown"]


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """What the analysis found about a loop; ``depth`` counts the loops around it; ``var`` is "while" for a while loop.

    ``private``: the locals of which each iteration needs a copy. ``reason``: why it is sequential; ``unknown``: what
    cannot be analysed. A while loop is sequential without either: each iteration decides whether there is a next one.
    ``shared``: locals of which threads cannot have copies, so that the loop runs in order.
    ``left_at``: the jump that may end the loop early, where it is sequential for that reason; ``ordered_at``: the call
    that has to happen in the order of the iterations. ``data``: the subscript that comes from data, where the loop is
    sequential because two iterations access the same element for some data. ``carried``: the scalar that an iteration
    may read before it sets it, and that another one may have set, where that shows that the loop is sequential.
    ``division``: the directive that divides a loop that carries prefix sums, accumulates into different elements, or
    keeps the best of its terms.
    """

    number: int
    var: str
    depth: int
    span: Span
    kind: Kind
    reductions: tuple[Reduction, ...] = ()
    private: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    reason: Reason | None = None
    unknown: Unanalysable | None = None
    left_at: Span | None = None
    ordered_at: Span | None = None
    data: Unanalysable | None = None
    carried: Var | None = None
    division: Suggestion | None = None


def loop_facts(analysis: Analysis, flags: Collection[str] = ()) -> Iterator[LoopFacts]:
    """Yield what is found about each loop, in textual order.

    ``flags`` are the locals that say whether a jump of the text was taken.
    """
    for loop, depth in nested_loops(analysis.codelet.body, 0):
        match loop:
            case Loop():
                yield facts_of_loop(analysis, loop, depth, flags)
            case While():
                yield LoopFacts(loop.number, "while", depth, loop.span, "sequential")


def with_division(
    facts: LoopFacts, analysis: Analysis, placed: Sequence[DirectiveLine], values: Mapping[str, int | float],
    accepted: Collection[str] = (),
) -> LoopFacts:  # fmt: skip
    """Return the facts with the directive that divides the loop among threads.

    There is one if its iterations reduce into arrays, or if it carries prefix sums. It is legal beside those of the
    text and the ``placed`` ones. None is named if the loop has it already, in the text or among the names of those
    ``accepted``.
    """
    if facts.kind not in ("reduction", "sequential") or facts.ordered_at is not None or facts.var == "while":
        return facts
    loops = (f for f, _ in nested_loops(analysis.codelet.body) if isinstance(f, Loop))
    loop = next(f for f in loops if f.number == facts.number)
    found = division(analysis, placed, loop, values)
    known = {d.name for d in loop.directives} | {*accepted}
    return facts if found is None or found.directive in known else replace(facts, division=found)


def nested_loops(body: Sequence[Stmt], depth: int = 0) -> Iterator[tuple[Loop | While, int]]:
    """Yield the loops in textual order, each with the number of loops around it."""
    for stmt in body:
        match stmt:
            case (Loop() | While()) as loop:
                yield loop, depth
                yield from nested_loops(loop.body, depth + 1)
            case If(_, then, other):
                yield from nested_loops((*then, *other), depth)


def facts_of_loop(analysis: Analysis, loop: Loop, depth: int, flags: Collection[str] = ()) -> LoopFacts:
    """Return what is found about a counted loop of the codelet, around which there are ``depth`` loops."""
    names, at, model = statement_names(loop.body), 2 * depth + 1, analysis.model
    verdict = analysis.verdict(names, at, model.order())
    kind: Kind = verdict.kind
    reason = unknown = None
    if kind == "sequential":
        reason = analysis.explain_sequential(names, at)
        about = reason.dependence.because
        groups = arg_reductions_of(loop, reason.arrays)
        if groups:
            kept = tuple(Reduction(g.word, expression_text(t), "") for g in groups for t in g.targets)
            sums = tuple(r for r in _sums_of(verdict) if r.variable not in {k.variable for k in kept})
            return LoopFacts(loop.number, loop.var, depth, loop.span, "reduction", (*sums, *kept))
        ordered = _ordered_call(loop)
        if ordered is not None:
            return LoopFacts(loop.number, loop.var, depth, loop.span, kind, reason=reason, ordered_at=ordered)
        if about is not None and not about.condition and not about.passes:
            kind, reason, unknown = "unknown", None, _named(about)
    shared = unprivatizable_locals(loop, analysis, verdict.private) if kind == "parallel" else []
    private = tuple(sorted(verdict.private.difference(shared)))
    left_at = reason.dependence.source if reason is not None and reason.dependence.array in flags else None
    sums = _sums_of(verdict) if kind == "reduction" else ()
    return LoopFacts(loop.number, loop.var, depth, loop.span, kind, sums, private,
                     tuple(shared), reason, unknown, left_at)  # fmt: skip


def _sums_of(verdict: Verdict) -> tuple[Reduction, ...]:
    """Return the reductions of a loop, one for each operator and variable."""
    sums = {(r.op, r.variable): r for r in reversed(verdict.reductions)}
    return tuple(reversed(sums.values()))


def facts_of_text(loop: Loop, depth: int, flags: Collection[str] = ()) -> LoopFacts | None:
    """Return what the text of a loop shows about it, for loops on which isl gives up; None if that is nothing.

    It is sequential if it calls functions whose order matters, or reads scalars that the iteration before may have set.
    Scalars that are only added to may be sums; no fact is returned about these.
    """
    found = LoopFacts(loop.number, loop.var, depth, loop.span, "sequential")
    ordered = _ordered_call(loop)
    if ordered is not None:
        return replace(found, ordered_at=ordered)
    exposed = upward_exposed_uses(loop.body)
    sets = [n for n in walk(loop.body) if isinstance(n, Assign) and isinstance(n.target, Var)]
    for n in sets:
        if isinstance(n.target, Var) and n.target.name in exposed & {*flags}:
            return replace(found, left_at=n.span)
    for n in sets:
        if isinstance(n.target, Var) and n.target.name in exposed and not _may_be_sum(n.target.name, loop):
            return replace(found, carried=replace(n.target, span=n.span))
    return None


def facts_of_order(order: TextOrder, loop: Span) -> LoopFacts:
    """Return what is found about a loop of which there is no codelet."""
    found = LoopFacts(0, order.counter, 0, loop, "sequential")
    match order.why:
        case "call":
            return replace(found, ordered_at=order.span)
        case "jump":
            return replace(found, left_at=order.span)
        case "scalar":
            return replace(found, carried=Var(order.scalar, span=order.span))
    return found


def _may_be_sum(name: str, loop: Loop) -> bool:
    """Tell whether a scalar is only used to set it again."""
    own = [n for n in walk(loop.body) if isinstance(n, Assign) and target_name(n.target) == name]
    elsewhere = Counter(n.name for n in walk(loop.body) if isinstance(n, Var))[name]
    return elsewhere == sum(Counter(n.name for n in walk(a) if isinstance(n, Var))[name] for a in own)


def _named(about: Unanalysable) -> Unanalysable:
    """Return what cannot be analysed in words of the text, where it is the element that a call accesses."""
    for state in STATES:
        if about.what.startswith(f"subscript {state}[0] of "):
            array = about.what.rpartition(" of ")[2]
            return replace(about, what=f"the element of {array} that this call accesses")
    called = re.compile(rf"(?:\(\w+\))?(?:{'|'.join(STATES)})\[0\]")
    return replace(about, what=called.sub("what this call returns", about.what))


def _ordered_call(loop: Loop) -> Span | None:
    """Return the first call in the loop that reads or changes what is outside of the program."""
    for node in walk(loop.body):
        match node:
            case Assign(Load(array)) if array in STATES:
                return node.span
    return None
