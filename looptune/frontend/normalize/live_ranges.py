"""Integers that are set several times get a name for each use, so that each name has one value.

    for (…) { c = x + y * n; a[c] = 0; }             for (…) { int c1 = x + y * n; a[c1] = 0; }
    for (…) { c = x + y * m; b[c] = 0; }     ==>     for (…) { int c2 = x + y * m; b[c2] = 0; }

A range begins where a statement of a block sets the variable, and ends at the next such statement of the block, or at
its end where the value is not read any more. Variables that ``for`` headers set, whose address is taken, or that are
read after the codelet in that range, keep their names there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import assigned_names

Items = tuple[c_ast.Item, ...]
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def split_live_ranges(
    items: Items, types: Mapping[str, c_ast.Type], kept: Collection[str], entered: Collection[str] = ()
) -> Items:
    """Return the statements with a variable for each range; those in ``kept`` may be read after the statements.

    Those in ``entered`` have a value before the first statement.
    """
    given, items = items, tuple(_written_out(item) for item in items)
    nodes = [n for item in items for n in c_ast.walk(item)]
    jumps = c_ast.Jump | c_ast.Label | c_ast.Region | c_ast.Leave | c_ast.Switch | c_ast.Return
    if any(isinstance(n, jumps) for n in nodes):
        return given
    times = Counter([*filter(None, map(_set_name, nodes)), *entered])
    candidates = {n for n, found in times.items() if found > 1 and _is_integer(types.get(n))}
    candidates -= _excluded(nodes)
    return _Splitter(candidates, types).block(items, frozenset(kept)) if candidates else given


def _written_out(item: Any) -> Any:
    """Return ``n = n >> 1`` for the statement ``n >>= 1``. Inside of loops, this might be a sum."""
    match item:
        case c_ast.Evaluate(c_ast.Assignment(op, c_ast.Name() as target, value) as e) if op:
            total = c_ast.Binary(op, target, value, span=e.span)
            return replace(item, expr=replace(e, op="", value=total))
    return item


def _is_integer(kind: c_ast.Type | None) -> bool:
    return isinstance(kind, c_ast.Basic) and kind.dtype in _INTEGERS


def _set_name(node: Any) -> str:
    """Return the variable that a statement sets to a value, "" for any other node."""
    match node:
        case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(name))) | c_ast.Declare(name, init=c_ast.Syntax()):
            return name
    return ""


def _excluded(nodes: Collection[Any]) -> set[str]:
    """Return the variables that are not split."""
    found: set[str] = set()
    for n in nodes:
        match n:
            case c_ast.For(init, _, step, _, until):
                found |= {*assigned_names((*init, *(() if step is None else (step,)))), *until}
            case c_ast.Unary("&", c_ast.Name(name)) | c_ast.Declare(name, static=True):
                found.add(name)
            case c_ast.Unsupported():
                found |= {m.name for m in c_ast.walk(n) if isinstance(m, c_ast.Name)}
    return found


def _reads(node: Any, name: str) -> bool:
    """Tell whether a node reads the variable anywhere; what it is set to by ``=`` is no read."""
    match node:
        case c_ast.Assignment("", c_ast.Name(), value):
            return _reads(value, name)
        case c_ast.Name(read):
            return read == name
    return any(_reads(child, name) for child in c_ast.children(node))


def _is_read_first(items: Items, name: str) -> bool | None:
    """Tell whether the value before the statements may be read in them; None where it may also stay."""
    for item in items:
        found = _meets(item, name)
        if found is not None:
            return found
    return None


def _meets(item: Any, name: str) -> bool | None:
    """Tell whether a statement may read the value before it, or sets another one; None for neither."""
    match item:
        case c_ast.Block(inner):
            return _is_read_first(inner, name)
        case c_ast.If(cond, then, other):
            if _reads(cond, name):
                return True
            both = (_is_read_first(then.items, name), _is_read_first(other.items, name))
            return True if True in both else (False if both == (False, False) else None)
        case c_ast.While(cond, body, True):
            found = _is_read_first(body.items, name)
            return _reads(cond, name) or None if found is None else found
        case c_ast.While() | c_ast.For():
            head = any(_reads(part, name) for part in c_ast.children(item) if part is not item.body)
            return True if head or _is_read_first(item.body.items, name) else None
    if _reads(item, name):
        return True
    return False if _set_name(item) == name else None


@dataclass(frozen=True, slots=True)
class _Splitter:
    candidates: set[str]
    types: Mapping[str, c_ast.Type]
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def block(self, items: Items, live: frozenset[str]) -> Items:
        """Return the statements of a block, at whose end the values of ``live`` may be read."""
        made = [self.inside(item, items[k + 1 :], live) for k, item in enumerate(items)]
        for k, item in enumerate(items):
            name = _set_name(item)
            if name in self.candidates and isinstance(item, c_ast.Evaluate):
                self.separate(made, k, name, live)
        return tuple(made)

    def separate(self, items: list[c_ast.Item], k: int, name: str, live: frozenset[str]) -> None:
        """Give the range that begins at a statement a name of its own, where its end is known."""
        end = next((j for j in range(k + 1, len(items)) if _set_name(items[j]) == name), len(items))
        if end == len(items) and name in live:
            return
        new = f"{name}#r{next(self.numbers)}"
        first = items[k]
        assert isinstance(first, c_ast.Evaluate), "it is an assignment"
        assert isinstance(first.expr, c_ast.Assignment), "it is an assignment"
        items[k] = c_ast.Declare(new, self.types[name], first.expr.value, span=first.span)
        for j in range(k + 1, end):
            items[j] = _renamed(items[j], name, new)
        if end < len(items):
            items[end] = _with_value(items[end], name, new)

    def inside(self, item: Any, rest: Items, live: frozenset[str]) -> Any:
        """Return a statement with the blocks in it; ``rest`` are the statements after it in its block."""
        if not isinstance(item, c_ast.Block | c_ast.If | c_ast.For | c_ast.While):
            return item
        after = frozenset(n for n in self.candidates if self.is_live(rest, n, live))
        if isinstance(item, c_ast.Block):
            return replace(item, items=self.block(item.items, after))
        if isinstance(item, c_ast.For | c_ast.While):
            head = [part for part in c_ast.children(item) if part is not item.body]
            after |= {n for n in self.candidates
                      if any(_reads(p, n) for p in head) or _is_read_first(item.body.items, n)}  # fmt: skip

        def rule(part: Any) -> Any:
            return replace(part, items=self.block(part.items, after)) if isinstance(part, c_ast.Block) else part

        return c_ast.map_children(rule, item)

    def is_live(self, rest: Items, name: str, live: frozenset[str]) -> bool:
        found = _is_read_first(rest, name)
        return name in live if found is None else found


def _renamed(node: Any, name: str, new: str) -> Any:
    if isinstance(node, c_ast.Name) and node.name == name:
        return replace(node, name=new)
    return c_ast.map_children(lambda part: _renamed(part, name, new), node)


def _with_value(item: Any, name: str, new: str) -> Any:
    """Return the statement that sets the variable again, with the new name in its value."""
    match item:
        case c_ast.Evaluate(c_ast.Assignment(_, _, value) as stored):
            return replace(item, expr=replace(stored, value=_renamed(value, name, new)))
    return c_ast.map_children(lambda part: _renamed(part, name, new), item)
