"""Parse what pycparser can read of a text, with types that it does not know, and without functions that it cannot read.

A function that pycparser cannot read (inline assembly, types of headers that are not read) is left out if it is not
needed: the codelet, its callers, the types and the variables at file scope are needed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pycparser.c_parser import CParser
from pycparser.c_parser import ParseError as SyntaxProblem

from looptune.frontend.c_lexer import Lexer, Place
from looptune.frontend.c_types import HEADER_TYPES, type_of_width
from looptune.frontend.gnu_syntax import replaced_tokens
from looptune.frontend.old_style import implied_ints
from looptune.frontend.other_languages import is_cxx
from looptune.frontend.parse_errors import explain, skippable_range, unknown_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from looptune.core.errors import ParseError
    from looptune.frontend.preprocess import Preprocessed, Token

_PRAGMAS = re.compile(r"(?:^#pragma \d+[ \t]*\n\s*)+\Z", re.MULTILINE)
_AGAIN = re.compile(r"Non-typedef '(\w+)' previously declared as typedef")
"""A variable or function of the file that is named like a type of a header."""


class Parsed(NamedTuple):
    """pycparser's tree, whose lines are one more than those of the text.

    ``assumed``: the types that the text does not declare, each with the type that its name says, "" for none;
    ``skipped``: why functions are left out; ``emptied``: the offsets of the braces whose functions have no statements
    therefore.
    """

    tree: Any
    assumed: dict[str, str]
    skipped: list[ParseError]
    emptied: set[int]


def parsed(source: Preprocessed, needed: Callable[[str, str], bool]) -> Parsed:
    """Return the tree of all that can be read; see ``c_parser.parse`` for ``needed`` and what is raised."""
    assumed = dict(HEADER_TYPES)
    text = source.text
    skipped: list[ParseError] = []
    emptied: set[int] = set()
    own: set[str] = set()
    others = {_place(source, k): other for k, other in replaced_tokens([t.text for t in source.tokens]).items()}
    lexer = partial(Lexer, implied_ints=_implied_ints(source), replaced=others)
    while True:
        prelude = "".join(f"typedef int {name};" for name in assumed)
        parser = CParser(lexer=lexer)
        try:
            # the prelude stands on a line of its own: lines of the text are one off, columns are right
            return Parsed(parser.parse(prelude + "\n" + text, ""), assumed, skipped, emptied)
        except SyntaxProblem as problem:
            again = _AGAIN.search(str(problem))
            if again is not None and assumed.pop(again[1], None) is not None:
                own.add(again[1])
                continue
            error, at = explain(source, str(problem), parser.clex.last)
            foreign = unknown_type(source, error, at)
            if foreign and foreign not in (*assumed, *own):
                assumed[foreign] = type_of_width(foreign)
                # each type that is found so costs another run of the parser
                assumed |= {name: of for name in _used_as_types(source.tokens) - own if (of := type_of_width(name))}
                continue
            gap = skippable_range(source, at, needed)
            if gap is None or text[slice(*gap)].isspace():
                raise error from None
            skipped.append(error)
            emptied.add(gap[0] - 1)
            if text[gap[0] - 1 : gap[0]] != "{":  # a whole function, with the pragmas of it
                before = _PRAGMAS.search(text[: gap[0]])
                gap = (gap[0] if before is None else before.start(), gap[1])
            text = text[: gap[0]] + re.sub(r"[^\n]", " ", text[slice(*gap)]) + text[gap[1] :]


def _used_as_types(tokens: Sequence[Token]) -> set[str]:
    """Return the names that stand before other names, and nowhere as a value, as in ``case FORMAT_FLOAT:``.

    >>> from looptune.frontend.preprocess import preprocess
    >>> text = "enum { A_FLOAT, B_FLOAT = 2 }; my_float f(int k) { case A_FLOAT: return A_FLOAT; }"
    >>> sorted(name for name in _used_as_types(preprocess(text, "a.c", {}, ()).tokens) if "loat" in name.lower())
    ['my_float']
    """
    pairs = list(pairwise(tokens))
    before_names = {a.text for a, b in pairs if re.match(r"[A-Za-z_]", b.text)}
    return before_names - {a.text for a, b in pairs if b.text in ("}", ":", "=", "|", "==", "+", "-")}


def _implied_ints(source: Preprocessed) -> frozenset[Place]:
    """Return where C89 implies an ``int``."""
    if is_cxx(next(iter(source.sources))):
        return frozenset()
    return frozenset(_place(source, k) for k in implied_ints(source.tokens))


def _place(source: Preprocessed, k: int) -> Place:
    """Return where the parser reads a token: in a line that is one more than that of the text."""
    offset = source.tokens[k].offset
    line = bisect_right(source.starts, offset)
    return line + 1, offset - source.starts[line - 1] + 1
