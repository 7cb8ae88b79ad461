"""Distribute and cut: split a loop into several loops, each with a part of its statements.

    for i:                        for i: q[i] = 0                     2.1
      q[i] = 0                    for i:                              2.2
      for j:              ==>       for j: s[j] += r[i] * A[i][j]     3.1
        s[j] += r[i] * A[i][j]    for i:                              2.3
        q[i] += A[i][j] * p[j]      for j: q[i] += A[i][j] * p[j]     3.2

A ``cut`` stands before a statement anywhere in the nest; the nest is split there. Without cuts, the nest is split into
the strongly connected components of its dependences, in the order of the text where that is legal. Each piece has its
own copy of the loops and conditions around its statements.

Legal when: no dependence is reversed; a condition that one of its branches may change is not split. Gain: perfect
nests, and loops that may run in parallel or be permuted. Cost: values that the pieces share are loaded again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.core.source import location
from looptune.ir.def_use import names_in, written_names
from looptune.ir.nodes import Annotation, Assign, Directive, If, Loop, Stmt, Unary, Var, While
from looptune.ir.rewrite import map_blocks, walk, walk_stmts
from looptune.schedule.directives.base import (
    DirectiveSite,
    Example,
    NewSchedule,
    Rewrite,
    Transform,
    reject_arguments,
    restrict_schedule,
    statement_name,
    statement_names,
)

if TYPE_CHECKING:
    from looptune.poly.dependence_graph import Graph, SharedLocal
    from looptune.poly.legality import Violation
    from looptune.poly.scop import Order

Pieces = tuple[frozenset[str], ...]
"""The names of the statements of each piece, in the order the pieces run."""


@dataclass(frozen=True)
class Cut(Transform):
    """The place at which ``distribute`` splits a loop: before the statement that follows the directive."""

    name: ClassVar = "cut"
    syntax: ClassVar = "cut"
    stage: ClassVar = "split"

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        reject_arguments(directive)
        return cls(span=directive.span)

    def apply(self, site: DirectiveSite) -> Rewrite:
        """Return the loop unchanged: the ``distribute`` around it splits."""
        return Rewrite((site.loop,))


@dataclass(frozen=True, slots=True)
class FissionPart(Annotation):
    """The number of a part of a distributed loop: the copies of loop 2 are parts 1, 2, ..., called 2.1, 2.2, ...."""

    word: ClassVar = "distribute"
    compared: ClassVar = False

    part: int

    def pragma(self) -> str:
        return ""


def fission_part(loop: Loop) -> int:
    """Return the number of the part of a distributed loop, from 1, or 0 if it is not distributed."""
    said = loop.annotation(FissionPart)
    return 0 if said is None else said.part


@dataclass(frozen=True)
class Distribute(Transform):
    name: ClassVar = "distribute"
    syntax: ClassVar = "distribute"
    stage: ClassVar = "split"

    @classmethod
    def parse(cls, directive: Directive) -> Self:
        reject_arguments(directive)
        return cls(span=directive.span)

    def schedule(self, site: DirectiveSite) -> NewSchedule | None:
        pieces = self._pieces(site)
        if len(pieces) <= 1:
            return None
        place = {name: k for k, piece in enumerate(pieces) for name in piece}
        moved = _shifted(restrict_schedule(site.order, place), site.depth - 1, place)
        rest = dict.fromkeys(_later(site), len(pieces) - 1)
        return NewSchedule(moved, also_moved=_shifted(restrict_schedule(site.order, rest), site.depth - 1, rest))

    def responsible_directive(self, site: DirectiveSite, refused: Violation) -> Directive | None:
        """Return the first cut between the two statements whose order would be reversed."""
        after = _cut_before(site.loop)
        places = [k for k, (name, _) in enumerate(after) if name in (refused.first_statement, refused.then_statement)]
        return next((c for _, c in after[min(places) + 1 : max(places) + 1] if c is not None), None)

    def apply(self, site: DirectiveSite) -> Rewrite:
        pieces = self._pieces(site)
        whole = without_cuts((site.loop,))
        return Rewrite(tuple(s for piece in pieces for s in restrict_to(whole, piece)) if len(pieces) > 1 else whole)

    def _pieces(self, site: DirectiveSite) -> Pieces:
        names = statement_names(site.loop)
        graph = site.queries.graph(names, site.depth, site.order, site.private)
        after = _cut_before(site.loop)
        if any(cut is not None for _, cut in after):
            return _at_cuts(site.loop, after, graph)
        together = [
            *map(statement_names, _inseparable(site.loop.body)),
            *({h.write, h.read} for h in graph.shared_locals),
        ]
        return strongly_connected_components([name for name, _ in after], graph.before, together)


def _later(site: DirectiveSite) -> Sequence[str]:
    """Return the statements after the loop in the loop around."""
    names = [statement_name(n) for n in walk_stmts(site.block) if isinstance(n, Assign | While)]
    inside = statement_names(site.loop)
    return names[max(k for k, n in enumerate(names) if n in inside) + 1 :]


def _shifted(order: Order, entry: int, by: Mapping[str, int]) -> Order:
    """Return the order with an entry of every time, a place in the text, moved on."""
    return {
        n: tuple(
            replace(p, time=(*p.time[:entry], str(int(p.time[entry]) + by[n]), *p.time[entry + 1 :])) for p in pieces
        )
        for n, pieces in order.items()
    }


def cuts(
    body: Sequence[Stmt], around: tuple[Loop | While, ...] = ()
) -> Iterator[tuple[Directive, tuple[Loop | While, ...]]]:
    """Yield every cut with the loops around it, in textual order."""
    for stmt in body:
        yield from ((d, around) for d in stmt.directives if d.name == "cut")
        match stmt:
            case Loop() | While():
                yield from cuts(stmt.body, (*around, stmt))
            case If(_, then, other):
                yield from cuts((*then, *other), around)


def without_cuts(body: tuple[Stmt, ...], which: Callable[[Directive], bool] = lambda cut: True) -> tuple[Stmt, ...]:
    """Return the body without the cuts that ``which`` selects; the same object where there is none."""
    if not any(which(d) for s in walk_stmts(body) for d in s.directives if d.name == "cut"):
        return body

    def rule(stmt: Stmt) -> Stmt:
        left = tuple(d for d in stmt.directives if d.name != "cut" or not which(d))
        stmt = stmt if len(left) == len(stmt.directives) else replace(stmt, directives=left)
        return map_blocks(lambda block: without_cuts(block, which), stmt)

    return tuple(rule(s) for s in body)


def _cut_before(loop: Loop) -> list[tuple[str, Directive | None]]:
    """Return the statements in textual order, each with the last cut between it and the one before."""
    found: list[tuple[str, Directive | None]] = []
    cut: Directive | None = None
    for node in walk(loop.body):
        match node:
            case Assign() | Loop() | While() | If():
                cut = next((d for d in node.directives if d.name == "cut"), cut)
        match node:
            case Assign() | While():
                found.append((statement_name(node), cut))
                cut = None
    return found


def _at_cuts(loop: Loop, after: Sequence[tuple[str, Directive | None]], graph: Graph) -> Pieces:
    """Return the pieces that the cuts separate.

    Raises DirectiveError for a cut with nothing before it or in what cannot be split, and IllegalTransform for one
    through a value that only the iteration has.
    """
    pieces: list[set[str]] = [set()]
    opened: list[Directive | None] = [None]
    for name, cut in after:
        if cut is not None and not pieces[-1]:
            raise DirectiveError(
                f"cut: no statement precedes it in loop {loop.var}; write it between two statements", cut.span
            )
        if cut is not None:
            pieces.append(set())
            opened.append(cut)
        pieces[-1].add(name)
    number = {name: k for k, piece in enumerate(pieces) for name in piece}

    def between(names: Iterable[str]) -> Directive | None:
        """Return the cut that parts the statements."""
        places = sorted({number[n] for n in names})
        return opened[places[0] + 1] if len(places) > 1 else None

    for whole in _inseparable(loop.body):
        cut = between(statement_names(whole))
        if cut is not None:
            what = "a while loop" if isinstance(whole, While) else "an if whose own statements may change its condition"
            raise DirectiveError(f"cut is inside {what} (line {whole.span.line}): move it out", cut.span)
    for held in sorted(graph.shared_locals, key=lambda h: (number[h.write], number[h.read], h.local)):
        cut = between((held.write, held.read))
        if cut is not None:
            raise IllegalTransform(
                f"cut is illegal: {held.local} carries a value across the cut in one iteration of loop {loop.var}; "
                f"move the cut, or make {held.local} an array with an element for each {loop.var}",
                cut.span,
                (_flow(loop, held, cut),),
            )
    return tuple(frozenset(p) for p in pieces)


def _flow(loop: Loop, held: SharedLocal, cut: Directive) -> str:
    """Return the note that says where the local gets its value and where that is used."""
    named = {n.name: n for n in walk(loop.body) if isinstance(n, Assign)}
    read = named[held.read]
    uses = (n.span for n in walk((read.value, read.target)) if isinstance(n, Var) and n.name == held.local)
    places = named[held.write].span, next((s for s in uses if s.line), read.span)
    written, used = (location(s, cut.span) for s in places)
    return f"flow on {held.local}: writes {held.local} {written}, reads {held.local} {used}"


def _inseparable(body: Sequence[Stmt]) -> Iterator[While | If]:
    """Yield what is moved as a whole.

    Each ``while``, and each ``if`` whose condition may have another value if evaluated again.
    """
    for stmt in body:
        match stmt:
            case While():
                yield stmt
            case If(cond, then, other):
                if names_in(cond) & written_names((*then, *other)):
                    yield stmt
                yield from _inseparable((*then, *other))
            case Loop(body=inner):
                yield from _inseparable(inner)


def strongly_connected_components(
    names: Sequence[str], before: Iterable[tuple[str, str]], together: Iterable[Iterable[str]] = ()
) -> Pieces:
    """Return the strongly connected components, in an order that preserves ``before``, or else as in ``names``.

    >>> [sorted(c) for c in strongly_connected_components("abcd", [("c", "a"), ("b", "d"), ("d", "b")])]
    [['b', 'd'], ['c'], ['a']]
    """
    edges = set(before)
    for group in together:
        ring = list(group)
        edges |= set(zip(ring, (*ring[1:], *ring[:1]), strict=True))
    ahead: dict[str, set[str]] = {n: {t for s, t in edges if s == n and t != n} for n in names}
    reached = {n: _reached(n, ahead) for n in names}
    owner = {n: next(m for m in names if m == n or (m in reached[n] and n in reached[m])) for n in names}
    waits = {c: {owner[s] for s, t in edges if owner[t] == c and owner[s] != c} for c in owner.values()}
    found: list[frozenset[str]] = []
    while waits:
        ready = next(c for c in names if c in waits and not waits[c])
        found.append(frozenset(n for n in names if owner[n] == ready))
        del waits[ready]
        for others in waits.values():
            others.discard(ready)
    return tuple(found)


def _reached(start: str, ahead: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        new = ahead[left.pop()] - found
        found |= new
        left += new
    return found


def restrict_to(body: Sequence[Stmt], names: frozenset[str]) -> tuple[Stmt, ...]:
    """Return the statements called ``names``, in copies of the loops and conditions around them."""
    out: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Assign(name=name):
                out += [stmt] if name in names else []
            case Loop(body=inner) | While(body=inner):
                left = restrict_to(inner, names)
                out += [replace(stmt, body=left)] if left else []
            case If(cond, then, other):
                yes, no = restrict_to(then, names), restrict_to(other, names)
                if yes:
                    out.append(replace(stmt, then=yes, other=no))
                elif no:
                    out.append(replace(stmt, cond=Unary("!", cond, span=cond.span), then=no, other=()))
    return tuple(out)


_SUMS = """\
for (int i = 0; i < n; i++) {
    B[i] = 0;
    for (int j = 0; j < m; j++) {
      E[j] += A[i] * D[i][j];
      B[i] += D[i][j] * F[j][i];
    }
  }"""
_CUT = """\
  #pragma hmppcg distribute
  for (int i = 1; i < n; i++) {
    A[i] = 2;
    for (int j = 0; j < m; j++)
      D[i][j] = A[i];
    #pragma hmppcg cut
    B[i] = A[i - 1] + B[i - 1];
  }"""
_SEARCH = """\
  #pragma hmppcg distribute
  for (int i = 1; i < n; i++) {
    A[i] = B[i - 1];
    #pragma hmppcg Cut
    B[i] = A[i];
  }"""
_SCALAR = """\
  float t;
  #pragma hmppcg distribute
  for (int i = 1; i < n; i++) {
    t = A[i] / 2;
    #pragma hmppcg CUT
    B[i] = t * t;
  }"""

Distribute.examples = {
    "distribute": Example(_SUMS, """\
for (int i = 0; i < n; i++) {
  B[i] = 0;
}
for (int i = 0; i < n; i++) {
  for (int j = 0; j < m; j++) {
    E[j] += A[i] * D[i][j];
  }
}
for (int i = 0; i < n; i++) {
  for (int j = 0; j < m; j++) {
    B[i] += D[i][j] * F[j][i];
  }
}"""),
}  # fmt: skip
Cut.examples = {
    "cut": Example(_CUT, """\
for (int i = 1; i < n; i++) {
  A[i] = 2;
  for (int j = 0; j < m; j++) {
    D[i][j] = A[i];
  }
}
for (int i = 1; i < n; i++) {
  B[i] = A[i - 1] + B[i - 1];
}"""),
    "Cut": Example(_SEARCH, refused="cut is illegal: iteration (i=1) of line"),
    "CUT": Example(_SCALAR, refused="t carries a value across the cut"),
}  # fmt: skip
