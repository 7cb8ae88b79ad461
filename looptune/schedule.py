"""A codelet and its directives: bind each to its loop, judge it, apply it, verify the tree, log it.

    permute …        whole nests first, outermost first
    parallel, grid…  how each loop runs: the directive's word, else the dependence analysis
    tile, unroll     one loop each, innermost first, so that a copied loop is transformed once

Dependences are those of the ORIGINAL codelet, found once (``Analysis``); each directive is judged on the order it
makes of the original instances, so that a chain of directives is as exact as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from looptune import transforms
from looptune.errors import DirectiveError, IllegalTransform
from looptune.frontend.placed import Placed
from looptune.ir import Arg, Codelet, Const, Directive, If, Loop, Node, Scalar, Stmt, While
from looptune.poly.legality import Refused, Verdict, judge, parallel
from looptune.poly.model import Model, Order, Piece, build
from looptune.rewrite import rewrite, substitute, walk
from looptune.scope import begins_with_write, written
from looptune.simplify import is_integer
from looptune.source import Span
from looptune.transforms.base import Change, Reorder, Site, Transform, only, statements
from looptune.verify import verify

EXCLUSIVE = ({"unroll", "tile"}, {"parallel", "noparallel"})
"""Directives of which a loop has one: a placed one takes the place of the file's."""


@dataclass(frozen=True, slots=True)
class Step:
    """One directive as applied: ``proof`` is "proved", "asserted" (by ``trust``) or "" where it needs none."""

    text: str
    loop: str
    proof: str


@dataclass(frozen=True, slots=True)
class Scheduled:
    codelet: Codelet
    steps: tuple[Step, ...]

    @property
    def asserted(self) -> bool:
        return any(s.proof == "asserted" for s in self.steps)


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

    def __post_init__(self) -> None:
        self.model = build(self.codelet)

    def judge(self, new: Reorder, old: Order) -> Refused | None:
        cut = {n: tuple(Piece(p.time[: new.cut], p.when) for p in pieces) for n, pieces in new.order.items()}
        before = only(old, cut)
        key = (tuple(cut.items()), tuple(before.items()), new.expanded)
        if key not in self._judged:
            self._judged[key] = judge(self.model, cut, reassociate=self.reassociate, expanded=new.expanded, old=before)
        return self._judged[key]

    def verdict(self, names: frozenset[str], depth: int, order: Order) -> Verdict:
        key = (names, depth, tuple((n, p) for n, p in order.items() if n in names))
        if key not in self._verdicts:
            self._verdicts[key] = parallel(self.model, names, depth, order=order)
        return self._verdicts[key]


@dataclass(frozen=True, slots=True)
class _Bound:
    """A transform and the number of the loop it is for."""

    number: int
    transform: Transform
    directive: Directive


def schedule(
    analysis: Analysis,
    placed: Sequence[Placed] = (),
    values: Mapping[str, int | float] | None = None,
    target: str = "CUDA",
) -> Scheduled:
    """The codelet with its own directives and the ``placed`` ones applied, every loop's mode decided.

    ``values`` are sizes known already, for directives that assert something about them. Raises DirectiveError for a
    directive that does not fit the nest, IllegalTransform for one that the dependences forbid.
    """
    bound = bind(analysis.codelet, placed, target)
    run = _Run(analysis, analysis.codelet, dict(analysis.model.order()), values if values is not None else {})
    for b in (b for b in bound if b.transform.stage == "nest"):
        run.apply(b)
    for b in (b for b in bound if b.transform.stage == "mode"):
        run.apply(b)
    run.decide_modes()
    inner_first = sorted((b for b in bound if b.transform.stage == "loop"), key=lambda b: -run.depth_of(b.number))
    for b in inner_first:
        run.apply(b)
    return Scheduled(prune(run.codelet), tuple(run.steps))


def bind(codelet: Codelet, placed: Sequence[Placed], target: str) -> list[_Bound]:
    """Each directive with its loop, in textual order; a placed directive replaces the file's of the same kind."""
    loops = [n for n in walk(codelet.body) if isinstance(n, (Loop, While))]
    own = [(f, d) for f in loops for d in f.directives if _applies(d, target)]
    given = [
        (f, p.directive)
        for p in placed
        for f in addressed(codelet, p.where, p.loop, p.directive.span)
        if _applies(p.directive, target)
    ]
    taken = {(f.number, kind) for f, d in given for kind in _kinds(d)}
    kept = [(f, d) for f, d in own if not any((f.number, kind) in taken for kind in _kinds(d))]
    bound = []
    for f, directive in (*kept, *given):
        cls = transforms.find(directive)
        for name, part in cls.spread(directive):
            bound.append(_Bound(_inside(f, name, part).number, cls.parse(part), part))
    _exclude(bound, loops)
    return sorted(bound, key=lambda b: b.number)


def _applies(directive: Directive, target: str) -> bool:
    return directive.target is None or directive.target.upper() == target.upper()


def _kinds(directive: Directive) -> set[str]:
    name = directive.name.lower()
    return next((group for group in EXCLUSIVE if name in group), {name})


def addressed(codelet: Codelet, where: str, name: str, span: Span) -> list[Loop | While]:
    """The loops ``loop k:``, ``loop 3:``, ``nest i:`` or ``codelet:`` is for; DirectiveError where there is none."""
    loops = [n for n in walk(codelet.body) if isinstance(n, (Loop, While))]
    if where == "codelet":
        return [f for f in codelet.body if isinstance(f, Loop)]
    found = [f for f in loops if name == str(f.number) or (isinstance(f, Loop) and f.var == name)]
    listed = ", ".join(f"{f.var if isinstance(f, Loop) else 'while'} ({f.number})" for f in loops)
    if not found:
        raise DirectiveError(f"no loop {name} in {codelet.name}; its loops are {listed if listed else 'none'}", span)
    if len(found) > 1:
        raise DirectiveError(f"{len(found)} loops are named {name}; say which by number: {listed}", span)
    return found


def _inside(loop: Loop | While, name: str, directive: Directive) -> Loop | While:
    """The loop called ``name`` at or in ``loop``; "" is the loop itself."""
    if not name:
        return loop
    found = next((f for f in walk(loop) if isinstance(f, Loop) and f.var == name), None)
    if found is None:
        raise DirectiveError(f"{directive.name}: no loop {name} in the nest it stands before", directive.span)
    return found


def _exclude(bound: Sequence[_Bound], loops: Sequence[Loop | While]) -> None:
    whiles = {f.number for f in loops if isinstance(f, While)}
    seen: dict[tuple[int, str], _Bound] = {}
    for b in bound:
        if b.number in whiles and b.transform.name != "noparallel":
            raise DirectiveError(f"{b.transform.name} needs a counted loop, this is a while loop", b.directive.span)
        for kind in _kinds(b.directive):
            if (b.number, kind) in seen and len(_kinds(b.directive)) > 1:
                raise DirectiveError(
                    f"one loop takes either {' or '.join(sorted(_kinds(b.directive)))}, once", b.directive.span
                )
            seen[b.number, kind] = b


@dataclass(slots=True)
class _Run:
    """The tree and the order on their way through the directives."""

    analysis: Analysis
    codelet: Codelet
    order: dict[str, tuple[Piece, ...]]
    values: Mapping[str, int | float]
    steps: list[Step] = field(default_factory=list)

    def apply(self, b: _Bound) -> None:
        match self.find(b.number):
            case Loop() as loop:
                self._apply(b, loop)

    def _apply(self, b: _Bound, loop: Loop) -> None:
        site = self._site(loop, b.directive.span)
        proof = self._threads(b, loop)
        new = b.transform.schedule(site)
        if new is not None:
            refused = self.analysis.judge(new, self.order)
            if refused is not None:
                raise IllegalTransform(explain(f"{shown(b.directive)} is illegal", refused), b.directive.span)
            self.order |= new.order
            self._pad()
        if b.transform.stage != "mode":
            proof = "proved"
        self._replace(loop, b.transform.apply(site))
        self.steps.append(Step(shown(b.directive), loop.var, proof))

    def _threads(self, b: _Bound, loop: Loop) -> str:
        """Judge every loop that the directive hands to threads."""
        proof = ""
        for inner in b.transform.parallel(loop):
            verdict = self._verdict(inner)
            proof = "proved"
            if verdict.kind == "parallel":
                continue
            assert verdict.witness is not None, "a loop that is not parallel has a witness"
            if verdict.witness.because is not None and getattr(b.transform, "trust", False):
                proof = "asserted"
                continue
            what = f"{shown(b.directive)} is illegal: loop {inner.var} carries "
            if verdict.kind == "reduction":
                of = ", ".join(sorted({f"{r.op} of {r.variable}" for r in verdict.reductions}))
                raise IllegalTransform(f"{what}the reduction {of}", b.directive.span)
            raise IllegalTransform(explain(f"{what}a dependence", verdict.witness), b.directive.span)
        return proof

    def decide_modes(self) -> None:
        """Every loop that no directive decided: parallel where it carries no dependence."""

        def rule(n: Node) -> Node | None:
            match n:
                case Loop(mode="auto"):
                    free = self._verdict(n).kind == "parallel" and owns_locals(n, self.codelet)
                    return replace(n, mode="parallel" if free else "sequential")
            return None

        self.codelet = rewrite(rule, self.codelet)

    def depth_of(self, number: int) -> int:
        return len(_path(self.codelet.body, number))

    def find(self, number: int) -> Loop | While:
        return _path(self.codelet.body, number)[-1]

    def _verdict(self, loop: Loop) -> Verdict:
        return self.analysis.verdict(statements(loop.body), 2 * self.depth_of(loop.number) - 1, self.order)

    def _site(self, loop: Loop, span: Span) -> Site:
        taken = {p.name for p in self.codelet.params} | {v.name for v in self.codelet.locals}
        taken |= {f.var for f in walk(self.codelet.body) if isinstance(f, Loop)}
        depth = 2 * self.depth_of(loop.number) - 1
        inside = statements(loop.body)
        nonempty = {f.number for f in walk(loop) if isinstance(f, Loop) and f.number and self._always_runs(f)}
        private = self.analysis.verdict(inside, depth, self.order).private if self.codelet.locals else frozenset()
        return Site(loop, self.order, depth, private, frozenset(taken), nonempty, self.values, span)

    def _always_runs(self, loop: Loop) -> bool:
        original = next(f for f in walk(self.analysis.codelet.body) if isinstance(f, Loop) and f.number == loop.number)
        return self.analysis.model.always_runs(original)

    def _pad(self) -> None:
        """Times of one length, so that they compare."""
        length = max(len(p.time) for pieces in self.order.values() for p in pieces)
        for name, pieces in self.order.items():
            self.order[name] = tuple(Piece(p.time + ("0",) * (length - len(p.time)), p.when) for p in pieces)

    def _replace(self, loop: Loop, change: Change) -> None:
        body = rewrite(lambda n: change.body if n is loop else None, self.codelet.body)
        self.codelet = verify(replace(self.codelet, body=body, locals=self.codelet.locals + change.locals))


def _path(body: Sequence[Stmt], number: int) -> tuple[Loop | While, ...]:
    """The loops from the outermost down to the one with this number."""
    for stmt in body:
        match stmt:
            case (Loop() | While()) as loop:
                inner = (loop,) if loop.number == number else _path(loop.body, number)
                if inner:
                    return inner if inner[0] is loop else (loop, *inner)
            case If(_, then, other):
                inner = _path((*then, *other), number)
                if inner:
                    return inner
    return ()


def owns_locals(loop: Loop, codelet: Codelet) -> bool:
    """Each iteration can have its own copy of the locals it assigns: it writes them before reading them."""
    arrays = {v.name for v in codelet.locals if v.shape}
    own = written(loop.body) & {v.name for v in codelet.locals}
    return all(name not in arrays and begins_with_write(loop.body, name) for name in own)


def explain(what: str, refused: Refused) -> str:
    """The refusal on one line: the witness, or why there is none."""
    if refused.because is not None:
        return f"{what}: {refused.because.what} cannot be analysed, so iterations may depend on each other"
    return f"{what}: {refused}"


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
    return prune(substitute(codelet, env))


def prune(codelet: Codelet) -> Codelet:
    """Without loops that never run and branches never taken."""

    def rule(n: Node) -> tuple[Node, ...] | None:
        match n:
            case Loop(_, Const(lo), Const(hi)) if lo >= hi:
                return ()
            case Loop(_, _, _, ()):
                return ()
            case If(Const(value), then, other):
                return then if value else other
        return None

    return replace(codelet, body=rewrite(rule, codelet.body))
