"""Translation validation: prove that a finished tree computes what its codelet does, whatever passes made it.

    meaning   each assignment in it computes what its original computes in the iteration it stands for, and runs only
              where the data satisfy the conditions of its original
    once      every original iteration runs, and runs once
    order     no dependence is reversed, or has its ends in two threads: s -> t requires s before t, where loops run by
              threads have no order; accumulations by one op into one element may run in any order, but at the same
              time only in the iterations of a loop that reduces them; a condition is evaluated where its ``if`` stands
    reduced   nothing else in such a loop accesses what it reduces, since its threads hold partial results
    locals    every read of a local gets the value from the same original write, and from its own thread; for a local
              array that threads share, surely after that write and before the next
    bounds    every access is inside its array

The only input from the transforms is ``Assign.instance``. What cannot be compared (data-dependent bounds, ``while``) is
"unknown", never "proved". Elements held in registers are written back first (``demote_registers``).

If data decide whether an assignment runs, all this is shown for the iterations in which it may run. Every copy then
evaluates the conditions of its original, each before and after the same writes: by induction over these, the same
assignments run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import islpy as isl

from looptune.ir.nodes import Codelet, Derivation, Expr, Load, Loop, Var
from looptune.poly.bounds_check import check_bounds, sizes_outside
from looptune.poly.coalesce import union_by_halves
from looptune.poly.happens_before import combines, happens_before
from looptune.poly.instance_maps import InstanceMaps, Unprovable, compare, depends_on_data, with_sizes
from looptune.poly.isl_limits import IslLimitExceeded, isl_operation_limit
from looptune.poly.legality import LoopDependences
from looptune.poly.local_values import changed_reads, cross_thread_reads
from looptune.poly.prefix_proof import division_error, without_sums
from looptune.poly.register_demotion import RegisterMismatch, demote_registers
from looptune.poly.witness import ViolatedDependence, Violation, assignments_text, find_witness, lexmin_pair

if TYPE_CHECKING:
    from looptune.poly.domain import Statement

MOST = 10**8
"""Operations of isl for one proof: ten seconds or so; a winner of the suite takes a fifth of it at most."""
TOO_INVOLVED = "which iterations run, and when, is too involved: isl gave up"


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of a proof; ``reason`` is one line that says what failed or could not be compared, or "".

    ``assumed`` are the conditions on the sizes under which accesses are inside their arrays, which C demands anyway.
    """

    verdict: Literal["proved", "failed", "unknown"]
    reason: str = ""
    witness: Violation | None = None
    assumed: tuple[str, ...] = ()


def prove(
    original: Codelet,
    finished: Codelet,
    sizes: Mapping[str, int] | None = None,
    *,
    reassociate: bool = True,
    shared: frozenset[str] = frozenset(),
    most: int | None = None,
) -> Proof:
    """Prove that ``finished`` computes what ``original`` does.

    ``sizes``: the values of integer parameters. If they are given, accesses are checked to be inside their arrays;
    without them the proof holds for all sizes, and that is assumed. ``shared``: scalar locals of ``finished`` that all
    threads share. ``most``: operations of isl, MOST where it is not given.
    """
    try:
        with isl_operation_limit(MOST if most is None else most):
            known = sizes if sizes is not None else {}
            if finished.derivation is not None and original.derivation is None:
                wrong = _derived(original, finished.derivation, known)
                if wrong is not None:
                    return wrong
                original = finished.derivation.codelet
            copies = compare(original, demote_registers(with_sizes(finished, known)), known)
            return _proved(copies, reassociate, shared)
    except RegisterMismatch as wrong:
        return Proof("failed", str(wrong))
    except Unprovable as reason:
        return Proof("unknown", str(reason))
    except IslLimitExceeded:
        return Proof("unknown", TOO_INVOLVED)


def _derived(original: Codelet, derivation: Derivation, sizes: Mapping[str, int]) -> Proof | None:
    """Return a failure unless each step of the derivation computes what the codelet before it does.

    A divided prefix sum is compared as a whole; that its parts without their sums run what the loop runs, in the order
    of the loop, is proved as for other trees.
    """
    for step in derivation.steps:
        same = original.body == step.text.body
        pairs = [] if same else [(original, step.text)]
        wrong = division_error(step)
        if wrong is not None:
            return Proof("failed", wrong)
        for before, after in (*pairs, (step.before, without_sums(step))):
            proof = _proved(compare(before, demote_registers(with_sizes(after, sizes)), sizes), False, frozenset())
            if proof.verdict != "proved":
                return proof
        original = step.after
    return None


def _proved(copies: InstanceMaps, reassociate: bool, shared: frozenset[str]) -> Proof:
    """Return what fails for certain, before what is only doubted."""
    doubt: Proof | None = None
    for check in (_once, _begun, _meaning, _order, _reduced, _values):
        failure = check(copies, reassociate)
        if failure is not None and failure.verdict == "failed":
            return failure
        doubt = failure if doubt is None else doubt
    lost = cross_thread_reads(copies, reassociate, shared)
    if lost is not None:
        return Proof("failed", lost)
    fits = _bounds(copies)
    return fits if doubt is None or fits.verdict == "failed" else doubt


def _meaning(copies: InstanceMaps, reassociate: bool) -> Proof | None:
    for copy in copies.of:
        line = copies.finished.statements[copy].assign.span
        if copy in copies.mismatches:
            return Proof("failed", f"a copy of the assignment at {line} runs under another condition")
        if copies.names[copy] is None:
            return Proof("failed", f"a copy of the assignment at {line} computes something else")
    return None


def _begun(copies: InstanceMaps, reassociate: bool) -> Proof | None:
    """Where assignments are no copies, all that can be said is that a local has no value yet, or its value is lost."""
    if copies.all_copies:
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


def _once(copies: InstanceMaps, reassociate: bool) -> Proof | None:
    """Return a failure unless the copies' iterations are the original's, each exactly once."""
    for name, statement in copies.original.statements.items():
        if statement.is_condition:
            continue
        runs = copies.copies_of(name)
        ranges = [copies.at[c].range() for c in runs]
        whole = copies.original.space.domain(name)
        divided = bool(runs) and _disjoint_within(whole, ranges) and whole.is_subset(_united(copies, runs))
        failure = None if divided else _amiss(copies, statement, ranges)
        if failure is not None:
            return failure
        for c in runs:
            if not copies.at[c].is_injective():
                return _failed(copies, statement, copies.at[c].range(), "may run twice")
    return None


def _disjoint_within(whole: isl.Set, parts: Sequence[isl.Set]) -> bool:
    """No point is in two of the parts, and each of them is in ``whole``."""
    return all(part.is_subset(whole) for part in parts) and all(
        one.is_disjoint(other) for k, one in enumerate(parts) for other in parts[:k]
    )


def _united(copies: InstanceMaps, runs: Sequence[str]) -> isl.Set:
    """Return the original iterations that one of the copies ``runs``, at least one, runs.

    Those that differ in the innermost loop alone are united first: of a loop in pieces, each with eight jammed copies,
    the pieces of one copy merge into every eighth iteration, while the copies of one piece do not merge at all.
    """
    alike: dict[tuple[Expr, ...], list[isl.Set]] = {}
    for c in runs:
        alike.setdefault(copies.finished.statements[c].assign.instance[:-1], []).append(copies.at[c].range())
    return union_by_halves([union_by_halves(parts) for parts in alike.values()])


def _amiss(copies: InstanceMaps, statement: Statement, ranges: Sequence[isl.Set]) -> Proof | None:
    """Which iteration runs too often, or not at all. Slow: with every copy the rest of the domain has more pieces."""
    domain = copies.original.space.domain(statement.name)
    left = domain
    for ran in ranges:
        twice = ran.subtract(left)
        if not twice.is_empty():
            outside = twice.subtract(domain)
            if not outside.is_empty():
                return _failed(copies, statement, outside, "runs, and must not")
            return _failed(copies, statement, twice, "runs twice")
        left = left.subtract(ran)
    if left.is_empty():
        return None
    if any(not depends_on_data(copies.original, a) for a in statement.data_conditions):
        return Proof("unknown", str(statement.unknown))
    return _failed(copies, statement, left, "does not run")


def _failed(copies: InstanceMaps, statement: Statement, where: isl.Set, what: str) -> Proof:
    point, names = lexmin_pair(isl.Map.from_range(where)), copies.original.parameters
    given = assignments_text(dict(zip(names, point, strict=False)))
    at = assignments_text(statement.iteration_text(point[len(names) :], dict(zip(names, point, strict=False))))
    place = f"{f'iteration ({at}) of ' if at else ''}{statement.assign.span}"
    return Proof("failed", f"{place} {what}{f' when {given}' if given else ''}")


def _order(copies: InstanceMaps, reassociate: bool) -> Proof | None:
    """Dependences on arrays that the caller sees; "unknown" where all that are reversed are only assumed."""
    model, broken = copies.original, list[ViolatedDependence]()
    for d in (d for d in model.dependences if d.array not in model.internal_names):
        for first in copies.copies_of(d.source):
            begun = copies.at[first].apply_range(d.map)
            for then in copies.copies_of(d.sink) if not begun.is_empty() else ():
                met = begun.apply_range(copies.at[then].reverse())
                if met.is_empty():
                    continue
                of = d.array, d.op if d.commutes(reassociate) else None
                bad = met.subtract(happens_before(copies.finished, first, then, *of))
                if d.commutes(reassociate):  # either may come first, but not both at once
                    bad = bad.subtract(happens_before(copies.finished, then, first, *of).reverse())
                if not bad.is_empty():
                    back = copies.to_original(first, bad, then)
                    broken.append(ViolatedDependence(d.source, d.sink, back, d.array, reductions=d.op is not None))
    if not broken:
        return None
    witness = find_witness(model.space, model.sizes, broken)
    if witness.because is not None:
        return Proof("unknown", f"{witness.because.what} at {witness.because.span} cannot be analysed", witness)
    return Proof("failed", f"{witness}: {witness.detail()}", witness)


def _reduced(copies: InstanceMaps, reassociate: bool) -> Proof | None:
    """Return a failure if anything but the reducing accumulations accesses the targets of partial sums."""
    model = copies.finished
    summing = {id(f): (d, f) for s in model.statements.values() for d, f in enumerate(s.loops)
               if isinstance(f, Loop) and f.reductions}  # fmt: skip
    for d, f in summing.values():
        inside = {name for name, s in model.statements.items() if len(s.loops) > d and s.loops[d] is f}
        into = [a for n in inside for a in model.space.accesses[n] if combines(f, a.array, a.reduces)]
        kept = sorted({a.text for a in into if not a.commutes(reassociate)})
        if kept:
            return Proof("failed", f"loop {f.var} reduces {', '.join(kept)}, whose order counts")
        around = LoopDependences(model, frozenset(inside), 2 * d + 1, model.order())
        summed = [c for c, _ in around.carried_dependences()[0] if combines(f, c.array, c.op)]
        mixed = sorted(around.mixed({s for c in summed for s in (c.source, c.sink)}))
        if mixed:
            return Proof("failed", f"loop {f.var} reduces {', '.join(mixed)} and also uses it in another way")
    return None


def _values(copies: InstanceMaps, reassociate: bool) -> Proof | None:
    wrong = changed_reads(copies, reassociate)
    return None if wrong is None else Proof(*wrong)


def _bounds(copies: InstanceMaps) -> Proof:
    """Sizes that are parameters are assumed to fit; where none is left, an access outside its array is a failure.

    Where the data say which element it is, or whether it is accessed, it is unknown. What copies an element to another
    array is outside at no sizes at which the original is not.
    """
    if copies.moves:
        moves = [copies.finished.statements[m] for m in sorted(copies.moves)]
        original = [s for s in copies.original.statements.values() if not s.is_condition]
        if not sizes_outside(copies.finished, moves).is_subset(sizes_outside(copies.original, original)):
            return Proof("failed", "a copy of a variable is written to or read from outside its array")
    placed = list(check_bounds(copies.finished))
    assumed = tuple(dict.fromkeys(what for what, place in placed if place == "outside"))
    if copies.finished.parameters:
        return Proof("proved", assumed=assumed)
    if assumed:
        return Proof("failed", f"{assumed[0]} is outside its array")
    unknown = next((what for what, place in placed if place == "unknown"), None)
    if unknown is not None:
        return Proof("unknown", f"whether {unknown} is inside its array cannot be analysed")
    return Proof("proved")
