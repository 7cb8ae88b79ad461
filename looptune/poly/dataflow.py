"""The flow dependences of a local: the writes from which each read gets its value.

    for i: { t = A[i]; B[i] = t }        { S0[i] -> S1[i] }: the value of t is live within one iteration

The result is exact where the code is affine. A write under a condition on data hides no earlier write, except for a
read that happens only if the write does; and if a block syntactically writes a scalar before every read of it, values
from outside the block do not reach these reads, whatever the conditions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, takewhile
from typing import TYPE_CHECKING

import islpy as isl

from looptune.ir.def_use import names_in, referenced_names, upward_exposed_uses
from looptune.ir.nodes import Assign, Codelet, If, Loop, Stmt, While
from looptune.ir.rewrite import walk_stmts
from looptune.poly.coalesce import coalesce
from looptune.poly.data_conditions import DataCondition
from looptune.poly.dependence import conflict
from looptune.poly.domain import Statement, pass_condition_name
from looptune.poly.isl_objects import Space, union
from looptune.poly.reduction import accumulation

if TYPE_CHECKING:
    from looptune.poly.access import Access


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """The flow of values of ``array`` from one statement to another.

    ``map``: { write[iteration] -> read[iteration] : the value may be read there }.
    """

    write: str
    read: str
    array: str
    map: isl.Map


@dataclass(frozen=True, slots=True, eq=False)
class Flows:
    """The flows of a local.

    ``unwritten``: by statement, { read[iteration] : the value may be from before the codelet }.
    """

    flows: tuple[Flow, ...]
    unwritten: dict[str, isl.Set]


def flows(space: Space, codelet: Codelet, array: str, *, reassociate: bool) -> Flows:
    """Return the flows of a local.

    ``reassociate``: an accumulation hides no other write, so that each gets its value from the last plain write.
    """
    empty = isl.UnionMap(f"{space.prefix}{{ }}")
    reads, certain, possible = empty, empty, empty
    for accesses in space.accesses.values():
        for a in (a for a in accesses if a.array == array):
            touched = isl.UnionMap.from_map(space.touched(a))
            if not a.write:
                reads = reads.union(touched)
            elif a.must and not a.commutes(reassociate):
                certain = certain.union(touched)
            else:
                possible = possible.union(touched)
    last, unwritten = _last(space, reads, certain, certain.union(possible))
    found = _local_to_blocks(space, codelet, array, _flows(last, array))
    left = _not_hidden(space, [a for mine in space.accesses.values() for a in mine if a.array == array], found,
                       reassociate=reassociate)  # fmt: skip
    return Flows(tuple(left), _unwritten(unwritten))


def last_writes(space: Space, reads: isl.UnionMap, writes: isl.UnionMap) -> list[isl.Map]:
    """Return { write[iteration] -> read[iteration] : the read gets its value from the write }.

    ``reads`` and ``writes`` are { S[iteration] -> [element] } of one array, and every write surely happens.
    """
    return _maps(_last(space, reads, writes, writes)[0])


def _sure(space: Space, name: str, known: int, asked: Collection[DataCondition]) -> isl.Set:
    """Return { S[iteration] : it runs, whatever the data say }.

    ``asked`` are its conditions on data, of which the outermost ``known`` have their required values: for
    ``j < 2 && x > 0`` to be false, where j is 2 or more.
    """
    s = space.nest.statements[name]
    domain = space.domain(name)
    for a in tuple(asked)[known:]:
        otherwise, _ = space.nest.condition(a.cond, not a.value, s.dims)
        domain = domain.subtract(isl.Set(f"{space.prefix}{{ {space.instance(s)} : {otherwise} }}"))
    return domain


def _last(
    space: Space, reads: isl.UnionMap, certain: isl.UnionMap, writes: isl.UnionMap
) -> tuple[isl.UnionMap, isl.UnionMap]:
    """Return the last writes before each read.

    These are { write -> read : of one element, the write before the read, and no certain write between them }, and the
    { read -> element } without a certain write before.

    Taken from the definition: isl's own flow analysis names a write that is not the last one where iterations are
    every second one (islpy 2026.2.2), and then a wrong schedule could be called legal.
    """
    element, reading = reads.range_map(), reads.domain_map()  # { [read -> element] -> element }, { … -> read }
    hidden_by, sure = _reaches(space, writes, certain), _reaches(space, certain, element)
    # As many pieces as pairs of theirs, most of them alike: to subtract them one by one takes ten times as long.
    hidden = _merged(hidden_by.apply_range(sure))
    flow = _reaches(space, writes, element).subtract(hidden)
    return flow.apply_range(reading), reads.wrap().subtract(sure.range()).unwrap()


def _reaches(space: Space, some: isl.UnionMap, others: isl.UnionMap) -> isl.UnionMap:
    """Return { write -> other : of one element, and before it }, where an other may be a [read -> element]."""
    found = isl.UnionMap(f"{space.prefix}{{ }}")
    for part in _maps(some.apply_range(others.reverse())):
        write, wrapped = part.get_tuple_name(isl.dim_type.in_), part.range_is_wrapping()
        other = (part.range_factor_domain() if wrapped else part).get_tuple_name(isl.dim_type.out)
        before = space.before(write, other)
        part = part.intersect_range_factor_domain(before) if wrapped else part.intersect(before)
        found = found.union(isl.UnionMap.from_map(part))
    return found


def _flows(found: isl.UnionMap, array: str) -> Iterator[Flow]:
    for part in _maps(found):
        write, read = (part.get_tuple_name(side) for side in (isl.dim_type.in_, isl.dim_type.out))
        yield Flow(write, read, array, coalesce(part))


def _maps(found: isl.UnionMap) -> list[isl.Map]:
    maps: list[isl.Map] = []
    found.foreach_map(maps.append)
    return maps


def _merged(found: isl.UnionMap) -> isl.UnionMap:
    parts = (isl.UnionMap.from_map(coalesce(part)) for part in _maps(found))
    return reduce(isl.UnionMap.union, parts, isl.UnionMap.empty(found.get_space()))


def _unwritten(found: isl.UnionMap) -> dict[str, isl.Set]:
    by_statement: dict[str, list[isl.Map]] = {}
    for part in _maps(found):
        by_statement.setdefault(part.get_tuple_name(isl.dim_type.in_), []).append(part)
    return {name: union(parts).domain() for name, parts in by_statement.items()}


def _local_to_blocks(space: Space, codelet: Codelet, array: str, found: Iterable[Flow]) -> Iterator[Flow]:
    """Yield the flows that are not into a block with its own values.

    Such a block writes ``array`` before it reads it, or has an array of its own.
    """
    scalar = any(v.name == array and not v.shape for v in codelet.locals)
    local = any(v.name == array for v in codelet.locals)
    owners = list((_owners if scalar else _declarers)(space, codelet.body, array, 0, 0)) if local else []
    for flow in found:
        kept = flow.map
        for depth, inside in owners:
            if flow.read not in inside:
                continue
            kept = (
                kept.intersect(_same(space, flow, depth))
                if flow.write in inside
                else space.never(flow.write, flow.read)
            )
        if not kept.is_empty():
            yield Flow(flow.write, flow.read, array, kept)


def _not_hidden(
    space: Space, accesses: Collection[Access], found: Iterable[Flow], *, reassociate: bool
) -> Iterator[Flow]:
    """Yield the flows that no other write hides.

    A write hides an earlier one if it runs whenever the read does, or whenever the earlier write does, because data
    decided the same for both; elsewhere, conditions on data are ignored.
    """
    into = {a.statement: a for a in accesses if a.write}
    known = all(None not in a.index for a in into.values())
    names = [n for n, a in into.items() if known and not a.commutes(reassociate)]
    writes = [space.nest.statements[name] for name in names]
    hiding = [_Either((w,), w.data_conditions) for w in writes if w.data_conditions and _only_data_decide(w)]
    hiding += _joined(hiding)
    for flow in found:
        left = flow.map
        for either in hiding:
            earlier, read = (space.nest.statements[name] for name in (flow.write, flow.read))
            after, then = either.after(space, into[flow.write], into), either.before(space, flow.read)
            left = left.subtract(after.intersect(either.runs_with(space, earlier).reverse()).apply_range(then))
            if not guards_of(read, flow.array):
                left = left.subtract(after.apply_range(then.intersect(either.runs_with(space, read))))
        if not left.is_empty():
            yield Flow(flow.write, flow.read, flow.array, coalesce(left))


def _only_data_decide(write: Statement) -> bool:
    """Tell whether all that is not known of the statement is whether it runs."""
    return write.unknown is not None and write.unknown.condition


@dataclass(frozen=True, slots=True)
class _Either:
    """Writes of one variable of which one runs wherever ``conditions`` hold, of which data decide.

    One write alone has its own conditions; of two in both branches of an ``if`` each runs where the other does not:

        if (A[i] > 0) t = 1; else t = 2;        hides what t was before, whatever A is
    """

    writes: tuple[Statement, ...]
    conditions: tuple[DataCondition, ...]

    def after(self, space: Space, earlier: Access, into: Mapping[str, Access]) -> isl.Map:
        """Return { earlier[iteration] -> the first write's : before each of the writes, which are of its element }.

        ``into`` are the accesses by which statements write.
        """
        first = self.writes[0].name
        found = []
        for w in self.writes:
            before = space.before(earlier.statement, w.name)
            if earlier.index:
                before = before.intersect(conflict(space, earlier, into[w.name]))
            found.append(before.set_tuple_name(isl.dim_type.out, first))
        return reduce(isl.Map.intersect, found)

    def before(self, space: Space, read: str) -> isl.Map:
        """Return { the first write's iteration -> read[iteration] : after each of the writes }."""
        first = self.writes[0].name
        found = (space.before(w.name, read).set_tuple_name(isl.dim_type.in_, first) for w in self.writes)
        return reduce(isl.Map.intersect, found)

    def runs_with(self, space: Space, other: Statement) -> isl.Map:
        """Return { the first write's iteration -> other[iteration] : one of them surely runs if the other does }."""
        if len(self.writes) == 1:
            return must_execute_with(space, self.writes[0], other)
        names = tuple(w.name for w in self.writes)
        return space.memoized(("one runs with", names, other.name), lambda: _runs_with(space, self, other))

    def domain(self, space: Space, known: int) -> isl.Set:
        """Return where one of them runs, whatever the data say beyond the outermost ``known`` conditions."""
        first = self.writes[0].name
        found = (_sure(space, w.name, known, self.conditions).set_tuple_name(first) for w in self.writes)
        return reduce(isl.Set.intersect, found)


def _joined(hiding: Sequence[_Either]) -> list[_Either]:
    """Return the writes in both branches of an ``if``, and of those around it whose branches all write."""
    found: list[_Either] = []
    new = list(hiding)
    while new:
        made = [
            _Either((*one.writes, *other.writes), one.conditions[:-1])
            for one, other in combinations((*hiding, *found), 2)
            if (one in new or other in new) and _opposite(one, other)
        ]
        found += made
        new = made
    return found


def _opposite(one: _Either, other: _Either) -> bool:
    """Tell whether the two stand in the two branches of one ``if``."""
    if one.writes[0].loops != other.writes[0].loops or not (one.conditions and other.conditions):
        return False
    mine, theirs = one.conditions[-1], other.conditions[-1]
    alike = len(one.conditions) == len(other.conditions) and one.conditions[:-1] == other.conditions[:-1]
    return alike and replace(mine, value=not mine.value) == theirs


def must_execute_with(space: Space, write: Statement, other: Statement) -> isl.Map:
    """Return { write[iteration] -> other[iteration] : the write surely runs if the other does }.

    Both take the branches in which they stand together.
    """
    alone = _Either((write,), write.data_conditions)
    return space.memoized(("runs with", write.name, other.name), lambda: _runs_with(space, alone, other))


def _runs_with(space: Space, either: _Either, other: Statement) -> isl.Map:
    found = []
    for known in range(_same_branches(either.conditions, other) + 1):
        runs = isl.Map.from_domain_and_range(either.domain(space, known), space.domain(other.name))
        for d in range(either.conditions[known - 1].loops if known else 0):
            runs = runs.equate(isl.dim_type.in_, d, isl.dim_type.out, d)
        found.append(runs)
    return union(found)


def guards_of(read: Statement, array: str) -> bool:
    """Tell whether the value read decides on a branch around the statement.

    A write in that branch then comes after it.
    """
    own = accumulation(read.assign, read.guard)
    before = read.conditions[:-1] if own is not None and own.extra_conditions is not None else read.conditions
    return array in names_in(before)


def _same_branches(conditions: Iterable[DataCondition], other: Statement) -> int:
    """How many branches both stand in together, each chosen before either of them runs."""
    reached = other.data_conditions[: len(other.data_conditions) - (1 if other.is_condition else 0)]
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(conditions, reached, strict=False)))


def _owners(
    space: Space, body: tuple[Stmt, ...], array: str, depth: int, ifs: int
) -> Iterator[tuple[int, frozenset[str]]]:
    """Yield the blocks that write the scalar first, with how many loops are around them and what runs in them.

    ``ifs`` are around the body: what they ask is not asked in it. Where a bound or condition reads the scalar, what is
    inside counts as reading it too, and that comes before all that the block writes. A ``while`` reads it before.
    """
    if array not in space.memoized(("names", id(body)), lambda: referenced_names(body)):
        return
    if array not in space.memoized(("exposed", id(body)), lambda: upward_exposed_uses(body)):
        yield depth, _running(space, body, ifs)
    for stmt in body:
        match stmt:
            case Loop(_, lo, hi, inner) if array not in names_in((lo, hi)):
                yield from _owners(space, inner, array, depth + 1, ifs)
            case While(_, inner):
                yield from _owners(space, inner, array, depth + 1, ifs)
            case If(cond, then, other) if array not in names_in(cond):
                yield from _owners(space, then, array, depth, ifs + 1)
                yield from _owners(space, other, array, depth, ifs + 1)


def _running(space: Space, body: tuple[Stmt, ...], ifs: int) -> frozenset[str]:
    """Return the statements of a block, and what is asked in it."""

    def running() -> frozenset[str]:
        inside = {n.name for n in walk_stmts(body) if isinstance(n, Assign)}
        evaluated = (s for s in space.nest.statements.values() if s.is_condition in inside)
        passes = {pass_condition_name(n) for n in walk_stmts(body) if isinstance(n, While)}
        return frozenset(inside | passes | {s.name for s in evaluated if s.data_conditions[-1].ifs >= ifs})

    return space.memoized(("running", id(body), ifs), running)


def _declarers(
    space: Space, body: tuple[Stmt, ...], array: str, depth: int, ifs: int
) -> Iterator[tuple[int, frozenset[str]]]:
    """Yield the same for a local array: the bodies of the loops each iteration of which has its own."""
    for stmt in body:
        match stmt:
            case Loop(private_arrays=own, body=inner):
                if array in own:
                    yield depth + 1, _running(space, inner, ifs)
                yield from _declarers(space, inner, array, depth + 1, ifs)
            case While(_, inner):
                yield from _declarers(space, inner, array, depth + 1, ifs)
            case If(_, then, other):
                yield from _declarers(space, then, array, depth, ifs + 1)
                yield from _declarers(space, other, array, depth, ifs + 1)


def _same(space: Space, flow: Flow, depth: int) -> isl.Map:
    """Return { write[iteration] -> read[iteration] : both in one iteration of the ``depth`` loops around }."""
    s, t = (space.nest.statements[n] for n in (flow.write, flow.read))
    primed = [f"{d}'" for d in t.dims]
    equal = " and ".join(f"{a} = {b}" for a, b in zip(s.dims[:depth], primed[:depth], strict=True)) or "true"
    return isl.Map(f"{space.prefix}{{ {s.name}[{', '.join(s.dims)}] -> {t.name}[{', '.join(primed)}] : {equal} }}")
