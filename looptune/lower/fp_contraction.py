"""Select the kernels of a GPU that must not contract products with sums, so that floats decide as in C.

    if (a * b + c < e) ...     n[i] = a * b + c          kernels that compute what is compared, or becomes an integer
    C[i][j] += A[i][k] * B[k][j]                         contracted, if no decision depends on C

A GPU's compiler contracts ``a * b + c`` to one operation that rounds once. The result is as good a float, but where
floats decide - in an ``if`` or a ``while``, by a comparison whose result is stored, by conversion to an integer, by
rounding to one - another decision is another result. So products on which such a decision may depend, through any
arrays and variables, are rounded on their own. A minimum or a maximum decides nothing that rounding could reverse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.ir.def_use import target_name
from looptune.ir.nodes import Assign, Binary, Call, Cast, Expr, If, Load, Node, Select, Stmt, Unary, Var, While
from looptune.ir.rewrite import walk, walk_stmts
from looptune.ir.simplify import as_min_max, is_integer
from looptune.lower.plan import HostIf, HostLoop, HostWhile, Kernel, Launch, Plan, Step

if TYPE_CHECKING:
    from looptune.core.floating_point import Contract
    from looptune.lower.machine import Machine

JUMPS = frozenset({"floor", "ceil", "trunc", "round", "rint", "fmod", "remainder", "logb"})
"""Functions of floats that make a step."""
_COMPARED = ("<", "<=", ">", ">=", "==", "!=", "&&", "||")


def separate_products(plan: Plan, machine: Machine) -> Plan:
    """Return the plan with its kernels marked for the compiler of the machine."""
    return forbid_contraction(plan, machine.contract)


def forbid_contraction(plan: Plan, contract: Contract) -> Plan:
    """Return the plan with ``Kernel.no_contraction`` set on kernels whose products must not be contracted."""
    kernels = plan.kernels
    match contract:
        case "fast":
            return plan
        case "off":
            chosen = {k.name for k in kernels}
        case "cc":
            held = _slice(kernels)
            chosen = {k.name for k in kernels if _decides(k.body, held)}
    marked = {k.name for k in kernels if k.name in chosen and _multiplies(walk(k.body))}
    return replace(plan, steps=_marked(plan.steps, marked)) if marked else plan


def is_product(e: Node) -> bool:
    """Return whether ``e`` is a product of two floats."""
    return isinstance(e, Binary) and e.op == "*" and not is_integer(e.dtype)


def _marked(steps: Iterable[Step], names: set[str]) -> tuple[Step, ...]:
    def made(step: Step) -> Step:
        match step:
            case Launch(kernel):
                return Launch(replace(kernel, no_contraction=True)) if kernel.name in names else step
            case HostLoop(body=body) | HostWhile(body=body):
                return replace(step, body=_marked(body, names))
            case HostIf(_, then, other):
                return replace(step, then=_marked(then, names), other=_marked(other, names))

    return tuple(map(made, steps))


def _slice(kernels: Sequence[Kernel]) -> frozenset[str]:
    """Return the arrays and variables that hold floats on which a decision may depend."""
    assigns = [s for k in kernels for s in walk_stmts(k.body) if isinstance(s, Assign)]
    flows = [(target_name(s.target), frozenset(_floats(s.value))) for s in assigns]
    # A tile that is taken through several steps is written to another array, which then takes the place of its own.
    flows += [pair for k in kernels if k.time_tile is not None for a, b in k.time_tile.target.items()
              for pair in ((a, frozenset((b,))), (b, frozenset((a,))))]  # fmt: skip
    found = {name for k in kernels for e in _decisions(k.body) for name in _floats(e)}
    grown = bool(found)
    while grown:
        fresh = {n for target, read in flows if target in found for n in read} - found
        grown = bool(fresh)
        found |= fresh
    return frozenset(found)


def _decides(body: tuple[Stmt, ...], held: frozenset[str]) -> bool:
    """Tell whether it multiplies for a decision, or for what one depends on."""
    own = (s.value for s in walk_stmts(body) if isinstance(s, Assign) and target_name(s.target) in held)
    return _multiplies(n for e in (*own, *_decisions(body)) for n in walk(e))


def _multiplies(nodes: Iterable[Node]) -> bool:
    return any(map(is_product, nodes))


def _decisions(body: tuple[Stmt, ...]) -> Iterator[Expr]:
    """Yield the expressions in which floats decide."""
    for s in walk_stmts(body):
        match s:
            case If(cond) if not _keeps_extreme(s):
                yield from _of_condition(cond)
            case While(cond):
                yield from _of_condition(cond)
            case Assign(target, value):
                yield from _of_value(value)
                yield from _of_value(target)
            case _:
                pass


def _keeps_extreme(stmt: If) -> bool:
    """Tell whether the statement has the form ``if (e > x) x = e;``."""
    match stmt:
        case If(Binary("<" | "<=" | ">" | ">=", lhs, rhs), (Assign(target, value),), ()):
            return not is_integer(lhs.dtype) and {lhs, rhs} == {target, value}
    return False


def _of_condition(cond: Expr) -> Iterator[Expr]:
    """Yield what is compared in it, where that are floats."""
    match cond:
        case Binary(op, lhs, rhs) if op in ("&&", "||"):
            yield from (*_of_condition(lhs), *_of_condition(rhs))
        case Binary(op, lhs, rhs) if op in _COMPARED:
            yield from ((lhs, rhs) if not is_integer(lhs.dtype) else (*_of_value(lhs), *_of_value(rhs)))
        case Unary("!", arg):
            yield from _of_condition(arg)
        case _ if not is_integer(cond.dtype):
            yield cond
        case _:
            yield from _of_value(cond)


def _of_value(e: Expr) -> Iterator[Expr]:
    match e:
        case Select(cond, then, other):
            yield from () if as_min_max(e) is not None else _of_condition(cond)
            yield from (*_of_value(then), *_of_value(other))
        case Cast(dtype, arg) if is_integer(dtype) and not is_integer(arg.dtype):
            yield arg
        case Cast(_, arg) | Unary("-" | "~", arg):
            yield from _of_value(arg)
        case Unary("!") | Binary("<" | "<=" | ">" | ">=" | "==" | "!=" | "&&" | "||"):
            yield from _of_condition(e)
        case Binary(_, lhs, rhs):
            yield from (*_of_value(lhs), *_of_value(rhs))
        case Call(fn, args, dtype):
            jumps = fn in JUMPS or is_integer(dtype)
            yield from (x for a in args for x in ((a,) if jumps and not is_integer(a.dtype) else _of_value(a)))
        case Load(_, index):
            yield from (x for i in index for x in _of_value(i))
        case _:
            pass


def _floats(e: Expr) -> Iterator[str]:
    return (target_name(n) for n in walk(e) if isinstance(n, Load | Var) and not is_integer(n.dtype))
