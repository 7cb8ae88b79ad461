"""IR expressions as isl text: quasi-affine integer expressions and the conditions made of them.

    n - 1 - i     ->  ((n - 1) - i)
    i / 2         ->  floor(i/2)  where i is known to be non-negative, else
                      floor(max(i, 0)/2) - floor(max(-i, 0)/2):  C truncates toward zero
    i * n, A[i]   ->  None: not quasi-affine

Integers are the mathematical ones: index arithmetic is assumed not to overflow, which for signed types is C's own
rule. Unsigned arithmetic may wrap, so in an ``if`` it counts only where it provably does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from looptune.ir.nodes import Binary, Cast, Const, Expr, Unary, Var
from looptune.ir.simplify import evaluate, is_integer, is_lossless_index_cast, wrap

Least = Mapping[str, int]
"""Lower bounds known of some variables, by name."""

NOTHING: Least = MappingProxyType({})

_KEYWORDS = frozenset({
    "and", "ceil", "ceild", "exists", "false", "floor", "floord", "implies", "infinity", "infty", "max", "min",
    "mod", "nan", "not", "or", "rat", "true",
})  # fmt: skip
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def name(var: str) -> str:
    """Return the isl name of ``var``: the keywords of isl's language, in any case, get an underscore.

    >>> name("i"), name("mod"), name("mod_"), name("Floor")
    ('i', 'mod_', 'mod__', 'Floor_')
    """
    return f"{var}_" if var.rstrip("_").lower() in _KEYWORDS else var


def to_isl(e: Expr, least: Least = NOTHING, *, exact: bool = False) -> str | None:
    """Return ``e`` as isl text, or None if it is not quasi-affine.

    ``exact``: return None also where unsigned arithmetic may wrap.

    >>> to_isl(Binary("-", Var("n"), Var("i"))), to_isl(Binary("*", Var("n"), Var("i")))
    ('(n - i)', None)
    """
    if not is_integer(e.dtype):
        return None
    match e:
        case Const(value):
            return str(int(value)) if value >= 0 else f"({int(value)})"
        case Var(var):
            return name(var)
        case Unary("-", arg):
            inner = to_isl(arg, least, exact=exact)
            return None if inner is None or (exact and e.dtype.startswith("u")) else f"(-{inner})"
        case Cast(dtype, arg):
            inner = to_isl(arg, least, exact=exact)
            return inner if inner is None or _keeps(e, least, exact) else _narrowed(inner, dtype)
        case Binary(op, lhs, rhs):
            return _binary(e, op, lhs, rhs, least, exact)
    return None


def _binary(e: Binary, op: str, lhs: Expr, rhs: Expr, least: Least, exact: bool) -> str | None:
    if op == "-" and exact and e.dtype.startswith("u") and not _never_negative(e, least):
        return None
    if op == "*" and constant(lhs) is not None:
        lhs, rhs = rhs, lhs
    a, b, c = to_isl(lhs, least, exact=exact), to_isl(rhs, least, exact=exact), constant(rhs)
    if a is None or b is None:
        return None
    match op:
        case "+" | "-":
            return f"({a} {op} {b})"
        case "min" | "max":
            return f"{op}({a}, {b})"
        case "*" if c is not None:
            return f"({c}*{a})"
        case "/" | "%" if c:
            return _division(op, a, c, _never_negative(lhs, least))
        case "<<" if c is not None and 0 <= c < 63:
            return f"({1 << c}*{a})"
        case ">>" if c is not None and 0 <= c < 63:
            return f"floor({a}/{1 << c})"
        case "&" if c is not None and c >= 0 and c & (c + 1) == 0:
            return f"({a} mod {c + 1})"
    return None


def _division(op: str, a: str, c: int, never_negative: bool) -> str:
    """C's ``a / c`` and ``a % c``: the quotient goes toward zero, the remainder has the sign of ``a``."""
    size = abs(c)
    if never_negative:
        quotient, rest = f"floor({a}/{size})", f"({a} mod {size})"
    else:
        quotient = f"(floor(max({a}, 0)/{size}) - floor(max(-{a}, 0)/{size}))"
        rest = f"({a} - {size}*{quotient})"
    if op == "%":
        return rest
    return quotient if c > 0 else f"(-{quotient})"


def condition_to_isl(e: Expr, want: bool = True, least: Least = NOTHING) -> tuple[str, bool]:
    """Return a condition that holds wherever ``e`` is true (``want``) or false, and whether it is exact.

    What is not affine may be either: it becomes "true", and not exact.

    >>> condition_to_isl(Binary("<", Var("i"), Var("n")), want=False)
    ('i >= n', True)
    """
    match e:
        case Binary("&&" | "||" as op, lhs, rhs):
            (a, exact_a), (b, exact_b) = condition_to_isl(lhs, want, least), condition_to_isl(rhs, want, least)
            word = "and" if (op == "&&") == want else "or"
            return f"(({a}) {word} ({b}))", exact_a and exact_b
        case Unary("!", arg):
            return condition_to_isl(arg, not want, least)
        case Binary(op, lhs, rhs) if op in NEGATED:
            op = op if want else NEGATED[op]
            a_text, b_text = to_isl(lhs, least, exact=True), to_isl(rhs, least, exact=True)
            if a_text is None or b_text is None:
                return "true", False
            return f"{a_text} {'=' if op == '==' else op} {b_text}", True
    value = to_isl(e, least, exact=True)
    return ("true", False) if value is None else (f"{value} {'!=' if want else '='} 0", True)


def constant(e: Expr) -> int | None:
    """Return the value of an integer expression that contains only constants."""
    if not is_integer(e.dtype):
        return None
    match e:
        case Const(value):
            return int(value)
        case Cast(dtype, arg):
            inner = constant(arg)
            return None if inner is None else wrap(inner, dtype)
        case Unary("-", arg):
            inner = constant(arg)
            return None if inner is None else wrap(-inner, e.dtype)
        case Binary(op, lhs, rhs):
            a, b = constant(lhs), constant(rhs)
            return None if a is None or b is None else evaluate(op, a, b)
    return None


def lower_bound(e: Expr, least: Least) -> int | None:
    """Return a lower bound of ``e`` from those of its variables, or None if none is known."""
    match e:
        case Const(value) if is_integer(e.dtype):
            return int(value)
        case Var(var, dtype):
            return least.get(var, 0 if dtype == "bool" or dtype.startswith("u") else None)
        case Cast(dtype, arg) if is_integer(dtype):
            if dtype == "bool" or dtype.startswith("u"):
                return 0
            return lower_bound(arg, least) if is_lossless_index_cast(dtype, arg.dtype) else None
        case Binary("-", lhs, rhs):
            a, c = lower_bound(lhs, least), constant(rhs)
            return None if a is None or c is None else a - c
        case Binary("max", lhs, rhs):
            known = [v for v in (lower_bound(lhs, least), lower_bound(rhs, least)) if v is not None]
            return max(known, default=None)
        case Binary(op, lhs, rhs):
            a, b = lower_bound(lhs, least), lower_bound(rhs, least)
            return None if a is None or b is None else _least_binary(op, a, b)
    return None


def _least_binary(op: str, a: int, b: int) -> int | None:
    match op:
        case "+":
            return a + b
        case "min":
            return min(a, b)
        case "*" if a >= 0 and b >= 0:
            return a * b
        case "/" | "%" | ">>" | "&" if a >= 0 and b >= 0:
            return 0
    return None


def _never_negative(e: Expr, least: Least) -> bool:
    bound = lower_bound(e, least)
    return bound is not None and bound >= 0


def _keeps(cast: Cast, least: Least, exact: bool) -> bool:
    """Tell whether the cast changes no value, given that ints hold the indices they are used for."""
    to, of = cast.dtype, cast.arg.dtype
    if not is_lossless_index_cast(to, of):
        return False
    wraps = to.startswith("u") and not of.startswith("u")
    return not (wraps and exact and not _never_negative(cast.arg, least))


def _narrowed(inner: str, dtype: str) -> str | None:
    """Return what a type of fewer bits than an int holds of a value: isl's ``mod`` is never negative."""
    values = 1 << bits(dtype)
    if bits(dtype) >= 32 or dtype == "bool":
        return None
    if dtype.startswith("u"):
        return f"({inner} mod {values})"
    return f"((({inner} + {values // 2}) mod {values}) - {values // 2})"


def bits(dtype: str) -> int:
    """Return the number of bits of an integer type."""
    return 1 if dtype == "bool" else int(dtype.removeprefix("u").removeprefix("int"))
