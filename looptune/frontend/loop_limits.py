"""The limits of a counted loop, compared as C compares them: the counter's type, its first value and its limits.

The counter gets a signed type that holds every value it takes, so that no difference of two bounds wraps:

    unsigned i   64 bits, signed; ``i`` is the counter converted back
    others       the promoted type

C converts both sides of a comparison to one type. A loop that compares an ``int`` with an unsigned bound is counted
only if the ``int`` is known not to be negative. A loop whose counter may wrap before the loop ends is not counted,
unless with its step the counter would then repeat its values forever. A loop whose condition holds for every value of
its counter is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from looptune.core.errors import UnsupportedError
from looptune.core.source import Span
from looptune.ir.c_printer import C_TYPES, arithmetic_type
from looptune.ir.nodes import Binary, Cast, Const, Expr, Select, Unary, Var
from looptune.ir.rewrite import walk
from looptune.ir.simplify import fold, is_integer, max_of, min_of, wrap

COUNTING = "int64"
"""The type in which unsigned counters count."""
_SMALL_STEP = 1 << 16
"""Steps below are too short to pass over the end of 64 bits in any loop that ends in a lifetime."""

Nonnegative = Callable[[Expr], bool]


@dataclass(frozen=True, slots=True)
class ExitTest:
    """The comparison ``var + added op bound`` that continues a loop.

    ``dtype`` is the type of the sum; ``offset`` is None if ``added`` is not a constant.
    """

    var: str
    op: str
    bound: Expr
    dtype: str
    offset: int | None
    moved: Expr
    """The bound less what is added, computed as C would."""
    span: Span

    @property
    def kind(self) -> str:
        """Return the type in which the two sides are compared."""
        return arithmetic_type(self.dtype, self.bound.dtype)


@dataclass(frozen=True, slots=True)
class CounterRange:
    """The counter's type, its first value and its limits, all of that type.

    ``computed_dtype`` is the type in which C computes them.
    """

    dtype: str
    start: Expr
    limits: tuple[tuple[str, Expr], ...]
    computed_dtype: str


def convert_index(e: Expr, dtype: str) -> Expr:
    """Return ``e`` converted to ``dtype``.

    From unsigned to signed 64 bits, sums, differences and products are converted operand by operand, since they have
    the same bits.
    """
    if dtype == COUNTING and e.dtype == "uint64":
        match e:
            case Const(value):
                return Const(wrap(int(value), COUNTING), COUNTING, span=e.span)
            case Cast(_, arg) if arg.dtype != "uint64" and is_integer(arg.dtype):
                return convert_index(arg, COUNTING)
            case Binary("+" | "-" | "*", lhs, rhs):
                return fold(replace(e, lhs=convert_index(lhs, COUNTING), rhs=convert_index(rhs, COUNTING)))
    return e if e.dtype == dtype else fold(Cast(dtype, e, span=e.span))


def limits_of(dtype: str) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type.

    >>> limits_of("uint8"), limits_of("int16")
    ((0, 255), (-32768, 32767))
    """
    bits = int(dtype.lstrip("uint"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def counter_range(
    own: str, start: Expr, asked: Sequence[ExitTest], down: bool, step: Expr, known: Nonnegative
) -> CounterRange | None:
    """Return the range of a loop's counter, or None if the loop is not counted.

    ``own`` is the declared type of the counter, ``start`` its first value in the promoted type. Raises UnsupportedError
    if the condition holds for every value of the counter.
    """
    asked = _lasting(own, asked)
    shown = arithmetic_type(own, own)
    by = int(step.value) if isinstance(step, Const) else None
    if len(asked) == 1 and _wraps_at_zero(shown, asked[0], down, by):
        return _down_past_zero(start, convert_index(asked[0].bound, shown), shown)
    found = [_limit(own, start, a, down, by, known) for a in asked]
    made = [f for f in found if f is not None]
    if len(made) < len(found):
        return None
    dtype = COUNTING if any(f.dtype == COUNTING for f in made) else shown
    limits = tuple((a.op, convert_index(f.limits[0][1], dtype)) for a, f in zip(asked, made, strict=True))
    return CounterRange(dtype, convert_index(made[0].start, dtype), limits, shown)


def _lasting(own: str, asked: Sequence[ExitTest]) -> list[ExitTest]:
    """Return what is asked but for what always holds."""
    left = [a for a in asked if not _always(own, a)]
    if not left:
        var = asked[0].var
        said = f"the loop never ends, as its condition holds for every {C_TYPES[own]} {var}"
        raise UnsupportedError(f"{said}: write one that ends it, or a counter of another type", asked[0].span)
    return left


def _always(own: str, a: ExitTest) -> bool:
    """Every value that the counter can have continues the loop."""
    if a.offset != 0 or not isinstance(a.bound, Const):
        return False
    least, most = limits_of(own)
    if a.kind.startswith("u") and least < 0:
        return False
    bound = wrap(int(a.bound.value), a.kind)
    match a.op:
        case "<":
            return most < bound
        case "<=":
            return most <= bound
        case ">":
            return least > bound
        case ">=":
            return least >= bound
    return not least <= bound <= most


def _limit(own: str, start: Expr, a: ExitTest, down: bool, by: int | None, known: Nonnegative) -> CounterRange | None:
    shown = arithmetic_type(own, own)
    if not is_integer(a.bound.dtype) or not _ends_first(own, start, a, down, by):
        return None
    if not shown.startswith("u") and not a.kind.startswith("u"):
        return CounterRange(shown, start, ((a.op, _within(a, shown)),), shown) if not a.dtype.startswith("u") else None
    if shown.startswith("u"):
        return _unsigned(start, a, down, shown, known)
    if a.op == "!=":
        return CounterRange(shown, start, ((a.op, convert_index(a.moved, shown)),), shown) if a.offset == 0 else None
    if not known(start) or a.offset is None or a.offset < 0:
        return None
    if not down:
        return CounterRange(shown, start, ((a.op, convert_index(a.moved, shown)),), shown)
    if a.offset:
        return None
    first, last = _apart(start, a, down, known)
    return CounterRange(COUNTING, first, ((a.op, last),), shown)


def _within(a: ExitTest, shown: str) -> Expr:
    """Return the bound in the counter's type.

    A constant beyond it as the value that ends the loop as early or as late.
    """
    if not isinstance(a.moved, Const):
        return convert_index(a.moved, shown)
    least, most = limits_of(shown)
    return Const(min(max(int(a.moved.value), least), most), shown, span=a.moved.span)


def _unsigned(start: Expr, a: ExitTest, down: bool, shown: str, known: Nonnegative) -> CounterRange | None:
    if a.offset is None or not 0 <= a.offset < 2**31 or (a.offset and (a.dtype != shown or not _tame(start, known))):
        return None
    if a.op == "!=":
        first, last = convert_index(start, COUNTING), convert_index(convert_index(a.bound, a.kind), COUNTING)
    else:
        first, last = _apart(start, a, down, known)
    if a.offset:
        last = fold(Binary("-", last, Const(a.offset, COUNTING), span=last.span))
    return CounterRange(COUNTING, first, ((a.op, last),), shown)


def _wraps_at_zero(shown: str, a: ExitTest, down: bool, by: int | None) -> bool:
    """Tell whether the loop is ``for (i = start; i < bound; i--)`` of an unsigned ``i``."""
    return shown.startswith("u") and down and by == 1 and a.op == "<" and a.offset == 0 and a.kind == shown


def _down_past_zero(start: Expr, bound: Expr, shown: str) -> CounterRange:
    """Return the range of a loop that runs down to 0 and ends by wrapping to a value that is not below its bound.

    It runs not at all where ``start`` is not below the bound, so that ``start = bound - 1`` runs ``bound`` times.
    """
    end = Const(-1, COUNTING, span=bound.span)
    if start == fold(Binary("-", bound, Const(1, shown))):
        first = fold(Binary("-", convert_index(bound, COUNTING), Const(1, COUNTING), span=start.span))
        return CounterRange(COUNTING, first, ((">", end),), shown)
    first = convert_index(start, COUNTING)
    return CounterRange(COUNTING, first, ((">", fold(Select(Binary("<", start, bound), end, first))),), shown)


def _apart(start: Expr, a: ExitTest, down: bool, known: Nonnegative) -> tuple[Expr, Expr]:
    """Return start and bound in 64 signed bits, such that the loop runs as often as in unsigned ones.

    Of 64 unsigned bits the less of the two may be a difference that has wrapped. Where the loop does not run at all,
    the start takes the place of the bound, or, where the relation would let the loop run there, its neighbour does:
    the counter ends as what it began with.
    """
    first, last = convert_index(start, a.kind), convert_index(a.bound, a.kind)
    if a.kind != "uint64" or _tame(last if down else first, known):
        return convert_index(first, COUNTING), convert_index(last, COUNTING)
    if len(a.op) == 1:
        return convert_index(first, COUNTING), convert_index(
            min_of(first, last) if down else max_of(first, last), COUNTING
        )
    beside = fold(Binary("+" if down else "-", convert_index(first, COUNTING), Const(1, COUNTING), span=first.span))
    passed = Binary("<", first, last) if down else Binary("<", last, first)
    return convert_index(first, COUNTING), fold(Select(passed, beside, convert_index(last, COUNTING), span=last.span))


def _tame(e: Expr, known: Nonnegative) -> bool:
    """No difference in it can have wrapped, and nothing negative been converted."""
    for n in walk(e):
        match n:
            case Binary("-" | "<<" | "^") | Unary():
                return False
            case Cast(dtype, arg) if dtype.startswith("u") and not known(arg):
                return False
            case Const(value) if value >= 2**63:
                return False
    return True


def _ends_first(own: str, start: Expr, a: ExitTest, down: bool, by: int | None) -> bool:
    """Tell whether the loop ends before its counter wraps, or else never does.

    A signed one of 32 bits or more does not wrap.
    """
    if own in ("int32", "int64"):
        return True
    if by is None:
        return False
    size, far = abs(by), down != (by < 0)
    if a.op == "!=":
        return size == 1 and _meets(own, start, a, far)
    if size & (size - 1) == 0 and size < _SMALL_STEP:
        return True
    if far:
        return _leaves_room(own, a, size)
    most, end = limits_of(own)[1], _const(a)
    return size < _SMALL_STEP and (most >= 2**31 or (end is not None and int(end.value) + size <= most))


def _const(a: ExitTest) -> Const | None:
    return a.bound if isinstance(a.bound, Const) and a.offset == 0 else None


def _leaves_room(own: str, a: ExitTest, size: int) -> bool:
    """Tell whether the loop can count down without wrapping.

    The last value is a step away from the least one, or the type is too wide to wrap.
    """
    end = _const(a)
    if end is not None and int(end.value) + (a.op == ">") - size >= limits_of(own)[0]:
        return True
    return own == "uint64" and size < _SMALL_STEP


def _meets(own: str, start: Expr, a: ExitTest, down: bool) -> bool:
    """Tell whether steps of one come to the bound before the counter wraps."""
    end = _const(a)
    if end is not None and isinstance(start, Const):
        return (start.value >= end.value) if down else (start.value <= end.value)
    extreme = end if down else start
    if isinstance(extreme, Const) and extreme.value == limits_of(own)[0]:
        return True
    return own == "uint64" and (end is None or not isinstance(start, Const))


def nonnegative(e: Expr, counters: frozenset[str] | set[str]) -> bool:
    """Return whether ``e`` cannot be negative if the loop variables ``counters`` are not.

    >>> nonnegative(Binary("+", Var("i"), Const(1)), {"i"}), nonnegative(Binary("-", Var("i"), Const(1)), {"i"})
    (True, False)
    """
    if not is_integer(e.dtype):
        return False
    if e.dtype.startswith("u"):
        return True
    match e:
        case Const(value):
            return value >= 0
        case Var(name):
            return name in counters
        case Cast(dtype, arg):
            return (
                is_integer(arg.dtype) and limits_of(arg.dtype)[1] <= limits_of(dtype)[1] and nonnegative(arg, counters)
            )
        case Binary("+" | "*" | "/" | "min", lhs, rhs):
            return nonnegative(lhs, counters) and nonnegative(rhs, counters)
        case Binary("%", lhs, _):
            return nonnegative(lhs, counters)
        case Binary("max", lhs, rhs):
            return nonnegative(lhs, counters) or nonnegative(rhs, counters)
    return False
