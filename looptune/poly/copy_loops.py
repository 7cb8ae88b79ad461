"""Loops that copy some elements of a variable, before or after a loop of the text.

for e0 in 0..n: for e1 in 0..m: A_old[e0][e1] = A[e0][e1]     the frame: what a copy is, over all elements
for e0 in 1..n: for e1 in 0..e0: A_old[e0][e1] = A[e0][e1]    the loops: over those that are asked for
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

import islpy as isl

from looptune.ir.nodes import Array, Assign, Codelet, Const, Expr, Local, Loop, Scalar, Stmt, Var, While
from looptune.ir.rewrite import map_blocks, walk
from looptune.poly.loop_generation import LoopNest


@dataclass(frozen=True, slots=True)
class CopyLoops:
    """A ``frame`` beside a ``loop`` of ``codelet``, ``after`` it or before it.

    ``enclosing`` are the loops around it. The frame has one statement; the names of the copies begin with its name,
    those of the text are S0, S1, ...
    """

    codelet: Codelet
    loop: Loop
    enclosing: tuple[Loop | While, ...]
    frame: Loop
    after: bool

    def over(self, elements: isl.Set) -> tuple[Stmt, ...]:
        """Return loops over { [loops around, variables of the frame] }; IslLimitExceeded, GenerationError if none are.

        The loops around have the values of the place.
        """
        nest = LoopNest.of(replace(self.codelet, body=self._placed(self.codelet.body)), self.frame)
        (copy,) = nest.copies
        dims = nest.nest.statements[copy].dims
        time = isl.Map(f"{nest.space.prefix}{{ {copy}[{', '.join(dims)}] -> [{', '.join(dims[nest.outer :])}] }}")
        runs = time.intersect_domain(elements.set_tuple_name(copy))
        return self._as_text(nest.generate({copy: nest.within(runs)}))

    def over_all(self) -> tuple[Stmt, ...]:
        """Return the loops over all that the frame runs over."""
        return self._as_text((self.frame,))

    def _placed(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return ``body`` with the frame beside the loop, which is in it."""
        k = next((k for k, s in enumerate(body) if s is self.loop), None)
        if k is not None:
            return (*body[: k + self.after], self.frame, *body[k + self.after :])
        return tuple(map_blocks(self._placed, s) for s in body)

    def _as_text(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return loops as a part of the text: numbers for the loops, names and iterations for the statements."""
        nodes = tuple(walk(self.codelet.body))
        used = {n.name for n in nodes if isinstance(n, Assign)}
        stem = next(n.name for n in walk(self.frame) if isinstance(n, Assign))
        names = (n for k in count() if (n := f"{stem}{k}") not in used)
        numbers = count(1 + max(n.number for n in nodes if isinstance(n, (Loop, While))))

        def visit(stmt: Stmt, around: tuple[Expr, ...]) -> Stmt:
            match stmt:
                case Assign():
                    return replace(stmt, name=next(names), instance=around)
                case Loop():
                    inside = (*around, Var(stmt.var, stmt.dtype))
                    number = next(numbers)
                    return replace(stmt, number=number, body=tuple(visit(s, inside) for s in stmt.body))
            return map_blocks(lambda block: tuple(visit(s, around) for s in block), stmt)

        enclosing = tuple(Var(f.var, f.dtype) for f in self.enclosing if isinstance(f, Loop))
        return tuple(visit(s, enclosing) for s in body)


def extents(declared: Array | Scalar | Local) -> tuple[Expr, ...]:
    """Return the extents of a variable, all of which are declared; none of a scalar."""
    return () if isinstance(declared, Scalar) else tuple(e for e in declared.shape if e is not None)


def over_elements(element: tuple[Var, ...], shape: tuple[Expr, ...], body: Stmt) -> Stmt:
    """Return loops over all elements of an array of this shape around a statement; itself where there is no extent."""
    for var, extent in reversed(tuple(zip(element, shape, strict=True))):
        body = Loop(var.name, Const(0), extent, (body,), span=body.span)
    return body
