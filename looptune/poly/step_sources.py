"""Where the values come from that the iterations of a sequential loop read: from before the iteration, or from in it.

    for k: for i < k:  A[i] = A[i] + A[k]       A[i], A[k]: written before iteration k of the loop
           A[k] = 2 * A[k]                      A[k]: written before
           for i > k:  A[i] = A[i] + A[k]       A[i]: written before    A[k]: by ``A[k] = 2 * A[k]`` of the iteration

The last write before each read is computed exactly (``dataflow.last_writes``). A read that has its value from several
assignments of the iteration, or only in some instances from one, has no answer: index-set splitting gives it one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import islpy as isl

from looptune.core.errors import InfeasibleDirective
from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import written_names
from looptune.ir.nodes import Assign, Codelet, Load, Loop, Node, Stmt
from looptune.ir.rewrite import rewrite, walk, walk_stmts
from looptune.poly.dataflow import last_writes
from looptune.poly.isl_limits import QUESTION, IslLimitExceeded, isl_operation_limit
from looptune.poly.scop import Scop, build

if TYPE_CHECKING:
    from looptune.poly.access import Access

Sources = Mapping[tuple[int, Load], int | None]
"""Of an assignment of the loop, by its place among them in the text, and an element that it reads: the assignment of
the same iteration that writes the value, None if it is from before the iteration."""


def step_sources(codelet: Codelet, loop: Loop) -> Sources:
    """Return where the values come from that assignments in ``loop`` read of the arrays that it writes.

    ``codelet`` contains the loop, and runs in the order of its text. InfeasibleDirective where a read has no single
    answer, the order of two assignments to one element is not that of the text, or isl cannot tell.
    """
    try:
        with isl_operation_limit(QUESTION):
            return _Step.of(codelet, loop).sources()
    except IslLimitExceeded:
        raise InfeasibleDirective(loop, "which values its iterations read is too involved: isl gave up") from None


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """``names``: those of the assignments in the loop, in the order of the text; ``depth``: the loops around it."""

    loop: Loop
    scop: Scop
    names: tuple[str, ...]
    depth: int
    arrays: frozenset[str]

    @staticmethod
    def of(codelet: Codelet, loop: Loop) -> _Step:
        inside: list[str] = []
        count = 0

        def named(n: Node) -> Node | None:
            nonlocal count
            match n:
                case Assign():
                    count += 1
                    return replace(n, name=f"S{count}")
            return None

        def mark(body: tuple[Stmt, ...], within: bool) -> Iterator[str]:
            for stmt in body:
                yield from (s.name for s in walk_stmts(stmt) if isinstance(s, Assign) and within)

        place = next(k for k, f in enumerate(_loops(codelet)) if f is loop)
        renamed: Codelet = replace(codelet, body=rewrite(named, codelet.body))
        own = tuple(_loops(renamed))[place]
        inside += mark(own.body, True)
        scop = build(renamed)
        first = scop.statements[inside[0]]
        depth = next(k for k, f in enumerate(first.loops) if f == own)
        return _Step(loop, scop, tuple(inside), depth, frozenset(written_names(loop.body)))

    def sources(self) -> Sources:
        for name in self.names:
            s = self.scop.statements[name]
            if s.unknown is not None or not s.exact:
                raise InfeasibleDirective(self.loop, f"{s.unknown} in it cannot be analysed")
        self.check_order()
        found: dict[tuple[int, Load], int | None] = {}
        for k, name in enumerate(self.names):
            for load in walk(self.scop.statements[name].assign.value):
                if isinstance(load, Load) and load.array in self.arrays and (k, load) not in found:
                    found[k, load] = self.source(name, load)
        return found

    def access(self, name: str, load: Load, *, write: bool) -> Access:
        s = self.scop.statements[name]
        index = tuple(self.scop.space.nest.affine(e, s.dims, products=False) for e in load.index)
        mine = self.scop.space.accesses[name]
        access = next((a for a in mine if a.write == write and a.array == load.array and a.index == index), None)
        if access is None or None in index:
            raise InfeasibleDirective(self.loop, f"the element {expression_text(load)} cannot be analysed")
        return access

    def source(self, name: str, load: Load) -> int | None:
        """Return the assignment of the same iteration that writes what ``load`` reads; None: from before it."""
        space = self.scop.space
        read = isl.UnionMap.from_map(space.touched(self.access(name, load, write=False)))
        writes = isl.UnionMap(f"{space.prefix}{{ }}")
        for accesses in space.accesses.values():
            for a in (a for a in accesses if a.write and a.array == load.array):
                writes = writes.union(isl.UnionMap.from_map(space.touched(a)))
        within: dict[str, isl.Map] = {}
        for part in last_writes(space, read, writes):
            write = part.get_tuple_name(isl.dim_type.in_)
            same = self.in_step(part)
            if write in self.names and not same.is_empty():
                within[write] = same
        if not within:
            return None
        everywhere = space.domain(name)
        by, found = next(iter(within.items()))
        if len(within) > 1 or not everywhere.is_subset(found.range()):
            raise InfeasibleDirective(
                self.loop, f"the value of {expression_text(load)} is from its own iteration of {self.loop.var} only in "
                "a part of the nest: separate the parts with splitat"
            )  # fmt: skip
        return self.names.index(by)

    def in_step(self, pairs: isl.Map) -> isl.Map:
        """Return the pairs of instances in the same iteration of the loop and of those around it."""
        for d in range(self.depth + 1):
            pairs = pairs.equate(isl.dim_type.in_, d, isl.dim_type.out, d)
        return pairs

    def check_order(self) -> None:
        """Check that one thread may execute the assignments to its element in the order of the text."""
        space = self.scop.space
        for first, then in combinations(self.names, 2):
            a, b = (self.scop.statements[n].assign.target for n in (first, then))
            assert isinstance(a, Load), "only elements are written"
            assert isinstance(b, Load), "only elements are written"
            there, back = self.access(first, a, write=True), self.access(then, b, write=True)
            same = space.touched(there).apply_range(space.touched(back).reverse())
            if not self.in_step(same.intersect(space.before(then, first).reverse())).is_empty():
                raise InfeasibleDirective(
                    self.loop, f"an element of {b.array} is written by an assignment before another one that precedes "
                    "it in the text: distribute it"
                )  # fmt: skip


def _loops(codelet: Codelet) -> Iterator[Loop]:
    return (f for f in walk_stmts(codelet.body) if isinstance(f, Loop))
