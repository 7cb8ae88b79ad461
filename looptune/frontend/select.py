"""Which function is the codelet, and which part of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from looptune.errors import ParseError, UnsupportedError, UsageError
from looptune.frontend import hmpp
from looptune.frontend import syntax as s
from looptune.frontend.preprocess import Preprocessed
from looptune.source import Span


@dataclass(frozen=True, slots=True)
class Chosen:
    """``directive`` is the ``hmpp codelet`` line, where the function has one."""

    function: s.Function
    directive: hmpp.Hmpp | None

    @property
    def label(self) -> str:
        return "" if self.directive is None else self.directive.label


@dataclass(frozen=True, slots=True)
class Region:
    """The statements between ``#pragma scop`` and ``#pragma endscop``: what is declared before them, what follows
    in the same block, the function without them, and the places of the two pragmas."""

    declared: tuple[s.Declare, ...]
    items: tuple[s.Item, ...]
    after: tuple[s.Item, ...]
    outside: s.Block
    begin: Span
    end: Span


def codelets(file: s.File) -> tuple[Chosen, ...]:
    """The functions with a ``#pragma hmpp … codelet``, in textual order."""
    found: list[Chosen] = []
    for function in file.functions:
        for mark in function.marks:
            directive = hmpp.parse(mark) if mark.family == "hmpp" else None
            if directive is not None and directive.verb == "codelet":
                found.append(Chosen(function, directive))
    return tuple(found)


def choose(file: s.File, kernel: str | None, path: str) -> Chosen:
    """The codelet: the one called ``kernel``, the only one marked, the only one with a scop, the only one with loops.

    Raises UsageError where there is none or more than one.
    """
    marked = codelets(file)
    if kernel is not None:
        return _called(file, marked, kernel, path)
    scops = [f for f in file.functions if any(_is_scop(n) for n in s.every(f.body))]
    loops = [f for f in file.functions if s.has_loop(f.body)]
    without_main = [f for f in loops if f.name != "main"]
    plain = scops if scops else without_main if without_main else loops
    candidates = marked if marked else tuple(Chosen(f, None) for f in plain)
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise UsageError(f"no loop in {path}")
    names = ", ".join(c.function.name for c in candidates)
    raise UsageError(f"{path} has {len(candidates)} codelets: choose one with --kernel: {names}")


def _called(file: s.File, marked: Sequence[Chosen], kernel: str, path: str) -> Chosen:
    for chosen in marked:
        if kernel in (chosen.function.name, chosen.label):
            return chosen
    for function in file.functions:
        if function.name == kernel:
            return Chosen(function, None)
    names = [c.label if c.label else c.function.name for c in marked]
    names += [f.name for f in file.functions if s.has_loop(f.body) and f.name not in {c.function.name for c in marked}]
    known = f"it has {', '.join(names)}" if names else "it has no function with loops"
    raise UsageError(f"no codelet {kernel} in {path}: {known}")


def needed(source: Preprocessed, kernel: str | None) -> Callable[[str, str], bool]:
    """Whether a function or declaration the parser cannot read has to be read, judged by its text."""
    scops = {k for k, p in enumerate(source.pragmas) if p.family == "scop"}
    hmpp_lines = [(k, p.body.text) for k, p in enumerate(source.pragmas) if p.family == "hmpp"]
    marks = [k for k, text in hmpp_lines if re.search(r"\bcodelet\s*(,|&|$)", text, re.IGNORECASE)]
    marked = {name for k in marks if (name := _function_after(source.text, k)) is not None}

    def judge(name: str, text: str) -> bool:
        if not name:
            return "(" not in text and re.match(r"extern\b|typedef\b", text) is None
        if kernel is not None and re.search(rf"\b{re.escape(kernel)}\s*\(", source.text):
            return name == kernel
        if marked or scops:
            return name in marked or any(int(k) in scops for k in re.findall(r"#pragma (\d+)", text))
        return name != "main" and re.search(r"\b(for|while)\b", text) is not None

    return judge


def _function_after(text: str, pragma: int) -> str | None:
    match = re.search(rf"^#pragma {pragma}\s*\n(?:#pragma \d+\s*|\s)*[^#;{{(]*?(\w+)\s*\(", text, re.MULTILINE)
    return None if match is None else match[1]


def _is_scop(node: Any) -> bool:
    return isinstance(node, s.Mark) and node.pragma.family == "scop"


def region(body: s.Block) -> Region | None:
    """The scop of a function; None where it has none. Raises where scops are unpaired or more than one."""
    marks = [n for n in s.every(body) if isinstance(n, s.Mark) and n.pragma.family in ("scop", "endscop")]
    begins = [m for m in marks if m.pragma.family == "scop"]
    if not begins:
        return None
    if len(begins) > 1:
        raise UnsupportedError("a second #pragma scop in one function: write one function for each", begins[1].span)
    found = _find(body, ())
    if found is None:
        raise ParseError("#pragma scop has no #pragma endscop in its block", begins[0].span)
    block, declared, start, stop = found
    items = block.items
    outside = _without(body, block, replace(block, items=(*items[:start], *items[stop + 1 :])))
    return Region(declared, items[start + 1 : stop], items[stop + 1 :], outside, items[start].span, items[stop].span)


def _find(block: s.Block, around: tuple[s.Declare, ...]) -> tuple[s.Block, tuple[s.Declare, ...], int, int] | None:
    seen = list(around)
    for k, item in enumerate(block.items):
        inner: tuple[s.Block, ...] = ()
        match item:
            case s.Declare():
                seen.append(item)
            case s.Mark(pragma) if pragma.family == "scop":
                ends = [j for j, i in enumerate(block.items) if isinstance(i, s.Mark) and i.pragma.family == "endscop"]
                return (block, tuple(seen), k, ends[0]) if ends and ends[0] > k else None
            case s.Block():
                inner = (item,)
            case s.If(_, then, other):
                inner = (then, other)
            case s.For(init, _, _, body):
                seen += [i for i in init if isinstance(i, s.Declare)]
                inner = (body,)
            case s.While(_, body):
                inner = (body,)
        for part in inner:
            found = _find(part, tuple(seen))
            if found is not None:
                return found
    return None


def _without(tree: Any, old: s.Block, new: s.Block) -> Any:
    return new if tree is old else s.mapped(lambda part: _without(part, old, new), tree)
