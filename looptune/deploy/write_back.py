"""Write a transformed group back to the functions from which it came.

codelet(x, tmp, y) { S0 S1 | S2 }      ─▶      f(a, b) { S0 S1 }      g(b, c) { S2 }

Every statement names the original of which it is an instance, and so the function to which it belongs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from looptune.core.errors import UnsupportedError, UsageError
from looptune.core.source import Span
from looptune.deploy.text_edits import Annotations, Version, find_edits, is_unchanged
from looptune.ir.def_use import referenced_names
from looptune.ir.nodes import Assign, Codelet, If, Loop, Node, Stmt
from looptune.ir.rewrite import renaming, rewrite, walk

if TYPE_CHECKING:
    from looptune.deploy.text_replacement import Edit
    from looptune.frontend import FunctionPart, Unit

Warn = Callable[[Span, str], object]


def write_back(unit: Unit, codelet: Codelet, usual: Annotations, warn: Warn) -> tuple[Edit, ...]:
    """Return the edits of the file that give each function its scheduled loops.

    ``usual`` is how loops run without the directives that were given from outside. UnsupportedError where a loop holds
    statements of two functions, where their order has changed, and where a function that runs twice has become two;
    UsageError where a function stands in another file.
    """
    found: dict[str, tuple[Edit, ...]] = {}
    for part, before, after in _versions(unit, codelet):
        if part.bare:
            message = "a scop outside of every function cannot be transformed in its file: write a function around it"
            raise UnsupportedError(message, _first_place(unit.codelet))
        if part.write_back_error and not is_unchanged(before, after, usual):
            raise UnsupportedError(
                f"{part.function} cannot be written back: {part.write_back_error}; transform it alone with "
                f"--kernel {part.function}",
                unit.codelet.span,
            )
        refused = _not_written(part, len(unit.parts) > 1)
        if refused and not is_unchanged(before, after, usual):
            raise UnsupportedError(refused, before.body[0].span)
        defined = unit.prepared.defined if unit.prepared is not None else ()
        made = () if part.write_back_error else find_edits(part, unit.layout(part), before, after, usual, defined, warn)
        if made and part.path != unit.path:
            raise UsageError(f"{part.function} stands in {part.path}: transform it alone with --kernel {part.function}")
        if found.setdefault(part.function, made) != made:
            raise UnsupportedError(f"{part.function} runs twice and its two runs are transformed differently: give "
                                   "both the same directives", unit.codelet.span)  # fmt: skip
    return tuple(edit for made in found.values() for edit in made)


def _not_written(part: FunctionPart, several: bool) -> str:
    """Return what the codelet does not have as the text has it, "" if there is nothing."""
    if part.has_structs and several:
        return (
            "these loops use fields of structs, which are not written back to a group: write one array for each field"
        )
    if part.has_swaps:
        return "these loops swap pointers, which is not written back: write one loop for each array that is written"
    if part.has_choices:
        return "a condition chooses among arrays, which is not written back: write the statements in both branches"
    if part.nonnull:
        tested = ", ".join(part.nonnull)
        return f"these loops test {tested} for being null, which is not written back: test it before the loops"
    return ""


def _first_place(codelet: Codelet) -> Span:
    return next((s.span for s in codelet.body if s.span.line), codelet.span)


def _versions(unit: Unit, codelet: Codelet) -> Iterator[tuple[FunctionPart, Version, Version]]:
    """Yield each function with its statements and their scheduled version."""
    if len(unit.parts) == 1:
        yield unit.parts[0], _version(unit.codelet), _version(codelet)
        return
    for part, before, after in zip(unit.parts, _split(unit, unit.codelet), _split(unit, codelet), strict=True):
        yield part, _renamed(part, unit.codelet, before), _renamed(part, codelet, after)


def _version(codelet: Codelet) -> Version:
    return Version(_computing(codelet.body), {v.name: v for v in codelet.locals})


def _computing(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements without loops and conditions that contain no statement, which schedules omit."""

    def rule(n: Node) -> Node | tuple[Node, ...] | None:
        match n:
            case Loop(body=()) | If(then=(), other=()):
                return ()
        return None

    return rewrite(rule, stmts)


def _split(unit: Unit, codelet: Codelet) -> list[tuple[Stmt, ...]]:
    """Return the statements of each part."""
    split: list[list[Stmt]] = [[] for _ in unit.parts]
    last = 0
    for stmt in codelet.body:
        own = {n.name for n in walk(stmt) if isinstance(n, Assign)}
        owners = [k for k, part in enumerate(unit.parts) if own & part.statements]
        if len(owners) > 1 or (owners and owners[0] < last):
            functions = " and ".join(dict.fromkeys(unit.parts[k].function for k in sorted({*owners, last})))
            raise UnsupportedError(f"the schedule mixes the statements of {functions}: they cannot be written back to "
                                   "their functions; leave that directive out, or use run, emit or compile",
                                   stmt.span)  # fmt: skip
        last = owners[0] if owners else last
        split[last].append(stmt)
    return [tuple(stmts) for stmts in split]


def _renamed(part: FunctionPart, codelet: Codelet, stmts: tuple[Stmt, ...]) -> Version:
    """Return the statements under the function's own names."""
    used = referenced_names(stmts)
    rename = dict(_clear(part.names, used)) | dict(part.names)
    own = {rename.get(v.name, v.name): v for v in codelet.locals if v.name in used}
    locals_ = {name: replace(v, name=name) for name, v in own.items()}
    return Version(_computing(rewrite(renaming(rename), stmts)), locals_)


def _clear(back: Mapping[str, str], used: set[str]) -> Iterator[tuple[str, str]]:
    """Yield new names for those that a transform chose and the function uses otherwise."""
    taken = {*used, *back.values()}
    for name in sorted(used & set(back.values()) - set(back)):
        fresh = next(f"{name}_{k}" for k in range(2, len(taken) + 3) if f"{name}_{k}" not in taken)
        taken.add(fresh)
        yield name, fresh
