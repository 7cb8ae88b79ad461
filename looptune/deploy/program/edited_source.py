"""The user's source file with calls of generated codelets: everything else, and every line number, stays as it is.

    void gemm(…) {           void gemm(…) { { const int looptune_todo = looptune_gemm(ni, …); if (looptune_todo) {
        for (i = 0; …)           for (i = 0; …)
    }                        } if (looptune_todo) looptune_gemm_after(looptune_todo, ni, …); } }

A call that returns 0 has run the codelet; after any other the loops of the file run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from looptune.core.errors import UnsupportedError
from looptune.core.escape import quote
from looptune.deploy.program.arguments import RESULT
from looptune.deploy.text_replacement import Edit, apply_edits
from looptune.frontend import Unit
from looptune.frontend.codelet_calls import CodeletCalls, CodeletCallText
from looptune.frontend.signature import Head
from looptune.frontend.source_text import normalise_line_ends
from looptune.ir.c_printer import C_TYPES
from looptune.ir.nodes import Array

_TODO, _EXPECTED = "looptune_todo", "looptune_expected"
_NOT_CALLED = -1
"""What stands for the status of a codelet that was not called."""
NO_CALLS = CodeletCalls()
_LINE_DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)(?:[ \t]+("(?:[^"\\\n]|\\.)*"))?[^\n]*', re.MULTILINE)
"""A directive that gives the next line a number, and maybe the file a name, as generators of parsers write it."""


@dataclass(frozen=True, slots=True)
class ReplacedCodelet:
    """A codelet of the file: ``name`` is the generated function, ``arguments`` are those of its parameters."""

    unit: Unit
    name: str
    arguments: Mapping[str, str]


def edited_source(
    path: str,
    raw: str,
    replaced: Sequence[ReplacedCodelet],
    header: str,
    calls: CodeletCalls = NO_CALLS,
    includes: Sequence[Edit] = (),
) -> str:
    """Return the text of the file at ``path`` with calls of the generated codelets, which ``header`` declares.

    ``raw`` is the exact text, line ends included; ``calls`` are those of the codelets in it, and the transfers that its
    lines order; ``includes`` are the edits that include copies of headers with codelets.
    """
    text = normalise_line_ends(raw.removeprefix("\ufeff"))
    edits = [edit for one in replaced if Path(one.unit.path) == Path(path) for edit in codelet_edits(path, text, one)]
    edits += includes
    edits += _transfer_edits(text, path, {one.unit.parts[0].function: one for one in replaced}, calls)
    return apply_edits(raw, edits, f'#include "{header}"\n#line 1 {quote(path)}\n')


def _transfer_edits(
    text: str, path: str, replaced: Mapping[str, ReplacedCodelet], calls: CodeletCalls
) -> Iterator[Edit]:
    for call in calls.calls:
        one = replaced.get(call.function)
        if one is not None and _outside(one, call) is not None and (call.present or call.deferred or call.asynchronous):
            present, kept = (_bits(one, names) for names in (call.present, call.deferred))
            before = f"({one.name}_next({present}, {kept}, {int(call.asynchronous)}), "
            yield Edit(call.start, call.start, before)
            yield Edit(call.end, call.end, ")")
    for transfer in calls.transfers:
        if transfer.call is None:
            yield Edit(transfer.at, transfer.at, f"looptune_release(0);{_line(text, path, transfer.at)}")
            continue
        one = replaced.get(transfer.call.function)
        passed = None if one is None else _outside(one, transfer.call)
        if one is None or passed is None:
            continue
        verb = {"advancedload": "load", "delegatedstore": "store"}.get(transfer.verb, transfer.verb)
        given = "" if verb == "synchronize" else ", ".join([_bits(one, transfer.names), *passed])
        yield Edit(transfer.at, transfer.at, f"{one.name}_{verb}({given});{_line(text, path, transfer.at)}")
    for held in calls.resident:
        yield Edit(held.start, held.start, "{ looptune_hold(); ")
        yield Edit(held.end, held.end, " looptune_give_back(); }")


def _outside(one: ReplacedCodelet, call: CodeletCallText) -> list[str] | None:
    """Return the arguments of a codelet as its caller writes them, None if it has no expression for one of them.

    They are those of the call, and variables at file scope.
    """
    found: list[str] = []
    for p in one.unit.codelet.params:
        text = one.arguments[p.name]
        if p.name in call.parameters and text == p.name and len(call.arguments) == len(call.parameters):
            found.append(call.arguments[call.parameters.index(p.name)])
        elif p.name not in call.parameters and text.lstrip("&") == p.name and p.name not in call.local:
            found.append(text)
        else:
            return None
    return found


def _bits(one: ReplacedCodelet, names: frozenset[str]) -> str:
    """Return a number with a bit for each of the arrays that is named, in their order."""
    arrays = [p.name for p in one.unit.codelet.params if isinstance(p, Array)]
    return f"{sum(1 << k for k, name in enumerate(arrays) if name in names)}u"


def codelet_edits(path: str, text: str, one: ReplacedCodelet) -> tuple[Edit, Edit]:
    """Return the edits that put a call in front of the loops of a codelet.

    Raises UnsupportedError for a function that returns a value in a way that a call cannot.
    """
    (part,) = one.unit.parts
    start, end = part.body
    passed = _passed(one, RESULT)
    if not part.region and (text[start], text[end - 1]) != ("{", "}"):
        raise UnsupportedError(f"the braces of {part.function} come from a macro: write them in the file",
                               one.unit.codelet.span)  # fmt: skip
    if part.result:
        return _edits_of_result(text, one)
    todo = _new_name(_TODO, text)
    before = f"{{ const int {todo} = {_call(one, passed)}; if ({todo}) {{ "
    after = f"}} if ({todo}) {_if_ran(one, todo)}{one.name}_after({', '.join(filter(None, (todo, passed)))}); }}"
    if not part.region:
        # Between the braces of the function, on their own lines.
        return Edit(start + 1, start + 1, f" {before}"), Edit(end - 1, end - 1, f" {after} ")
    return (
        Edit(start, start, f"{before}{_line(text, path, start)}"),
        Edit(end, end, f" {after}{_line(text, path, end)}"),
    )


def _new_name(name: str, text: str) -> str:
    """Return a name that the text of the file does not have, for variables around its statements."""
    while name in text:
        name += "_"
    return name


def _call(one: ReplacedCodelet, passed: str) -> str:
    """Return the call of the codelet; where a pointer is null that it assumes not to be, it is not called."""
    nonnull = one.unit.parts[0].nonnull
    return f"({' && '.join(nonnull)}) ? {one.name}({passed}) : {_NOT_CALLED}" if nonnull else f"{one.name}({passed})"


def _if_ran(one: ReplacedCodelet, todo: str) -> str:
    """Return the condition for a statement that follows the loops of the file only if the codelet was called."""
    return f"if ({todo} != {_NOT_CALLED}) " if one.unit.parts[0].nonnull else ""


def _passed(one: ReplacedCodelet, result: str) -> str:
    arguments = (one.arguments[p.name] for p in one.unit.codelet.params)
    return ", ".join(f"&{result}" if a == f"&{RESULT}" else a for a in arguments)


def _edits_of_result(text: str, one: ReplacedCodelet) -> tuple[Edit, Edit]:
    """Give a function that returns a value another name, and add one that calls the codelet or that function.

    Raises UnsupportedError if it cannot be called so.
    """
    unit = one.unit
    (part,) = unit.parts
    start, end = part.body
    array = next(p for p in unit.codelet.params if p.name == part.result)
    name = re.compile(rf"\b{part.function}\b(?=\s*\()")
    found = list(name.finditer(text, 0, start))
    params = _parameters(text[found[-1].end() : start]) if found else None
    if params is None or not isinstance(unit.head, Head) or "struct" in unit.head.text:
        raise UnsupportedError(f"{part.function} returns a value in a way that a call of a codelet cannot: "
                               "pass a pointer to it", unit.codelet.span)  # fmt: skip
    storage = re.findall(r"\b(?:static|inline|__inline|__inline__)\b", _declared_before(text, found[-1].start()))
    if storage and "static" not in storage:
        raise UnsupportedError(f"{part.function} is inline and returns a value: make it static", unit.codelet.span)
    own, kind = f"{one.name}_loops", C_TYPES[array.dtype]
    again = f"{own}({', '.join(unit.head.names)})"
    result, todo, expected = (_new_name(n, text) for n in (RESULT, _TODO, _EXPECTED))
    body = (
        f"{kind} {result} = 0; const int {todo} = {_call(one, _passed(one, result))}; "
        f"if (!{todo}) return {result}; {{ {kind} {expected} = {again}; "
        f"{_if_ran(one, todo)}{one.name}_after({todo}, {_passed(one, expected)}); return {expected}; }}"
    )
    # The type as the file writes it: long and long long are one type of the IR.
    returned = f"__typeof__({own}({', '.join('0' for _ in unit.head.names)}))"
    return (
        Edit(found[-1].start(), found[-1].end(), f"{own}{params}; {returned} {own}"),
        Edit(end, end, f" {' '.join([*storage, returned])} {part.function}{params} {{ {body} }}"),
    )


def _parameters(text: str) -> str | None:
    """Return the parameters, in parentheses and on one line, that stand before the body of a function.

    None if something else stands there: the parameters of another declaration, declarations of K&R, or lines of the
    preprocessor.
    """
    plain = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text.replace("\\\n", " "), flags=re.DOTALL).strip()
    depth, ends = 0, []
    for k, ch in enumerate(plain):
        depth += (ch == "(") - (ch == ")")
        if depth == 0:
            ends.append(k)
    whole = ends[:1] == [len(plain) - 1] and "#" not in plain
    return " ".join(plain.split()) if whole else None


def _declared_before(text: str, at: int) -> str:
    """Return what stands before the name of a function in its declaration, which may begin on an earlier line."""
    plain = re.sub(r"/\*.*?\*/|//[^\n]*|^[ \t]*#(?:\\\n|[^\n])*", " ", text[:at], flags=re.DOTALL | re.MULTILINE)
    return plain[max(plain.rfind(mark) for mark in ";}") + 1 :]


def _line(text: str, path: str, at: int) -> str:
    """Return what keeps the line numbers where the text at a place begins a line, and may be a preprocessor's line."""
    if at == 0 or text[at - 1] != "\n":
        return " "
    number, name = text.count("\n", 0, at) + 1, quote(path)
    for said in _LINE_DIRECTIVE.finditer(text, 0, at):
        number = int(said[1]) + text.count("\n", said.end(), at) - 1
        name = said[2] or name
    return f"\n#line {number} {name}\n"
