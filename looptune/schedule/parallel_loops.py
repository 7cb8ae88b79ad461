"""Check whether threads may run the loops of a directive, and find what these loops reduce.

Threads may run a loop that carries no dependence but those of reductions, and whose iterations share no local. If the
directive has ``assume``, a dependence that cannot be analysed is assumed to be absent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.ir.def_use import MOST_OWN_BYTES, can_be_private, target_name, upward_exposed_uses, written_names
from looptune.ir.nodes import Assign, Local, Loop, Reduction, Stmt
from looptune.ir.rewrite import rewrite_stmts, walk_stmts
from looptune.schedule.binding import BoundDirective, Id, identity
from looptune.schedule.directives.base import NewSchedule, statement_names
from looptune.schedule.messages import directive_text, explain_refusal
from looptune.schedule.reduction_clauses import LoopReductions, check_clause, reductions

if TYPE_CHECKING:
    from looptune.poly.legality import Verdict, Violation
    from looptune.schedule.analysis import Analysis, ScheduledTree


def check_parallel(b: BoundDirective, loop: Loop, now: ScheduledTree) -> tuple[str, dict[Id, tuple[Reduction, ...]]]:
    """Judge every loop that the directive hands to threads; what each of them reduces."""
    proof, found = "", dict[Id, LoopReductions]()
    shared_out = b.transform.parallel(loop)
    for inner in shared_out:
        verdict = now.verdict(inner)
        proof = "proved"
        if verdict.kind != "sequential":
            found[identity(inner)] = _shared(b, inner, verdict, now.analysis)
            continue
        assert verdict.witness is not None, "a loop that is not parallel has a witness"
        if verdict.witness.because is not None and getattr(b.transform, "assume", False):
            proof, found[identity(inner)] = "asserted", _shared(b, inner, verdict, now.analysis)
            continue
        raise _carried(b, inner, verdict.witness, now)
    if b.transform.requires_reduction and proof == "proved" and not any(f.reduces for f in found.values()):
        raise DirectiveError(f"{directive_text(b.directive)}: loop {loop.var} reduces nothing", b.directive.span)
    clause = b.transform.reductions()
    if clause is not None and (proof == "proved" or any(f.named for f in found.values())):
        loops = " and ".join(dict.fromkeys(f"loop {f.var}" for f in shared_out))
        check_clause(clause, [named for f in found.values() for named in f.named], loops)
    return proof, {loop: f.reduces for loop, f in found.items() if f.reduces}


def _shared(b: BoundDirective, loop: Loop, verdict: Verdict, analysis: Analysis) -> LoopReductions:
    """Return what the threads that share the ``loop`` reduce; IllegalTransform where they cannot share it."""
    found = reductions(loop, verdict, copies=b.transform.copies_arrays)
    what = f"loop {loop.var} {found.wrong}" if found.wrong else ""
    if verdict.kind != "sequential" and not what:
        shared = unprivatizable_locals(loop, analysis, verdict.private, {target_name(r.target) for r in found.reduces})
        what = _sharing(loop, shared, analysis) if shared else ""
    if what:
        raise IllegalTransform(f"{directive_text(b.directive)} is illegal: {what}", b.directive.span)
    return found


def _carried(b: BoundDirective, loop: Loop, witness: Violation, now: ScheduledTree) -> IllegalTransform:
    """Return why a sequential loop cannot be parallel."""
    what = f"{directive_text(b.directive)} is illegal: loop {loop.var} carries "
    said = explain_refusal(f"{what}a dependence", witness)
    loose = now.verdict_if_reassociated(loop)
    if loose.kind == "reduction":
        of = ", ".join(sorted({f"{r.op} of {r.variable}" for r in loose.reductions}))
        said = f"{what}the reduction {of}, whose order --no-reassociate preserves"
    return IllegalTransform(said, b.directive.span, (witness.ends(b.directive.span),))


def check_privates(b: BoundDirective, body: tuple[Stmt, ...], own: Sequence[Local], analysis: Analysis) -> None:
    """Check that each thread still writes its private scalars before it reads them, in the new ``body``."""
    scalars = {v.name for v in own if not v.shape}
    for f in (n for n in walk_stmts(body) if isinstance(n, Loop) and n.mode == "parallel") if scalars else ():
        mine = scalars & written_names(f.body) - {target_name(r.target) for r in f.reductions}
        shared = sorted(mine & upward_exposed_uses(f.body)) if mine else []
        if shared:
            what = f"{directive_text(b.directive)} is illegal: {_sharing(f, shared, analysis)}"
            raise IllegalTransform(what, b.directive.span)


def serialize_carrying_loops(
    b: BoundDirective, loop: Loop, new: NewSchedule, body: tuple[Stmt, ...], now: ScheduledTree,
    entries: Mapping[Id, int],
    asked: Collection[Id],
) -> tuple[Stmt, ...]:  # fmt: skip
    """Return ``body`` with those parallel loops made sequential that carry a dependence in the ``new`` order.

    ``entries`` has the entry of each loop in the old times; ``asked`` are the loops that a directive states to be
    parallel. Raises IllegalTransform if one of these, or a loop whose iterations run in parts, would carry a
    dependence.
    """
    ordered: set[tuple[Id, str]] = set()
    shared = (n for n in walk_stmts(loop.body) if isinstance(n, Loop))
    for f in (n for n in shared if n.mode in ("parallel", "thread") or n.in_parts):
        witness = _carries(f, new, now, entries)
        if witness is None:
            continue
        if identity(f) in asked or f.in_parts:
            parts = next((f"with the directive {a.word}" for a in f.annotations if a.in_parts), "")
            carries = f"loop {f.var}, {parts or 'which is to be parallel'}, would carry a dependence"
            what = f"{directive_text(b.directive)} is illegal: {carries}"
            raise IllegalTransform(explain_refusal(what, witness), b.directive.span, (witness.ends(b.directive.span),))
        ordered.add((identity(f), f.var))

    def rule(s: Stmt) -> Stmt | None:
        match s:
            case Loop() if (identity(s), s.var) in ordered:
                return replace(s, mode="sequential", reductions=())
        return None

    return rewrite_stmts(rule, body) if ordered else body


def _carries(loop: Loop, new: NewSchedule, now: ScheduledTree, entries: Mapping[Id, int]) -> Violation | None:
    """Return a dependence that the loop carries in the new order, and that its threads would break.

    Its entry of the times has moved by the one of the trip, or by as many as there are more of them. A loop over
    strips stands for the loop in it.
    """
    known = next(f for f in walk_stmts(loop) if isinstance(f, Loop) and identity(f) in entries)
    lengths = (len(next(iter(order.values()))[0].time) for order in (new.order, now.analysis.model.order()))
    more = next(lengths) - next(lengths)
    for k in range(1, max(1, more - 1) + 1):
        order = {**now.order, **new.order}
        verdict = now.analysis.verdict(statement_names(loop.body), entries[identity(known)] + k, order)
        if verdict.kind == "sequential" or (verdict.kind == "reduction" and not _known(loop, verdict)):
            return verdict.witness
    return None


def _known(loop: Loop, verdict: Verdict) -> bool:
    """All that iterations of the loop accumulate into together is what it reduces already, and nothing else uses it."""
    adding = {r.statement for r in verdict.reductions}
    targets = {n.target for n in walk_stmts(loop.body) if isinstance(n, Assign) and n.name in adding}
    return targets <= {r.target for r in loop.reductions} and not verdict.mixed & {target_name(t) for t in targets}


def unprivatizable_locals(
    loop: Loop, analysis: Analysis, private: frozenset[str], reduced: Collection[str] = ()
) -> list[str]:
    """Return the names of the locals that cannot be privatised in the loop.

    These are arrays in ``private`` that are too large for a thread to have a copy, and scalars with an upward-exposed
    use or that are live after the loop. Reduced names are exempt, since reductions combine them.
    """
    inside, written = statement_names(loop.body), written_names(loop.body)
    own = [v for v in analysis.codelet.locals if v.name in written and v.name not in reduced]
    exposed = upward_exposed_uses(loop.body) if any(not v.shape for v in own) else frozenset[str]()

    def shared(name: str) -> bool:
        flows = analysis.flows(name).flows
        return name in exposed or any(f.write in inside and f.read not in inside for f in flows)

    return [v.name for v in own if (v.name in private and not can_be_private(v) if v.shape else shared(v.name))]


def private_arrays(private: Collection[str], analysis: Analysis) -> tuple[str, ...]:
    """Return the ``private`` arrays of a loop of which each of its iterations can have a copy."""
    return tuple(v.name for v in analysis.codelet.locals if v.name in private and can_be_private(v))


def _sharing(loop: Loop, shared: Sequence[str], analysis: Analysis) -> str:
    """Return why threads cannot run the loop, and how to write it so that they can."""
    rows = {v.name for v in analysis.codelet.locals if v.shape}
    row = f"one row for each {loop.var}, or give it a constant size of at most {MOST_OWN_BYTES} bytes"
    each = row if shared[0] in rows else f"an element for each {loop.var}"
    return f"iterations of loop {loop.var} would share {', '.join(shared)}; make {shared[0]} an array with {each}"
