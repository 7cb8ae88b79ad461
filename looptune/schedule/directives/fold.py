"""Fold: run iterations (i, j) and (j, i) of a square together, and compute the sum that they share once.

    for i in 0..n:                              for i in 0..n:
      for j in 0..n:                              for j in 0..i + 1:
        for k: C[i][j] += A[i][k] * A[j][k]  ==>    for k: s += A[i][k] * A[j][k]
                                                    C[i][j] += s
                                                    if (j < i) C[j][i] += s

In C both iterations are written out; kernels compute the common sum once. ``box``, ``unroll`` with jam and ``stage``
apply to the resulting triangle as to any other.

Legal when: the nest consists of two loops over the same range, (i, j) adds to its element what (j, i) adds to its own,
with factors and terms in any order, and the dependences allow the order; not under --no-reassociate. Gain: half of the
additions. Cost: elements beyond the diagonal are stored along columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Binary, Const, Directive, Expr, If, Loop, Stmt, Var
from looptune.ir.rewrite import substitute, walk_stmts
from looptune.ir.simplify import add
from looptune.poly.isl_objects import SchedulePiece
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    NewSchedule,
    Rewrite,
    Transform,
    isl_conjunction,
    reject_arguments,
    restrict_schedule,
    statement_names,
)
from looptune.schedule.directives.reduction_simplification import RegroupedSums, simplify_reductions


@dataclass(frozen=True)
class Fold(Transform):
    name: ClassVar = "fold"
    syntax: ClassVar = "fold"
    stage: ClassVar = "nest"

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        reject_arguments(directive)
        return cls(span=directive.span)

    def schedule(self, site: DirectiveSite) -> NewSchedule:
        self._inner(site)
        p = site.depth

        def pieces(piece: SchedulePiece) -> tuple[SchedulePiece, SchedulePiece]:
            before, (i, place, j), rest = piece.time[:p], piece.time[p : p + 3], piece.time[p + 3 :]
            return (
                SchedulePiece((*before, i, place, j, *rest, "0"), isl_conjunction(piece.when, f"{j} <= {i}")),
                SchedulePiece((*before, j, place, i, *rest, "1"), isl_conjunction(piece.when, f"{j} > {i}")),
            )

        order = restrict_schedule(site.order, statement_names(site.loop.body))
        return NewSchedule({name: tuple(q for piece in mine for q in pieces(piece)) for name, mine in order.items()})

    def regrouped_statements(self, loop: Loop) -> frozenset[str]:
        return statement_names(loop.body)

    def apply(self, site: DirectiveSite) -> Rewrite:
        inner = self._inner(site)
        made = fold_nest(site.loop, inner)
        if made is None:
            i, j = site.loop.var, inner.var
            raise site.refuse(
                f"fold: iteration ({i}, {j}) must add to one element, in a loop, what ({j}, {i}) adds to its own, "
                "and do nothing else"
            )
        return Rewrite((made,))

    def _inner(self, site: DirectiveSite) -> Loop:
        """Return the loop that with the directive's own one is a square."""
        outer = site.loop
        match outer.body:
            case (Loop() as inner,) if not names_in((inner.lo, inner.hi)) & {outer.var}:
                pass
            case _:
                raise site.refuse(f"fold: loop {outer.var} must contain one loop of the same range and nothing else")
        if not _alike(outer, inner):
            raise site.refuse(f"fold: loops {outer.var} and {inner.var} must have the same range")
        return inner


def triangular_half(loop: Loop) -> Loop | None:
    """Return the folded loop, which has the remaining half of the work, or None if it cannot be folded."""
    match loop.body:
        case (Loop() as inner,) if _alike(loop, inner):
            return fold_nest(loop, inner)
    return None


def fold_nest(outer: Loop, inner: Loop) -> Loop | None:
    """Return the triangle of the square of the two loops, or None.

    There is none if its iterations have no sums in common, or do something else.
    """
    i, j = Var(outer.var, outer.dtype), Var(inner.var, inner.dtype)
    body = _beside(inner.body, substitute(inner.body, {i.name: j, j.name: i}), Binary("<", j, i))
    if body is None:
        return None
    _, _, found = simplify_reductions(body, statement_names(body), ())
    again = sum(len(terms) > 1 for sum_ in found for terms in sum_.terms)
    if not found or again != sum(isinstance(s, Assign) for s in walk_stmts(inner.body)):
        return None
    half = replace(inner, hi=add(i, Const(1, inner.dtype)), body=body)
    return replace(outer, body=(half,)).annotated(RegroupedSums())


def _alike(outer: Loop, inner: Loop) -> bool:
    return (inner.lo, inner.hi, inner.step) == (outer.lo, outer.hi, outer.step)


def _beside(body: tuple[Stmt, ...], other: tuple[Stmt, ...], given: Expr) -> tuple[Stmt, ...] | None:
    """Return each statement and its copy, guarded by ``given``, in one loop; None where the loops differ."""
    out: list[Stmt] = []
    for stmt, copy in zip(body, other, strict=True):
        match stmt, copy:
            case Loop(), Loop():
                inside = _beside(stmt.body, copy.body, given)
                if inside is None or (stmt.lo, stmt.hi) != (copy.lo, copy.hi):
                    return None
                out.append(replace(stmt, body=inside))
            case _:
                out += (stmt, If(given, (copy,)))
    return tuple(out)


_PRODUCT = """for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < m; k++)
        G[i][j] += D[i][k] * D[j][k];"""
_ROWS = """for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      for (int k = 0; k < m; k++)
        G[i][j] += D[i][k] * E[k];"""

Fold.examples = {
    "fold": Example(_PRODUCT, """\
for (int i = 0; i < n; i++) {
  for (int j = 0; j < i + 1; j++) {
    for (int k = 0; k < m; k++) {
      G[i][j] += D[i][k] * D[j][k];
      if (j < i) {
        G[j][i] += D[j][k] * D[i][k];
      }
    }
  }
}"""),
    "Fold": Example(_ROWS, refused="what (j, i) adds to its own"),
}  # fmt: skip
