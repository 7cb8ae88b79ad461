"""The ranges in which a pointer variable points into one array: each becomes a variable of its own.

    p = a; for (…) *p++ = 0;               p = a; for (…) *p++ = 0;
    p = b; for (…) *p++ = 1;      ==>      q = b; for (…) *q++ = 1;

A range begins where the variable is set in every case, or with a loop or condition that sets it before each use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import used_names

Items = tuple[c_ast.Item, ...]


def split_ranges(items: Items, names: Collection[str]) -> tuple[Items, dict[str, str]]:
    """Return the statements with one variable for each range, and the variables by the names of the new ones."""
    splitter = _Splitter()
    if not any(isinstance(n, c_ast.Jump) and n.word == "goto" for top in items for n in c_ast.walk(top)):
        for name in sorted(names):
            items = splitter.block(items, name)
    unused = {*names} - used_names(items)
    return _without_declarations(items, unused), splitter.copies


def is_set(item: Any, name: str) -> bool:
    """Tell whether a statement sets the variable to a value that does not depend on it."""
    match item:
        case c_ast.Declare(own, _, init):
            return own == name and init is not None
        case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(own), value)):
            return own == name and name not in used_names((value,))
        case _:
            return False


@dataclass(slots=True)
class _Uses:
    """Where variables are read: the names in each statement are collected once."""

    known: dict[int, tuple[Any, frozenset[str]]] = field(default_factory=dict)
    first: dict[tuple[int, str], bool] = field(default_factory=dict)

    def names(self, node: Any) -> frozenset[str]:
        """Return the names that a statement or an expression uses."""
        if not (_is_compound(node)):
            return used_names((node,))
        held = self.known.get(id(node))
        if held is None:
            # with the node, so that no other gets its identity
            held = self.known[id(node)] = (node, frozenset().union(*map(self.names, c_ast.children(node))))
        return held[1]

    def mentions(self, item: Any, name: str) -> bool:
        return name in self.names(item) or is_set(item, name)

    def exposed(self, items: Iterable[Any], name: str) -> bool:
        """Tell whether the statements may read the variable before they set it."""
        for item in items:
            if is_set(item, name):
                return False
            if self.reads_first(item, name):
                return True
        return False

    def reads_first(self, item: Any, name: str) -> bool:
        """Tell whether a statement may read the variable before it sets it."""
        if not self.mentions(item, name):
            return False
        if not _is_compound(item):
            return True
        key = (id(item), name)
        if key not in self.first:
            self.first[key] = self.reads_inside(item, name)
        return self.first[key]

    def reads_inside(self, item: Any, name: str) -> bool:
        match item:
            case c_ast.Block(items):
                return self.exposed(items, name)
            case c_ast.If(cond, then, other):
                return self.mentions(cond, name) or self.exposed(then.items, name) or self.exposed(other.items, name)
            case c_ast.While(cond, body):
                return self.mentions(cond, name) or self.exposed(body.items, name)
            case c_ast.For(init, cond, step, body):
                if _begins_with_set(item, name):
                    return False
                around = [*init, *(e for e in (cond, step) if e is not None)]
                return any(self.mentions(part, name) for part in around) or self.exposed(body.items, name)
            case _:
                return True


def _is_compound(item: Any) -> bool:
    return isinstance(item, c_ast.Block | c_ast.If | c_ast.While | c_ast.For)


@dataclass(slots=True)
class _Splitter:
    copies: dict[str, str] = field(default_factory=dict)
    uses: _Uses = field(default_factory=_Uses)

    def block(self, items: Items, name: str) -> Items:
        """Return the statements, at whose end the variable is not read, with its ranges renamed."""
        made: list[c_ast.Item] = []
        for first, span in enumerate(_spans(items, name, self.uses)):
            mine = items[span.start : span.stop]
            if span.whole:
                made += (self.inside(item, name) for item in mine)
            else:
                made += _renamed(mine, name, name if first == 0 and not span.sets else self.copy(name))
        return tuple(made)

    def copy(self, name: str) -> str:
        new = f"{name}#~{len(self.copies) + 1}"
        self.copies[new] = name
        return new

    def inside(self, item: Any, name: str) -> Any:
        """Return a statement that sets the variable before each use, with the ranges in it."""
        match item:
            case c_ast.Block(items):
                return replace(item, items=self.block(items, name))
            case c_ast.If(_, then, other):
                return replace(item, then=self.inside(then, name), other=self.inside(other, name))
            case c_ast.While(_, body):
                return replace(item, body=self.inside(body, name))
            case c_ast.For(_, _, _, body):
                return replace(item, body=self.inside(body, name))
        return item


@dataclass(slots=True)
class _Span:
    """Statements of one range; ``sets``: the first one sets the variable; ``whole``: a statement with ranges in it."""

    start: int
    stop: int
    sets: bool
    whole: bool


def _spans(items: Items, name: str, uses: _Uses) -> list[_Span]:
    found = [_Span(0, 0, False, False)]
    for k, item in enumerate(items):
        if is_set(item, name) or _begins_with_set(item, name):
            found.append(_Span(k, k + 1, True, False))
        elif not uses.mentions(item, name):
            found[-1].stop = k + 1
        elif _is_compound(item) and not uses.reads_first(item, name):
            found.append(_Span(k, k + 1, True, True))
        else:
            # a loop or condition before may have left the variable as it was
            while found[-1].whole:
                found.pop()
            found[-1].stop = k + 1
    return found


def _begins_with_set(item: Any, name: str) -> bool:
    return isinstance(item, c_ast.For) and any(is_set(i, name) for i in item.init)


def _renamed(items: Iterable[Any], name: str, new: str) -> tuple[Any, ...]:
    if new == name:
        return tuple(items)

    def rule(node: Any) -> Any:
        match node:
            case c_ast.Name(own) if own == name:
                return replace(node, name=new)
            case c_ast.Declare(own) if own == name:
                return c_ast.map_children(rule, replace(node, name=new))
        return c_ast.map_children(rule, node)

    return tuple(rule(item) for item in items)


def _without_declarations(items: Items, names: Collection[str]) -> Items:
    """Return the statements without the declarations of these variables that give them no value."""

    def block(mine: Items) -> Items:
        return tuple(inner(i) for i in mine if not (isinstance(i, c_ast.Declare) and i.name in names and not i.init))

    def inner(node: Any) -> Any:
        if isinstance(node, c_ast.Block):
            return replace(node, items=block(node.items))
        return c_ast.map_children(inner, node) if _is_compound(node) else node

    return block(items)
