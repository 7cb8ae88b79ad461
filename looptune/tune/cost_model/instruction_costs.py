"""Estimates of the instructions that a compiler makes of statements, accurate enough to compare versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from looptune.ir.nodes import Assign, Binary, Call, Cast, Const, Expr, Load, Node, Select, Unary, Var
from looptune.ir.rewrite import walk
from looptune.ir.simplify import is_integer
from looptune.tune.cost_model.warp_program import Instructions

LOOP = 1.0
"""Of an iteration, for its counter, comparison and branch: three, where three loops in four are unrolled."""
ADDRESS = 2.0
"""Of an access to an array that is not a constant away from another."""
DIVISION = 9.0
CALLS: Mapping[str, float] = MappingProxyType({
    "sqrt": 8.0, "fabs": 1.0, "fmin": 1.0, "fmax": 1.0, "floor": 1.0, "ceil": 1.0, "pow": 60.0,
})  # fmt: skip
"""Of a function of math.h; of others CALL."""
CALL = 20.0
OPERATION_CYCLES = 4
"""From one operation to the next that needs its result."""


def of_segment(statements: Sequence[Assign]) -> Instructions:
    """Return the instructions of statements without branches in one warp, without those of their accesses."""
    return _summed(s.value for s in statements)


def _of(e: Expr) -> Instructions:
    """Subscripts apart."""
    match e:
        case Binary(op, lhs, rhs):
            return _of(lhs).plus(_of(rhs)).plus(_bin(op, lhs, rhs))
        case Unary(op, arg):
            return _of(arg) if op == "-" else _of(arg).plus(Instructions(other=1.0))
        case Call(fn, args, dtype):
            own = _in(dtype, CALLS.get(fn, CALL))
            return _summed(args).plus(own)
        case Select(cond, then, other):
            return _summed((cond, then, other)).plus(Instructions(other=1.0))
        case Cast(dtype, arg):
            return _of(arg).plus(Instructions(other=1.0 if is_integer(dtype) != is_integer(arg.dtype) else 0.0))
        case Const() | Var() | Load():
            return Instructions()


def _summed(args: Iterable[Expr]) -> Instructions:
    total = Instructions()
    for a in args:
        total = total.plus(_of(a))
    return total


def _bin(op: str, lhs: Expr, rhs: Expr) -> Instructions:
    dtype = lhs.dtype
    if op == "/" or op == "%":
        return _in(dtype, 1.0 if isinstance(rhs, Const) else DIVISION)
    fused = (
        op in ("+", "-") and not is_integer(dtype) and any(isinstance(x, Binary) and x.op == "*" for x in (lhs, rhs))
    )
    return _in(dtype, 0.0 if fused else 1.0)


def _in(dtype: str, count: float) -> Instructions:
    match dtype:
        case "float32":
            return Instructions(fp32=count)
        case "float64":
            return Instructions(fp64=count)
    return Instructions(other=count)


def chain(statements: Sequence[Assign]) -> int:
    """Return how many dependent operations an iteration adds to the longest chain.

    This is the largest number of statements ``x = x op ...`` with the same target.
    """
    into = Counter(s.target for s in statements if any(n == s.target for n in walk(s.value)))
    return max(into.values(), default=0)


def depth(statements: Sequence[Assign], memory: Iterable[str]) -> int:
    """Return the length of the longest chain of dependent loads: two if one load is in the subscript of another."""
    arrays = set(memory)

    def of(n: Node) -> int:
        inner = max((of(x) for x in walk(n.index) if isinstance(x, Load)), default=0) if isinstance(n, Load) else 0
        return inner + 1 if isinstance(n, Load) and n.array in arrays else inner

    loads = (n for s in statements for n in (*walk(s.value), *_subscripts(s)) if isinstance(n, Load))
    return max((of(n) for n in loads), default=0)


def _subscripts(s: Assign) -> Iterable[Node]:
    return walk(s.target.index) if isinstance(s.target, Load) else ()
