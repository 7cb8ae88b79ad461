"""Functions that their declarations, or pragmas, say have no effects: such a call may stand in a parallel loop.

    double g(double) __attribute__((const));      [[gnu::pure]] double h(const double *, int);
    #pragma looptune pure g, h

``const`` functions depend on their arguments alone, ``pure`` ones on the memory that these point to as well; the
analysis takes both for the latter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_SILENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_ATTRIBUTE = re.compile(r"__attribute(?:__)?\s*\(\(((?:[^()]|\([^()]*\))*)\)\)|\[\[([^\]]*)\]\]")
_WITHOUT_EFFECTS = re.compile(r"\b(?:__)?(?:const|pure)(?:__)?\b|\b(?:unsequenced|reproducible)\b")
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+(?:looptune|hmppcg)[ \t]+pure\b([^\n]*)", re.MULTILINE)


def pure_functions(texts: Iterable[str]) -> frozenset[str]:
    """Return the names of the functions that the texts of a program declare or assert to have no effects."""
    return frozenset(name for text in texts for name in _named(_SILENT.sub(" ", text)))


def _named(text: str) -> Iterator[str]:
    for found in _PRAGMA.finditer(text):
        yield from re.findall(r"[A-Za-z_]\w*", found[1])
    for found in _ATTRIBUTE.finditer(text):
        if _WITHOUT_EFFECTS.search(found[1] or found[2] or ""):
            start = max(text.rfind(c, 0, found.start()) for c in ";{}") + 1
            ends = [k for c in ";{" if (k := text.find(c, found.end())) >= 0]
            declared = _ATTRIBUTE.sub(" ", text[start : min(ends, default=len(text))])
            function = re.search(r"([A-Za-z_]\w*)\s*\(", declared)
            if function is not None:
                yield function[1]
