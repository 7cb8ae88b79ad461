"""The legality rule: an order is legal if it reverses no dependence; a loop is parallel if it carries none.

    check_schedule  no s -> t with new(s) > new(t)                      ties run as before
    parallel        no s -> t in one iteration of the loops around, but in different iterations of this loop

A local may be overwritten as long as every read still gets the value that it got: a flow w -> r requires that w stays
before r, and that no other write of that element comes between the two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import islpy as isl

from looptune.poly.dependence import Dependence, conflict, shared_op
from looptune.poly.isl_objects import Order, SchedulePiece, union
from looptune.poly.reversal import reversed_pairs
from looptune.poly.scop import Scop
from looptune.poly.syntactic_check import preserved_syntactically, simultaneous
from looptune.poly.witness import DOES, Kind, ViolatedDependence, Violation, find_witness

if TYPE_CHECKING:
    from looptune.poly.access import Access
    from looptune.poly.dataflow import Flow

__all__ = ["DOES", "LoopDependences", "Reduction", "Verdict", "Violation", "check_schedule", "parallel"]


def check_schedule(
    model: Scop,
    new: Order,
    *,
    reassociate: bool = True,
    expanded: frozenset[str] = frozenset(),
    old: Order | None = None,
    partial: bool = False,
) -> Violation | None:
    """Return None if the order ``new`` is legal, else a witness of a reversed dependence.

    ``new`` lists the statements being reordered, all those of some loop nest. Times may stop after the last dimension
    that changes: where they are equal, instances run as in ``old``, which is legal already and by default the order of
    the codelet. ``expanded`` locals get a copy per instance of ``new``, so that nothing overwrites them.
    ``reassociate``: accumulations into one element may run in any order. ``partial``: the statements have instances
    that are not listed, and run before or after all that are.
    """
    change = ScheduleChange(model, new, old if old is not None else model.order(), reassociate, partial)
    constraints = model.constraints[reassociate]
    broken = [change.violation(d.source, d.sink, bad) for d in constraints if (bad := change.reversed(d)) is not None]
    for array in sorted(change.locals()):
        broken += change.local_violation(array, array in expanded)
    return find_witness(model.space, model.sizes, broken) if broken else None


@dataclass(frozen=True, slots=True, eq=False)
class ScheduleChange:
    model: Scop
    new: Order
    old: Order
    reassociate: bool
    partial: bool = False

    def reversed(self, d: Dependence) -> isl.Map | None:
        """Return { s -> t : the dependence is there, and new(s) > new(t) }, None where that is empty."""
        if self.is_preserved(d):
            return None
        return reversed_pairs(self.model.space, d, self.new[d.source], self.new[d.sink])

    def is_preserved(self, d: Dependence) -> bool:
        """Return whether the text of both orders shows that the dependence is preserved.

        False where that is not clear: isl then decides.
        """
        if d.source not in self.new or d.sink not in self.new:
            return True
        return preserved_syntactically(self.model.space, d, self.new[d.source], self.new[d.sink])

    def violation(
        self, first: str, then: str, bad: isl.Map, array: str = "", kind: Kind | None = None
    ) -> ViolatedDependence:
        times = " ".join(" ".join((*p.time, p.when)) for n in (first, then) for p in self.new[n])
        counted = not self.reassociate or kind is not None  # those of a kind do not commute, though they accumulate
        return ViolatedDependence(
            first, then, bad, array, kind, reductions=counted, mentions=times, without=self.model.internal_names
        )

    def locals(self) -> set[str]:
        """Return the locals that the listed statements assign."""
        model = self.model
        return {
            a.array
            for name in self.new
            for a in model.space.accesses[name]
            if a.write and a.array in model.internal_names
        }

    def local_violation(self, array: str, expanded: bool) -> Iterator[ViolatedDependence]:
        """Yield the violations on a local: reversed flows and writes between a write and its read.

        ``expanded``: each instance has a copy, so that only reversed flows count.
        """
        mine = [d for d in self.model.dependences if d.array == array and not d.commutes(self.reassociate)]
        mine = [d for d in mine if not self.is_preserved(d)]
        if not mine:
            return
        flows = self.model.flows(array, reassociate=self.reassociate)
        foreign = self.partial or self.is_live_across(flows.flows) or self.model.reads_initial_value(array, self.new)
        if not foreign and all(self.is_simultaneous(f) for f in flows.flows if f.write in self.new):
            return
        turned = ((d, bad) for d in mine if (bad := self.reversed(d)) is not None)
        if foreign:
            yield from (self.violation(d.source, d.sink, bad, array) for d, bad in turned)
            return
        if next(turned, None) is None:
            return
        for flow in flows.flows:
            if flow.write not in self.new or self.is_simultaneous(flow):
                continue
            if not self.commutes(array, flow.write, flow.read):
                yield from self.reversed_flows(flow)
            if not expanded:
                yield from self.intervening_writes(flow)

    def is_live_across(self, flows: Collection[Flow]) -> bool:
        """Tell whether a value flows into or out of the listed statements."""
        return any((f.write in self.new) != (f.read in self.new) for f in flows)

    def is_simultaneous(self, flow: Flow) -> bool:
        """Return whether write and read run at the same time, so that no other write can come between them.

        An iteration of a loop that was reordered stays whole.
        """
        return simultaneous(self.model.space, self.ends(flow), self.new[flow.write], self.new[flow.read])

    def ends(self, flow: Flow) -> Dependence:
        """Return the flow as a dependence."""
        as_one = Dependence(flow.write, flow.read, flow.array, None, flow.map)
        return self.model.space.memoized(flow, lambda: as_one)

    def reversed_flows(self, flow: Flow) -> Iterator[ViolatedDependence]:
        bad = reversed_pairs(self.model.space, self.ends(flow), self.new[flow.write], self.new[flow.read])
        if bad is not None:
            yield self.violation(flow.write, flow.read, bad, flow.array, "flow")

    def intervening_writes(self, flow: Flow) -> Iterator[ViolatedDependence]:
        """Yield the writes of the same element that the new order puts between the write and the read of ``flow``."""
        w, r, array, space = flow.write, flow.read, flow.array, self.model.space
        for x in self.new:
            if not any(a.write and a.array == array for a in space.accesses[x]):
                continue
            w_x = self.same_element(array, w, x, sink_writes=True).intersect(self.runs_before(w, x))  # { w -> x }
            x_r = self.same_element(array, x, r, sink_writes=False).intersect(self.runs_before(x, r))  # { x -> r }
            was_first = w_x.intersect(space.before(x, w).reverse())
            if not self.commutes(array, x, w) and not was_first.is_empty():
                bad = was_first.intersect(flow.map.apply_range(x_r.reverse())).reverse()  # { x -> w }
                if not bad.is_empty():
                    yield self.violation(x, w, bad, array, "output")
            was_last = x_r.reverse().intersect(space.before(r, x))
            if not self.commutes(array, r, x) and not was_last.is_empty():
                bad = was_last.intersect(flow.map.reverse().apply_range(w_x))  # { r -> x }
                if not bad.is_empty():
                    yield self.violation(r, x, bad, array, "anti")

    def commutes(self, array: str, s: str, t: str) -> bool:
        """Return whether both statements access the array only to accumulate into it."""
        mine = [[a for a in self.model.space.accesses[n] if a.array == array] for n in (s, t)]
        return shared_op(*mine) is not None and all(a.commutes(self.reassociate) for side in mine for a in side)

    def same_element(self, array: str, s: str, t: str, *, sink_writes: bool) -> isl.Map:
        """Return { s -> t : s writes an element that t writes (or reads) }."""
        pairs = [
            (a, b)
            for a in self.accesses_of(s, array)
            for b in self.accesses_of(t, array)
            if a.write and b.write == sink_writes
        ]
        return union(conflict(self.model.space, a, b) for a, b in pairs)

    def accesses_of(self, statement: str, array: str) -> list[Access]:
        return [a for a in self.model.space.accesses[statement] if a.array == array]

    def runs_before(self, s: str, t: str) -> isl.Map:
        """Return { s -> t : s runs before t in the new order, ties as in the old }."""
        return self.model.space.later(t, s, self.full_times(t), self.full_times(s)).reverse()

    def full_times(self, name: str) -> tuple[SchedulePiece, ...]:
        length = max(len(p.time) for pieces in self.new.values() for p in pieces)

        def then(p: SchedulePiece, q: SchedulePiece) -> SchedulePiece:
            padding = ("0",) * (length - len(p.time))
            return SchedulePiece((*p.time, *padding, *q.time), " and ".join(f"({c})" for c in (p.when, q.when) if c))

        return tuple(then(p, q) for p in self.new[name] for q in self.old[name])


@dataclass(frozen=True, slots=True)
class Reduction:
    """The accumulation ``variable op= ...`` in ``statement``; ``assumed``: the element cannot be analysed."""

    op: str
    variable: str
    statement: str
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the iterations of a loop may run in any order; ``witness`` is a dependence that it carries.

    ``reductions``: what several iterations accumulate into; a loop of kind "reduction" carries nothing else.
    ``private``: the locals of which each iteration needs a copy. ``mixed``: the targets of reductions that the loop
    also accesses in another way.
    """

    kind: Literal["parallel", "reduction", "sequential"]
    witness: Violation | None
    reductions: tuple[Reduction, ...]
    private: frozenset[str]
    mixed: frozenset[str] = frozenset()


def parallel(
    model: Scop, statements: Collection[str], depth: int, *, order: Order | None = None, reassociate: bool = True
) -> Verdict:
    """Return the verdict on a loop around ``statements``.

    Its dimension is entry ``depth`` of the times in ``order``.
    """
    loop = LoopDependences(model, frozenset(statements), depth, order if order is not None else model.order())
    left, private = loop.carried_dependences()
    plain = [(d, bad) for d, bad in left if not d.commutes(reassociate)]
    if not left:
        return Verdict("parallel", None, (), private)
    broken = [
        ViolatedDependence(d.source, d.sink, bad, d.array, reductions=d.op is not None)
        for d, bad in (plain if plain else left)
    ]
    witness = find_witness(model.space, model.sizes, broken)
    summed = [d for d, _ in left if d.commutes(reassociate)]
    into = [(d.op, model.space.accesses[s][0]) for d in summed if d.op for s in (d.source, d.sink)]
    found = {Reduction(op, a.text, a.statement, None in a.index) for op, a in into}
    ordered = sorted(found, key=lambda r: (list(model.statements).index(r.statement), r.op))
    mixed = loop.mixed({r.statement for r in found})
    return Verdict("sequential" if plain else "reduction", witness, tuple(ordered), private, mixed)


@dataclass(frozen=True, slots=True, eq=False)
class LoopDependences:
    """The dependences of one loop and the statements in it."""

    model: Scop
    statements: frozenset[str]
    depth: int
    order: Mapping[str, tuple[SchedulePiece, ...]]

    def carried_dependences(self) -> tuple[list[tuple[Dependence, isl.Map]], frozenset[str]]:
        """Return the dependences between iterations of the loop.

        Locals that were ignored, because each iteration has its own, are returned too.
        """
        carried = [(d, bad) for d in self.model.dependences if (bad := self.carried_part(d)) is not None]
        private = {a for a in {d.array for d, _ in carried} if a in self.model.internal_names and self.owns(a)}
        return [(d, bad) for d, bad in carried if d.array not in private], frozenset(private)

    def carried_part(self, d: Dependence) -> isl.Map | None:
        """Return { s -> t : dependent, in one iteration of the loops around and different ones of this }, or None."""
        if d.source not in self.statements or d.sink not in self.statements:
            return None
        # By times, not by instances: of these there are as many pieces as an unrolled loop has copies, and what is left
        # of a relation without a union of pairs of them has many more.
        first, then = (
            self.model.space.time(n, self.time_prefix(n, self.depth + 1), self.depth + 1) for n in (d.source, d.sink)
        )
        met = d.map.apply_domain(first).apply_range(then)
        apart = met.intersect(_apart(met, self.depth))
        if apart.is_empty():
            return None
        return d.map.intersect(first.apply_range(apart).apply_range(then.reverse()))

    def mixed(self, reducing: Collection[str]) -> frozenset[str]:
        """Return the targets of ``reducing`` statements that something else in the loop accesses."""
        plain = [d for d in self.model.dependences if d.op is None and {d.source, d.sink} <= self.statements]
        plain = [d for d in plain if d.source in reducing or d.sink in reducing]
        into = {self.model.space.accesses[s][0].array for s in reducing}
        near = [d for d in plain if d.array in into and not d.map.intersect(self.same_outer_iteration(d)).is_empty()]
        asked = {self.model.space.accesses[s][0].array for s in reducing if self.reads_its_sum(s)}
        return frozenset(d.array for d in near) | asked

    def reads_its_sum(self, statement: str) -> bool:
        """Tell whether a condition that decides on an accumulation reads the target of that accumulation."""
        target, *others = self.model.space.accesses[statement]
        plain = [a for a in others if a.array == target.array and a.reduces is None]
        met = (conflict(self.model.space, target, a) for a in plain)
        return any(not m.intersect(isl.Map.identity(m.get_space())).is_empty() for m in met)

    def same_outer_iteration(self, d: Dependence) -> isl.Map:
        """Return { s -> t : in one iteration of the loops around }."""
        return self.equal_prefix(d.source, d.sink, self.depth)

    def equal_prefix(self, s: str, t: str, length: int) -> isl.Map:
        """Return { s -> t : the first ``length`` entries of their times are equal }."""
        a, b = (self.model.space.time(n, self.time_prefix(n, length), length) for n in (s, t))
        return a.apply_range(b.reverse())

    def time_prefix(self, statement: str, length: int) -> tuple[SchedulePiece, ...]:
        """Return the first ``length`` entries of the times of a statement."""
        return tuple(SchedulePiece(p.time[:length], p.when) for p in self.order[statement])

    def owns(self, array: str) -> bool:
        """Return whether every value of the local is written and read in one iteration of the loop."""
        if self.model.reads_initial_value(array, self.statements):
            return False
        for flow in self.model.flows(array).flows:
            both = {flow.write, flow.read}
            if both & self.statements and not (both <= self.statements and self.one_iteration(flow)):
                return False
        return True

    def one_iteration(self, flow: Flow) -> bool:
        return flow.map.is_subset(self.equal_prefix(flow.write, flow.read, self.depth + 1))


def _apart(times: isl.Map, depth: int) -> isl.Map:
    """Return { s -> t : the entries before ``depth`` are equal, and the one there is not }."""
    ends = isl.dim_type.in_, isl.dim_type.out
    equal = isl.Map.universe(times.get_space())
    for k in range(depth):
        equal = equal.equate(ends[0], k, ends[1], k)
    return equal.order_lt(ends[0], depth, ends[1], depth).union(equal.order_gt(ends[0], depth, ends[1], depth))
