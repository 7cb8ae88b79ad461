"""The reductions of a parallel loop: found by the analysis, checked against the directive's ``reduce(...)``.

    for j: y[i] += A[i][j] * x[j]           loop j reduces + of y[i]
    for i: s[i / 2] += A[i]                 two iterations accumulate into each element: threads cannot share these

Each thread accumulates a partial result, and these are combined once. So the element has to be the same in all
iterations of the loop, and nothing else in the loop may access it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError
from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import names_in, target_name, written_names
from looptune.ir.nodes import Arg, Assign, Load, Loop, Reduction, Stmt
from looptune.ir.rewrite import walk, walk_stmts

if TYPE_CHECKING:
    from looptune.poly.legality import Verdict


@dataclass(frozen=True, slots=True)
class LoopReductions:
    """The reductions of a loop; ``named`` has the operator, the name and the user's name of each reduced variable.

    ``wrong`` says why threads cannot share the reductions; it is "" where they can.
    """

    reduces: tuple[Reduction, ...]
    named: tuple[tuple[str, str, str], ...]
    wrong: str = ""


def reductions(loop: Loop, verdict: Verdict, *, copies: bool = False) -> LoopReductions:
    """Return the reductions that ``loop`` carries according to ``verdict``.

    If the loop carries other dependences as well, reductions that are only assumed are left out. ``copies``: who shares
    the loop has copies of its arrays, so that the element may vary.
    """
    sure = [r for r in verdict.reductions if verdict.kind == "reduction" or not r.assumed]
    ops = {r.statement: (r.op, r.variable) for r in sure}
    mine = [(n.target, *ops[n.name]) for n in walk(loop.body) if isinstance(n, Assign) and n.name in ops]
    reduces = tuple(dict.fromkeys(Reduction(op, target) for target, op, _ in mine))
    named = dict.fromkeys((op, target_name(target), text.partition("[")[0].strip(" *()")) for target, op, text in mine)
    return LoopReductions(reduces, tuple(named), _wrong(loop, reduces, verdict.mixed, copies))


def restrict_to_body(loop: Loop, body: tuple[Stmt, ...]) -> tuple[Reduction, ...]:
    """Return the reductions of the loop with ``body``, in which copies of its statements may have other elements.

    for i reduces y[j]: for j: y[j] += ...    ==>    for i reduces y[2*j], y[2*j + 1]: for j: y[2*j] += ...; ...
    """
    ops = {r.target: r.op for r in loop.reductions}
    adding = {n.name: ops[n.target] for n in walk_stmts(loop.body) if isinstance(n, Assign) and n.target in ops}
    made = (Reduction(adding[n.name], n.target) for n in walk_stmts(body) if isinstance(n, Assign) and n.name in adding)
    return tuple(dict.fromkeys(made))


def _wrong(loop: Loop, reduces: Iterable[Reduction], mixed: frozenset[str], copies: bool) -> str:
    changing = {loop.var} | written_names(loop.body)
    for r in reduces:
        name = target_name(r.target)
        if name in mixed:
            return f"reduces {name} by {r.op} and also uses it in another way"
        if not copies and isinstance(r.target, Load) and names_in(r.target.index) & changing:
            what = f"the reduction {r.op} of {expression_text(r.target)}"
            return f"carries {what}, whose element is not the same in all iterations"
    return ""


def check_clause(clause: Arg, found: Iterable[tuple[str, str, str]], loops: str) -> None:
    """Raise DirectiveError if ``reduce(+:x, ...)`` differs from what was ``found`` in the ``loops``."""
    left = list(dict.fromkeys(found))
    carried = ", ".join(f"{op}:{text}" for op, _, text in left)
    reduce = "reduce" if " and " in loops else "reduces"
    for value in clause.values:
        match value:
            case Arg(op, (str(name),)):
                known = [f for f in left if f[0] == op.lower() and name in f[1:]]
            case _:
                raise DirectiveError("reduce takes an op and a variable, such as reduce(+:x)", clause.span)
        if not known:
            what = f"{reduce} {carried}" if carried else f"{reduce} nothing"
            raise DirectiveError(f"reduce names {op}:{name}, but {loops} {what}", value.span)
        left = [f for f in left if f not in known]
    if left:
        missing = ", ".join(f"{op}:{text}" for op, _, text in left)
        raise DirectiveError(f"reduce must also name {missing}, which {loops} {reduce}", clause.span)
