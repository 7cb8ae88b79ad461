"""Nests that are generated anew in the order that a directive gives their statements.

order of S: (t, i)  ->  (2*t + i, t)        site.loop and all loops in it  ->  loops that run S in this order
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from looptune.frontend.directive_parser import sum_terms
from looptune.ir.nodes import Assign, Codelet, If, Loop, Stmt, While
from looptune.ir.rewrite import rewrite_stmts, walk, walk_stmts
from looptune.poly.affine import name
from looptune.poly.isl_limits import IslLimitExceeded
from looptune.poly.loop_generation import GenerationError, LoopNest
from looptune.schedule.directives.base import NewSchedule, Rewrite, Transform, statement_names

if TYPE_CHECKING:
    from looptune.poly.loop_generation import Times
    from looptune.poly.scop import Order, SchedulePiece
    from looptune.schedule.directives.base import DirectiveSite


@dataclass(frozen=True, slots=True)
class GeneratedNest:
    """``body`` takes the place of the site's loop; ``schedule`` is the order in which it runs the statements."""

    schedule: NewSchedule
    body: tuple[Stmt, ...]


def read_nest(site: DirectiveSite, directive: str) -> LoopNest:
    """Return the nest at the directive's loop.

    DirectiveError where it cannot be generated anew: a ``while`` loop in or around it, or a statement of which the
    loops and sizes do not say where it runs.
    """
    loops = (*site.enclosing_loops, *walk_stmts((site.loop,)))
    loop = next((f for f in loops if isinstance(f, While)), None)
    if loop is not None:
        raise site.refuse(f"{directive}: the nest has a while loop (line {loop.span.line}), whose trips are not known")
    nest = LoopNest.of(site.loop_context.codelet, site.loop)
    inexact = nest.inexact
    if inexact is not None and inexact.unknown is not None:
        line, why = inexact.assign.span.line, inexact.unknown
        raise site.refuse(f"{directive}: the iterations of the statement of line {line} are not known: {why}")
    return nest


class GeneratedTransform(Transform):
    """A directive that gives the statements of its nest a new order; the loops are generated from it."""

    @abstractmethod
    def generated(self, site: DirectiveSite) -> GeneratedNest:
        """Return the nest in the new order. DirectiveError where it cannot be made."""

    def schedule(self, site: DirectiveSite) -> NewSchedule:
        return self._made(site).schedule

    def apply(self, site: DirectiveSite) -> Rewrite:
        return Rewrite(self._made(site).body)

    def _made(self, site: DirectiveSite) -> GeneratedNest:
        """Return the nest, which is generated once for judging it and for applying it."""
        if not site.generated:
            site.generated.append(self.generated(site))
        (made,) = site.generated
        assert isinstance(made, GeneratedNest), "a site is for one directive"
        return made


def numbered(codelet: Codelet, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the body with a number of its own for each loop that has no counterpart in the text."""
    used = (f.number for f in walk(codelet.body) if isinstance(f, (Loop, While)))
    free = count(max(used, default=0) + 1)

    def rule(stmt: Stmt) -> Stmt | None:
        return replace(stmt, number=next(free)) if isinstance(stmt, Loop) and not stmt.number else None

    return rewrite_stmts(rule, body)


def loop_paths(loop: Loop) -> Mapping[str, tuple[Loop, ...]]:
    """Return the loops around each statement of the nest, from ``loop`` on; those of its first copy."""
    found: dict[str, tuple[Loop, ...]] = {}

    def visit(body: tuple[Stmt, ...], around: tuple[Loop, ...]) -> None:
        for stmt in body:
            match stmt:
                case Assign(name=name):
                    found.setdefault(name, around)
                case Loop():
                    visit(stmt.body, (*around, stmt))
                case If(_, then, other):
                    visit((*then, *other), around)

    visit((loop,), ())
    return found


def loop_values(site: DirectiveSite, path: Sequence[Loop], piece: SchedulePiece) -> dict[str, str]:
    """Return the values of the loops around the site and of those of ``path`` in the instances of ``piece``.

    They are isl text, by the names of the loops, with the sizes by theirs. ``path`` begins at the site's loop.
    """
    around = [*site.enclosing_loops, *path]
    found = {f.var: f"({piece.time[2 * d + 1]})" for d, f in enumerate(around) if isinstance(f, Loop)}
    return {**{size: name(size) for size in site.sizes}, **found}


def sum_text(site: DirectiveSite, said: str, text: str, known: Mapping[str, str], what: str) -> str:
    """Return a directive's sum as isl text.

    DirectiveError for a name that is not ``known``; ``what`` says what such a name is.
    """
    parts = []
    for var, factor in sum_terms(text).items():
        if var and var not in known:
            raise site.refuse(f"{said}: {var} is {what}")
        parts.append(f"{factor}*{known[var]}" if var else str(factor))
    return f"({' + '.join(parts)})"


def generate_in_order(site: DirectiveSite, nest: LoopNest, order: Order, directive: str) -> GeneratedNest:
    """Return the nest in ``order``, of which the entries from the loop on count; each entry becomes one loop."""
    if not nest.copies:
        return GeneratedNest(NewSchedule({}), (site.loop,))
    first = site.depth - 1
    times = nest.times_in(site.queries.space, order, first)
    length = max(len(p.time) for mine in order.values() for p in mine) - first
    return generate(site, nest, times, directive, tuple(range(1, length, 2)))


def generate(
    site: DirectiveSite, nest: LoopNest, times: Times, directive: str, single: tuple[int, ...] = ()
) -> GeneratedNest:
    """Return the nest with its statements at ``times``; see ``LoopNest.generate``.

    DirectiveError where isl gives up, or where the file has a directive for a loop that is there no more.
    """
    try:
        body = numbered(nest.codelet, nest.generate(times, single))
        order = site.queries.times_of(site.loop_context.codelet, site.loop, body)
    except IslLimitExceeded as reason:
        raise site.refuse(f"{directive}: the loops are too complex to generate: {reason}") from None
    except GenerationError as reason:
        raise site.refuse(f"{directive}: {reason}") from None
    left = {f.number for f in walk(body) if isinstance(f, Loop)}
    gone = next(
        (f for f in walk(site.loop.body) if isinstance(f, Loop) and f.directives and f.number not in left), None
    )
    if gone is not None:
        word = gone.directives[0].name
        raise site.refuse(f"{directive}: no loop {gone.var} is left, for which the file has the directive {word}")
    names = statement_names(site.loop)
    moved = {n: pieces for n, pieces in order.items() if n not in names}
    inside = {n: order.get(n, site.order[n]) for n in names}  # a statement that never runs is left out
    return GeneratedNest(NewSchedule(inside, also_moved=moved), body)
