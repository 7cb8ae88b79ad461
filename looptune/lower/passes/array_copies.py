"""Copies of arrays for the parts of a loop whose iterations accumulate into different elements, as in a histogram.

    for i: h[x[i]] += w[i]      ==>    for p in 0..P:
                                         for b: h_parts[b][p] = 0
                                         for i in p, p + P, ...: h_parts[x[i]][p] += w[i]
                                       for b: s = 0; for p in 0..P: s += h_parts[b][p]; if (s != 0) h[b] += s

On a GPU a part is a thread, and neighbours are neighbouring parts. They take neighbouring iterations, so that they load
neighbours of ``x``, and the copies of an element lie side by side, so that they accumulate into neighbours where they
have the same ``x[i]``; the zeroes are stored and the parts are loaded in this order as well. On a CPU a part belongs to
a core: its iterations follow each other, and its copy lies together, in cache lines of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from looptune.core.errors import InfeasibleDirective
from looptune.ir.def_use import names_in, private_bytes, target_name, written_names
from looptune.ir.intervals import never_equal
from looptune.ir.nodes import Array, Assign, Codelet, Const, Expr, Load, Local, Loop, Node, Reduction, Stmt, Var
from looptune.ir.rewrite import has_load, rewrite, walk_stmts
from looptune.ir.simplify import div, mod, mul
from looptune.lower.partial_sums import InterleavedCopies
from looptune.schedule.array_parts import MOST_COPY_BYTES


def copied_targets(
    loops: Sequence[Loop], targets: Sequence[Reduction], *, alone: bool
) -> dict[str, tuple[Reduction, ...]]:
    """Return the targets in arrays of which each part of the ``loops`` needs a copy, by the name of the array.

    These are the arrays of which data, the loops themselves, or sequential loops inside decide into which element an
    iteration accumulates; and, beside one of them, those of which a parallel loop inside does. The result is empty if
    every target has an element of its own, or one for each iteration of a parallel loop. ``alone``: no parallel loop is
    around. In a loop of one iteration, data may then decide that two targets are one element, ``h[x[0]]`` and
    ``h[x[1]]``.
    """
    inner = {f.var: f.mode for f in walk_stmts(tuple(loops)) if isinstance(f, Loop)}
    serial = {f.var for f in loops} | written_names(loops) | {v for v, mode in inner.items() if mode != "parallel"}

    def varies(r: Reduction, names: Collection[str]) -> bool:
        return isinstance(r.target, Load) and not names_in(r.target.index).isdisjoint(names)

    read = [t for t in (r.target for r in targets) if isinstance(t, Load) and has_load(t.index) and alone]
    met = {a.array for a, b in combinations(read, 2) if a.array == b.array and not never_equal(a.index, b.index)}
    if not met and not any(varies(r, serial) for r in targets):
        return {}
    arrays = dict.fromkeys(
        n for r in targets if (n := target_name(r.target)) in met or varies(r, serial | inner.keys())
    )
    return {a: tuple(r for r in targets if target_name(r.target) == a) for a in arrays}


@dataclass(frozen=True, slots=True)
class ArrayCopies:
    """The copies of an array, one for each part: an array ``name`` with one more extent.

    ``elements`` are loops over the elements of the array, outermost first. ``interleaved``: the copies of an element
    are neighbours; otherwise the elements of a copy are.
    """

    name: str
    reduction: Reduction
    elements: tuple[Loop, ...]
    parts: int
    interleaved: bool

    @property
    def array(self) -> str:
        """Return the name of the array that is copied."""
        return target_name(self.reduction.target)

    @property
    def dtype(self) -> str:
        return self.reduction.target.dtype

    @property
    def local(self) -> Local:
        """Return the array of copies."""
        extents, parts = tuple(f.hi for f in self.elements), Const(self.parts, self.elements[0].dtype)
        return Local(self.name, self.dtype, (*extents, parts) if self.interleaved else (parts, *extents))

    def element(self, index: Sequence[Expr], part: Expr) -> Load:
        """Return the part's copy of an element of the array."""
        return Load(self.name, (*index, part) if self.interleaved else (part, *index), self.dtype)

    def cleared(self, part: Expr, identity: Const) -> tuple[Stmt, ...]:
        """Return the loops that set all of the part's copy to the identity of the reduction."""
        at = tuple(Var(f.var, f.dtype) for f in self.elements)
        body: tuple[Stmt, ...] = (Assign(self.element(at, part), identity),)
        for loop in reversed(self.elements):
            body = (replace(loop, body=body, mode="sequential"),)
        return body

    def over_elements(self) -> tuple[Loop, tuple[Expr, ...]]:
        """Return one parallel loop over all elements, and the index of the element of an iteration."""
        first, *_ = self.elements
        count, wide = first.hi, any(not isinstance(f.hi, Const) for f in self.elements[1:])
        for f in self.elements[1:]:
            count = mul(count, f.hi)
        dtype = "int64" if wide else first.dtype
        number: Expr = Var(first.var, dtype)
        index: list[Expr] = []
        for f in reversed(self.elements[1:]):
            index.insert(0, mod(number, f.hi))
            number = div(number, f.hi)
        return Loop(first.var, Const(0, dtype), count, (), mode="parallel", dtype=dtype), (number, *index)


def redirect(loop: Loop, copies: Mapping[str, ArrayCopies], part: Expr) -> Loop:
    """Return the loop with accesses to the part's copies in place of those to the arrays."""

    def rule(n: Node) -> Node | None:
        return copies[n.array].element(n.index, part) if isinstance(n, Load) and n.array in copies else None

    return rewrite(rule, loop)


def array_reduction(targets: Sequence[Reduction], interleaved: bool) -> Reduction:
    """Return the reduction of all elements of the array of the ``targets``: its target has no index."""
    op, target = targets[0].op, targets[0].target
    assert all(r.op == op for r in targets), "one operator accumulates into an array"
    assert isinstance(target, Load), "elements of arrays have copies"
    kind = InterleavedCopies if interleaved else Reduction
    return kind(op, replace(target, index=()))


def array_extents(codelet: Codelet, loop: Loop, array: str, changed: set[str]) -> tuple[Expr, ...]:
    """Return the extents of an array that the parts of ``loop`` have copies of.

    Raises InfeasibleDirective if the declaration does not say all of them, or if they change.
    """
    arrays = {a.name: a for a in (*codelet.params, *codelet.locals) if isinstance(a, (Array, Local))}
    known = tuple(e for e in arrays[array].shape if e is not None)
    if len(known) < len(arrays[array].shape):
        what = f"each part has a copy of {array}, whose extent is not declared: declare it, as in {array}[256]"
        raise InfeasibleDirective(loop, what)
    if names_in(known) & changed:
        raise InfeasibleDirective(loop, f"each part has a copy of {array}, whose extents change")
    return known


def check_size(loop: Loop, copies: ArrayCopies) -> None:
    """Raise InfeasibleDirective if the copies take too much memory; the size of an array may be known at run time."""
    total = private_bytes(copies.local)
    if total is not None and total > MOST_COPY_BYTES:
        fits = MOST_COPY_BYTES // (total // copies.parts)
        least = f"{fits} parts would fit" if fits > 1 else "there is no room for two"
        what = f"{copies.parts} copies of {copies.array} take {total} bytes, more than {MOST_COPY_BYTES}: {least}"
        raise InfeasibleDirective(loop, what)
