"""Forms of a codelet in which more of its loops are parallel, as lines of a space that are before all others.

    copies    for i: { for j: t[j] = ...; ... = t[j] }            loop i: expand t
    before    for i: A[i] = f(A[i], A[i + 1])                     loop i: snapshot A
    pieces    for i: A[i] = f(A[k])                               loop i: splitat k, k + 1
    blocks    for i: if (A[i] < b) { b = A[i]; k = i; }           loop i: argreduce 1024
    values    for i: for j: { w = A[i][j]; ...; A[i][j] = w }     loop i: expand w; loop j: expand w_i

A variable is expanded along each loop that is sequential only because its iterations use the variable one after the
other, no value flowing; where each iteration writes elements of its own, the others read a copy made before the loop.
A loop that keeps the best of its terms is divided into blocks. A loop is split where it reaches the element that its
other iterations read. A scalar that begins anew in each iteration of nested loops is expanded along all of them, so
that a schedule may take them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import names_in, written_names
from looptune.ir.nodes import Assign, Const, Expr, If, Load, Loop, Stmt, Var, While
from looptune.ir.rewrite import has_load, walk, walk_stmts
from looptune.ir.simplify import add, sub
from looptune.poly.arg_reduction import arg_reductions
from looptune.schedule.apply import schedule
from looptune.schedule.binding import loop_label
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.reuse import overwritten_arrays, reused_variables, verdict_of
from looptune.schedule.suggest import BLOCK
from looptune.tune.space.patterns import outermost

if TYPE_CHECKING:
    from looptune.schedule.analysis import Analysis

MOST_POINTS = 2
"""A loop that reads its own array at more places is not split."""


def expansions(analysis: Analysis) -> tuple[str, ...]:
    """Return lines that give copies of a variable to each loop that needs nothing else to be parallel."""
    lines = []
    for _, loop in loops_inside(analysis.codelet.body):
        variables = reused_variables(analysis, loop) if loop.number else ()
        lines += [f"loop {loop_label(loop)}: expand {', '.join(variables)}"] if variables else []
    return tuple(lines)


def outermost_expansions(analysis: Analysis) -> tuple[str, ...]:
    """Return those of ``expansions`` that are inside of no other: each core has a copy for each of its iterations."""
    lines, done = [], set[int]()
    for around, loop in loops_inside(analysis.codelet.body):
        variables = () if not loop.number or done & {f.number for f in around} else reused_variables(analysis, loop)
        if variables:
            lines.append(f"loop {loop_label(loop)}: expand {', '.join(variables)}")
            done.add(loop.number)
    return tuple(lines)


def snapshots(analysis: Analysis) -> tuple[str, ...]:
    """Return lines that let each loop read old values from a copy, if it needs nothing else to be parallel.

    Loops inside of such a loop are left out.
    """
    lines: list[str] = []
    done: set[int] = set()
    for around, loop in loops_inside(analysis.codelet.body):
        if loop.number and not done & {f.number for f in around}:
            arrays = overwritten_arrays(analysis, loop)
            if arrays:
                lines.append(f"loop {loop_label(loop)}: snapshot {', '.join(arrays)}")
                done.add(loop.number)
    return tuple(lines)


def blocks(analysis: Analysis) -> tuple[str, ...]:
    """Return lines that divide into blocks each loop that keeps the best of its terms, outside of parallel loops."""
    lines: list[str] = []
    done: set[int] = set()
    for around, loop in loops_inside(analysis.codelet.body):
        free = any(verdict_of(analysis, f).kind == "parallel" for f in around)
        if loop.number and not free and not done & {f.number for f in around} and arg_reductions(loop):
            lines.append(f"loop {loop_label(loop)}: argreduce {BLOCK}")
            done.add(loop.number)
    return tuple(lines)


def nested_expansions(analysis: Analysis) -> tuple[str, ...]:
    """Return lines that give copies of a scalar to each iteration of nested sequential loops, if all are legal.

    The copies of an outer loop have names of their own, by which those of the inner loops are asked for.
    """
    nests = [f for f in outermost(analysis.codelet.body) if verdict_of(analysis, f).kind == "sequential"]
    scalars = [(f, v) for f in nests for v in _scalars(analysis, f) if _begins_anew(f, v)]
    lines = [f"loop {loop_label(f)}: expand {v}" for f, v in scalars]
    known = {v.name for v in analysis.codelet.locals}
    try:
        made = schedule(analysis, parse_lines(tuple(lines))).codelet.locals
    except (DirectiveError, IllegalTransform):
        return ()
    copies = [v.name for v in made if v.name not in known]
    if len(copies) != len(scalars):
        return ()
    for (f, v), copy in zip(scalars, copies, strict=True):
        lines += [f"loop {loop_label(g)}: expand {copy}" for g in _inner(f, v)]
    return tuple(lines)


def _scalars(analysis: Analysis, loop: Loop) -> tuple[str, ...]:
    """Return the scalars that the loop writes."""
    known = {v.name for v in analysis.codelet.locals if not v.shape}
    return tuple(sorted(known & written_names((loop,))))


def _inner(loop: Loop, variable: str) -> Iterator[Loop]:
    """Yield the loops inside in which the variable begins anew as well."""
    for inner in outermost(loop.body):
        if _begins_anew(inner, variable):
            yield inner
            yield from _inner(inner, variable)


def _begins_anew(loop: Loop, variable: str) -> bool:
    """Tell whether the first that each iteration does with the variable is to assign it what does not depend on it."""
    first = next((s for s in loop.body if variable in names_in((s,))), None)
    match first:
        case Assign(Var(name), value):
            return name == variable and variable not in names_in(value)
        case Loop():
            return _begins_anew(first, variable)
    return False


def splits(analysis: Analysis) -> tuple[str, ...]:
    """Return lines that split loops where they reach what their other iterations read."""
    lines = []
    for around, loop in loops_inside(analysis.codelet.body):
        points = tuple(dict.fromkeys(_points(loop, around)))
        serial = 0 < len(points) <= MOST_POINTS and loop.number and loop.source_value is None
        if serial and verdict_of(analysis, loop).kind == "sequential":
            places = ", ".join(expression_text(e) for p in points for e in (p, add(p, Const(1, p.dtype))))
            lines.append(f"loop {loop_label(loop)}: splitat {places}")
    return tuple(lines)


def _points(loop: Loop, around: tuple[Loop, ...]) -> Iterator[Expr]:
    """Yield the values of the loop in which it writes what it reads in all iterations, where loops around say which."""
    outer = {f.var for f in around if f.source_value is None}
    inside = {n.var for n in walk(loop) if isinstance(n, Loop)}
    for write in (s.target for s in walk_stmts(loop.body) if isinstance(s, Assign) and isinstance(s.target, Load)):
        reads = (n for s in walk_stmts(loop.body) if isinstance(s, Assign) for n in walk(s.value))
        for read in (n for n in reads if isinstance(n, Load) and n.array == write.array):
            for mine, other in zip(write.index, read.index, strict=True):
                offset = sub(mine, Var(loop.var, loop.dtype))
                if mine.dtype == loop.dtype and not names_in(offset) and names_in(other) & outer - inside:
                    point = sub(other, offset)
                    if not names_in(point) & inside and not has_load(point):
                        yield point


def loops_inside(body: Iterable[Stmt], around: tuple[Loop, ...] = ()) -> Iterator[tuple[tuple[Loop, ...], Loop]]:
    """Yield each counted loop with those around it; what is in a ``while`` loop is left out."""
    for stmt in body:
        match stmt:
            case Loop():
                yield around, stmt
                yield from loops_inside(stmt.body, (*around, stmt))
            case If(_, then, other):
                yield from loops_inside((*then, *other), around)
            case While() | Assign():
                pass
