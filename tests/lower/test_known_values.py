"""Upper bounds of integers, against values that C computes."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from looptune.ir.nodes import Binary, Cast, Const, Expr, Select, Var
from looptune.ir.simplify import fits, truncdiv, wrap
from looptune.lower.known_values import greatest

TYPES = ("int32", "int64", "uint32", "uint64")
OPERATIONS = {
    "+": int.__add__, "-": int.__sub__, "*": int.__mul__, "/": truncdiv, "%": lambda a, b: a - b * truncdiv(a, b),
    "min": min, "max": max, ">>": int.__rshift__, "&": int.__and__,
}  # fmt: skip


@st.composite
def integers(draw: st.DrawFn, dtype: str, depth: int) -> Expr:
    kind = draw(st.sampled_from(("leaf", "cast", "select", "binary", "binary"))) if depth else "leaf"
    if kind == "leaf":
        number = Const(draw(st.sampled_from((0, 1, 2, 3, 7, 32, 1000, 2**30))), dtype)
        return draw(st.sampled_from((Var("i", dtype), Var("j", dtype), Var("k", dtype), number)))
    if kind == "cast":
        return Cast(dtype, draw(integers(draw(st.sampled_from(TYPES)), depth - 1)))
    parts = [draw(integers(dtype, depth - 1)) for _ in range(2)]
    if kind == "select":
        return Select(Binary("<", Var("i", dtype), Var("j", dtype)), *parts)
    op = draw(st.sampled_from([*OPERATIONS]))
    return Binary(op, parts[0], Const(draw(st.integers(1, 9)), dtype) if op in ("/", "%", ">>") else parts[1])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(TYPES).flatmap(lambda t: integers(t, 4)), st.tuples(*[st.integers(-9, 2000)] * 3), st.data())
def test_no_value_is_greater(e: Expr, values: tuple[int, int, int], data: st.DataObject) -> None:
    """With any true statements about the variables."""
    at = dict(zip("ijk", values, strict=True))
    most = {n: v + data.draw(st.integers(0, 5)) for n, v in at.items() if v >= 0 and data.draw(st.booleans())}
    assert _value(e, at) <= greatest(e, most, {n for n, v in at.items() if v >= 0 and data.draw(st.booleans())})


def _value(e: Expr, at: dict[str, int]) -> int:
    """Without values that overflow in a signed type, and without differences that wrap in 64 bits."""
    match e:
        case Const(value):
            return int(value)
        case Var(name, dtype):
            return wrap(at[name], dtype)
        case Cast(dtype, arg):
            return wrap(_value(arg, at), dtype)
        case Select(Binary(_, lhs, rhs), then, other):
            return _value(then if _value(lhs, at) < _value(rhs, at) else other, at)
        case Binary(op, lhs, rhs):
            found = OPERATIONS[op](_value(lhs, at), _value(rhs, at))
            assume(fits(found, e.dtype) if e.dtype in ("int32", "int64", "uint64") else True)
            return wrap(found, e.dtype)
    raise AssertionError(e)
