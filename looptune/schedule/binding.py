"""Bind directives to loops: those that stand in the file, and those written outside of it.

#pragma hmppcg tile i:4        stands before its loop, or before the function for each of its outermost loops
loop i: tile i:8               replaces one of its kind in the file
loop 2: unroll 2               is for every piece of a distributed loop 2
loop 2.1: unroll 4             replaces that on the first piece
codelet: grid blocksize 64x4   replaces those in the file, on inner loops too
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError
from looptune.ir.nodes import Codelet, Directive, If, Loop, Stmt, While
from looptune.ir.rewrite import map_blocks, walk_stmts
from looptune.schedule import directives
from looptune.schedule.directive_lines import DirectiveLine
from looptune.schedule.directives.base import Transform
from looptune.schedule.directives.distribute import FissionPart, fission_part

if TYPE_CHECKING:
    from looptune.core.source import Span
    from looptune.schedule.directive_lines import DirectiveLine

Id = tuple[int, int]
"""A loop's number and its piece, 0 where it is whole."""


def identity(loop: Loop | While) -> Id:
    """Return the number of the loop and of its piece."""
    return loop.number, fission_part(loop) if isinstance(loop, Loop) else 0


def loop_label(loop: Loop | While) -> str:
    """Return the number of the loop as in a directive's place: ``2``, or ``2.1``."""
    number, piece = identity(loop)
    return f"{number}.{piece}" if piece else str(number)


def at_loops(loops: Iterable[Loop]) -> str:
    """Return the beginning of the line of a space that applies directives to these loops: ``loop 1, 2.1``."""
    return f"loop {', '.join(dict.fromkeys(map(loop_label, loops)))}"


@dataclass(frozen=True, slots=True)
class BoundDirective:
    """A transform and the loop it is for.

    ``rank`` orders the sources: -1 the file, before the function; 0 the file, before the loop; 1 a place outside for a
    loop, 2 for a piece of it. ``group`` is equal for what was written once, for all the pieces of a loop or for all
    nests of a codelet: it has to fit one of them.
    """

    loop: Id
    transform: Transform
    directive: Directive
    rank: int
    group: object

    @property
    def kinds(self) -> frozenset[str]:
        return directives.replaced_names(self.directive)


def applies(directive: Directive, target: str) -> bool:
    """Tell whether the directive is for this target."""
    return directive.target is None or directive.target.upper() == target.upper()


@dataclass(frozen=True, slots=True)
class _Given:
    """A directive and the loop it addresses, before it is taken apart."""

    loop: Loop | While
    directive: Directive
    rank: int


def bind(
    codelet: Codelet, placed: Sequence[DirectiveLine], wanted: Callable[[Directive], bool] = lambda directive: True
) -> list[BoundDirective]:
    """Return the ``wanted`` directives, each with its loop, in textual order."""
    loops = [n for n in walk_stmts(codelet.body) if isinstance(n, (Loop, While))]
    whole = [d for d in map(directives.current, codelet.directives) if wanted(d)]
    given = [_Given(f, d, -1) for d in whole for f in loops_at(codelet, "codelet", "", d.span)]
    given += [_Given(f, d, 0) for f in loops for d in map(directives.current, f.directives) if wanted(d)]
    for p in placed:
        if wanted(p.directive):
            here = loops_at(codelet, p.where, p.loop, p.directive.span)
            given += [_Given(f, p.directive, 2 if "." in p.loop else 1) for f in here]
    best: dict[tuple[Id, frozenset[str]], int] = {}
    for g in given:
        key = (identity(g.loop), directives.replaced_names(g.directive))
        best[key] = max(g.rank, best.get(key, g.rank))
    kept = [g for g in given if g.rank == best[identity(g.loop), directives.replaced_names(g.directive)]]
    bound = _taken_apart(_uncovered(kept))
    _exclude(bound, loops)
    place = {identity(f): k for k, f in enumerate(loops)}
    return sorted(bound, key=lambda b: place[b.loop])


def _uncovered(given: Sequence[_Given]) -> list[_Given]:
    """Return the directives of the file without those that a directive from outside replaces."""
    over = {
        (identity(loop), directives.replaced_names(g.directive))
        for g in given if g.rank > 0 and directives.find(g.directive).applies_to_nested
        for loop in walk_stmts((g.loop,)) if isinstance(loop, (Loop, While))
    }  # fmt: skip
    return [g for g in given if g.rank > 0 or (identity(g.loop), directives.replaced_names(g.directive)) not in over]


def _taken_apart(given: Sequence[_Given]) -> list[BoundDirective]:
    """Return a directive that names several loops as one for each; it may name a loop that one of the pieces lacks."""
    found: list[BoundDirective] = []
    lacking: dict[object, DirectiveError] = {}
    for g in given:
        cls = directives.find(g.directive)
        for name, part in cls.per_loop(g.directive):
            group = (id(g.directive), name)
            try:
                inner = _inside(g.loop, name, part)
            except DirectiveError as error:
                lacking.setdefault(group, error)
                continue
            found.append(BoundDirective(identity(inner), directives.find(part).parse(part), part, g.rank, group))
    nowhere = [error for group, error in lacking.items() if all(b.group != group for b in found)]
    if nowhere:
        raise nowhere[0]
    return found


def _inside(loop: Loop | While, name: str, directive: Directive) -> Loop | While:
    """Return the loop called ``name`` at or in ``loop``; "" is the loop itself."""
    if not name:
        return loop
    found = next((f for f in walk_stmts((loop,)) if isinstance(f, Loop) and f.var == name), None)
    if found is None:
        raise DirectiveError(f"{directive.name}: no loop {name} in its nest", directive.span)
    return found


def _exclude(bound: Sequence[BoundDirective], loops: Sequence[Loop | While]) -> None:
    whiles = {f.number for f in loops if isinstance(f, While)}
    counted = {identity(f): f for f in loops if isinstance(f, Loop)}
    seen: set[tuple[Id, frozenset[str]]] = set()
    for b in bound:
        if b.loop[0] in whiles and not b.transform.fits_while:
            raise DirectiveError(
                f"{b.transform.name} needs a counted loop, and this one runs as a while loop: write for (i = a; i < n; "
                "i += s) with a bound of the type of i, and change i nowhere else", b.directive.span,
            )  # fmt: skip
        if (b.loop, b.kinds) in seen and len(b.kinds) > 1:
            raise DirectiveError(f"one loop takes either {' or '.join(sorted(b.kinds))}, once", b.directive.span)
        seen.add((b.loop, b.kinds))
    also = [(identity(f), b) for b in bound if b.loop in counted for f in b.transform.claimed_loops(counted[b.loop])]
    twice = next((b for loop, b in also if (loop, b.kinds) in seen), None)
    if twice is not None:
        raise DirectiveError(f"one loop takes either {' or '.join(sorted(twice.kinds))}, once", twice.directive.span)


def rebind_fused(bound: Sequence[BoundDirective], into: Mapping[Id, Id]) -> list[BoundDirective]:
    """Return the directives of loops that were fused into others, bound to those.

    Two of a kind that say the same are one; the source of the higher rank counts; DirectiveError where they clash.
    """
    kept: list[BoundDirective] = []
    for b in bound:
        home = into.get(b.loop, b.loop)
        others = [o for o in kept if o.loop != b.loop and into.get(o.loop, o.loop) == home and o.kinds == b.kinds]
        if any(o.rank > b.rank or (o.rank == b.rank and o.transform == b.transform) for o in others):
            continue
        clash = next((o for o in others if o.rank == b.rank), None)
        if clash is not None:
            raise DirectiveError(
                f"{b.directive.name} differs from the {clash.directive.name} of the loop this one is fused with",
                b.directive.span,
            )
        kept = [*(o for o in kept if all(o is not x for x in others)), b]
    return [replace(b, loop=into.get(b.loop, b.loop)) for b in kept]


def loops_at(codelet: Codelet, where: str, name: str, span: Span) -> list[Loop | While]:
    """Return the loops that ``loop k:``, ``loop 3:``, ``loop 3.1:``, ``nest i:`` or ``codelet:`` denotes.

    One, or all its pieces.

    DirectiveError where there is none.
    """
    if where == "codelet":
        return [f for f in codelet.body if isinstance(f, Loop)]
    loops = [n for n in walk_stmts(codelet.body) if isinstance(n, (Loop, While))]
    base, _, piece = name.partition(".")
    found = [f for f in loops if base == str(f.number) or (isinstance(f, Loop) and f.var == base)]
    listed = ", ".join(f"{f.var if isinstance(f, Loop) else 'while'} ({loop_label(f)})" for f in loops)
    if not found:
        others = f"; its loops are {listed}" if listed else ", which has no loops"
        raise DirectiveError(f"no loop {base} in {codelet.name}{others}", span)
    numbers = len({f.number for f in found})
    if numbers > 1:
        raise DirectiveError(f"{numbers} loops are named {base}; choose one by number: {listed}", span)
    if not piece:
        return found
    chosen = [f for f in found if identity(f)[1] == int(piece)]
    if not chosen:
        there = (
            f"its pieces are {', '.join(loop_label(f) for f in found)}" if len(found) > 1 else "no distribute splits it"
        )
        raise DirectiveError(f"loop {base} has no piece {piece}: {there}", span)
    return chosen


def number_fission_parts(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return ``body`` with the loops of one number marked as parts 1, 2, ...; a loop that is alone has no mark."""
    copies = Counter(f.number for f in walk_stmts(body) if isinstance(f, Loop))
    if not copies or max(copies.values()) == 1:
        return body
    seen: Counter[int] = Counter()

    def number(stmt: Stmt) -> Stmt:
        match stmt:
            case Loop():
                seen[stmt.number] += 1
                alone = copies[stmt.number] == 1
                stmt = stmt.without(FissionPart) if alone else stmt.annotated(FissionPart(seen[stmt.number]))
        return map_blocks(lambda block: tuple(number(s) for s in block), stmt)

    return tuple(number(s) for s in body)


def original_loops_at(codelet: Codelet, where: str, name: str, span: Span) -> list[Loop | While]:
    """Return the loops at a place of a codelet that is not distributed yet: ``loop 2.1`` is loop 2."""
    return loops_at(codelet, where, name.partition(".")[0], span)


def enclosing_path(body: Sequence[Stmt], number: int, piece: int | None = None) -> tuple[Loop | While, ...]:
    """Return the loops from the outermost one down to the one with this number; the first of its pieces by default."""
    for stmt in body:
        match stmt:
            case (Loop() | While()) as loop:
                here = loop.number == number and piece in (None, identity(loop)[1])
                inner = (loop,) if here else enclosing_path(loop.body, number, piece)
                if inner:
                    return inner if inner[0] is loop else (loop, *inner)
            case If(_, then, other):
                inner = enclosing_path((*then, *other), number, piece)
                if inner:
                    return inner
    return ()
