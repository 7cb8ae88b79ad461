"""Variables that only hand a value on, which inlined functions and copies of structs leave behind.

    a_re = s_re;  b_re = x[i] * y;
    r_re = a_re + b_re;  s_re = r_re;   ==>   s_re = s_re + x[i] * y;

A variable is replaced that is set once, in the block that declares it, and only read after that. A name or a number
replaces it everywhere, another value in its only use. What the value is made of must not change in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import assigned_names

Items = tuple[c_ast.Item, ...]
_MADE = ("c", "f", "p", "v")
"""How the marks of variables begin that are not the text's own."""


def propagate_copies(items: Items, types: Mapping[str, c_ast.Type]) -> Items:
    """Return the statements without the variables that only hand a value on; those with labels as they are."""
    if any(isinstance(n, c_ast.Label) for item in items for n in c_ast.walk(item)):
        return items
    items = _flat(items)
    nodes = [n for item in items for n in _values(item)]
    sets = Counter(n.target.name for n in nodes if _sets_variable(n))
    sets.update(n.arg.name for n in nodes if _steps_variable(n))
    sets.update(n.name for n in nodes if isinstance(n, c_ast.Declare) and n.init is not None)
    pointed = {
        n.arg.name for n in nodes if isinstance(n, c_ast.Unary) and n.op == "&" and isinstance(n.arg, c_ast.Name)
    }
    return _Copies(types, sets, frozenset(pointed)).block(items)


def _flat(items: Items) -> Items:
    """Return statements without blocks that are only there for the scope of names, which are unique."""
    found: list[c_ast.Item] = []
    for item in items:
        if isinstance(item, c_ast.Block) and not (found and isinstance(found[-1], c_ast.PragmaItem)):
            found += _flat(item.items)
        else:
            found.append(item)
    return tuple(found)


def _values(node: Any) -> Iterator[Any]:
    """Yield the node and all below it, apart from types, which compute nothing."""
    yield node
    for child in c_ast.children(node):
        if not isinstance(child, c_ast.TypeOf):
            yield from _values(child)


def _sets_variable(n: Any) -> bool:
    return isinstance(n, c_ast.Assignment) and isinstance(n.target, c_ast.Name)


def _steps_variable(n: Any) -> bool:
    return isinstance(n, c_ast.Unary) and n.op in ("++", "--") and isinstance(n.arg, c_ast.Name)


@dataclass(frozen=True, slots=True)
class _Facts:
    """A statement with the variables that it names and those that it sets."""

    item: Any
    names: frozenset[str]
    assigned: frozenset[str]
    writes_memory: bool


def _facts(item: Any) -> _Facts:
    nodes = list(c_ast.walk(item))
    names = frozenset(n.name for n in nodes if isinstance(n, c_ast.Name))
    return _Facts(item, names, assigned_names((item,)), any(map(_writes_memory, nodes)))


@dataclass(frozen=True, slots=True)
class _Copies:
    """``sets`` counts the settings of each variable, ``pointed`` are those whose address is taken."""

    types: Mapping[str, c_ast.Type]
    sets: Mapping[str, int]
    pointed: frozenset[str]

    def block(self, items: Items) -> Items:
        found = [_facts(self.inside(item)) for item in _flat(items)]
        declared = {f.item.name: f.item for f in found if isinstance(f.item, c_ast.Declare)}
        at = 0
        while at < len(found):
            name, value = self.candidate(found[at].item, declared)
            after = None if value is None else self.replaced(name, value, found, at, declared[name])
            if after is None:
                at += 1
                continue
            kept = [f for f in found[:at] if f.item is not declared[name]]
            found, at = [*kept, *after], len(kept)
        return tuple(f.item for f in found)

    def inside(self, item: Any) -> Any:
        match item:
            case c_ast.Block() | c_ast.Region():
                return replace(item, items=self.block(item.items))
            case c_ast.For() | c_ast.While() | c_ast.If() | c_ast.Switch():
                return c_ast.map_children(lambda n: self.inside(n) if isinstance(n, c_ast.Block) else n, item)
        return item

    def candidate(self, item: Any, declared: Mapping[str, c_ast.Declare]) -> tuple[str, c_ast.Expr | None]:
        """Return the variable that a statement sets and its value, None where it has to stay."""
        match item:
            case c_ast.Declare(name, c_ast.Basic() | c_ast.TypeOf(), value) if isinstance(value, c_ast.Expr):
                found = value
            case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(name), value)) if name in declared:
                found = value
            case _:
                return "", None
        kind = declared[name].type
        made = name.partition("#")[2][:1] in _MADE and not declared[name].static
        if not made or self.sets[name] != 1 or name in self.pointed or not isinstance(kind, c_ast.Basic | c_ast.TypeOf):
            return name, None
        return name, found if _is_pure(found) else None

    def replaced(
        self, name: str, value: c_ast.Expr, found: list[_Facts], at: int, declared: c_ast.Declare
    ) -> list[_Facts] | None:
        """Return the statements after the setting with the value for the variable, None where it cannot replace it."""
        before, after = found[:at], found[at + 1 :]
        using = [k for k, f in enumerate(after) if name in f.names]
        if not using or any(name in f.names for f in before):
            return None
        simple = isinstance(value, c_ast.Name | c_ast.Number)
        count = sum(n == c_ast.Name(name) for k in using for n in _values(after[k].item))
        if not simple and (count != 1 or not _is_plain(after[using[0]].item)):
            return None
        last = using[-1]
        if self.changes(value, after[: last if _is_plain(after[last].item) else last + 1]):
            return None
        put = value if self.has_type(value, declared.type) else c_ast.Cast(declared.type, value, span=value.span)

        def rule(node: Any) -> Any:
            return put if node == c_ast.Name(name) else c_ast.map_children(rule, node)

        return [_facts(rule(f.item)) if name in f.names else f for f in after]

    def changes(self, value: c_ast.Expr, between: list[_Facts]) -> bool:
        """Tell whether the statements may change what the value is made of."""
        if not between:
            return False
        read = {n.name for n in c_ast.walk(value) if isinstance(n, c_ast.Name)}
        if read & self.pointed or any(read & f.assigned for f in between):
            return True
        return any(map(_reads_memory, c_ast.walk(value))) and any(f.writes_memory for f in between)

    def has_type(self, value: c_ast.Expr, kind: c_ast.Type) -> bool:
        return isinstance(kind, c_ast.TypeOf) or (isinstance(value, c_ast.Name) and self.types.get(value.name) == kind)


def _is_pure(e: c_ast.Expr) -> bool:
    return not any(isinstance(n, c_ast.Unsupported | c_ast.Field) for n in c_ast.walk(e))


def _is_plain(item: c_ast.Item) -> bool:
    """Tell whether a statement reads everything before it writes anything, once."""
    return isinstance(item, c_ast.Evaluate | c_ast.Declare)


def _reads_memory(n: Any) -> bool:
    return isinstance(n, c_ast.Index | c_ast.Call) or (isinstance(n, c_ast.Unary) and n.op == "*")


def _writes_memory(n: Any) -> bool:
    match n:
        case c_ast.Assignment(_, target) | c_ast.Unary("++" | "--", target):
            return not isinstance(target, c_ast.Name)
    return False
