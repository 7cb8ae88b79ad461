"""A codelet and its directives: bind each to its loop, judge it, apply it, verify the tree, log it.

    distribute       first, so that the other directives can be for the pieces
    permute …        whole nests, outermost first
    fuse             outermost first, so that what they hold can be fused as well
    parallel, grid…  how each loop runs: the directive's word, else the dependence analysis
    box, tile, …     one loop each, innermost first, so that a copied loop is transformed once

Dependences are those of the ORIGINAL codelet, found once (``Analysis``); each directive is judged on the order it
makes of the original instances, so that a chain of directives is as exact as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from looptune import dealt, transforms
from looptune.bind import Bound, Id, applies, bind, identity, joined, pieces_numbered
from looptune.comparisons import decided
from looptune.dealt import Undealt
from looptune.errors import DirectiveError, IllegalTransform, LooptuneError
from looptune.frontend.placed import Placed
from looptune.ir import Arg, Codelet, Const, Directive, If, Loop, Reduced, Scalar, Stmt, While
from looptune.poly.graph import Graph, graph, lag
from looptune.poly.legality import Refused, Verdict, judge, parallel
from looptune.poly.model import Model, Order, Piece, build
from looptune.poly.reach import Reach
from looptune.poly.sums import Sum, reordered, shared_out
from looptune.ranges import narrowed
from looptune.reductions import Found, check_clause, reductions
from looptune.rewrite import map_blocks, rewrite_stmts, substitute, walk_stmts
from looptune.scope import begins_with_write, written
from looptune.simplify import is_integer
from looptune.source import Span
from looptune.team import called
from looptune.transforms.base import Change, Reorder, Site, only, statements
from looptune.transforms.distribute import cuts, without_cuts
from looptune.verify import verify


@dataclass(frozen=True, slots=True)
class Step:
    """One directive as applied: ``proof`` is "proved", "asserted" (by ``trust``), "refused" or "" where it needs none.

    ``number`` and ``piece`` are its loop's; ``refusal`` the error where it is refused, which only ``keep_going`` leaves
    in a schedule. ``sums`` are those it reorders, where that was asked for.
    """

    text: str
    loop: str
    proof: str
    number: int
    directive: Directive
    refusal: LooptuneError | None = None
    piece: int = 0
    sums: tuple[Sum, ...] = ()


@dataclass(frozen=True, slots=True)
class Scheduled:
    """``order``: when each original statement runs in ``codelet``, as far as the directives on whole nests say."""

    codelet: Codelet
    steps: tuple[Step, ...]
    order: Order

    @property
    def asserted(self) -> tuple[str, ...]:
        """The directives that are the user's word and not proved, as lines for --with."""
        said = (s for s in self.steps if s.proof == "asserted")
        return tuple(f"loop {f'{s.number}.{s.piece}' if s.piece else s.number}: {s.text}" for s in said)

    @property
    def sums(self) -> tuple[Sum, ...]:
        """Those that any directive reorders, where that was asked for."""
        return tuple(dict.fromkeys(x for s in self.steps for x in s.sums))


@dataclass(slots=True)
class Analysis:
    """What is known of one codelet's dependences, with every judgement remembered.

    ``reassociate``: a recognised reduction may be reordered.
    """

    codelet: Codelet
    reassociate: bool = True
    model: Model = field(init=False)
    _judged: dict[object, Refused | None] = field(init=False, default_factory=dict)
    _verdicts: dict[object, Verdict] = field(init=False, default_factory=dict)
    _graphs: dict[object, Graph] = field(init=False, default_factory=dict)
    _lags: dict[object, int | None] = field(init=False, default_factory=dict)
    _runs: dict[int, bool] = field(init=False, default_factory=dict)
    begun: dict[object, _Run] = field(init=False, default_factory=dict, repr=False)
    """What schedules have in common, by the directives that made it; each holds the codelet its key is of."""

    def __post_init__(self) -> None:
        self.model = build(self.codelet)

    def of(self, codelet: Codelet) -> Analysis:
        """The same for a codelet that differs in its directives only."""
        other = copy(self)
        other.codelet = codelet
        return other

    def judge(self, new: Reorder, old: Order) -> Refused | None:
        cut = new.judged
        before = only(old, cut)
        key = (tuple(cut.items()), tuple(before.items()), new.expanded)
        if key not in self._judged:
            self._judged[key] = judge(self.model, cut, reassociate=self.reassociate, expanded=new.expanded, old=before)
        return self._judged[key]

    def reordered(self, new: Reorder, old: Order) -> tuple[Sum, ...]:
        """The sums that the new order reorders, all else being kept; empty where something else is not."""
        cut = new.judged
        before = only(old, cut)
        kept = judge(self.model, cut, reassociate=True, expanded=new.expanded, old=before) is None
        return reordered(self.model, cut, before) if kept else ()

    def verdict(self, names: frozenset[str], depth: int, order: Order) -> Verdict:
        key = (names, depth, tuple((n, p) for n, p in order.items() if n in names))
        if key not in self._verdicts:
            self._verdicts[key] = parallel(self.model, names, depth, order=order, reassociate=self.reassociate)
        return self._verdicts[key]

    def loosely(self, names: frozenset[str], depth: int, order: Order) -> Verdict:
        """As ``verdict``, were reductions free to be reordered."""
        return (
            self.verdict(names, depth, order)
            if self.reassociate
            else parallel(self.model, names, depth, order=order, reassociate=True)
        )

    def lag(self, first: frozenset[str], then: frozenset[str], entry: int, order: Order, memory: bool) -> int | None:
        key = (first, then, entry, memory, tuple((n, p) for n, p in order.items() if n in first | then))
        if key not in self._lags:
            self._lags[key] = lag(self.model, first, then, entry, order, memory=memory, reassociate=self.reassociate)
        return self._lags[key]

    def always_runs(self, number: int) -> bool:
        if number not in self._runs:
            loop = next(f for f in walk_stmts(self.codelet.body) if isinstance(f, Loop) and f.number == number)
            self._runs[number] = self.model.always_runs(loop)
        return self._runs[number]

    def graph(self, names: frozenset[str], length: int, order: Order, private: frozenset[str]) -> Graph:
        key = (length, private, tuple((n, p) for n, p in order.items() if n in names))
        if key not in self._graphs:
            self._graphs[key] = graph(self.model, names, length, order, private=private, reassociate=self.reassociate)
        return self._graphs[key]


def schedule(
    analysis: Analysis,
    placed: Sequence[Placed] = (),
    values: Mapping[str, int | float] | None = None,
    target: str = "CUDA",
    *,
    keep_going: bool = False,
    sums: bool = False,
) -> Scheduled:
    """The codelet with its own directives and the ``placed`` ones applied, every loop's mode decided.

    ``values`` are sizes known already, for directives that assert something about them. Raises DirectiveError for a
    directive that does not fit the nest, IllegalTransform for one that the dependences forbid; with ``keep_going``
    such a directive is left out, and its step says why. ``sums``: each step says which sums it reorders.
    """
    run = _distributed(analysis, placed, values if values is not None else {}, target, keep_going, sums)
    bound = bind(run.codelet, placed, lambda d: applies(d, target) and transforms.find(d).stage != "split")
    run = run.whole_nests(bound, target)
    nests = dict(run.order)
    if run.into:
        bound = joined([b for b in bound if b.transform.stage in ("mode", "loop")], run.into)
    loops = (b for b in bound if b.transform.stage == "loop")
    run.each(sorted(loops, key=lambda b: (-run.depth_of(b.loop), not b.transform.precedes)))
    run.check_splits()
    return Scheduled(prune(verify(run.codelet)), tuple(run.steps), nests)


def distributed(analysis: Analysis, placed: Sequence[Placed] = (), target: str = "CUDA") -> Codelet:
    """The codelet after its ``distribute``s alone: the loops that other directives are for, with their names."""
    return _distributed(analysis, placed, {}, target, False, False).codelet


def _distributed(
    analysis: Analysis,
    placed: Sequence[Placed],
    values: Mapping[str, int | float],
    target: str,
    keep_going: bool,
    sums: bool,
) -> _Run:
    run = _Run(analysis, analysis.codelet, dict(analysis.model.order()), values, keep_going, sums)
    bound = bind(run.codelet, placed, lambda d: applies(d, target) and transforms.find(d).stage == "split")
    if not bound and next(cuts(run.codelet.body), None) is None:
        return run
    run.mark([b for b in bound if b.transform.name == "cut"], target)
    splits = [b for b in bound if b.transform.name != "cut"]
    run.check_cuts({b.loop for b in splits})
    run.split(splits)
    return run


@dataclass(slots=True)
class _Run:
    """The tree and the order on their way through the directives."""

    analysis: Analysis
    codelet: Codelet
    order: dict[str, tuple[Piece, ...]]
    values: Mapping[str, int | float]
    keep_going: bool = False
    sums: bool = False
    steps: list[Step] = field(default_factory=list)
    into: dict[Id, Id] = field(default_factory=dict)
    """Loops that are part of another now, with the one they are part of."""
    entries: Mapping[Id, int] = field(default_factory=dict)
    """The entry of times that was each loop's before the directives for one loop."""

    def whole_nests(self, bound: Sequence[Bound], target: str) -> _Run:
        """All that comes before the directives for one loop, which many configurations of a space have in common."""
        if self.codelet is not self.analysis.codelet:
            return self._whole_nests(bound)
        said = tuple((b.loop, b.rank, shown(b.directive), b.directive.span) for b in bound
                     if b.transform.stage != "loop")  # fmt: skip
        key = (id(self.codelet), said, target, self.keep_going, self.sums, tuple(sorted(self.values.items())))
        known = self.analysis.begun
        if key not in known:
            known[key] = self._whole_nests(bound)
        done = known[key]
        return replace(done, order=dict(done.order), steps=list(done.steps), into=dict(done.into))

    def _whole_nests(self, bound: Sequence[Bound]) -> _Run:
        self.each(b for b in bound if b.transform.stage == "nest")
        self.each(sorted((b for b in bound if b.transform.stage == "join"), key=lambda b: self.depth_of(b.loop)))
        if self.into:
            bound = joined([b for b in bound if b.transform.stage in ("mode", "loop")], self.into)
        self.each(b for b in bound if b.transform.stage == "mode")
        self.decide_modes()
        return self

    def each(self, bound: Iterable[Bound]) -> None:
        """Apply them in order. What is for all pieces of a loop is left out where it does not fit, if it fits one."""
        bound = list(bound)
        pieces = Counter(b.group for b in bound)
        left: dict[object, tuple[Bound, LooptuneError]] = {}
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

    def _refuse(self, b: Bound, refusal: LooptuneError) -> None:
        if not self.keep_going:
            raise refusal
        var = shown_name(self.find(b.loop))
        self.steps.append(Step(shown(b.directive), var, "refused", b.loop[0], b.directive, refusal, b.loop[1]))

    def apply(self, b: Bound) -> None:
        match self.find(b.loop):
            case Loop() as loop:
                self._apply(b, loop)
            case While():
                self.steps.append(Step(shown(b.directive), "while", "", b.loop[0], b.directive))

    def _apply(self, b: Bound, loop: Loop) -> None:
        site = self._site(loop, b.directive.span)
        proof, found = self._threads(b, loop)
        new = b.transform.schedule(site)
        refused = None if new is None else self.analysis.judge(new, self.order)
        if refused is not None:
            other = b.transform.at_fault(site, refused)
            blamed = b.directive if other is None else other
            apart = b.transform.stage in ("split", "join")
            turned = () if self.analysis.reassociate or new is None else self.analysis.reordered(new, self.order)
            said = explain(f"{shown(blamed)} is illegal", refused, lines=apart)
            if turned:
                said = f"{shown(blamed)} is illegal: it reorders {_listed(turned)}, whose order --strict-float keeps"
            raise IllegalTransform(said, blamed.span, (refused.ends(blamed.span),))
        change = b.transform.apply(site)
        if new is not None and new.together and loop.mode not in ("parallel", "thread"):
            change = replace(change, body=self._in_order(b, loop, new, change.body))
        sums = self._reordered(b, loop, new) if self.sums else ()
        body = spliced(self.codelet.body, loop, change)
        if b.transform.stage == "loop":
            self._check_owned(b, body)
        if new is not None:
            self.order |= {**new.order, **new.beside}
            self._pad()
        if b.transform.stage != "mode":
            proof = "proved"
        self.codelet = replace(self.codelet, body=body, locals=self.codelet.locals + change.locals)
        if found:
            self._reduce(found)
        for gone in change.merged:
            self.into = {old: identity(loop) if new == identity(gone) else new for old, new in self.into.items()}
            self.into[identity(gone)] = identity(loop)
        self.steps.append(Step(shown(b.directive), loop.var, proof, loop.number, b.directive, None, loop.piece, sums))

    def _check_owned(self, b: Bound, body: tuple[Stmt, ...]) -> None:
        """In the new ``body`` each thread still writes the scalars that are its own before it reads them."""
        scalars = {v.name for v in self.codelet.locals if not v.shape}
        for f in (n for n in walk_stmts(body) if isinstance(n, Loop) and n.mode == "parallel") if scalars else ():
            mine = scalars & written(f.body) - {called(r.target) for r in f.reduces}
            shared = sorted(n for n in mine if not begins_with_write(f.body, n))
            if shared:
                what = f"{shown(b.directive)} is illegal: {_sharing(f, shared, self.analysis)}"
                raise IllegalTransform(what, b.directive.span)

    def _reordered(self, b: Bound, loop: Loop, new: Reorder | None) -> tuple[Sum, ...]:
        """The sums that the directive reorders, by the order it makes or by what it hands to threads."""
        moved = () if new is None else self.analysis.reordered(new, self.order)
        threads = (shared_out(self.analysis.model, self._verdict(f)) for f in b.transform.parallel(loop))
        return tuple(dict.fromkeys((*moved, *(s for mine in threads for s in mine))))

    def _in_order(self, b: Bound, loop: Loop, new: Reorder, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """``body``, where loops that carry what the ``loop`` did run in order; IllegalTransform where they may not."""
        ordered: set[tuple[Id, str]] = set()
        for f in (n for n in walk_stmts(loop.body) if isinstance(n, Loop) and n.mode in ("parallel", "thread")):
            witness = self._carries(f, new)
            if witness is None:
                continue
            if any(s.directive.name.lower() == "parallel" and (s.number, s.piece) == identity(f) for s in self.steps):
                what = (
                    f"{shown(b.directive)} is illegal: loop {f.var}, which is to be parallel, would carry a dependence"
                )
                raise IllegalTransform(explain(what, witness), b.directive.span, (witness.ends(b.directive.span),))
            ordered.add((identity(f), f.var))

        def rule(s: Stmt) -> Stmt | None:
            match s:
                case Loop() if (identity(s), s.var) in ordered:
                    return replace(s, mode="sequential", reduces=())
            return None

        return rewrite_stmts(rule, body) if ordered else body

    def _carries(self, loop: Loop, new: Reorder) -> Refused | None:
        """A dependence that the loop carries in the new order, and that its threads would break.

        Its entry of the times has moved by the one of the trip, or by as many as there are more of them. A loop over
        strips stands for the loop in it.
        """
        known = next(f for f in walk_stmts(loop) if isinstance(f, Loop) and identity(f) in self.entries)
        lengths = (len(next(iter(order.values()))[0].time) for order in (new.order, self.analysis.model.order()))
        more = next(lengths) - next(lengths)
        for k in range(1, max(1, more - 1) + 1):
            order = {**self.order, **new.order}
            verdict = self.analysis.verdict(statements(loop.body), self.entries[identity(known)] + k, order)
            if verdict.kind == "sequential" or (verdict.kind == "reduction" and not loop.reduces):
                return verdict.witness
        return None

    def mark(self, bound: Iterable[Bound], target: str) -> None:
        """Leave only the cuts that hold: those of the file for the target, and those ``bound`` from outside."""
        self.codelet = replace(self.codelet, body=without_cuts(self.codelet.body, lambda cut: not applies(cut, target)))
        for b in (b for b in bound if b.rank):
            match self.find(b.loop):
                case Loop() as loop:
                    marked = replace(loop, directives=(*(d for d in loop.directives if d.name != "cut"), b.directive))
                    self._replace(loop, Change((marked,)))

    def check_cuts(self, loops: Collection[Id]) -> None:
        """DirectiveError for a cut that stands in none of the ``loops``, which will be distributed."""
        for cut, around in cuts(self.codelet.body):
            if not any(identity(f) in loops for f in around):
                wrong = DirectiveError("cut splits no loop: write `distribute` before one around it", cut.span)
                if not self.keep_going:
                    raise wrong
                number, var = (around[-1].number, shown_name(around[-1])) if around else (0, "")
                self.steps.append(Step(shown(cut), var, "refused", number, cut, wrong))

    def split(self, bound: Iterable[Bound]) -> None:
        """Apply them outermost first, each to every piece that its loop is by now."""
        for b in bound:
            loops = (f for f in walk_stmts(self.codelet.body) if isinstance(f, Loop))
            copies = [identity(f) for f in loops if f.number == b.loop[0]]
            # The last first, so that the pieces before it keep their numbers.
            self.each(replace(b, loop=copy) for copy in reversed(copies))
            self.codelet = replace(self.codelet, body=pieces_numbered(self.codelet.body))

    def _threads(self, b: Bound, loop: Loop) -> tuple[str, dict[Id, tuple[Reduced, ...]]]:
        """Judge every loop that the directive hands to threads; what each of them reduces."""
        proof, found = "", dict[Id, Found]()
        shared_out = b.transform.parallel(loop)
        for inner in shared_out:
            verdict = self._verdict(inner)
            proof = "proved"
            if verdict.kind != "sequential":
                found[identity(inner)] = self._shared(b, inner, verdict)
                continue
            assert verdict.witness is not None, "a loop that is not parallel has a witness"
            if verdict.witness.because is not None and getattr(b.transform, "trust", False):
                proof, found[identity(inner)] = "asserted", self._shared(b, inner, verdict)
                continue
            raise self._carried(b, inner, verdict.witness)
        if b.transform.sums and proof == "proved" and not any(f.reduces for f in found.values()):
            raise DirectiveError(f"{shown(b.directive)}: loop {loop.var} reduces nothing", b.directive.span)
        clause = b.transform.reductions()
        if clause is not None and (proof == "proved" or any(f.named for f in found.values())):
            loops = " and ".join(dict.fromkeys(f"loop {f.var}" for f in shared_out))
            check_clause(clause, [named for f in found.values() for named in f.named], loops)
        return proof, {loop: f.reduces for loop, f in found.items() if f.reduces}

    def _shared(self, b: Bound, loop: Loop, verdict: Verdict) -> Found:
        """What the threads that share the ``loop`` reduce; IllegalTransform where they cannot share it."""
        found = reductions(loop, verdict)
        what = f"loop {loop.var} {found.wrong}" if found.wrong else ""
        if verdict.kind != "sequential" and not what:
            shared = torn(loop, self.analysis, verdict.private, {called(r.target) for r in found.reduces})
            what = _sharing(loop, shared, self.analysis) if shared else ""
        if what:
            raise IllegalTransform(f"{shown(b.directive)} is illegal: {what}", b.directive.span)
        return found

    def _carried(self, b: Bound, loop: Loop, witness: Refused) -> IllegalTransform:
        """Why a sequential loop cannot be parallel."""
        what = f"{shown(b.directive)} is illegal: loop {loop.var} carries "
        said = explain(f"{what}a dependence", witness)
        loose = self.analysis.loosely(statements(loop.body), self._depth(loop), self.order)
        if loose.kind == "reduction":
            of = ", ".join(sorted({f"{r.op} of {r.variable}" for r in loose.reductions}))
            said = f"{what}the reduction {of}, whose order --strict-float keeps"
        return IllegalTransform(said, b.directive.span, (witness.ends(b.directive.span),))

    def _reduce(self, found: Mapping[Id, tuple[Reduced, ...]]) -> None:
        """Note on each loop what it reduces."""

        def rule(n: Stmt) -> Stmt | None:
            match n:
                case Loop() if identity(n) in found and (n.mode == "parallel" or n.parts > 1):
                    return replace(n, reduces=found[identity(n)])
            return None

        self.codelet = replace(self.codelet, body=rewrite_stmts(rule, self.codelet.body))

    def check_splits(self) -> None:
        """DirectiveError for a loop whose iterations cannot be dealt out to blocks, now that the nest is finished."""
        try:
            dealt.check(self.codelet)
        except Undealt as no:
            splits = [k for k, s in enumerate(self.steps) if s.directive.name.lower() == "split"]
            own = {identity(f) for f in walk_stmts(no.loop) if isinstance(f, Loop)}  # a loop over strips has no number
            at = next(k for k in splits if (self.steps[k].number, self.steps[k].piece) in own)
            step = self.steps[at]
            refusal = DirectiveError(f"{step.text} of loop {step.loop}: {no}", step.directive.span)
            if not self.keep_going:
                raise refusal from None
            self.steps[at] = replace(step, proof="refused", refusal=refusal)
            self.codelet = replace(self.codelet, body=rewrite_stmts(_whole(no.loop), self.codelet.body))
            self.check_splits()

    def decide_modes(self) -> None:
        """Every loop that no directive decided: parallel where it carries no dependence, or kept inside the thread."""

        def rule(n: Stmt) -> Stmt | None:
            match n:
                case Loop(mode="auto" | "thread" as mode):
                    verdict = self._verdict(n)
                    free = verdict.kind == "parallel" and not torn(n, self.analysis, verdict.private)
                    return replace(n, mode="sequential" if not free else "thread" if mode == "thread" else "parallel")
            return None

        self.codelet = replace(self.codelet, body=rewrite_stmts(rule, self.codelet.body))
        loops = (n for n in walk_stmts(self.codelet.body) if isinstance(n, Loop))
        self.entries = {identity(f): self._depth(f) for f in loops}

    def depth_of(self, loop: Id) -> int:
        return len(path(self.codelet.body, *loop))

    def find(self, loop: Id) -> Loop | While:
        return path(self.codelet.body, *self.into.get(loop, loop))[-1]

    def _verdict(self, loop: Loop) -> Verdict:
        return self.analysis.verdict(statements(loop.body), self._depth(loop), self.order)

    def _depth(self, loop: Loop) -> int:
        """The entry of times that is the loop's."""
        return 2 * self.depth_of(identity(loop)) - 1

    def _site(self, loop: Loop, span: Span) -> Site:
        taken = {p.name for p in self.codelet.params} | {v.name for v in self.codelet.locals}
        taken |= {f.var for f in walk_stmts(self.codelet.body) if isinstance(f, Loop)}
        around = path(self.codelet.body, *identity(loop))[:-1]
        depth = 2 * len(around) + 1
        inside = statements(loop.body)
        numbers = {f.number for f in walk_stmts((loop,)) if isinstance(f, Loop) and f.number}
        nonempty = {number for number in numbers if self.analysis.always_runs(number)}
        private = self.analysis.verdict(inside, depth, self.order).private if self.codelet.locals else frozenset()
        block = around[-1].body if around else self.codelet.body
        return Site(
            loop, self.order, depth, private, frozenset(taken), nonempty, self.values, span, around,
            block, frozenset(self.analysis.model.parameters), self.analysis,
            Reach(self.codelet, loop, tuple(f for f in around if isinstance(f, Loop))),
        )  # fmt: skip

    def _pad(self) -> None:
        """Times of one length, so that they compare."""
        length = max(len(p.time) for pieces in self.order.values() for p in pieces)
        for name, pieces in self.order.items():
            self.order[name] = tuple(Piece(p.time + ("0",) * (length - len(p.time)), p.when) for p in pieces)

    def _replace(self, loop: Loop, change: Change) -> None:
        body = spliced(self.codelet.body, loop, change)
        self.codelet = replace(self.codelet, body=body, locals=self.codelet.locals + change.locals)


def spliced(body: tuple[Stmt, ...], loop: Loop, change: Change) -> tuple[Stmt, ...]:
    """``body`` with the change in place of the loop and the statements after it that it takes in."""
    k = next((k for k, s in enumerate(body) if s is loop), None)
    if k is not None:
        return (*body[:k], *change.body, *body[k + change.width :])
    return tuple(map_blocks(lambda block: spliced(block, loop, change), s) for s in body)


def path(body: Sequence[Stmt], number: int, piece: int | None = None) -> tuple[Loop | While, ...]:
    """The loops from the outermost down to the one with this number, the first of its pieces where none is named."""
    for stmt in body:
        match stmt:
            case (Loop() | While()) as loop:
                here = loop.number == number and piece in (None, identity(loop)[1])
                inner = (loop,) if here else path(loop.body, number, piece)
                if inner:
                    return inner if inner[0] is loop else (loop, *inner)
            case If(_, then, other):
                inner = path((*then, *other), number, piece)
                if inner:
                    return inner
    return ()


def shown_name(loop: Loop | While) -> str:
    return loop.var if isinstance(loop, Loop) else "while"


def _whole(loop: Loop) -> Callable[[Stmt], Stmt | None]:
    """The rule that leaves the loop to one block."""
    return lambda s: replace(s, parts=1) if isinstance(s, Loop) and s == loop else None


def torn(loop: Loop, analysis: Analysis, private: frozenset[str], reduced: Collection[str] = ()) -> list[str]:
    """The locals that iterations would share if threads ran them: ``private`` arrays, of which a thread cannot have its
    own, and scalars that are not surely written before they are read, or are read after the loop. What they reduce
    they share by right."""
    inside = statements(loop.body)

    def shared(name: str) -> bool:
        flows = analysis.model.flows(name).flows
        leaves = any(f.write in inside and f.read not in inside for f in flows)
        return leaves or not begins_with_write(loop.body, name)

    own = [v for v in analysis.codelet.locals if v.name in written(loop.body) and v.name not in reduced]
    return [v.name for v in own if (v.name in private if v.shape else shared(v.name))]


def _sharing(loop: Loop, shared: Sequence[str], analysis: Analysis) -> str:
    """Why threads cannot run the loop, and how to write it so that they can."""
    rows = {v.name for v in analysis.codelet.locals if v.shape}
    each = "a row" if shared[0] in rows else "an element"
    return (
        f"iterations of loop {loop.var} would share {', '.join(shared)}; "
        f"write {shared[0]} as an array with {each} for each {loop.var}"
    )


def _listed(turned: Iterable[Sum]) -> str:
    return " and ".join(dict.fromkeys(f"the reduction {s.op} of {s.variable}" for s in turned))


def explain(what: str, refused: Refused, *, lines: bool = False) -> str:
    """The refusal on one line: the witness, with the ``lines`` of its statements, or why there is none."""
    if refused.because is not None:
        return f"{what}: {refused.because.what} cannot be analysed, so iterations may depend on each other"
    return f"{what}: {refused.told(lines=lines)}"


def shown(directive: Directive) -> str:
    """The directive's text in canonical spacing."""
    args = ", ".join(_shown(a) for a in directive.args)
    return f"{directive.name} {args}".rstrip()


def _shown(arg: Arg) -> str:
    values = ["x".join(_value(v) for v in arg.values)] if arg.key == "blocksize" else [_value(v) for v in arg.values]
    if not arg.values:
        return arg.key
    if arg.key in ("private", "reduce"):
        return f"{arg.key}({', '.join(values)})"
    separator = " " if arg.key == "blocksize" else ":" if arg.key else ""
    return f"{arg.key}{separator}{', '.join(values)}"


def _value(v: int | str | Arg) -> str:
    return _shown(v) if isinstance(v, Arg) else str(v)


def bake(codelet: Codelet, values: Mapping[str, int | float]) -> Codelet:
    """The codelet with the integer parameters in ``values`` as constants, and what can no longer run removed.

    The parameters stay in the signature, so that a caller need not know.
    """
    known = {p.name for p in codelet.params if isinstance(p, Scalar) and is_integer(p.dtype) and p.name in values}
    known -= written(codelet.body)
    env = {p.name: Const(int(values[p.name]), p.dtype) for p in codelet.params if p.name in known}
    baked = substitute(codelet, env)
    return prune(replace(baked, body=decided(narrowed(baked.body))))


def prune(codelet: Codelet) -> Codelet:
    """Without loops that never run and branches never taken."""

    def rule(n: Stmt) -> tuple[Stmt, ...] | None:
        match n:
            case Loop(_, Const(lo), Const(hi)) if lo >= hi:
                return ()
            case Loop(_, _, _, ()):
                return ()
            case If(Const(value), then, other):
                return then if value else other
        return None

    return replace(codelet, body=rewrite_stmts(rule, codelet.body))
