"""Permute: give the loops of a nest a new order, outermost first.

    for i in A:                     for j in B:
      for j in B:    ==> j, i         for i in A:
        S(i, j)                         S(i, j)

A statement between two of the loops is first sunk into the inner ones, under ``if (k == first)`` where it stood
before them and ``if (k == last)`` where it stood after them. Pragmas travel with their loop.

Legal when: no dependence is reversed; a loop that statements are sunk into runs at least once.
Gain: accesses become coalesced or contiguous, a parallel loop moves outward. Cost: the conditions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from looptune.errors import DirectiveError
from looptune.ir import Bin, Const, Directive, Expr, If, Loop, Stmt, Var
from looptune.poly.model import Piece
from looptune.rewrite import walk
from looptune.scope import names_in
from looptune.simplify import add, div, mul, sub
from looptune.transforms.base import Change, Example, Reorder, Site, Transform, only, statements


@dataclass(frozen=True, slots=True)
class _Sunk:
    """A statement of loop ``level`` of the band, to be run in the first (or last) iteration of the loops inside."""

    stmt: Stmt
    level: int
    first: bool


@dataclass(frozen=True)
class Permute(Transform):
    name: ClassVar = "permute"
    syntax: ClassVar = "permute LOOP, LOOP [, LOOP ...]"
    stage: ClassVar = "nest"

    loops: tuple[str, ...]

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        for arg in directive.args:
            if arg.values or not arg.key:
                raise DirectiveError(f"permute takes loop names (syntax: {cls.syntax})", arg.span)
        names = tuple(a.key for a in directive.args)
        twice = next((a for k, a in enumerate(directive.args) if a.key in names[:k]), None)
        if twice is not None:
            raise DirectiveError(f"permute names loop {twice.key} twice", twice.span)
        if len(names) < 2:
            raise DirectiveError(f"permute takes at least two loops (syntax: {cls.syntax})", directive.span)
        return cls(names, span=directive.span)

    def schedule(self, site: Site) -> Reorder | None:
        band, body = self._band(site)
        if self.loops == tuple(f.var for f in band):
            return None
        place = {name: k for k, sunk in enumerate(body) for name in statements(sunk.stmt)}
        order = only(site.order, place)
        return Reorder(
            {n: tuple(self._timed(p, site, band, body[place[n]], place[n]) for p in ps) for n, ps in order.items()}
        )

    def _timed(self, piece: Piece, site: Site, band: tuple[Loop, ...], sunk: _Sunk, place: int) -> Piece:
        """Time with the band's dimensions in the new order; a sunk statement runs at the first or last of a loop's."""
        p = site.depth
        entry = {}
        for d, loop in enumerate(band):
            end = loop.lo if sunk.first else _last(loop)
            entry[loop.var] = piece.time[p + 2 * d] if d <= sunk.level else site.bound(end, piece)
        middle = [x for v in self.loops for x in (entry[v], "0")]
        rest = piece.time[p + 2 * sunk.level + 2 :]
        return replace(piece, time=(*piece.time[:p], *middle[:-1], str(place), *rest))

    def _band(self, site: Site) -> tuple[tuple[Loop, ...], tuple[_Sunk, ...]]:
        """The loops permuted, outermost first, and the body of the perfect nest they become."""
        loop, band = site.loop, [site.loop]
        before: list[_Sunk] = []
        after: list[_Sunk] = []
        while len(band) < len(self.loops):
            inner = [s for s in loop.body if isinstance(s, Loop) and s.var in self.loops]
            if len(inner) != 1:
                break
            at = next(k for k, s in enumerate(loop.body) if s is inner[0])
            level = len(band) - 1
            before += [_Sunk(s, level, True) for s in loop.body[:at]]
            after = [_Sunk(s, level, False) for s in loop.body[at + 1 :]] + after
            loop = inner[0]
            band.append(loop)
        self._check(site, tuple(band), (*before, *after))
        core = [_Sunk(s, len(band) - 1, True) for s in loop.body]
        return tuple(band), (*before, *core, *after)

    def _check(self, site: Site, band: tuple[Loop, ...], sunk: tuple[_Sunk, ...]) -> None:
        names = tuple(f.var for f in band)
        if set(names) != set(self.loops):
            nest = [f.var for f in walk(site.loop) if isinstance(f, Loop)]
            raise site.refuse(f"permute {', '.join(self.loops)} does not fit the nest of loops {', '.join(nest)}")
        bound = next((f for f in band if names_in((f.lo, f.hi)) & set(names)), None)
        if bound is not None and self.loops != names:
            other = min(names_in((bound.lo, bound.hi)) & set(names))
            raise site.refuse(f"permute: the bounds of loop {bound.var} depend on loop {other}")
        for s in sunk:
            empty = next((f for f in band[s.level + 1 :] if f.number not in site.nonempty), None)
            if empty is not None:
                raise site.refuse(f"permute would sink a statement of loop {band[s.level].var} into loop {empty.var}, "
                                  f"which may not run at all")  # fmt: skip

    def apply(self, site: Site) -> Change:
        band, sunk = self._band(site)
        if self.loops == tuple(f.var for f in band):
            return Change((site.loop,))
        named = {f.var: f for f in band}
        body = tuple(stmt for s in _grouped(sunk, band) for stmt in s)
        for name in reversed(self.loops):
            body = (replace(named[name], body=body),)
        return Change(body)


def _grouped(sunk: tuple[_Sunk, ...], band: tuple[Loop, ...]) -> list[tuple[Stmt, ...]]:
    """Statements under one and the same condition share their ``if``."""
    out: list[tuple[Stmt, ...]] = []
    key: tuple[int, bool] | None = None
    held: list[Stmt] = []
    for s in (*sunk, None):
        here = None if s is None else (s.level, s.first)
        if here != key and held and key is not None:
            cond = _condition(band[key[0] + 1 :], first=key[1])
            out.append(tuple(held) if cond is None else (If(cond, tuple(held)),))
            held = []
        key = here
        if s is not None:
            held.append(s.stmt)
    return out


def _condition(loops: tuple[Loop, ...], *, first: bool) -> Expr | None:
    cond: Expr | None = None
    for f in loops:
        here = Bin("==", Var(f.var, f.dtype), f.lo if first else _last(f))
        cond = here if cond is None else Bin("&&", cond, here)
    return cond


def _last(loop: Loop) -> Expr:
    """The value of the loop variable in the last iteration of a loop that runs."""
    one = Const(1, loop.dtype)
    if loop.step == 1:
        return sub(loop.hi, one)
    step = Const(loop.step, loop.dtype)
    return add(loop.lo, mul(div(sub(sub(loop.hi, one), loop.lo), step), step))


_COPY = "for (int i = 0; i < n; i++)\n    for (int j = 0; j < m; j++)\n      D[i][j] = F[j][i];"
_SUM = "for (int i = 0; i < n; i++) {\n    B[i] = 0;\n    for (int j = 0; j < m; j++)\n      B[i] += D[i][j];\n  }"
_WAVE = "for (int i = 1; i < n; i++)\n    for (int j = 0; j < m - 1; j++)\n      D[i][j] = D[i - 1][j + 1];"

Permute.examples = {
    "permute j, i": Example(_COPY, """\
for (int j = 0; j < m; j++) {
  for (int i = 0; i < n; i++) {
    D[i][j] = F[j][i];
  }
}"""),
    "permute (j, i)": Example(_SUM, """\
for (int j = 0; j < m; j++) {
  for (int i = 0; i < n; i++) {
    if (j == 0) {
      B[i] = 0;
    }
    B[i] += D[i][j];
  }
}"""),
    "permute j,i": Example(_WAVE, refused="must run before"),
}  # fmt: skip
