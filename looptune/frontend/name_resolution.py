"""Make the names of a function unique, and find where each variable is written and used.

A local ``x`` becomes ``x#1``, ``x#2``, ... in textual order, so that one name is one variable; parameters and names at
file scope are not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from looptune.frontend import c_ast

OFFSET = "#at"
"""In the name of an integer that stands for a pointer of the text."""
TABLE = "#table"
"""Ends the name of a constant array of the file, which a variable of the function may hide."""


def base(name: str) -> str:
    """Return the name as the user wrote it.

    >>> base("i#3"), base("i#3@1"), base("n")
    ('i', 'i', 'n')
    """
    return name.partition("#")[0]


def with_names(node: Any, names: Mapping[str, str]) -> Any:
    """Return a copy of statements or expressions in which variables have other names, flags that end loops too."""
    match node:
        case c_ast.Name(name) | c_ast.Declare(name) if name in names:
            node = replace(node, name=names[name])
        case c_ast.For(until=until) if names.keys() & set(until):
            node = replace(node, until=tuple(names.get(flag, flag) for flag in until))
    return c_ast.map_children(lambda child: with_names(child, names), node)


def resolve(body: c_ast.Block, env: Mapping[str, str], mark: str = "") -> c_ast.Block:
    """Return the body with one name per variable; ``env`` renames what is declared outside it.

    ``mark`` distinguishes the names of a function that is inlined; its labels are renamed as well.
    """
    return _Resolver(mark).block(body, dict(env))


class _Resolver:
    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.count: dict[str, int] = {}

    def block(self, block: c_ast.Block, env: dict[str, str]) -> c_ast.Block:
        inner = dict(env)
        return replace(block, items=tuple(self.node(item, inner) for item in block.items))

    def node(self, node: Any, env: dict[str, str]) -> Any:
        """``node`` renamed; a declaration adds itself to ``env``."""
        match node:
            case c_ast.Name(name):
                return replace(node, name=env[name]) if name in env else node
            case c_ast.Block():
                return self.block(node, env)
            case c_ast.For():
                inner = dict(env)
                return c_ast.map_children(lambda part: self.node(part, inner), node)
            case c_ast.Declare(name):
                if node.init == c_ast.Name(name):
                    # the variable itself, which has no value yet
                    node = replace(node, init=None)
                new = c_ast.map_children(lambda part: self.node(part, env), node)
                self.count[name] = self.count.get(name, 0) + 1
                env[name] = f"{name}#{self.mark}{self.count[name]}"
                return replace(new, name=env[name])
            case c_ast.Number() | c_ast.PragmaItem():
                return node
            case c_ast.Label(name) if self.mark:
                return replace(node, name=f"{name}#{self.mark}")
            case c_ast.Jump("goto", label) if self.mark:
                return replace(node, label=f"{label}#{self.mark}")
            case _:
                return c_ast.map_children(lambda part: self.node(part, env), node)


def root_variable(expr: Any) -> str | None:
    """Return the variable to which an lvalue belongs: ``A`` for ``A[i][j]``, ``p`` for ``*(p + 1)``."""
    match expr:
        case c_ast.Name(name):
            return name
        case c_ast.Index(inner) | c_ast.Field(inner) | c_ast.Unary("*", inner) | c_ast.Cast(_, inner):
            return root_variable(inner)
        case c_ast.Binary("+" | "-", lhs, rhs):
            found = root_variable(lhs)
            return root_variable(rhs) if found is None else found
        case _:
            return None


def assigned_names(nodes: Iterable[Any]) -> frozenset[str]:
    """Return every variable and array that the nodes may write, and those whose address is taken."""
    found: set[str | None] = set()
    for top in nodes:
        for node in c_ast.walk(top):
            match node:
                case c_ast.Assignment(_, target) | c_ast.Unary("++" | "--" | "&", target):
                    found.add(root_variable(target))
                case c_ast.Declare(name, _, init) if init is not None:
                    found.add(name)
    return frozenset(name for name in found if name is not None)


def used_names(nodes: Iterable[Any]) -> frozenset[str]:
    """Return every name in the nodes."""
    return frozenset(n.name for top in nodes for n in c_ast.walk(top) if isinstance(n, c_ast.Name))


def used_names_outside_unsupported(nodes: Iterable[Any]) -> frozenset[str]:
    """Return every name in the nodes that is outside of unsupported constructs."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case c_ast.Name(name):
                found.add(name)
            case c_ast.Unsupported():
                continue
        found |= used_names_outside_unsupported(c_ast.children(node))
    return frozenset(found)


def only_dereferenced(nodes: Iterable[Any]) -> frozenset[str]:
    """Return the names that occur only as ``*x``: such a pointer stands for one variable."""
    starred: set[str] = set()
    plain: dict[str, int] = {}
    for top in nodes:
        for node in c_ast.walk(top):
            match node:
                case c_ast.Unary("*", c_ast.Name(name)):
                    starred.add(name)
                    plain[name] = plain.get(name, 0) - 1
                case c_ast.Name(name):
                    plain[name] = plain.get(name, 0) + 1
    return frozenset(name for name in starred if plain[name] == 0)


@dataclass(slots=True)
class _Walk:
    """Positions in textual order: reads, and writes each with the block it stands in (None: not on its own)."""

    at: int = 0
    reads: dict[str, list[int]] = field(default_factory=dict)
    writes: dict[str, list[tuple[int, int | None]]] = field(default_factory=dict)
    ends: list[int] = field(default_factory=list)

    def block(self, items: Iterable[Any]) -> None:
        number = len(self.ends)
        self.ends.append(0)
        for item in items:
            self.item(item, number)
        self.ends[number] = self.at

    def item(self, item: Any, block: int) -> None:
        match item:
            case c_ast.Declare(name, kind, init):
                self.parts((kind, init))
                if init is not None:
                    self.write(name, block)
            case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(name), value)):
                self.parts((value,))
                self.write(name, block)
            case c_ast.Block(items):
                self.block(items)
            case c_ast.For(init, cond, step, body):
                self.block((*init, cond, body, step))
            case c_ast.While(cond, body) | c_ast.If(cond, body):
                self.parts((cond,))
                self.block(body.items)
                if isinstance(item, c_ast.If):
                    self.block(item.other.items)
            case _:
                self.parts((item,))

    def parts(self, nodes: Iterable[Any]) -> None:
        """Record the reads, and the writes inside an expression."""
        for top in nodes:
            for node in c_ast.walk(top) if top is not None else ():
                match node:
                    case c_ast.Assignment(_, c_ast.Name(name)) | c_ast.Unary("++" | "--" | "&", c_ast.Name(name)):
                        self.write(name, None)
                    case c_ast.Name(name):
                        self.at += 1
                        self.reads.setdefault(name, []).append(self.at)

    def write(self, name: str, block: int | None) -> None:
        self.at += 1
        self.writes.setdefault(name, []).append((self.at, block))


def singly_assigned(body: c_ast.Block) -> frozenset[str]:
    """Return the variables with a single assignment that precedes every use, in the same block or one around it."""
    walk = _Walk()
    walk.block(body.items)
    found: set[str] = set()
    for name, writes in walk.writes.items():
        at, block = writes[0]
        if len(writes) > 1 or block is None:
            continue
        if all(at < read <= walk.ends[block] for read in walk.reads.get(name, [])):
            found.add(name)
    return frozenset(found)
