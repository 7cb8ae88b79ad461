"""Variables that the iterations of a loop use one after the other, no value flowing between them.

for i: { for j: t[j] = ...; ... = t[j] }        t: with a copy for each i (``expand``) the loop is parallel
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from looptune.core.errors import UnsupportedError
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Load, Loop
from looptune.ir.rewrite import walk_stmts
from looptune.schedule.directives.base import statement_names
from looptune.schedule.parallel_loops import unprivatizable_locals

if TYPE_CHECKING:
    from looptune.poly.legality import Verdict
    from looptune.schedule.analysis import Analysis


def reused_variables(analysis: Analysis, loop: Loop, depth: int) -> Sequence[str]:
    """Return the variables that iterations of a loop use one after the other, if nothing else makes it sequential.

    ``depth`` is how many loops stand around the loop. A variable of which each iteration writes elements of its own is
    none of them.
    """
    verdict = verdict_of(analysis, loop, depth)
    if verdict.kind == "parallel":
        return unprivatizable_locals(loop, analysis, verdict.private)
    if verdict.kind != "sequential":
        return ()
    try:
        reason = analysis.explain_sequential(statement_names(loop.body), 2 * depth + 1)
    except UnsupportedError:
        return ()
    if reason.value or reason.dependence.because is not None:
        return ()
    return () if any(_writes_own(loop, v) for v in reason.arrays) else reason.arrays


def verdict_of(analysis: Analysis, loop: Loop, depth: int) -> Verdict:
    """Return whether a loop of the codelet, with ``depth`` loops around it, is parallel."""
    return analysis.verdict(statement_names(loop.body), 2 * depth + 1, analysis.model.order())


def _writes_own(loop: Loop, array: str) -> bool:
    """Tell whether iterations write elements of their own: a copy of the array for each would be mostly unused."""
    targets = (s.target for s in walk_stmts(loop.body) if isinstance(s, Assign))
    return any(isinstance(t, Load) and t.array == array and loop.var in names_in(t.index) for t in targets)
