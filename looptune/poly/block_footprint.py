"""The elements of an array that the statements of a block access: a box that holds them, and loops over them.

    for t in 8*b .. 8*b + 8: for i in 16*c .. 16*c + 16: A[i - t] += A[i - t - 1]
        box         A[16*c - 8*b - 8] and 24 elements more, whatever b and c
        written     for e in 16*c - 8*b - 7 .. 16*c - 8*b + 16: A[e]           each element once

What the block's statements share, such as b and c, are sizes here. The loops over what may be accessed are those of a
hull, within the array; those over what may be written are exact, since others may write beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count

import islpy as isl

from looptune.ir.intervals import bound_terms
from looptune.ir.nodes import Array, Assign, Binary, Codelet, Const, Expr, If, Local, Loop, Node, Scalar, Stmt, Var
from looptune.ir.rewrite import conjunction, rewrite
from looptune.ir.simplify import add, max_of, min_of, mul, sub
from looptune.poly.affine import name
from looptune.poly.isl_limits import QUESTION, isl_operation_limit
from looptune.poly.scop import Scop, build


class NoFootprint(Exception):
    """A block can have no copy of the elements; the message is a clause. Lowering refuses the directive."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Along a dimension, the elements from ``first`` on, ``count`` of them."""

    first: Expr
    count: int


@dataclass(frozen=True, eq=False)
class BlockFootprint:
    """The elements of one array that ``model`` accesses, and of these those that it may write, if any."""

    model: Scop
    array: str
    shape: tuple[Expr, ...]
    accessed: isl.BasicSet
    written: isl.BasicSet | None

    @staticmethod
    def of(codelet: Codelet, body: tuple[Stmt, ...], shared: Sequence[Var], array: str) -> BlockFootprint:
        """Return the footprint of ``body`` in an array of ``codelet``.

        ``shared``: the variables that are the same for all of the body. NoFootprint where a subscript may be anything,
        or what is written has gaps; IslLimitExceeded where isl gives up.
        """
        numbers = count()

        def rule(n: Node) -> Node | None:
            match n:
                case Assign():
                    return replace(n, name=f"S{next(numbers)}")
                case Loop():
                    return _with_single_bounds(n)
            return None

        known = {p.name for p in codelet.params}
        params = (*codelet.params, *(Scalar(v.name, v.dtype) for v in shared if v.name not in known))
        shape = next(v.shape for v in (*params, *codelet.locals) if isinstance(v, (Array, Local)) and v.name == array)
        extents = tuple(e for e in shape if e is not None)
        if len(extents) < len(shape):
            raise NoFootprint("its first extent is not declared")
        with isl_operation_limit(QUESTION):
            model = build(replace(codelet, params=params, body=rewrite(rule, body)))
            found = [a for s in model.space.accesses.values() for a in s if a.array == array]
            if any(None in a.index for a in found):
                raise NoFootprint("its subscripts are not sums of loop variables and sizes")
            written = [model.space.touched(a) for a in found if a.write]
            hull = _hull(written) if written else None
            if hull is not None and not hull.to_set().is_subset(reduce(isl.Set.union, (m.range() for m in written))):
                raise NoFootprint("there are others between the elements that it writes")
            return BlockFootprint(model, array, extents, _hull([model.space.touched(a) for a in found]), hull)

    @property
    def empty(self) -> bool:
        """Return whether nothing is accessed, whatever the sizes."""
        return bool(self.accessed.is_empty())

    def box(self) -> tuple[Extent, ...]:
        """Return the least box of constant extents that holds all elements. NoFootprint if there is none."""
        with isl_operation_limit(QUESTION):
            made = [self._extent(d) for d in range(len(self.shape))]
        found = [e for e in made if e is not None]
        if len(found) < len(made):
            raise NoFootprint("how many elements a block uses is not a number: tile it")
        return tuple(found)

    def _extent(self, d: int) -> Extent | None:
        """Return the extent along a dimension, from that lower bound that is nearest to all elements."""
        rank, set_ = self.accessed.dim(isl.dim_type.set), isl.dim_type.set
        along = self.accessed.project_out(set_, d + 1, rank - d - 1).project_out(set_, 0, d).remove_divs()
        bounds = [b for b in _inequalities(along, self.model, (Var(""),)) if b.least]
        found = [(n, b.value) for b in bounds if (n := b.most_in(along)) is not None]
        least = min(found, key=lambda each: each[0], default=None)
        return None if least is None else Extent(least[1], least[0] + 1)

    def loads(self, body: Assign, element: Sequence[Var]) -> tuple[Stmt, ...]:
        """Return loops of ``body``, which copies the ``element``, over what is accessed."""
        return self._loops(self.accessed, body, element)

    def stores(self, body: Assign, element: Sequence[Var]) -> tuple[Stmt, ...]:
        """Return loops of ``body``, which copies the ``element``, over what may be written."""
        return () if self.written is None else self._loops(self.written, body, element)

    def _loops(self, elements: isl.BasicSet, body: Assign, element: Sequence[Var]) -> tuple[Stmt, ...]:
        bounds = _inequalities(elements, self.model, element)
        guards = [b.holds for b in bounds if b.level >= 0 and not b.is_range]
        inner: tuple[Stmt, ...] = (If(conjunction(guards), (body,)),) if guards else (body,)
        for d, (var, extent) in reversed(list(enumerate(zip(element, self.shape, strict=True)))):
            own = [b for b in bounds if b.level == d and b.is_range]
            lows: list[Expr] = [Const(0, var.dtype), *(b.value for b in own if b.least)]
            highs = [extent, *(b.value for b in own if not b.least)]
            low, high = reduce(max_of, dict.fromkeys(lows)), reduce(min_of, dict.fromkeys(highs))
            inner = (Loop(var.name, low, high, inner, dtype=var.dtype),)
        given = [b.holds for b in bounds if b.level < 0]
        return (If(conjunction(given), inner),) if given else inner


def _with_single_bounds(loop: Loop) -> Loop:
    """Return the loop from the first to the first of its bounds, and its body under the others as conditions.

    isl makes a set of several pieces of a minimum or maximum, which it cannot always join again.
    """
    var, (low, *lows), (high, *highs) = (
        Var(loop.var, loop.dtype),
        bound_terms(loop.lo, "max"),
        bound_terms(loop.hi, "min"),
    )
    given = [Binary(">=", var, e) for e in lows] if loop.step == 1 else []
    given += [Binary("<", var, e) for e in highs]
    if not given:
        return loop
    return replace(loop, lo=low if loop.step == 1 else loop.lo, hi=high, body=(If(conjunction(given), loop.body),))


def _hull(touched: Sequence[isl.Map]) -> isl.BasicSet:
    """Return a polyhedron around what some accesses touch; it holds no other elements if ``remove_divs`` adds none."""
    every = [whole.range() for whole in touched]
    parts = [m.range().remove_divs().to_set() for whole in touched for m in whole.get_basic_maps()]
    return reduce(isl.Set.union, parts, isl.Set.empty(every[0].get_space())).simple_hull().remove_redundancies()


@dataclass(frozen=True, slots=True)
class _Inequality:
    """``constant`` + the sum of ``terms`` + ``factor`` * ``element`` >= 0; ``level`` is the element's dimension.

    Of the dimensions named, it is the last; -1 where none is.
    """

    level: int
    factor: int
    element: Var
    terms: tuple[tuple[int, Expr], ...]
    constant: int
    constraint: isl.Constraint

    @property
    def is_range(self) -> bool:
        return abs(self.factor) == 1

    @property
    def least(self) -> bool:
        """Return whether it is a lower bound of the element itself."""
        return self.factor == 1

    @property
    def value(self) -> Expr:
        """Return the element's first value, or the one after its last."""
        if self.least:
            return sum_of([(-k, e) for k, e in self.terms], -self.constant, self.element.dtype)
        return sum_of(self.terms, self.constant + 1, self.element.dtype)

    @property
    def holds(self) -> Expr:
        terms = [*self.terms, (self.factor, self.element)] if self.factor else self.terms
        return Binary(">=", sum_of(terms, self.constant, self.element.dtype), Const(0, self.element.dtype))

    def most_in(self, along: isl.BasicSet) -> int | None:
        """Return how far elements of { [x] } are from the bound at most, or None if there is no limit."""
        value = isl.Map.from_aff(self.constraint.get_aff()).intersect_domain(along.to_set()).range()
        value = value.project_out(isl.dim_type.param, 0, value.dim(isl.dim_type.param))
        most = value.dim_max_val(0)
        return int(most.to_python()) if most.is_int() else None


def _inequalities(elements: isl.BasicSet, model: Scop, element: Sequence[Var]) -> list[_Inequality]:
    """Return the inequalities of a set without existential dimensions; an equality is two of them."""
    values = _values(model)
    found: list[_Inequality] = []
    for c in elements.get_constraints():
        names = [str(c.get_dim_name(isl.dim_type.param, k)) for k in range(c.dim(isl.dim_type.param))]
        sizes = [c.get_coefficient_val(isl.dim_type.param, k).to_python() for k in range(len(names))]
        along = [c.get_coefficient_val(isl.dim_type.set, k).to_python() for k in range(len(element))]
        constant = c.get_constant_val().to_python()
        for sign in (1, -1) if c.is_equality() else (1,):
            level = max((k for k, n in enumerate(along) if n), default=-1)
            terms = [(sign * k, values[n]) for k, n in zip(sizes, names, strict=True) if k]
            terms += [(sign * k, e) for k, e in zip(along[: max(level, 0)], element, strict=False) if k]
            factor, own = (sign * along[level], element[level]) if level >= 0 else (0, element[0])
            aff = isl.Constraint.inequality_from_aff(c.get_aff() if sign == 1 else c.get_aff().neg())
            found.append(_Inequality(level, factor, own, tuple(terms), sign * constant, aff))
    return found


def sum_of(terms: Sequence[tuple[int, Expr]], constant: int, dtype: str) -> Expr:
    """Return a sum, in which what is added is first."""
    total: Expr = Const(max(constant, 0), dtype)
    for factor, value in sorted(terms, key=lambda each: each[0] < 0):
        part = mul(Const(abs(factor), value.dtype), value)
        total = add(total, part) if factor > 0 else sub(total, part)
    return sub(total, Const(-constant, dtype)) if constant < 0 else total


def _values(model: Scop) -> Mapping[str, Expr]:
    """Return what isl's parameters stand for."""
    sizes = (p for p in model.codelet.params if isinstance(p, Scalar))
    return {name(p.name): Var(p.name, p.dtype) for p in sizes} | dict(model.space.nest.terms.found)
