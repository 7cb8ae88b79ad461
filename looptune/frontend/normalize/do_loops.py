"""Loops that test a counter at the end of the body, or by a ``break``, as loops that test it at the beginning.

    k = 0; do { S  k++; } while (k < n);          first = k; while (k < max(n, first + 1)) { S  k++; }
    while (1) { if (k >= n) break; S  k++; }      while (k < n) { S  k++; }
    while (1) { S  k++; if (k == n) break; }      do { S  k++; } while (k != n);
    unsigned k; while (k < n) { S  k++; }         for (; k < n; k++) { S }

The first iteration of a ``do`` loop is run whatever the condition is; the following ones meet it as they are counted up
from there. A loop stays as it is if anything but one step in each iteration changes the counter, or its bound changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import assigned_names, used_names

Items = tuple[c_ast.Item, ...]
_SIGNED = ("int32", "int64")
_UNSIGNED = ("uint32", "uint64")
_NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_MIRROR = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!=", "==": "=="}


def tested_first(items: Items, types: Mapping[str, c_ast.Type], shared: Collection[str]) -> Items:
    """Return the statements with counted loops that test at the beginning.

    ``shared`` are the variables of the file, which functions that are called may change.
    """
    return _Tests(types, frozenset(shared)).block(items)


@dataclass(frozen=True, slots=True)
class _Tests:
    types: Mapping[str, c_ast.Type]
    shared: frozenset[str]
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def block(self, items: Items) -> Items:
        return tuple(made for item in items for made in self.item(item))

    def item(self, item: Any) -> Iterator[Any]:
        match item:
            case c_ast.Block() | c_ast.If() | c_ast.For() | c_ast.While() | c_ast.Switch():
                item = c_ast.map_children(self.inside, item)
        match item:
            case c_ast.While() | c_ast.For((), _, None):
                yield from self.loop(_without_break(item, self.types))
            case _:
                yield item

    def inside(self, part: Any) -> Any:
        return replace(part, items=self.block(part.items)) if isinstance(part, c_ast.Block) else part

    def loop(self, item: Any) -> Iterator[Any]:
        if not isinstance(item, c_ast.While):
            yield item
            return
        counted = self.counted(_with_step_in_body(item))
        if counted is None:
            yield item
            return
        loop, name, op, bound, step = counted
        if self.dtype(name) in _UNSIGNED:
            yield item if loop.after or step is not loop.body.items[-1] else _as_for(loop)
            return
        if not loop.after:
            yield item
            return
        up = _direction(step) == "+"
        strict = op in ("<", ">", "!=")
        span = loop.span
        first = c_ast.Name(f"{name}#first{next(self.numbers)}", span=span)
        least = c_ast.Binary("+" if up else "-", first, c_ast.Number("1"), span=span) if strict else first
        op = ("<" if up else ">") if op == "!=" else op
        beyond = c_ast.Binary("<" if up else ">", bound, least, span=bound.span)
        limit = c_ast.Ternary(beyond, least, bound, span=bound.span)
        cond = c_ast.Binary(op, c_ast.Name(name, span=loop.cond.span), limit, span=loop.cond.span)
        counter = c_ast.Name(name, span=span)
        yield c_ast.Declare(first.name, self.types.get(name, c_ast.TypeOf(counter)), counter, span=span)
        yield replace(loop, cond=cond, after=False)

    def dtype(self, name: str) -> str:
        kind = self.types.get(name, self.types.get(name.removesuffix("#0")))
        return kind.dtype if isinstance(kind, c_ast.Basic) else ""

    def counted(self, loop: c_ast.While) -> tuple[c_ast.While, str, str, c_ast.Expr, Any] | None:
        """Return the loop with its counter, the relation to the bound, and the step; None if it has none."""
        body = loop.body
        jumps = [n for n in c_ast.walk(body) if isinstance(n, c_ast.Jump | c_ast.Label)]
        if any(isinstance(n, c_ast.Label) or n.word == "goto" for n in jumps):
            return None
        if any(n.word == "continue" for n in _own_jumps(body)):
            return None
        for name, op, bound in _compared(loop.cond):
            steps = [s for s in body.items if _step_of(s) == name]
            others = replace(body, items=tuple(s for s in body.items if _step_of(s) != name))
            if len(steps) != 1 or name in assigned_names(others.items) or _is_addressed(body, name):
                continue
            up = _direction(steps[0]) == "+"
            fits = op in (("<", "<=") if up else (">", ">=")) or (op == "!=" and _is_one(steps[0]))
            if fits and self.stays(bound, name, body):
                return loop, name, op, bound, steps[0]
        return None

    def stays(self, bound: c_ast.Expr, name: str, body: c_ast.Block) -> bool:
        """Tell whether a bound is made of numbers and variables of the counter's type that the body does not change."""
        dtype = self.dtype(name)
        if dtype not in (*_SIGNED, *_UNSIGNED) or not _is_plain(bound):
            return False
        names = used_names((bound,))
        calls = any(isinstance(n, c_ast.Call) for n in c_ast.walk(body))
        changed = assigned_names(body.items) | (self.shared if calls else frozenset())
        addressed = any(_is_addressed(body, n) for n in names)
        return all(self.dtype(n) == dtype for n in names) and not names & changed and not addressed and (
            name not in self.shared or not calls
        )  # fmt: skip


def _is_plain(e: Any) -> bool:
    match e:
        case c_ast.Number(text):
            return text.isdecimal()
        case c_ast.Binary("+" | "-" | "*", lhs, rhs):
            return _is_plain(lhs) and _is_plain(rhs)
    return isinstance(e, c_ast.Name)


def _is_addressed(body: c_ast.Block, name: str) -> bool:
    return any(isinstance(n, c_ast.Unary) and n.op == "&" and n.arg == c_ast.Name(name) for n in c_ast.walk(body))


def _compared(cond: c_ast.Expr) -> Iterator[tuple[str, str, c_ast.Expr]]:
    """Yield what a comparison says of each variable that is one of its sides."""
    match cond:
        case c_ast.Binary("<" | "<=" | ">" | ">=" | "!=" as op, lhs, rhs):
            for side, other, relation in ((lhs, rhs, op), (rhs, lhs, _MIRROR[op])):
                if isinstance(side, c_ast.Name) and side.name not in used_names((other,)):
                    yield side.name, relation, other


def _step_of(item: Any) -> str:
    """Return the variable that a statement steps by a number, "" if it is no such statement."""
    match item:
        case c_ast.Evaluate(c_ast.Unary("++" | "--", c_ast.Name(name))):
            return name
        case c_ast.Evaluate(c_ast.Assignment("+" | "-", c_ast.Name(name), c_ast.Number(by))) if by.isdecimal():
            return name if int(by) else ""
        case c_ast.Evaluate(
            c_ast.Assignment("", c_ast.Name(name), c_ast.Binary("+" | "-", c_ast.Name(same), c_ast.Number(by)))
        ) if name == same and by.isdecimal():
            return name if int(by) else ""
    return ""


def _direction(item: Any) -> str:
    match item.expr:
        case c_ast.Assignment("", _, c_ast.Binary(op)):
            return str(op)
    return str(item.expr.op[0])


def _is_one(item: Any) -> bool:
    match item.expr:
        case c_ast.Assignment(_, _, c_ast.Number(by)) | c_ast.Assignment("", _, c_ast.Binary(_, _, c_ast.Number(by))):
            return int(by) == 1
    return True


def _as_for(loop: c_ast.While) -> c_ast.For:
    *body, last = loop.body.items
    assert isinstance(last, c_ast.Evaluate), "a step is an expression"
    return c_ast.For((), loop.cond, last.expr, replace(loop.body, items=tuple(body)), span=loop.span)


def _with_step_in_body(loop: c_ast.While) -> c_ast.While:
    """Return ``do S while (++k < n)`` as ``do { S  ++k; } while (k < n)``."""
    match loop:
        case c_ast.While(c_ast.Binary(op, c_ast.Unary("++" | "--", c_ast.Name(), True) as step, other), body, True):
            items = (*body.items, c_ast.Evaluate(step, span=step.span))
            plain = c_ast.Binary(op, step.arg, other, span=loop.cond.span)
            return replace(loop, cond=plain, body=replace(body, items=items))
    return loop


def _without_break(item: Any, types: Mapping[str, c_ast.Type]) -> Any:
    """Return a loop without an end whose first or last statement is ``if (…) break;`` as one with that condition."""
    match item:
        case c_ast.While(c_ast.Number(text)) if text.isdecimal() and int(text) and item.body.items:
            pass
        case c_ast.For((), None, None, until=()) if item.body.items:
            pass
        case _:
            return item
    jumps = tuple(_own_jumps(item.body))
    first, last = item.body.items[0], item.body.items[-1]
    cond = _stops(first, types)
    if cond is not None:
        rest = replace(item.body, items=item.body.items[1:])
        return c_ast.While(cond, rest, span=item.span)
    cond = _stops(last, types)
    if cond is None or any(j.word == "continue" for j in jumps):
        return item
    rest = replace(item.body, items=item.body.items[:-1])
    return c_ast.While(cond, rest, after=True, span=item.span)


def _stops(item: Any, types: Mapping[str, c_ast.Type]) -> c_ast.Expr | None:
    """Return the condition under which ``if (…) break;`` does not leave its loop, where it compares integers."""
    match item:
        case c_ast.If(c_ast.Binary("<" | "<=" | ">" | ">=" | "==" | "!=" as op, lhs, rhs) as cond, then, other) if [
            getattr(i, "word", "") for i in then.items
        ] == ["break"] and not other.items:
            kinds = [types.get(n) for n in used_names((lhs, rhs))]
            whole = all(isinstance(k, c_ast.Basic) and k.dtype in (*_SIGNED, *_UNSIGNED) for k in kinds)
            if whole and _is_plain(lhs) and _is_plain(rhs):
                return replace(cond, op=_NEGATED[op])
    return None


def _own_jumps(node: Any) -> Iterator[c_ast.Jump]:
    """Yield the jumps of a loop's body that are not those of a loop or a switch inside."""
    for child in c_ast.children(node):
        if isinstance(child, c_ast.Jump):
            yield child
        elif isinstance(child, c_ast.Switch):
            yield from (j for j in _own_jumps(child) if j.word != "break")
        elif not isinstance(child, c_ast.For | c_ast.While):
            yield from _own_jumps(child)
