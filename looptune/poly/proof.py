"""Translation validation: a finished tree does what its codelet did, whatever passes made it.

    meaning   each assignment in it computes what its original computes in the iteration it stands for
    once      every original iteration runs, and runs once
    order     no dependence is reversed or torn between threads: s -> t keeps s before t, with loops run by threads in
              no order; accumulations by one op into one element may run in any order, but at once only in the
              iterations of a loop that reduces them
    reduced   nothing else in such a loop touches what it reduces, for its threads hold parts of it
    locals    every read of a local gets the value from the same original write, and from its own thread
    bounds    every access is inside its array

Nothing is taken from the transforms but ``Assign.at``. What cannot be compared (data-dependent bounds and conditions,
``while``) is "unknown", never "proved". Elements kept in registers are put back first (``held``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import islpy as isl

from looptune.ir import Array, Codelet, Expr, Load, Local, Loop, Reduced, Var
from looptune.poly.access import Access
from looptune.poly.copies import Copies, Unprovable, compare, same_meaning
from looptune.poly.dependence import dependences, shared_op
from looptune.poly.domain import Statement
from looptune.poly.flow import Flow
from looptune.poly.held import Misheld, without_registers
from looptune.poly.legality import Around
from looptune.poly.model import Model
from looptune.poly.space import union
from looptune.poly.witness import Broken, Refused, least_point, refused


@dataclass(frozen=True, slots=True)
class Proof:
    """``reason`` is one line: what failed, or what could not be compared; "" where proved.

    ``assumed`` are the conditions on the sizes under which accesses are inside their arrays, which C demands anyway.
    """

    verdict: Literal["proved", "failed", "unknown"]
    reason: str = ""
    witness: Refused | None = None
    assumed: tuple[str, ...] = ()


def prove(
    original: Codelet,
    finished: Codelet,
    sizes: Mapping[str, int] | None = None,
    *,
    reassociate: bool = True,
    shared: frozenset[str] = frozenset(),
) -> Proof:
    """``sizes``: integer parameters known, else it holds for all; then accesses are checked, else they are assumed.

    ``shared``: scalar locals of ``finished`` of which there is one for all threads.
    """
    try:
        copies = compare(original, without_registers(finished), sizes if sizes is not None else {})
        return _proved(copies, reassociate, shared)
    except Misheld as wrong:
        return Proof("failed", str(wrong))
    except Unprovable as reason:
        return Proof("unknown", str(reason))


def _proved(copies: Copies, reassociate: bool, shared: frozenset[str]) -> Proof:
    """What fails for certain, before what is only doubted."""
    doubt: Proof | None = None
    for check in (_once, _begun, _meaning, _order, _reduced, _locals):
        failure = check(copies, reassociate)
        if failure is not None and failure.verdict == "failed":
            return failure
        doubt = failure if doubt is None else doubt
    failure = _owned(copies.finished, reassociate, shared)
    if failure is not None:
        return failure
    fits = _bounds(copies)
    return fits if doubt is None or fits.verdict == "failed" else doubt


def _meaning(copies: Copies, reassociate: bool) -> Proof | None:
    for copy in copies.of:
        if not same_meaning(copies, copy):
            span = copies.finished.statements[copy].assign.span
            return Proof("failed", f"a copy of the assignment at {span} computes something else")
    return None


def _begun(copies: Copies, reassociate: bool) -> Proof | None:
    """Where assignments are no copies, all that can be said is that a local has no value yet, or its value is lost."""
    if copies.whole:
        return None
    for local in sorted({v.name for v in copies.finished.codelet.locals if not v.shape}):
        for read, unwritten in copies.finished.flows(local).unwritten.items():
            if not unwritten.is_empty():
                line = copies.finished.statements[read].assign.span
                return Proof("failed", f"{local} is read before it has a value{f' at {line}' if line.line else ''}")
    for copy, name in copies.of.items():
        match copies.finished.statements[copy].assign.target, copies.original.statements[name].assign.target:
            case Var(local), Load():
                flows = (f for f in copies.finished.flows(local).flows if f.write == copy)
                if all(f.read in copies.of for f in flows):
                    line = copies.original.statements[name].assign.span
                    return Proof("failed", f"what is assigned at {line} stays in {local}")
    raise Unprovable("the tree has assignments that are no copies of original ones")


def _once(copies: Copies, reassociate: bool) -> Proof | None:
    """The copies' iterations are the original's, and no two of them are the same one."""
    for name, statement in copies.original.statements.items():
        runs = copies.named(name)
        ranges = [copies.at[c].range() for c in runs]
        failure = None if _divided(copies.original.space.domain(name), ranges) else _amiss(copies, statement, ranges)
        if failure is not None:
            return failure
        for c in runs:
            if not copies.at[c].is_injective():
                return _failed(copies, statement, copies.at[c].range(), "may run twice")
    return None


def _divided(whole: isl.Set, parts: Sequence[isl.Set]) -> bool:
    """Each point of ``whole`` is in one of the parts, no point in two, and no other is in any."""
    return (
        bool(parts)
        and all(part.is_subset(whole) for part in parts)
        and all(one.is_disjoint(other) for k, one in enumerate(parts) for other in parts[:k])
        and whole.is_subset(reduce(isl.Set.union, parts).coalesce())
    )


def _amiss(copies: Copies, statement: Statement, ranges: Sequence[isl.Set]) -> Proof | None:
    """Which iteration runs too often, or not at all. Slow: with every copy the rest of the domain has more pieces."""
    domain = copies.original.space.domain(statement.name)
    left = domain
    for ran in ranges:
        twice = ran.subtract(left)
        if not twice.is_empty():
            outside = not twice.is_subset(domain)
            return _failed(copies, statement, twice, "runs, and must not" if outside else "runs twice")
        left = left.subtract(ran)
    return None if left.is_empty() else _failed(copies, statement, left, "does not run")


def _failed(copies: Copies, statement: Statement, where: isl.Set, what: str) -> Proof:
    point, names = least_point(isl.Map.from_range(where)), copies.original.parameters
    given = _listed(dict(zip(names, point, strict=False)))
    at = _listed(statement.shown(point[len(names) :], dict(zip(names, point, strict=False))))
    place = f"{f'iteration ({at}) of ' if at else ''}{statement.assign.span}"
    return Proof("failed", f"{place} {what}{f' when {given}' if given else ''}")


def _order(copies: Copies, reassociate: bool) -> Proof | None:
    """Dependences on arrays, local arrays included; "unknown" where all that are reversed are only assumed."""
    model, scalars, broken = copies.original, _scalars(copies.original), []
    for d in (d for d in model.dependences if d.array not in scalars):
        for first in copies.named(d.first):
            for then in copies.named(d.then):
                met = copies.between(first, d.map, then)
                if met.is_empty():
                    continue
                of = d.array, d.op if d.commutes(reassociate) else None
                bad = met.subtract(_in_order(copies.finished, first, then, *of))
                if d.commutes(reassociate):  # either may come first, but not both at once
                    bad = bad.subtract(_in_order(copies.finished, then, first, *of).reverse())
                if not bad.is_empty():
                    back = copies.back(first, bad, then)
                    broken.append(Broken(d.first, d.then, back, d.array, reductions=d.op is not None))
    if not broken:
        return None
    witness = refused(model.space, model.sizes, broken)
    if witness.because is not None:
        return Proof("unknown", f"{witness.because.what} at {witness.because.span} cannot be analysed", witness)
    return Proof("failed", f"{witness}: {witness.detail()}", witness)


def _in_order(model: Model, first: str, then: str, array: str, op: str | None) -> isl.Map:
    """{ s[iteration] -> t[iteration] : s surely runs before t }: they differ first in text or in a sequential loop.

    Accumulations by ``op`` into ``array`` have an order, some order, in the iterations of a loop that reduces them.
    """
    s, t = model.statements[first], model.statements[then]
    later = [f"{e}'" if e in t.dims else e for e in t.time]
    threads = {2 * d + 1 for d, f in enumerate(s.loops) if _unordered(f) and not _reduces(f, array, op)}
    cases = (
        " and ".join([*(f"{a} = {b}" for a, b in zip(s.time[:k], later[:k], strict=True)), f"{s.time[k]} < {later[k]}"])
        for k in range(len(later)) if k not in threads
    )  # fmt: skip
    condition = " or ".join(f"({c})" for c in cases)
    primed = ", ".join(f"{d}'" for d in t.dims)
    return isl.Map(f"{model.space.prefix}{{ {model.space.instance(s)} -> {t.name}[{primed}] : {condition} }}")


def _unordered(loop: object) -> bool:
    return isinstance(loop, Loop) and loop.mode in ("parallel", "thread")


def _reduces(loop: object, array: str, op: str | None) -> bool:
    """The threads that run the loop join what they have accumulated by ``op`` into ``array``."""
    return isinstance(loop, Loop) and any(_into(r) == (array, op) for r in loop.reduces)


def _into(r: Reduced) -> tuple[str, str]:
    return r.target.name if isinstance(r.target, Var) else r.target.array, r.op


def _reduced(copies: Copies, reassociate: bool) -> Proof | None:
    """What the threads of a loop hold parts of is touched by nothing in it but what accumulates by the loop's op."""
    model = copies.finished
    summing = {id(f): (d, f) for s in model.statements.values() for d, f in enumerate(s.loops)
               if isinstance(f, Loop) and f.reduces}  # fmt: skip
    for d, f in summing.values():
        inside = {name for name, s in model.statements.items() if len(s.loops) > d and s.loops[d] is f}
        into = [a for n in inside for a in model.space.accesses[n] if _reduces(f, a.array, a.reduces)]
        kept = sorted({a.text for a in into if not a.commutes(reassociate)})
        if kept:
            return Proof("failed", f"loop {f.var} reduces {', '.join(kept)}, whose order counts")
        around = Around(model, frozenset(inside), 2 * d + 1, model.order())
        summed = [c for c, _ in around.carries()[0] if _reduces(f, c.array, c.op)]
        mixed = sorted(around.mixed({s for c in summed for s in (c.first, c.then)}))
        if mixed:
            return Proof("failed", f"loop {f.var} reduces {', '.join(mixed)} and uses it in another way as well")
    return None


def _scalars(model: Model) -> set[str]:
    """What has a copy in every thread that writes it: all that is stored, but the local arrays."""
    return {v for v in model.stored if v not in {x.name for x in model.codelet.locals if x.shape}}


def _locals(copies: Copies, reassociate: bool) -> Proof | None:
    """Which write each read gets its value from, in original iterations, before and after; names may have changed."""
    before = _values(copies.original, reassociate, lambda w, m, r: (w, m, r))
    after = _values(copies.finished, reassociate, lambda w, m, r: (copies.of[w], copies.back(w, m, r), copies.of[r]))
    for w, r in before.keys() | after.keys():
        old, new = before.get((w, r)), after.get((w, r))
        if old is None or new is None or not old.is_equal(new):
            line = copies.original.statements[r].assign.span
            return Proof("failed", f"the assignment at {line} reads another value of a local than it did")
    return None


def _owned(finished: Model, reassociate: bool, shared: frozenset[str]) -> Proof | None:
    """A thread reads what it wrote itself; of what all share, one thread at a time is at work on it."""
    for array in sorted(_scalars(finished) - shared):
        for flow in finished.flows(array, reassociate=reassociate).flows:
            if not flow.map.is_subset(_one_thread(finished, flow, reassociate)):
                line = finished.statements[flow.read].assign.span
                return Proof("failed", f"{array} is read at {line} by another thread than wrote it")
    for d in dependences(finished.space, shared):
        op = d.op if d.commutes(reassociate) else None
        if not d.map.is_subset(_in_order(finished, d.first, d.then, d.array, op)):
            line = finished.statements[d.then].assign.span
            return Proof("failed", f"{d.array} is used at {line} by several threads at once")
    return None


def _values(
    model: Model, reassociate: bool, shown: Callable[[str, isl.Map, str], tuple[str, isl.Map, str]]
) -> dict[tuple[str, str], isl.Map]:
    """{ write[iteration] -> read[iteration] } by statements, over all scalars, without those that may be regrouped."""
    found: dict[tuple[str, str], list[isl.Map]] = {}
    for array in sorted(_scalars(model)):
        for flow in model.flows(array, reassociate=reassociate).flows:
            ends = [[a for a in model.space.accesses[n] if a.array == array] for n in (flow.write, flow.read)]
            if not (shared_op(*ends) and all(a.commutes(reassociate) for side in ends for a in side if a.write)):
                w, values, r = shown(flow.write, flow.map, flow.read)
                found.setdefault((w, r), []).append(values)
    return {pair: union(maps) for pair, maps in found.items()}


def _one_thread(model: Model, flow: Flow, reassociate: bool) -> isl.Map:
    """{ write[iteration] -> read[iteration] : the loops around the write give both to one thread }

    What threads reduce together all of them have afterwards.
    """
    w, r = model.statements[flow.write], model.statements[flow.read]
    written = next(a for a in model.space.accesses[flow.write] if a.write and a.array == flow.array)
    op = written.reduces if written.commutes(reassociate) else None
    apart = [_unordered(loop) and not _reduces(loop, flow.array, op) for loop in w.loops]
    last = max((d for d, threads in enumerate(apart) if threads), default=-1)  # threads end with their loop
    same = []
    for d, loop in enumerate(w.loops[: last + 1]):
        shared = d < len(r.loops) and r.loops[d] is loop
        same.append(f"{w.dims[d]} = {r.dims[d]}'" if shared else "false")
    primed = ", ".join(f"{d}'" for d in r.dims)
    condition = " and ".join(same) or "true"
    return isl.Map(f"{model.space.prefix}{{ {model.space.instance(w)} -> {r.name}[{primed}] : {condition} }}")


def _bounds(copies: Copies) -> Proof:
    """Sizes that are parameters are assumed to fit; where none is left, an access outside its array is a failure.

    Where the data say which element it is, whether it is inside is unknown.
    """
    space = copies.finished.space
    assumed: dict[str, None] = {}
    for array in (*copies.finished.codelet.params, *copies.finished.codelet.locals):
        match array:
            case Array(name, _, shape) | Local(name, _, shape):
                for access in (a for mine in space.accesses.values() for a in mine if a.array == name):
                    _inside(copies, access, shape, assumed)
    if assumed and not copies.finished.parameters:
        return Proof("failed", f"{next(iter(assumed))} is outside its array")
    unknown = next((a for mine in space.accesses.values() for a in mine if None in a.index), None)
    if unknown is not None and not copies.finished.parameters:
        return Proof("unknown", f"whether {unknown.text} at {unknown.span} is inside its array cannot be analysed")
    return Proof("proved", assumed=tuple(assumed))


def _inside(copies: Copies, access: Access, shape: tuple[Expr | None, ...], assumed: dict[str, None]) -> None:
    """Note the access unless every element it touches, as far as that is known, is inside ``shape``."""
    space = copies.finished.space
    s = copies.finished.statements[access.statement]
    for subscript, extent in zip(access.subscripts, shape, strict=True):
        if extent is None:
            continue
        e, n = space.nest.affine(subscript, s.dims), space.nest.affine(extent, ())
        if e is None:
            continue
        held = "false" if n is None else f"0 <= {e} < {n}"
        if not space.domain(s.name).is_subset(isl.Set(f"{space.prefix}{{ {space.instance(s)} : {held} }}")):
            assumed[f"{access.text} at {access.span}"] = None


def _listed(values: Mapping[str, int]) -> str:
    return ", ".join(f"{k}={v}" for k, v in values.items())
