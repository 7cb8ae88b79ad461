"""Apply the directives of a codelet: bind each to its loop, judge it, apply it, verify the tree, record it.

    prefix           first, since it makes other statements
    expand, …        then, since the dependences are found anew
    distribute       before all others, which can be for the pieces
    permute …        whole nests, outermost first
    fuse             outermost first, so that inner loops can be fused as well
    parallel, grid…  how each loop runs: by the directive, else by the dependence analysis
    box, tile, …     one loop each, innermost first, so that a copied loop is transformed once

Dependences are those of the ORIGINAL codelet, or of the expanded one, found once (``Analysis``); each directive is
judged on the order of the original instances that it makes, so that a sequence of directives is judged as exactly as
one.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from looptune.core.errors import DirectiveError, IllegalTransform, InfeasibleDirective, LooptuneError, UnsupportedError
from looptune.ir.def_use import assigned_targets, declared_names
from looptune.ir.nodes import Cast, Codelet, Loop, Mode, Reduction, Stmt, While
from looptune.ir.rewrite import rewrite_stmts, walk_stmts
from looptune.ir.simplify import fold, widens
from looptune.ir.specialize import remove_dead_code
from looptune.ir.verify import verify
from looptune.poly.isl_limits import IslLimitExceeded
from looptune.poly.loop_context import LoopContext
from looptune.poly.reassociation import ReorderedReduction, parallel_reductions
from looptune.poly.scop import Order, SchedulePiece
from looptune.schedule import directives
from looptune.schedule.analysis import Analysis, ScheduledTree
from looptune.schedule.applied import AppliedDirective
from looptune.schedule.binding import (
    BoundDirective,
    Id,
    applies,
    bind,
    enclosing_path,
    identity,
    number_fission_parts,
    rebind_fused,
)
from looptune.schedule.directives.base import (
    FIRST_STAGES,
    DirectiveSite,
    NewSchedule,
    Rewrite,
    check_copies,
    splice,
    statement_names,
)
from looptune.schedule.directives.distribute import cuts, without_cuts
from looptune.schedule.directives.generation import GeneratedTransform
from looptune.schedule.division import divided
from looptune.schedule.expansion import expansion_steps, one_by_variable, with_copies
from looptune.schedule.messages import directive_text, explain_refusal, list_reductions, loop_name
from looptune.schedule.parallel_loops import (
    check_parallel,
    check_privates,
    private_arrays,
    serialize_carrying_loops,
    unprivatizable_locals,
)
from looptune.schedule.pieces import merged, shared_statements
from looptune.schedule.reduction_clauses import restrict_to_body

if TYPE_CHECKING:
    from looptune.core.source import Span
    from looptune.schedule.directive_lines import DirectiveLine
    from looptune.schedule.directives.base import Stage


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """A scheduled codelet with the directives that were applied.

    ``order``: when each statement of ``expanded`` runs in ``codelet``, as far as the directives for whole nests
    determine it; ``expanded`` is the codelet given, with its prefix sums in parts and its variables expanded.
    """

    codelet: Codelet
    steps: tuple[AppliedDirective, ...]
    order: Order
    expanded: Codelet

    @property
    def asserted(self) -> tuple[str, ...]:
        """Return the directives that are asserted and not proved, as lines for --directive."""
        said = (s for s in self.steps if s.proof == "asserted")
        return tuple(f"loop {f'{s.number}.{s.piece}' if s.piece else s.number}: {s.text}" for s in said)

    @property
    def assumed(self) -> tuple[str, ...]:
        """Return the assumptions about data that the directives make."""
        return tuple(dict.fromkeys(s.assumes for s in self.steps if s.assumes and s.refusal is None))

    @property
    def sums(self) -> tuple[ReorderedReduction, ...]:
        """Return the reductions that any directive reorders, if they were asked for."""
        return tuple(dict.fromkeys(x for s in self.steps for x in s.sums))


def schedule(
    analysis: Analysis,
    placed: Sequence[DirectiveLine] = (),
    values: Mapping[str, int | float] | None = None,
    target: str = "CUDA",
    *,
    keep_going: bool = False,
    sums: bool = False,
) -> ScheduleResult:
    """Return the codelet with its own directives and the ``placed`` ones applied, and every loop's mode decided.

    ``values`` are sizes known already, for directives that assert something about them. Raises DirectiveError for a
    directive that does not fit the nest, IllegalTransform for one that the dependences forbid; with ``keep_going``
    such a directive is left out, and its step says why, and so is one that a block's tile is too small for.
    ``sums``: each step says which sums it reorders.
    """
    run = _distributed(analysis, placed, values if values is not None else {}, target, keep_going, sums)
    bound = _bind(run.codelet, placed, target, lambda stage: stage not in FIRST_STAGES)
    run = run.apply_to_nests(bound, target)
    nests = dict(run.order)
    if run.fused_into:
        bound = rebind_fused([b for b in bound if b.transform.stage in ("mode", "loop")], run.fused_into)
    loops = (b for b in bound if b.transform.stage == "loop")
    run.apply_in_order(sorted(loops, key=lambda b: (-run.depth_of(b.loop), not b.transform.first_of_loop)))
    run.check_finished()
    return ScheduleResult(remove_dead_code(verify(run.codelet)), tuple(run.steps), nests, run.analysis.codelet)


def apply_distribution(analysis: Analysis, placed: Sequence[DirectiveLine]) -> Codelet:
    """Return the codelet after its ``distribute`` directives only: other directives apply to the loops that result."""
    return _distributed(analysis, placed, {}, "CUDA", False, False).codelet


def _distributed(
    analysis: Analysis,
    placed: Sequence[DirectiveLine],
    values: Mapping[str, int | float],
    target: str,
    keep_going: bool,
    sums: bool,
) -> Scheduler:
    run = Scheduler(analysis, analysis.codelet, dict(analysis.model.order()), values, keep_going, sums)
    run = run.divide(_bind(run.codelet, placed, target, lambda stage: stage == "division"))
    run = run.expand(_bind(run.codelet, placed, target, lambda stage: stage == "storage"))
    bound = _bind(run.codelet, placed, target, lambda stage: stage == "split")
    if not bound and next(cuts(run.codelet.body), None) is None:
        return run
    return run.distribute(bound, target)


def _bind(
    codelet: Codelet, placed: Sequence[DirectiveLine], target: str, wanted: Callable[[Stage], bool]
) -> list[BoundDirective]:
    """Return the directives for the target of the stages that are ``wanted``."""
    return bind(codelet, placed, lambda d: applies(d, target) and wanted(directives.find(d).stage))


@dataclass(slots=True)
class Scheduler:
    """The tree and the order on their way through the directives."""

    analysis: Analysis
    codelet: Codelet
    order: dict[str, tuple[SchedulePiece, ...]]
    values: Mapping[str, int | float]
    keep_going: bool = False
    sums: bool = False
    steps: list[AppliedDirective] = field(default_factory=list)
    fused_into: dict[Id, Id] = field(default_factory=dict)
    """Loops that are part of another now, with the one they are part of."""
    time_entries: Mapping[Id, int] = field(default_factory=dict)
    """The entry of times that was each loop's before the directives for one loop."""
    generated: frozenset[int] = frozenset()
    """Numbers of the loops that were generated anew: what is known of the text's loops does not hold of them."""
    copies: dict[str, str] = field(default_factory=dict)
    """Locals that stand for one of the codelet's in a copy of an iteration, with that one."""

    @property
    def current_tree(self) -> ScheduledTree:
        return ScheduledTree(self.analysis, self.codelet.body, self.order)

    def divide(self, bound: Sequence[BoundDirective]) -> Scheduler:
        """Apply the directives that make other statements; the analysis is that of the codelet they make."""
        if not bound:
            return self
        text, known = self.codelet, self.analysis.prefix_cache
        said = tuple((b.loop, b.rank, directive_text(b.directive), b.directive.span) for b in bound)
        key = ("division", id(text), said, self.keep_going, self.sums)
        if key not in known:
            self.apply_in_order(bound)
            # The codelet is kept as well, so that no other one has its id.
            known[key] = text, self.analysis, tuple(self.steps)
        _, anew, steps = known[key]
        order = dict(anew.model.order())
        return replace(self, analysis=anew, codelet=anew.codelet, order=order, steps=list(steps))

    def _divide(self, b: BoundDirective, loop: Loop) -> None:
        self.analysis, sums = divided(self.analysis, b, loop)
        self.codelet, self.order = self.analysis.codelet, dict(self.analysis.model.order())
        said, (number, piece), own = directive_text(b.directive), b.loop, sums if self.sums else ()
        self.steps.append(AppliedDirective(said, loop.var, "proved", number, b.directive, None, piece, own))

    def expand(self, bound: Sequence[BoundDirective]) -> Scheduler:
        """Apply the directives that change which variables there are; the analysis is that of the codelet they make."""
        if not bound:
            return self
        text, analysis = self.codelet, self.analysis
        said = tuple((b.loop, b.rank, directive_text(b.directive), b.directive.span) for b in bound)
        key = ("storage", id(text), said, self.keep_going, tuple(sorted(self.values.items())))
        known: dict[object, Any] = analysis.prefix_cache
        before = tuple(self.steps)
        if key not in known:
            self.apply_in_order(one_by_variable(text, bound))
            made = self.codelet
            anew = analysis if made is text else Analysis(with_copies(text, made, self.copies), analysis.reassociate)
            # The codelet is kept as well, so that no other one has its id.
            known[key] = text, anew, expansion_steps(made, self.steps[len(before) :], bound)
        _, anew, steps = known[key]
        order = dict(anew.model.order())
        return replace(self, analysis=anew, codelet=anew.codelet, order=order, steps=[*before, *steps], copies={})

    def distribute(self, bound: Sequence[BoundDirective], target: str) -> Scheduler:
        """Apply the directives that make several nests of one, or generate them anew."""
        return self._shared("split", bound, target, lambda: self._distribute(bound, target))

    def _distribute(self, bound: Sequence[BoundDirective], target: str) -> None:
        self.mark([b for b in bound if b.transform.name == "cut"], target)
        splits = [b for b in bound if b.transform.name != "cut"]
        self.check_cuts({b.loop for b in splits})
        self.split(splits)

    def apply_to_nests(self, bound: Sequence[BoundDirective], target: str) -> Scheduler:
        """Apply the directives that come before those for one loop."""
        whole = [b for b in bound if b.transform.stage != "loop"]
        return self._shared("nests", whole, target, lambda: self._whole_nests(bound))

    def _shared(self, stage: str, bound: Sequence[BoundDirective], target: str, apply: Callable[[], None]) -> Scheduler:
        """Return what ``apply`` makes of this with ``bound``, remembered for all configurations that share these."""
        said = tuple((b.loop, b.rank, directive_text(b.directive), b.directive.span) for b in bound)
        key = (stage, id(self.codelet), said, target, self.keep_going, self.sums, tuple(sorted(self.values.items())))
        known: dict[object, Any] = self.analysis.prefix_cache
        before = tuple(self.steps)
        if key not in known:
            text = self.codelet
            apply()
            # The codelet is kept as well, so that no other one has its id.
            known[key] = text, self, tuple(self.steps[len(before) :])
        done: Scheduler
        _, done, steps = known[key]
        return replace(
            done,
            order=dict(done.order),
            steps=[*before, *steps],
            fused_into=dict(done.fused_into),
            copies=dict(done.copies),
        )

    def _whole_nests(self, bound: Sequence[BoundDirective]) -> None:
        self.apply_in_order(b for b in bound if b.transform.stage == "nest")
        self.apply_in_order(
            sorted((b for b in bound if b.transform.stage == "join"), key=lambda b: self.depth_of(b.loop))
        )
        if self.fused_into:
            bound = rebind_fused([b for b in bound if b.transform.stage in ("mode", "loop")], self.fused_into)
        self.apply_in_order(b for b in bound if b.transform.stage == "mode")
        self.decide_modes()

    def apply_in_order(self, bound: Iterable[BoundDirective]) -> None:
        """Apply the directives in this order.

        A directive for all pieces of a loop, or for all nests, is left out where it does not fit, if it fits one.
        """
        bound = list(bound)
        pieces = Counter(b.group for b in bound)
        left: dict[object, tuple[BoundDirective, LooptuneError]] = {}
        fits: set[object] = set()
        for b in bound:
            try:
                self.apply(b)
                fits.add(b.group)
            except (DirectiveError, IllegalTransform) as refusal:
                if isinstance(refusal, DirectiveError) and pieces[b.group] > 1:
                    left.setdefault(b.group, (b, refusal))
                else:
                    self._refuse(b, refusal)
        for group, first in left.items():
            if group not in fits:
                self._refuse(*first)

    def _refuse(self, b: BoundDirective, refusal: LooptuneError) -> None:
        if not self.keep_going:
            raise refusal
        path = enclosing_path(self.codelet.body, *self.fused_into.get(b.loop, b.loop))
        var = loop_name(path[-1]) if path else str(b.loop[0])
        self.steps.append(
            AppliedDirective(directive_text(b.directive), var, "refused", b.loop[0], b.directive, refusal, b.loop[1])
        )

    def apply(self, b: BoundDirective) -> None:
        if not enclosing_path(self.codelet.body, *self.fused_into.get(b.loop, b.loop)):
            raise _without_loop(b)
        match self.find(b.loop):
            case Loop() as loop:
                try:
                    if b.transform.stage == "division":
                        self._divide(b, loop)
                    else:
                        self._apply(b, loop)
                except UnsupportedError as reason:  # too involved
                    raise DirectiveError(f"{directive_text(b.directive)}: {reason.message}", b.directive.span) from None
            case While():
                self.steps.append(AppliedDirective(directive_text(b.directive), "while", "", b.loop[0], b.directive))

    def _apply(self, b: BoundDirective, loop: Loop) -> None:
        check_copies(b.transform, directive_text(b.directive), loop)
        order = self._own_order(b, loop)
        site = self._site(loop, b.directive.span, order)
        proof, found = check_parallel(b, loop, self.current_tree)
        new = b.transform.schedule(site)
        partial = order is not self.order
        refused = None if new is None else self.analysis.judge(new, order, partial=partial)
        regrouped = () if self.analysis.reassociate else self.analysis.sums(b.transform.regrouped_statements(loop))
        if regrouped:
            what = f"it reorders {list_reductions(regrouped)}, whose order --no-reassociate preserves"
            said = f"{directive_text(b.directive)} is illegal: {what}"
            raise IllegalTransform(said, b.directive.span)
        if refused is not None:
            other = b.transform.responsible_directive(site, refused)
            blamed = b.directive if other is None else other
            apart = b.transform.stage in ("split", "join")
            turned = () if self.analysis.reassociate or new is None else self.analysis.reordered(new, order)
            said = explain_refusal(f"{directive_text(blamed)} is illegal", refused, lines=apart)
            if turned:
                what = f"it reorders {list_reductions(turned)}, whose order --no-reassociate preserves"
                said = f"{directive_text(blamed)} is illegal: {what}"
            raise IllegalTransform(said, blamed.span, (refused.ends(blamed.span),))
        change = _reducing(loop, _changed(b, site))
        if new is not None and new.interleaved and (loop.mode not in ("parallel", "thread") or loop.reductions):
            asked = {(s.number, s.piece) for s in self.steps if s.directive.name.lower() == "parallel"}
            change = replace(
                change,
                body=serialize_carrying_loops(
                    b, loop, new, change.body, replace(self.current_tree, order=order), self.time_entries, asked
                ),
            )
        sums = self._reordered(b, loop, new, order) if self.sums else ()
        body = _placed(self.codelet.body, site.enclosing_loops, loop, change)
        if b.transform.stage == "loop":
            check_privates(b, body, self.codelet.locals, self.analysis)
        if new is not None:
            moved = {**new.order, **new.also_moved}
            self.order = merged(self.order, order, moved) if partial else self.order | moved
            self._pad()
        if b.transform.stage != "mode":
            proof = "proved"
        if isinstance(b.transform, GeneratedTransform):
            self.generated |= {f.number for f in walk_stmts(change.body) if isinstance(f, Loop)}
        self.codelet = replace(self.codelet, body=body, locals=self.codelet.locals + change.locals)
        self.copies |= {new: self.copies.get(old, old) for new, old in change.copies.items()}
        if found:
            self._reduce(found)
        for gone in change.fused_loops:
            self.fused_into = {
                old: identity(loop) if new == identity(gone) else new for old, new in self.fused_into.items()
            }
            self.fused_into[identity(gone)] = identity(loop)
        said, assumes = directive_text(b.directive), b.transform.assumes
        self.steps.append(
            AppliedDirective(said, loop.var, proof, loop.number, b.directive, None, identity(loop)[1], sums, assumes)
        )

    def _own_order(self, b: BoundDirective, loop: Loop) -> Order:
        """Return the order in which the statements of a loop run in the loop, and all others.

        It is the whole order where they stand in no other loop, and for a directive that generates its nest from the
        whole order. Raises DirectiveError for a directive that moves statements to other loops, and where the order of
        the loop's instances is not known.
        """
        apart = loop.number in self.generated and bool(shared_statements(self.codelet.body, loop))
        if not apart or isinstance(b.transform, GeneratedTransform):
            return self.order
        own = None if b.transform.stage in ("split", "join") else self.current_tree.within(loop)
        if own is None:
            said = f"{directive_text(b.directive)}: statements of loop {loop.var} also stand in a loop beside it"
            raise DirectiveError(said, b.directive.span)
        return own

    def _reordered(
        self, b: BoundDirective, loop: Loop, new: NewSchedule | None, order: Order
    ) -> tuple[ReorderedReduction, ...]:
        """Return the sums that the directive reorders.

        It does so by its order, by regrouping terms, or by distributing them to threads.
        """
        moved = () if new is None else self.analysis.reordered(new, order)
        moved += self.analysis.sums(b.transform.regrouped_statements(loop))
        threads = (
            parallel_reductions(self.analysis.model, self.current_tree.verdict(f)) for f in b.transform.parallel(loop)
        )
        return tuple(dict.fromkeys((*moved, *(s for mine in threads for s in mine))))

    def mark(self, bound: Iterable[BoundDirective], target: str) -> None:
        """Leave only the cuts that hold: those of the file for the target, and those ``bound`` from outside."""
        self.codelet = replace(self.codelet, body=without_cuts(self.codelet.body, lambda cut: not applies(cut, target)))
        for b in (b for b in bound if b.rank):
            match self.find(b.loop):
                case Loop() as loop:
                    marked = replace(loop, directives=(*(d for d in loop.directives if d.name != "cut"), b.directive))
                    self._replace(loop, Rewrite((marked,)))

    def check_cuts(self, loops: Collection[Id]) -> None:
        """Raise DirectiveError for a cut that is in none of the ``loops``, which will be distributed."""
        for cut, around in cuts(self.codelet.body):
            if not any(identity(f) in loops for f in around):
                wrong = DirectiveError(
                    "cut has no effect without distribute: write `distribute` before a loop around it", cut.span
                )
                if not self.keep_going:
                    raise wrong
                number, var = (around[-1].number, loop_name(around[-1])) if around else (0, "")
                self.steps.append(AppliedDirective(directive_text(cut), var, "refused", number, cut, wrong))

    def split(self, bound: Iterable[BoundDirective]) -> None:
        """Apply them outermost first, each to every piece that its loop is by now."""
        for b in bound:
            loops = (f for f in walk_stmts(self.codelet.body) if isinstance(f, Loop))
            copies = [identity(f) for f in loops if f.number == b.loop[0]]
            if not copies:
                self._refuse(b, _without_loop(b))
            # The last first, so that the pieces before it keep their numbers.
            self.apply_in_order(replace(b, loop=copy) for copy in reversed(copies))
            self.codelet = replace(self.codelet, body=number_fission_parts(self.codelet.body))

    def _reduce(self, found: Mapping[Id, tuple[Reduction, ...]]) -> None:
        """Note on each loop what it reduces."""

        def rule(n: Stmt) -> Stmt | None:
            match n:
                case Loop() if identity(n) in found and (n.mode == "parallel" or n.in_parts):
                    return replace(n, reductions=found[identity(n)])
            return None

        self.codelet = replace(self.codelet, body=rewrite_stmts(rule, self.codelet.body))

    def check_finished(self) -> None:
        """Check the directives on the finished nest.

        Raises DirectiveError for a loop whose iterations cannot be split over blocks, or several of which cannot be
        launched at once.
        """
        # Only what carries these directives out can tell; it stands above this package.
        feasibility = importlib.import_module("looptune.lower.feasibility")
        found: tuple[str, InfeasibleDirective] | None = feasibility.first_infeasible(
            self.codelet, tiles=self.keep_going
        )
        if found is None:
            return
        name, no = found
        asked = [k for k, s in enumerate(self.steps) if s.directive.name.lower() == name]
        own = {identity(f) for f in walk_stmts(no.loop) if isinstance(f, Loop)}  # a loop over strips has no number
        at = next(k for k in asked if (self.steps[k].number, self.steps[k].piece) in own)
        step = self.steps[at]
        refusal = DirectiveError(f"{step.text} of loop {step.loop}: {no}", step.directive.span)
        if not self.keep_going:
            raise refusal
        self.steps[at] = replace(step, proof="refused", refusal=refusal)
        self.codelet = feasibility.drop_annotation(self.codelet, no.loop, name)
        self.check_finished()

    def decide_modes(self) -> None:
        """Set the mode of every undecided loop: parallel if it carries no dependence, else sequential.

        It also sets the arrays of which each iteration of a loop has its own copy.
        """
        now, arrays = self.current_tree, any(v.shape for v in self.codelet.locals)

        def own(loop: Loop) -> tuple[str, ...]:
            return private_arrays(now.verdict(loop).private, self.analysis) if arrays else ()

        def rule(n: Stmt) -> Stmt | None:
            match n:
                case Loop(mode="auto" | "thread" as mode):
                    verdict = now.verdict(n)
                    free = verdict.kind == "parallel" and not unprivatizable_locals(n, self.analysis, verdict.private)
                    given: Mode = mode if mode == "thread" else "parallel"
                    return replace(n, mode=given if free else "sequential", private_arrays=own(n))
                case Loop() if arrays:
                    return replace(n, private_arrays=own(n))
            return None

        self.codelet = replace(self.codelet, body=rewrite_stmts(rule, self.codelet.body))
        loops = (n for n in walk_stmts(self.codelet.body) if isinstance(n, Loop))
        self.time_entries = {identity(f): self.current_tree.depth(f) for f in loops}

    def depth_of(self, loop: Id) -> int:
        return len(enclosing_path(self.codelet.body, *loop))

    def find(self, loop: Id) -> Loop | While:
        return enclosing_path(self.codelet.body, *self.fused_into.get(loop, loop))[-1]

    def _site(self, loop: Loop, span: Span, order: Order) -> DirectiveSite:
        taken = declared_names(self.codelet)
        around = enclosing_path(self.codelet.body, *identity(loop))[:-1]
        depth = 2 * len(around) + 1
        inside = statement_names(loop.body)
        numbers = {f.number for f in walk_stmts((loop,)) if isinstance(f, Loop) and f.number}
        nonempty = {number for number in numbers - self.generated if self.analysis.always_runs(number)}
        private = self.analysis.verdict(inside, depth, order).private if self.codelet.locals else frozenset()
        private |= {copy for copy, local in self.copies.items() if local in private}
        own = tuple(v for v in self.codelet.locals if v.name in private)
        block = around[-1].body if around else self.codelet.body
        return DirectiveSite(
            loop, order, depth, private, own, frozenset(taken), nonempty, self.values, span, around,
            block, frozenset(self.analysis.model.parameters), self.analysis,
            LoopContext(self.codelet, loop, tuple(f for f in around if isinstance(f, Loop))),
        )  # fmt: skip

    def _pad(self) -> None:
        """Pad the times to one length, so that they compare."""
        length = max((len(p.time) for pieces in self.order.values() for p in pieces), default=0)
        for name, pieces in self.order.items():
            self.order[name] = tuple(SchedulePiece(p.time + ("0",) * (length - len(p.time)), p.when) for p in pieces)

    def _replace(self, loop: Loop, change: Rewrite) -> None:
        body = splice(self.codelet.body, loop, change)
        self.codelet = replace(self.codelet, body=body, locals=self.codelet.locals + change.locals)


def _without_loop(b: BoundDirective) -> DirectiveError:
    said = directive_text(b.directive)
    return DirectiveError(f"{said}: a directive before it left no loop {b.loop[0]}", b.directive.span)


def _changed(b: BoundDirective, site: DirectiveSite) -> Rewrite:
    """Apply a directive. Raises DirectiveError if its bounds cannot be computed or have another type than its loops."""
    try:
        change = b.transform.apply(site)
    except IslLimitExceeded as reason:
        raise DirectiveError(
            f"{directive_text(b.directive)} of loop {loop_name(site.loop)}: "
            f"the bounds of its loops are too complex to analyse: {reason}",
            b.directive.span,
        ) from None
    return replace(change, body=rewrite_stmts(partial(_typed, b), change.body))


def _typed(b: BoundDirective, n: Stmt) -> Stmt | None:
    """Return a loop with bounds of the type that it counts in: bounds made of those of a loop around may be of another.

    DirectiveError where the loop counts in fewer bits, which may not hold the bound.
    """
    match n:
        case Loop(var, lo, hi) if (lo.dtype, hi.dtype) != (n.dtype, n.dtype):
            wider = next((e.dtype for e in (lo, hi) if not widens(n.dtype, e.dtype)), None)
            if wider is not None:
                counts = f"loop {var} would count in {n.dtype} between bounds of {wider}"
                raise DirectiveError(
                    f"{directive_text(b.directive)}: {counts}: declare the variables with one type", b.directive.span
                )
            return replace(n, lo=fold(Cast(n.dtype, lo)), hi=fold(Cast(n.dtype, hi)))
    return None


def _reducing(loop: Loop, change: Rewrite) -> Rewrite:
    """Return the change with its loops' reductions in terms of their own variables.

    Copies of an iteration rename these.
    """

    def rule(n: Stmt) -> Stmt | None:
        match n:
            case Loop(reductions=(_, *_) as before) if before == loop.reductions or not (
                {r.target for r in before} <= assigned_targets(n.body)
            ):
                now = restrict_to_body(loop, n.body)
                return replace(n, reductions=now) if {*now} != {*before} else None
        return None

    return replace(change, body=rewrite_stmts(rule, change.body)) if loop.reductions else change


def _placed(body: tuple[Stmt, ...], around: Sequence[Loop | While], loop: Loop, change: Rewrite) -> tuple[Stmt, ...]:
    """Return ``body`` with the change in place of the loop, and with the reductions of the loops around it updated."""
    here: Loop | While = loop
    for outer in reversed(around):
        inner = splice(outer.body, here, change)
        if isinstance(outer, Loop) and outer.reductions:
            outer_now: Loop | While = replace(outer, body=inner, reductions=restrict_to_body(outer, inner))
        else:
            outer_now = replace(outer, body=inner)
        here, change = outer, Rewrite((outer_now,))
    return splice(body, here, change)
