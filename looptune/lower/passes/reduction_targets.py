"""The targets of a reduction that is split into parts, grouped by the loops that index them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from looptune.core.errors import InfeasibleDirective
from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import assigned_targets, names_in, written_names
from looptune.ir.nodes import Annotations, Const, Load, Loop, Reduction, Var
from looptune.ir.rewrite import walk_stmts


@dataclass(frozen=True, slots=True)
class TargetGroup:
    """The ``targets`` that the loop in ``index_loop`` indexes; without one, only loops around the split one do."""

    index_loop: tuple[Loop, ...]
    targets: tuple[Reduction, ...]


def _of_join(loop: Loop) -> Annotations:
    """Of the loop's annotations those that are for the kernel which joins the parts, too."""
    return Annotations(a for a in loop.annotations if a.of_join)


def group_targets_by_loop(loops: Sequence[Loop], targets: Sequence[Reduction]) -> list[TargetGroup]:
    """Return the targets grouped by the parallel loop, inside the split ``loops``, that indexes them.

    A remainder loop has a group of its own. The result is [] if no such loop indexes a target. Each iteration of such a
    loop accumulates into an element of its own, since the loop is parallel. Raises InfeasibleDirective if the targets
    cannot be grouped.
    """
    inner = [f for loop in loops for f in walk_stmts(loop.body) if isinstance(f, Loop)]
    changing = {f.var for f in (*loops, *inner)}
    if not any(names_in(r.target.index) & changing for r in targets if isinstance(r.target, Load)):
        return []
    found: dict[Loop, dict[Reduction, None]] = {}
    for f in inner:
        made = assigned_targets(f.body)
        mine = [r for r in targets if r.target in made and f.var in names_in(r.target)]
        alone = f.mode == "parallel" and all(names_in(r.target) & changing == {f.var} for r in mine)
        if mine and (not alone or names_in((f.lo, f.hi)) & (changing | written_names(loops))):
            raise inseparable_error(loops[0], f)
        if mine:
            each = Loop(f.var, f.lo, f.hi, (), f.step, "parallel", dtype=f.dtype, annotations=_of_join(f))
            found.setdefault(each, {}).update(dict.fromkeys(mine))
    told = [r for mine in found.values() for r in mine]
    twice = next((r for r in told if told.count(r) > 1), None)
    if twice is not None:
        raise InfeasibleDirective(
            loops[0], f"loops inside of it that run differently add to {expression_text(twice.target)}"
        )
    rest = tuple(r for r in targets if r not in told)
    among = next((f for f in inner if any(f.var in names_in(r.target) for r in rest)), None)
    if among is not None:
        raise inseparable_error(loops[0], among)
    return [
        *(TargetGroup((each,), tuple(mine)) for each, mine in found.items()),
        *([TargetGroup((), rest)] if rest else []),
    ]


def inseparable_error(loop: Loop, inner: Loop) -> InfeasibleDirective:
    """Return the error for a split loop whose sums an inner loop indexes."""
    return InfeasibleDirective(loop, f"loop {inner.var} inside of it tells its sums apart: permute it inwards")


def loop_over_parts(loop: Loop, part: Var, parts: int) -> Loop:
    """Return an empty loop over the ``parts`` of ``loop``."""
    return Loop(
        part.name, Const(0, part.dtype), Const(parts, part.dtype), (), dtype=part.dtype, annotations=_of_join(loop)
    )
