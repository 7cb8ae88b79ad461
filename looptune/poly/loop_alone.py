"""One loop of a codelet as a codelet of its own, in which all that stays the same while it runs is a parameter.

    for (i = 0; i < n; i++)                          void alone(int i, int n, long of_1, double *x) {
      for (j = 0; j < k; j++)              ==>         if (i >= 0 && i < n)
        x[at[i] + j] = 0;                                for (j = 0; j < k; j++) x[of_1 + j] = 0;      }

A dependence that a loop carries connects two of its iterations within the same iteration of the loops around it.
Counters of these loops, scalars and elements that the loop does not change, and terms of them that are not affine, have
one value each in both. A loop that is parallel for any values of the parameters is therefore parallel. A dependence
that needs certain values may not exist where parameters stand for products, whose values depend on each other
(``i * m`` and ``(i + 1) * m``); elements of arrays may have any values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from looptune.ir.c_printer import expression_text
from looptune.ir.def_use import names_in, referenced_names, upward_exposed_uses, written_names
from looptune.ir.nodes import (
    Array,
    Assign,
    Binary,
    Cast,
    Codelet,
    Const,
    Expr,
    If,
    Load,
    Local,
    Loop,
    Node,
    Scalar,
    Stmt,
    Unary,
    Var,
    While,
)
from looptune.ir.rewrite import map_children, rewrite, walk
from looptune.ir.simplify import is_integer
from looptune.poly.affine import to_isl


@dataclass(frozen=True, slots=True)
class LoopAlone:
    """The codelet, the text of the terms for which its parameters stand, and the parameters that are ``products``."""

    codelet: Codelet
    terms: Mapping[str, str]
    products: frozenset[str]


def loop_alone(
    codelet: Codelet, number: int, opaque: Collection[str] = (), *, conditions: bool = True
) -> LoopAlone | None:
    """Return the loop of this number alone, or None if it is no counted loop of the codelet.

    Elements of the arrays ``opaque`` stand for anything, and are no parameters. ``conditions``: those that hold where
    the loop stands are kept. Without them it may run for more values of the parameters.
    """
    path = _path(codelet.body, number)
    around, loop = ((), None) if path is None else (path[:-1], path[-1])
    if not isinstance(loop, Loop):
        return None
    changed = written_names((loop,)) | {*opaque} | {n.var for n in walk(loop) if isinstance(n, Loop)}
    shared = _shared(codelet, loop, inside=any(isinstance(s, Loop | While) for s in around))
    terms = _Terms(frozenset(changed), frozenset(referenced_names(codelet.body)) | {p.name for p in codelet.params})
    body: tuple[Stmt, ...] = (terms.replaced(_with_elements(loop, shared)),)
    for stmt in reversed(around if conditions else ()):
        cond = _condition(stmt, loop)
        if cond is not None and not names_in(cond) & {*written_names((stmt,)), *opaque}:
            body = (If(cond, body, span=stmt.span),)
    params, locals_ = _declared(codelet, around, loop, shared)
    made = (*params, *(Scalar(name, e.dtype) for name, e in terms.found.items()))
    texts = {name: expression_text(e) for name, e in terms.found.items()}
    return LoopAlone(replace(codelet, params=made, locals=locals_, body=body, directives=()), texts, terms.products())


def _path(body: Iterable[Stmt], number: int) -> tuple[Stmt, ...] | None:
    """Return the statements around the loop of this number, the outermost first, and the loop."""
    for stmt in body:
        match stmt:
            case Loop(body=inner) | While(body=inner):
                if stmt.number == number:
                    return (stmt,)
                blocks = [inner]
            case If(_, then, other):
                blocks = [then, other]
            case _:
                continue
        for k, block in enumerate(blocks):
            found = _path(block, number)
            if found is not None:
                holds = replace(stmt, cond=Unary("!", stmt.cond)) if isinstance(stmt, If) and k else stmt
                return (holds, *found)
    return None


def _condition(stmt: Stmt, loop: Loop) -> Expr | None:
    """Return what holds in the statement, None where that is not known in terms of its own variables."""
    match stmt:
        case Loop(var, lo, hi, dtype=dtype):
            counter = Var(var, dtype)
            return Binary("&&", Binary(">=", counter, lo), Binary("<", counter, hi))
        case If(cond):
            return cond
    return None


def _shared(codelet: Codelet, loop: Loop, inside: bool) -> frozenset[str]:
    """Return the locals that the loop writes and whose last value may be used after it.

    ``inside``: the loop may run several times, so that a value may also be used when it runs again.
    """
    written = written_names((loop,))
    own = {v.name: v for v in codelet.locals if v.name in written}
    declared_inside = {name for n in walk(loop) if isinstance(n, Loop) for name in n.private_arrays}
    outside = referenced_names(_without(codelet.body, loop)) | names_in((loop.lo, loop.hi))
    exposed = upward_exposed_uses(loop.body)
    return frozenset(
        name for name, v in own.items()
        if name in outside or (inside and (name in exposed if not v.shape else name not in declared_inside))
    )  # fmt: skip


def _without(body: tuple[Stmt, ...], loop: Loop) -> tuple[Stmt, ...]:
    return rewrite(lambda n: () if n is loop else None, body)


def _with_elements(loop: Loop, shared: frozenset[str]) -> Loop:
    """Return the loop with an array of one element for each scalar that is used after it."""

    def rule(n: Node) -> Node | None:
        match n:
            case Var(name, dtype) if name in shared:
                return Load(name, (Const(0),), dtype, span=n.span)
        return None

    return rewrite(rule, loop)


def _declared(
    codelet: Codelet, around: Iterable[Stmt], loop: Loop, shared: frozenset[str]
) -> tuple[tuple[Array | Scalar, ...], tuple[Local, ...]]:
    """Return the parameters and the locals of the loop alone."""
    written = written_names((loop,))
    params: list[Array | Scalar] = list(codelet.params)
    params += [Scalar(s.var, s.dtype) for s in around if isinstance(s, Loop)]
    kept: list[Local] = []
    for v in codelet.locals:
        if v.name in shared or (v.shape and v.name not in written):
            shape: tuple[Expr | None, ...] = v.shape if v.shape else (Const(1),)
            params.append(Array(v.name, v.dtype, (None, *shape[1:]), span=v.span))
        elif v.name in written:
            kept.append(v)
        else:
            params.append(Scalar(v.name, v.dtype, span=v.span))
    return tuple(params), tuple(kept)


@dataclass(slots=True)
class _Terms:
    """Replaces integer terms that the loop does not change, and that are not affine, by parameters."""

    changed: frozenset[str]
    taken: frozenset[str]
    found: dict[str, Expr] = field(default_factory=dict)

    def replaced(self, loop: Loop) -> Loop:
        return replace(loop, lo=self.term(loop.lo), hi=self.term(loop.hi), body=tuple(map(self.statement, loop.body)))

    def statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Assign(target, value):
                return replace(stmt, target=self.node(target), value=self.node(value))
            case Loop():
                return self.replaced(stmt)
            case While(cond, body):
                return replace(stmt, cond=self.term(cond), body=tuple(map(self.statement, body)))
            case If(cond, then, other):
                blocks = (tuple(map(self.statement, then)), tuple(map(self.statement, other)))
                return replace(stmt, cond=self.term(cond), then=blocks[0], other=blocks[1])
        raise AssertionError("every statement is one of these")

    def node(self, e: Any) -> Any:
        """Return an expression with the terms in its subscripts replaced."""
        match e:
            case Load(index=index):
                return replace(e, index=tuple(map(self.term, index)))
        return map_children(self.node, e)

    def term(self, e: Any) -> Any:
        """Return a subscript, bound or condition with its terms replaced, the largest ones first."""
        if isinstance(e, Var | Const):
            return e
        if is_integer(e.dtype) and not names_in(e) & self.changed and to_isl(e) is None and not _is_sum(e):
            return self.parameter(e)
        match e:
            case Load():
                return replace(e, index=tuple(map(self.term, e.index)))
        return map_children(self.term, e)

    def parameter(self, e: Expr) -> Var:
        known = next((name for name, other in self.found.items() if other == e), None)
        if known is None:
            known = f"of_{len(self.found) + 1}"
            while known in self.taken:
                known += "_"
            self.found[known] = e
        return Var(known, e.dtype, span=e.span)

    def products(self) -> frozenset[str]:
        """Return the parameters that stand for anything but an element of an array."""
        return frozenset(name for name, e in self.found.items() if not _is_element(e))


def _is_element(e: Expr) -> bool:
    return isinstance(e, Load) or (isinstance(e, Cast) and _is_element(e.arg))


def _is_sum(e: Expr) -> bool:
    """Tell whether the parts of an expression are better parameters than the whole."""
    match e:
        case Binary("+" | "-" | "<" | "<=" | ">" | ">=" | "==" | "!=" | "&&" | "||") | Unary():
            return True
        case Binary("*", lhs, rhs):
            return isinstance(lhs, Const) or isinstance(rhs, Const)
        case Cast(_, arg):
            return _is_sum(arg)
    return False
