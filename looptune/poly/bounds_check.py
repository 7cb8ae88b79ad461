"""Check that every access is inside its array where it is evaluated; C evaluates one side of ``?:`` only.

A[i] = i > 0 ? B[i - 1] : 0          B[i - 1] is read where i > 0
if (i < n && B[i] > 0) A[i] = 1      B[i] is read where i < n; A[i] is written there too, as far as is known
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import islpy as isl

from looptune.core.source import Span
from looptune.ir.nodes import Array, Expr, Load, Local
from looptune.poly.access import source_text
from looptune.poly.guarded_loads import evaluated_loads
from looptune.poly.scop import Scop

if TYPE_CHECKING:
    from looptune.poly.domain import Statement

Shape = tuple[Expr | None, ...]
Place = Literal["inside", "outside", "unknown"]


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """The iterations in which an expression is evaluated.

    These are those of ``domain``, called ``instance`` over ``dims``, or, if that is not ``exact``, some of them.
    """

    model: Scop
    span: Span
    dims: tuple[str, ...]
    instance: str
    domain: isl.Set
    exact: bool

    def where(self, condition: str) -> isl.Set:
        return isl.Set(f"{self.model.space.prefix}{{ {self.instance} : {condition} }}")

    def with_condition(self, cond: Expr, wanted: bool) -> EvaluationContext:
        held, exact = self.model.space.nest.condition(cond, wanted, self.dims)
        return replace(self, domain=self.domain.intersect(self.where(held)), exact=self.exact and exact)

    def elements(self, index: tuple[Expr, ...], shape: Shape) -> Place:
        """Return whether the element with this ``index`` is inside an array of this ``shape``."""
        found: set[Place] = set()
        for subscript, extent in zip(index, shape, strict=True):
            if extent is not None:
                found.add(self.place(subscript, extent))
        return next((p for p in ("outside", "unknown") if p in found), "inside")

    def place(self, subscript: Expr, extent: Expr) -> Place:
        nest = self.model.space.nest
        e, n = nest.affine(subscript, self.dims), nest.affine(extent, ())
        if e is None:
            return "unknown"
        if n is not None and self.domain.is_subset(self.where(f"0 <= {e} < {n}")):
            return "inside"
        return "outside" if self.exact else "unknown"

    def outside(self, subscript: Expr, extent: Expr) -> isl.Set:
        """Return the iterations in which the subscript is outside, none where it cannot be analysed."""
        nest = self.model.space.nest
        e, n = nest.affine(subscript, self.dims), nest.affine(extent, ())
        if e is None or n is None or not self.exact:
            return self.domain.intersect(self.where("false"))
        return self.domain.subtract(self.where(f"0 <= {e} < {n}"))


def check_bounds(model: Scop) -> Iterator[tuple[str, Place]]:
    """Yield each array access, as ``A[i] at FILE:LINE:COLUMN``, and whether it is inside its array."""
    shapes = _shapes(model)
    for s in (s for s in model.statements.values() if not s.is_condition):
        for node, here in _loads(model, s):
            span = node.span if node.span.line else here.span
            yield f"{source_text(node)} at {span}", here.elements(node.index, shapes[node.array])


def sizes_outside(model: Scop, statements: Iterable[Statement]) -> isl.Set:
    """Return the sizes at which a statement is known to access an element outside its array."""
    shapes, found = _shapes(model), isl.Set(f"{model.space.prefix}{{ : false }}")
    for s in statements:
        for node, here in _loads(model, s):
            for subscript, extent in zip(node.index, shapes[node.array], strict=True):
                if extent is not None:
                    found = found.union(here.outside(subscript, extent).params())
    return found


def _shapes(model: Scop) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {}
    for p in (*model.codelet.params, *model.codelet.locals):
        match p:
            case Array(name, _, shape) | Local(name, _, shape):
                shapes[name] = shape
    return shapes


def _loads(model: Scop, s: Statement) -> Iterator[tuple[Load, EvaluationContext]]:
    for e, reached in expressions(model, s):
        yield from evaluated_loads(e, reached)


def expressions(model: Scop, s: Statement) -> Iterator[tuple[Expr, EvaluationContext]]:
    """Yield the expressions that the statement evaluates, and the conditions on data around it."""
    context = model.space.context()
    for k, a in enumerate(s.data_conditions):
        dims = s.dims[: a.loops]
        instance = f"{s.name}[{', '.join(dims)}]"
        domain = isl.Set(f"{model.space.prefix}{{ {instance} : {a.domain or 'true'} }}").intersect_params(context)
        yield a.cond, EvaluationContext(model, s.assign.span, dims, instance, domain, k == 0)
    here = EvaluationContext(model, s.assign.span, s.dims, model.space.instance(s), model.space.domain(s.name), s.exact)
    yield s.assign.target, here
    yield s.assign.value, here
