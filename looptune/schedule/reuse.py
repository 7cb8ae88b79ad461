"""Variables that the iterations of a loop use one after the other, no value flowing between them.

for i: { for j: t[j] = ...; ... = t[j] }        t: with a copy for each i (``expand``) the loop is parallel
for i: A[i] = f(A[i], A[i + 1])                 A: with a copy from before the loop (``snapshot``) it is parallel
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from looptune.core.errors import UnsupportedError
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Load, Loop, While
from looptune.ir.rewrite import walk_stmts
from looptune.schedule.binding import enclosing_path
from looptune.schedule.directives.base import statement_names
from looptune.schedule.parallel_loops import unprivatizable_locals

if TYPE_CHECKING:
    from looptune.poly.legality import Verdict
    from looptune.schedule.analysis import Analysis


def reused_variables(analysis: Analysis, loop: Loop) -> Sequence[str]:
    """Return the variables that iterations of a loop use one after the other, if nothing else makes it sequential.

    A variable of which each iteration writes elements of its own is
    none of them.
    """
    verdict = verdict_of(analysis, loop)
    if verdict.kind == "parallel":
        return unprivatizable_locals(loop, analysis, verdict.private)
    arrays = _in_the_way(analysis, loop, verdict)
    return () if any(_writes_own(loop, v) for v in arrays) else arrays


def overwritten_arrays(analysis: Analysis, loop: Loop) -> Sequence[str]:
    """Return the arrays that make a loop sequential although no value flows, if its iterations write elements each."""
    arrays = _in_the_way(analysis, loop, verdict_of(analysis, loop))
    return arrays if all(_writes_own(loop, v) for v in arrays) else ()


def _in_the_way(analysis: Analysis, loop: Loop, verdict: Verdict) -> Sequence[str]:
    """Return what makes a loop sequential, if no value flows between its iterations."""
    if verdict.kind != "sequential":
        return ()
    try:
        reason = analysis.explain_sequential(statement_names(loop.body), _entry(analysis, loop))
    except UnsupportedError:
        return ()
    return () if reason.value or reason.dependence.because is not None else reason.arrays


def verdict_of(analysis: Analysis, loop: Loop | While) -> Verdict:
    """Return whether a loop of the codelet is parallel in the order of the text."""
    return analysis.verdict(statement_names(loop.body), _entry(analysis, loop), analysis.model.order())


def _entry(analysis: Analysis, loop: Loop | While) -> int:
    """Return the entry of the times that is the loop's."""
    return 2 * len(enclosing_path(analysis.codelet.body, loop.number)) - 1


def _writes_own(loop: Loop, array: str) -> bool:
    """Tell whether iterations write elements of their own: a copy of the array for each would be mostly unused."""
    targets = (s.target for s in walk_stmts(loop.body) if isinstance(s, Assign))
    return any(isinstance(t, Load) and t.array == array and loop.var in names_in(t.index) for t in targets)
