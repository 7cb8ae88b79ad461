"""The original loops in an order that a CPU runs fast: the innermost goes along the rows of the arrays.

    for j: for k: C[i][j] += A[i][k] * B[k][j]     ==>     for k: for j: C[i][j] += A[i][k] * B[k][j]

Only where every dependence allows it, each sum in its own order: an element comes of the same operations one after the
other, so that what is left is what the loops as written leave, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from looptune.analysis import Analysis
from looptune.bind import called
from looptune.errors import DirectiveError, IllegalTransform
from looptune.frontend.placed import parse_lines
from looptune.ir import Bin, Codelet, If, Load, Loop, Stmt, While
from looptune.permitted import bare
from looptune.rewrite import walk
from looptune.schedule import distributed, schedule
from looptune.scope import names_in


@lru_cache(8)
def rowwise(codelet: Codelet) -> Codelet:
    """The codelet with its loops so ordered, and without its directives."""
    analysis = Analysis(bare(codelet), reassociate=False)
    lines: list[str] = []
    for outer in (n for n in walk(analysis.codelet.body) if isinstance(n, Loop)):
        innermost = [s for s in outer.body if isinstance(s, Loop) and _is_innermost(s)]
        if len(outer.body) > 1 and any(_jumps(s, s) > _jumps(s, outer) for s in innermost):
            lines += _legal(analysis, lines, f"loop {called(outer)}: distribute")
    for band in _bands(distributed(analysis, parse_lines(lines)).body):
        inner = band[-1]
        best = min(reversed(band), key=lambda loop: _jumps(inner, loop))
        if best is not inner:
            order = (*(loop.var for loop in band if loop is not best), best.var)
            lines += _legal(analysis, lines, f"nest {called(band[0])}: permute {', '.join(order)}")
    return schedule(analysis, parse_lines(lines)).codelet


def _legal(analysis: Analysis, lines: Sequence[str], line: str) -> list[str]:
    """The line, where it is legal after the others."""
    try:
        schedule(analysis, parse_lines((*lines, line)))
    except (DirectiveError, IllegalTransform):
        return []
    return [line]


def _bands(body: Sequence[Stmt], around: tuple[Loop, ...] = ()) -> Iterator[tuple[Loop, ...]]:
    """Each innermost loop, after the loops around it that hold no other loop beside."""
    alone = sum(isinstance(s, Loop | While) for s in body) == 1
    for stmt in body:
        match stmt:
            case Loop():
                band = (*around, stmt) if alone else (stmt,)
                if _is_innermost(stmt):
                    yield band
                else:
                    yield from _bands(stmt.body, band)
            case If(_, then, other):
                yield from _bands(then)
                yield from _bands(other)
            case While(_, inner):
                yield from _bands(inner)


def _is_innermost(loop: Loop) -> bool:
    return not any(isinstance(n, Loop | While) for n in walk(loop.body))


def _jumps(inner: Stmt, loop: Loop) -> int:
    """How many of the elements in ``inner`` are a row or more from those of the next iteration of ``loop``."""
    return sum(_is_far(load, loop.var) for load in {n for n in walk(inner) if isinstance(n, Load)})


def _is_far(load: Load, var: str) -> bool:
    *rows, last = load.index
    products = (n for n in walk(last) if isinstance(n, Bin) and n.op in ("*", "<<"))
    return any(var in names_in(index) for index in (*rows, *products))
