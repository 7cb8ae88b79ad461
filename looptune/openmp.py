"""A scheduled codelet as C with OpenMP: parallel loops are shared out to all cores.

    for i (parallel): for j (parallel)     #pragma omp parallel for collapse(2)
    for i (reduces +: s)                   #pragma omp parallel for reduction(+:s)
    for i (reduces +: C[k])                float C_sum = C[k]; … reduction(+:C_sum) …; C[k] = C_sum;

The outermost parallel loop of a nest is the one that is shared out; what is parallel inside it runs on one core. A
scalar of a loop's own that is declared outside of it is ``private``, and ``lastprivate`` where it is read afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from looptune.ir import Assign, Codelet, If, Load, Local, Loop, Node, Stmt, Var, While
from looptune.pretty import declaration, function
from looptune.rewrite import rewrite
from looptune.scope import begins_with_write, names, names_in, written
from looptune.team import called


@dataclass(slots=True)
class _Marker:
    """``scalars``: the codelet's locals without dimensions; ``clauses``: of each loop that is shared out."""

    scalars: Mapping[str, Local]
    taken: set[str]
    made: list[Local] = field(default_factory=list)
