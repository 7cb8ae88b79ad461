"""The dependences of one codelet, computed once and shared by all that needs them (``Analysis``).

``ScheduledTree`` answers the same questions for the loops of a tree that directives have changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from looptune.core.errors import UnsupportedError
from looptune.core.source import NOWHERE
from looptune.ir.nodes import Codelet, Loop, Stmt
from looptune.ir.rewrite import walk_stmts
from looptune.poly.automatic_schedule import ScheduleOptions, find_schedule
from looptune.poly.carried_dependence import Reason, explain_sequential
from looptune.poly.dependence_graph import Graph, Piece, graph, max_lag, piece_graph
from looptune.poly.isl_limits import JUDGEMENT, QUESTION, Effort, IslLimitExceeded, isl_operation_limit
from looptune.poly.legality import Verdict, Violation, check_schedule, parallel
from looptune.poly.loop_generation import LoopNest, Times, times_of_tree
from looptune.poly.reassociation import ReorderedReduction, reductions_of, reordered_reductions
from looptune.poly.scop import Order, Scop, build, with_dependences
from looptune.schedule.binding import enclosing_path, identity
from looptune.schedule.directives.base import NewSchedule, Rewrite, restrict_schedule, splice, statement_names
from looptune.schedule.pieces import order_within, shared_statements

if TYPE_CHECKING:
    from looptune.poly.dataflow import Flows
    from looptune.poly.isl_objects import Space

MOST_STATEMENTS = 400
"""On one array: 160,000 pairs."""
MOST_LOOPS = 16
"""Around one statement."""
_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class Analysis:
    """The dependences of one codelet; every judgement is cached.

    ``reassociate``: a recognised reduction may be reordered.
    """

    codelet: Codelet
    reassociate: bool = True
    model: Scop = field(init=False)
    _judged: dict[object, Violation | None] = field(init=False, default_factory=dict)
    _verdicts: dict[object, Verdict] = field(init=False, default_factory=dict)
    _graphs: dict[object, Graph] = field(init=False, default_factory=dict)
    _lags: dict[object, int | None] = field(init=False, default_factory=dict)
    _runs: dict[int, bool] = field(init=False, default_factory=dict)
    _schedules: dict[object, tuple[object, Times | IslLimitExceeded]] = field(init=False, default_factory=dict)
    prefix_cache: dict[object, Any] = field(init=False, default_factory=dict, repr=False)
    """What schedules have in common, by the directives that made it; each holds the codelet its key is of."""

    def __post_init__(self) -> None:
        model = build(self.codelet)
        self._check_size(model)
        self.model = with_dependences(model, Effort())

    def _check_size(self, model: Scop) -> None:
        """Check the size of the model.

        Raises UnsupportedError if there are more loops around one statement, or more pairs of statements to compare,
        than can be analysed in seconds.
        """
        deepest = max(model.statements.values(), key=lambda s: len(s.loops), default=None)
        if deepest is not None and len(deepest.loops) > MOST_LOOPS:
            raise UnsupportedError(f"{len(deepest.loops)} nested loops: the limit is {MOST_LOOPS}",
                                   deepest.loops[MOST_LOOPS].span)  # fmt: skip
        count = Counter(array for mine in model.space.accesses.values() for array in {a.array for a in mine})
        array, most = max(count.items(), key=lambda item: item[1], default=("", 0))
        if most > MOST_STATEMENTS:
            last = list(model.statements.values())[-1].assign.span
            raise UnsupportedError(f"{most:,} statements access {array}, and each pair is compared: "
                                   f"the limit is {MOST_STATEMENTS}; write them as a loop", last)  # fmt: skip

    def _asked(self, question: Callable[[Scop], _Answer], most: int = QUESTION) -> _Answer:
        """Return what it answers about the model, or, where that is too involved, about one of which less is known.

        Each question has a limit of its own, so that no answer depends on what was asked before.
        """
        try:
            with isl_operation_limit(most):
                return question(self.model)
        except IslLimitExceeded:
            return self._coarsely(question)

    def _coarsely(self, question: Callable[[Scop], _Answer]) -> _Answer:
        try:
            with isl_operation_limit(QUESTION):
                return question(self.model.over_approximation)
        except IslLimitExceeded as reason:
            first = next((s.assign.span for s in self.model.statements.values()), NOWHERE)
            raise UnsupportedError(
                f"the loops of {self.codelet.name} are too complex to analyse: {reason}", first
            ) from None

    def of(self, codelet: Codelet) -> Analysis:
        """Return the same analysis for a codelet that differs in its directives only."""
        other = copy(self)
        other.codelet = codelet
        return other

    def judge(self, new: NewSchedule, old: Order, *, partial: bool = False) -> Violation | None:
        """Return a dependence that the new order reverses, or None; ``partial``: see ``check_schedule``."""
        cut = new.truncated_order
        before = restrict_schedule(old, cut)
        key = (tuple(cut.items()), tuple(before.items()), new.expanded, partial)
        if key not in self._judged:
            self._judged[key] = self._asked(
                lambda model: check_schedule(
                    model, cut, reassociate=self.reassociate, expanded=new.expanded, old=before, partial=partial
                ),
                JUDGEMENT,
            )
        return self._judged[key]

    def reordered(self, new: NewSchedule, old: Order) -> tuple[ReorderedReduction, ...]:
        """Return the sums that the new order reorders if everything else is preserved, or none if it is not."""
        cut = new.truncated_order
        before = restrict_schedule(old, cut)

        def question(model: Scop) -> tuple[ReorderedReduction, ...]:
            kept = check_schedule(model, cut, reassociate=True, expanded=new.expanded, old=before) is None
            return reordered_reductions(model, cut, before) if kept else ()

        return self._asked(question, JUDGEMENT)

    def sums(self, names: frozenset[str]) -> tuple[ReorderedReduction, ...]:
        """Return the reductions to which the statements of these names add."""
        return reductions_of(self.model, names)

    def verdict(self, names: frozenset[str], depth: int, order: Order) -> Verdict:
        key = (names, depth, tuple((n, p) for n, p in order.items() if n in names))
        if key not in self._verdicts:
            self._verdicts[key] = self._asked(
                lambda model: parallel(model, names, depth, order=order, reassociate=self.reassociate)
            )
        return self._verdicts[key]

    def flows(self, local: str) -> Flows:
        return self._asked(lambda model: model.flows(local))

    def explain_sequential(self, names: frozenset[str], depth: int) -> Reason:
        """Return why a loop is sequential in the order of the codelet.

        The verdict may be that of the coarser model, where the limit of this question suffices for the exact one.
        """

        def question(model: Scop) -> Reason | None:
            return explain_sequential(model, names, depth, reassociate=self.reassociate)

        reason = self._asked(question) or self._coarsely(question)
        assert reason is not None, "a sequential loop carries a dependence"
        return reason

    def verdict_if_reassociated(self, names: frozenset[str], depth: int, order: Order) -> Verdict:
        """Return the verdict that holds if recognised reductions may be reordered."""
        return (
            self.verdict(names, depth, order)
            if self.reassociate
            else self._asked(lambda model: parallel(model, names, depth, order=order, reassociate=True))
        )

    def fusion_shift(
        self, first: frozenset[str], then: frozenset[str], entry: int, order: Order, memory: bool
    ) -> int | None:
        key = (first, then, entry, memory, tuple((n, p) for n, p in order.items() if n in first | then))
        if key not in self._lags:
            self._lags[key] = self._asked(
                lambda model: max_lag(model, first, then, entry, order, memory=memory, reassociate=self.reassociate)
            )
        return self._lags[key]

    @property
    def space(self) -> Space:
        return self.model.space

    def find_schedule(self, nest: LoopNest, options: ScheduleOptions) -> Times:
        """Return times for the statements of a nest that isl finds, remembered by codelet and place.

        IslLimitExceeded where isl gives up, which is remembered too.
        """
        loops = (n for n in walk_stmts(nest.codelet.body) if isinstance(n, Loop))
        loop = next(islice(loops, nest.place, None))
        # A nest of the text has its dependences there, whatever has become of the nests beside it.
        same = nest.codelet.body is self.codelet.body or any(loop is s for s in self.codelet.body)
        key = (id(loop), None if same else id(nest.codelet.body), options)
        if key not in self._schedules:
            found: Times | IslLimitExceeded
            try:
                model = self.model if same else with_dependences(build(nest.numbered), Effort())
                found = find_schedule(model, nest, options, reassociate=self.reassociate)
            except IslLimitExceeded as gave_up:
                found = gave_up
            # The loops are kept as well, so that no others have their ids.
            self._schedules[key] = ((loop, nest.codelet.body), found)
        times = self._schedules[key][1]
        if isinstance(times, IslLimitExceeded):
            raise times
        return times

    def times_of(self, codelet: Codelet, loop: Loop, body: tuple[Stmt, ...]) -> Order:
        return times_of_tree(self.model.space, replace(codelet, body=splice(codelet.body, loop, Rewrite(body))))

    def always_runs(self, number: int) -> bool:
        if number not in self._runs:
            loop = next(f for f in walk_stmts(self.codelet.body) if isinstance(f, Loop) and f.number == number)
            self._runs[number] = self._asked(lambda model: model.always_runs(loop))
        return self._runs[number]

    def graph(self, names: frozenset[str], length: int, order: Order, private: frozenset[str]) -> Graph:
        key = (length, private, tuple((n, p) for n, p in order.items() if n in names))
        if key not in self._graphs:
            self._graphs[key] = self._asked(
                lambda model: graph(model, names, length, order, private=private, reassociate=self.reassociate)
            )
        return self._graphs[key]

    def piece_graph(self, order: Order, length: int) -> tuple[tuple[Piece, ...], frozenset[tuple[Piece, Piece]]]:
        return self._asked(lambda model: piece_graph(model, order, length, reassociate=self.reassociate), JUDGEMENT)


@dataclass(frozen=True, slots=True)
class ScheduledTree:
    """A partly scheduled codelet: the tree, and the order in which it runs the original statement instances."""

    analysis: Analysis
    body: tuple[Stmt, ...]
    order: Order

    def depth(self, loop: Loop) -> int:
        """Return the entry of the times that belongs to the loop."""
        return 2 * len(enclosing_path(self.body, *identity(loop))) - 1

    def within(self, loop: Loop) -> Order | None:
        """Return the order with the instances of the loop's statements that run in the loop; see ``pieces``."""
        if not shared_statements(self.body, loop):
            return self.order
        known = self.analysis.prefix_cache
        key = ("within", id(self.body), identity(loop), tuple(self.order.items()))
        if key not in known:
            here = enclosing_path(self.body, *identity(loop))[-1]
            assert isinstance(here, Loop), "a loop keeps its number"
            codelet = replace(self.analysis.codelet, body=self.body)
            # The body is kept as well, so that no other one has its id.
            known[key] = self.body, order_within(self.analysis.space, codelet, self.order, here)
        found: Order | None = known[key][1]
        return found

    def verdict(self, loop: Loop) -> Verdict:
        own = self.within(loop)
        return self.analysis.verdict(statement_names(loop.body), self.depth(loop), self.order if own is None else own)

    def verdict_if_reassociated(self, loop: Loop) -> Verdict:
        """Return the verdict on the loop that holds if recognised reductions may be reordered."""
        own = self.within(loop)
        order = self.order if own is None else own
        return self.analysis.verdict_if_reassociated(statement_names(loop.body), self.depth(loop), order)
