"""The order that statements of one iteration need: which must run before which others.

    for i: { a[i] = ...; b[i] = a[i - 1]; a[i + 1] = b[i] }       S0 -> S1, S1 -> S2, S2 -> S0, S2 -> S1

An edge says that some instance of one statement comes before some instance of the other. Statements that share the
values of a private local are listed separately: if they are distributed to two loops, each iteration needs a copy.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from looptune.poly.isl_objects import Order, SchedulePiece
from looptune.poly.legality import LoopDependences

if TYPE_CHECKING:
    from looptune.poly.dependence import Dependence
    from looptune.poly.scop import Scop


@dataclass(frozen=True, slots=True)
class SharedLocal:
    """The flow of a private ``local`` from statement ``write`` to statement ``read``."""

    local: str
    write: str
    read: str


@dataclass(frozen=True, slots=True)
class Graph:
    """The dependence graph of statements.

    ``before`` holds pairs of different statements: an instance of the first must come before one of the second.
    """

    before: frozenset[tuple[str, str]]
    shared_locals: frozenset[SharedLocal]


def graph(
    model: Scop, names: Collection[str], length: int, order: Order, *, private: frozenset[str], reassociate: bool
) -> Graph:
    """Return the graph of the statements ``names`` where the first ``length`` entries of their times are equal.

    The times are those in ``order``; ``private`` are the locals of which each iteration has a copy.
    """
    inside = LoopDependences(model, frozenset(names), length, order)
    edges: set[tuple[str, str]] = set()
    for d in (*model.constraints[reassociate], *_on_locals(model, private, reassociate)):
        pair = (d.source, d.sink)
        known = d.source == d.sink or pair in edges or not inside.statements.issuperset(pair)
        if not known and not d.map.intersect(inside.equal_prefix(*pair, length)).is_empty():
            edges.add(pair)
    flows = [f for local in private for f in model.flows(local, reassociate=reassociate).flows]
    held = {
        SharedLocal(f.array, f.write, f.read)
        for f in flows
        if {f.write, f.read} <= inside.statements and f.write != f.read
    }
    return Graph(frozenset(edges), frozenset(held))


def max_lag(
    model: Scop,
    first: Collection[str],
    then: Collection[str],
    entry: int,
    order: Order,
    *,
    memory: bool,
    reassociate: bool,
) -> int | None:
    """Return by how much entry ``entry`` of a source's time exceeds that of its sink at most.

    Only dependences from ``first`` to ``then`` in one iteration of the loops around count; the entries of these loops
    come before ``entry - 1``, in which the two loops differ by their place in the text. The result is 0 if there is
    none, and None if there is no bound. For locals, flow dependences count, or with ``memory`` all accesses to one
    element.
    """
    inside = LoopDependences(model, frozenset((*first, *then)), entry, order)
    stored = _on_locals(model, frozenset(), reassociate) if memory else []
    flows = [f for local in sorted(model.internal_names) for f in model.flows(local, reassociate=reassociate).flows]
    pairs = [(d.source, d.sink, d.map) for d in (*model.constraints[reassociate], *stored)]
    most = 0
    for s, t, kept in (*pairs, *((f.write, f.read, f.map) for f in flows)):
        if s not in first or t not in then:
            continue
        near = kept.intersect(inside.equal_prefix(s, t, entry - 1))
        if near.is_empty():
            continue
        at_s, at_t = (
            model.space.time(n, tuple(SchedulePiece((p.time[entry],), p.when) for p in order[n]), 1) for n in (s, t)
        )
        least = at_s.reverse().apply_range(near).apply_range(at_t).deltas().dim_min_val(0)  # { [later - earlier] }
        if not least.is_int():
            return None
        most = max(most, -least.to_python())
    return most


def _on_locals(model: Scop, private: frozenset[str], reassociate: bool) -> list[Dependence]:
    kept = [d for d in model.dependences if d.array in model.internal_names and d.array not in private]
    return [d for d in kept if not d.commutes(reassociate)]


Piece = tuple[str, int]
"""A statement, and the number of one of the pieces of its order."""


def piece_graph(
    model: Scop, order: Order, length: int, *, reassociate: bool
) -> tuple[tuple[Piece, ...], frozenset[tuple[Piece, Piece]]]:
    """Return the pieces of ``order`` that have instances, and the pairs of which the first must come before the second.

    Only instances with equal times up to entry ``length`` count. A local counts as memory of which there is one.
    """
    space = model.space
    times = {
        (name, k): space.time(name, (SchedulePiece(p.time[:length], p.when),), length).intersect_domain(
            space.domain(name)
        )
        for name, pieces in order.items()
        for k, p in enumerate(pieces)
    }
    times = {node: time for node, time in times.items() if not time.is_empty()}
    edges: set[tuple[Piece, Piece]] = set()
    for d in (*model.constraints[reassociate], *_on_locals(model, frozenset(), reassociate)):
        first, then = ([node for node in times if node[0] == name] for name in (d.source, d.sink))
        for pair in ((a, b) for a in first for b in then if a != b and (a, b) not in edges):
            together = times[pair[0]].apply_range(times[pair[1]].reverse())
            if not d.map.intersect(together).is_empty():
                edges.add(pair)
    return tuple(times), frozenset(edges)
