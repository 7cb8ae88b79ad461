"""Facts about integer variables at a place in a kernel, signs and bounds, with which subscripts are split."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from looptune.ir.intervals import never_negative
from looptune.ir.nodes import Binary, Cast, Const, Expr, Loop, Select, Var
from looptune.ir.simplify import is_integer, widens
from looptune.lower.signature import counters, extent_names, extents

if TYPE_CHECKING:
    from looptune.lower.plan import Kernel, Plan


@dataclass(slots=True)
class KnownValues:
    """The known facts about variables.

    ``nonnegative``: variables that are not negative; ``counted``: those of them that are counters of a thread's loops;
    ``least`` and ``most``: bounds of some variables.
    """

    nonnegative: set[str]
    counted: set[str] = field(default_factory=set)
    least: dict[str, int] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of_parameters(kernel: Kernel, plan: Plan) -> KnownValues:
        """Return what is known where a kernel begins: sizes of arrays and counters of host loops are not negative."""
        given = {*kernel.arrays, *kernel.scalars}
        return KnownValues((extent_names(plan) | counters(plan)) & given | extents(plan))

    def never_negative(self, e: Expr) -> bool:
        return never_negative(e, self.nonnegative)

    def bind(self, var: str, nonnegative: bool) -> None:
        """Record that a variable begins to exist."""
        if nonnegative:
            self.nonnegative.add(var)

    def unbind(self, var: str) -> None:
        """Forget a variable."""
        self.nonnegative.discard(var)
        self.counted.discard(var)
        self.least.pop(var, None)
        self.most.pop(var, None)

    def define(self, name: str, value: Expr) -> None:
        """Record that a variable has a value that is not negative."""
        self.nonnegative.add(name)
        most = upper_bound(value, self.nonnegative, self.most)
        if most is not None:
            self.most[name] = most

    def enter(self, loop: Loop, lanes: int = 1) -> None:
        """Record that a loop of the thread begins, whose iterations ``lanes`` threads share.

        Where they are several, or the loop begins at what varies, its variable is like any other: what is known of its
        steps saves nothing then.
        """
        self.bind(loop.var, self.never_negative(loop.lo))
        self.begin(loop)
        if lanes == 1 and isinstance(loop.lo, Const) and loop.var in self.nonnegative:
            self.counted.add(loop.var)

    def begin(self, loop: Loop) -> None:
        """Record that the variable of a loop has its first value as a lower bound."""
        if isinstance(loop.lo, Const):
            self.least[loop.var] = int(loop.lo.value)


def upper_bound(e: Expr, nonnegative: Collection[str], most: Mapping[str, int]) -> int | None:
    """Return an upper bound of what is not negative, or None where none is visible from its form."""
    match e:
        case Binary("%", lhs, Const(int(n))) if n > 0 and never_negative(lhs, nonnegative):
            return n - 1
        case Var(name) if name in nonnegative:
            return most.get(name)
    return None


def greatest(e: Expr, most: Mapping[str, int], nonnegative: Collection[str]) -> int:
    """Return an upper bound of an integer whose signed arithmetic does not overflow.

    ``most``: upper bounds of some variables; ``nonnegative``: variables that are not negative.
    """
    top = greatest_of_type(e.dtype)

    def inside(part: Expr) -> int:
        return greatest(part, most, nonnegative)

    def counts(part: Expr) -> bool:
        return never_negative(part, nonnegative)

    found = top
    match e:
        case Const(value):
            found = int(value)
        case Var(name):
            found = most.get(name, top)
        case Cast(dtype, arg) if is_integer(arg.dtype) and (widens(dtype, arg.dtype) or counts(arg)):
            found = inside(arg)
        case Select(_, then, other) | Binary("max", then, other):
            found = max(inside(then), inside(other))
        case Binary("min", lhs, rhs):
            found = min(inside(lhs), inside(rhs))
        case Binary("+", lhs, rhs):
            found = inside(lhs) + inside(rhs)
        case Binary("-", lhs, rhs) if e.dtype in ("int32", "int64") and (least := _least(rhs, nonnegative)) is not None:
            found = inside(lhs) - least
        case Binary("-", lhs, _) if e.dtype == "uint64":
            # A loop to a difference of 64 unsigned bits that wraps would not end.
            found = inside(lhs)
        case Binary("*", lhs, rhs) if counts(lhs) and counts(rhs):
            found = inside(lhs) * inside(rhs)
        case Binary("/" | ">>" as op, lhs, Const(int(n))) if n > 0:
            found = max(0, inside(lhs)) // (n if op == "/" else 2**n)
        case Binary("%" | "&" as op, lhs, Const(int(n))) if n > 0:
            found = n - 1 if op == "%" else n
            found = min(found, inside(lhs)) if counts(lhs) else found
    return min(found, top)


def _least(e: Expr, nonnegative: Collection[str]) -> int | None:
    """Return a lower bound, or None where none is visible from the form of the expression."""
    match e:
        case Const(value):
            return int(value)
        case Cast(dtype, arg) if widens(dtype, arg.dtype):
            return _least(arg, nonnegative)
        case Binary("+" | "-" as op, part, Const(value)) if e.dtype in ("int32", "int64"):
            least = _least(part, nonnegative)
            return None if least is None else least + int(value) * (1 if op == "+" else -1)
    return 0 if never_negative(e, nonnegative) else None


def greatest_of_type(dtype: str) -> int:
    """Return the greatest value of an integer type.

    >>> greatest_of_type("int8"), greatest_of_type("uint8"), greatest_of_type("bool")
    (127, 255, 1)
    """
    bits = 1 if dtype == "bool" else int(dtype.lstrip("uint")) - (dtype[0] == "i")
    return int(2**bits - 1)
