"""The stage ``division``: the directives that divide prefix sums into parts, before all others.

The codelet that results has other statements than the text. Its dependences are found anew, and it keeps the steps by
which it was made, which the proof follows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.ir.nodes import Derivation, Loop
from looptune.ir.rewrite import walk_stmts
from looptune.poly.reassociation import ReorderedReduction
from looptune.schedule.analysis import Analysis, ScheduledTree
from looptune.schedule.directives.prefix import Prefix
from looptune.schedule.messages import directive_text, explain_refusal, list_reductions

if TYPE_CHECKING:
    from looptune.ir.nodes import PrefixDivision
    from looptune.schedule.binding import BoundDirective


def divided(analysis: Analysis, b: BoundDirective, loop: Loop) -> tuple[Analysis, tuple[ReorderedReduction, ...]]:
    """Return the analysis of the codelet with ``loop`` in parts, and the sums that this reorders.

    Raises DirectiveError for a loop that is no prefix sum, IllegalTransform if --no-reassociate preserves its order, or
    if the parts would depend on each other.
    """
    assert isinstance(b.transform, Prefix), "no other directive has this stage"
    said, codelet = directive_text(b.directive), analysis.codelet
    tree = ScheduledTree(analysis, codelet.body, analysis.model.order())
    if tree.verdict(loop).kind != "sequential":
        raise DirectiveError(f"{said}: loop {loop.var} needs no parts: write parallel or rfactor", b.directive.span)
    made = b.transform.divisions(codelet, loop)
    values = [v for prefix, _ in made[:1] for v in prefix.values if not v.exact]
    sums = tuple(ReorderedReduction(v.op, v.text, v.span) for v in values)
    if sums and not analysis.reassociate:
        what = f"it reorders {list_reductions(sums)}, whose order --no-reassociate preserves"
        raise IllegalTransform(f"{said} is illegal: {what}", b.directive.span)
    steps = tuple(step for _, step in made)
    before = () if codelet.derivation is None else codelet.derivation.steps
    anew = Analysis(replace(steps[-1].after, derivation=Derivation((*before, *steps))), analysis.reassociate)
    _check_parts(anew, steps[0], b, loop)
    return anew, sums


def _check_parts(analysis: Analysis, step: PrefixDivision, b: BoundDirective, loop: Loop) -> None:
    """Raise IllegalTransform if the loop carries a dependence besides its prefix sums, and not only an assumed one."""
    tree = ScheduledTree(analysis, analysis.codelet.body, analysis.model.order())
    for f in walk_stmts(analysis.codelet.body):
        if isinstance(f, Loop) and f.number in (step.loops[0], step.loops[2]):
            verdict = tree.verdict(f)
            witness = verdict.witness
            if verdict.kind == "sequential" and witness is not None and witness.because is None:
                what = f"{directive_text(b.directive)} is illegal: loop {loop.var} carries more than prefix sums"
                raise IllegalTransform(
                    explain_refusal(what, witness), b.directive.span, (witness.ends(b.directive.span),)
                )
