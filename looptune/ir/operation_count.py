"""The number of floating-point operations of a codelet at given sizes, from which GFLOP/s are computed.

Additions, subtractions, multiplications, divisions and math functions of the original loops count one each. In a sum
``x += a * e`` a factor that no loop around changes can be taken out of the sum and is not counted, so that ``C += alpha
* A * B`` counts two, which is the usual count.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from looptune.ir.def_use import names_in, written_names
from looptune.ir.nodes import Assign, Binary, Call, Cast, Const, Expr, If, Loop, Select, Stmt, Unary, Var, While
from looptune.ir.rewrite import walk
from looptune.ir.simplify import is_integer, wrap

LARGEST = 2_000_000
"""Iterations looked at side by side, where inner bounds or conditions depend on them, before giving up."""

EXACT = 2.0**62
"""Products beyond this are not made in 64 bits."""

Cost = Callable[[Assign], int]


def count(body: Sequence[Stmt], sizes: Mapping[str, int]) -> int | None:
    """Return the number of operations of one run, or None if it depends on data or takes too long to count."""
    changed = written_names(body)
    try:
        return _run(body, sizes, lambda assign: operations(assign, changed))
    except (DataDependent, _TooMany):
        return None


def statements(body: Sequence[Stmt], sizes: Mapping[str, int], limit: int) -> int | None:
    """Return the number of assignments of one run, or ``limit`` if there are more, or None if it depends on data."""
    try:
        return min(limit, _run(body, sizes, lambda _: 1))
    except _TooMany:
        return limit
    except DataDependent:
        return None


def least_statements(body: Sequence[Stmt], sizes: Mapping[str, int], names: Collection[str]) -> int:
    """Return how many times one run makes the assignments of these names at least.

    What data decide is left out, but for the condition, which counts one; so are iterations beyond LARGEST.
    """
    return _run(body, sizes, lambda assign: int(assign.name in names), least=True)


class DataDependent(Exception):
    """A value depends on data."""


class _TooMany(Exception):
    """More iterations than are looked at."""


@dataclass(frozen=True, slots=True)
class _Points:
    """Places in the nest, each with the values of names there and how many times a run comes by: arrays of one length.

    Those that inner bounds and conditions cannot tell apart are one.
    """

    env: Mapping[str, np.ndarray]
    times: np.ndarray

    def at(self, places: np.ndarray, **more: np.ndarray) -> _Points:
        """Return the points that an index array or a mask selects."""
        return _Points({name: values[places] for name, values in self.env.items()} | more, self.times[places])

    def merged_by(self, names: Collection[str]) -> _Points:
        """Return one point for all that have equal values of these names."""
        env = {name: values for name, values in self.env.items() if name in names}
        key, spans = np.zeros(len(self.times), np.int64), 1.0
        for values in env.values():
            least, span = values.min(), int(values.max() - values.min()) + 1
            spans *= span
            key = key * span + (values - least)
        if spans > EXACT:
            return _Points(env, self.times)
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        times = np.zeros(len(first), self.times.dtype)
        np.add.at(times, which, self.times)
        return _Points({name: values[first] for name, values in env.items()}, times)


def _run(body: Sequence[Stmt], sizes: Mapping[str, int], cost: Cost, *, least: bool = False) -> int:
    """``least``: count nothing for statements of which the number is not known."""
    once = _Points({name: np.array([size], np.int64) for name, size in sizes.items()}, np.array([1], np.int64))
    return _block(body, once, cost, least)


def _block(body: Sequence[Stmt], points: _Points, cost: Cost, least: bool) -> int:
    if not points.times.size:
        return 0
    apart = points.merged_by(_asked(body))
    return sum(_stmt_or_none(s, apart, cost) if least else _stmt(s, apart, cost, least) for s in body)


def _stmt_or_none(stmt: Stmt, points: _Points, cost: Cost) -> int:
    try:
        return _stmt(stmt, points, cost, True)
    except DataDependent:
        counted = isinstance(stmt, If) and any(cost(n) for n in walk(stmt) if isinstance(n, Assign))
        return int(points.times.sum()) if counted else 0


def _stmt(stmt: Stmt, points: _Points, cost: Cost, least: bool) -> int:
    match stmt:
        case Assign():
            return cost(stmt) * int(points.times.sum())
        case Loop(var, lo, hi, body, step):
            first, last = _values(lo, points), _values(hi, points)
            trips = np.maximum(-((first - last) // step), 0)
            if var not in _asked(body):
                runs = points.at(trips > 0)
                return _block(body, _Points(runs.env, _product(runs.times, trips[trips > 0])), cost, least)
            if trips.sum() > LARGEST:
                if not least:
                    raise _TooMany
                few = np.cumsum(trips) <= LARGEST
                points, first, trips = points.at(few), first[few], trips[few]
            which = np.repeat(np.arange(trips.size), trips)
            number = np.arange(which.size) - np.repeat(np.cumsum(trips) - trips, trips)
            return _block(body, points.at(which, **{var: first[which] + step * number}), cost, least)
        case If(cond, then, other):
            holds = _values(cond, points) != 0
            return sum(_block(b, points.at(at), cost, least) for b, at in ((then, holds), (other, ~holds)))
        case While():
            raise DataDependent


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.size and float(a.max()) * float(b.max()) > EXACT:
        a, b = a.astype(object), b.astype(object)
    products: np.ndarray = a * b
    return products


def _asked(body: Sequence[Stmt]) -> set[str]:
    """Return the names in bounds and conditions: what the number of operations depends on."""
    found: set[str] = set()
    for node in walk(tuple(body)):
        match node:
            case Loop(_, lo, hi):
                found |= names_in((lo, hi))
            case If(cond):
                found |= names_in(cond)
    return found


def _values(e: Expr, points: _Points) -> np.ndarray:
    """Return an integer expression at each of the points."""
    return np.broadcast_to(evaluate(e, points.env), points.times.shape)


def evaluate(e: Expr, env: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the value of an integer expression whose names have arrays of values; shapes are broadcast.

    Raises DataDependent if it depends on data.
    """
    match e:
        case Const(v):
            return np.asarray(wrap(int(v), "int64"), np.int64)
        case Var(name) if name in env:
            return env[name]
        case Cast(_, arg):
            return evaluate(arg, env)
        case Unary(op, arg) if op in ("-", "!", "~"):
            of = evaluate(arg, env)
            return -of if op == "-" else ~of if op == "~" else (of == 0).astype(np.int64)
        case Select(cond, then, other):
            return np.where(evaluate(cond, env) != 0, evaluate(then, env), evaluate(other, env))
        case Binary(op, lhs, rhs) if op in _OPERATIONS:
            return np.asarray(_OPERATIONS[op](evaluate(lhs, env), evaluate(rhs, env))).astype(np.int64)
    raise DataDependent


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """C's, toward zero."""
    if not b.all():
        raise DataDependent
    quotients: np.ndarray = np.abs(a) // np.abs(b) * np.sign(a) * np.sign(b)
    return quotients


_OPERATIONS: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "<<": operator.lshift, ">>": operator.rshift, "min": np.minimum, "max": np.maximum, "&&": np.logical_and,
    "||": np.logical_or, "/": _quotient, "%": lambda a, b: a - b * _quotient(a, b),
}  # fmt: skip


def operations(assign: Assign, changed: Collection[str]) -> int:
    """Return the operations in ``body``.

    ``changed``: names that loops set, so that expressions of them cannot be moved out.
    """
    total = sum(_costs(n) for n in walk(assign.value))
    match _plain(assign.value):
        case Binary("+" | "-", lhs, rhs) if _plain(lhs) == assign.target:
            return total - _factors(_plain(rhs), changed)
    return total


def is_operation(n: object) -> TypeGuard[Binary | Call]:
    """Tell whether the node is an operation that counts."""
    return _costs(n) > 0


def _costs(n: object) -> int:
    match n:
        case Binary("+" | "-" | "*" | "/", lhs):
            return int(not is_integer(lhs.dtype))
        case Call(_, _, dtype):
            return int(not is_integer(dtype))
    return 0


def _factors(e: Expr, changed: Collection[str]) -> int:
    """Return the constant factors of a product."""
    match e:
        case Binary("*", lhs, rhs):
            return sum(_is_factor(x, changed) + _factors(x, changed) for x in (_plain(lhs), _plain(rhs)))
    return 0


def _is_factor(e: Expr, changed: Collection[str]) -> bool:
    match e:
        case Var(name):
            return name not in changed and not is_integer(e.dtype)
        case Const():
            return not is_integer(e.dtype)
    return False


def _plain(e: Expr) -> Expr:
    match e:
        case Cast(_, arg):
            return _plain(arg)
        case Unary("-", arg):
            return _plain(arg)
    return e
