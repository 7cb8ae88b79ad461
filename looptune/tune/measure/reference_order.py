"""The original loops in an order that a CPU runs fast: the innermost loop runs along the rows of the arrays.

    for j: for k: C[i][j] += A[i][k] * B[k][j]     ==>     for k: for j: C[i][j] += A[i][k] * B[k][j]

Loops are reordered only if every dependence permits it and each sum keeps its order: each element results from the same
operations in the same order, so that the results are identical to the bit. A matrix that is only read may be transposed
if three loops read each of its elements repeatedly:

    for i: for j: for k: C[i][j] += A[k][i] * B[j][k]     ==>     for i: for k: for j: C[i][j] += A[k][i] * B'[k][j]

A strict sum waits for each addition, and a column has a cache line for each element: at 1024 x 1024 the first loops
took fifty times as long as the second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.ir.def_use import names_in
from looptune.ir.nodes import Array, Assign, Binary, Codelet, If, Load, Loop, Node, Scalar, Stmt, Var, While
from looptune.ir.rewrite import has_loop, rewrite, walk
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import apply_distribution, schedule
from looptune.schedule.binding import loop_label
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.legal_space import strip_directives


@lru_cache(8)
def interchange_for_locality(codelet: Codelet) -> Codelet:
    """Return the codelet with its loops interchanged for locality, and without its directives."""
    analysis = Analysis(strip_directives(codelet), reassociate=False)
    lines: list[str] = []
    for outer in (n for n in walk(analysis.codelet.body) if isinstance(n, Loop)):
        innermost = [s for s in outer.body if isinstance(s, Loop) and not has_loop(s.body)]
        if len(outer.body) > 1 and any(_jumps(s, s) > _jumps(s, outer) for s in innermost):
            lines += _legal(analysis, lines, f"loop {loop_label(outer)}: distribute")
    for band in _bands(apply_distribution(analysis, parse_lines(lines)).body):
        inner = band[-1]
        best = min(reversed(band), key=lambda loop: _jumps(inner, loop))
        if best is not inner:
            order = (*(loop.var for loop in band if loop is not best), best.var)
            lines += _legal(analysis, lines, f"nest {loop_label(band[0])}: permute {', '.join(order)}")
    return schedule(analysis, parse_lines(lines)).codelet


@lru_cache(8)
def transpose_for_locality(codelet: Codelet) -> tuple[Codelet, frozenset[str]]:
    """Return the codelet interchanged for locality with some matrices transposed, and the names of these.

    A matrix is transposed if that leaves fewer strided accesses and accumulations in the innermost loops; see the
    module.
    """
    best, names = interchange_for_locality(codelet), frozenset[str]()
    for name in (p.name for p in codelet.params if _may_be_turned(p, codelet)):
        if any(name in names_in(loop.body) for loop in _hindered(best)):
            other = interchange_for_locality(_turned(codelet, names | {name}))
            if _hindrances(other) < _hindrances(best):
                best, names = other, names | {name}
    return best, names


def _may_be_turned(p: Array | Scalar, codelet: Codelet) -> bool:
    """Tell whether the array is a matrix that is only read, at loop variables."""
    match p:
        case Array(name, _, (rows, _), "in") if rows is not None:
            loads = (n for n in walk(codelet.body) if isinstance(n, Load) and n.array == name)
            return all(isinstance(i, Var) for load in loads for i in load.index)
    return False


def _turned(codelet: Codelet, names: Collection[str]) -> Codelet:
    """Return the codelet with the two dimensions of these arrays exchanged."""

    def rule(n: Node) -> Node | None:
        match n:
            case Load(name, (row, column)) if name in names:
                return replace(n, index=(column, row))
            case Array(name, shape=(rows, columns)) if name in names:
                return replace(n, shape=(columns, rows))
        return None

    return rewrite(rule, codelet)


def _hindrances(codelet: Codelet) -> int:
    return sum(map(_hindrance, _hindered(codelet)))


def _hindered(codelet: Codelet) -> list[Loop]:
    """Return the innermost of three loops or more that do not become vectors.

    Where there are fewer a transposition costs as much as it saves.
    """
    inner = [band[-1] for band in _bands(codelet.body, whole=True) if len(band) > 2]
    return [loop for loop in inner if _hindrance(loop)]


def _hindrance(loop: Loop) -> int:
    """Elements in other rows, and sums in one element."""
    return _jumps(loop, loop) + sum(_is_chain(n, loop.var) for n in walk(loop.body))


def _is_chain(n: Node, var: str) -> bool:
    match n:
        case Assign(target, Binary(_, lhs, rhs)):
            return target in (lhs, rhs) and var not in names_in(target)
    return False


def _legal(analysis: Analysis, lines: Sequence[str], line: str) -> list[str]:
    """Return the line, where it is legal after the others."""
    try:
        schedule(analysis, parse_lines((*lines, line)))
    except (DirectiveError, IllegalTransform):
        return []
    return [line]


def _bands(body: Sequence[Stmt], around: tuple[Loop, ...] = (), *, whole: bool = False) -> Iterator[tuple[Loop, ...]]:
    """Each innermost loop, after the loops around it that hold no other loop beside or, of ``whole`` bands, all."""
    alone = whole or sum(isinstance(s, Loop | While) for s in body) == 1
    for stmt in body:
        match stmt:
            case Loop():
                band = (*around, stmt) if alone else (stmt,)
                if not has_loop(stmt.body):
                    yield band
                else:
                    yield from _bands(stmt.body, band, whole=whole)
            case If(_, then, other):
                yield from _bands(then, whole=whole)
                yield from _bands(other, whole=whole)
            case While(_, inner):
                yield from _bands(inner, whole=whole)


def _jumps(inner: Stmt, loop: Loop) -> int:
    """Return how many elements of ``inner`` are a row or more from those of the next iteration of ``loop``."""
    return sum(_is_far(load, loop.var) for load in {n for n in walk(inner) if isinstance(n, Load)})


def _is_far(load: Load, var: str) -> bool:
    *rows, last = load.index
    products = (n for n in walk(last) if isinstance(n, Binary) and n.op in ("*", "<<"))
    return any(var in names_in(index) for index in (*rows, *products))
