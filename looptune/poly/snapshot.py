"""The values that an array has before a loop: which reads of the loop take them, and where a copy of them replaces it.

    for i:  B[i] = B[i] + B[i + 1]      ==>      for e in 1..n: B_old[e] = B[e]
                                                 for i:  B[i] = B[i] + B_old[i + 1]

A read takes a copy if a later iteration overwrites its element, and nothing in the loop writes it before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import islpy as isl

from looptune.ir.def_use import declared_names
from looptune.ir.nodes import Array, Assign, Codelet, If, Load, Local, Loop, Node, Stmt, Var, While
from looptune.ir.rewrite import rewrite, rewrite_stmts, walk_stmts
from looptune.poly.copy_loops import CopyLoops, extents, over_elements
from looptune.poly.parameter_values import fresh_names
from looptune.poly.reduction import accumulation
from looptune.poly.scop import Scop, build
from looptune.poly.witness import ViolatedDependence, Violation, find_witness

if TYPE_CHECKING:
    from looptune.poly.access import Access


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The values of ``declared``, an array of declared extents, when ``loop`` of ``codelet`` begins.

    ``enclosing`` are the loops around it: what they have written before belongs to these values.
    """

    codelet: Codelet
    declared: Array | Local
    loop: Loop
    enclosing: tuple[Loop | While, ...]
    model: Scop

    @staticmethod
    def of(codelet: Codelet, declared: Array | Local, loop: Loop, enclosing: tuple[Loop | While, ...]) -> Snapshot:
        """Read the accesses to an array."""
        return Snapshot(codelet, declared, loop, enclosing, build(codelet))

    @cached_property
    def overwritten(self) -> tuple[Access, ...]:
        """The reads of which a later iteration of the loop overwrites the element."""
        return tuple(a for a in self._reads() if any(not self._later(a, w).is_empty() for w in self._writes))

    @cached_property
    def old(self) -> tuple[Access, ...]:
        """Return those of the reads whose value is from before the loop in every iteration."""
        return tuple(a for a in self.overwritten if not any(self._earlier(a)))

    def new(self) -> Violation:
        """Return a value that the loop writes and one of the ``overwritten`` reads takes, as an example."""
        broken = [b for a in self.overwritten for b in self._earlier(a)]
        return find_witness(self.model.space, self.model.sizes, broken)

    def _earlier(self, read: Access) -> Iterator[ViolatedDependence]:
        """Yield the writes of the loop that come before a read of the same element."""
        for w in self._writes:
            pairs = self._same_element(w, read).intersect(self.model.space.before(w.statement, read.statement))
            if not pairs.is_empty():
                yield ViolatedDependence(w.statement, read.statement, pairs, read.array, "flow")

    def _later(self, read: Access, write: Access) -> isl.Map:
        """Return { read[iteration] -> write[iteration] } of one element, the write in a later iteration of the loop."""
        pairs = self._same_element(read, write)
        place = len(self.enclosing)
        return pairs.order_lt(isl.dim_type.in_, place, isl.dim_type.out, place)

    def _same_element(self, first: Access, then: Access) -> isl.Map:
        """Return { first[iteration] -> then[iteration] : one element, in one iteration of the loops around }."""
        pairs = self.model.space.touched(first).apply_range(self.model.space.touched(then).reverse())
        for k in range(len(self.enclosing)):
            pairs = pairs.equate(isl.dim_type.in_, k, isl.dim_type.out, k)
        return pairs

    def _accesses(self) -> Iterator[Access]:
        names = {n.name for n in walk_stmts(self.loop.body) if isinstance(n, Assign)}
        every = self.model.space.accesses
        return (a for s in every if s in names for a in every[s] if a.array == self.declared.name)

    @cached_property
    def _writes(self) -> tuple[Access, ...]:
        return tuple(a for a in self._accesses() if a.write)

    def _reads(self) -> Iterator[Access]:
        return (a for a in self._accesses() if not a.write)

    @cached_property
    def _compared(self) -> frozenset[str]:
        """The statements that keep an extreme value, whose condition is a part of them: ``if (x < a[i]) x = a[i]``."""
        found = set()
        for n in walk_stmts((self.loop,)):
            match n:
                case If(cond, (Assign() as assign,), ()):
                    into = accumulation(assign, cond)
                    if into is not None and into.extra_conditions is not None:
                        found.add(assign.name)
        return frozenset(found)

    def reading_copy(self, copy: str) -> Loop:
        """Return the loop whose ``old`` reads take their values from the array ``copy``."""
        found = {(a.statement, a.subscripts) for a in self.old}
        terms = self.model.space.nest.named_terms

        def reading(statement: str, e: Any) -> Any:
            def within(e: Node) -> Node | None:
                if isinstance(e, Load) and e.array == self.declared.name:
                    known = (statement, tuple(map(terms, e.index))) in found
                    return replace(e, array=copy) if known else None
                return None

            return rewrite(within, e)

        def rule(n: Stmt) -> Stmt | None:
            match n:
                case If(cond, (Assign(name=name),), ()) if name in self._compared:
                    return replace(n, cond=reading(name, cond))
                case Assign(target, value):
                    if isinstance(target, Load):
                        target = replace(target, index=reading(n.name, target.index))
                    return replace(n, target=target, value=reading(n.name, value))
            return None

        (made,) = rewrite_stmts(rule, (self.loop,))
        assert isinstance(made, Loop), "statements are changed, not the loop"
        return made

    def copied(self, copy: str) -> tuple[Stmt, ...]:
        """Return the loops that fill the array ``copy`` with the elements that the ``old`` reads take.

        IslLimitExceeded and GenerationError where they cannot be made.
        """
        shape, span = extents(self.declared), self.loop.span
        names = fresh_names("e", len(shape), declared_names(self.codelet))
        element = tuple(Var(n) for n in names)
        target, source = (
            Load(array, element, self.declared.dtype, span=span) for array in (copy, self.declared.name)
        )  # fmt: skip
        frame = over_elements(element, shape, Assign(target, source, name="copy_in", span=span))
        assert isinstance(frame, Loop), "an array has an extent"
        loops = CopyLoops(self.codelet, self.loop, self.enclosing, frame, after=False)
        if any(None in a.index or len(a.index) != len(shape) for a in self.old):
            return loops.over_all()
        return loops.over(reduce(isl.Set.union, map(self._read_at, self.old)).coalesce())

    def _read_at(self, read: Access) -> isl.Set:
        """Return { [loops around, element] } of a read."""
        s, space = self.model.statements[read.statement], self.model.space
        place = ", ".join((*s.dims[: len(self.enclosing)], *(e for e in read.index if e is not None)))
        found = isl.Map(f"{space.prefix}{{ {space.instance(s)} -> [{place}] }}")
        return found.intersect_domain(space.domain(s.name)).range()
