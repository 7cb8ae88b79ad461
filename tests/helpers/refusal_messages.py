"""The messages that looptune's sources can refuse a program with, read from the sources.

    raise DirectiveError(f"no loop {base} in {codelet.name}", span)    ─▶    no loop .* in .*

A message's holes are free; a name stands for what its function assigns to it, a call for what that function returns,
where it is the module's own or that of ``schedule/messages``, and a choice for each of its branches, so that every kind
of refusal is a template of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

from tests.helpers.paths import ROOT

PACKAGE = ROOT / "looptune"

FOLDERS = ("frontend", "poly", "schedule/directives")
MODULES = ("schedule/binding", "schedule/apply", "schedule/suggest", "schedule/parallel_loops",
           "schedule/reduction_clauses", "schedule/division", "lower/mapping")  # fmt: skip

ERRORS = (
    "ParseError",
    "UnsupportedError",
    "DirectiveError",
    "IllegalTransform",
    "UsageError",
    "ResourceError",
    "NoPrefixSum",
)
NAMED = ("refuse", "Unsupported")
"""``refuse(what, instead, span)``: "{what} is not accepted in a codelet: write {instead} instead"."""
AS_THEY_ARE = (*ERRORS, "error")
UNKNOWN = ("Unanalysable",)
"""What "cannot be analysed"."""
CLAUSES = ("_wrong",)
"""Functions that return a part of a message."""

_HOLE = "\0"
_DEEPEST = 3


@dataclass(frozen=True)
class Template:
    """One kind of message: its ``text`` has a hole for each part that depends on the program."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"looptune/{self.file}:{self.line}: {self.text.replace(_HOLE, '…')}"

    @property
    def says(self) -> bool:
        """It has words of its own, and is not only handed on."""
        return re.search(r"[A-Za-z]{2}", self.text) is not None

    def of(self, message: str) -> bool:
        """The message is of this kind."""
        pattern = ".*".join(re.escape(part) for part in self.text.split(_HOLE))
        return re.search(pattern, message) is not None


@cache
def templates() -> list[Template]:
    """All of them, in the order of the sources."""
    files = [p for folder in FOLDERS for p in sorted((PACKAGE / folder).glob("*.py"))]
    files += [PACKAGE / f"{module}.py" for module in MODULES]
    return [t for path in files for t in _Reader(path).templates() if t.says]


class _Reader:
    def __init__(self, path: Path) -> None:
        self.file = str(path.relative_to(PACKAGE))
        self.tree = ast.parse(path.read_text())
        self.functions = {**_wording(), **_functions(self.tree)}

    def templates(self) -> Iterator[Template]:
        for scope, call in self.calls(self.tree, None):
            name = _called(call)
            args = [a for a in call.args if not isinstance(a, ast.Starred)]
            texts: list[str] = []
            if name in NAMED and len(args) >= 2:
                texts = [f"{what} is not accepted in a codelet: write {instead} instead"
                         for what, instead in product(self.texts(args[0], scope), self.texts(args[1], scope))
                         if what != _HOLE]  # fmt: skip
            elif name in NAMED or name in AS_THEY_ARE:
                texts = self.texts(args[0], scope) if args else []
            elif name in UNKNOWN:
                texts = [f"{what} cannot be analysed" for what in self.texts(args[0], scope)]
            yield from (Template(self.file, call.lineno, text) for text in dict.fromkeys(texts))

        for name in CLAUSES:
            for value, scope in self.returned(name):
                yield from (Template(self.file, value.lineno, text) for text in self.texts(value, scope))

    def returned(self, name: str) -> list[tuple[ast.expr, ast.FunctionDef]]:
        """What the module's function of that name returns."""
        inner = self.functions.get(name)
        found = [r.value for r in ast.walk(inner) if isinstance(r, ast.Return)] if inner is not None else []
        return [(value, inner) for value in found if value is not None and inner is not None]

    def calls(self, node: ast.AST, scope: ast.FunctionDef | None) -> Iterator[tuple[ast.FunctionDef | None, ast.Call]]:
        """Every call, with the function it stands in."""
        match node:
            case ast.FunctionDef():
                scope = node
            case ast.Call():
                yield scope, node
        for child in ast.iter_child_nodes(node):
            yield from self.calls(child, scope)

    def texts(self, e: ast.expr, scope: ast.FunctionDef | None, depth: int = 0) -> list[str]:
        """What the expression may be."""
        match e:
            case ast.Constant(str(text)):
                return [text]
            case ast.JoinedStr(parts):
                each = [self.texts(p, scope, depth) for p in parts]
                return ["".join(chosen) for chosen in product(*each)]
            case ast.FormattedValue(value):
                found = self.texts(value, scope, depth)
                return [_HOLE] if _HOLE in found else found
            case ast.BinOp(left, ast.Add(), right):
                sides = product(self.texts(left, scope, depth), self.texts(right, scope, depth))
                return [a + b for a, b in sides]
            case ast.IfExp(_, yes, no):
                return [*self.texts(yes, scope, depth), *self.texts(no, scope, depth)]
            case ast.Name(name) if scope is not None and depth < _DEEPEST:
                assigned = [v for v in _assigned(scope, name) if any(e is not n for n in ast.walk(v))]
                found = [t for v in assigned for t in self.texts(v, scope, depth + 1)]
                return list(dict.fromkeys(found)) if found else [_HOLE]
            case ast.Call(ast.Name(name)) if name in self.functions and depth < _DEEPEST:
                found = [t for v, inner in self.returned(name) for t in self.texts(v, inner, depth + 1)]
                return list(dict.fromkeys(found)) if found else [_HOLE]
        return [_HOLE]


@cache
def _wording() -> dict[str, ast.FunctionDef]:
    return _functions(ast.parse((PACKAGE / "schedule/messages.py").read_text()))


def _functions(tree: ast.AST) -> dict[str, ast.FunctionDef]:
    return {f.name: f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)}


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
    return ""


def _assigned(scope: ast.FunctionDef, name: str) -> Iterator[ast.expr]:
    """The values a function assigns to a name, in a tuple too."""
    for node in ast.walk(scope):
        match node:
            case ast.Assign([ast.Name(own)], value) if own == name:
                yield value
            case ast.Assign([ast.Tuple(names)], ast.Tuple(values)) if len(names) == len(values):
                yield from (v for n, v in zip(names, values, strict=True) if isinstance(n, ast.Name) and n.id == name)
