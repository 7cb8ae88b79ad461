"""Select the function that is the codelet, and the part of it that is compiled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from looptune.core.errors import ParseError, UnsupportedError, UsageError
from looptune.core.source import NOWHERE, Span
from looptune.frontend import c_ast, hmpp, nests
from looptune.frontend.scop_ends import is_braceless

if TYPE_CHECKING:
    from looptune.frontend.preprocess import Preprocessed

_REGION = re.compile(r"[\w\s<>]*\bregion\s*(?:,|&|$)", re.IGNORECASE)

Ends = Callable[[tuple[c_ast.Item, ...], int], "int | None"]
"""Where what begins at an item ends; None where nothing begins there, -1 where it has no end."""


@dataclass(frozen=True, slots=True)
class CodeletFunction:
    """A function that is a codelet, or that contains one.

    ``directive`` is its ``hmpp codelet`` line, if it has one; ``nest`` the place of the loop that is the codelet, None
    if that is the function or a part that its pragmas mark; ``mark`` the pragma of that part, where the function has
    several. ``analysed_only``: it is not compiled, so that calls of the C library with effects, and jumps out of it,
    only have to be described.
    """

    function: c_ast.Function
    directive: hmpp.Hmpp | None
    nest: Span | None = None
    analysed_only: bool = False
    addresses: bool = False
    mark: Span | None = None

    @property
    def name(self) -> str:
        """Return the function's name, with the line of the part that was chosen, if one was."""
        place = self.nest or self.mark
        return self.function.name if place is None else f"{self.function.name}_{place.line}"

    @property
    def label(self) -> str:
        return "" if self.directive is None else self.directive.label

    @property
    def group(self) -> str:
        return "" if self.directive is None else self.directive.group

    @property
    def title(self) -> str:
        """Return the name that a pragma gives it: ``<group> label``."""
        return f"<{self.group}> {self.label}" if self.group else self.label

    @property
    def address(self) -> str:
        """Return the name for --kernel: ``group.label``, ``function:line``, or the function's name."""
        place = self.nest or self.mark
        if place is not None:
            return f"{self.function.name}:{place.line}"
        if not self.label:
            return self.function.name
        return f"{self.group}.{self.label}" if self.group else self.label


@dataclass(frozen=True, slots=True)
class Region:
    """The statements of a function that are a codelet, as its text marks or the user chooses them.

    These are the statements between ``#pragma scop`` and ``#pragma endscop``, the block after an ``hmpp region``, or a
    loop with the directives before it. A region also has the declarations before it, the statements after it in the
    same block, the function without it, and the places of the two pragmas (for a block, the place of its opening brace
    twice; for a loop, the places of its first directive, if any, and of the loop).
    """

    declared: tuple[c_ast.Declare, ...]
    items: tuple[c_ast.Item, ...]
    after: tuple[c_ast.Item, ...]
    outside: c_ast.Block
    begin: Span
    end: Span
    kind: Literal["scop", "block", "nest"] = "scop"


BRACELESS = "before a body without braces must mark one loop: write braces around the scop"


def codelets(file: c_ast.File) -> tuple[CodeletFunction, ...]:
    """Return the functions with a ``#pragma hmpp … codelet``, in textual order."""
    found: list[CodeletFunction] = []
    for function in file.functions:
        for mark in function.pragmas:
            directive = hmpp.parse(mark) if mark.family == "hmpp" else None
            if directive is not None and directive.verb == "codelet":
                found.append(CodeletFunction(function, directive))
    return tuple(found)


def marked_functions(file: c_ast.File) -> tuple[CodeletFunction, ...]:
    """Return the functions with an ``hmpp codelet`` line, and the others that contain a scop or an hmpp region.

    A function that contains several is returned once for each.
    """
    marked = codelets(file)
    names = {c.function.name for c in marked}
    inside = ((f, _marked_parts(f.body)) for f in file.functions if f.name not in names)
    return marked + tuple(
        CodeletFunction(f, None, mark=span if len(spans) > 1 else None) for f, spans in inside for span in spans
    )


def _marked_parts(body: c_ast.Block) -> list[Span]:
    """Return the places of the scops and the hmpp regions in a function's body."""
    return [n.span for n in c_ast.walk(body) if _is_scop(n) or _is_region(n)]


def external_codelets(source: Preprocessed, file: c_ast.File) -> tuple[tuple[str, Span], ...]:
    """Return the functions that are marked as codelets but not defined in the file, each with the span of the mark."""
    defined = {f.name for f in file.functions}
    found = ((_function_after(source.text, k), source.pragmas[k].span) for k in _marks(source))
    return tuple((name, span) for name, span in found if name is not None and name not in defined)


def check_scops(source: Preprocessed, file: c_ast.File) -> None:
    """Raise UnsupportedError if a scop is outside of every function."""
    inside = {n.span for f in file.functions for n in c_ast.walk(f.body) if isinstance(n, c_ast.PragmaItem)}
    bodies = [(f.open.file, f.open.line, f.close.line) for f in file.functions]
    for pragma in source.pragmas:
        at = pragma.span
        within = any(file == at.file and first <= at.line <= last for file, first, last in bodies)
        if pragma.family == "scop" and at not in inside and not within:
            message = "this scop is not inside a function: write one around it, with the arrays and sizes it uses"
            raise UnsupportedError(message, at)


def _marks(source: Preprocessed) -> list[int]:
    """Return the numbers of the ``#pragma hmpp … codelet`` lines."""
    lines = ((k, p.body.text) for k, p in enumerate(source.pragmas) if p.family == "hmpp")
    return [k for k, text in lines if re.search(r"\bcodelet\s*(,|&|$)", text, re.IGNORECASE)]


def select_codelets(file: c_ast.File, kernel: str | None, path: str) -> tuple[CodeletFunction, ...]:
    """Return the codelets called ``kernel`` (one, or all of a group).

    Without a name, these are all that are marked, or else the only function with a scop, or else the only one with
    loops.

    Raises UsageError where there is none, or where functions without a mark leave the choice open.
    """
    marked = codelets(file)
    if kernel is not None:
        return _called(file, marked, kernel, path)
    if marked:
        return marked
    scops = [f for f in file.functions if any(_is_scop(n) for n in c_ast.walk(f.body))]
    if not scops:
        scops = [f for f in file.functions if any(_is_region(n) for n in c_ast.walk(f.body))]
    loops = [f for f in file.functions if c_ast.has_loop(f.body)]
    without_main = [f for f in loops if f.name != "main"]
    plain = scops if scops else without_main if without_main else loops
    if not plain and file.skipped:
        raise file.skipped[0]
    if not plain:
        raise UsageError(f"no loop in {path}")
    if len(plain) > 1:
        plain = list(_callers(plain))
    if len(plain) > 1:
        names = ", ".join(f.name for f in plain)
        raise UsageError(f"{path} has {len(plain)} codelets: choose one with --kernel: {names}")
    return (CodeletFunction(plain[0], None),)


def _callers(functions: Sequence[c_ast.Function]) -> Sequence[c_ast.Function]:
    """Return the one function that calls all others, directly or not, as the others are inlined; else all functions."""
    calls = {f.name: {n.name for n in c_ast.walk(f.body) if isinstance(n, c_ast.Call)} for f in functions}
    roots = [f for f in functions if not any(f.name in called for name, called in calls.items() if name != f.name)]
    if len(roots) != 1:
        return functions
    reached, new = set[str](), {roots[0].name}
    while new:
        reached |= new
        new = {n for name in new for n in calls[name] if n in calls} - reached
    return roots if len(reached) == len(functions) else functions


def _called(file: c_ast.File, marked: Sequence[CodeletFunction], kernel: str, path: str) -> tuple[CodeletFunction, ...]:
    named = [c for c in marked if kernel in (c.address, c.function.name)]
    labelled = [c for c in marked if kernel == c.label]
    group = tuple(c for c in marked if kernel == c.group)
    if named:
        return (named[0],)
    if group and not labelled:
        return group
    if len({c.address for c in labelled}) > 1:
        raise UsageError(f"{kernel} is the label of several codelets in {path}: choose one of "
                         f"{', '.join(c.address for c in labelled)}")  # fmt: skip
    if labelled:
        return (labelled[0],)
    for function in file.functions:
        if function.name == kernel:
            return (CodeletFunction(function, None),)
    if (nest := _nest_at(file, kernel)) is not None:
        return (nest,)
    names = list(dict.fromkeys([*(c.group for c in marked if c.group), *(c.address for c in marked)]))
    names += [
        f.name for f in file.functions if c_ast.has_loop(f.body) and f.name not in {c.function.name for c in marked}
    ]
    known = f"it has {', '.join(names)}" if names else "it has no function with loops"
    raise UsageError(f"no codelet {kernel} in {path}: {known}")


def _nest_at(file: c_ast.File, kernel: str) -> CodeletFunction | None:
    """Return the loop, or one of several scops, that ``FUNCTION:LINE`` addresses.

    None if the file has no such function. Raises UsageError if the function has no loop in that line.
    """
    name, _, line = kernel.rpartition(":")
    function = next((f for f in file.functions if f.name == name), None)
    if function is None or not line.isdecimal():
        return None
    parts = _marked_parts(function.body)
    mark = next((span for span in parts if len(parts) > 1 and span.line == int(line)), None)
    if mark is not None:
        return CodeletFunction(function, None, mark=mark)
    loops = list(nests.all_loops(function.body))
    found = [loop for loop in loops if loop.span.line == int(line)]
    if not found:
        places = ", ".join(str(n) for n in dict.fromkeys(loop.span.line for loop in loops))
        has = f"its loops begin in the lines {places}" if places else "it has no loop"
        raise UsageError(f"no loop begins in line {line} of {name}: {has}")
    return CodeletFunction(function, None, found[0].span)


def must_be_parsed(source: Preprocessed, kernel: str | None) -> Callable[[str, str], bool]:
    """Return a function that tells whether a declaration that the parser cannot read is needed.

    It takes the name and the text of the declaration. Declarations that are not needed are skipped.
    """
    scops = {k for k, p in enumerate(source.pragmas) if p.family == "scop" or _REGION.match(p.body.text)}
    marked = {name for k in _marks(source) if (name := _function_after(source.text, k)) is not None}

    def judge(name: str, text: str) -> bool:
        if not name:
            return "(" not in text and re.match(r"extern\b|typedef\b", text) is None
        chosen = "" if kernel is None else kernel.partition(":")[0]
        if chosen and re.search(rf"\b{re.escape(chosen)}\s*\(", source.text):
            return name == chosen
        if marked or scops:
            return name in marked or any(int(k) in scops for k in re.findall(r"#pragma (\d+)", text))
        return name != "main" and re.search(r"\b(for|while)\b", text) is not None

    return judge


def _function_after(text: str, pragma: int) -> str | None:
    match = re.search(rf"^#pragma {pragma}\s*\n(?:#pragma \d+\s*|\s)*[^#;{{(]*?(\w+)\s*\(", text, re.MULTILINE)
    return None if match is None else match[1]


def _is_scop(node: Any) -> bool:
    return isinstance(node, c_ast.PragmaItem) and node.pragma.family == "scop"


def _is_region(node: Any) -> bool:
    return (
        isinstance(node, c_ast.PragmaItem)
        and node.pragma.family == "hmpp"
        and _REGION.match(node.pragma.body.text) is not None
    )


def region(body: c_ast.Block, name: str = "", mark: Span | None = None) -> Region | None:
    """Return the scop of a function, or its hmpp region, or None; ``mark`` is its pragma, where there are several.

    Raises ParseError if they are unpaired, UnsupportedError if they are several and none is chosen; ``name`` is the
    function's.
    """
    kinds: tuple[tuple[Callable[[Any], bool], Ends, str, str], ...] = (
        (_is_scop, _scop_at, "#pragma scop", "has no #pragma endscop in its block"),
        (_is_region, _region_at, "hmpp region", "stands before no block"),
    )
    for begins, ends, what, unpaired in kinds:
        places = [n.span for n in c_ast.walk(body) if begins(n) and mark in (None, n.span)]
        if len(places) > 1:
            choices = ", ".join(f"{name}:{span.line}" for span in places)
            message = f"{name} has {len(places)} parts marked by {what}: choose one with --kernel: {choices}"
            raise UnsupportedError(message, places[1])

        def chosen(items: tuple[c_ast.Item, ...], k: int, ends: Ends = ends) -> int | None:
            return ends(items, k) if mark in (None, items[k].span) else None

        found = _find(body, (), chosen) if places else None
        if places and found is None:
            alone = is_braceless(body, places[0])
            raise ParseError(f"{what} {BRACELESS if alone else unpaired}", places[0])
        if found is not None:
            return _region(body, *found)
    return None


def _region(
    body: c_ast.Block, block: c_ast.Block, declared: tuple[c_ast.Declare, ...], start: int, stop: int
) -> Region:
    items = block.items
    outside = _without(body, block, replace(block, items=(*items[:start], *items[stop + 1 :])))
    match items[stop]:
        case c_ast.Block(inner) as braces:
            return Region(declared, inner, items[stop + 1 :], outside, braces.span, braces.span, "block")
        case c_ast.For() | c_ast.While() as loop:
            own = items[start : stop + 1]
            return Region(declared, own, items[stop + 1 :], outside, own[0].span, loop.span, "nest")
        case last:
            own = items[start + 1 : stop]
            if block.span is NOWHERE:
                _check_loop(own, items[start].span)
                return Region(declared, own, items[stop + 1 :], outside, own[0].span, own[-1].span, "nest")
            return Region(declared, own, items[stop + 1 :], outside, items[start].span, last.span)


def _check_loop(items: tuple[c_ast.Item, ...], begin: Span) -> None:
    """Raise ParseError where a scop that is a body without braces is no loop, beside which nothing can be written."""
    if not items or not isinstance(items[-1], c_ast.For | c_ast.While):
        raise ParseError(f"#pragma scop {BRACELESS}", begin)


def nest_region(body: c_ast.Block, loop: Span) -> Region:
    """Return the loop at a place, with the directives before it, as a part of the function."""

    def ends(items: tuple[c_ast.Item, ...], k: int) -> int | None:
        end = nests.nest_end(items, k)
        return end if end is not None and items[end].span == loop else None

    found = _find(body, (), ends)
    assert found is not None, "a loop of the function is a statement of one of its blocks"
    return _region(body, *found)


def _scop_at(items: tuple[c_ast.Item, ...], k: int) -> int | None:
    if not _is_scop(items[k]):
        return None
    pragmas = ((j, i.pragma.family) for j, i in enumerate(items) if j > k and isinstance(i, c_ast.PragmaItem))
    end = next(((j, family) for j, family in pragmas if family in ("scop", "endscop")), None)
    return end[0] if end is not None and end[1] == "endscop" else -1


def _region_at(items: tuple[c_ast.Item, ...], k: int) -> int | None:
    """Return the block that follows the pragma, other pragmas apart."""
    if not _is_region(items[k]):
        return None
    follows = next((j for j in range(k + 1, len(items)) if not isinstance(items[j], c_ast.PragmaItem)), None)
    return follows if follows is not None and isinstance(items[follows], c_ast.Block) else -1


def _find(
    block: c_ast.Block, around: tuple[c_ast.Declare, ...], ends: Ends
) -> tuple[c_ast.Block, tuple[c_ast.Declare, ...], int, int] | None:
    seen = list(around)
    for k, item in enumerate(block.items):
        stop = ends(block.items, k)
        if stop is not None:
            return None if stop < 0 else (block, tuple(seen), k, stop)
        match item:
            case c_ast.Declare():
                seen.append(item)
        own = [i for i in item.init if isinstance(i, c_ast.Declare)] if isinstance(item, c_ast.For) else []
        for part in _blocks(item):
            found = _find(part, (*seen, *own), ends)
            if found is not None:
                return found
    return None


def _blocks(item: Any) -> Iterator[c_ast.Block]:
    """Yield the outermost blocks of a statement."""
    if isinstance(item, c_ast.Block):
        yield item
        return
    for child in c_ast.children(item):
        yield from _blocks(child)


def _without(tree: Any, old: c_ast.Block, new: c_ast.Block) -> Any:
    return new if tree is old else c_ast.map_children(lambda part: _without(part, old, new), tree)
