"""Pointers that a condition sets to one of several arrays: what follows in their block stands in both branches.

float *v = i < m ? a : b;             if (i < m) { float *v = a; v[i] = 0; }
v[i] = 0;                      ==>    else       { float *w = b; w[i] = 0; }
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from looptune.core.errors import UnsupportedError
from looptune.frontend import c_ast
from looptune.frontend.name_resolution import assigned_names, used_names, with_names
from looptune.frontend.normalize.pointer_offsets import replace_pointers

Items = tuple[c_ast.Item, ...]
_MOST = 2_000
"""Nodes of statements that are copied, those of copies included."""


def split_choices(items: Items, types: Mapping[str, c_ast.Type], read_after: frozenset[str]) -> Items:
    """Return the statements without choices among arrays, or as they are where the pointers need no copies."""
    if not any(_chosen(n, types) for top in items for n in c_ast.walk(top)):
        return items
    try:
        replace_pointers(items, types, read_after)
    except UnsupportedError:
        splitter = _Splitter(dict(types), count(1))
        made = splitter.block(items)
        return items if splitter.copied > _MOST else made
    return items


def _chosen(item: Any, types: Mapping[str, c_ast.Type]) -> frozenset[str]:
    """Return the pointers that a statement sets to one of several arrays."""
    match item:
        case c_ast.Declare(name, c_ast.Pointer(), c_ast.Ternary(_, a, b)) if _array(a) != _array(b):
            return frozenset((name,))
        case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(name), c_ast.Ternary(_, a, b))) if _array(a) != _array(b):
            return frozenset((name,)) if isinstance(types.get(name), c_ast.Pointer) else frozenset()
        case c_ast.If(_, then, other):
            return frozenset(name for branch in (then, other) for name in _set_in(branch, types))
    return frozenset()


def _set_in(branch: c_ast.Block, types: Mapping[str, c_ast.Type]) -> Iterator[str]:
    for node in c_ast.walk(branch):
        match node:
            case c_ast.Assignment("", c_ast.Name(name), value) if isinstance(types.get(name), c_ast.Pointer):
                if _array(value) != name:
                    yield name


def _array(e: c_ast.Expr) -> str:
    """Return the variable into whose array a pointer leads."""
    match e:
        case c_ast.Name(name):
            return name
        case c_ast.Unary(_, inner) | c_ast.Index(inner, _) | c_ast.Cast(_, inner):
            return _array(inner)
        case c_ast.Binary("+" | "-", lhs, rhs):
            return _array(lhs) or _array(rhs)
    return ""


@dataclass(slots=True)
class _Splitter:
    types: dict[str, c_ast.Type]
    numbers: Iterator[int]
    copied: int = 0

    def block(self, items: Items, own: frozenset[str] = frozenset()) -> Items:
        """Return the statements of a block with its choices split; ``own`` are variables used up to its end alone."""
        for k, item in enumerate(items):
            rest = items[k + 1 :]
            if self.copied <= _MOST and _chosen(item, self.types) & used_names(rest):
                return (*map(self.inner, items[:k]), *self.split(item, rest, own))
            own |= {item.name} if isinstance(item, c_ast.Declare) else frozenset()
        return tuple(map(self.inner, items))

    def inner(self, item: Any) -> Any:
        """Return a statement in whose blocks the choices are split."""
        if isinstance(item, c_ast.Block):
            return replace(item, items=self.block(item.items))
        return c_ast.map_children(self.inner, item) if isinstance(item, c_ast.Item) else item

    def split(self, item: Any, rest: Items, own: frozenset[str]) -> Items:
        """Return the condition of a choice with what follows it in both branches.

        Pointers of its block, ``own``, have other names in one of them.
        """
        cond, first, second = _branches(item)
        number = next(self.numbers)
        copied = (*second, *rest)
        self.copied += sum(1 for top in copied for _ in c_ast.walk(top))
        setup, cond = self.kept(cond, rest, number)
        inside = {n.name for top in copied for n in c_ast.walk(top) if isinstance(n, c_ast.Declare)}
        names, aliases = self.fresh(inside, f"b{number}"), self.fresh(own & _chosen(item, self.types), f"c{number}")
        copies = tuple(with_names(other, names) for other in copied)
        held = (
            c_ast.Declare(a, self.types[p], c_ast.Name(p, span=item.span), span=item.span) for p, a in aliases.items()
        )
        first = (*held, *(with_names(one, aliases) for one in (*first, *rest)))
        then = c_ast.Block(self.block(first, own | {*aliases.values()}), span=item.span)
        return (*setup, c_ast.If(cond, then, c_ast.Block(self.block(copies, own), span=item.span), span=item.span))

    def fresh(self, names: Collection[str], mark: str) -> dict[str, str]:
        """Return other names for variables, whose types are noted."""
        made = {name: f"{name}{'' if '#' in name else '#'}{mark}" for name in sorted(names)}
        self.types |= {new: self.types[name] for name, new in made.items()}
        return made

    def kept(self, cond: c_ast.Expr, rest: Items, number: int) -> tuple[Items, c_ast.Expr]:
        """Return what keeps the value of a condition, where what follows may change its operands."""
        plain = c_ast.Name | c_ast.Number | c_ast.Binary | c_ast.Cast
        if all(isinstance(n, plain) for n in c_ast.walk(cond)) and not used_names((cond,)) & assigned_names(rest):
            return (), cond
        name = c_ast.Name(f"chosen#b{number}", span=cond.span)
        holds = c_ast.Binary("!=", cond, c_ast.Number("0", span=cond.span), span=cond.span)
        return (c_ast.Declare(name.name, c_ast.Basic("int32"), holds, span=cond.span),), name


def _branches(item: Any) -> tuple[c_ast.Expr, Items, Items]:
    """Return the condition of a choice, and what each branch does first."""
    match item:
        case c_ast.If(cond, then, other):
            return cond, then.items, other.items
        case c_ast.Declare(_, _, c_ast.Ternary(cond, a, b)):
            return cond, (replace(item, init=a),), (replace(item, init=b),)
        case c_ast.Evaluate(c_ast.Assignment(_, _, c_ast.Ternary(cond, a, b)) as stored):
            one, two = (replace(item, expr=replace(stored, value=value)) for value in (a, b))
            return cond, (one,), (two,)
    raise AssertionError("it is a choice")
