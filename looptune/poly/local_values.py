"""Locals have no place in memory that matters: only the values that their reads get do.

Each read has to get its value from the same write as in the original, made by the reader's own thread or surely before.

    for i: { t = A[i]; if (B[i] > 0) t = 0; C[i] = t }        S2[i] reads t from S0[i], or from S1[i] if that ran

If data decide which of several writes ran, the last of them counts, so that their order has to be preserved as well. A
value may reach its read through moves, which copy it to another local.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import islpy as isl

from looptune.ir.nodes import Loop
from looptune.poly.dataflow import Flow, guards_of, must_execute_with
from looptune.poly.dependence import Dependence, conflict, dependences, shared_op
from looptune.poly.happens_before import combines, happens_before, is_parallel
from looptune.poly.instance_maps import Unprovable
from looptune.poly.isl_objects import union
from looptune.poly.out_of_bounds import iterations_inside
from looptune.poly.parameter_values import exit_array

if TYPE_CHECKING:
    from looptune.core.source import Span
    from looptune.poly.domain import Statement
    from looptune.poly.instance_maps import InstanceMaps
    from looptune.poly.scop import Scop

Wrong = tuple[Literal["failed", "unknown"], str]
Sources = Mapping[tuple[str, str], Mapping[str, isl.Map]]
"""By reading statement and what that calls the scalar: by write, { write[iteration] -> read[iteration] }."""


def scalars(model: Scop) -> set[str]:
    """Return the locals that have a copy in every thread: everything that is stored, except the local arrays."""
    return set(model.internal_names - arrays(model))


def arrays(model: Scop) -> set[str]:
    """Return the local arrays. Threads share them, except for those that a loop's iterations own."""
    return {v.name for v in model.codelet.locals if v.shape}


def same_copy(model: Scop, d: Dependence) -> isl.Map:
    """Return the dependence where both ends access one copy of the array.

    That of one iteration of the innermost loop that owns it.
    """
    s, t = model.statements[d.source], model.statements[d.sink]
    depth = _owner(s, d.array)
    if depth != _owner(t, d.array) or any(a is not b for a, b in zip(s.loops[:depth], t.loops[:depth], strict=True)):
        return model.space.never(d.source, d.sink)
    return d.map.intersect(_together(model, s, t, [f"{s.dims[k]} = {t.dims[k]}'" for k in range(depth)]))


def _owner(s: Statement, array: str) -> int:
    """How many loops there are from the outermost to the innermost one that owns the array; 0 where none does."""
    return max((d + 1 for d, f in enumerate(s.loops) if isinstance(f, Loop) and array in f.private_arrays), default=0)


def _together(model: Scop, s: Statement, t: Statement, conditions: Iterable[str]) -> isl.Map:
    """Return { s[iteration] -> t[iteration'] : all of the conditions }."""
    primed = ", ".join(f"{d}'" for d in t.dims)
    condition = " and ".join(conditions) or "true"
    return isl.Map(f"{model.space.prefix}{{ {model.space.instance(s)} -> {t.name}[{primed}] : {condition} }}")


def changed_reads(copies: InstanceMaps, reassociate: bool) -> Wrong | None:
    """Return a read that may get its value from another write than in the original, or None.

    Names of scalars do not matter.
    """
    model = copies.original
    flows = [f for flow in _flows(model, reassociate) for f in _needed(copies, flow)]
    before = _gathered((f.read, f.array, f.write, f.map) for f in flows)
    after = _gathered(_read_back(copies, reassociate))
    for read, name in before.keys() | after.keys():
        old, new = before.get((read, name), {}), after.get((read, name), {})
        # An affine value may have been compared as that; then nothing need read the local any more.
        settled = name in model.space.nest.known and all(w in old and m.is_subset(old[w]) for w, m in new.items())
        if not settled and not _equal(old, new) and not _equal(*(_inside(model, read, side) for side in (old, new))):
            exits = exit_array(read)
            if exits:
                return "failed", f"{exits} is left with another value than it was"
            return "failed", f"the assignment at {_span(model, read)} reads another value of a local than it did"
    return _overtaken(copies, flows, reassociate)


def _equal(old: Mapping[str, isl.Map], new: Mapping[str, isl.Map]) -> bool:
    return old.keys() == new.keys() and all(m.is_equal(old[w]) for w, m in new.items())


def _inside(model: Scop, read: str, sources: Mapping[str, isl.Map]) -> Mapping[str, isl.Map]:
    """Return the sources of reads in iterations that stay inside the arrays: nothing is defined in the others."""
    inside = iterations_inside(model, model.statements[read])
    kept = {write: m.intersect_range(inside) for write, m in sources.items()}
    return {write: m for write, m in kept.items() if not m.is_empty()}


def _span(model: Scop, name: str) -> Span:
    return model.statements[name].assign.span


def _flows(model: Scop, reassociate: bool) -> Iterator[Flow]:
    """Over all locals, without those between accumulations that may be regrouped."""
    for array in sorted(model.internal_names):
        for flow in model.flows(array, reassociate=reassociate).flows:
            ends = [[a for a in model.space.accesses[n] if a.array == array] for n in (flow.write, flow.read)]
            if not (shared_op(*ends) and all(a.commutes(reassociate) for side in ends for a in side if a.write)):
                yield flow


def _needed(copies: InstanceMaps, flow: Flow) -> Iterator[Flow]:
    """Yield the flows into conditions that matter.

    What a condition reads where no iteration of its statement depends on it has no copy.
    """
    if not copies.original.statements[flow.read].is_condition:
        yield flow
        return
    for c in copies.copies_of(flow.read):
        needed = flow.map.intersect_range(copies.at[c].range())
        if not needed.is_empty():
            yield replace(flow, map=needed)


def _gathered(flows: Iterable[tuple[str, str, str, isl.Map]]) -> Sources:
    found: dict[tuple[str, str], dict[str, list[isl.Map]]] = {}
    for read, name, write, values in flows:
        found.setdefault((read, name), {}).setdefault(write, []).append(values)
    return {read: {write: union(maps) for write, maps in mine.items()} for read, mine in found.items()}


def _read_back(copies: InstanceMaps, reassociate: bool) -> Iterator[tuple[str, str, str, isl.Map]]:
    """Yield the flows of the finished tree in original statements, iterations and names.

    "" where a copy reads a local that stands for nothing in its original.
    """
    for f in _through_moves(copies, _visible(copies, _flows(copies.finished, reassociate))):
        names = copies.names[f.read]
        assert names is not None, "a copy that computes something else has failed"
        theirs = {a for a, b in names if b == f.array}
        if not theirs and f.array not in copies.finished.space.nest.known:
            theirs = {""}
        back = copies.to_original(f.write, f.map, f.read)
        if not back.is_empty():
            yield from ((copies.original_of(f.read), name, copies.of[f.write], back) for name in theirs)


def _through_moves(copies: InstanceMaps, found: Iterable[Flow]) -> Iterator[Flow]:
    """Yield the flows from writes that are no moves to reads that are none, past the moves between them."""
    flows = list(found)
    into = {m: [f for f in flows if f.read == m] for m in copies.moves}
    left = [f for f in flows if f.read not in copies.moves]
    for _ in range(len(copies.moves) + 1):
        yield from (f for f in left if f.write not in copies.moves)
        left = [
            replace(f, write=g.write, map=g.map.apply_range(f.map))
            for f in left if f.write in copies.moves for g in into[f.write]
        ]  # fmt: skip
        left = [f for f in left if not f.map.is_empty()]
    if left:
        raise Unprovable("locals get their values from each other in a circle")


def _visible(copies: InstanceMaps, flows: Iterable[Flow]) -> Iterator[Flow]:
    """Yield the flows of the finished tree that no copy of another write hides.

    The original of that write runs whenever the reader's does, or whenever the earlier write's does; in the finished
    tree, the two may stand in different branches that data decide alike.
    """
    space, finished = copies.original.space, copies.finished.space
    for f in flows:
        if {f.write, f.read} & copies.moves:
            yield f
            continue
        read, left = copies.original.statements[copies.original_of(f.read)], f.map
        earlier = copies.original.statements[copies.of[f.write]]
        decided = any(guards_of(read, a) for a, b in copies.names[f.read] or () if b == f.array)
        for c in _writes(copies, f.array) if f.array in scalars(copies.finished) else ():
            write = copies.original.statements[copies.of[c]]
            after, then = finished.before(f.write, c), finished.before(c, f.read)
            again = copies.to_copies(f.write, must_execute_with(space, write, earlier).reverse(), c)
            left = left.subtract(after.intersect(again).apply_range(then))
            if not decided:
                runs = copies.to_copies(c, must_execute_with(space, write, read), f.read)
                left = left.subtract(after.apply_range(then.intersect(runs)))
        if not left.is_empty():
            yield replace(f, map=left)


def _writes(copies: InstanceMaps, scalar: str) -> Iterator[str]:
    """Yield the copies that assign the scalar where data decide, and do not accumulate in it."""
    finished = copies.finished.space
    for c in copies.of:
        s = finished.nest.statements[c]
        if s.data_conditions and any(a.write and a.array == scalar and a.reduces is None for a in finished.accesses[c]):
            yield c


def _overtaken(copies: InstanceMaps, flows: Iterable[Flow], reassociate: bool) -> Wrong | None:
    """Two writes of which a read may see either, the later one if both ran, that may run in another order now."""
    model, by_read = copies.original, dict[tuple[str, str], list[Flow]]()
    for f in flows:
        by_read.setdefault((f.read, f.array), []).append(f)
    pairs: dict[tuple[str, str, str], list[isl.Map]] = {}
    for a, b in ((a, b) for mine in by_read.values() for a in mine for b in mine):
        if not _commute(model, a, b, reassociate):
            both = a.map.apply_range(b.map.reverse()).intersect(model.space.before(a.write, b.write))
            again = both.intersect(_same_element(model, a, b))
            pairs.setdefault((a.write, b.write, a.array), []).append(again)
    for (first, then, array), maps in pairs.items():
        if not _kept(copies, first, union(maps), then):
            line, other = _span(model, first), _span(model, then)
            return "unknown", f"whether {array} assigned at {line} is assigned again at {other} cannot be analysed"
    return None


def _same_element(model: Scop, a: Flow, b: Flow) -> isl.Map:
    """Return { a's write[iteration] -> b's write[iteration] : of one element }; of a scalar all are."""
    ends = [[x for x in model.space.accesses[f.write] if x.array == f.array and x.write] for f in (a, b)]
    return union(conflict(model.space, x, y) for x in ends[0] for y in ends[1])


def _commute(model: Scop, a: Flow, b: Flow, reassociate: bool) -> bool:
    """Both writes accumulate, in any order."""
    ends = [[x for x in model.space.accesses[f.write] if x.array == f.array] for f in (a, b)]
    return shared_op(*ends) is not None and all(x.commutes(reassociate) for side in ends for x in side if x.write)


def _kept(copies: InstanceMaps, first: str, pairs: isl.Map, then: str) -> bool:
    """In all copies of the two statements the first comes before the other."""
    for c in copies.copies_of(first):
        for d in copies.copies_of(then):
            met = copies.to_copies(c, pairs, d)
            if not met.is_empty() and not met.is_subset(happens_before(copies.finished, c, d, "", None)):
                return False
    return True


def cross_thread_reads(copies: InstanceMaps, reassociate: bool, shared: frozenset[str]) -> str | None:
    """Return a message if a thread may read a value that another thread wrote, or None.

    Of shared elements, only one thread works on each at a time.
    """
    finished = copies.finished
    for array in sorted(scalars(finished) - shared):
        for flow in _visible(copies, finished.flows(array, reassociate=reassociate).flows):
            if not flow.map.is_subset(_one_thread(finished, flow, reassociate)):
                return f"{array} is read at {_span(finished, flow.read)} by another thread than wrote it"
    for d in dependences(finished.space, shared | arrays(finished)):
        op = d.op if d.commutes(reassociate) else None
        if not same_copy(finished, d).is_subset(happens_before(finished, d.source, d.sink, d.array, op)):
            return f"{d.array} is used at {_span(finished, d.sink)} by several threads at once"
    return None


def _one_thread(model: Scop, flow: Flow, reassociate: bool) -> isl.Map:
    """Return { write[iteration] -> read[iteration] : the loops around the write give both to one thread }.

    What threads reduce together all of them have afterwards.
    """
    w, r = model.statements[flow.write], model.statements[flow.read]
    written = next(a for a in model.space.accesses[flow.write] if a.write and a.array == flow.array)
    op = written.reduces if written.commutes(reassociate) else None
    apart = [is_parallel(loop) and not combines(loop, flow.array, op) for loop in w.loops]
    last = max((d for d, threads in enumerate(apart) if threads), default=-1)  # threads end with their loop
    same = []
    for d, loop in enumerate(w.loops[: last + 1]):
        shared = d < len(r.loops) and r.loops[d] is loop
        same.append(f"{w.dims[d]} = {r.dims[d]}'" if shared else "false")
    return _together(model, w, r, same)
