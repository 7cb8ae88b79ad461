"""The expansion of a variable along loops: whether each of its values stays in one copy, and what is read afterwards.

    for i:  t = A[i]; B[i] = t            ==>      for i:  t_i[i] = A[i]; B[i] = t_i[i]
    C[0] = t                                       if (n >= 1) t = t_i[n - 1]
                                                   C[0] = t

Every read in the loops must get its value from a write in the same iteration of them. What is read after the outermost
of them, in the codelet or by its caller, is copied from the iteration that wrote it last, by element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import islpy as isl

from looptune.ir.def_use import declared_names, names_in
from looptune.ir.nodes import Array, Assign, Cast, Codelet, Const, Expr, Load, Loop, Node, Scalar, Stmt, Var, While
from looptune.ir.rewrite import rewrite, walk_stmts
from looptune.ir.simplify import add, div, fold, max_of, mul, sub
from looptune.poly.affine import name, to_isl
from looptune.poly.coalesce import union_by_halves
from looptune.poly.copy_loops import CopyLoops, extents, over_elements
from looptune.poly.isl_objects import union
from looptune.poly.parameter_values import entry_statement, fresh_names, with_local_parameters
from looptune.poly.scop import Scop, build
from looptune.poly.witness import ViolatedDependence, Violation, find_witness

if TYPE_CHECKING:
    from looptune.poly.access import Access
    from looptune.poly.dataflow import Flow
    from looptune.poly.domain import Unanalysable


@dataclass(frozen=True, slots=True)
class CopyIndex:
    """The copies of a variable along one loop: iteration ``loop.var`` has copy ``(loop.var - lo) / step``.

    ``lo`` is the smallest value of the loop, ``extent`` the number of the copies; both are made of sizes, and are
    counted in ``dtype``, which is signed and holds every value of the loop and of the sizes.
    """

    loop: Loop
    lo: Expr
    extent: Expr
    step: int
    dtype: str

    @property
    def subscript(self) -> Expr:
        return self.at(Var(self.loop.var, self.loop.dtype))

    def at(self, value: Expr) -> Expr:
        """Return the copy of the iteration in which the loop variable is ``value``."""
        return div(sub(fold(Cast(self.dtype, value)), self.lo), Const(self.step, self.dtype))


@dataclass(frozen=True, eq=False)
class Expansion:
    """A variable of ``codelet`` that gets one copy for each iteration of ``loops``, the outermost of them first.

    ``enclosing`` are those around the first of them. ``model`` is that of the codelet in which a parameter array is a
    local, which it fills and stores (``with_local_parameters``).
    """

    codelet: Codelet
    variable: str
    loops: tuple[Loop, ...]
    enclosing: tuple[Loop | While, ...]
    model: Scop

    @staticmethod
    def of(codelet: Codelet, variable: str, loops: Sequence[Loop], enclosing: tuple[Loop | While, ...]) -> Expansion:
        """Read the accesses to a variable; where it is a parameter array, its extents are declared."""
        arrays = {p.name for p in codelet.params if isinstance(p, Array)}
        observed = with_local_parameters(codelet, {variable}) if variable in arrays else codelet
        return Expansion(codelet, variable, tuple(loops), enclosing, build(observed))

    @cached_property
    def inside(self) -> frozenset[str]:
        """Return the names of the statements in the outermost loop."""
        return frozenset(n.name for n in walk_stmts(self.loops[0].body) if isinstance(n, Assign))

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        return self.model.flows(self.variable).flows

    def outside(self) -> Iterator[Access]:
        """Yield the accesses in the outermost loop that are in none of the others."""
        for statement in self.inside:
            if None in self._places(statement):
                yield from (a for a in self.model.space.accesses[statement] if a.array == self.variable)

    def carried(self) -> Violation | None:
        """Return a value that one iteration of the loops passes on to another, as an example, or None."""
        within = (f for f in self.flows if f.write in self.inside and f.read in self.inside)
        bad = [(f, f.map.subtract(self._same_copy(f))) for f in within]
        return self._example([(f, crossing) for f, crossing in bad if not crossing.is_empty()])

    def entering(self) -> Violation | None:
        """Return a value that a statement before the loops passes on to them, as an example, or None."""
        before = (f for f in self.flows if f.write not in self.inside and f.read in self.inside)
        return self._example([(f, f.map) for f in before if f.write != entry_statement(self.variable)])

    def read_before_written(self) -> Access | None:
        """Return a read in the loops that may get the value with which the codelet was called, or None."""
        entry = {f.read for f in self.flows if f.write == entry_statement(self.variable)}
        if any(p.name == self.variable for p in self.model.codelet.params):
            entry |= self.model.flows(self.variable).unwritten.keys()
        for read in (n for n in self.model.statements if n in entry & self.inside):
            return next(a for a in self.model.space.accesses[read] if a.array == self.variable and not a.write)
        return None

    def _same_copy(self, flow: Flow) -> isl.Map:
        """Return { write[iteration] -> read[iteration] : both in one iteration of the loops }."""
        same = isl.Map.universe(flow.map.get_space())
        for a, b in zip(self._places(flow.write), self._places(flow.read), strict=True):
            if a is not None and b is not None:
                same = same.equate(isl.dim_type.in_, a, isl.dim_type.out, b)
        return same

    def _example(self, bad: Sequence[tuple[Flow, isl.Map]]) -> Violation | None:
        broken = [ViolatedDependence(f.write, f.read, pairs, self.variable, "flow") for f, pairs in bad]
        return find_witness(self.model.space, self.model.sizes, broken) if broken else None

    def _places(self, statement: str) -> tuple[int | None, ...]:
        """Return for each of the loops how many stand around it and around the statement; None where it does not."""
        around = self.model.statements[statement].loops
        return tuple(next((k for k, f in enumerate(around) if f is loop), None) for loop in self.loops)

    @cached_property
    def live(self) -> tuple[Flow, ...]:
        """Return the flows out of the loops."""
        return tuple(f for f in self.flows if f.write in self.inside and f.read not in self.inside)

    def unknown_writer(self) -> Unanalysable | None:
        """Return why it is not known which copy holds a value that is read after the loops, or None.

        Whether the last write happens may depend on data, if one before it in the same copy surely does.
        """
        by_write = self._copies_read
        unsure = {w: a for w in by_write if not (a := self._written(w)).must}
        sure = [keys for w, keys in by_write.items() if w not in unsure]
        known = union(sure).domain() if sure else None
        for w, access in unsure.items():
            if None in access.index or known is None or not by_write[w].domain().is_subset(known):
                found = access.unknown if access.unknown is not None else self.model.statements[w].unknown
                assert found is not None, "what is not sure of an access is known"
                return found
        return None

    def _written(self, statement: str) -> Access:
        return next(a for a in self.model.space.accesses[statement] if a.write)

    @property
    def has_last_writers(self) -> bool:
        """Return whether each element that is read after the loops is in one copy that is read."""
        return self.last_copies is None or bool(self.last_copies.is_single_valued())

    @cached_property
    def last_copies(self) -> isl.Map | None:
        """Return { [loops around, element] -> [loop variables] : the iteration whose copy is read after the loops }.

        None where nothing is read. The writers are known.
        """
        found = self._copies_read.values()
        return union(found) if found else None

    @cached_property
    def _copies_read(self) -> Mapping[str, isl.Map]:
        """Return ``last_copies`` by the writing statement."""
        by_write: dict[str, list[isl.Set]] = {}
        for f in self.live:
            by_write.setdefault(f.write, []).append(f.map.domain())
        return {w: self._copies_written(w, union_by_halves(found)) for w, found in by_write.items()}

    def _copies_written(self, statement: str, when: isl.Set) -> isl.Map:
        s, prefix = self.model.statements[statement], self.model.space.prefix
        at = self.model.space.instance(s)
        index = (f"any{k}'" if e is None else e for k, e in enumerate(self._written(statement).index))
        element = (*s.dims[: len(self.enclosing)], *index)
        copies = (s.dims[k] for k in self._places(statement) if k is not None)
        to_element = isl.Map(f"{prefix}{{ {at} -> [{', '.join(element)}] }}").intersect_domain(when)
        return to_element.reverse().apply_range(isl.Map(f"{prefix}{{ {at} -> [{', '.join(copies)}] }}"))

    def copy_index(self, loop: Loop) -> CopyIndex | None:
        """Return the copies along a loop, or None where its bounds are not made of sizes alone."""
        sizes = {*self.model.parameters}
        bounds = [self._isl(e) is not None and names_in(e) <= sizes for e in (loop.lo, loop.hi)]
        counted = {loop.dtype, *(p.dtype for p in self._sizes.values())}
        dtype = "int32" if counted == {"int32"} else "int64"
        lo, hi = (fold(Cast(dtype, e)) if fixed else self._extreme(loop, end, dtype) for e, fixed, end in
                  zip((loop.lo, loop.hi), bounds, ("lo", "hi"), strict=True))  # fmt: skip
        if lo is None or hi is None:
            return None
        # From where a loop begins at various values, the distances are no multiples of its step.
        stride = loop.step if bounds[0] else 1
        step = Const(stride, dtype)
        trips = div(add(sub(hi, lo), sub(step, Const(1, dtype))), step)
        return CopyIndex(loop, lo, trips if self._positive(lo, hi) else max_of(trips, Const(1, dtype)), stride, dtype)

    @property
    def _sizes(self) -> dict[str, Expr]:
        """Return the sizes, and the terms that are sizes to isl, by isl's names."""
        sizes = (p for p in self.codelet.params if isinstance(p, Scalar) and p.name in self.model.parameters)
        return {**{name(p.name): Var(p.name, p.dtype) for p in sizes}, **self.model.space.nest.terms.found}

    def _isl(self, e: Expr) -> str | None:
        return to_isl(self.model.space.nest.terms.replaced(e))

    def _positive(self, lo: Expr, hi: Expr) -> bool:
        space = self.model.space
        return bool(space.context().is_subset(isl.Set(f"{space.prefix}{{ : {self._isl(lo)} < {self._isl(hi)} }}")))

    def _extreme(self, loop: Loop, end: str, dtype: str) -> Expr | None:
        """Return the smallest value of a loop, or the number after its greatest one, where it is a sum of sizes."""
        space = self.model.space
        place = next((r for r in space.nest.ranges if r[0] is loop), None)
        bounds = [self._isl(e) for e in (loop.lo, loop.hi)]
        if place is None or None in bounds:
            return None
        _, dims, domain, _ = place
        runs = " and ".join(c for c in (domain, f"{bounds[0]} <= {name(loop.var)} < {bounds[1]}") if c)
        values = isl.Set(f"{space.prefix}{{ [{', '.join((*dims, name(loop.var)))}] : {runs} }}")
        values = values.project_out(isl.dim_type.set, 0, len(dims)).intersect_params(space.context())
        found = values.dim_min(0) if end == "lo" else values.dim_max(0)
        return _sum_of_sizes(found, self._sizes, dtype, end == "hi")


def _sum_of_sizes(found: isl.PwAff, sizes: Mapping[str, Expr], dtype: str, after: bool) -> Expr | None:
    """Return a value that is one sum of multiples of sizes, plus 1 where it is that ``after`` it; else None."""
    pieces: list[isl.Aff] = []
    found.foreach_piece(lambda _, value: pieces.append(value))
    if len(pieces) != 1 or pieces[0].dim(isl.dim_type.div):
        return None
    (value,) = pieces
    made: Expr = Const(value.get_constant_val().to_python() + after, dtype)
    for k in range(value.dim(isl.dim_type.param)):
        factor = value.get_coefficient_val(isl.dim_type.param, k)
        var = sizes[str(value.get_dim_name(isl.dim_type.param, k))]
        if not factor.is_int():
            return None
        if not factor.is_zero():
            made = add(mul(Const(factor.to_python(), dtype), fold(Cast(dtype, var))), made)
    return made


def copied_out(expansion: Expansion, copies: str, indices: Sequence[CopyIndex]) -> tuple[Stmt, ...]:
    """Return the loops that copy what is read after the loops to the variable, from the array ``copies`` of its copies.

    IslLimitExceeded and GenerationError where they cannot be made.
    """
    last = expansion.last_copies
    if last is None:
        return ()
    frame = _frame(expansion, copies, indices)
    loops = CopyLoops(expansion.codelet, expansion.loops[0], expansion.enclosing, frame, after=True)
    return loops.over(last.wrap().flatten())


def _frame(expansion: Expansion, copies: str, indices: Sequence[CopyIndex]) -> Loop:
    """Return loops over all elements and all copies, around the assignment of the element of the copy."""
    codelet, span = expansion.codelet, expansion.loops[0].span
    declared = next(v for v in (*codelet.params, *codelet.locals) if v.name == expansion.variable)
    shape = extents(declared)
    names = fresh_names("e", len(shape) + len(indices), declared_names(codelet))
    element = tuple(Var(n) for n in names[: len(shape)])
    values = tuple(Var(n, x.dtype) for n, x in zip(names[len(shape) :], indices, strict=True))
    target: Load | Var = Var(declared.name, declared.dtype, span=span)
    if shape:
        target = Load(declared.name, element, declared.dtype, span=span)
    index = (*(x.at(v) for x, v in zip(indices, values, strict=True)), *element)
    made: Stmt = Assign(target, Load(copies, index, declared.dtype, span=span), name="copy_out", span=span)
    for x, v in reversed(tuple(zip(indices, values, strict=True))):
        hi = add(x.lo, mul(Const(x.step, x.dtype), x.extent))
        made = Loop(v.name, x.lo, hi, (made,), x.step, dtype=x.dtype, span=span)
    made = over_elements(element, shape, made)
    assert isinstance(made, Loop), "there are copies along one loop at least"
    return made


def expanded_body(expansion: Expansion, copies: str, indices: Sequence[CopyIndex]) -> Loop:
    """Return the outermost loop with the array ``copies`` in place of the variable."""
    variable, before = expansion.variable, tuple(x.subscript for x in indices)

    def rule(n: Node) -> Node | None:
        match n:
            case Load(array, index, dtype) if array == variable:
                return Load(copies, (*before, *index), dtype, span=n.span)
            case Var(scalar, dtype) if scalar == variable:
                return Load(copies, before, dtype, span=n.span)
            case Loop(private_arrays=own) if variable in own:
                return replace(n, private_arrays=tuple(a for a in own if a != variable))
        return None

    return rewrite(rule, expansion.loops[0])
