"""Statements that accumulate: ``x = x op e`` for an op whose terms may come in any order, ``+ * & | ^ min max``.

    x += e    x = e + x    x = x - e         +
    x = e < x ? e : x    fmin(x, e)          min
    if (e > x) x = e                         max

``exact``: any order leaves the same value, so that it may change even where rounding counts. Integers wrap, so their
sums and products are exact; so is a maximum of floats in the spellings that pass over a NaN (``e > x ? e : x``,
``if (e > x) x = e``, ``fmax``). ``x > e ? x : e`` lets a NaN in and drops it at the next element: there the order
counts. The sign of a zero is no value of its own here, as for ``fmax`` in C.
"""

from __future__ import annotations

from dataclasses import dataclass

from looptune.ir.nodes import SHORT_FLOATS, Assign, Binary, Call, Cast, Expr, Load, Select, Unary, Var
from looptune.ir.rewrite import conjuncts, walk
from looptune.ir.simplify import is_integer, widens
from looptune.poly.affine import NEGATED, bits

_ASSOCIATIVE = {"+": "+", "-": "+", "*": "*", "&": "&", "|": "|", "^": "^", "min": "min", "max": "max"}


@dataclass(frozen=True, slots=True)
class Accumulation:
    """How a statement accumulates: ``op``, and whether any order of the terms gives the same value (``exact``).

    ``extra_conditions``: what the statement's guard requires besides the comparison of x with e; None if the guard is
    not part of the accumulation.
    """

    op: str
    exact: bool
    extra_conditions: tuple[Expr, ...] | None = None


def accumulation(assign: Assign, guard: Expr | None = None) -> Accumulation | None:
    """Return how the statement accumulates into its target, or None if it does not.

    The target may occur nowhere else in the statement. None also where what is accumulated is rounded to the 11 bits of
    ``_Float16``, or the 8 of ``__bf16``, after every term: a sum of ones stops at 2048, or 256, and its order counts
    too much to be changed.

    >>> from looptune.ir.nodes import Const
    >>> x = Var("x", "float32")
    >>> accumulation(Assign(x, Binary("-", x, Const(1.0, "float32"))))
    Accumulation(op='+', exact=False, extra_conditions=None)
    """
    x, value = assign.target, assign.value
    if x.dtype in SHORT_FLOATS or _rounds_to_half(value, x):
        return None
    found = None
    match sum(n == x for n in walk(value)):
        case 0 if guard is not None:
            found = _guarded(value, x, guard)
        case 1 if guard is not None and value == x:  # a copy in which what is compared is one element
            found = _guarded(value, x, guard)
        case 1:
            op = _grouped(value, x, None)
            found = (
                None
                if op is None or not _whole(value, x, op)
                else Accumulation(op, is_integer(x.dtype) or _calls(value))
            )
        case 2:
            found = _chosen(value, x)
    extreme = found is not None and found.op in ("min", "max")
    return None if extreme and (_cuts(value) or _compares_halves(value, guard)) else found


def _truth(cast: Cast, x: Var | Load, op: str | None) -> bool:
    """Tell whether the cast is one of ``x |= e`` or ``x &= e`` where x is 0 or 1: it leaves what these ask of e."""
    if x.dtype != "bool" or not is_integer(cast.dtype):
        return False
    return cast.arg == x if op in ("&", "|") else isinstance(cast.arg, Binary) and cast.arg.op in ("&", "|")


def _whole(value: Expr, x: Var | Load, op: str) -> bool:
    """Tell whether every type to which x is cast has all of its bits and, for an extreme, the same numbers."""
    casts = [n for n in walk(value) if isinstance(n, Cast) and any(m == x for m in walk(n))]
    casts = [n for n in casts if is_integer(n.dtype) and is_integer(n.arg.dtype)]
    if x.dtype == "bool":
        return op in ("&", "|")
    if op in ("min", "max"):
        return all(widens(n.dtype, n.arg.dtype) for n in casts)
    return all(bits(n.dtype) >= bits(x.dtype) for n in casts)


def _cuts(value: Expr) -> bool:
    """Tell whether an integer is narrowed, so that the least value need not stay the least."""
    casts = [n for n in walk(value) if isinstance(n, Cast) and is_integer(n.dtype) and is_integer(n.arg.dtype)]
    return any(bits(n.dtype) < bits(n.arg.dtype) for n in casts)


def _rounds_to_half(value: Expr, x: Var | Load) -> bool:
    """Tell whether x is rounded to 16 bits before it is x again."""
    casts = (n for n in walk(value) if isinstance(n, Cast) and n.dtype in SHORT_FLOATS)
    return any(m == x for n in casts for m in walk(n))


def _compares_halves(value: Expr, guard: Expr | None) -> bool:
    """Tell whether what decides was rounded to 16 bits: numbers that differ may count as equal."""
    asked = (*(n.cond for n in walk(value) if isinstance(n, Select)), *(() if guard is None else (guard,)))
    return any(isinstance(n, Cast) and n.dtype in SHORT_FLOATS for n in walk(asked))


def _calls(value: Expr) -> bool:
    """Tell whether the chain is one of ``fmin`` or ``fmax``."""
    match _plain(value):
        case Call("fmin" | "fmax"):
            return True
    return False


def _grouped(value: Expr, x: Var | Load, op: str | None) -> str | None:
    """Return the op of a chain of one op that x is an operand of, such as ``(x + a) + b``.

    Casts may widen and narrow.
    """
    if value == x:
        return op
    match value:
        case Cast(dtype, arg) if _like(dtype, arg.dtype) or _truth(value, x, op):
            return _grouped(arg, x, op)
        case Binary(this, lhs, rhs) if this in _ASSOCIATIVE and op in (None, _ASSOCIATIVE[this]):
            if any(n == x for n in walk(lhs)):
                return _grouped(lhs, x, _ASSOCIATIVE[this])
            return None if this == "-" else _grouped(rhs, x, _ASSOCIATIVE[this])
        case Call("fmin" | "fmax" as fn, (lhs, rhs)) if op in (None, fn[1:]):
            return _grouped(lhs if any(n == x for n in walk(lhs)) else rhs, x, fn[1:])
    return None


def _chosen(value: Expr, x: Var | Load) -> Accumulation | None:
    """``min`` or ``max`` written as ``e < x ? e : x``."""
    match _plain(value):
        case Select(cond, then, other):
            first, second = _plain(then), _plain(other)
            e = second if first == x else first
            op = _compared(cond, x, e, other if first == x else then)
            if op is None or x not in (first, second) or any(n == x for n in walk(e)):
                return None
            kept = first == e
            return Accumulation(op if kept else _OTHER[op], is_integer(x.dtype) or (kept and not _rounds(cond)))
    return None


_OTHER = {"min": "max", "max": "min"}


def _guarded(value: Expr, x: Var | Load, guard: Expr) -> Accumulation | None:
    """``if (e > x) x = e``, where the guard may ask for more that has nothing to do with x."""
    e, asked = _plain(value), conjuncts(guard)
    for k, cond in enumerate(asked):
        others = (*asked[:k], *asked[k + 1 :])
        op = _compared(cond, x, e, value)
        if op is not None and not any(n == x for n in walk(others)):
            ordered = not isinstance(cond, Unary) and not _rounds(cond)
            return Accumulation(op, is_integer(x.dtype) or ordered, others)
    return None


def _compared(cond: Expr, x: Var | Load, e: Expr, value: Expr) -> str | None:
    """``max`` where ``cond`` says that e is greater than x, ``min`` where it says that it is less.

    None where it asks of other numbers than x and the ``value`` that x becomes, such as these without a sign.
    """
    match cond:
        case Unary("!", Binary(op, lhs, rhs)) if op in NEGATED:
            return _compared(Binary(NEGATED[op], lhs, rhs), x, e, value)
        case Binary("<" | "<=" | ">" | ">=" as op, lhs, rhs) if (_plain(lhs), _plain(rhs)) in ((x, e), (e, x)):
            mine, other = (rhs, lhs) if _plain(lhs) == e else (lhs, rhs)
            if _keeps(mine) and (other == value or _keeps(other)):
                return "max" if (op[0] == ">") == (other is lhs) else "min"
    return None


def _keeps(e: Expr) -> bool:
    """No cast of an integer around what is plain in it changes a value."""
    match e:
        case Cast(dtype, arg) if _like(dtype, arg.dtype):
            return (not is_integer(dtype) or widens(dtype, arg.dtype)) and _keeps(arg)
    return True


def _rounds(cond: Expr) -> bool:
    """Tell whether a float is compared after it lost digits, so that different values may count as equal."""
    casts = [n for n in walk(cond) if isinstance(n, Cast)]
    return any(n.dtype == "float32" and n.arg.dtype == "float64" for n in casts)


def _plain(e: Expr) -> Expr:
    """``e`` without the casts that only widen or narrow."""
    match e:
        case Cast(dtype, arg) if _like(dtype, arg.dtype):
            return _plain(arg)
    return e


def _like(a: str, b: str) -> bool:
    return is_integer(a) == is_integer(b) and "bool" not in (a, b)
