"""Interpret the errors of the C parser: the message and place for the user, and the text that can be left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from looptune.core.errors import ParseError
from looptune.frontend import cxx_constructs
from looptune.frontend.old_style import old_definitions
from looptune.frontend.other_languages import is_cxx
from looptune.frontend.token_text import OTHER_TYPE, type_attribute

if TYPE_CHECKING:
    from looptune.frontend.preprocess import Preprocessed, Token


def explain(source: Preprocessed, problem: str, last: Any) -> tuple[ParseError, int]:
    """Return pycparser's complaint as an error for the user, and the index of the token that caused it."""
    if not source.tokens:
        return ParseError("the file holds no C"), 0
    place = re.match(r"(?:.*?:(?P<line>\d+):(?P<col>\d+): |:? ?)(?P<what>.*)", problem, re.DOTALL)
    assert place is not None, "the pattern matches any text"
    if last is None and place["line"] is None:
        end = len(source.tokens) - 1
        return ParseError("unexpected end of file: a '}' or ';' is missing", source.tokens[end].span), end
    line, col = (last.lineno, last.column) if place["line"] is None else (int(place["line"]), int(place["col"]))
    at = source.token_at(line - 1, col)
    token = source.tokens[at]
    before = source.tokens[at - 1] if at else None
    message, stumbled = _message(place["what"], token, before)
    foreign = _attributed(source, at) or _foreign(source.tokens, at, cxx=is_cxx(token.span.file)) or _parted(source, at)
    if foreign is not None:
        message, stumbled = foreign
    return ParseError(message + _hint(source), stumbled.span), at


def _attributed(source: Preprocessed, at: int) -> tuple[str, Token] | None:
    """Return that an attribute makes a type another outside of a ``typedef``."""
    for k in (at, at - 1):
        if k >= 0 and source.tokens[k].text == OTHER_TYPE and k in source.attributes:
            what = f"the attribute {type_attribute(source.attributes[k])} is not supported: write plain C types"
            return what, source.tokens[k]
    return None


def _parted(source: Preprocessed, at: int) -> tuple[str, Token] | None:
    """Return that a pragma parts a statement without braces from its ``else``, or from the ``while`` of its ``do``."""
    for k in (at, at + 1):
        if 0 < k < len(source.tokens) and source.tokens[k].text in ("else", "while"):
            before, token = source.tokens[k - 1], source.tokens[k]
            lines = (p.span.line for p in source.pragmas if p.span.file == token.span.file == before.span.file)
            if before.text in (";", "}") and any(before.span.line < line < token.span.line for line in lines):
                return f"a pragma stands between a statement and its {token.text}: write the statement in braces", token
    return None


_GNU_WORDS = {
    "typeof": ("typeof", "the type"), "__typeof__": ("typeof", "the type"), "__typeof": ("typeof", "the type"),
    "__auto_type": ("__auto_type", "the type"), "asm": ("inline assembly", "C"), "__asm__": ("inline assembly", "C"),
    "__asm": ("inline assembly", "C"),
}  # fmt: skip
"""Words of GNU C, and of C that is not read: what each is, and what to write in its place."""


def _foreign(tokens: Sequence[Token], at: int, *, cxx: bool) -> tuple[str, Token] | None:
    """Return what stands at a token, or before it in its statement, that no standard C is.

    And the token it begins with. ``cxx``: in a file of C++.
    """
    first = at
    while first and tokens[first - 1].text not in (";", "{", "}"):
        first -= 1
    of_cxx = cxx_constructs.construct(tokens, first, at) if cxx else None
    if of_cxx is not None:
        return of_cxx
    here = tokens[at].text
    last = tokens[at - 1].text if at else ""
    if here == "{" and last == ")" and any(t.text == "{" for t in tokens[:first]) and _nested(tokens, first, at):
        return "a function inside a function is GNU C: write it outside", tokens[first]
    for k in range(max(0, first - 1), min(at + 1, len(tokens))):
        if tokens[k].text == "{" and k and tokens[k - 1].text == "(":
            return "`({ … })` is GNU C: write its statements, and its value as an expression", tokens[k - 1]
        if tokens[k].text == "complex":
            return "complex is not declared: include <complex.h>, or write _Complex", tokens[k]
        known = _GNU_WORDS.get(tokens[k].text)
        if known is not None:
            return f"{known[0]} is not supported: write {known[1]} instead", tokens[k]
    return None


def _nested(tokens: Sequence[Token], first: int, at: int) -> bool:
    """Tell whether the tokens are a type, a name and parentheses that are not those of a condition."""
    words = [t.text for t in tokens[first:at]]
    return len(words) > 3 and re.match(r"[A-Za-z_]", words[0]) is not None and words[1] != "(" and (
        words[0] not in ("else", "do", "return", "for", "while", "if", "switch")
    )  # fmt: skip


def _message(what: str, token: Token, before: Token | None) -> tuple[str, Token]:
    """Return the complaint, and the token to point at."""
    if what == "Invalid declaration" and re.match(r"[A-Za-z_]", token.text):
        return f"unknown type name {token.text!r}", token
    if "omments are not supported" in what:
        return "this comment does not end", token
    if not what.startswith(("before:", "Invalid")):
        return what[0].lower() + what[1:], token
    if before is None or not re.match(r"\w|[)\]]", before.text):
        return f"syntax error before {token.text!r}", token
    word = re.match(r"[A-Za-z_]", before.text) is not None
    if word and before.span.line == token.span.line and re.match(r"[A-Za-z_*]", token.text):
        return f"unknown type name {before.text!r}", before
    if re.match(r"\w|}", token.text) and before.text not in ("for", "while", "if"):
        return f"expected ';' before {token.text!r}", token
    return f"syntax error before {token.text!r}", token


def _hint(source: Preprocessed) -> str:
    own = [h for h in source.skipped if "/" in h or h == "polybench.h"]
    return f" (<{own[0]}> was not found: add its folder with -I)" if own else ""


_KEYWORDS = frozenset({
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
    "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
    "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "_Bool",
    "_Complex", "_Noreturn", "_Static_assert", "_Alignas", "_Alignof", "_Atomic", "_Thread_local", "asm", "typeof",
})  # fmt: skip


def unknown_type(source: Preprocessed, error: ParseError, at: int) -> str:
    """Return the name that must be a type of a header that was not read for the text to be C, or "".

    >>> from looptune.frontend.preprocess import preprocess
    >>> read = preprocess("#include <mpi.h>\\nint f(void *p) { return size((MPI_Comm *)p); }", "a.c", {}, ())
    >>> star = [t.text for t in read.tokens].index(")", 12)
    >>> unknown_type(read, ParseError("syntax error before ')'"), star)
    'MPI_Comm'
    """
    if not source.skipped:
        return ""
    named = re.match(r"unknown type name '(\w+)'", error.message)
    if named is not None:
        return _no_keyword(named[1])
    last, here, following = (source.tokens[k].text if 0 <= k < len(source.tokens) else "" for k in (at - 1, at, at + 1))
    begins = last in (";", "{", "}", "(", ",") and re.fullmatch(r"[A-Za-z_]\w*", here)
    if error.message.startswith("syntax error before") and begins and re.match(r"[A-Za-z_*]", following):
        return _no_keyword(here)
    if error.message.startswith("missing type in declaration") and re.fullmatch(r"[A-Za-z_]\w*", here):
        return _no_keyword(here) if re.match(r"[A-Za-z_*]", following) else ""
    words = [t.text for t in source.tokens[max(0, at - 8) : at + 1]]
    while len(words) > 1 and words[-1] == ")" and words[-2] == "*":
        del words[-2]
    opening, name, *closing = words[-3:] if len(words) > 2 else ("", "", "")
    return _no_keyword(name) if opening == "(" and closing == [")"] and re.fullmatch(r"[A-Za-z_]\w*", name) else ""


def _no_keyword(word: str) -> str:
    return "" if word in _KEYWORDS else word


def skippable_range(source: Preprocessed, at: int, needed: Callable[[str, str], bool]) -> tuple[int, int] | None:
    """Return the offsets of the function body or declaration around a token that parsing can skip."""
    depth = 0
    start, opened, name = 0, None, None
    braces = {d.name: d.brace for d in old_definitions(source.tokens)}
    head = 0  # where the brace is of the definition around the token, if its parameters are declared before it
    for k, token in enumerate(source.tokens):
        head = braces.get(k, head)
        if token.text in "({[":
            if depth == 0 and token.text == "(" and name is None and k:
                name = source.tokens[k - 1].text
            if depth == 0 and token.text == "{" and (k in (start, head) or source.tokens[k - 1].text == ")"):
                opened = k
            depth += 1
        depth -= token.text in ")}]"
        ends = depth == 0 and k >= head and (token.text == ";" or (token.text == "}" and opened is not None))
        if ends and start <= at <= k:
            first = source.tokens[start].offset
            end = token.offset + len(token.text)
            if needed(name if opened is not None and name is not None else "", source.text[first:end]):
                return None
            inside = opened is not None and at > opened
            return (source.tokens[opened].offset + 1, token.offset) if inside and opened is not None else (first, end)
        if ends:
            start, opened, name = k + 1, None, None
    return None
