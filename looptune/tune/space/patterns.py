"""Patterns of loop nests from which the first sections of a derived space are made.

    product     for p: for q: for k: X[p][q] += A[p][k] * B[k][q]      elements that several iterations of p or q read
    stencil     for p: for q: X[p][q] = f(A around p, q)               neighbours that several iterations read
    steps       for t: stencils                                        arrays that every step reads and writes
    rows        for p: for k: y[p] += A[p][k]                          a sum along neighbours in memory
    columns     for p: for k: y[p] += A[k][p]                          sums beside each other

Nothing here is a promise: what is proposed is judged and measured like everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from looptune.core.errors import DirectiveError, IllegalTransform
from looptune.ir.def_use import names_in, written_names
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import Array, Assign, Const, Expr, If, Load, Local, Loop, Stmt, Var, While
from looptune.ir.rewrite import has_loop, substitute, walk, walk_stmts
from looptune.poly.disjoint import Surroundings, never_written
from looptune.schedule.analysis import Analysis
from looptune.schedule.apply import apply_distribution, schedule
from looptune.schedule.binding import Id, identity, loop_label
from looptune.schedule.directive_lines import parse_lines
from looptune.schedule.directives.base import trip_count
from looptune.tune.space.space import parse


@dataclass(frozen=True, slots=True)
class ReductionPattern:
    """A reduction: ``loop`` accumulates, ``around`` are the parallel loops whose variables index the target.

    In a product, the last two loops of ``around`` are ``outer`` and ``inner``, and one directly around these is its
    ``batch``. ``loop`` may also stand directly around
    the last one. ``contiguous``: the iterations of ``loop`` are adjacent in memory in the access with most dimensions.
    ``reused``: the arrays of which several iterations of outer or inner read the same element; ``across``: those of
    them whose rows ``loop`` traverses, one row for each iteration of outer.
    """

    loop: Loop
    around: tuple[Loop, ...]
    contiguous: bool
    reused: tuple[str, ...]
    across: tuple[str, ...] = ()

    @property
    def product(self) -> bool:
        return len(self.around) > 1 and bool(self.reused) and not self.outside_target_loop

    @property
    def outside_target_loop(self) -> bool:
        """Return whether the reduction loop stands directly around a loop whose variable indexes the target."""
        return any(n is f for f in self.around for n in self.loop.body)

    @property
    def uneven(self) -> bool:
        """Return whether the sums of a tile differ in length, so that not all threads of a block reach each strip."""
        return bool(names_in((self.loop.lo, self.loop.hi)) & {self.outer.var, self.inner.var})

    @property
    def outer(self) -> Loop:
        return self.around[-2]

    @property
    def inner(self) -> Loop:
        return self.around[-1]

    @property
    def perfect(self) -> bool:
        """Return whether nothing stands beside the inner loop of a product."""
        return len(self.outer.body) == 1 and (self.batch is None or len(self.batch.body) == 1)

    @property
    def batch(self) -> Loop | None:
        """Return the loop of which each iteration has a product of its own, or None."""
        around = self.around[-3] if len(self.around) > 2 else None
        return around if around is not None and any(s is self.outer for s in around.body) else None

    @property
    def triangular(self) -> bool:
        return self.outer.var in names_in((self.inner.lo, self.inner.hi))


@dataclass(frozen=True)
class Patterns:
    """The patterns of a codelet after the ``distribute`` directives of the file and of ``lines``.

    ``sizes`` are the integer parameters whose values are known.
    """

    analysis: Analysis
    lines: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict, hash=False)

    @cached_property
    def body(self) -> tuple[Stmt, ...]:
        return apply_distribution(self.analysis, parse_lines(self.lines)).body

    @cached_property
    def modes(self) -> dict[Id, str]:
        """Return how each loop runs if nothing is asked for."""
        done = schedule(self.analysis, parse_lines(self.lines)).codelet.body
        return {identity(f): f.mode for f in walk_stmts(done) if isinstance(f, Loop)}

    def serial_around_parallel(self, loop: Loop) -> bool:
        """Return whether a sequential loop of the nest is around a parallel one."""
        modes = ((self.modes.get(identity(f), ""), f) for f in walk_stmts((loop,)) if isinstance(f, Loop))
        serial = [f for mode, f in modes if mode != "parallel"]
        return any(self.parallel(g) for f in serial for g in walk_stmts(f.body) if isinstance(g, Loop))

    @cached_property
    def modes_of_statements(self) -> dict[str, tuple[str, ...]]:
        """Return the modes of the loops around each statement, outermost first."""
        found: dict[str, tuple[str, ...]] = {}

        def visit(body: tuple[Stmt, ...], around: tuple[str, ...]) -> None:
            for stmt in body:
                match stmt:
                    case Assign(name=name):
                        found.setdefault(name, around)
                    case Loop():
                        visit(stmt.body, (*around, self.modes.get(identity(stmt), "")))
                    case While(_, inner):
                        visit(inner, around)
                    case If(_, then, other):
                        visit((*then, *other), around)

        visit(self.body, ())
        return found

    def parallel(self, loop: Loop) -> bool:
        return self.modes.get(identity(loop)) == "parallel"

    @property
    def distributed(self) -> bool:
        """Return whether the loops are those of the text but for products in nests of their own."""
        return any(": distribute" in line for line in self.lines) and not any(
            ": schedule" in line for line in self.lines
        )

    def legal(self, lines: Sequence[str]) -> bool:
        """Tell whether the first version of a section is legal after ``self.lines``; no version is none that is."""
        version = next(iter(parse("\n".join((*self.lines, *lines)), "<derived>")), None)
        if version is None:
            return False
        try:
            schedule(self.analysis, parse_lines(version.text.splitlines()))
        except (DirectiveError, IllegalTransform):
            return False
        return True

    @cached_property
    def sums(self) -> tuple[ReductionPattern, ...]:
        """Return the reductions of innermost loops and of sequential loops around a single parallel innermost loop."""
        found = (self._sum(around, loop) for around, loop in nested(self.body))
        return tuple(s for s in found if s is not None)

    def _sum(self, around: tuple[Loop, ...], loop: Loop) -> ReductionPattern | None:
        inner = [n for n in walk(loop.body) if isinstance(n, (Loop, While))]
        match loop.body, inner:
            case (Loop() as apart,), [_] if self.parallel(apart) and not self.parallel(loop):
                around = (*around, apart)
            case _, [_, *_]:
                return None
        adds = [a for a in accumulations(loop.body) if _in_one_place(a, loop)]
        if not adds:
            return None
        target = adds[0].target
        mine = self._own_loops(target.index if isinstance(target, Load) else (), around)
        # In the loops as they stand, or in nests of their own: other forms give such a scalar copies instead.
        if isinstance(target, Var) and len(loop.body) == 1 and (not self.lines or self.distributed):
            of_element = self._own_loops(_stored_at(target, around), around)
            mine = of_element if len(of_element) > 1 else mine
        reads = [n for a in adds for n in walk(a.value) if isinstance(n, Load) and n != target]
        largest = max(reads, key=lambda n: len(n.index), default=None)
        contiguous = largest is not None and strides(largest, loop.var)
        if len(mine) < 2:
            return ReductionPattern(loop, mine, contiguous, ())
        p, q = mine[-2:]
        changed = written_names(p.body)
        reused = dict.fromkeys(
            n.array
            for n in reads
            if loop.var in names_in(n.index) and not {p.var, q.var} <= names_in(n.index)
            and (n.array not in changed or n.index in _never_written(p, n.array))
        )  # fmt: skip
        across = (n.array for n in reads if p.var in names_in(n.index[:-1]) and strides(n, loop.var))
        return ReductionPattern(
            loop, mine, contiguous, tuple(reused), tuple(a for a in dict.fromkeys(across) if a in reused)
        )

    def _own_loops(self, index: tuple[Expr, ...], around: tuple[Loop, ...]) -> tuple[Loop, ...]:
        """Return the parallel loops of which each iteration has an element of its own at these subscripts."""
        told = names_in(index)
        return tuple(f for f in around if self.parallel(f) and f.var in told)

    @cached_property
    def stencils(self) -> tuple[tuple[Loop, ...], ...]:
        """Return perfect nests of two or three parallel loops."""
        found = []
        for around, loop in nested(self.body):
            band = tuple(_perfect(loop))
            inside = has_loop(band[-1].body)
            whole = not (around and len(around[-1].body) == 1 and self.parallel(around[-1]))
            if whole and not inside and len(band) in (2, 3) and all(map(self.parallel, band)):
                found.append(band)
        return tuple(found)

    @cached_property
    def triangles(self) -> tuple[tuple[Loop, Loop], ...]:
        """Return two parallel loops, one directly in the other, of which the bounds of the inner name the outer."""
        found = []
        for around, loop in nested(self.body):
            band = tuple(_perfect(loop))[:2]
            dependent = len(band) == 2 and loop.var in names_in((band[1].lo, band[1].hi))
            if dependent and all(map(self.parallel, band)) and not any(map(self.parallel, around)):
                found.append((band[0], band[1]))
        return tuple(found)

    @cached_property
    def outer_threads(self) -> tuple[Loop, ...]:
        """Return the parallel loops that stand in no other parallel loop."""
        loops = ((around, f) for around, f in nested(self.body) if self.parallel(f))
        return tuple(f for around, f in loops if not any(map(self.parallel, around)))

    @cached_property
    def rows(self) -> tuple[tuple[Loop, ...], ...]:
        """Return, for each outermost parallel loop around several statements, the parallel loops that are innermost."""
        found = []
        for around, loop in nested(self.body):
            if len(loop.body) > 1 and self.parallel(loop) and not any(map(self.parallel, around)):
                inner = (f for _, f in nested(loop.body) if self.parallel(f))
                found.append(tuple(f for f in inner if not _has_loop(f)))
        return tuple(f for f in found if f)

    @cached_property
    def adjacent_to_rows(self) -> tuple[Loop, ...]:
        """Return the parallel loops without inner loops in a sequential loop that also has ``rows``."""
        found: list[Loop] = []
        for around, loop in nested(self.body):
            if not self.parallel(loop) and not any(map(self.parallel, around)):
                beside = [s for s in loop.body if isinstance(s, Loop) and self.parallel(s)]
                if any(len(s.body) > 1 for s in beside):
                    found += [s for s in beside if not _has_loop(s)]
        return tuple(found)

    @cached_property
    def steps(self) -> tuple[Loop, ...]:
        """Return the loops of which several iterations can be one launch."""
        loops = (loop for _, loop in nested(self.body) if not self.parallel(loop))
        return tuple(f for f in loops if any(isinstance(s, Loop) for s in f.body))

    def before(self, a: Loop, b: Loop) -> Loop:
        """Return whichever of two loops stands first in the text."""
        return next(loop for _, loop in nested(self.body) if loop is a or loop is b)

    def adjacent_loops(self, found: ReductionPattern) -> tuple[Loop, ...]:
        """Return the parallel loops without inner loops that stand in the same block."""
        block = next(b for b in _blocks(self.body) if any(s is found.loop for s in b))
        loops = (s for s in block if isinstance(s, Loop) and self.parallel(s))
        return tuple(f for f in loops if not has_loop(f.body))

    def preceding_loop(self, loop: Loop) -> Loop | None:
        """Return the loop directly before this one with as many iterations and no inner loop, or None."""
        for a, b in pairwise(self.body):
            if b is loop and isinstance(a, Loop) and not has_loop(a.body):
                return a if (a.lo, a.hi, a.step) == (loop.lo, loop.hi, loop.step) else None
        return None

    def rank(self, loop: Loop) -> int:
        """Return the number of dimensions of the arrays that the loop writes, or 0 if they differ."""
        changed = written_names(loop.body)
        found = {len(v.shape) for v in (*self.analysis.codelet.params, *self.analysis.codelet.locals)
                 if isinstance(v, (Array, Local)) and v.shape and v.name in changed}  # fmt: skip
        return found.pop() if len(found) == 1 else 0

    def vector_order(self, found: ReductionPattern) -> tuple[str, ...]:
        """Return the loops of a product in the order that suits vectors.

        In it, the iterations of the innermost loop are adjacent in memory, or at one place, in all accesses. Returns ()
        if they are so already, or cannot be.
        """
        p, q, k = found.outer, found.inner, found.loop
        if is_smooth(k, k.var) or not is_smooth(k, q.var):
            return ()
        return p.var, k.var, q.var

    @cached_property
    def distributed_products(self) -> Patterns | None:
        """Return the patterns after distribution of products whose reduction is followed by statements.

        None if there is no such product, or if its distribution is illegal.
        """
        lines: list[str] = []
        for p in self.sums:
            follows = p.product and p.loop in p.inner.body and p.inner.body[-1] is not p.loop
            line = f"loop {loop_label(p.outer)}: distribute" if follows else ""
            if line and line not in lines and self.legal([*lines, line]):
                lines.append(line)
        return replace(self, lines=(*self.lines, *lines)) if lines else None

    @cached_property
    def perfect_products(self) -> Patterns:
        """Return the patterns after distribution of imperfect products.

        If there are statements between the parallel loops of a product, the nest is cut before the inner one and
        behind it, or wherever that is legal if it cannot be, so that these loops can form the grid.
        """
        lines: list[str] = []
        for p in (s for s in self.sums if s.product):
            if p.perfect:
                continue
            apart = [f"loop {loop_label(p.outer if p.batch is None else p.batch)}: distribute"]
            usual = [*apart, *_cuts_around(p)]
            several = _distributed_batches(p)
            for more in (several, usual, apart) if several and not self._makes_perfect(p, usual) else (usual, apart):
                fresh = [line for line in more if line not in lines]
                if fresh and (more is several or fresh == more) and self.legal([*lines, *fresh]):
                    lines += fresh
                    break
        return replace(self, lines=(*self.lines, *lines)) if lines else self

    def _makes_perfect(self, p: ReductionPattern, lines: Sequence[str]) -> bool:
        """Return whether a product is alone in its loops after these lines."""
        if not self.legal(lines):
            return False
        made = replace(self, lines=(*self.lines, *lines))
        return any(s.product and s.perfect and s.loop.number == p.loop.number for s in made.sums)

    @cached_property
    def distributed_column_sums(self) -> Patterns | None:
        """Return the patterns after distribution of reductions along columns that are followed by a parallel loop.

        The threads that suit a reduction along columns are not those that suit a loop along rows, so each gets a nest
        of its own. None if there is no such reduction, or if its distribution is illegal.
        """
        lines: list[str] = []
        for s in (s for s in self.sums if s.around and not s.contiguous and not s.outside_target_loop):
            beside = self.adjacent_loops(s)
            later = next((f for f in beside if f.number > s.loop.number), None)
            if later is None:
                continue
            more = [f"loop {loop_label(s.around[-1])}: distribute", f"loop {loop_label(later)}: cut"]
            if not {*more} & {*lines} and self.legal([*lines, *more]):
                lines += more
        return replace(self, lines=(*self.lines, *lines)) if lines else None

    def iterations(self, loop: Loop) -> int | None:
        """Return the number of iterations of a loop if the sizes tell it, else None."""
        known = substitute(trip_count(loop), {name: Const(value) for name, value in self.sizes.items()})
        return int(known.value) if isinstance(known, Const) else None

    def strided_nests(self, band: Sequence[Loop]) -> bool:
        """Return whether the outer one of two loops is contiguous in memory and the inner one is not."""
        outer, inner = band
        return is_smooth(inner, outer.var) and not is_smooth(inner, inner.var)

    @cached_property
    def transposes(self) -> tuple[tuple[Loop, Loop], ...]:
        """Return nests of two parallel loops with elements of both a row and a column."""
        bands = (band for band in self.stencils if len(band) == 2)
        return tuple((p, q) for p, q in bands if not is_smooth(q, q.var))


def _distributed_batches(p: ReductionPattern) -> list[str]:
    """Return lines that give a product of a batch a nest of its own, with copies of the scalars that it takes."""
    if p.batch is None or len(p.outer.body) == 1:
        return []
    copied = [line for name in _taken_scalars(p) for line in (
        f"loop {loop_label(p.batch)}: expand {name}",
        f"loop {loop_label(p.outer)}: expand {name}_{p.batch.var}")]  # fmt: skip
    return [*copied, *(f"loop {loop_label(f)}: distribute" for f in (p.outer, p.batch))]


def _taken_scalars(p: ReductionPattern) -> list[str]:
    """Return the scalars that the inner loop of a product reads, and that what stands before it sets."""
    place = next((k for k, s in enumerate(p.outer.body) if s is p.inner), 0)
    assigned = (s.target for s in walk_stmts(p.outer.body[:place]) if isinstance(s, Assign))
    set_before = dict.fromkeys(t.name for t in assigned if isinstance(t, Var))
    read = {n.name for n in walk(p.inner) if isinstance(n, Var)} - written_names(p.inner.body)
    return [name for name in set_before if name in read]


def _cuts_around(product: ReductionPattern) -> list[str]:
    """Return lines that cut off what stands before the inner loop of a product, and the loop behind it."""
    beside = product.outer.body
    place = next((k for k, s in enumerate(beside) if s is product.inner), len(beside) - 1)
    first = [product.inner] if place else []
    behind = beside[place + 1 : place + 2]
    cut = [*first, *(s for s in behind if isinstance(s, Loop) and s.number)]
    return [] if behind and len(cut) == len(first) else [f"loop {loop_label(f)}: cut" for f in cut]


def _never_written(loop: Loop, array: str) -> frozenset[tuple[Expr, ...]]:
    """Return the subscripts with which the loop reads elements of the array that none of its iterations writes."""
    return never_written((loop,), Surroundings(), (loop,), Surroundings(), array)


def outermost(body: Iterable[Stmt]) -> Iterator[Loop]:
    """Yield the loops that are in no other, those under a condition included."""
    for stmt in body:
        match stmt:
            case Loop():
                yield stmt
            case If(_, then, other):
                yield from outermost((*then, *other))
            case While(_, inner):
                yield from outermost(inner)


def _blocks(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, ...]]:
    yield body
    for stmt in body:
        match stmt:
            case Loop(_, _, _, inner) | While(_, inner):
                yield from _blocks(inner)
            case If(_, then, other):
                yield from _blocks(then)
                yield from _blocks(other)


def nested(body: Iterable[Stmt], around: tuple[Loop, ...] = ()) -> Iterator[tuple[tuple[Loop, ...], Loop]]:
    """Yield each loop with those around it, outermost first."""
    for loop in outermost(body):
        yield around, loop
        yield from nested(loop.body, (*around, loop))


def _perfect(loop: Loop) -> Iterator[Loop]:
    """Yield the loop, and as long as it is all there is the loop inside."""
    yield loop
    match loop.body:
        case (Loop() as inner,):
            yield from _perfect(inner)


def _has_loop(loop: Loop) -> bool:
    return has_loop(loop.body)


def accumulations(body: tuple[Stmt, ...]) -> Iterator[Assign]:
    """Yield the assignments that use what they assign: in their value, or in a condition around, as a maximum has."""
    for stmt in walk_stmts(body):
        match stmt:
            case Assign(target, value) if any(n == target for n in walk(value)):
                yield stmt
            case If(cond, (Assign(target) as assign,), ()) if any(n == target for n in walk(cond)):
                yield assign


def _in_one_place(assign: Assign, loop: Loop) -> bool:
    """Tell whether it assigns the same place in all iterations of the loop."""
    index: tuple[Expr, ...] = assign.target.index if isinstance(assign.target, Load) else ()
    return loop.var not in names_in(index)


def _stored_at(scalar: Var, around: tuple[Loop, ...]) -> tuple[Expr, ...]:
    """Return the subscripts of the one element in which a scalar is stored after the loop that adds up in it, or ()."""
    beside = (s for s in (around[-1].body if around else ()) if isinstance(s, Assign) and s.target != scalar)
    found = {a.target.index for a in beside if isinstance(a.target, Load) and any(n == scalar for n in walk(a.value))}
    return found.pop() if len(found) == 1 else ()


def strides(load: Load, var: str) -> bool:
    """Tell whether iterations of the loop are neighbours in memory."""
    *rows, last = load.index
    terms, _ = affine_terms(last)
    return var not in names_in(tuple(rows)) and any(t == Var(var) and k in (1, -1) for t, k in terms.items())


def is_smooth(loop: Loop, var: str) -> bool:
    """Tell whether iterations of the loop ``var`` are neighbours in memory, or at one place, in all accesses."""
    loads = [n for n in walk(loop.body) if isinstance(n, Load)]
    return all(var not in names_in(n.index) or strides(n, var) for n in loads)


def band_of(loop: Loop) -> list[Loop]:
    """Return the loop and, as long as there is just one, the loop inside."""
    band = [loop]
    while len(inner := [s for s in band[-1].body if isinstance(s, Loop)]) == 1:
        band.append(inner[0])
    return band
