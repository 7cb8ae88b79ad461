"""``#pragma hmpp``: codelets, call sites and what their clauses say of the arguments.

#pragma hmpp [<group>] [label] verb {, clause}
clause = args[a;b].io=inout | args[*].size={n,m} | target=CUDA | asynchronous | cond="…" | …
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from looptune.errors import ParseError
from looptune.frontend.pragma import Located, Pragma
from looptune.source import Span

VERBS = (
    "codelet", "callsite", "synchronize", "acquire", "allocate", "release", "advancedload", "delegatedstore",
    "group", "map", "mapbyname", "region",
)  # fmt: skip

_HEAD = re.compile(r"\s*(?:<\s*(?P<group>\w+)\s*>)?\s*(?P<words>[\w\s]*)")
_ARGS = re.compile(r"args\s*\[(?P<names>[^\]]*)\]\s*(?:\.\s*(?P<key>\w+)\s*=\s*(?P<value>.*))?", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z_]\w*\s*(?:=.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Clause:
    """``args[names].key=value``; ``key=value`` and ``key`` have no names."""

    names: tuple[str, ...]
    key: str
    value: str
    span: Span

    def covers(self, position: int, name: str) -> bool:
        """The clause speaks of the parameter at ``position``, called ``name``."""
        return any(_covers(wanted, position, name) for wanted in self.names)


@dataclass(frozen=True, slots=True)
class Hmpp:
    verb: str
    label: str
    group: str
    clauses: tuple[Clause, ...]
    span: Span


def _covers(wanted: str, position: int, name: str) -> bool:
    within = re.fullmatch(r"(\d+)\s*-\s*(\d+)", wanted)
    if within is not None:
        return int(within[1]) <= position <= int(within[2])
    if wanted.isdigit():
        return int(wanted) == position
    return wanted == "*" or wanted.rpartition("::")[2] == name


def parse(pragma: Pragma) -> Hmpp:
    """Raises ParseError where the verb is none of VERBS or a clause cannot be read."""
    body = pragma.body.stripped()
    head = _HEAD.match(body.text)
    assert head is not None, "the pattern matches the empty text"
    words = head["words"].split()
    # a label may be a verb's word too ("hmpp codelet allocate"): the verb comes last
    at = next((k for k in reversed(range(len(words))) if words[k].lower() in VERBS), None)
    if at is None:
        known = ", ".join(VERBS)
        raise ParseError(f"an hmpp directive is one of {known}", body.span(*head.span("words")))
    found = tuple(_clause(body, start, end) for start, end in _parts(body, head.end()))
    return Hmpp(words[at].lower(), words[0] if at else "", head["group"] or "", found, pragma.span)


def _parts(body: Located, start: int) -> list[tuple[int, int]]:
    """The stretches between top-level commas; an ``&`` that joins two lines separates like a comma."""
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
    return [(a, b) for a, b in parts if body.text[a:b].strip()]


def _clause(body: Located, start: int, end: int) -> Clause:
    raw = body.text[start:end]
    start += len(raw) - len(raw.lstrip())
    text = raw.replace("&", " ").strip()
    span = body.span(start, start + len(raw.strip()))
    match = _ARGS.fullmatch(text)
    if match is not None:
        names = tuple(n.strip() for n in re.split(r"[;,]", match["names"]) if n.strip())
        return Clause(names, (match["key"] or "").lower(), (match["value"] or "").strip(), span)
    if _PLAIN.fullmatch(text) is None:
        raise ParseError("this is no hmpp clause", span)
    key, _, value = text.partition("=")
    return Clause((), key.strip().lower(), value.strip(), span)


def io_of(clauses: Sequence[Clause], position: int, name: str) -> str | None:
    """What the clauses say of a parameter's direction; the last one that speaks of it by name counts most."""
    found: str | None = None
    for clause in sorted(clauses, key=lambda c: "*" not in c.names):
        if clause.key == "io" and clause.covers(position, name):
            if clause.value.lower() not in ("in", "out", "inout"):
                raise ParseError(f"io is in, out or inout, not {clause.value!r}", clause.span)
            found = clause.value.lower()
    return found


def size_of(clauses: Sequence[Clause], position: int, name: str) -> tuple[str, ...]:
    """The extents of ``args[A].size={n,m}``, as text."""
    for clause in clauses:
        if clause.key == "size" and clause.covers(position, name):
            return tuple(part.strip() for part in clause.value.strip("{} ").split(",") if part.strip())
    return ()
