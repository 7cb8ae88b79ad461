"""The work of a launch on a CPU: an estimate of its assignments, by which a driver decides how cores share it.

    for i in 0..n: for j in i..n: A[i][j] = f(...)              0.5 * n * n

Each factor is the number of iterations of a loop for the middle iteration of the loops around it; of a sum of products,
those stay that are not parts of others. What data decide is not known. A constant is left out beside a size, so that
versions whose loops differ in unrolled copies and remainders have one estimate, and one driver.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from looptune.ir.def_use import names_in, written_names
from looptune.ir.intervals import affine_terms
from looptune.ir.nodes import Assign, Binary, Call, Const, Expr, If, Load, Loop, Stmt, Var, While
from looptune.ir.rewrite import walk
from looptune.lower.cpu_names import IN_ANY_ORDER

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel

CALL = 8
"""Assignments that take as long as a function of math.h."""

Linear = tuple[tuple[Expr, Fraction], ...]
"""A sum of multiples of sizes and of variables of the host's loops; the first that is not negative is 1."""


@dataclass(frozen=True, slots=True)
class WorkTerm:
    """A product: ``coefficient`` times each of the ``factors``."""

    coefficient: Fraction
    factors: tuple[Linear, ...]


@dataclass(frozen=True, slots=True)
class _Middle:
    """The middle values of loops, as sums of multiples of what the host knows; ``unknown`` is what it does not know."""

    of: Mapping[str, _Sum]
    unknown: frozenset[str]

    def inside(self, loop: Loop) -> _Middle:
        lo, hi = self.linear(loop.lo), self.linear(loop.hi)
        middle = None if lo is None or hi is None else lo.plus(hi).times(Fraction(1, 2))
        unknown = self.unknown | {loop.var} if middle is None else self.unknown - {loop.var}
        return _Middle({**self.of, **({} if middle is None else {loop.var: middle})}, unknown)

    def linear(self, e: Expr) -> _Sum | None:
        """Return the value of a bound, or None if the host does not know it."""
        if names_in(e) & self.unknown or any(isinstance(n, Load | Call) for n in walk(e)):
            return None
        terms, constant = affine_terms(e)
        total = _Sum({}, Fraction(constant))
        for atom, k in terms.items():
            found = self._atom(atom)
            if found is None:
                return None
            total = total.plus(found.times(Fraction(k)))
        return total

    def _atom(self, e: Expr) -> _Sum | None:
        """Return the value of a term, or None if it is another function of a variable whose middle value is known."""
        match e:
            case Var(name) if name in self.of:
                return self.of[name]
            case Binary("/", x, Const(int(k))) if k > 0 and (found := self.linear(x)) is not None:
                return found.times(Fraction(1, k))
            case Binary("%", _, Const(int(k))):
                return _Sum({}, Fraction(k, 2))
            case Binary("min" | "max", a, b) if (found := self.linear(a)) is not None and self.of.keys() & names_in(e):
                other = self.linear(b)
                return found if other is None or len(found.terms) <= len(other.terms) else other
        return None if names_in(e) & self.of.keys() else _Sum({e: Fraction(1)}, Fraction(0))

    def iterations(self, loop: Loop) -> _Sum | None:
        """Return how many iterations the loop has, or None if the host does not know it."""
        spans = [Binary("-", hi, lo) for hi in _operands(loop.hi, "min") for lo in _operands(loop.lo, "max")]
        found = [self.linear(span) for span in spans]
        known = [span for span in found if span is not None]
        fewest = min(known, key=lambda s: (len(s.terms), s.constant), default=None)
        return None if fewest is None else fewest.times(Fraction(1, loop.step))


@dataclass(frozen=True, slots=True)
class _Sum:
    """Multiples of expressions, and a constant."""

    terms: Mapping[Expr, Fraction] = field(default_factory=dict)
    constant: Fraction = Fraction(0)

    def plus(self, other: _Sum) -> _Sum:
        both = (*self.terms, *other.terms)
        total = {t: self.terms.get(t, Fraction(0)) + other.terms.get(t, Fraction(0)) for t in both}
        return _Sum({t: k for t, k in total.items() if k}, self.constant + other.constant)

    def times(self, k: Fraction) -> _Sum:
        return _Sum({t: v * k for t, v in self.terms.items() if k}, self.constant * k)


def launch_work(kernel: Kernel) -> tuple[WorkTerm, ...] | None:
    """Return the assignments of a launch of the kernel, after ``serial-nests``, as a sum of products.

    None if the host does not know how many there are.
    """
    found = _block(kernel.serial, _Middle({}, _unknown(kernel)))
    if found is None:
        return None
    total: dict[tuple[Linear, ...], Fraction] = {}
    for term in found:
        key = tuple(sorted(term.factors, key=repr))
        total[key] = total.get(key, Fraction(0)) + term.coefficient
    return tuple(WorkTerm(k, factors) for factors, k in total.items() if not _is_part(factors, total))


def is_uneven(kernel: Kernel) -> bool:
    """Tell whether iterations of the outermost axis have inner loops of different lengths, as those of a triangle."""
    axis = kernel.loops[0].var
    return _differs(kernel.serial, axis, _Middle({}, _unknown(kernel) - {axis}))


def _differs(body: Iterable[Stmt], axis: str, middle: _Middle) -> bool:
    """Tell whether the length of a loop in ``body`` depends on the variable ``axis``."""
    for stmt in body:
        match stmt:
            case Loop(var=var, body=inner) if var == axis:
                found = _differs(inner, axis, middle)
            case Loop(body=inner):
                trips = middle.iterations(stmt)
                own = trips is not None and any(axis in names_in(atom) for atom in trips.terms)
                found = own or _differs(inner, axis, middle.inside(stmt))
            case If(_, then, other):
                found = _differs((*then, *other), axis, middle)
            case Assign() | While():
                found = False
        if found:
            return True
    return False


def _unknown(kernel: Kernel) -> frozenset[str]:
    """Return the names that the host cannot evaluate, but for loops."""
    return frozenset(written_names(kernel.serial) | {v.name for v in kernel.locals})


def _is_part(factors: tuple[Linear, ...], others: Collection[tuple[Linear, ...]]) -> bool:
    """Tell whether another product has all of these factors and more."""
    mine = Counter(factors)
    return any(mine < Counter(other) for other in others)


def _block(body: Iterable[Stmt], middle: _Middle) -> list[WorkTerm] | None:
    total: list[WorkTerm] = []
    for stmt in body:
        found = _statement(stmt, middle)
        if found is None:
            return None
        total += found
    return total


def _statement(stmt: Stmt, middle: _Middle) -> list[WorkTerm] | None:
    match stmt:
        case Assign(value=value):
            calls = sum(isinstance(n, Call) and n.fn not in IN_ANY_ORDER.values() for n in walk(value))
            return [WorkTerm(Fraction(1 + CALL * calls), ())]
        case Loop():
            trips, inside = middle.iterations(stmt), _block(stmt.body, middle.inside(stmt))
            return None if trips is None or inside is None else _repeated(inside, trips)
        case If(_, then, other):
            parts = [_block(branch, middle) for branch in (then, other) if branch]
            share = Fraction(1, max(1, len(parts)))
            known = [part for part in parts if part is not None]
            return _scaled([t for part in known for t in part], share) if len(known) == len(parts) else None
        case While():
            return None


def _repeated(body: Iterable[WorkTerm], trips: _Sum) -> list[WorkTerm]:
    if not trips.terms:
        return _scaled(body, max(trips.constant, Fraction(0)))
    ordered = sorted(trips.terms.items(), key=lambda term: repr(term[0]))
    first = next((k for _, k in ordered if k > 0), ordered[0][1])
    factor = tuple((atom, k / first) for atom, k in ordered)
    return [WorkTerm(t.coefficient * first, (*t.factors, factor)) for t in body]


def _scaled(body: Iterable[WorkTerm], k: Fraction) -> list[WorkTerm]:
    return [WorkTerm(t.coefficient * k, t.factors) for t in body if k]


def _operands(e: Expr, op: str) -> tuple[Expr, ...]:
    """Return the operands of nested minima or maxima."""
    match e:
        case Binary(found, a, b) if found == op:
            return (*_operands(a, op), *_operands(b, op))
    return (e,)


def as_number(k: Fraction) -> str:
    """Return a coefficient as the text of a float of three digits.

    >>> as_number(Fraction(1, 3)), as_number(Fraction(2))
    ('0.333', '2.0')
    """
    value = float(k)
    text = f"{value:.3g}" if math.isfinite(value) else "1e300"
    return text if "." in text or "e" in text else f"{text}.0"
