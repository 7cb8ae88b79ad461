"""The calls of a program's codelets, and their order.

#pragma hmpp <g> first callsite
f(n, A, tmp);                      a run of f:  n and A are the caller's, f and g share tmp
#pragma hmpp <g> second callsite
g(n, tmp, B);
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from looptune.core.errors import ParseError, UnsupportedError
from looptune.core.source import caret
from looptune.frontend import c_ast, hmpp
from looptune.frontend.codelet_selection import CodeletFunction
from looptune.frontend.name_resolution import resolve


@dataclass(frozen=True, slots=True)
class Caller:
    """A function and its body with one name per variable."""

    function: c_ast.Function
    body: c_ast.Block

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.function.params)


@dataclass(frozen=True, slots=True)
class CodeletCall:
    """One run of a codelet: by ``call`` in ``caller``, or without one."""

    callee: CodeletFunction
    caller: Caller | None = None
    call: c_ast.Call | None = None


@dataclass(frozen=True, slots=True)
class CodeletEvent:
    """A call of a codelet, in textual order; ``site`` is the ``hmpp callsite`` line before it, if there is one."""

    at: int
    caller: Caller
    call: c_ast.Call
    site: hmpp.Hmpp | None
    in_loop: c_ast.For | c_ast.While | None


def callers(file: c_ast.File, members: Sequence[CodeletFunction]) -> tuple[Caller, ...]:
    """Return every function that is no codelet."""
    own = {m.function.name for m in members}
    return tuple(Caller(f, resolve(f.body, {})) for f in file.functions if f.name not in own)


def call_order(
    around: Sequence[Caller], members: Sequence[CodeletFunction], warn: list[str]
) -> tuple[CodeletCall, ...]:
    """Return the codelets in the order in which they run.

    The calls marked as call sites count; a codelet without one runs at its first call. Where nothing is called, the
    codelets run in textual order.
    """
    by_name = {m.function.name: m for m in members}
    events = call_events(around, by_name, warn)
    marked = [e for e in events if e.site is not None]
    taken = list(marked)
    for name, member in by_name.items():
        first = next((e for e in events if e.call.name == name), None)
        if first is not None and not any(e.call.name == name for e in marked):
            taken.append(first)
            if marked:
                warn.append(caret(first.call.span, f"no `#pragma hmpp {member.title} callsite` stands before a call "
                                                   f"of {name}: its first call is taken"))  # fmt: skip
    if not taken:
        warn.append(caret(members[0].function.span, "no codelet is called: they run in the order of the text"))
        return tuple(CodeletCall(m) for m in members)
    if not marked:
        warn.append(caret(taken[0].call.span, "no `#pragma hmpp … callsite`: the codelets run in the order of their "
                                              "first calls"))  # fmt: skip
    for name, member in by_name.items():
        if not any(e.call.name == name for e in taken):
            message = f"{name} is never called and is left out; --kernel {name} takes it alone"
            warn.append(caret(member.function.span, message))
    taken.sort(key=lambda e: e.at)
    looped = next((e for e in taken if e.in_loop is not None), None)
    if looped is not None and looped.in_loop is not None:
        warn.append(caret(looped.in_loop.span, "the codelets are called in a loop: one pass of it is compiled"))
    return tuple(CodeletCall(by_name[e.call.name], e.caller, e.call) for e in taken)


def call_events(
    around: Sequence[Caller], members: Mapping[str, CodeletFunction], warn: list[str]
) -> list[CodeletEvent]:
    """Return the calls of the ``members``, which are given by name, in textual order."""
    found: list[CodeletEvent] = []
    for caller in around:
        pending: hmpp.Hmpp | None = None
        loops = [n for n in c_ast.walk(caller.body) if isinstance(n, c_ast.For | c_ast.While)]
        for node in c_ast.walk(caller.body):
            match node:
                case c_ast.PragmaItem(pragma) if pragma.family == "hmpp":
                    site = _callsite(node)
                    if site is not None and pending is not None:
                        warn.append(caret(pending.span, "this callsite stands before no call of a codelet"))
                    pending = pending if site is None else site
                case c_ast.Call(name) if name in members:
                    _compare(pending, members[name], node, warn)
                    outer = next((f for f in loops if any(n is node for n in c_ast.walk(f))), None)
                    found.append(CodeletEvent(len(found), caller, node, pending, outer))
                    pending = None
        if pending is not None:
            warn.append(caret(pending.span, "this callsite stands before no call of a codelet"))
    return found


def _callsite(mark: c_ast.PragmaItem) -> hmpp.Hmpp | None:
    try:
        said = hmpp.parse(mark.pragma)
    except (ParseError, UnsupportedError):
        # the survey of the file's pragmas has warned of it
        return None
    return said if said.verb == "callsite" else None


def _compare(site: hmpp.Hmpp | None, member: CodeletFunction, call: c_ast.Call, warn: list[str]) -> None:
    if site is not None and site.label and site.label.lower() != member.label.lower():
        warn.append(caret(site.span, f"{site.label} is called here, and the call is of {call.name}"))
