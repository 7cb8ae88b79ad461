"""``#pragma hmpp``: codelets, call sites, and what their clauses state about the arguments.

#pragma hmpp [<group>] [label] verb {, clause}
clause = args[a;b].io=inout | args[*].size={n,m} | target=CUDA | asynchronous | cond="…" | …
args   = NAME | NUMBER | NUMBER-NUMBER | * | label::NAME | *::NAME

Published files leave out commas and ampersands: such a line is read as far as possible, and the mistake is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from looptune.core.errors import ParseError, UnsupportedError
from looptune.core.source import Span

if TYPE_CHECKING:
    from looptune.frontend.pragma import Pragma, SourceText

VERBS = (
    "codelet", "callsite", "synchronize", "acquire", "allocate", "release", "advancedload", "delegatedstore",
    "group", "map", "mapbyname", "region", "resident",
)  # fmt: skip

INSTEAD = {
    "native": "the function in C, marked `codelet`",
    "external": "the codelet in this file, with its body",
    "parallel": "a function marked `codelet`",
}
"""Verbs outside the language, and what to write in their place."""

_HEAD = re.compile(r"[\s&]*(?:<\s*(?P<group>\w+)\s*>)?\s*(?P<words>[\w\s]*)")
_ARGS = re.compile(
    r"args\s*\[(?P<names>[^\]]*)\]\s*(?:\.\s*(?P<key>\w+)\s*(?:=\s*(?P<value>.*))?)?", re.DOTALL | re.IGNORECASE
)
_PLAIN = re.compile(r"[A-Za-z_]\w*\s*(?:=.*)?", re.DOTALL)
_LATER_ARGS = re.compile(r"(?<=[^\s,&>])\s+(?=args\s*\[)", re.IGNORECASE)

Problem = tuple[str, Span]


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause ``args[names].key=value``; ``key=value`` and ``key`` alone have no names."""

    names: tuple[str, ...]
    key: str
    value: str
    span: Span

    def covers(self, position: int, name: str) -> bool:
        """Tell whether the clause applies to the parameter at ``position``, called ``name``."""
        return any(_covers(wanted, position, name) for wanted in self.names)


@dataclass(frozen=True, slots=True)
class Hmpp:
    """A ``#pragma hmpp`` line; ``problems`` are mistakes in it that did not prevent reading it."""

    verb: str
    label: str
    group: str
    clauses: tuple[Clause, ...]
    span: Span
    problems: tuple[Problem, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return every name in the brackets of its clauses."""
        return tuple(n for clause in self.clauses for n in clause.names)


def _covers(wanted: str, position: int, name: str) -> bool:
    within = re.fullmatch(r"(\d+)\s*-\s*(\d+)", wanted)
    if within is not None:
        return int(within[1]) <= position <= int(within[2])
    if wanted.isdigit():
        return int(wanted) == position
    return wanted == "*" or wanted.rpartition("::")[2] == name


def parse(pragma: Pragma) -> Hmpp:
    """Return the parsed pragma.

    Raises ParseError if the verb is none of VERBS, and UnsupportedError if looptune does not support it.
    """
    body = pragma.body.stripped()
    head = _HEAD.match(body.text)
    assert head is not None, "the pattern matches the empty text"
    start = head.start("words")
    words = list(re.finditer(r"\w+", head["words"]))
    verbs = [k for k, word in enumerate(words) if word[0].lower() in VERBS]
    if not verbs:
        raise _unknown(body, head, [word[0].lower() for word in words])
    # a label may be a verb's word too ("hmpp codelet allocate"), and a mapped name as well ("mapbyname region")
    at = next((k for k in verbs if words[k][0].lower() == "mapbyname"), verbs[-1])
    verb, group, label = words[at][0].lower(), head["group"], words[0][0] if at else ""
    problems: list[Problem] = []
    if body.text.rstrip().endswith("&"):
        problems.append(("a line that ends in & is not continued", pragma.span))
    after = start + words[at].end()
    if verb == "mapbyname":
        clauses: tuple[Clause, ...] = (_names(body, after),)
    else:
        if at + 1 < len(words):
            problems.append(("a comma is missing before this", body.span(*_shifted(words[at + 1], start))))
        clauses = tuple(c for a, b in _parts(body, after, problems) for c in _clause(body, a, b, problems))
    return Hmpp(verb, label, "" if group is None else group, clauses, pragma.span, tuple(problems))


def _unknown(body: SourceText, head: re.Match[str], words: Sequence[str]) -> ParseError | UnsupportedError:
    place = body.span(*head.span("words"))
    outside = next((w for w in words if w in INSTEAD), None)
    if outside is not None:
        return UnsupportedError(f"hmpp {outside} is not accepted: write {INSTEAD[outside]} instead", place)
    return ParseError(f"unknown hmpp directive: expected one of {', '.join(VERBS)}", place)


def _shifted(match: re.Match[str], by: int) -> tuple[int, int]:
    return by + match.start(), by + match.end()


def _names(body: SourceText, start: int) -> Clause:
    """Return the names after ``mapbyname``, however they are separated."""
    found = tuple(re.findall(r"\w+", body.text[start:]))
    return Clause(found, "", "", body.span(start, len(body.text)))


def _parts(body: SourceText, start: int, problems: list[Problem]) -> list[tuple[int, int]]:
    """Return the stretches between top-level commas; an ``&`` that joins two lines separates like a comma."""
    parts: list[tuple[int, int]] = []
    depth, quoted = 0, False
    for k, ch in enumerate(body.text[start:], start):
        if ch == '"':
            quoted = not quoted
        elif not quoted:
            depth += (ch in "[{(") - (ch in "]})")
            if ch in ",&" and depth == 0:
                parts.append((start, k))
                start = k + 1
    parts.append((start, len(body.text)))
    split: list[tuple[int, int]] = []
    for a, b in parts:
        for later in _LATER_ARGS.finditer(body.text, a, b):
            problems.append(("a comma is missing before this", body.span(later.end(), b)))
            split.append((a, later.start()))
            a = later.end()
        split.append((a, b))
    return [(a, b) for a, b in split if body.text[a:b].strip()]


def _clause(body: SourceText, start: int, end: int, problems: list[Problem]) -> tuple[Clause, ...]:
    raw = body.text[start:end]
    start += len(raw) - len(raw.lstrip())
    # a continued line may name its group once more
    text = re.sub(r"^<\s*\w+\s*>", "", raw.replace("&", " ").strip()).strip()
    if not text:
        return ()
    span = body.span(start, start + len(raw.strip()))
    match = _ARGS.fullmatch(text)
    if match is not None:
        names = tuple(n.strip() for n in re.split(r"[;,]", match["names"]) if n.strip())
        key, value = match["key"], match["value"]
        return (Clause(names, "" if key is None else key.lower(), "" if value is None else value.strip(), span),)
    if _PLAIN.fullmatch(text) is None:
        problems.append(("this is not an hmpp clause and is ignored", span))
        return ()
    plain, _, value = text.partition("=")
    return (Clause((), plain.strip().lower(), value.strip(), span),)


def io_of(clauses: Sequence[Clause], position: int, name: str) -> str | None:
    """Return the direction that the clauses give a parameter; the last one that names it takes precedence."""
    found: str | None = None
    for clause in sorted(clauses, key=lambda c: "*" not in c.names):
        if clause.key == "io" and clause.covers(position, name):
            if clause.value.lower() not in ("in", "out", "inout"):
                raise ParseError(f"io must be in, out or inout, got {clause.value!r}", clause.span)
            found = clause.value.lower()
    return found


def size_of(clauses: Sequence[Clause], position: int, name: str) -> tuple[str, ...]:
    """Return the extents of ``args[A].size={n,m}``, as text."""
    for clause in clauses:
        if clause.key == "size" and clause.covers(position, name):
            return tuple(part.strip() for part in clause.value.strip("{} ").split(",") if part.strip())
    return ()
