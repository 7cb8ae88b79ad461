"""Integer expressions as linear forms of counters: how an address changes with a thread, a block or a loop.

A[i][k], i = 8 * block y + thread y, k = 16 * K + k'      ==>     base + 8n * block y + n * thread y + 16 * K + k'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from looptune.ir.nodes import Binary, Cast, Const, Expr, Unary, Var
from looptune.lower.plan import Kernel, evaluate_size
from looptune.lower.tiles import FIRST, THREAD
from looptune.tune.cost_model.sector_counts import AffineAddress
from looptune.tune.cost_model.warp_samples import LANE


@dataclass(frozen=True, slots=True)
class LinearForm:
    """The sum of ``base`` and multiples of counters; each counter begins with 0."""

    base: int
    terms: Mapping[str, int]

    def plus(self, other: LinearForm, times: int = 1) -> LinearForm:
        sums = {n: self.terms.get(n, 0) + times * other.terms.get(n, 0) for n in (*self.terms, *other.terms)}
        return LinearForm(self.base + times * other.base, {n: c for n, c in sums.items() if c})

    def place(self, width: int = 1) -> AffineAddress:
        return AffineAddress(tuple(sorted(self.terms.items())), self.base, width)


Scope = Mapping[str, LinearForm | None]
"""What names are; None where that is no such sum."""
ZERO = LinearForm(0, {})


def constant(number: int) -> LinearForm:
    """Return the form of a constant."""
    return LinearForm(number, {})


def counter(name: str, step: int = 1) -> LinearForm:
    """Return the form of a counter that is multiplied by ``step``."""
    return LinearForm(0, {name: step})


def form(e: Expr, scope: Scope) -> LinearForm | None:
    """Return ``e`` as a linear form of counters, or None if it is not linear.

    For a minimum or maximum, the first operand that has counters is taken: the operands differ at the edges only.
    """
    match e:
        case Const(v):
            return constant(int(v))
        case Var(name):
            return scope.get(name)
        case Cast(_, arg):
            return form(arg, scope)
        case Unary("-", arg):
            of = form(arg, scope)
            return None if of is None else ZERO.plus(of, -1)
        case Binary(op, lhs, rhs):
            return _of(op, form(lhs, scope), form(rhs, scope))
    return None


def _of(op: str, a: LinearForm | None, b: LinearForm | None) -> LinearForm | None:
    if op in ("min", "max"):
        return a if a is not None and (a.terms or b is None) else b
    if a is None or b is None:
        return None
    match op:
        case "+" | "-":
            return a.plus(b, 1 if op == "+" else -1)
        case "*" if not a.terms or not b.terms:
            factor, rest = (a.base, b) if not a.terms else (b.base, a)
            return ZERO.plus(rest, factor)
        case "/" if not a.terms and not b.terms and b.base:
            return constant(abs(a.base) // abs(b.base) * (1 if (a.base < 0) == (b.base < 0) else -1))
    return None


def address(index: Sequence[Expr], strides: Iterable[int], scope: Scope) -> LinearForm | None:
    """Return the element that a subscript selects as a linear form, or None; ``strides`` are in elements."""
    total = ZERO
    for e, stride in zip(index, strides, strict=True):
        part = form(e, scope)
        if part is None:
            return None
        total = total.plus(part, stride)
    return total


def block(side: str) -> str:
    """Return the counter of the blocks along x, y or z."""
    return f"block {side}"


def scope_of(kernel: Kernel, at: Mapping[str, int]) -> Scope:
    """Return the names that are defined at the start of a kernel's threads."""
    width = kernel.block[0]
    known: dict[str, LinearForm | None] = {name: constant(v) for name, v in at.items()}
    known |= {LANE[d]: counter(LANE[d]) for d in "xy"}
    known[LANE["xy"]] = LinearForm(0, {LANE["x"]: 1, LANE["y"]: width})
    for dim, axis in kernel.grid_axes:
        first = constant(evaluate_size(axis.lo, at)).plus(counter(block(dim), axis.step * kernel.threads(dim)))
        here = counter(LANE[dim]) if dim != "z" else ZERO
        known |= {axis.var: first.plus(here, axis.step), axis.var + FIRST: first, axis.var + THREAD: here}
    return known
