"""The stage ``storage``: the directives that change which variables there are, before all others.

    bound ──▶ one for each variable, an expansion along all loops that name it ──▶ applied ──▶ the dependences anew

``Scheduler.expand`` applies them, and keeps the analysis of the codelet that they make for all versions of a space.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.ir.def_use import referenced_names
from looptune.ir.nodes import Codelet, Loop, Stmt
from looptune.ir.rewrite import rewrite_stmts
from looptune.ir.verify import verify
from looptune.schedule.binding import BoundDirective, Id, enclosing_path, identity
from looptune.schedule.directives.expand import Expand
from looptune.schedule.directives.storage import StorageTransform
from looptune.schedule.messages import directive_text, loop_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from looptune.schedule.applied import AppliedDirective


def with_copies(before: Codelet, made: Codelet, copies: Mapping[str, str]) -> Codelet:
    """Return the codelet ``made`` of ``before`` without the locals that only ``before`` uses.

    ``copies`` maps each new local to the one that it replaces in private copies.
    """
    old, used = referenced_names(before.body), referenced_names(made.body)
    kept = tuple(v for v in made.locals if v.name in used or v.name not in old)
    return verify(replace(made, body=_with_private_copies(made.body, copies), locals=kept))


def _with_private_copies(body: tuple[Stmt, ...], copies: Mapping[str, str]) -> tuple[Stmt, ...]:
    """Return the body whose private arrays are those that its loops still use, and what stands for them."""

    def rule(n: Stmt) -> Stmt | None:
        match n:
            case Loop(private_arrays=(_, *_) as own):
                mine = referenced_names(n.body)
                new = (c for c, local in copies.items() if local in own and c in mine)
                return replace(n, private_arrays=(*(a for a in own if a in mine), *new))
        return None

    return rewrite_stmts(rule, body)


def one_by_variable(codelet: Codelet, bound: Sequence[BoundDirective]) -> list[BoundDirective]:
    """Return the directives, each for one variable; an expansion is along all loops inside each other that name it."""
    each = [(b, t, v) for b in bound if isinstance(t := b.transform, StorageTransform) for v in t.variables]
    found = [b for b in bound if not isinstance(b.transform, StorageTransform)]
    found += [replace(b, transform=replace(t, variables=(v,))) for b, t, v in each if not isinstance(t, Expand)]
    expansions = [(b, v) for b, t, v in each if isinstance(t, Expand)]
    for b, variable in expansions:
        named = [other.loop for other, v in expansions if v == variable and other.loop != b.loop]
        if not any(_is_inside(codelet, b.loop, loop) for loop in named):
            inner = tuple((variable, loop[0]) for loop in named if _is_inside(codelet, loop, b.loop))
            found.append(replace(b, transform=Expand((variable,), inner, span=b.transform.span)))
    return found


def expansion_steps(
    codelet: Codelet, steps: Sequence[AppliedDirective], bound: Sequence[BoundDirective]
) -> tuple[AppliedDirective, ...]:
    """Return one step for each directive that fits its loop: it is refused where one of its variables is.

    An expansion along several loops was applied at the outermost of them.
    """
    found: list[AppliedDirective] = []
    for b in bound:
        names = {a.key for a in b.directive.args}
        own = [s for s in steps if s.directive.span == b.directive.span and s.number == b.loop[0]]
        outer = [
            s for s in steps
            if names & {a.key for a in s.directive.args} and _is_inside(codelet, b.loop, (s.number, s.piece))
        ]  # fmt: skip
        mine = [*own, *outer]
        if mine:
            step = next((s for s in mine if s.refusal is not None), mine[0])
            said, var = directive_text(b.directive), loop_name(enclosing_path(codelet.body, *b.loop)[-1])
            found.append(replace(step, text=said, loop=var, number=b.loop[0], directive=b.directive))
    return tuple(found)


def _is_inside(codelet: Codelet, loop: Id, outer: Id) -> bool:
    return outer != loop and outer in map(identity, enclosing_path(codelet.body, *loop))
