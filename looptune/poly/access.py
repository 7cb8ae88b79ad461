"""What each statement touches: one ``Access`` per array element or scalar named, scalars being arrays of no dimension.

    A[i][j] = A[i-1][j] + s   ->   write A (i, j), read A (i - 1, j), read s ()
    A[idx[i]] = ...           ->   MAY write A (anything), read idx (i)

Within ``x = x op e`` the two accesses of x are marked: they are a reduction, and may be regrouped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from looptune.ir import Assign, Bin, Call, Cast, Codelet, Expr, Load, Scalar, Select, Var
from looptune.poly.domain import Nest, Statement, Unknown
from looptune.poly.text import bits
from looptune.pretty import show
from looptune.rewrite import substitute, walk
from looptune.scope import written
from looptune.simplify import is_integer
from looptune.source import Span

_ASSOCIATIVE = {"+": "+", "-": "+", "*": "*", "min": "min", "max": "max"}


@dataclass(frozen=True, slots=True)
class Access:
    """``index`` is isl text per dimension, None where it may be anything. ``certain``: this very element, every time.

    ``reduces`` is the op of ``x = x op e`` for the two accesses of x in it; ``subscripts`` is what stands in the code,
    with locals that stand for a value replaced by it.
    """

    statement: str
    array: str
    index: tuple[str | None, ...]
    write: bool
    certain: bool
    span: Span
    text: str
    unknown: Unknown | None
    reduces: str | None = None
    subscripts: tuple[Expr, ...] = ()


def memory(codelet: Codelet) -> Callable[[str], bool]:
    """Which scalars are storage: the locals, and the parameters that are assigned. Others never change in a run."""
    assigned = written(codelet.body)
    names = {v.name for v in codelet.locals} | {
        p.name for p in codelet.params if isinstance(p, Scalar) and p.name in assigned
    }
    return names.__contains__


def accesses(statement: Statement, nest: Nest, storage: Callable[[str], bool]) -> tuple[Access, ...]:
    """The write first, then the reads."""
    target, value = statement.assign.target, statement.assign.value
    op = reduction(statement.assign)
    inside = target.index if isinstance(target, Load) else ()
    around = (*inside, *statement.conditions)
    write = _access(target, statement, nest, write=True, reduces=op)
    own = [n for n in _named(value, storage) if n == target and op is not None]
    others = [n for n in _named(value, storage) if n not in own]
    reads = [_access(n, statement, nest, write=False, reduces=op) for n in own[:1]]
    reads += [_access(n, statement, nest, write=False) for n in (*others, *_named(around, storage))]
    return (write, *reads)


def once(mine: tuple[Access, ...]) -> tuple[Access, ...]:
    """Each element once, where it is read first."""
    distinct = {(a.write, a.array, a.index, a.reduces): a for a in reversed(mine)}
    return tuple(reversed(distinct.values()))


def _named(nodes: object, storage: Callable[[str], bool]) -> Iterator[Load | Var]:
    for node in walk(nodes):
        match node:
            case Load():
                yield node
            case Var(name) if storage(name):
                yield node


def _access(node: Load | Var, statement: Statement, nest: Nest, *, write: bool, reduces: str | None = None) -> Access:
    array, subscripts = (node.array, node.index) if isinstance(node, Load) else (node.name, ())
    index = tuple(nest.affine(e, statement.dims) for e in subscripts)
    unknown = statement.unknown
    for e, affine in zip(subscripts, index, strict=True):
        if affine is None:
            unknown = Unknown(
                f"subscript {show(e)} of {array}", e.span if e.span.line else node.span, frozenset({statement.name})
            )
    certain = statement.exact and None not in index
    span = node.span if node.span.line else statement.assign.span
    values = tuple(substitute(e, nest.known) for e in subscripts)
    return Access(statement.name, array, index, write, certain, span, show(node), unknown, reduces, values)


def reduction(assign: Assign) -> str | None:
    """The op of ``x = x op e``, where op may be regrouped and x occurs nowhere else: ``+ * min max``, else None.

    >>> from looptune.ir import Const
    >>> x = Var("x", "float32")
    >>> reduction(Assign(x, Bin("-", x, Const(1.0, "float32"))))
    '+'
    """
    target, value = assign.target, assign.value
    once = sum(n == target for n in walk(value)) == 1
    op = _grouped(value, target, None) if once else _chosen(value, target)
    return None if op in ("min", "max") and _cuts(value) else op


def _cuts(value: Expr) -> bool:
    """An integer is narrowed, so that the least value need not stay the least."""
    casts = [n for n in walk(value) if isinstance(n, Cast) and is_integer(n.dtype) and is_integer(n.arg.dtype)]
    return any(bits(n.dtype) < bits(n.arg.dtype) for n in casts)


def _grouped(value: Expr, x: Var | Load, op: str | None) -> str | None:
    """The op of a chain of one op that x is an operand of, such as ``(x + a) + b``; casts may widen and narrow."""
    if value == x:
        return op
    match value:
        case Cast(dtype, arg) if _like(dtype, arg.dtype):
            return _grouped(arg, x, op)
        case Bin(this, lhs, rhs) if this in _ASSOCIATIVE and op in (None, _ASSOCIATIVE[this]):
            if any(n == x for n in walk(lhs)):
                return _grouped(lhs, x, _ASSOCIATIVE[this])
            return None if this == "-" else _grouped(rhs, x, _ASSOCIATIVE[this])
        case Call("fmin" | "fmax" as fn, (lhs, rhs)) if op in (None, fn[1:]):
            return _grouped(lhs if any(n == x for n in walk(lhs)) else rhs, x, fn[1:])
    return None


def _chosen(value: Expr, x: Var | Load) -> str | None:
    """``min`` or ``max`` written as ``e < x ? e : x``."""
    match _plain(value):
        case Select(Bin("<" | "<=" | ">" | ">=" as op, lhs, rhs), then, other):
            a, b, first, second = (_plain(e) for e in (lhs, rhs, then, other))
            if x not in (a, b) or {a, b} != {first, second} or any(n == x for n in walk(b if a == x else a)):
                return None
            return "min" if (op in ("<", "<=")) == (a == first) else "max"
    return None


def _plain(e: Expr) -> Expr:
    """``e`` without the casts that only widen or narrow."""
    match e:
        case Cast(dtype, arg) if _like(dtype, arg.dtype):
            return _plain(arg)
    return e


def _like(a: str, b: str) -> bool:
    return is_integer(a) == is_integer(b)
