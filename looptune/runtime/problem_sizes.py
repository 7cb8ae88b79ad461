"""The sizes at which a codelet runs: those known, those missing, and primes.

A version is timed at the user's sizes and verified there, and verified once more at distinct primes, where every
remainder loop and guard executes:

    odd        13, 17, 19, …           few enough statements for the interpreter, which also sees every access
    reduced    an eighth of the user's, at most 257: large enough to tell how fast a version is
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from looptune.core.errors import UsageError
from looptune.ir import interpreter, operation_count
from looptune.ir.def_use import integer_parameters, written_names
from looptune.ir.nodes import (
    Array,
    Assign,
    Binary,
    Cast,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Loop,
    Scalar,
    Select,
    Stmt,
    Unary,
    Var,
    While,
)
from looptune.ir.rewrite import walk, walk_stmts
from looptune.ir.simplify import evaluate, is_integer
from looptune.runtime.size_relations import broken_relation, check_relations
from looptune.runtime.verification import extents, inputs

if TYPE_CHECKING:
    from looptune.ir.interpreter import Trace

_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)
_LARGER = tuple(n for n in range(3, 1000) if all(n % k for k in range(2, n) if k * k <= n))
SHRUNK = 8
"""What a reduced size is the user's over: a nest of three loops does less than a five-hundredth of the work."""
LARGEST = 257
"""A reduced size is about this at most: two loops of it have a thread for every lane of a large GPU."""
MOST_SIZES = 8
"""Integer parameters of a codelet of which each is tried as 0."""
_FIRST = (4, 2, 1, 0)
"""Where in _PRIMES sizes begin: at 13, and below it where arrays are smaller or the interpreter would take long."""
MOST = 20_000
"""Statements the interpreter is asked to run at odd sizes: two seconds at most."""

Values = dict[str, int | float]


def integers(codelet: Codelet, values: Mapping[str, int | float]) -> dict[str, int]:
    """Return the values of the integer parameters, which include the sizes."""
    those = {*integer_parameters(codelet)}
    return {name: int(value) for name, value in values.items() if name in those}


@dataclass(frozen=True, slots=True)
class Problem:
    """One size of one codelet: the scalar parameters, and the shapes of the arrays whose extents are not declared.

    ``data`` is a .npz file with the contents of every array; without it they are random.
    """

    values: Mapping[str, int | float]
    shapes: Mapping[str, tuple[int, ...]]
    data: Path | None = None

    def arrays(self, codelet: Codelet, seed: int) -> dict[str, np.ndarray]:
        """Return new arrays with the same contents at each call; ``seed`` matters if they are random."""
        if self.data is None:
            return inputs(codelet, self.values, seed, self.shapes)
        with np.load(self.data) as held:
            return {p.name: held[p.name] for p in codelet.params if isinstance(p, Array)}


def sizes_text(at: Problem) -> str:
    """Return the sizes as text, ``ni=257 nj=263``."""
    return " ".join(f"{n}={v}" for n, v in at.values.items() if isinstance(v, int))


def problem(codelet: Codelet, known: Mapping[str, int | float]) -> Problem:
    """Return the problem at the sizes ``known``.

    Raises UsageError for an integer parameter without a value, a bad extent, or sizes that the analysis excludes.

    A floating-point parameter without a value gets one between 0.5 and 1.5, always the same for its name.
    """
    values: Values = {}
    for p in codelet.params:
        match p:
            case Scalar(name) if name in known:
                values[name] = known[name]
            case Scalar(name, dtype) if is_integer(dtype):
                raise UsageError(f"the value of {name} is not known: give it with -D {name}=VALUE", p.span)
            case Scalar(name):
                values[name] = 0.5 + crc32(name.encode()) / 2**32
    for p in codelet.params:
        if isinstance(p, Array) and None not in p.shape:
            extents(p, values)
    check_relations(codelet, values)
    return Problem(values, infer_shapes(codelet, values))


def shapes(codelet: Codelet, sized: Problem) -> dict[str, tuple[int, ...]]:
    """Return the shape of every array at one size. Raises UsageError for a bad extent."""
    arrays = [p for p in codelet.params if isinstance(p, Array)]
    return {p.name: sized.shapes[p.name] if p.name in sized.shapes else extents(p, sized.values) for p in arrays}


def infer_shapes(codelet: Codelet, values: Mapping[str, int | float]) -> dict[str, tuple[int, ...]]:
    """Return shapes, large enough for every access, of the arrays whose first extent the C text leaves open.

    Raises UsageError if an index cannot be bounded.
    """
    open_ = {p.name: p for p in codelet.params if isinstance(p, Array) and None in p.shape}
    sizes = {n: int(v) for n, v in values.items() if float(v).is_integer()}
    largest = dict.fromkeys(open_, 1)
    for load, ranges in _accesses(codelet.body, {n: (v, v) for n, v in sizes.items()}):
        if load.array in open_:
            bounds = _range(load.index[0], ranges)
            if bounds is None:
                raise UsageError(f"the extent of {load.array} is not declared and this index has no bound", load.span)
            largest[load.array] = max(largest[load.array], bounds[1] + 1)
    env = {n: (v, v) for n, v in sizes.items()}
    found = {}
    for name, p in open_.items():
        inner = [_range(e, env) for e in p.shape[1:] if e is not None]
        found[name] = (largest[name], *(r[1] for r in inner if r is not None))
    return found


Ranges = Mapping[str, tuple[int, int]]


def _accesses(body: Sequence[Stmt], ranges: Ranges) -> Iterator[tuple[Load, Ranges]]:
    """Every array access with the ranges of the variables around it."""
    for stmt in body:
        match stmt:
            case Assign(target, value):
                yield from ((n, ranges) for n in walk((target, value)) if isinstance(n, Load))
            case Loop(var, lo, hi, inner):
                low, high = _range(lo, ranges), _range(hi, ranges)
                yield from ((n, ranges) for n in walk((lo, hi)) if isinstance(n, Load))
                if low is not None and high is not None and low[0] < high[1]:
                    yield from _accesses(inner, {**ranges, var: (low[0], high[1] - 1)})
                elif low is None or high is None:
                    yield from _accesses(inner, {n: r for n, r in ranges.items() if n != var})
            case If(cond, then, other):
                yield from ((n, ranges) for n in walk(cond) if isinstance(n, Load))
                yield from _accesses((*then, *other), ranges)
            case While(cond, inner):
                yield from ((n, ranges) for n in walk(cond) if isinstance(n, Load))
                yield from _accesses(inner, ranges)


def _range(e: Expr, ranges: Ranges) -> tuple[int, int] | None:
    """Return the least and greatest value of an integer expression, or None where it has no bound."""
    match e:
        case Const(value):
            return int(value), int(value)
        case Var(name):
            return ranges.get(name)
        case Cast(dtype, arg) if is_integer(dtype) and is_integer(arg.dtype):
            return _range(arg, ranges)
        case Unary("-", arg):
            inner = _range(arg, ranges)
            return None if inner is None else (-inner[1], -inner[0])
        case Select(_, then, other):
            a, b = _range(then, ranges), _range(other, ranges)
            return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))
        case Binary("+" | "-" | "*" | "/" | "%" | "min" | "max" as op, lhs, rhs):
            a, b = _range(lhs, ranges), _range(rhs, ranges)
            return None if a is None or b is None else _corners(op, a, b)
    return None


def _corners(op: str, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int] | None:
    if op in "/%" and b[0] <= 0:
        return None
    if op == "%":
        return (0 if a[0] >= 0 else 1 - b[1]), b[1] - 1
    results = [r for x in a for y in b if (r := evaluate(op, x, y)) is not None]
    return min(results), max(results)


def prime_sizes(codelet: Codelet, known: Problem) -> Problem | None:
    """Return small prime sizes at which the original loops stay inside their arrays, or None if none are found.

    First all integer parameters become different primes; if the program relies on an order or an equality between them,
    they are replaced in that order; if arrays of declared extents are smaller, or there are too many iterations, by
    smaller primes. A codelet without integer parameters has only the sizes it was written for.
    """
    sizes = {p.name: int(known.values[p.name]) for p in codelet.params if isinstance(p, Scalar) and is_integer(p.dtype)}
    if not sizes or min(sizes.values()) < 1:
        return None
    if _many(codelet, {**known.values, **dict.fromkeys(sizes, _PRIMES[0])}):
        return None
    order = {v: k for k, v in enumerate(sorted(set(sizes.values())))}
    for first in _FIRST:
        primes = _PRIMES[first:]
        different = {n: primes[k % len(primes)] for k, n in enumerate(sizes)}
        ranked = {n: primes[order[v] % len(primes)] for n, v in sizes.items()}
        for candidate in (different, ranked) if ranked != different else (different,):
            values = {**known.values, **candidate}
            if _runs(codelet, values):
                return Problem(values, infer_shapes(codelet, values))
    return None


def edge_sizes(codelet: Codelet, known: Problem) -> tuple[Problem, ...]:
    """Return sizes at which loops run once or not at all: 0 or 1 for all, 0 for one of them.

    In the last, the small primes are in reverse order, so that the first size is the largest.

    Sizes at which the text has no meaning are left out: if a declared extent is negative, or if the interpreter sees an
    access outside an array or a division by zero.
    """
    sizes = {p.name: int(known.values[p.name]) for p in codelet.params if isinstance(p, Scalar) and is_integer(p.dtype)}
    if not sizes or len(sizes) > MOST_SIZES:
        return ()
    small = {n: _PRIMES[k % len(_PRIMES)] for k, n in enumerate(sizes)}
    turned = dict(zip(small, reversed(small.values()), strict=True))
    candidates = [dict.fromkeys(sizes, 1), dict.fromkeys(sizes, 0), *({**small, n: 0} for n in sizes), turned]
    distinct = {tuple(candidate.values()): candidate for candidate in candidates}
    found = ({**known.values, **candidate} for candidate in distinct.values())
    return tuple(Problem(v, infer_shapes(codelet, v)) for v in found if _is_declared(codelet, v) and _runs(codelet, v))


def _is_declared(codelet: Codelet, values: Mapping[str, int | float]) -> bool:
    """No extent that the text declares is negative."""
    env = {n: (int(v), int(v)) for n, v in values.items() if float(v).is_integer()}
    shapes = [p.shape for p in codelet.params if isinstance(p, Array)] + [v.shape for v in codelet.locals]
    extents_ = [_range(e, env) for shape in shapes for e in shape if e is not None]
    return all(extent is not None and extent[0] >= 0 for extent in extents_)


def screening_sizes(codelet: Codelet, known: Problem) -> Problem | None:
    """Return larger primes, in the order of the user's sizes, or None.

    All are different or, if the loops would then leave an array, equal where the user's are equal. None if the user's
    sizes are not much larger than the small primes, or if it cannot be shown that the original loops stay inside their
    arrays: at these sizes they are compiled, and a violation would not be noticed.
    """
    sizes = {p.name: int(known.values[p.name]) for p in codelet.params if isinstance(p, Scalar) and is_integer(p.dtype)}
    least = _PRIMES[_FIRST[0]]
    if not sizes or min(sizes.values()) < 1 or max(sizes.values()) // SHRUNK <= least:
        return None
    different = {name: (size, place) for place, (name, size) in enumerate(sizes.items())}
    equal = {name: (size, 0) for name, size in sizes.items()}
    for kinds in (different, equal):
        primes: dict[tuple[int, int], int] = {}
        last = 0
        for kind in sorted(set(kinds.values())):
            last = primes[kind] = _nearest(max(least, min(LARGEST, kind[0] // SHRUNK)), last)
        values = {**known.values, **{name: primes[kind] for name, kind in kinds.items()}}
        if _inside(codelet, values):
            return Problem(values, infer_shapes(codelet, values))
    return None


def is_interpretable(codelet: Codelet, at: Problem) -> bool:
    """Return whether the interpreter can run the loops at these sizes in reasonable time."""
    return not _many(codelet, at.values)


def _nearest(goal: int, above: int) -> int:
    return min((p for p in _LARGER if p > above), key=lambda p: (abs(p - goal), -p))


def _inside(codelet: Codelet, values: Mapping[str, int | float]) -> bool:
    """Whether the ranges of the loop variables show every access to be inside its array, whatever conditions say."""
    if broken_relation(codelet, values) is not None:
        return False
    fixed = values.keys() - written_names(codelet.body)
    env = {n: (int(v), int(v)) for n, v in values.items() if n in fixed and float(v).is_integer()}
    try:
        extent: dict[str, tuple[int | None, ...]] = dict(
            shapes(codelet, Problem(values, infer_shapes(codelet, values)))
        )
    except UsageError:
        return False
    for local in codelet.locals:
        least = [_range(e, env) for e in local.shape]
        extent[local.name] = tuple(None if r is None else r[0] for r in least)
    return all(
        (at := _range(e, ranges)) is not None and n is not None and at[0] >= 0 and at[1] < n
        for load, ranges in _accesses(codelet.body, env)
        for e, n in zip(load.index, extent[load.array], strict=True)
    )


class TooManyStatements(Exception):
    """The original loops run more statements than the interpreter is given time for."""


def _many(codelet: Codelet, values: Mapping[str, int | float]) -> bool:
    """Tell whether the loops run MOST statements or more, as far as that can be told without running them."""
    sizes = {n: int(v) for n, v in values.items() if float(v).is_integer()}
    found = operation_count.statements(codelet.body, sizes, MOST)
    if found is None:
        names = {s.name for s in walk_stmts(codelet.body) if isinstance(s, Assign)}
        found = operation_count.least_statements(codelet.body, sizes, names)
    return found >= MOST


def at_most(statements: int) -> Trace:
    """Return a trace for the interpreter that raises TooManyStatements when more are run."""
    left = statements

    def count(statement: str, iterations: tuple[int, ...]) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise TooManyStatements

    return count


def _runs(codelet: Codelet, values: Mapping[str, int | float]) -> bool:
    if _many(codelet, values) or broken_relation(codelet, values) is not None:
        return False
    try:
        small = Problem(values, infer_shapes(codelet, values))
        interpreter.run(codelet, small.arrays(codelet, 0), small.values, at_most(MOST))
    except (AssertionError, UsageError, TooManyStatements, ArithmeticError, ValueError):
        return False
    return True
