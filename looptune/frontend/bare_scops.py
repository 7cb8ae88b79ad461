"""Scops that stand outside of every function, as in collections of test nests: each gets a function of its own.

    #pragma scop                                double s; void scop_1(int n, double *a) { int i; _Pragma("scop")
    for (i = 0; i < n; i++) s += a[i];   ==>    for (i = 0; i < n; i++) s += a[i];
    #pragma endscop                             _Pragma("endscop") }

The lines keep their numbers. What the file does not declare is declared by its use: a counter or a size is an int, an
array of one dimension a double *, any other scalar a double, at file scope where the scop writes it. An array of more
dimensions has to be declared, since no use of it tells its extents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import assigned_names

_SCOP = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+(scop|endscop)\b[^\n]*$", re.MULTILINE)
_SKIPPED = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE
)


def function_name(line: int) -> str:
    """Return the name of the function of a scop that begins in a line."""
    return f"scop_{line}"


def bare_scops(text: str) -> dict[int, tuple[re.Match[str], re.Match[str]]]:
    """Return the two pragmas of each scop outside of all braces, by the line of the first."""
    plain = _SKIPPED.sub(lambda m: re.sub(r"[{}]", " ", m[0]), text)
    found: dict[int, tuple[re.Match[str], re.Match[str]]] = {}
    begin: re.Match[str] | None = None
    for pragma in _SCOP.finditer(text):
        outside = plain.count("{", 0, pragma.start()) == plain.count("}", 0, pragma.start())
        if pragma[1] == "scop":
            begin = pragma if outside else None
        elif begin is not None:
            if outside:
                found[text.count("\n", 0, begin.start()) + 1] = (begin, pragma)
            begin = None
    return found


def wrapped(text: str, heads: Mapping[int, Declarations]) -> str:
    """Return the text with a function around each scop that stands outside of all functions."""
    edits: list[tuple[int, int, str]] = []
    for line, (begin, end) in bare_scops(text).items():
        d = heads.get(line, Declarations())
        head = (
            f'{d.outside}void {function_name(line)}({", ".join(d.parameters) or "void"}) {{ {d.inside}_Pragma("scop")'
        )
        edits += [(*begin.span(), head), (*end.span(), '_Pragma("endscop") }')]
    for start, stop, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


@dataclass(frozen=True, slots=True)
class Declarations:
    """What a scop uses and the file does not declare: before its function, as its parameters, and inside it."""

    outside: str = ""
    parameters: tuple[str, ...] = ()
    inside: str = ""


def undeclared(file: c_ast.File, line: int) -> Declarations:
    """Return the declarations that the scop which begins in a line lacks.

    There are none if the scop is in a comment, in a part of the file that a condition leaves out, or cannot be parsed.
    """
    function = next((f for f in file.functions if f.name == function_name(line)), None)
    if function is None:
        return Declarations()
    uses = _Uses()
    uses.visit(function.body)
    known = {d.name for d in file.globals} | {n.name for n in c_ast.walk(function.body) if isinstance(n, c_ast.Declare)}
    names = [n for n in uses.order if n not in known]
    written = assigned_names((function.body,))
    counters = [n for n in names if n in uses.counters]
    arrays = [n for n in names if uses.ranks.get(n) == 1]
    scalars = [n for n in names if n not in uses.ranks and n not in uses.counters]
    kinds = {n: "int" if n in uses.integers else "double" for n in scalars}
    read = [n for n in scalars if n not in written]
    return Declarations(
        "".join(f"{kinds[n]} {n}; " for n in scalars if n in written),
        (
            *(f"{kinds[n]} {n}" for n in sorted(read, key=lambda n: kinds[n], reverse=True)),
            *(f"double *{n}" for n in arrays),
        ),
        "".join(f"int {n}; " for n in counters),
    )


@dataclass(slots=True)
class _Uses:
    """How names are used.

    ``order`` are all names; ``ranks`` says how many subscripts an array has; ``integers`` are names in subscripts and
    bounds.
    """

    order: dict[str, None] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    counters: set[str] = field(default_factory=set)
    integers: set[str] = field(default_factory=set)

    def visit(self, node: Any, *, counted: bool = False) -> None:
        match node:
            case c_ast.Name(name):
                self.order[name] = None
                self.integers |= {name} if counted else set()
            case c_ast.Index():
                root: c_ast.Expr = node
                rank = 0
                while isinstance(root, c_ast.Index):
                    self.visit(root.index, counted=True)
                    root, rank = root.base, rank + 1
                self.visit(root)
                if isinstance(root, c_ast.Name):
                    self.ranks[root.name] = rank
            case c_ast.For(init, cond, step, body):
                self.counters |= assigned_names((*init, *((step,) if step is not None else ())))
                for part in (*init, cond, step):
                    if part is not None:
                        self.visit(part, counted=True)
                self.visit(body)
            case _:
                for child in c_ast.children(node):
                    self.visit(child, counted=counted)
