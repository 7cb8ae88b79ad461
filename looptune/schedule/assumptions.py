"""The assumptions that a codelet makes about its callers, as text.

no overlap     in C two pointers may point to one memory, and another order might then leave other values; so may two
               rows of an array of pointers
extents        arrays contain what the loops access; some subscripts are inside only at some sizes or for some data
sizes          relations of sizes on which the analysis of subscripts such as ``i * lda + j`` rests
overflow       subscripts and bounds are assumed to fit their types
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from looptune.ir.c_printer import expression_text
from looptune.ir.nodes import Array, Binary, Codelet, Const, Expr, If, Loop, Node, Stmt, Unary, Var, While
from looptune.ir.rewrite import rewrite, walk
from looptune.poly import array_extent

if TYPE_CHECKING:
    from looptune.frontend import Unit
    from looptune.poly.array_extent import Around, Poly
    from looptune.poly.out_of_bounds import OutOfBounds, UndecidedAccess

SHOWN = 3
"""Conditions of one kind that a summary lists."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a codelet assumes about its callers and its data.

    ``disjoint_pairs``: pairs of arrays that do not overlap; ``disjoint_arrays``: written arrays that overlap no other
    array; ``extents``: the extents of each array; ``in_bounds``: sentences that say which subscripts are inside their
    arrays; ``no_overflow``: expressions that do not overflow; ``relations``: relations of sizes; ``more``: further
    sentences; ``disjoint_rows``: arrays of pointers whose rows do not overlap; ``constant_fields``: scalar fields of
    structs, which no array that is written contains; ``nonnull``: pointers that are not null.
    """

    disjoint_pairs: tuple[tuple[str, str], ...]
    disjoint_arrays: tuple[str, ...]
    extents: Mapping[str, tuple[str, ...]]
    in_bounds: tuple[str, ...]
    no_overflow: tuple[str, ...]
    relations: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    disjoint_rows: tuple[str, ...] = ()
    constant_fields: tuple[str, ...] = ()
    nonnull: tuple[str, ...] = ()

    def sentences(self) -> tuple[str, ...]:
        """Return each assumption as a sentence."""
        pairs = ", ".join(f"{p} and {q}" for p, q in self.disjoint_pairs)
        found = [f"these do not overlap: {pairs}"] if pairs else []
        found += [f"the rows of {name} do not overlap" for name in self.disjoint_rows]
        fields = _listed(self.constant_fields) if self.constant_fields else ""
        found += [f"no array that is written contains {fields}"] if fields else []
        found += [f"{name} is not null" for name in self.nonnull]
        found += [f"the arrays are at least as large as {self._extents()}"] if self.extents else []
        found += [f"the sizes are such that {', '.join(self.relations)}"] if self.relations else []
        found += [*self.in_bounds, "no signed integer overflows in a subscript or a bound"]
        found[-1] += f": {', '.join(self.no_overflow)}" if self.no_overflow else ""
        return (*found, *self.more)

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return the same assumptions in a few words, each with its subject."""
        rest = [pair for pair in self.disjoint_pairs if not {*pair} & {*self.disjoint_arrays}]
        apart = [f"{_listed(self.disjoint_arrays)} with any other array"] if self.disjoint_arrays else []
        apart += [f"{_listed([q for p, q in rest if p == first])} with {first}" for first in dict(rest)]
        found = [("no overlap", f"of {', '.join(_few(apart))}")] if apart else []
        found += [("no overlap", f"of the rows of {_listed(self.disjoint_rows)}")] if self.disjoint_rows else []
        fields = _listed(self.constant_fields) if self.constant_fields else ""
        found += [("no overlap", f"of {fields} with an array that is written")] if fields else []
        found += [("not null", _listed(self.nonnull))] if self.nonnull else []
        found += [("reached", self._extents())] if self.extents else []
        found += [("sizes", ", ".join(self.relations))] if self.relations else []
        found += [("inside", "; ".join(_few(self.in_bounds)))] if self.in_bounds else []
        found += [("no overflow", f"of {', '.join(_few(self.no_overflow))}")] if self.no_overflow else []
        return (*found, *(("besides", what) for what in self.more))

    def _extents(self) -> str:
        return ", ".join(a + "".join(f"[{n}]" for n in extents) for a, extents in self.extents.items())


def find_assumptions(
    unit: Unit,
    leaves: Sequence[OutOfBounds],
    unsure: Sequence[UndecidedAccess],
    relations: Sequence[object] = (),
    more: Sequence[str] = (),
) -> Assumptions:
    """Return the assumptions of a unit.

    ``leaves``: accesses that are outside their arrays at some sizes; ``unsure``: accesses for which that depends on
    data; ``relations``: of sizes, as the analysis assumes them; ``more``: sentences to add.
    """
    codelet, pairs = unit.codelet, may_overlap(unit)
    arrays = [p for p in codelet.params if isinstance(p, Array)]
    anything = tuple(
        p.name for p in arrays
        if p.io != "in" and len(arrays) > 1 and sum(p.name in pair for pair in pairs) == len(arrays) - 1
    )  # fmt: skip
    reached = array_extent.required_extents(codelet)
    inside = [f"{x.access} is inside {x.declared}{f': {x.unless}' if x.unless else ''}" for x in leaves if not x.always]
    inside += [f"{x.access} is inside {x.declared}: {x.why}" for x in unsure if not _bounded(codelet, x)]
    open_ = {a for a, extents in reached.items() if "?" in extents}
    inside += [f"the accessed extent of {a} does not follow from the sizes" for a in sorted(open_)]
    return Assumptions(
        pairs, anything, reached, tuple(dict.fromkeys(inside)), may_overflow(codelet),
        tuple(map(str, relations)), tuple(more), rows_may_overlap(unit), _constant_fields(unit),
        tuple(name for part in unit.parts for name in part.nonnull),
    )  # fmt: skip


def _constant_fields(unit: Unit) -> tuple[str, ...]:
    """Return the scalar fields of structs that a pointer to written memory may lead to."""
    pointers = _pointers(unit)
    if not any(isinstance(p, Array) and p.io != "in" and p.name in pointers for p in unit.codelet.params):
        return ()
    return tuple(field for part in unit.parts for field in part.scalar_fields)


def rows_may_overlap(unit: Unit) -> tuple[str, ...]:
    """Return the written arrays of pointers of which C allows two rows to be the same memory."""
    written = {p.name for p in unit.codelet.params if isinstance(p, Array) and p.io != "in"}
    return tuple(name for name in unit.rows if name in unit.parts[0].pointers and name in written)


def may_overlap(unit: Unit, *, restrict: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the pairs of array parameters, one of them written, that C allows to overlap.

    Pairs whose text says ``restrict`` are among them if ``restrict`` is set, since a caller can overlap these too.
    """
    scalars = {name for part in unit.parts for name in part.element_names}
    arrays = [p for p in unit.codelet.params if isinstance(p, Array) and p.name not in scalars]
    pointers = _pointers(unit)
    unique = {p.name for p in arrays if not restrict and _restrict(unit.text, p.name)} - unit.rows.keys()
    return tuple(
        (p.name, q.name)
        for p, q in combinations(arrays, 2)
        if p.io != "in" or q.io != "in"
        if {p.name, q.name} & pointers and not {p.name, q.name} & unique
    )


def may_overflow(codelet: Codelet) -> tuple[str, ...]:
    """Return the signed 32-bit computations in subscripts and bounds that overflow at some sizes."""
    sizes = array_extent.sizes_of(codelet)
    found = [
        e
        for load, index, around in array_extent.array_accesses(codelet)
        for e in index
        if _may_overflow(e, around, sizes)
    ]
    found += [e for e, around in _bounds(codelet.body, ()) if _may_overflow(e, around, sizes)]
    return tuple(dict.fromkeys(map(expression_text, found)))


def _bounds(body: Sequence[Stmt], around: Around) -> Iterator[tuple[Expr, Around]]:
    for stmt in body:
        match stmt:
            case Loop(_, lo, hi, inner):
                yield from ((lo, around), (hi, around))
                yield from _bounds(inner, (*around, stmt))
            case If(_, then, other):
                yield from _bounds((*then, *other), around)
            case While(_, inner):
                yield from _bounds(inner, around)


def _may_overflow(e: Expr, around: Around, sizes: frozenset[str]) -> bool:
    parts = (n for n in walk(e) if isinstance(n, Binary | Unary) and n.op in ("+", "-", "*") and n.dtype == "int32")
    return any(not (_fits(n, around, sizes) and _fits(Unary("-", n), around, sizes)) for n in parts)


def _fits(e: Expr, around: Around, sizes: frozenset[str]) -> bool:
    """Tell whether it is not greater than what 32 bits hold, each size being a number that they hold."""
    rests = {f"% {n.rhs.value}": abs(int(n.rhs.value)) - 1
             for n in walk(e) if isinstance(n, Binary) and n.op == "%" and isinstance(n.rhs, Const)}  # fmt: skip
    named = rewrite(_rest, e)
    bound = array_extent.bound(named, around, sizes | rests.keys())
    if bound is None:
        return False
    least = bound.get((), 0) + sum(abs(k) * rests[at[0]] for at, k in bound.items() if len(at) == 1 and at[0] in rests)
    more = {at: k for at, k in bound.items() if at and k > 0 and not (len(at) == 1 and at[0] in rests)}
    if not more:
        return least <= 2**31
    return least <= 1 and [*more.values()] == [1] and all(len(at) == 1 for at in more)


def _rest(e: Node) -> Var | None:
    """Return a name for a remainder by a constant, which is less than that constant."""
    return Var(f"% {e.rhs.value}") if isinstance(e, Binary) and e.op == "%" and isinstance(e.rhs, Const) else None


def _bounded(codelet: Codelet, x: UndecidedAccess) -> bool:
    """Return whether a formula shows that the access is inside its array after all."""
    sizes = array_extent.sizes_of(codelet)
    shape = next((p.shape for p in codelet.params if isinstance(p, Array) and p.name == x.load.array), ())
    for load, index, around in array_extent.array_accesses(codelet):
        if load is x.load and shape:
            return all(
                extent is None or _below(e, extent, around, sizes) for e, extent in zip(index, shape, strict=True)
            )
    return False


def _below(e: Expr, extent: Expr, around: Around, sizes: frozenset[str]) -> bool:
    most, end = array_extent.bound(e, around, sizes), array_extent.polynomial(extent, sizes)
    least = array_extent.bound(Unary("-", e), around, sizes)
    zero: Poly = {(): 1}
    return (
        most is not None
        and end is not None
        and least is not None
        and (array_extent.never_greater(most, end) and array_extent.never_greater(least, zero))
    )


def _few(texts: Sequence[str]) -> list[str]:
    if len(texts) <= SHOWN:
        return [*texts]
    return [*texts[:SHOWN], f"and {len(texts) - SHOWN} more (--legal-space)"]


def _listed(names: Sequence[str]) -> str:
    """Return the names as an enumeration."""
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])


def _pointers(unit: Unit) -> set[str]:
    """Return the array parameters that are pointers in the text; others are arrays at file scope or of a function."""
    return {
        p.name
        for p in unit.codelet.params
        if isinstance(p, Array) and any(part.names.get(p.name, p.name) in part.pointers for part in unit.parts)
    }


def _restrict(text: str, name: str) -> bool:
    return re.search(rf"\b_*restrict_*\s+{re.escape(name)}\b|\b{re.escape(name)}\s*\[\s*_*restrict", text) is not None
