"""Subscripts that are never equal, by the bounds of the loops and the conditions around them.

    for i = 32*t + 32 .. n: for k = 32*t .. 32*t + 32: A[i][i] -= A[i][k] * A[i][k]       k < 32*t + 32 <= i

A trailing update reads panels of the array that it writes: no thread writes what it, or another thread, reads there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

import islpy as isl

from looptune.ir.def_use import names_in
from looptune.ir.nodes import Assign, Expr, If, Load, Loop, Node, Stmt, While
from looptune.ir.rewrite import has_load, renaming, rewrite, walk
from looptune.poly.affine import condition_to_isl, name, to_isl
from looptune.poly.isl_limits import QUESTION, IslLimitExceeded, isl_operation_limit


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Loops and conditions around an access, outermost first; ``known``: answers by what was asked."""

    loops: tuple[Loop, ...] = ()
    conditions: tuple[Expr, ...] = ()
    known: dict[object, bool] = field(default_factory=dict, compare=False, repr=False)

    def inside(self, loop: Loop) -> Surroundings:
        return Surroundings((*self.loops, loop), self.conditions)

    def under(self, condition: Expr) -> Surroundings:
        return Surroundings(self.loops, (*self.conditions, condition))

    def never_equal(self, a: Sequence[Expr], b: Sequence[Expr], inner: Sequence[Loop] = ()) -> bool:
        """Tell whether two subscripts of one array differ in some dimension, whatever values the loops have.

        ``inner`` are loops inside, in any of whose iterations an access may stand. It stands in those whose variables
        its subscripts name; the others may have no iteration where it is made, so that their bounds say nothing.
        """
        around = _named_loops(inner, (*a, *b))
        return any(self._differ(x, y, around) for x, y in zip(a, b, strict=True) if x != y)

    def _differ(self, x: Expr, y: Expr, inner: Sequence[Loop]) -> bool:
        key = (x, y, tuple((f.var, f.lo, f.hi) for f in inner))
        if key not in self.known:
            self.known[key] = subscripts_differ(x, y, (*self.loops, *inner), self.conditions)
        return self.known[key]


def _named_loops(loops: Sequence[Loop], subscripts: Sequence[Expr]) -> tuple[Loop, ...]:
    """Return the loops whose variables the subscripts name, and the bounds of such loops."""
    named: set[str] = set()
    wanted = names_in(tuple(subscripts))
    while wanted - named:
        named |= wanted
        wanted = names_in(tuple((f.lo, f.hi) for f in loops if f.var in named))
    return tuple(f for f in loops if f.var in named)


def subscripts_differ(x: Expr, y: Expr, loops: Sequence[Loop], given: Sequence[Expr] = ()) -> bool:
    """Tell whether two subscripts differ whenever all loops are in their bounds and all conditions hold.

    False where that is not known.
    """
    a, b = to_isl(x), to_isl(y)
    if a is None or b is None:
        return False
    holds = [f"{a} = {b}", *(c for f in loops for c in _bounds(f)), *(f"({condition_to_isl(e)[0]})" for e in given)]
    named = names_in((x, y, tuple((f.lo, f.hi) for f in loops), tuple(given))) | {f.var for f in loops}
    try:
        with isl_operation_limit(QUESTION):
            met = isl.Set(f"[{', '.join(sorted(map(name, named)))}] -> {{ : {' and '.join(holds)} }}")
            return bool(met.is_empty())
    except IslLimitExceeded:
        return False


def _bounds(loop: Loop) -> list[str]:
    var, lo, hi = name(loop.var), to_isl(loop.lo), to_isl(loop.hi)
    return [*([f"{lo} <= {var}"] if lo is not None else []), *([f"{var} < {hi}"] if hi is not None else [])]


def distinct_loops(loops: Sequence[Loop], taken: Collection[str] = ()) -> tuple[Loop, ...]:
    """Return the loops whose variable no other of them counts, and none that is ``taken``."""
    names = [f.var for f in loops]
    return tuple(f for f in loops if names.count(f.var) == 1 and f.var not in taken)


@dataclass(frozen=True, slots=True)
class Place:
    """An access: its subscripts, and the loops and conditions around it."""

    index: tuple[Expr, ...]
    around: Surroundings

    def renamed(self) -> Place:
        """Return the access in other iterations of its loops."""
        rule = renaming({f.var: f"{f.var}__other" for f in self.around.loops})
        loops = tuple(rewrite(rule, replace(f, body=())) for f in self.around.loops)
        index, given = (tuple(rewrite(rule, e) for e in some) for some in (self.index, self.around.conditions))
        return Place(index, Surroundings(loops, given))


def accesses(body: Iterable[Stmt], array: str, around: Surroundings) -> Iterator[tuple[Place, bool]]:
    """Yield the accesses of an array in the statements, with whether they write it."""
    for stmt in body:
        match stmt:
            case Assign(target, value):
                found = [n for n in walk((target, value)) if isinstance(n, Load) and n.array == array]
                yield from ((Place(n.index, around), n is target) for n in found)
            case Loop():
                here = around.inside(replace(stmt, body=()))
                yield from ((Place(n.index, around), False) for n in walk((stmt.lo, stmt.hi)) if _is(n, array))
                yield from accesses(stmt.body, array, here)
            case If(cond, then, other):
                plain = not has_load(cond)
                yield from ((Place(n.index, around), False) for n in walk(cond) if _is(n, array))
                yield from accesses(then, array, around.under(cond) if plain else around)
                yield from accesses(other, array, around)
            case While(cond, inner):
                yield from ((Place(n.index, around), False) for n in walk(cond) if _is(n, array))
                yield from accesses(inner, array, around)


def _is(n: Node, array: str) -> TypeGuard[Load]:
    return isinstance(n, Load) and n.array == array


def never_written(
    reads: Iterable[Stmt], around: Surroundings, body: Iterable[Stmt], axes: Surroundings, array: str
) -> frozenset[tuple[Expr, ...]]:
    """Return the subscripts with which ``reads`` read elements of an array that ``body`` never writes.

    ``around`` are the loops and conditions around the reads, ``axes`` those around the body. Any of their iterations
    may write, while what they do not count has one value.
    """
    writes = dict.fromkeys(p for p, written in accesses(body, array, axes) if written)
    others = [place.renamed() for place in writes]
    found: dict[tuple[Expr, ...], bool] = {}
    known: dict[tuple[tuple[Loop, ...], tuple[Loop, ...]], Surroundings] = {}

    def apart_by_loops(a: Place, b: Place) -> bool:
        """Tell whether they differ by the bounds of their loops, which many accesses share."""
        key = a.around.loops, b.around.loops
        return known.setdefault(key, Surroundings((*key[0], *key[1]))).never_equal(a.index, b.index)

    for place, written in accesses(reads, array, around):
        apart = not written and all(apart_by_loops(place, o) or _meet_nowhere(place, o) for o in others)
        found[place.index] = found.get(place.index, True) and apart
    return frozenset(index for index, apart in found.items() if apart)


def _meet_nowhere(a: Place, b: Place) -> bool:
    both = Surroundings((*a.around.loops, *b.around.loops), (*a.around.conditions, *b.around.conditions))
    return both.never_equal(a.index, b.index)


def distances(e: Expr, start: Expr, around: Surroundings) -> tuple[int, int] | None:
    """Return the least and the greatest value of ``e - start`` for all values of the loops, or None if not known."""
    a, b = to_isl(e), to_isl(start)
    if a is None or b is None:
        return None
    inner = sorted({name(f.var) for f in around.loops})
    holds = [f"v' = {a} - ({b})", *(c for f in around.loops for c in _bounds(f))]
    holds += [f"({condition_to_isl(c)[0]})" for c in around.conditions]
    named = names_in((e, start, tuple((f.lo, f.hi) for f in around.loops), around.conditions))
    sizes = sorted({name(n) for n in named} - {*inner})
    try:
        with isl_operation_limit(QUESTION):
            exists = f"exists {', '.join(inner)} : " if inner else ""
            found = isl.Set(f"[{', '.join(sizes)}] -> {{ [v'] : {exists}{' and '.join(holds)} }}")
            if found.is_empty():
                return 0, 0
            least, most = found.dim_min_val(0), found.dim_max_val(0)
            return (least.to_python(), most.to_python()) if least.is_int() and most.is_int() else None
    except IslLimitExceeded:
        return None
