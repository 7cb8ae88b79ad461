"""Scops that stand outside of every function, as in collections of test nests: each gets a function of its own.

    #pragma scop                                double s; void scop_1(int n, double *a) { int i; _Pragma("scop")
    for (i = 0; i < n; i++) s += a[i];   ==>    for (i = 0; i < n; i++) s += a[i];
    #pragma endscop                             _Pragma("endscop") }

A sequence of ``for`` loops there that no pragma marks is a scop as well. The lines keep their numbers. What the file
does not declare is declared by its use: a counter or a size is an int, an array of doubles has as many dimensions as
subscripts, and for each but the first a parameter (``a_2``) that is its extent; any other scalar is a double, at file
scope where the scop writes it. ``min``, ``max``, ``floord`` and ``ceild`` are defined as Pluto and CLooG define them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from looptune.frontend import c_ast
from looptune.frontend.name_resolution import assigned_names

_SCOP = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+(scop|endscop)\b[^\n]*$", re.MULTILINE)
_SKIPPED = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE
)
_LOOP = re.compile(r"^[ \t]*(for)[ \t]*\(", re.MULTILINE)
_NEXT_LOOP = re.compile(r"\s*(for)\s*\(")
_HEAD = re.compile(r"(?:for|while|if)\s*\(")
_FUNCTION = re.compile(r"\b(?!(?:for|while|if|switch|return|sizeof)\b)[A-Za-z_]\w*\s*\([^;{}()]*\)\s*[A-Za-z_]")
_ELSE = re.compile(r"\s*else\b")
_DEFINED = {
    "min": ("T min(T a, T b)", "a < b ? a : b"),
    "max": ("T max(T a, T b)", "a > b ? a : b"),
    "floord": ("int floord(int n, int d)", "n < 0 ? -((-n + d - 1) / d) : n / d"),
    "ceild": ("int ceild(int n, int d)", "n < 0 ? -(-n / d) : (n + d - 1) / d"),
}
"""The functions that generators of loops use; T is int or double."""


def function_name(line: int) -> str:
    """Return the name of the function of a scop that begins in a line."""
    return f"scop_{line}"


Extent = tuple[int, int]
"""Where a text begins and ends."""


def bare_scops(text: str) -> dict[int, tuple[Extent, Extent]]:
    """Return what a function's head and end replace for each scop outside of all braces, by the line it begins in.

    These are its two pragmas, or nothing in front of the first loop and behind the last one.
    """
    plain = _SKIPPED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    found: dict[int, tuple[Extent, Extent]] = {}
    begin: re.Match[str] | None = None
    for pragma in _SCOP.finditer(text):
        outside = _is_outside(plain, pragma.start())
        if pragma[1] == "scop":
            begin = pragma if outside else None
        elif begin is not None:
            if outside:
                found[_line(text, begin.start())] = (begin.span(), pragma.span())
            begin = None
    marked = [(first[0], last[1]) for first, last in found.values()]
    end = 0
    for loop in () if _hides_braces(plain) else _LOOP.finditer(plain):
        start = loop.start(1)
        if start < end or any(a < start < b for a, b in marked) or not _is_outside(plain, start):
            continue
        end = _end_of_loops(plain, start)
        if end > start and _line(text, start) not in found:
            found[_line(text, start)] = ((start, start), (end, end))
    return found


def _hides_braces(plain: str) -> bool:
    """Tell whether braces do not show what is outside of functions: macros stand for some, or ``#if`` chooses them."""
    depth = 0
    for brace in re.findall(r"[{}]", plain):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return True
    return depth > 0 or any(_is_outside(plain, head.start()) for head in _FUNCTION.finditer(plain))


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _is_outside(plain: str, at: int) -> bool:
    """Tell whether a place is outside of all braces."""
    return plain.count("{", 0, at) == plain.count("}", 0, at)


def _end_of_loops(plain: str, start: int) -> int:
    """Return the end of the loops that follow each other from a place on, or the place where they do not end."""
    end = start
    while (loop := _NEXT_LOOP.match(plain, end)) is not None:
        after = _end_of_statement(plain, loop.start(1))
        if after is None:
            return start
        end = after
    return end


def _end_of_statement(plain: str, at: int) -> int | None:
    """Return the end of the statement that begins at a place: ``{ }``, a loop, an ``if``, or what a ``;`` ends."""
    while plain[at : at + 1].isspace():
        at += 1
    if plain[at : at + 1] == "{":
        return _closing(plain, at, "{}")
    head = _HEAD.match(plain, at)
    if head is None:
        end = plain.find(";", at)
        return None if end < 0 else end + 1
    after = _closing(plain, head.end() - 1, "()")
    body = None if after is None else _end_of_statement(plain, after)
    otherwise = None if body is None else _ELSE.match(plain, body)
    return body if otherwise is None else _end_of_statement(plain, otherwise.end())


def _closing(plain: str, at: int, brackets: str) -> int | None:
    """Return the place after the bracket that closes the one at a place."""
    depth = 0
    for k in range(at, len(plain)):
        depth += (plain[k] == brackets[0]) - (plain[k] == brackets[1])
        if depth == 0:
            return k + 1
    return None


def wrapped(text: str, heads: Mapping[int, Declarations]) -> str:
    """Return the text with a function around each scop that stands outside of all functions."""
    edits: list[tuple[int, int, str]] = []
    for line, (begin, end) in bare_scops(text).items():
        d = heads.get(line, Declarations())
        head = f"{d.outside}void {function_name(line)}({', '.join(d.parameters) or 'void'}) {{ {d.inside}"
        marked = begin[0] < begin[1]
        edits += [(*begin, f'{head}_Pragma("scop")' if marked else head)]
        edits += [(*end, '_Pragma("endscop") }' if marked else " }")]
    for start, stop, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


@dataclass(frozen=True, slots=True)
class Declarations:
    """What a scop uses and the file does not declare: before its function, as its parameters, and inside it."""

    outside: str = ""
    parameters: tuple[str, ...] = ()
    inside: str = ""


def undeclared(file: c_ast.File, lines: Iterable[int]) -> dict[int, Declarations]:
    """Return the declarations that the scops which begin in these lines lack.

    There are none if a scop is in a comment, in a part of the file that a condition leaves out, or cannot be parsed.
    """
    functions = {f.name: f for f in file.functions}
    found: dict[int, Declarations] = {}
    defined = {*functions, *file.results}
    for line in sorted(lines):
        function = functions.get(function_name(line))
        if function is not None:
            uses = _Uses()
            uses.visit(function.body)
            found[line] = _declarations(file, function, uses, defined)
            defined |= uses.calls.keys()
    return found


def _declarations(file: c_ast.File, function: c_ast.Function, uses: _Uses, defined: Collection[str]) -> Declarations:
    known = {d.name for d in file.globals} | {n.name for n in c_ast.walk(function.body) if isinstance(n, c_ast.Declare)}
    names = [n for n in uses.order if n not in known]
    written = assigned_names((function.body,))
    counters = [n for n in names if n in uses.counters]
    arrays = {n: uses.ranks[n] for n in names if n in uses.ranks}
    scalars = [n for n in names if n not in uses.ranks and n not in uses.counters]
    kinds = {n: "int" if n in uses.integers else "double" for n in scalars}
    read = [n for n in scalars if n not in written]
    functions = [_definition(n, uses) for n in uses.calls if n in _DEFINED and n not in defined]
    return Declarations(
        "".join((*functions, *(f"{kinds[n]} {n}; " for n in scalars if n in written))),
        (
            *(f"{kinds[n]} {n}" for n in sorted(read, key=lambda n: kinds[n], reverse=True)),
            *(f"int {n}_{k}" for n, rank in arrays.items() for k in range(2, rank + 1)),
            *(_array(n, rank) for n, rank in arrays.items()),
        ),
        "".join(f"int {n}; " for n in counters),
    )


def _array(name: str, rank: int) -> str:
    """Return the declaration of a parameter: ``double *a``, ``double a[][a_2]``."""
    return f"double *{name}" if rank == 1 else f"double {name}[]" + "".join(f"[{name}_{k}]" for k in range(2, rank + 1))


def _definition(name: str, uses: _Uses) -> str:
    whole = uses.calls[name] <= uses.counters | uses.integers
    head, value = _DEFINED[name]
    return f"static {head} {{ return {value}; }} ".replace("T ", "int " if whole else "double ")


@dataclass(slots=True)
class _Uses:
    """How names are used.

    ``order`` are all names; ``ranks`` says how many subscripts an array has; ``integers`` are names in subscripts and
    bounds; ``calls`` are the functions that are called, with the variables in their arguments.
    """

    order: dict[str, None] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    counters: set[str] = field(default_factory=set)
    integers: set[str] = field(default_factory=set)
    calls: dict[str, set[str]] = field(default_factory=dict)

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
                if isinstance(node, c_ast.Call):
                    named = {n.name for a in node.args for n in c_ast.walk(a) if isinstance(n, c_ast.Name)}
                    self.calls.setdefault(node.name, set()).update(named)
                for child in c_ast.children(node):
                    self.visit(child, counted=counted)
