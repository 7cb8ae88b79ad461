"""Warnings about mistakes in a file's ``#pragma hmpp`` lines.

These lines do not change what is computed, so that no mistake in them stops a run, except in the codelet's own line,
whose verb and directions must be readable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from looptune.core.errors import ParseError, UnsupportedError
from looptune.core.source import caret
from looptune.frontend import c_ast, hmpp
from looptune.frontend.codelet_selection import CodeletFunction, codelets
from looptune.frontend.name_resolution import assigned_names

if TYPE_CHECKING:
    from looptune.frontend.pragma import Pragma


def lines(file: c_ast.File) -> Iterator[Pragma]:
    """Yield every ``#pragma hmpp`` of the file, in textual order within functions."""
    for function in file.functions:
        yield from (p for p in function.pragmas if p.family == "hmpp")
        yield from (
            n.pragma for n in c_ast.walk(function.body) if isinstance(n, c_ast.PragmaItem) and n.pragma.family == "hmpp"
        )


def map_lines(file: c_ast.File) -> tuple[hmpp.Hmpp, ...]:
    """Return the ``map`` and ``mapbyname`` lines."""
    return tuple(said for said in _readable(file, []) if said.verb in ("map", "mapbyname"))


def warnings(file: c_ast.File, chosen: Sequence[CodeletFunction]) -> list[str]:
    """Return warnings of mistakes in the ``#pragma hmpp`` lines of the file that do not prevent reading it."""
    found: list[str] = []
    known = codelets(file)
    labels = {c.label.lower() for c in known}
    groups = {c.group for c in known}
    elsewhere = {*_before_other_calls(file)}
    for said in _readable(file, found):
        found += [caret(span, message) for message, span in said.problems]
        if said.verb in ("group", "map", "mapbyname"):
            if said.group and said.group not in groups:
                found.append(caret(said.span, f"no codelet is in the group {said.group}"))
        elif said.verb not in ("region", "resident") and said.label and known:
            is_known = said.label.lower() in labels or (said.span.file, said.span.line) in elsewhere
            found += [] if is_known else [caret(said.span, f"no codelet is labelled {said.label}")]
        if said.verb != "codelet":
            found += _unknown_arguments(said, known)
    for c in chosen:
        found += _clauses(c)
    return found


def _before_other_calls(file: c_ast.File) -> Iterator[tuple[str, int]]:
    """Yield the files and lines of the pragmas that stand before a call of a function that another file defines."""
    own = {f.name for f in file.functions}
    for block in (n for f in file.functions for n in c_ast.walk(f.body) if isinstance(n, c_ast.Block)):
        before: list[Pragma] = []
        for item in block.items:
            if isinstance(item, c_ast.PragmaItem):
                before.append(item.pragma)
                continue
            if any(isinstance(n, c_ast.Call) and n.name not in own for n in c_ast.walk(item)):
                yield from ((p.span.file, p.span.line) for p in before)
            before = []


_OURS = ("hmppcg", "looptune", "hmpp", "scop", "endscop")
_OTHERS = frozenset((
    "omp", "acc", "gcc", "clang", "once", "pack", "stdc", "unroll", "nounroll", "ivdep", "simd", "vector", "novector",
    "loop", "warning", "message", "push_macro", "pop_macro", "weak", "ident", "region", "endregion", "intel", "pgi",
    "message", "comment", "optimize", "inline", "noinline", "parallel", "hls", "acs", "css", "smecy", "cetus",
))  # fmt: skip
"""Families of other tools."""


def misspelt_pragmas(pragmas: Sequence[Pragma], read: Collection[str]) -> list[str]:
    """Return warnings about pragmas that are similar to one of ours and belong to no known tool.

    Only the files in ``read``, which the user wrote, are considered.
    """
    found: list[str] = []
    for pragma in pragmas:
        if pragma.family in _OURS or pragma.family in _OTHERS or pragma.span.file not in read:
            continue
        near = get_close_matches(pragma.family, _OURS, 1, 0.72)
        if near:
            found.append(caret(pragma.span, f"#pragma {pragma.family} is of no known tool, and left out: did you mean "
                                            f"{near[0]}?"))  # fmt: skip
    return found


def _readable(file: c_ast.File, found: list[str]) -> Iterator[hmpp.Hmpp]:
    for pragma in lines(file):
        try:
            yield hmpp.parse(pragma)
        except (ParseError, UnsupportedError) as error:
            found.append(str(error))


def _unknown_arguments(said: hmpp.Hmpp, known: Sequence[CodeletFunction]) -> Iterator[str]:
    """Names in a line that none of its codelets has a parameter for, which are those of its label or its group.

    A name ``label::NAME`` is of that codelet, and ``::NAME`` of no codelet.
    """
    own = [c for c in known if said.group == c.group and said.label.lower() in ("", c.label.lower())]
    elsewhere = {c.group for c in known if said.label and c.label.lower() == said.label.lower()} - {said.group}
    if said.group and not own and elsewhere:
        yield caret(said.span, f"{said.label} is in the group {elsewhere.pop() or 'of no name'}")
    for clause in said.clauses:
        for name in clause.names:
            label, separator, plain = name.rpartition("::")
            those = own if label in ("", "*") else [c for c in known if c.label.lower() == label.strip().lower()]
            alone = hmpp.Clause((plain,), clause.key, clause.value, clause.span)
            has = (alone.covers(k, p.name) for c in those for k, p in enumerate(c.function.params))
            if those and not (separator and not label) and not any(has):
                functions = " and ".join(dict.fromkeys(c.function.name for c in those))
                yield caret(clause.span, f"{functions} has no parameter {plain}")


def _clauses(c: CodeletFunction) -> Iterator[str]:
    """Names in a codelet's clauses that it has no parameter for, and directions that its body contradicts."""
    if c.directive is None:
        return
    params = [p.name for p in c.function.params]
    for clause in c.directive.clauses:
        for name in clause.names:
            alone = hmpp.Clause((name,), clause.key, clause.value, clause.span)
            if not any(alone.covers(k, p) for k, p in enumerate(params)):
                yield caret(clause.span, f"{c.function.name} has no parameter {name.rpartition('::')[2]}")
    for name in sorted(assigned_names((c.function.body,)) & set(params)):
        kind = next(p.type for p in c.function.params if p.name == name)
        if not isinstance(kind, c_ast.Basic) and hmpp.io_of(c.directive.clauses, params.index(name), name) == "in":
            yield caret(c.directive.span, f"{name} is io=in, and the codelet writes it: it is taken as inout")
