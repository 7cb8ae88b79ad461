"""Subscripts that are outside the declared extents of their array, and the sizes for which they are.

for (i = 0; i <= n; i++) a[i] = 0;      a[n]: i = n is outside, at every size
for (i = 0; i < m; i++) a[i] = 0;       a[n]: inside where m <= n, which is assumed
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import islpy as isl

from looptune.core.source import Span
from looptune.ir.c_printer import expression_text
from looptune.ir.nodes import Array, Expr, Load, Local
from looptune.ir.rewrite import has_load, walk
from looptune.poly.access import source_text
from looptune.poly.bounds_check import EvaluationContext, expressions
from looptune.poly.guarded_loads import evaluated_loads
from looptune.poly.isl_limits import QUESTION, IslLimitExceeded, isl_operation_limit
from looptune.poly.witness import lexmin_pair

if TYPE_CHECKING:
    from looptune.poly.domain import Statement
    from looptune.poly.scop import Scop


@dataclass(frozen=True, slots=True)
class OutOfBounds:
    """An ``access`` that is outside of ``declared`` in the iteration ``at`` when the sizes are ``sizes``.

    ``always``: it is outside at every size at which it is made at all. Else ``unless`` is the condition on the sizes
    under which it is inside, or "" if isl does not find a short one.
    """

    access: str
    declared: str
    span: Span
    at: Mapping[str, int]
    sizes: Mapping[str, int]
    always: bool
    unless: str

    def __str__(self) -> str:
        """Return the message for the user.

        >>> str(OutOfBounds("a[i]", "a[n]", Span("f.c", 1, 2), {"i": 1}, {"n": 1}, True, ""))
        'a[i] is outside a[n]: i = 1 when n = 1'
        """
        given = f" when {_listed(self.sizes)}" if self.sizes else ""
        return f"{self.access} is outside {self.declared}{f': {_listed(self.at)}' if self.at else ''}{given}"


@dataclass(frozen=True, slots=True)
class UndecidedAccess:
    """An ``access`` that may be outside of ``declared``: the analysis cannot tell; ``why`` says what decides it."""

    load: Load
    access: str
    declared: str
    span: Span
    why: str

    def __str__(self) -> str:
        return f"{self.access} may be outside {self.declared}: {self.why}"


def undecided_accesses(model: Scop) -> tuple[UndecidedAccess, ...]:
    """Return the accesses that depend on data, in whether or where they are made, in textual order."""
    shapes = _shapes(model)
    found: dict[tuple[str, Span], UndecidedAccess] = {}
    for s in (s for s in model.statements.values() if not s.is_condition):
        try:
            with isl_operation_limit(QUESTION):
                for e, here in expressions(model, s):
                    for load, reached in evaluated_loads(e, here):
                        why = _undecided(load, reached, s, shapes.get(load.array, ()))
                        if why is not None:
                            span = load.span if load.span.line else reached.span
                            one = UndecidedAccess(
                                load, source_text(load), _declared(load, shapes[load.array]), span, why
                            )
                            found.setdefault((one.access, span), one)
        except IslLimitExceeded:
            continue
    return tuple(found.values())


def _undecided(load: Load, reached: EvaluationContext, s: Statement, shape: tuple[Expr | None, ...]) -> str | None:
    """Return what decides, or None where it is inside its array, or outside as far as can be told."""
    nest, reached = reached.model.space.nest, _with_elements(reached, shape)
    for subscript, extent in zip(load.index, shape, strict=False):
        e = nest.affine(subscript, reached.dims)
        n = None if extent is None else nest.affine(extent, ())
        if extent is None or (e is not None and n is not None and reached.exact):
            continue
        if e is None or n is None:
            loads = [source_text(x) for x in walk(subscript) if isinstance(x, Load)]
            return f"this depends on {loads[0]}" if loads else f"{expression_text(subscript)} is not analysed"
        if not reached.domain.is_subset(reached.where(f"0 <= {e} < {n}")):
            conditions = [c for c in s.conditions if has_load(c)]
            return (
                f"it executes only if {expression_text(conditions[-1])}"
                if conditions
                else "whether it executes depends on data"
            )
    return None


def _shapes(model: Scop) -> dict[str, tuple[Expr | None, ...]]:
    return {p.name: p.shape for p in (*model.codelet.params, *model.codelet.locals) if isinstance(p, Array | Local)}


def _declared(load: Load, shape: tuple[Expr | None, ...]) -> str:
    return load.array + "".join(f"[{'' if e is None else expression_text(e)}]" for e in shape)


def out_of_bounds_accesses(model: Scop) -> tuple[OutOfBounds, ...]:
    """Return the accesses that surely happen and are outside their arrays, in textual order.

    Statements for which isl reaches its limit are left out.
    """
    shapes = _shapes(model)
    found: dict[tuple[str, Span], OutOfBounds] = {}
    for s in (s for s in model.statements.values() if not s.is_condition):
        try:
            with isl_operation_limit(QUESTION):
                for leaves in _of(model, s, shapes):
                    found.setdefault((leaves.access, leaves.span), leaves)
        except IslLimitExceeded:
            continue
    return tuple(found.values())


def iterations_inside(model: Scop, s: Statement) -> isl.Set:
    """Return the iterations of a statement but those in which, if it runs, it accesses what is outside of an array."""
    shapes, inside = _shapes(model), model.space.domain(s.name)
    for load, reached in _evaluated(model, s, exact=True):
        if reached.exact and load.array in shapes:
            for bad in _outside(load, reached, shapes[load.array]):
                inside = inside.subtract(bad)
    return inside


def _evaluated(model: Scop, s: Statement, *, exact: bool) -> Iterator[tuple[Load, EvaluationContext]]:
    here = EvaluationContext(model, s.assign.span, s.dims, model.space.instance(s), model.space.domain(s.name), exact)
    for e in (s.assign.target, s.assign.value):
        yield from evaluated_loads(e, here)


def _of(model: Scop, s: Statement, shapes: Mapping[str, tuple[Expr | None, ...]]) -> Iterator[OutOfBounds]:
    for load, reached in _evaluated(model, s, exact=s.exact):
        if reached.exact and load.array in shapes:
            there = _with_elements(reached, shapes[load.array])
            bad = next(_outside(load, there, shapes[load.array]), None)
            if bad is not None:
                yield _leaves(model, s, load, there, bad, shapes[load.array])


def _with_elements(reached: EvaluationContext, shape: tuple[Expr | None, ...]) -> EvaluationContext:
    """Where the array has elements, as C demands of what is declared."""
    nest = reached.model.space.nest
    extents = [n for n in (nest.affine(e, ()) for e in shape if e is not None) if n is not None]
    there = reached.where(" and ".join(f"{n} >= 1" for n in extents) or "true")
    return replace(reached, domain=reached.domain.intersect(there))


def _outside(load: Load, reached: EvaluationContext, shape: tuple[Expr | None, ...]) -> Iterator[isl.Set]:
    """Yield, by subscript, the iterations in which an element is outside the declared extents."""
    nest = reached.model.space.nest
    for subscript, extent in zip(load.index, shape, strict=True):
        if extent is None:
            continue
        e, n = nest.affine(subscript, reached.dims), nest.affine(extent, ())
        if e is not None and n is not None:
            bad = reached.domain.subtract(reached.where(f"0 <= {e} < {n}"))
            if not bad.is_empty():
                yield bad


def _leaves(
    model: Scop, s: Statement, load: Load, reached: EvaluationContext, bad: isl.Set, shape: tuple[Expr | None, ...]
) -> OutOfBounds:
    made, outside = reached.domain.params(), bad.params()
    fits = made.subtract(outside)
    point = lexmin_pair(isl.Map.from_range(bad))
    sizes = dict(zip(model.parameters, point, strict=False))
    declared = _declared(load, shape)
    span = load.span if load.span.line else reached.span
    named = {n: v for n, v in sizes.items() if bad.involves_dims(isl.dim_type.param, model.parameters.index(n), 1)}
    at = s.iteration_text(point[len(sizes) :], sizes)
    return OutOfBounds(source_text(load), declared, span, at, named, fits.is_empty(), _text(fits.gist(made)))


def _text(sizes: isl.Set) -> str:
    """Return the condition, where it is a short one."""
    parts = [str(part).partition(":")[2].strip(" }") for part in sizes.get_basic_sets()]
    said = " or ".join(parts)
    return said if len(said) <= 80 and "exists" not in said else ""


def _listed(values: Mapping[str, int]) -> str:
    return ", ".join(f"{k} = {v}" for k, v in values.items())
