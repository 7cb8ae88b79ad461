"""The loops that OpenMP or OpenACC runs in parallel, with the variables that its clauses make private.

    #pragma omp parallel for collapse(2) private(t) reduction(+: s)
    for (i = 0; i < n; i++) for (j = 0; …) …

What another compiler is told to run in parallel is judged like a directive: see ``report.check.races``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from looptune.core.source import Span
from looptune.frontend import c_ast
from looptune.frontend.name_resolution import assigned_names
from looptune.frontend.nests import SourceLoop, all_loops, outermost_loops
from looptune.frontend.pragma import Pragma

_PRIVATE = re.compile(r"\b(?:private|firstprivate|lastprivate|linear|copyin)\s*\(([^)]*)\)")
_REDUCTION = re.compile(r"\breduction\s*\([^:()]*:([^)]*)\)")
_COLLAPSE = re.compile(r"\bcollapse\s*\(\s*(\d+)\s*\)")
_SYNCHRONISED = re.compile(r"\s*(?:atomic|critical|ordered|master|single)\b")


@dataclass(frozen=True, slots=True)
class WorksharingLoop:
    """A loop that a pragma of another compiler says is parallel.

    ``loops`` are its place and those of the loops inside it that the pragma collapses with it. ``private`` are the
    variables of which each thread has its own, ``reductions`` those that the pragma names as reductions. ``shared``:
    variables of loops inside it that all threads share; ``written``: other scalars of which that is so, and that every
    iteration sets.
    """

    pragma: Pragma
    loops: tuple[Span, ...]
    private: frozenset[str]
    reductions: frozenset[str]
    shared: tuple[str, ...]
    written: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Return the pragma's words before its clauses, as ``omp parallel for``."""
        words = re.match(r"(?:\s*[a-z]+(?![a-z]*\s*\())*", self.pragma.body.text)
        return " ".join([self.pragma.family, *(words[0].split() if words is not None else ())])


def worksharing_loops(body: c_ast.Block) -> tuple[WorksharingLoop, ...]:
    """Return the loops of a function that OpenMP or OpenACC runs in parallel and whose iterations nothing orders."""
    return tuple(_loops(body, frozenset()))


def _loops(node: Any, own: frozenset[str]) -> Iterator[WorksharingLoop]:
    """``own``: what is declared in a parallel region around."""
    if isinstance(node, c_ast.Block):
        for k, item in enumerate(node.items):
            pragma = node.items[k - 1] if k else None
            if not isinstance(pragma, c_ast.PragmaItem) or pragma.pragma.family not in ("omp", "acc"):
                continue
            if isinstance(item, c_ast.For) and _is_parallel(pragma.pragma) and not _is_ordered(item, pragma.pragma):
                yield _made(pragma.pragma, item, own)
            elif isinstance(item, c_ast.Block) and re.search(r"\bparallel\b", pragma.pragma.body.text):
                own |= _declared(item) | _clause(_PRIVATE, pragma.pragma) | _clause(_REDUCTION, pragma.pragma)
    for child in c_ast.children(node):
        yield from _loops(child, own)


def _is_parallel(pragma: Pragma) -> bool:
    text = pragma.body.text
    if pragma.family == "omp":
        return re.search(r"\bfor\b", re.sub(r"\(.*?\)", "", text)) is not None
    said = re.search(r"\bloop\b", text) is not None and re.search(r"\b(?:seq|auto)\b", text) is None
    return said and re.search(r"\bkernels\b", text) is None


def _is_ordered(loop: c_ast.For, pragma: Pragma) -> bool:
    marks = (n.pragma for n in c_ast.walk(loop) if isinstance(n, c_ast.PragmaItem))
    inside = any(m.family in ("omp", "acc") and _SYNCHRONISED.match(m.body.text) for m in marks)
    return inside or re.search(r"\bordered\b", pragma.body.text) is not None


def _made(pragma: Pragma, loop: c_ast.For, own: frozenset[str]) -> WorksharingLoop:
    count = _COLLAPSE.search(pragma.body.text)
    nest: list[SourceLoop] = [loop]
    while count is not None and len(nest) < int(count[1]) and (inner := next(outermost_loops(nest[-1]), None)):
        nest.append(inner)
    private = own | _declared(loop) | _clause(_PRIVATE, pragma)
    counters = [name for f in all_loops(loop) if isinstance(f, c_ast.For) and f not in nest for name in _counters(f)]
    shared = [name for name in counters if name not in private] if pragma.family == "omp" else []
    sums = _clause(_REDUCTION, pragma)
    regional = pragma.family == "omp" and re.search(r"\bparallel\b", pragma.body.text) is not None
    written = [n for n in _always_set(loop.body) if n not in private | sums | set(shared)] if regional else []
    return WorksharingLoop(
        pragma, tuple(f.span for f in nest), private, sums, tuple(dict.fromkeys(shared)), tuple(dict.fromkeys(written))
    )


def _always_set(block: c_ast.Block) -> Iterator[str]:
    """Yield the variables that the statements set under no condition but that of a loop."""
    for item in block.items:
        match item:
            case c_ast.Evaluate(c_ast.Assignment("", c_ast.Name(name))):
                yield name
            case c_ast.Block():
                yield from _always_set(item)
            case c_ast.For() | c_ast.While():
                yield from _always_set(item.body)


def _counters(loop: c_ast.For) -> frozenset[str]:
    return assigned_names(() if loop.next is None else (loop.next,))


def _declared(node: Any) -> frozenset[str]:
    return frozenset(n.name for n in c_ast.walk(node) if isinstance(n, c_ast.Declare))


def _clause(pattern: re.Pattern[str], pragma: Pragma) -> frozenset[str]:
    return frozenset(re.sub(r"\[.*", "", name.strip()) for m in pattern.finditer(pragma.body.text)
                     for name in m[1].split(","))  # fmt: skip
