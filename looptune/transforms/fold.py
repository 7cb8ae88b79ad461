"""Fold: a square of iterations along its diagonal; (i, j) and (j, i) run together, and what both add is made once.

    for i in 0..n:                              for i in 0..n:
      for j in 0..n:                              for j in 0..i + 1:
        for k: C[i][j] += A[i][k] * A[j][k]  ==>    for k: s += A[i][k] * A[j][k]
                                                    C[i][j] += s
                                                    if (j < i) C[j][i] += s

In C the two iterations stand side by side; their common sum is made where kernels are. ``box``, ``unroll`` with jam and
``stage`` of the triangle come after it, as of any.

Legal when: the nest is two loops over the same range, (i, j) adds to its element what (j, i) adds to its own, factors
and terms in any order, and so not under --strict-float; the dependences allow the order.
Gain: half of the work. Cost: elements beyond the diagonal are stored along columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.ir import Assign, Bin, Const, Directive, Loop, Stmt, Var, While
from looptune.poly.space import Piece
from looptune.rewrite import substitute, walk_stmts
from looptune.scope import names_in
from looptune.simplify import add
from looptune.transforms.base import Change, Example, Reorder, Site, Transform, both, no_arguments, only, statements
from looptune.transforms.jam import beside
from looptune.transforms.regrouped import regrouped


@dataclass(frozen=True)
class Fold(Transform):
    name: ClassVar = "fold"
    syntax: ClassVar = "fold"
    stage: ClassVar = "nest"

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        no_arguments(directive)
        return cls(span=directive.span)

    def schedule(self, site: Site) -> Reorder:
        self._inner(site)
        p = site.depth

        def pieces(piece: Piece) -> tuple[Piece, Piece]:
            before, (i, place, j), rest = piece.time[:p], piece.time[p : p + 3], piece.time[p + 3 :]
            return (
                Piece((*before, i, place, j, *rest, "0"), both(piece.when, f"{j} <= {i}")),
                Piece((*before, j, place, i, *rest, "1"), both(piece.when, f"{j} > {i}")),
            )

        order = only(site.order, statements(site.loop.body))
        return Reorder({name: tuple(q for piece in mine for q in pieces(piece)) for name, mine in order.items()})

    def regroups(self, loop: Loop) -> frozenset[str]:
        return statements(loop.body)

    def apply(self, site: Site) -> Change:
        outer, inner = site.loop, self._inner(site)
        i, j = Var(outer.var, outer.dtype), Var(inner.var, inner.dtype)
        turned: tuple[Stmt, ...] = substitute(inner.body, {i.name: j, j.name: i})
        body = beside(inner.body, turned, Bin("<", j, i), site)
        self._check(site, body)
        half = replace(inner, hi=add(i, Const(1, inner.dtype)), body=body)
        return Change((replace(outer, body=(half,), regroups=True),))

    def _inner(self, site: Site) -> Loop:
        """The loop that with the directive's own one is a square."""
        outer = site.loop
        match outer.body:
            case (Loop() as inner,) if not names_in((inner.lo, inner.hi)) & {outer.var}:
                pass
            case _:
                raise site.refuse(f"fold: loop {outer.var} is to hold one loop and nothing else, of the same range")
        if (inner.lo, inner.hi, inner.step) != (outer.lo, outer.hi, outer.step):
            raise site.refuse(f"fold: loops {outer.var} and {inner.var} are to have the same range")
        return inner

    def _check(self, site: Site, body: tuple[Stmt, ...]) -> None:
        """All of what two iterations add is made once."""
        i, j = site.loop.var, self._inner(site).var
        _, _, found = regrouped(body, statements(body), site.taken)
        again = sum(len(terms) > 1 for sum_ in found for terms in sum_.terms)
        if any(isinstance(s, While) for s in walk_stmts(body)) or not found or again != _count(site.loop.body):
            raise site.refuse(
                f"fold: iteration ({i}, {j}) is to add to one element, in a loop, what ({j}, {i}) adds to its own, "
                "and to do nothing else"
            )


def _count(body: tuple[Stmt, ...]) -> int:
    return sum(isinstance(s, Assign) for s in walk_stmts(body))


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
